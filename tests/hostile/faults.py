"""Calls that fail: the Nth allocation, open, write, mmap, fork, perf_event_open, bpf of each command, one a run.

    faults.py [all] [SEED] [CASE[:KIND[:N]]]...

Without `all`: those that have found something, and one fault a command, of another kind each; the seed is 1 where none is given.

After each run: the command ended by itself, by no signal, with a documented status; a failure is told on standard error; a success
has the result of the run in which nothing fails; no half file and no process is left; the target runs on and has noticed nothing."""
import glob
import json
import random
import re
import signal
import sqlite3
import struct
import subprocess
import time

from hostile import *

KINDS = ['memory', 'open', 'write', 'mmap', 'fork', 'perf', 'bpf']
LIMIT = 90  # seconds, for a command that takes one

arguments = sys.argv[1:]
whole = arguments[:1] == ['all']
if whole:
    del arguments[0]
seed = int(arguments[0]) if arguments else random.SystemRandom().randrange(1 << 31) if whole else 1
chosen = arguments[1:]
dice = random.Random(seed)
print(f'seed {seed}', flush=True)
if not os.geteuid():
    own_network()

subprocess.run(['cc', '-O1', '-D_GNU_SOURCE', '-o', 'failing_calls', HERE + '/failing_calls.c'], check=True)
subprocess.run(['cc', '-O1', '-D_GNU_SOURCE', '-fno-builtin', '-shared', '-fPIC', '-o', 'failing_memory.so', HERE + '/failing_memory.c'], check=True)
waits = build('waits')
jit_target = build('jit_target')
library = work + '/failing_memory.so'


class Target:
    """Waits that fail with EINTR when somebody wakes them; one for all runs, until it is hurt."""

    def __init__(self):
        self.p = None

    def pid(self):
        if not self.p or self.p.poll() is not None:
            self.p = start_ready([waits, '20'])
            os.set_blocking(self.p.stdout.fileno(), False)
        return self.p.pid

    def status(self):
        return dict(line.split(':\t', 1) for line in open(f'/proc/{self.p.pid}/status').read().splitlines() if ':\t' in line)

    def hurt(self):
        """What happened to it, or None."""
        if not self.p:
            return None
        if self.p.poll() is not None:
            return f'the target is dead: {self.p.returncode}'
        if not until(lambda: self.status()['TracerPid'] == '0'):
            return 'the target is still traced'
        threads = [open(f).read() for f in glob.glob(f'/proc/{self.p.pid}/task/*/stat')]
        if any(t.rsplit(')', 1)[1].split()[0] in 'Tt' for t in threads):
            return 'the target is stopped'
        try:
            return 'the target: ' + os.read(self.p.stdout.fileno(), 4096).decode()
        except BlockingIOError:
            return None

    def end(self):
        """It ends as it would have without us."""
        if not self.p or self.p.poll() is not None:
            return None
        self.p.send_signal(signal.SIGTERM)
        status = self.p.wait(PATIENCE)
        return f'it ends with {status}' if status != 7 else None


class Run:
    """One run of a command, in which the Nth call of a kind fails (0: none)."""

    def __init__(self, case, kind, n):
        self.kind, self.n, self.fault, self.stays, self.beside = kind, n, '', False, 0
        argv = [STALLTRAP, *[str(a() if callable(a) else a) for a in case.argv]]
        env = dict(os.environ)
        if kind == 'memory':
            with open('memory', 'wb') as f:
                f.write(struct.pack('3q', 0, n, 0).ljust(4096, b'\0'))
            env.update(LD_PRELOAD=library, FAILING_MEMORY=work + '/memory')
            argv = ['timeout', '-s', 'KILL', str(LIMIT), *argv]
        else:
            argv = ['./failing_calls', 'report', kind, str(n), str(LIMIT), *argv]
        done = subprocess.run(argv, capture_output=True, env=env, stdin=subprocess.DEVNULL)
        self.out, self.err = done.stdout, done.stderr.decode(errors='replace')
        self.returned = done.returncode
        self.read_report()

    def read_report(self):
        if self.kind == 'memory':
            self.calls, _, pid = struct.unpack('3q', open('memory', 'rb').read(24))
            self.fault = 'an allocation' if pid else ''
            self.hangs = self.returned in (-9, 137)
            return
        text = open('report').read()
        self.calls = int(re.search(r'^calls (\d+)', text, re.M)[1])
        self.fault = (re.findall(r'^failed \d+: (.*)', text, re.M) or [''])[0]
        self.hangs = re.search(r'^hangs', text, re.M) is not None
        self.stays = re.search(r'^stays', text, re.M) is not None


