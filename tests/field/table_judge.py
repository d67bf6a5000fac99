"""What of a report is true: a table of the causes, with what its line of the cause must say, whom or what it must name, and what must not be
said. What is not known is never false; what is said must be so."""
import collections
import re

from told import MS

# The `cause` line: a pattern of what is right, what it must name, what the largest part must be, and the system calls that the thread may
# have been in (None: any). WAKER: who may have ended it.
Rule = collections.namedtuple("Rule", "right names part calls waker")
WAITING, RUNNING, READY = r"waiting", r"running", r"ready to run"
IO = r"fsync|fdatasync|write|pwrite64|sync_file_range|openat|close|msync"
WAITS_FOR_WORK = ("epoll_wait", "epoll_pwait", "poll", "ppoll", "select", "pselect6", "accept4", "accept", "clock_nanosleep", "nanosleep", "futex",
                  "wait4", "waitid", "flock", "fcntl", "recvfrom", "read", "fsync", "fdatasync", "semop")
ANY_WAKER = r".*"
RULES = {
    "sleep": Rule(r"own time-out", r"nanosleep|futex|epoll_wait|wait4", WAITING, r"(clock_)?nanosleep", r"its own time-out.*"),
    "child": Rule(r"(waited for (a|another) (child|process|thread))|slow child", r"sleep|wait4|waitid|child", WAITING, r"wait4|waitid|epoll_(p)?wait|read|poll|ppoll", ANY_WAKER),
    "compute": Rule(r"computing", r"\S+\(\)|\[\S+\+0x", RUNNING, None, ANY_WAKER),
    "stopped": Rule(r"stopped", r'SIGSTOP from thread \d+ "python3"', WAITING, None, r'thread \d+ "python3".*'),
    "frozen": Rule(r"frozen", r"freezer|thread \d+|frozen", WAITING, None, ANY_WAKER),
    "unread": Rule(r"stopped", r'SIGSTOP from thread \d+ "python3"', WAITING, None, ANY_WAKER),
    "runq": Rule(r"CPU taken by other work", r'"cpu-hog"', READY, None, ANY_WAKER),
    "throttled": Rule(r"cgroup CPU throttling", r"stalltrap-field|1.00 ms of CPU time|every 330 ms|330 ms", READY, None, ANY_WAKER),
    "lock": Rule(r"lock contention", r'thread \d+ "(holder|python3|java|server)"', WAITING, r"futex", r'thread \d+ .*'),
    "flock": Rule(r"lock contention", r"lock of the file \S*flock", WAITING, r"flock|fcntl|futex", r'thread \d+ .*'),
    "row lock": Rule(r"database lock|lock contention", r"process \d+|thread \d+", WAITING, r"epoll_wait|futex", r"thread \d+ .*"),
    "table lock": Rule(r"database lock|lock contention", r"process \d+|thread \d+", WAITING, r"epoll_wait|futex", r"thread \d+ .*"),
    "peer": Rule(r"slow peer", r"127\.0\.0\.1:PEER", WAITING, r"recvfrom|recvmsg|read|epoll_wait|epoll_pwait|poll|ppoll|futex|splice", ANY_WAKER),
    "disk": Rule(r"disk write", r"(file|of) \S*/disk/|\S*/disk/\S+", WAITING, IO, ANY_WAKER),
    "log pipe": Rule(r"slow reader of a pipe|log write", r"pipe|python3", WAITING, r"write|writev", ANY_WAKER),
}
# Where a program's own way is another one than most have.
OWN = {
    ("postgres", "sleep"): r"epoll_wait",
    ("mariadb", "sleep"): r"futex",
    ("java", "sleep"): r"futex",
    ("node", "sleep"): r"futex",
}
# True of each wait that has ended so, and no cause yet.
GENERAL = r"not known|usually idle|waited for another thread"
LENGTH = r"([\d.,]+) (ns|us|ms|s)"
UNITS = {"ns": 1, "us": 1000, "ms": MS, "s": 1000 * MS}


def rule_of(program, cause):
    rule = RULES[cause]
    return rule._replace(calls=OWN[program, cause]) if (program, cause) in OWN else rule


