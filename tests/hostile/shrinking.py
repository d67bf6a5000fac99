"""Files that become shorter while they are read: a recording, a code file of a trigger, a database. Nobody dies of a signal, and what is said
names the file."""
import mmap
import os
import sqlite3
import struct
import subprocess

from hostile import *


def recording(path, n):
    """Of n COMM records: there is no trace in it, but something to read."""
    attr = struct.pack('<IIQQQQQ', 1, 128, 9, 1, 4, 0, 1 << 18).ljust(128, b'\0')  # a software event; TIME, sample_id_all
    body = struct.pack('<IHHII', 3, 0, 32, 1, 1) + b'name'.ljust(8, b'\0')
    data = b''.join(body + struct.pack('<Q', i) for i in range(1, n))
    start = 104 + 144
    with open(path, 'wb') as f:
        f.write(b'PERFILE2' + struct.pack('<QQQQQQQQ', 104, 144, 104, 144, start, len(data), 0, 0) + bytes(32))
        f.write(attr + struct.pack('<QQ', 0, 0) + data)


def is_mapped(pid):
    """The worker, which is the only child of `decode`, has the recording mapped."""
    try:
        with open(f'/proc/{pid}/task/{pid}/children') as f:
            children = f.read().split()
        return any('x.data' in open(f'/proc/{c}/maps').read() for c in children)
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return False


def shrink_recording():
    """(status, stderr) of a decoding whose recording is cut while it is mapped."""
    n = 200000
    while n <= 6400000:
        recording('x.data', n)
        p = start([STALLTRAP, 'decode', '-f', 'x.data', '-o', 'x.db'], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while p.poll() is None and not is_mapped(p.pid):
            pass
        if p.poll() is None:
            os.truncate('x.data', 4096)
        err = p.communicate(timeout=PATIENCE)[1]
        if 'shorter' in err or p.returncode not in (0, 1):
            return p.returncode, err
        n *= 2  # it was read before it was cut
    return 'too quick', ''


status, err = shrink_recording()
check(status == 1 and 'x.data: a file became shorter while it was read' in err, 'a recording: it is told', f'({status}: {err})')
check('Bus error' not in err and not os.path.exists('x.db') and not [f for f in os.listdir('.') if f.startswith('.x')],
      'a recording: no database, and nothing half-written', f'({err} {os.listdir(".")})')

# In the child that reads for the recorder, which may cut nothing itself: it waits for us when a table of symbols has been found. In the
# process of a reader: after so many reads.
with open('cut.c', 'w') as f:
    f.write('''#include <dlfcn.h>
#include <gelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile char *turn; /* that the table is there; that the file is cut */
__attribute__((constructor)) static void share(void)
{
    int fd = getenv("TURN") ? open(getenv("TURN"), O_RDWR) : -1;
    turn = fd < 0 ? NULL : mmap(NULL, 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}
static void cut(const char *when)
{
    static int n;
    if (getenv(when) && ++n == atoi(getenv(when)) && truncate(getenv("CUT"), 4096))
        abort();
}
GElf_Shdr *gelf_getshdr(Elf_Scn *section, GElf_Shdr *to)
{
    GElf_Shdr *head = ((__typeof__(&gelf_getshdr))dlsym(RTLD_NEXT, "gelf_getshdr"))(section, to);
    if (turn && head && (head->sh_type == SHT_SYMTAB || head->sh_type == SHT_DYNSYM))
        for (turn[0] = 1; !turn[1];)
            ;
    return head;
}
ssize_t pread64(int fd, void *to, size_t n, off64_t at)
{
    cut("AT_READ");
    return ((__typeof__(&pread64))dlsym(RTLD_NEXT, "pread64"))(fd, to, n, at);
}
ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    return pread64(fd, to, n, at);
}
''')
subprocess.run(['cc', '-D_GNU_SOURCE', '-shared', '-fPIC', '-o', 'cut.so', 'cut.c', '-ldl'], check=True)
with open('many.c', 'w') as f:
    f.write(''.join(f'int function_{i}(void) {{ return {i}; }}\n' for i in range(3000)))


def cut(argv, path, **when):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE,
                       env=dict(os.environ, LD_PRELOAD=work + '/cut.so', CUT=path, **when))
    return r.returncode, r.stderr


subprocess.run(['cc', '-shared', '-fPIC', '-o', 'many.so', 'many.c'], check=True)
sleeper = start(['sleep', '1000'])
with open('turn', 'wb') as f:
    f.write(bytes(2))
with open('turn', 'r+b') as f:
    turn = mmap.mmap(f.fileno(), 2)
arm = start([STALLTRAP, 'arm', '--source', 'step', '-q', '-p', str(sleeper.pid), '--on', f'func:{work}/many.so!no_such>1ms', '--timeout', '1s'],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, LD_PRELOAD=work + '/cut.so', TURN=work + '/turn'))
while arm.poll() is None and not turn[0]:
    pass
os.truncate('many.so', 4096)
turn[1] = 1
err = arm.communicate(timeout=PATIENCE)[1]
check(arm.returncode in (1, 2, 3), 'a code file of a trigger: arm says that nothing is there', f'({arm.returncode}: {err})')
check('ended by signal' not in err, 'nobody died of it', f'({err})')
check(turn[0] or arm.returncode == 3, 'it was cut while it was read')

made = False
for n in 4, 8, 16, 32:
    if os.path.exists('t.db'):
        os.unlink('t.db')
    db = sqlite3.connect('t.db')
    with open(SOURCE + '/tracedb/schema.sql') as f:
        db.executescript(f.read())
    db.execute("INSERT INTO module(id, name, path, kernel) VALUES (1, 'm', '/m', 0)")
    db.executemany('INSERT INTO symbol(id, module_id, name, address, size) VALUES (?, 1, ?, ?, 1)', [(i, f'function {i}' * 9, i) for i in range(1, 20000)])
    db.executescript('PRAGMA application_id = 0x73746c74; PRAGMA user_version = 1')
    db.commit()
    db.close()
    for reader in ['query', 'SELECT count(*), max(name) FROM symbol'], ['report', 'top'], ['export', '--to', 'folded']:
        status, err = cut([STALLTRAP, reader[0], 't.db', *reader[1:]], work + '/t.db', AT_READ=str(n))
        made |= os.path.getsize('t.db') == 4096
        check(status in (0, 1), f'a database, at read {n}: {reader[0]} ends', f'({status}: {err})')
check(made, 'the database was cut while it was read')
finish()