class Case:
    """A command, and what of it is compared: `result` gives it for a run that has succeeded."""

    def __init__(self, name, *argv, result=None, statuses=(0, 1), beside=None):
        self.name, self.argv, self.result, self.statuses = name, argv, result, statuses
        self.beside = beside  # starts an arm that the command asks
        self.hurt = self.arm = None

    def run(self, kind, n):
        """With what is beside it, which is to go on, and end as it would have."""
        sweep(self)
        self.arm = self.beside() if self.beside else None
        run = Run(self, kind, n)
        if self.arm:
            run.beside = self.arm.end(signal.SIGTERM)
        return run

    def first(self, kind):
        """The calls of a run that meets no fault, and its result."""
        run = self.run(kind, 0)
        if run.returned != 0:
            raise SystemExit(f'FAILED: {self.name} ends with {run.returned} when nothing fails: {run.err}')
        self.good = self.result(run) if self.result else None
        return run.calls

    def judge(self, run):
        """What is wrong after a run."""
        if run.hangs:
            yield 'it hangs'
        elif run.returned < 0 or run.returned >= 128:
            yield f'it died of signal {-run.returned if run.returned < 0 else run.returned - 128}'
        elif '/ld-linux' in run.fault:
            pass  # the dynamic linker says what it likes
        elif run.returned not in self.statuses:
            yield f'it ends with {run.returned}'
        elif run.returned and not told(run):
            yield 'it failed and does not say of what'
        elif run.returned == 0 and self.result:
            got = self.result(run)
            if got != self.good and not told(run) and not listed(run):
                yield f'it succeeds with another result, and says nothing: {short(got)} for {short(self.good)}'
        if run.stays:
            yield 'a process of it stays'
        if run.beside not in (0, 4):  # 4: no snapshot was asked of it
            yield f'the arm that was asked ends with {run.beside}: {self.arm.text()[1]}'
        yield from left(self)
        self.hurt = target.hurt()
        if self.hurt:
            yield self.hurt


def short(what):
    return repr(what)[:200]


WORDS = {'memory': 'memory', 'open': 'Too many open files|open|read', 'write': 'No space left|write', 'mmap': 'memory|map', 'fork': 'unavailable|start|fork',
         'perf': 'Too many open files|perf_event|event', 'bpf': 'memory|BPF|bpf'}


def told(run):
    return re.search(WORDS[run.kind] + '|memory', run.err) is not None


def listed(run):
    """What is missing for a file that could not be opened has a gap that says so, in the listing or the database."""
    why = 'could not be opened: Too many open files'
    if why.encode() in run.out:
        return True
    for f in glob.glob('files/*.db'):
        with sqlite3.connect(f'file:{f}?mode=ro', uri=True) as db:
            if db.execute("SELECT count(*) FROM gaps WHERE detail LIKE ?", (f'%{why}%',)).fetchone()[0]:
                return True
    return False


def left(case):
    """Files that no command leaves."""
    for f in sorted(os.listdir('files')):
        if f.startswith('.'):
            yield f'files/{f} is left'
        elif f.endswith('.db') and not sound(f):
            yield f'files/{f} is half a database'
        elif os.path.isfile('files/' + f) and os.path.getsize('files/' + f) == 0:
            yield f'files/{f} is empty'
    if case.name.startswith('arm') and glob.glob('files/*.data'):
        for f in glob.glob('files/*.data'):
            if os.path.isfile(f) and subprocess.run([STALLTRAP, 'decode', f, '--stats'], capture_output=True).returncode:
                yield f'{f} cannot be read'


def sound(f):
    try:
        db = sqlite3.connect(f'file:files/{f}?mode=ro', uri=True)
        return db.execute('PRAGMA quick_check').fetchone()[0] == 'ok' and db.execute('SELECT count(*) FROM meta').fetchone()[0] > 0
    except sqlite3.Error:
        return False
    finally:
        db.close()


