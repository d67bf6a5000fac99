"""Databases with NULL for names, text for times, views for tables and endless views: every reader ends, soon, and none dies of them."""
import os
import pty
import resource
import shutil
import sqlite3
import subprocess

from hostile import *

r = subprocess.run([STALLTRAP, 'arm', '--source', 'step', '-q', '-o', 'good', '--', build('jit_target'), '1'], capture_output=True, text=True)
if r.returncode == 3:
    skip('no ptrace')
if not os.path.exists('good.1.db'):
    raise SystemExit(f'FAILED: no database: {r}')

ENDLESS = 'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)'
READERS = [['report'], ['report', 'top'], ['report', 'latency', 'zzz'], ['view', '--screen', '-'], ['export', '--to', 'folded'],
           ['query', 'SELECT max(name), count(*) FROM symbol']]


def made(name, *sql):
    shutil.copy('good.1.db', name)
    db = sqlite3.connect(name, isolation_level=None)
    db.execute('PRAGMA legacy_alter_table = ON')
    for s in sql:
        db.execute(s)
    db.close()
    return name


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def read(name, reader):
    """Its exit status, or why it has none."""
    try:
        r = subprocess.run([STALLTRAP, reader[0], name, *reader[1:]], capture_output=True, text=True, timeout=PATIENCE, preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return 'no end', ''
    return r.returncode, r.stderr


def each(name, expected, what, readers=READERS):
    for reader in readers:
        status, text = read(name, reader)
        check(status in expected, f'{what}: {" ".join(reader)}', f'({status}: {text[-200:]})')


each('good.1.db', (0, 1), 'a good one')

# Columns without their constraints.
loose = made('null.db', 'CREATE TABLE s2(id INTEGER PRIMARY KEY, module_id, name, address, size)',
             'INSERT INTO s2 SELECT id, module_id, NULL, address, size FROM symbol', 'DROP TABLE symbol', 'ALTER TABLE s2 RENAME TO symbol')
each(loose, (0, 1), 'names that are NULL')

loose = made('text.db', "INSERT INTO mark(id, name, time_ns) VALUES (900001, 'm', 'a text')")
each(loose, (0, 1), 'a time that is text')

# `view` on a terminal draws, and ends at a key.
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm'
    os.execv(STALLTRAP, ['stalltrap', 'view', 'text.db'])
drawn = b''
os.set_blocking(fd, False)


def more():
    global drawn
    try:
        drawn += os.read(fd, 65536)
    except (BlockingIOError, OSError):
        pass
    return len(drawn) > 500


check(until(more), 'a time that is text: view draws', len(drawn))
os.write(fd, b'q')
check(until(lambda: more() and os.waitpid(pid, os.WNOHANG)[0]), 'and ends')

# Views in place of tables, and columns that are computed.
each(made('loop.db', 'ALTER TABLE symbol RENAME TO symbol0',
          f"CREATE VIEW symbol AS {ENDLESS} SELECT n AS id, 1 AS module_id, 'f' AS name, 0 AS address, 0 AS size FROM r"), (1,),
     'an endless view for a table', READERS[:4:3])
each(made('bomb.db', 'ALTER TABLE symbol RENAME TO symbol0',
          'CREATE VIEW symbol AS SELECT id, module_id, hex(zeroblob(400000000)) AS name, address, size FROM symbol0'), (1,),
     'a view of gigabytes for a table', READERS[:4:3])
each(made('computed.db', 'ALTER TABLE symbol RENAME TO symbol0',
          'CREATE TABLE symbol(id INTEGER PRIMARY KEY, module_id, name AS (hex(zeroblob(400000000))), address, size)',
          'INSERT INTO symbol(id, module_id, address, size) SELECT id, module_id, address, size FROM symbol0'), (1,), 'a computed column', READERS[1:2])

# Our own views, made otherwise.
name = made('views.db', 'DROP VIEW calls', f'CREATE VIEW calls AS {ENDLESS} SELECT n AS id, 0 AS thread_id FROM r')
status, text = read(name, ['query', 'SELECT count(*), max(depth) FROM calls'])
check(status == 0, 'a view of ours made endless is not used', f'({status}: {text[-200:]})')

# In WAL mode.
name = made('wal.db', 'PRAGMA journal_mode = WAL')
for f in 'wal.db-wal', 'wal.db-shm':
    if os.path.exists(f):
        os.unlink(f)
status, text = read(name, ['report', 'top'])
check(status == 0 and not os.path.exists('wal.db-wal') and not os.path.exists('wal.db-shm'), 'one in WAL mode: read, and nothing is put beside it',
      f'({status}: {text})')
finish()
