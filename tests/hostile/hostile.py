"""What the tests of tests/hostile share: a folder of their own, programs built for them, and an arm that is waited for and measured.

STALLTRAP, BUILD and SOURCE are in the environment."""
import atexit
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

STALLTRAP = os.environ['STALLTRAP']
SOURCE = os.environ['SOURCE']
HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
PATIENCE = 240  # seconds: it ends what hangs, and is far more than anything takes on a busy machine
WHOLE = os.environ.get('HOSTILE') == 'whole'  # make hostile: what measures time is looked at too, and what takes long is done
NEW_MOUNTS, NEW_NETWORK = 0x20000, 0x40000000  # CLONE_NEWNS, CLONE_NEWNET

work = tempfile.mkdtemp(prefix='stalltrap-hostile.', dir='/tmp')
os.chmod(work, 0o755)
os.chdir(work)
started = []
failures = 0


def cleanup():
    for p in started:
        if p.poll() is None:
            p.kill()
        p.wait()
    os.chdir('/')
    subprocess.run(['umount', '-q', work + '/small'], stderr=subprocess.DEVNULL)
    shutil.rmtree(work, ignore_errors=True)


atexit.register(cleanup)


def skip(why):
    print('SKIP:', why)
    sys.exit(77)


def need_root():
    if os.geteuid():
        skip('needs root')


def unshare(what):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(what):
        skip(f'no name space of its own: {os.strerror(ctypes.get_errno())}')


def own_run_folder():
    """Control sockets of this test alone: an arm of another test would sweep them."""
    need_root()
    unshare(NEW_MOUNTS)
    os.makedirs('/run/stalltrap', 0o755, exist_ok=True)
    for argv in ['--make-rprivate', '/'], ['-t', 'tmpfs', '-o', 'mode=755', 'none', '/run/stalltrap']:
        subprocess.run(['mount', *argv], check=True)


def own_network():
    """Only the loopback, whose ports nobody else has."""
    unshare(NEW_NETWORK)
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8914, struct.pack('16sH14x', b'lo', 1))  # SIOCSIFFLAGS, IFF_UP


def check(good, what, detail=''):
    global failures
    if good:
        print('ok  ', what)
        return
    failures += 1
    print('FAILED:', what, detail, flush=True)


def finish():
    sys.exit(1 if failures else 0)


def build(name, *options):
    """A program of tests/hostile; static, as the dynamic linker takes long to be stepped through."""
    out = os.path.join(work, name)
    subprocess.run(['cc', '-O1', '-g', '-D_GNU_SOURCE', '-pthread', '-static', '-o', out, os.path.join(HERE, name + '.c'), *options],
                   check=True)
    return out


def until(done, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = done()
        if value:
            return value
        time.sleep(0.02)
    return None


def start(argv, user=None, **more):
    """A process that ends with the test at the latest."""
    if user is not None:
        more.update(user=user, group=user, extra_groups=[])
    p = subprocess.Popen(argv, **more)
    started.append(p)
    return p


def start_ready(argv, user=None):
    """One that prints a line when it is ready."""
    p = start(argv, user, stdout=subprocess.PIPE, text=True)
    line = p.stdout.readline()
    if not line.startswith('ready'):
        raise SystemExit(f'FAILED: {argv} did not become ready: {line!r}')
    return p


class Arm:
    """`arm ARG...`; with `ready`, waits until it is armed; with ready='later', armed() says whether it is."""

    def __init__(self, *argv, ready=True, env=None, preexec_fn=None):
        self.ready, w = os.pipe()
        self.out, self.err = open('arm.out', 'w+'), open('arm.err', 'w+')
        extra = ['--ready-fd', str(w)] if ready else []
        self.p = start([STALLTRAP, 'arm', *extra, *map(str, argv)], stdout=self.out, stderr=self.err, pass_fds=[w], env=env,
                       preexec_fn=preexec_fn)
        self.pid, self.said = self.p.pid, b''
        os.close(w)
        os.set_blocking(self.ready, ready != 'later')
        if ready is True and not self.armed():
            raise SystemExit('FAILED: arm did not get armed: ' + self.text()[1])
        if ready != 'later':
            os.close(self.ready)

    def armed(self):
        try:
            self.said += os.read(self.ready, 6)
        except BlockingIOError:
            pass
        return self.said == b'armed\n'

    def send(self, number):
        os.kill(self.pid, number)

    def text(self):
        """What it printed so far."""
        both = []
        for f in self.out, self.err:
            f.flush()
            f.seek(0)
            both.append(f.read())
        return both

    def end(self, number=None, patience=PATIENCE):
        """Its exit status; None: it did not end, and was killed. self.usage is what it and its children took, self.took the wall
        time from the signal on."""
        begun = time.monotonic()
        if number is not None:
            self.send(number)
        status = []

        def reaped():
            pid, code, self.usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                status.append(os.waitstatus_to_exitcode(code))
            return pid

        if not until(reaped, patience):
            self.p.kill()
            self.p.wait()
            return None
        self.took = time.monotonic() - begun
        self.p.returncode = status[0]
        self.cpu = self.usage.ru_utime + self.usage.ru_stime
        return status[0]