def sweep(case):
    shutil.rmtree('files', ignore_errors=True)
    os.mkdir('files')


# ---- the commands ----

def output(run):
    return run.out


def written(name):
    def content(run):
        return open('files/' + name, 'rb').read()
    return content


def rows(run):
    """How much of what was recorded stands in the database. Names that memory has no room for stay addresses."""
    if not os.path.exists('files/x.db'):
        return 'no database'
    db = sqlite3.connect('file:files/x.db?mode=ro', uri=True)
    try:
        return [db.execute(f'SELECT count(*) FROM {t}').fetchone()[0] for t in ('call', 'module', 'thread', 'slice', 'offcpu', 'stack', 'gap')]
    finally:
        db.close()


def places(run):
    """Of each branch that is listed all but the symbol."""
    return [line.rsplit(b' ', 1)[0] for line in run.out.splitlines()]


def snapshot(run):
    return sorted(os.listdir('files'))


def whole_metrics(run):
    return open('files/metrics').read().endswith('# EOF\n')


def findings(run):
    """What doctor looks at. What it cannot look at is its own finding."""
    return [f['key'] for f in json.loads(run.out)['findings']]


def labels(run):
    return len(run.out.splitlines()) > 5


def waiting_arm():
    return Arm('--source', 'sample', '-q', '--no-decode', '--ring', '64K', '-o', 'files/x', '-p', target.pid())


def cases():
    step = ['arm', '--source', 'step', '-q', '-o', 'files/x', '--ring', '64K', '-p', target.pid]
    sample = ['arm', '--source', 'sample', '-q', '-o', 'files/x', '--ring', '64K', '-p', target.pid]
    wait = ['--on', 'offcpu>2ms,idle=yes', '--timeout', '20s']
    yield Case('query', 'query', 'good.db', 'SELECT thread, percentile(duration_ns, 99), histogram(self_ns) FROM calls GROUP BY 1', result=output)
    yield Case('query csv', 'query', 'good.db', 'SELECT * FROM functions', '--format', 'csv', result=output)
    yield Case('query json', 'query', 'good.db', 'SELECT * FROM functions', '--format', 'json', result=output)
    for name in 'why', 'tree', 'top', 'stalls', 'parts', 'gaps':
        yield Case('report ' + name, 'report', 'good.db', *([] if name == 'why' else [name]), result=output)
    yield Case('report compare', 'report', 'good.db', 'compare', 'other.db', result=output)
    yield Case('view', 'view', 'good.db', '--screen', '-', '--ascii', '--keys', 't<Enter>+s/a<Enter>n', result=output)
    for to in 'perfetto', 'chrome', 'folded', 'speedscope', 'svg', 'html':
        yield Case('export ' + to, 'export', 'good.db', '--to', to, result=output)
        yield Case(f'export {to} -o', 'export', 'good.db', '--to', to, '-o', 'files/out', result=written('out'))
    yield Case('decode step', 'decode', '-f', 'good.data', '-o', 'files/x.db', result=rows)
    yield Case('decode sample', 'decode', '-f', 'other.data', '-o', 'files/x.db', result=rows)
    yield Case('decode inlined', 'decode', '-f', '--inlined', 'good.data', '-o', 'files/x.db', result=rows)
    yield Case('decode stats', 'decode', 'good.data', '--stats')
    yield Case('decode dump', 'decode', 'good.data', '--dump', 'calls', result=places)
    yield Case('doctor', 'doctor', result=labels)
    yield Case('doctor json', 'doctor', '--json', result=findings)
    yield Case('snap', 'snap', target.pid, result=snapshot, beside=waiting_arm)
    yield Case('arm step', *step, '--no-decode', '--timeout', '100ms', result=snapshot, statuses=(0, 1, 3))
    yield Case('arm sample', *sample, '--no-decode', '--timeout', '100ms', result=snapshot, statuses=(0, 1, 3))
    if os.geteuid():
        return
    yield Case('watch', 'watch', '-q', '--on', 'offcpu>1ms', '--timeout', '100ms', '-p', target.pid, statuses=(0, 1, 3))
    yield Case('arm step offcpu', *step, *wait, result=snapshot, statuses=(0, 1, 3, 4))
    yield Case('arm sample offcpu', *sample, *wait, result=snapshot, statuses=(0, 1, 3, 4))
    short = ['--no-decode', '--timeout', '100ms', '--at-end', 'snapshot']
    yield Case('arm sample func', *sample, '--on', 'func:taker>1s', *short, statuses=(0, 1, 3, 4))
    for name, source in ('sample', sample), ('step', step):
        yield Case(f'arm {name} usdt', *source, '--on', f'usdt:{waits}:st_test:beat,if=arg0==-1', *short, statuses=(0, 1, 3, 4))
    metrics = ['--on', 'offcpu>100s', *short, '--prometheus']
    yield Case('arm prometheus file', *sample, *metrics, 'files/metrics', result=whole_metrics, statuses=(0, 1, 3, 4))
    yield Case('arm prometheus port', *sample, *metrics, '9100', result=snapshot, statuses=(0, 1, 3, 4))