def length(text):
    number, unit = re.match(LENGTH, text).groups()
    return float(number.replace(",", "")) * UNITS[unit]


def field(report, name):
    found = re.search(rf"^  {name} +(.*)$", report, re.M)
    return found[1] if found else ""


def parts(report):
    """The rows of "where the time went": ns, text. The last one may be of many short ones."""
    return [(length(one[1]), one[4]) for one in re.finditer(rf"^ +({LENGTH}) +(?:[\d.]+ %|  )  +(\S.*|\d+ others: .*)$", report, re.M)]


def cause_of(report, rule):
    """right, unknown or wrong."""
    cause = field(report, "cause")
    if re.match(rule.right, cause):
        return "right"
    return "unknown" if not cause or re.match(GENERAL if rule.part == WAITING else "not known", cause) else "wrong"


def named(report, rule, peer):
    return bool(re.search(rule.names.replace("PEER", str(peer)), field(report, "cause")))


def calls_said(report):
    """The system calls that it says the thread was in, of the parts that are a third or more, and of the cause."""
    rows = parts(report)
    whole = sum(ns for ns, _ in rows) or 1
    texts = [text for ns, text in rows if ns * 3 >= whole] + [field(report, "cause"), field(report, "where")]
    for text in texts:
        yield from re.findall(r"\bin ([a-z_0-9]+)\b(?!\()", text)
        yield from (name for name in re.findall(r"\bat ([a-z_0-9]+)\b", text) if name in WAITS_FOR_WORK)
        yield from re.findall(r"system call ([a-z_0-9]+)", text)


def false_calls(report, rule):
    known = [name for name in calls_said(report) if name in WAITS_FOR_WORK]
    return sorted({f"it was not in {name}" for name in known if rule.calls and not re.fullmatch(rule.calls, name)})


def false_state(report, rule):
    where, woken = field(report, "where"), field(report, "woken by")
    if rule.part == WAITING and ("runnable" in where or "nobody" in woken):
        yield f"it waited: where '{where}', woken by '{woken}'"
    if rule.part == RUNNING and re.match(r"sleeping|blocked|stopped|system call", where):
        yield f"it computed: where '{where}'"
    largest = max(parts(report), default=(0, ""))
    whole = sum(ns for ns, _ in parts(report))
    if largest[0] * 2 > whole and not re.match(f"{rule.part}|not known", largest[1]):
        yield f"most of it was no '{rule.part}': '{largest[1]}'"


def false_waker(report, rule):
    woken = field(report, "woken by")
    if woken and rule.part == WAITING and not re.fullmatch(rf"(?:{rule.waker}|(who|what) .*not known.*|not known.*)", woken):
        yield f"woken by '{woken}'"


def false_sum(report, duration):
    """Each number has three digits, so each part may be half of its last digit off."""
    rows = parts(report)
    if rows and abs(sum(ns for ns, _ in rows) - duration) > MS + 0.5 * MS * len(rows):
        yield f"the parts are {sum(ns for ns, _ in rows) / MS:.1f} ms, and the stall is {duration / MS:.1f} ms"


def false_lengths(report, longest):
    """No length in the cause may be longer than the stall was."""
    for one in re.finditer(rf"(?:waited|slept|for|after) ({LENGTH})", field(report, "cause")):
        if length(one[1]) > longest * 1.05 + MS:
            yield f"'{one[0]}', and it was {longest / MS:.1f} ms"


def false_hog(report, rule, longest):
    """The hog had the CPU all the time."""
    for one in re.finditer(rf'"cpu-hog"[^;]*? for ({LENGTH})', report):
        if rule.part == READY and length(one[1]) * 2 < longest:
            yield f"'{one[0]}', and the wait was {longest / MS:.1f} ms"


def false_statements(report, rule, stall, longest):
    yield from false_calls(report, rule)
    yield from false_state(report, rule)
    yield from false_waker(report, rule)
    yield from false_sum(report, int(stall["duration"]))
    yield from false_lengths(report, longest)
    yield from false_hog(report, rule, longest)


def right_length(stall, truth):
    if stall["goes_on"] != "0":
        return False
    least, most, duration = truth.least, truth.most, int(stall["duration"])
    return least - least * 0.05 - MS <= duration <= most + most * 0.05 + MS
