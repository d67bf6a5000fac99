"""Resident memory and descriptors of arm, trap after trap: flat once it is warm, with either source.

soak.py SECONDS: for each source. In a run of minutes and more the traps come five a second and every snapshot is decoded; in a shorter one
they come as fast as it writes them, so that there are as many of them to leak something."""
import glob
import os
import signal
import statistics
import sys
import time

from hostile import *

need_root()
SECONDS = float(sys.argv[1])
LONG = SECONDS >= 600
COOLDOWN = '200ms' if LONG else '0'
WARM = 600 if SECONDS >= 3600 else SECONDS / 3
ENOUGH = 40
target = build('kill_target')


def resident(pid):
    """kB of anonymous memory: the heap is what grows."""
    with open(f'/proc/{pid}/status') as f:
        return next(int(l.split()[1]) for l in f if l.startswith('RssAnon'))


def slope(points):
    """Theil and Sen's: no single point moves it. Per second."""
    pairs = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:] if b[0] > a[0]]
    return statistics.median(pairs)


def soak(source):
    t = start_ready([target])
    arm = Arm('--source', source, '-q', '-o', 's', '-p', t.pid, '--snapshots', '0', '--cooldown', COOLDOWN, '--ring', '64K', '--keep-free', '0',
              '--on', 'offcpu>1ms,idle=yes', *([] if LONG else ['--no-decode']))
    memory, descriptors, done, files = [], [], 0, []
    begun = time.monotonic()
    every = max(0.1, SECONDS / 400)
    while ((now := time.monotonic() - begun) < SECONDS or (len(files) < 5 and now < PATIENCE)) and arm.p.poll() is None:
        time.sleep(every)
        files = sorted(glob.glob('s.*.data'), key=os.path.getmtime)
        for f in files[:-20]:  # numbers go on after the highest there is
            done += 1
            for g in glob.glob(f[:-4] + '*'):
                shutil.rmtree(g, ignore_errors=True) if os.path.isdir(g) else os.unlink(g)
        if now > WARM:
            memory.append((now, resident(arm.pid)))
            descriptors.append((now, len(os.listdir(f'/proc/{arm.pid}/fd'))))
    done += len(glob.glob('s.*.data'))
    status = arm.end(signal.SIGTERM)
    grown = slope(memory) * (memory[-1][0] - memory[0][0])
    open_grown = slope(descriptors) * (descriptors[-1][0] - descriptors[0][0])
    print(f'{source}: {done} snapshots in {now:.0f} s; after {WARM:g} s {statistics.median(m for _, m in memory):.0f} kB, '
          f'grown by {grown:.0f} kB; {statistics.median(d for _, d in descriptors):.0f} descriptors, grown by {open_grown:.1f}')
    print('  kB:', *[m for _, m in memory[::max(1, len(memory) // 12)]])
    check(status == 0 and done >= 5, f'{source}: it takes snapshots and ends', (status, done, arm.text()[1][-500:]))
    if done < ENOUGH:  # the heap has not seen all yet that it will hold
        print(f'{source}: {done} snapshots are too few to tell whether its memory grows')
    else:
        check(grown < max(512, statistics.median(m for _, m in memory) / 10), f'{source}: its memory does not grow')
    check(open_grown < 1, f'{source}: its descriptors do not grow')
    t.send_signal(signal.SIGTERM)
    check(t.wait(PATIENCE) == 7, f'{source}: the target ends as without us', t.returncode)
    for g in glob.glob('s.*'):
        shutil.rmtree(g, ignore_errors=True) if os.path.isdir(g) else os.unlink(g)


for source in 'sample', 'step':
    soak(source)
finish()
