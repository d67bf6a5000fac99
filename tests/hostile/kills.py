"""SIGKILL of each process of arm's tree in each phase of arm's life, with each source, with and without a uprobe: the target goes on as before,
and nothing is left of arm: processes, stops, BPF objects, breakpoints in the target; sockets and half-written files go with the next arm.

    kills.py [MOMENTS] [SEED]

Each process in each phase is hit once with each source; then again in turn until there were so many MOMENTS. What is to be killed is made to stand
still first: so it is known that it was alive, and what arm was about. Who was never hit fails."""
import collections
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import tree
from hostile import *
from tree import read

own_run_folder()
MOMENTS = int(sys.argv[1]) if sys.argv[1:] else 0
SEED = int(sys.argv[2]) if sys.argv[2:] else 1
TRIES = 40
SOURCES = ['sample', 'step'] + (['intel-pt'] if os.path.isdir('/sys/bus/event_source/devices/intel_pt') else [])

# Who; how it is found; in which phases of arm it lives; with which sources; what arm says of its death (in a message or in a gap).
KINDS = {
    'arm': (lambda arm: arm, tree.PHASES, SOURCES, None),
    'step helper': (tree.helper, tree.PHASES[:4], ['step'], r'helper|step'),
    'reader of names': (tree.reader, ['snapshot'], SOURCES, r'names of code made at run time could not be read'),
    'decode': (tree.supervisor, ['decoding'], SOURCES, r'signal 9|killed|not decoded|could not be decoded'),
    'worker': (tree.worker, ['decoding'], SOURCES, r'signal 9'),
    'reader of lines': (tree.lines, ['decoding'], SOURCES, None),
    'action': (tree.action, ['action'], SOURCES, r'signal 9|[Kk]illed'),
    "action's process": (tree.action_process, ['action'], SOURCES, r'137'),
    'command': (tree.command, ['armed'], SOURCES, None),
}
random.seed(SEED)
target_path = build('kill_target')
nap = next(int(l.split()[0], 16) for l in subprocess.check_output(['nm', target_path], text=True).splitlines() if l.endswith(' T nap'))
hits, deaths, missed, named = collections.Counter(), collections.Counter(), collections.Counter(), []


def target():
    """With so many names for its code that they take a while to read."""
    t = start_ready([target_path])
    page = next(int(l.split('-')[0], 16) for l in read(f'/proc/{t.pid}/maps').splitlines() if ' rwxp ' in l)
    named.append(f'/tmp/perf-{t.pid}.map')
    with open(named[-1], 'w') as f:
        f.writelines(f'{page + i % 4096:x} 1 {"n" * 60}{i}\n' for i in range(200000))
    return t


def free(t):
    """None of its threads is traced or stopped."""
    text = ''.join(read(f) for f in glob.glob(f'/proc/{t.pid}/task/*/status'))
    return not re.search(r'^TracerPid:\s*[1-9]|^State:\s*[tT]', text, re.M)


def breakpoint_in(t):
    with open(f'/proc/{t.pid}/mem', 'rb', buffering=0) as f:
        f.seek(nap)
        return f.read(1) == b'\xcc'


class Moment:
    """One kill: of whom, in which phase, and of what kind of arm."""

    def __init__(self, whom, phase, source, uprobe):
        self.whom, self.phase, self.source, self.uprobe = whom, phase, source, uprobe
        self.find = KINDS[whom][0]
        self.objects, self.tree = set(), []

    def __str__(self):
        return f'{self.whom}, {self.phase}, {self.source}{", uprobe" if self.uprobe else ""}'

    def start(self, t):
        fires = self.phase in tree.PHASES[2:]
        limit = '1ms' if fires else '100s'
        function = f'func:{target_path}!nap' if self.whom == 'command' else 'func:nap'
        acts = self.phase == 'action' or random.random() < 0.3
        return Arm('--source', self.source, '-q', '-o', 'k', '--snapshots', '0', '--cooldown', '10ms', '--ring', '256K', '--keep-free', '0',
                   '--on', f'{function}>{limit}' if self.uprobe else f'offcpu>{limit},idle=yes',
                   *(['--then', 'sleep 0.2; exit $?'] if acts else []), *(['--', target_path] if self.whom == 'command' else ['-p', t.pid]),
                   ready='later')

    def may_be(self, arm):
        """A look without a stop, which costs little."""
        return self.find(arm.pid) and (self.phase == 'arming' or self.phase in tree.phases(arm))

    def strike(self, arm):
        """Whether the victim was killed while it lived, in that phase."""
        if not until(lambda: self.may_be(arm) or arm.p.poll() is not None) or arm.p.poll() is not None:
            return False
        time.sleep(random.choice([0, random.uniform(0, 0.02), random.uniform(0, 0.3)]) if self.phase in ('arming', 'armed') else
                   random.choice([0, 0, random.uniform(0, 0.01)]))
        if not tree.freeze(arm.pid):
            return False
        pid = self.find(arm.pid)
        good = bool(pid) and (pid == arm.pid or tree.freeze(pid)) and self.find(arm.pid) == pid and self.phase in tree.phases(arm)
        if good:
            self.objects, self.tree = tree.held_by(arm.pid), tree.descendants(arm.pid)
            os.kill(pid, signal.SIGKILL)
        elif pid:
            tree.thaw(pid)
        tree.thaw(arm.pid)
        return good

    def hit(self, t):
        """The arm of which a process was killed; None: it was always too late."""
        for _ in range(TRIES):
            arm = self.start(t)
            for _ in range(TRIES if self.phase != 'arming' else 1):
                if self.strike(arm):
                    return arm
                missed[self.whom, self.phase] += 1
                if arm.p.poll() is not None:
                    break
            arm.end(signal.SIGKILL)
            until(lambda: free(t) or t.poll() is not None)
        return None


