"""Files about code that was made at run time, written to hurt who reads them: arm ends within its memory (with HOSTILE=whole: and its processor
time), the names that can be had in the time that there is are there, and what was left out is a gap."""
import glob
import os
import signal
import subprocess

from hostile import *

need_root()
target = build('jit_target')


def gaps(prefix, reason='no names'):
    r = subprocess.run([STALLTRAP, 'query', prefix + '.1.db', f"SELECT detail FROM gaps WHERE reason = '{reason}'", '--format', 'csv'],
                       capture_output=True, text=True)
    return r.stdout.splitlines()[1:]


def names(prefix):
    """Symbols of the copied code."""
    found = set()
    for f in glob.glob(prefix + '.1.code/*'):
        r = subprocess.run(['readelf', '-Ws', f], capture_output=True, text=True)
        found |= {line.split()[-1] for line in r.stdout.splitlines() if ' FUNC ' in line}
    return found


def named(prefix):
    """The name that ends the file; or a gap says that the machine was too slow to read it."""
    return 'hot' in names(prefix) or any('too long' in g or 'not enough time' in g for g in gaps(prefix))


def case(prefix, mappings, *mode):
    t = start_ready([target, str(mappings), *map(str, mode)], user=NOBODY)
    arm = Arm('--source', 'sample', '-q', '-o', prefix, '-p', t.pid)
    status = arm.end(signal.SIGINT)
    t.kill()
    t.wait()
    for f in f'/tmp/perf-{t.pid}.map', f'/tmp/jit-{t.pid}.dump':
        if os.path.exists(f):
            os.unlink(f)
    check(status == 0, f'{prefix}: arm ends', f'(status {status}: {arm.text()[1]})')
    return arm if status == 0 else None


def cheap(arm, prefix, seconds):
    if arm:
        mb = arm.usage.ru_maxrss // 1024
        check(mb < 500, f'{prefix}: memory within bounds', f'({mb} MB)')
        check(arm.cpu < seconds or not WHOLE, f'{prefix}: processor time within bounds', f'({arm.cpu:.2f} s)')


# The one that means no harm: 300 mappings and 8 MB of names, as a JVM has.
a = case('jvm', 300, 'lines', 120000, 50)
cheap(a, 'jvm', 4)
check(named('jvm'), 'jvm: names are there', names('jvm'))

a = case('sparse', 300, 'sparse', 100 << 30)
cheap(a, 'sparse', 6)
check(named('sparse'), 'sparse: the names at the end are there', names('sparse'))
cut = any('longer than 32 MiB' in g for g in gaps('sparse'))
check(cut or (gaps('sparse') and 'hot' not in names('sparse')), 'sparse: what was left out is a gap', gaps('sparse'))

a = case('long', 1, 'lines', 20000, 4000)
cheap(a, 'long', 6)

a = case('dump', 1, 'dump', 200000, 200000)
cheap(a, 'dump', 6)
check(named('dump'), 'dump: names are there', names('dump'))

a = case('fifo', 1, 'fifo')
cheap(a, 'fifo', 4)

# More pieces of code than are copied, each a file: what was left out is a gap.
a = case('many', 20000, 'lines', 1, 4)
copies = len(os.listdir('many.1.code'))
check(0 < copies <= 4096, 'many: no more than 4096 files', copies)
check(any('was not copied' in g for g in gaps('many', 'no image')), 'many: what was left out is a gap', gaps('many', 'no image'))
finish()
