"""snap as root: sockets that somebody else put where arm's are looked for; and a number of a snapshot that leaves none behind it."""
import os
import signal
import subprocess
import sys

from hostile import *

need_root()
FAKE = '''
import os, socket, sys, threading, time
uid = int(sys.argv[1])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
d = '/tmp/stalltrap-%d' % os.getuid()
os.makedirs(d, 0o755, exist_ok=True)
os.chmod(d, 0o755)
p = d + '/%d.sock' % os.getpid()
s = socket.socket(socket.AF_UNIX)
s.bind(p)
os.chmod(p, 0o666)
s.listen(5)
print('ready', flush=True)
def serve(c):
    try:
        q = c.recv(16)
        if sys.argv[2] == 'drip':
            while True:
                c.send(b'1')
                time.sleep(.5)
        if q == b'who\\n':
            c.send(b'%d %s\\n' % (os.getpid(), sys.argv[3].encode()))
        elif q == b'snap\\n':
            c.send(b'wrote /root/mine\\n')
        c.close()
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
'''


def snap(*argv):
    try:
        r = subprocess.run([STALLTRAP, 'snap', *map(str, argv)], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return 'no end', '', ''
    return r.returncode, r.stdout, r.stderr


target = start(['sleep', '1000'])
fakes = [start_ready([sys.executable, '-c', FAKE, str(NOBODY), 'lie', str(target.pid)]),
         start_ready([sys.executable, '-c', FAKE, str(NOBODY), 'drip'])]

status, out, err = snap(target.pid)
check(status == 1 and 'no running' in err and '/root/mine' not in out, "another user's word about root's process is not taken",
      f'({status} {out} {err})')

arm = Arm('--source', 'sample', '--no-decode', '-o', 'x', '-p', target.pid)
open('x.999999999.data', 'w').close()
status, out, err = snap(target.pid)
check(status == 0 and out == f'wrote {work}/x.1.data\n', 'the arm of root answers, and the highest number leaves room', f'({status} {out} {err})')
status, out, err = snap(arm.pid)
check(status == 0 and out == f'wrote {work}/x.2.data\n', 'and goes on', f'({status} {out} {err})')
os.kill(arm.pid, signal.SIGSTOP)
status, out, err = snap(target.pid)
os.kill(arm.pid, signal.SIGCONT)
check(status == 1, 'an arm that stands still is not waited for', f'({status} {out} {err})')
check(arm.end(signal.SIGTERM) == 0, 'arm ends')
for f in fakes:
    path = f'/tmp/stalltrap-{NOBODY}/{f.pid}.sock'
    if os.path.exists(path):
        os.unlink(path)
finish()
