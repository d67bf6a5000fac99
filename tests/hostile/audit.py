"""The reproductions that an audit of the first design wrote, run against the program as they are: each must fail to reproduce.

    audit.py [NAME]...      these of CASES; else all

They are in ../shared/audit beside the source tree, and name a folder of their own, SEC_WORK: it is made here, with what they need in it."""
import os
import re
import shutil
import signal
import subprocess
import sys

from hostile import *

AUDIT = os.path.join(SOURCE, '../shared/audit')
LIMIT = 600  # seconds a reproduction
need_root()
if not os.path.isdir(AUDIT):
    skip('there is no ../shared/audit beside the source tree')

base = work + '/audit'
place = base + '/w'
PROGRAMS = {'ktarget': 'ktarget', 'swt': 'code_swap_target', 'sww': 'code_swap_watch', 'sdw': 'code_delete_watch', 'pmt': 'perfmap_target',
            'jdt': 'jitdump_target', 'uffd': 'uffd_target'}
SPIN = '''#include <unistd.h>
__attribute__((noinline)) void work(void) { for (volatile int i = 0; i < 100000; i++) ; usleep(1000); }
int main(void) { for (;;) work(); }
'''
LOAD = '''import sys, time
end = time.time() + float(sys.argv[1])
while time.time() < end:
    time.sleep(.005)
    sum(range(20000))
'''


def prepare():
    os.makedirs(base + '/src/build')
    os.makedirs(place)
    shutil.copy(STALLTRAP, base + '/src/build/stalltrap')
    for f in os.listdir(AUDIT):
        with open(f'{AUDIT}/{f}', encoding='utf-8') as old, open(f'{place}/{f}', 'w') as new:
            new.write(old.read().replace('SEC_WORK', base))
        os.chmod(f'{place}/{f}', 0o755)
    with open(place + '/spin2.c', 'w') as f:
        f.write(SPIN)
    with open(place + '/load.py', 'w') as f:
        f.write(LOAD)
    for program, source in {**PROGRAMS, 'spin2': 'spin2'}.items():
        subprocess.run(['cc', '-O1', '-g', '-w', '-pthread', '-o', f'{place}/{program}', f'{place}/{source}.c'], check=True)
    subprocess.run(['cc', '-O1', '-w', '-fno-builtin', '-shared', '-fPIC', '-o', place + '/failmalloc.so', place + '/failmalloc.c'], check=True)
    os.chdir(place)
    for name, source, more in ('base', 'step', []), ('fp', 'sample', []), ('st', 'step', []), ('dw', 'sample', ['--callgraph', 'dwarf']):
        subprocess.run([STALLTRAP, 'arm', '--source', source, '-q', '-o', name, *more, '--', '/bin/true'], capture_output=True, check=True)


