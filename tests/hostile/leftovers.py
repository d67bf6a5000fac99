"""Decodings that are ended from outside, or that reach a limit, leave no file behind; what SIGKILL leaves the next arm removes."""
import fcntl
import glob
import os
import resource
import signal
import subprocess

import tree
from hostile import *

if os.geteuid():
    os.environ['XDG_RUNTIME_DIR'] = work
    folder = work + '/stalltrap'
else:
    own_run_folder()
    folder = '/run/stalltrap'
target = build('jit_target')
r = subprocess.run([STALLTRAP, 'arm', '--source', 'step', '-q', '--no-decode', '-o', 'x', '--', target, '1'], capture_output=True, text=True)
if r.returncode == 3:
    skip('no ptrace')


def temps():
    return glob.glob('.x.*')


def decode(**more):
    return start([STALLTRAP, 'decode', '-f', 'x.1.data', '-o', 'x.1.db'], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)


# Brings nothing to disk: the decoding stands still when all is written and nothing has its name.
with open('still.c', 'w') as f:
    f.write('#include <fcntl.h>\n#include <unistd.h>\n'
            'int fsync(int fd) { (void)fd; close(open("stands", O_CREAT | O_WRONLY, 0600)); for (;;) pause(); }\n')
subprocess.run(['cc', '-shared', '-fPIC', '-o', 'still.so', 'still.c'], check=True)


def ended_by(number, there=temps):
    """A decoding that gets the signal while its file is there."""
    if os.path.exists('stands'):
        os.unlink('stands')
    p = decode(env=dict(os.environ, LD_PRELOAD=work + '/still.so'))
    if not until(lambda: there() or p.poll() is not None) or p.poll() is not None:
        return None
    own = tree.descendants(p.pid)
    p.send_signal(number)
    p.communicate(timeout=PATIENCE)
    until(lambda: not any(map(tree.running, own)))  # its worker writes the file for a moment more
    return p.returncode


for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE:
    for when, there in ('begun', temps), ('brought to disk', lambda: os.path.exists('stands')):
        status = ended_by(number, there)
        check(status == -number and until(lambda: not temps()), f'{number.name} leaves nothing of a file that is {when}', f'({status} {temps()})')


def small():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))


p = decode(preexec_fn=small)
err = p.communicate(timeout=PATIENCE)[1]
check(p.returncode == 1 and not temps(), 'a limit of the size of files is told, and leaves nothing', f'({p.returncode} {err} {temps()})')

status = ended_by(signal.SIGKILL)
left = temps()
if status is not None and left:
    open('.x.7.db.abcdef', 'w').close()
    os.symlink('/etc/passwd', '.x.8.db.abcdef')
    open('.xy.1.db.abcdef', 'w').close()
    with open('.x.9.db.abcdef', 'w') as written:
        fcntl.flock(written, fcntl.LOCK_EX)  # as whoever writes one does
        # It ends at once, as there is no such process: the files are looked at before.
        subprocess.run([STALLTRAP, 'arm', '--source', 'step', '-q', '-o', 'x', '-p', '4194303'], capture_output=True)
    check(not [f for f in left if os.path.exists(f)] and not os.path.exists('.x.7.db.abcdef'), 'what SIGKILL left is swept by the next arm', temps())
    check(os.path.exists('.x.9.db.abcdef'), 'but not what is being written')
    check(os.path.lexists('.x.8.db.abcdef') and os.path.exists('.xy.1.db.abcdef'), 'nor what is no such file', os.listdir('.'))
else:
    check(status is not None, 'SIGKILL comes while the file is written')

# Control sockets: that of an arm that was killed goes with the next one, that of one that runs stays.

def arm(prefix):
    return Arm('--source', 'step', '-q', '--no-decode', '-o', prefix, '-p', start(['sleep', '1000']).pid)


def socket_of(a):
    return f'{folder}/{a.pid}.sock'


killed, lives = arm('killed'), arm('lives')
killed.end(signal.SIGKILL)
check(os.path.exists(socket_of(killed)), 'SIGKILL leaves a control socket')
open(f'{folder}/{killed.pid}.sock.txt', 'w').close()
after = arm('after')
check(not os.path.exists(socket_of(killed)), 'the next arm removes it')
check(os.path.exists(socket_of(lives)) and os.path.exists(socket_of(after)), 'but not that of one that runs')
check(os.path.exists(f'{folder}/{killed.pid}.sock.txt'), 'nor what is no socket')
os.unlink(f'{folder}/{killed.pid}.sock.txt')
for a in lives, after:
    a.end(signal.SIGTERM)
    check(not os.path.exists(socket_of(a)), 'one that ends takes its own away')
finish()
