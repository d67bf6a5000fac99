"""A target with memory that a userfaultfd covers and nobody serves: the snapshot is written all the same, and arm ends when it is told to."""
import glob
import os
import signal
import subprocess

from hostile import *

need_root()
blocker = build('blocker')


def victim(mode):
    t = start([blocker, mode], stdout=subprocess.PIPE, text=True)
    if t.stdout.readline() != 'ready\n':
        skip('no userfaultfd')
    return t


def asleep(pid):
    return open(f'/proc/{pid}/syscall').read().startswith('35 0x')


def snapshots(prefix):
    return glob.glob(prefix + '.*.data')


for source in 'sample', 'step':
    t = victim('code')
    arm = Arm('--source', source, '--no-decode', '-o', 'code-' + source, '-p', t.pid)
    status = arm.end(signal.SIGINT)
    check(status == 0 and snapshots('code-' + source), f'{source}: code that cannot be read', f'({status} {arm.text()})')
    check(t.poll() is None, f'{source}: the target goes on')
    t.kill()

t = victim('stack')
arm = Arm('--source', 'sample', '--no-decode', '-o', 'stack', '-p', t.pid, '--on', 'offcpu>300ms,idle=yes')
check(until(lambda: snapshots('stack')), 'a stall whose user stack cannot be read is written', arm.text())
status = arm.end()
check(status == 0, 'and arm ends', f'({status} {arm.text()})')
check('in clock_nanosleep' in arm.text()[0] or 'in nanosleep' in arm.text()[0], 'its line is the usual one', arm.text())
check(asleep(t.pid), 'the target goes on sleeping')
finish()
