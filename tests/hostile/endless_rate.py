"""arm --snapshots 0: so many traps a minute; and a small ring makes a small snapshot, however long it was armed."""
import glob
import os
import re
import signal
import time

from hostile import *

need_root()
sleeper = build('sleeper')
t = start_ready([sleeper, '5'])


def written():
    return len(glob.glob('often.*.data'))


# As often as it likes for a minute's worth, then one a second.
begun = time.monotonic()
arm = Arm('--source', 'sample', '--snapshots', '0', '--no-decode', '-o', 'often', '-p', t.pid, '--on', 'offcpu>2ms,idle=yes')
check('limits: 60 traps a minute' in arm.text()[1], 'the limit in time is told', arm.text()[1])
until(lambda: written() >= 60, 15)
time.sleep(1.5)
n, took = written(), time.monotonic() - begun
check(n <= 62 + took, 'not more traps than that', f'({n} in {took:.1f} s)')
arm.end(signal.SIGTERM)

# Context switches by the hundred thousand.
t.kill()
t = start_ready([sleeper, '0'])


def switches():
    with open(f'/proc/{t.pid}/status') as f:
        return int(re.search(r'^voluntary_ctxt_switches:\s+(\d+)', f.read(), re.M)[1])


arm = Arm('--source', 'sample', '--no-decode', '--ring', '64K', '-o', 'ring', '-p', t.pid)
first = switches()
until(lambda: switches() - first > 150000, 8)
arm.end(signal.SIGINT)
size = os.stat('ring.1.data').st_size
check(size < 5 << 20, 'a small ring makes a small snapshot', f'({size} bytes, {switches() - first} switches)')
finish()
