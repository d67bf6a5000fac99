"""step: an arm that fails while it is arming, or is killed then, leaves no EINTR in the target's waits."""
import collections
import os
import random
import signal
import subprocess
import time

from hostile import *

waits = build('waits')


def case(what, rounds, once):
    t = start_ready([waits, '20'])
    for i in range(rounds):
        once(t.pid, i)
    os.kill(t.pid, signal.SIGTERM)
    lines = t.stdout.read().splitlines()
    status = t.wait(PATIENCE)
    check(status == 7 and not lines, what, f'(status {status}: {dict(collections.Counter(lines))})')


def mistyped(pid, i):
    r = subprocess.run([STALLTRAP, 'arm', '--source', 'step', '-q', '--no-decode', '-o', 'typo', '-p', str(pid), '--on',
                        'func:no_such_function>1ms'], capture_output=True, text=True, timeout=PATIENCE)
    if r.returncode == 0 or 'no_such_function' not in r.stderr:
        raise SystemExit(f'FAILED: a mistyped function is not what ended arm: {r.returncode} {r.stderr}')


def killed(pid, i):
    """At a moment between its start and a little after it has begun to record."""
    arm = Arm('--source', 'step', '-q', '--no-decode', '-o', 'killed', '-p', pid, ready=False)
    time.sleep(i * 0.01)
    arm.end(signal.SIGKILL)
    until(lambda: 'TracerPid:\t0\n' in open(f'/proc/{pid}/status').read())


if subprocess.run([STALLTRAP, 'arm', '--source', 'step', '-q', '--no-decode', '-o', 'probe', '--', build('jit_target')],
                  capture_output=True).returncode == 3:
    skip('no ptrace')
if os.geteuid() == 0:
    case('a mistyped function', 4, mistyped)
case('killed while it arms', 8, killed)
finish()