def said(arm):
    """Its messages, and what is missing in its databases. Beside a busy machine decoding may take for ever: what it has left is decoded here."""
    text = ''.join(arm.text())
    for f in glob.glob('k.*.data') if arm.p.poll() is not None else []:
        if not os.path.exists(f[:-4] + 'db'):
            subprocess.run([STALLTRAP, 'decode', f, '-o', f[:-4] + 'db'], capture_output=True)
    for f in glob.glob('k.*.db'):
        text += subprocess.run([STALLTRAP, 'query', f, 'SELECT detail FROM gaps', '--format', 'csv'], capture_output=True, text=True).stdout
    return text


def ends_well(m, arm):
    """What is wrong with arm's own end."""
    words = KINDS[m.whom][3]
    if m.whom == 'arm':
        if arm.end() != -signal.SIGKILL:
            yield f'arm was not killed: {arm.p.returncode}'
        return
    if m.whom in ('step helper', 'command'):
        if arm.end() not in (0, 1, 4):
            yield f'arm does not end well: {arm.p.returncode}'
    else:
        in_file = m.whom == 'reader of names'
        until(lambda: arm.p.poll() is not None or not words or (glob.glob('k.*.data') if in_file else re.search(words, said(arm))))
        if arm.p.poll() is not None:
            yield f'arm ended with {arm.p.returncode}'
        elif arm.end(signal.SIGTERM) != 0:
            yield f'arm does not end well: {arm.p.returncode}'
    if words and not re.search(words, said(arm)):
        yield 'it is not said'


def after(m, arm, t, before):
    """What is wrong after a kill."""
    yield from ends_well(m, arm)
    if not until(lambda: not [p for p in m.tree if tree.running(p)]):
        yield f'processes are left: {[tree.words(p) for p in m.tree if tree.running(p)]}'
    if not until(lambda: not tree.bpf_left(before)):
        yield f'BPF objects are left: {tree.bpf_left(before)}'
    if t.poll() is None and not until(lambda: t.poll() is not None or free(t)):
        yield 'threads of the target are stopped or traced'
    if t.poll() is None and breakpoint_in(t):
        yield 'a breakpoint stays in the target'
    if m.phase != 'arming' and not m.objects:
        yield 'no BPF objects were seen: nothing was tested'
    yield from half(m)


def half(m):
    """Files under a name are whole; only SIGKILL of arm, or of who writes the database, may leave others."""
    for f in glob.glob('k.*.data'):
        if subprocess.run([STALLTRAP, 'decode', f, '--stats'], capture_output=True).returncode:
            yield f'{f} cannot be read'
    if m.whom not in ('arm', 'decode') and glob.glob('.k.*'):
        yield f'half-written files are left: {glob.glob(".k.*")}'


def swept(pid):
    """What the arm that was killed left goes with the next one."""
    arm = Arm('--source', 'sample', '-q', '-o', 'k', '--no-decode', '--', '/bin/true', ready=False)
    arm.end()
    if os.path.exists(f'/run/stalltrap/{pid}.sock'):
        yield 'its socket is left after the next arm'
    if glob.glob('.k*'):
        yield f'half-written files are left after the next arm: {glob.glob(".k*")}'
    if work in read('/sys/kernel/tracing/uprobe_events'):
        yield 'a uprobe is left in tracefs'


def one(m, t):
    """Returns whether it was hit, and what is wrong afterwards."""
    before = tree.bpf_lists()
    arm = m.hit(t)
    if not arm:
        return False, []
    hits[m.whom, m.phase, m.source] += 1
    wrong = list(after(m, arm, t, before))
    if m.whom == 'step helper':
        deaths[t.poll()] += 1
    elif t.poll() is not None:
        wrong.append(f'the target has ended with {t.returncode}')
    text = arm.text()[1][-600:]
    if m.whom in ('arm', 'decode'):
        wrong += swept(arm.pid)
    return True, [f'{w}\n{text}' for w in wrong]


def clear():
    for f in glob.glob('k.*') + glob.glob('.k.*'):
        shutil.rmtree(f) if os.path.isdir(f) else os.unlink(f)


def moments():
    """Each of them once, then in turn until there were enough."""
    rows = [(whom, phase, source) for whom, (_, phases, sources, _) in KINDS.items() for phase in phases for source in sources]
    for i in range(max(MOMENTS, len(rows))):
        yield Moment(*rows[i % len(rows)], uprobe=(i % 2 == 0) if i < len(rows) else random.random() < 0.5)


t = target()
for i, m in enumerate(moments()):
    was_hit, wrong = one(m, t)
    if wrong:
        check(False, f'{i}: {m}', '; '.join(wrong))
    if t.poll() is not None:
        t = target()
    clear()

print(f'seed {SEED}; hits of who was alive:')
for (whom, (_, phases, sources, _)), phase in ((k, p) for k in KINDS.items() for p in k[1][1]):
    print(f'  {whom}, {phase}:', ', '.join(f'{hits[whom, phase, s]} {s}' for s in sources), f'({missed[whom, phase]} came too late)')
    check(all(hits[whom, phase, s] for s in sources), f'{whom}, {phase}: was hit')
print(f'the step helper was killed {sum(deaths.values())} times; the target then: {deaths.pop(None, 0)} times alive, ended by {dict(deaths)}')
check(not [d for d in deaths if d != -signal.SIGTRAP], 'nothing but the trap that was under way ends a target whose stepping helper is killed')
t.send_signal(signal.SIGTERM)
check(t.wait(PATIENCE) == 7, 'the target ends as it would have', t.returncode)
for f in named:
    os.unlink(f)
finish()
