"""The processes of an arm's tree, what they hold in the kernel, and in which phase the arm is: for kills.py."""
import glob
import json
import os
import re
import signal
import subprocess

from hostile import until

PHASES = ['arming', 'armed', 'snapshot', 'decoding', 'action']
LISTS = 'prog', 'map', 'link'  # of bpftool


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ''


def children(pid):
    return [int(c) for t in glob.glob(f'/proc/{pid}/task/*/children') for c in read(t).split()]


def descendants(pid):
    found = children(pid)
    for c in list(found):
        found += descendants(c)
    return found


def words(pid):
    return read(f'/proc/{pid}/cmdline').split('\0')


def state(pid):
    found = re.search(r'\) (\S)', read(f'/proc/{pid}/stat'))
    return found[1] if found else 'X'


def running(pid):
    return state(pid) not in 'ZX'


def child_with(pid, is_one):
    return next((c for c in children(pid) if is_one(c)), None) if pid else None


# ---- who is who; each: the pid, or None while there is none ----

def helper(arm):
    return child_with(arm, lambda c: read(f'/proc/{c}/comm').strip() == 'stalltrap-step')


def reader(arm):
    """It has arm's words, as the others have until they start their program; and a filter, as none of them has."""
    return child_with(arm, lambda c: words(c)[1:2] == ['arm'] and 'Seccomp:\t2' in read(f'/proc/{c}/status'))


def supervisor(arm):
    return child_with(arm, lambda c: words(c)[1:2] == ['decode'])


def worker(arm):
    return child_with(supervisor(arm), lambda c: words(c)[1:2] == ['decode-worker'])


def lines(arm):
    return child_with(worker(arm), lambda c: True)


def action(arm):
    return child_with(arm, lambda c: words(c)[0] in ('sh', '/bin/sh'))


def action_process(arm):
    return child_with(action(arm), lambda c: words(c)[0] == 'sleep')


def command(arm):
    return child_with(arm, lambda c: words(c)[0].endswith('/kill_target'))


def phases(arm):
    """Of an Arm that stands still, what it is about: a snapshot may be written while another one is decoded."""
    if not arm.armed():
        return {'arming'}
    found = set()
    if reader(arm.pid) or glob.glob('.k.*.data.*'):
        found.add('snapshot')
    if supervisor(arm.pid):
        found.add('decoding')
    if action(arm.pid):
        found.add('action')
    return found or {'armed'}


def freeze(pid):
    """Whether it stands still; else it has ended."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    until(lambda: state(pid) in 'TtZX')
    return state(pid) in 'Tt'


def thaw(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


# ---- BPF ----

def held_by(pid):
    """BPF objects that a process holds by a descriptor."""
    found = set()
    for f in glob.glob(f'/proc/{pid}/fdinfo/*'):
        found |= {(kind, int(n)) for kind, n in re.findall(r'^(prog|map|link)_id:\s*(\d+)', read(f), re.M)}
    return found


def bpf_lists():
    """{(kind, id): ids of the maps that it keeps}"""
    found = {}
    for kind in LISTS:
        done = subprocess.run(['bpftool', kind, 'list', '-j'], capture_output=True, text=True)
        for o in json.loads(done.stdout or '[]'):
            found[kind, o['id']] = {('map', m) for m in o.get('map_ids', [])} | ({('prog', o['prog_id'])} if 'prog_id' in o else set())
    return found


def bpf_left(before):
    """What was not there before, and nobody holds who is alive: other programs' objects come and go too."""
    now = bpf_lists()
    new = set(now) - set(before)
    if not new:
        return set()
    kept = set().union(*(held_by(p) for p in os.listdir('/proc') if p.isdigit()))
    for kind in 'link', 'prog':
        kept |= set().union(*(now.get(o, set()) for o in kept if o[0] == kind))
    return new - kept
