"""SIGKILL of each process of arm's tree at seeded moments, with either source, with and without a uprobe: the target goes on as before,
and nothing is left of arm: processes, stops, BPF objects, breakpoints in the target; sockets and half-written files go with the next arm.

kills.py MOMENTS [SEED]"""
import collections
import ctypes
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from hostile import *

need_root()
MOMENTS = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
BPF_CALL, BY_ID = 321, {'prog': 13, 'map': 14, 'link': 30}
WHOM = ['arm', 'decode', 'worker', 'action', 'helper']
random.seed(SEED)
target_path = build('kill_target')
nap = next(int(l.split()[0], 16) for l in subprocess.check_output(['nm', target_path], text=True).splitlines() if l.endswith(' T nap'))
libc = ctypes.CDLL(None, use_errno=True)
counts = collections.Counter()


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ''


def children(pid):
    return [int(c) for t in glob.glob(f'/proc/{pid}/task/*/children') for c in read(t).split()]


def descendants(pid):
    found = children(pid)
    for c in list(found):
        found += descendants(c)
    return found


def is_one(whom, pid):
    args = read(f'/proc/{pid}/cmdline').split('\0')
    if whom == 'helper':
        return read(f'/proc/{pid}/comm').strip() == 'stalltrap-step'
    if whom == 'action':
        return args[0] in ('sh', '/bin/sh', 'sleep')
    return len(args) > 1 and 'decode' in args[1]


def victim(arm, whom):
    """The process to be killed, once it is there."""
    if whom == 'arm':
        return arm
    for c in children(arm):
        if whom == 'worker' and is_one('decode', c):
            return next(iter(children(c)), None)
        if whom != 'worker' and is_one(whom, c):
            return c
    return None


def bpf_objects(pid):
    found = set()
    for f in glob.glob(f'/proc/{pid}/fdinfo/*'):
        found |= set(re.findall(r'^(prog|map|link)_id:\s*(\d+)', read(f), re.M))
    return found


def bpf_exists(kind, number):
    attr = ctypes.create_string_buffer(int(number).to_bytes(4, 'little'), 128)
    fd = libc.syscall(BPF_CALL, BY_ID[kind], attr, 128)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def running(pid):
    state = re.search(r'\) (\S)', read(f'/proc/{pid}/stat'))
    return bool(state) and state[1] not in 'ZX'


def free(t):
    """None of its threads is traced or stopped."""
    text = ''.join(read(f) for f in glob.glob(f'/proc/{t.pid}/task/*/status'))
    return not re.search(r'^TracerPid:\s*[1-9]|^State:\s*[tT]', text, re.M)


def breakpoint_in(t):
    with open(f'/proc/{t.pid}/mem', 'rb', buffering=0) as f:
        f.seek(nap)
        return f.read(1) == b'\xcc'


def hit(arm, whom):
    """SIGKILL at a moment of the victim's life; whether it came while it lived."""
    pid = until(lambda: victim(arm.pid, whom), 30)
    if not pid:
        return False
    time.sleep(random.uniform(0, 0.05))
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def one(t, whom, source, uprobe):
    """Returns what is wrong afterwards."""
    early = whom == 'arm' and random.random() < 0.5
    arm = Arm('--source', source, '-q', '-o', 'k', '-p', t.pid, '--snapshots', '0', '--cooldown', '10ms', '--ring', '256K', '--keep-free', '0',
              '--on', 'func:nap>1ms' if uprobe else 'offcpu>1ms,idle=yes', '--then', 'sleep 0.2', ready=not early)
    objects, tree = bpf_objects(arm.pid), []
    if early:
        time.sleep(random.uniform(0, 1))
        objects |= bpf_objects(arm.pid)
    tree = descendants(arm.pid)
    if not hit(arm, whom):
        counts['missed ' + whom] += 1
    wrong = []
    if whom in ('decode', 'worker', 'action'):
        time.sleep(0.1)
        objects |= bpf_objects(arm.pid)
        if arm.p.poll() is not None:
            wrong.append(f'arm ended with {arm.p.returncode}')
        elif arm.end(signal.SIGTERM) != 0:
            wrong.append(f'arm does not end well: {arm.p.returncode}')
    elif whom == 'helper' and arm.end() not in (0, 1):
        wrong.append(f'arm does not end well: {arm.p.returncode}')
    elif whom == 'arm':
        arm.end()
    tree += [c for c in tree for c in descendants(c)]
    if not until(lambda: not [p for p in tree if running(p)]):
        wrong.append(f'processes are left: {[read(f"/proc/{p}/cmdline") for p in tree if running(p)]}')
    if not until(lambda: not [o for o in objects if bpf_exists(*o)]):
        wrong.append(f'BPF objects are left: {[o for o in objects if bpf_exists(*o)]}')
    if t.poll() is None and not until(lambda: t.poll() is not None or free(t)):
        wrong.append('threads of the target are stopped or traced')
    if t.poll() is None and breakpoint_in(t):
        wrong.append('a breakpoint stays in the target')
    if uprobe and not early and not objects:
        wrong.append('no BPF objects were seen: nothing was tested')
    killed.append(arm.pid)
    return [f'{w}\n{arm.text()[1][-600:]}' for w in wrong]


killed, deaths = [], collections.Counter()
t = start_ready([target_path])
for i in range(MOMENTS):
    whom = WHOM[i % len(WHOM)]
    source = 'step' if whom == 'helper' else ('sample', 'step')[i // len(WHOM) % 2]
    uprobe = random.random() < 0.5
    what = f'{i}: {whom}, {source}{", uprobe" if uprobe else ""}'
    wrong = one(t, whom, source, uprobe)
    counts[whom] += 1
    if whom == 'helper':
        time.sleep(0.05)
        deaths[t.poll()] += 1
    elif t.poll() is not None:
        wrong.append(f'the target has ended with {t.returncode}')
    if t.poll() is not None:
        t = start_ready([target_path])
    for f in glob.glob('k.*'):
        shutil.rmtree(f) if os.path.isdir(f) else os.unlink(f)
    if wrong:
        check(False, what, '; '.join(wrong))

check(not failures, f'{MOMENTS} moments, seed {SEED}: {dict(counts)}')
print(f'the step helper was killed {counts["helper"]} times; the target then: '
      f'{deaths.pop(None, 0)} times alive, ended by {dict(deaths)}')
check(not [d for d in deaths if d != -signal.SIGTRAP], 'nothing but the trap that was under way ends a target whose stepping helper is killed')
arm = Arm('--source', 'sample', '-q', '-o', 'k', '-p', t.pid, '--no-decode', '--on', 'offcpu>100s')
arm.end(signal.SIGTERM)
left = [p for p in killed if os.path.exists(f'/run/stalltrap/{p}.sock')]
check(not left, 'no socket is left after the next arm', left)
check(not glob.glob('.k*'), 'no half-written file is left after the next arm', glob.glob('.k*'))
check(work not in read('/sys/kernel/tracing/uprobe_events'), 'no uprobe is left in tracefs')
t.send_signal(signal.SIGTERM)
check(t.wait(PATIENCE) == 7, 'the target ends as it would have', t.returncode)
finish()