def prepare():
    """Two recordings, and their databases."""
    for name, source, command in ('good', 'step', [jit_target, '1']), ('other', 'sample', ['/bin/true']):
        r = subprocess.run([STALLTRAP, 'arm', '--source', source, '-q', '-o', name, '--', *command], capture_output=True, text=True)
        if r.returncode == 3:
            skip(f'no {source} source: {r.stderr}')
        for end in 'data', 'db':
            os.rename(f'{name}.1.{end}', f'{name}.{end}')


def one(case, kind, n):
    """Whether a run with that fault went well."""
    target.pid()
    run = case.run(kind, n)
    bad = list(case.judge(run))
    for what in bad:
        check(False, f'{case.name}:{kind}:{n} ({run.fault}): {what}', f'(status {run.returned}: {run.err[-300:]!r})')
    if case.hurt:  # the next run has a new one
        target.p.kill()
        target.p.wait()
    return not bad


loader = {}  # how many calls of each kind come before main()


def numbers(case, kind):
    """The N of all calls that the command makes."""
    if kind not in loader:
        loader[kind] = Run(Case('loader', '--version'), kind, 0).calls
    return range(loader[kind] + 1, case.first(kind) + 1)


# What has found a fault. Two threads hand a byte to each other to measure a switch, and each waits for the other: the Nth of many writes.
# Folders of sockets that cannot be looked through: each call (None).
KEPT = ('arm sample', 'write', 1000), ('arm sample', 'write', 1001), ('snap', 'memory', None), ('snap', 'open', None)


def sample(todo):
    """What has found something, and one fault of each command, each of another kind than the one before."""
    known = {case.name: case for case in todo}
    for name, kind, n in KEPT:
        if name in known:
            known[name].first(kind)
            for n in [n] if n else numbers(known[name], kind):
                one(known[name], kind, n)
    runs = 0
    for i, case in enumerate(todo):
        kind, every = next(((k, e) for k in KINDS[i % len(KINDS):] + KINDS if (e := numbers(case, k))), (None, None))
        if kind:
            one(case, kind, dice.choice(every))
            runs += 1
    return runs


def each(case, kind, given):
    """Every call, or for as long as FAULTS_EACH seconds."""
    end = time.monotonic() + float(os.environ.get('FAULTS_EACH', 'inf'))
    every = [int(given)] if given else list(numbers(case, kind))
    good = runs = 0
    if given:
        case.first(kind)
    dice.shuffle(every)
    for n in every:
        if time.monotonic() > end:
            break
        good += one(case, kind, n)
        runs += 1
    print(f'{case.name}: {kind}: {good} of {runs} of {len(every)} good', flush=True)
    return runs


target = Target()
prepare()
if chosen:
    for word in chosen:
        name, kind, n = (word.split(':') + ['', ''])[:3]
        for case in cases():
            if case.name == name:
                for k in [kind] if kind else KINDS:
                    each(case, k, n)
elif whole:
    for case in cases():
        for kind in KINDS:
            each(case, kind, None)
else:
    # Those of step take seconds each, and a rare one ends a wait of the target with EINTR (docs/security.md).
    runs = sample([case for case in cases() if not case.name.startswith('arm step')])
    check(runs > 0, f'{runs} faults')
hurt = target.end()
check(not hurt, "the target's waits", hurt)
finish()
