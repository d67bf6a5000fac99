"""arm --snapshots 0: limits on what waits to be decoded, and on the disk, and an end that does not wait."""
import glob
import os
import re
import signal
import subprocess
import time

from hostile import *

need_root()
sleeper = build('sleeper')
t = start_ready([sleeper, '5'])
STALL = 'offcpu>2ms,idle=yes'


def endless(prefix, *more):
    return Arm('--source', 'sample', '--snapshots', '0', '-o', prefix, '-p', t.pid, '--on', STALL, *more)


def data(prefix):
    return sorted(glob.glob(glob.escape(prefix) + '.*.data'))


# The first snapshot's action never ends: all others wait.
os.mkdir('small')
arm = endless('wait', '--cooldown', '0', '--then', 'sleep 1000')
check(re.search(r'; limits: 8 snapshots waiting to be decoded, [0-9.]+ [KMGT]iB of the disk kept free', arm.text()[1]),
      'the limits are told', arm.text()[1])
check(until(lambda: 'nothing fires while 8 snapshots wait to be decoded' in arm.text()[1]), 'that nothing fires is said')
n = len(data('wait'))
time.sleep(1)
check(n == len(data('wait')) == 9, 'nothing fires while 8 wait', f'({n}, {len(data("wait"))})')
status = arm.end(signal.SIGTERM)
out, err = arm.text()
check(status == 0, 'SIGTERM ends it', status)
check(arm.took < 20, 'without waiting for the rest', f'({arm.took:.1f} s)')
check(len(re.findall(r'^wrote wait\.\d\.data', out, re.M)) == 9, 'every snapshot is named', out)
# The first one may be decoded by then, or not.
check(re.search('[89] snapshots were not decoded', err), 'that they are not decoded is said', err)
check(subprocess.run([STALLTRAP, 'decode', 'wait.9.data'], capture_output=True).returncode == 0, 'they can be decoded')
check(not glob.glob('.wait*'), 'nothing half-written is left', glob.glob('.wait*'))

# A limit of the disk does not end the warm-up.
arm = endless('warm', '--warm-up', '1h', '--keep-free', '1M', '--cooldown', '0', '--no-decode')
time.sleep(0.5)
check(not data('warm'), 'nothing fires while it warms up', data('warm'))
check(arm.end(signal.SIGTERM) in (0, 4), 'it ends', arm.text())

# A disk of its own, on which something else lies.
if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64m', 'none', 'small'], capture_output=True).returncode:
    print('no tmpfs here: the limit of the disk is not tried')
else:
    with open('small/other', 'wb') as f:
        f.truncate(0)
        f.write(b'x' * (8 << 20))
    arm = endless('small/x', '--cooldown', '0', '--no-decode', '--keep-free', '60M')
    check('limits: 60 MiB of the disk kept free' in arm.text()[1], 'the limit of the disk is told', arm.text()[1])
    check('nothing fires while only' in arm.text()[1], 'that it is reached is said', arm.text()[1])
    time.sleep(1)
    check(not data('small/x'), 'nothing fires while the disk is too full', data('small/x'))
    os.unlink('small/other')
    check(until(lambda: data('small/x')), 'it fires once there is room')
    free = []

    def full():
        s = os.statvfs('small')
        free.append(s.f_bavail * s.f_frsize)
        return arm.text()[1].count('nothing fires while only') > 1

    check(until(full), 'and stops when there is none again', arm.text()[1])
    time.sleep(0.5)
    full()
    check(min(free) > 48 << 20, 'with what is to be kept free still free', min(free))
    check(arm.end(signal.SIGTERM) == 0, 'it ends')

finish()
