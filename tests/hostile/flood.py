"""Traps faster than snapshots can be written: each stall has fired or is counted as one that could not, of each that fired there is a snapshot or it is
counted as dropped, and arm does not grow.

flood.py STALLS: of 30 ms, some 20 a second, by a program that counts them itself. strace holds each fsync of arm for 100 ms."""
import glob
import os
import re
import select
import signal
import statistics
import subprocess
import sys

from hostile import *

need_root()
STALLS = int(sys.argv[1])
PROGRAM = """
import sys, time
sys.stdin.readline()
for _ in range(int(sys.argv[1])):
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
    time.sleep(0.03)
print("done", flush=True)
sys.stdin.readline()
"""


def status_of(pid, key):
    with open(f'/proc/{pid}/status') as f:
        return next(int(l.split()[1]) for l in f if l.startswith(key))


def series(name):
    with open('metrics') as f:
        return int(re.search(rf'(?m)^stalltrap_{name}_total (\d+)', f.read()).group(1))


t = subprocess.Popen([sys.executable, '-c', PROGRAM, str(STALLS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
arm = Arm('--source', 'sample', '-o', 'f', '-p', t.pid, '--snapshots', '0', '--cooldown', '0', '--ring', '256K', '--keep-free', '0', '--no-decode',
          '--on', 'syscall:clock_nanosleep>20ms', '--prometheus', './metrics')
slow = subprocess.Popen(['strace', '-f', '-qq', '-p', str(arm.pid), '-o', '/dev/null', '-e', 'trace=fsync',
                         '-e', 'inject=fsync:delay_enter=100000'])
until(lambda: all(int(re.search(r'TracerPid:\t(\d+)', open(f).read()).group(1)) for f in glob.glob(f'/proc/{arm.pid}/task/*/status')))
t.stdin.write('go\n')
t.stdin.flush()
memory, files = [], []
while not select.select([t.stdout], [], [], 0.1)[0]:
    memory.append(status_of(arm.pid, 'RssAnon'))
    files.append(len(os.listdir(f'/proc/{arm.pid}/fd')))
status = arm.end(signal.SIGTERM)
slow.wait()
out, err = arm.text()
fired = len(re.findall(r'(?m)^trap \d+: ', out))
without = int((re.search(r'(?m)^(\d+) stalls? reached', err) or [0, '0'])[1])
written, dropped, lost = series('trap_snapshots'), series('traps_dropped'), series('lost_events')
quarter = len(memory) // 4
print(f'{STALLS} stalls: {fired} fired, {without} did not, {lost} could not be told; {written} snapshots, {dropped} dropped; kB at a quarter of the time '
      f'{memory[quarter]}, at the end {memory[-1]}; {files[quarter]} and {files[-1]} descriptors')
check(status == 0, 'it ends as it should', (status, err[-500:]))
check(fired + without + lost == STALLS, 'each stall has fired or is counted', (fired, without, lost))
check(fired == series('traps') == written + dropped, 'of each that fired there is a snapshot, or it is counted as dropped',
      (series('traps'), written, dropped))
check(written == len(glob.glob('f.*.data')) and without == series('stalls_without_trap'), 'what is counted is there')
check(without > 0, 'they came faster than they could be written')
check(statistics.median(memory[-5:]) < 1.2 * statistics.median(memory[quarter:quarter + 5]) + 4096, 'its memory does not grow', memory[::10])
check(max(files[-5:]) <= max(files[quarter:quarter + 5]) + 2, 'its descriptors do not grow', files[::10])
t.stdin.close()
t.wait()
finish()