def run(*argv, beside=None):
    """All that it prints; what it starts ends with it."""
    other = start(beside) if beside else None
    try:
        done = subprocess.run(argv, capture_output=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
        text = (done.stdout + done.stderr).decode(errors='replace')
        return text + f'\nstatus {done.returncode}'
    except subprocess.TimeoutExpired as e:
        return (e.stdout or b'').decode(errors='replace') + '\nno end'
    finally:
        if other:
            other.kill()
            other.wait()


# ---- each returns what it has reproduced, or None ----

def shows(pattern, text):
    """What of the output is the fault."""
    found = re.search(pattern + '|^no end', text, re.M)
    return found and f'{found[0]}\n{text[-600:]}'


def code_swap():
    run('./code_swap.sh')
    return os.listdir(base + '/victim')


def code_delete():
    run('./code_delete.sh')
    kept = sorted(os.listdir(base + '/victim'))
    return kept != ['fstab', 'hosts', 'passwd', 'shadow'] and kept


def open_device():
    """What is made with that name (O_EXCL) is the copy of its code."""
    text = run('./open_device.sh')
    return [l for l in text.splitlines() if 'st-watchdog' in l and 'open' in l and 'O_PATH' not in l and 'O_EXCL' not in l and '/proc/' not in l]


def perfmap():
    return shows(r'still stuck|^rc [^0]', run('./perfmap.sh', '300', 'sparse', str(100 << 30)) + run('./perfmap.sh', '1', 'long', '20000', '3000'))


def jitdump():
    return shows(r'still stuck|^rc [^0]', run('./jitdump.sh', '200000', '200000'))


def epoll_failed():
    return shows(r'target rc [^7]', run('./epoll_eintr_failed_arm.sh', '10'))


def epoll_killed():
    return shows(r'target rc [^7]', run('./epoll_eintr.sh', 'KILL', '6') + run('./epoll_eintr.sh', 'TERM', '6'))


def http_idle():
    target = start(['sleep', '1000'])
    arm = Arm('--source', 'sample', '--no-decode', '-q', '-p', target.pid, '--on', 'offcpu>1000s', '--prometheus', 9100)
    text = run('./http_idle.py', '9100', '22')
    arm.end(signal.SIGTERM)
    last = re.findall(r'^\d+ s: .*', text, re.M)[-1]
    return (not re.search(r'scrape \d+, closed by server 16 of 16', last) or re.search(r"scrape [^\d]", text)) and text


def fake_arm():
    target = start(['sleep', '1000'])
    fake = start(['/usr/bin/python3', place + '/fake_arm.py', 'lie', str(target.pid), 'wrote /root/mine'], user=NOBODY)
    until(lambda: os.path.exists(f'/tmp/stalltrap-{NOBODY}/4242.sock'))
    done = subprocess.run([STALLTRAP, 'snap', str(target.pid)], capture_output=True, text=True, timeout=LIMIT)
    fake.kill()
    os.unlink(f'/tmp/stalltrap-{NOBODY}/4242.sock')
    return (done.returncode == 0 or '/root/mine' in done.stdout) and done


def second_signal():
    return shows(r': [1-9]\d* temporary files|, [1-9]\d* folders', run('./second_signal.sh'))


def kill_decode():
    """Only SIGKILL may leave a file, which the next arm removes."""
    text = run('./kill_decode.py')
    return [l for l in text.splitlines() if 'temp' in l and not l.startswith('SIGKILL')]


def kill_matrix():
    found = []
    for source, whom in ('sample', 'arm'), ('sample', 'decode'), ('step', 'arm'), ('step', 'decode'):
        text = run('./kill_matrix.py', source, whom, '8')
        found += [text] if shows(r'hung|target dead|NOT FREE|target rc [^7]|unreadable [1-9]', text) or not re.search(r"'hit ", text) else []
    return found


def leftovers():
    return shows(r'code as before: False', run('./leftovers.py'))


def eintr():
    return shows(r'target rc [^7]', run('./eintr.sh'))


def enospc():
    """A failure leaves nothing. An arm whose decoding alone had no room has its snapshot."""
    text = run('./enospc.sh')
    return [l for l in text.splitlines() if re.search(r'rc [1-9]\d* left \[[^]]', l) and not re.search(r'left \[a\.1\.data \]', l)]


def failing_memory():
    text = run('./failmalloc.py', '60')
    return [l for l in text.splitlines() if 'BAD' in l and not l.endswith('BAD []')] or shows('temp left|Traceback', text)


def views():
    return shows(r'rc (124|13[0-9]|15\d)', run('./hostile_views.sh'))


def view_hang():
    shutil.copy('fp.1.db', 'mark.db')
    subprocess.run(['sqlite3', 'mark.db', "INSERT INTO mark(id, name, time_ns) VALUES (900001, 'm', 'a text')"], check=True)
    text = run('./view_hang.py', 'mark.db')
    return 'q ended' not in text and text


def damage():
    return shows(r'status 1', run('./damage_sweep.py', STALLTRAP, '/bin/true'))


def fuzzed():
    text = run('./fuzz_perfdata.py', STALLTRAP, 'fuzzed', '30', '1', 'base.1.data', 'fp.1.data') + run('./fuzz_elf_root.py', STALLTRAP, 'spin2', '30')
    return shows(r'^BAD|^HANG|Traceback', text)


CASES = [code_swap, code_delete, open_device, perfmap, jitdump, epoll_failed, epoll_killed, http_idle, fake_arm, second_signal, kill_decode,
         kill_matrix, leftovers, eintr, enospc, failing_memory, views, view_hang, damage, fuzzed]

own_run_folder()
own_network()
subprocess.run(['mount', '-t', 'tmpfs', 'none', '/var/tmp'], check=True)  # one of them empties it
prepare()
for case in CASES:
    if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
        continue
    reproduced = case()
    check(not reproduced, f'{case.__name__} is not reproduced', reproduced)
    os.chdir(place)
finish()
