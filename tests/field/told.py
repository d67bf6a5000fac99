"""What a trace tells of the stall that fired, and whether its times are those of a stall that was made. Shared by check.py and table.py."""
import csv
import io
import subprocess

MS = 1_000_000
STALL = """SELECT s.kind, s.tid, s.thread, s.start_ns + o.value + w.value AS start, s.duration_ns AS duration, s.end_ns IS NULL AS goes_on,
    coalesce(s.state, '') AS state, coalesce(s.syscall, '') AS syscall, coalesce(s.waker, '') AS waker, s.id, s.start_ns AS at
    FROM stalls s, meta m, meta o, meta w
    WHERE m.key = 'trigger_stall_id' AND s.id = m.value AND o.key = 'origin_perf_ns' AND w.key = 'wall_offset_ns'"""
# The stack that the trigger took, and the calls that were open in the middle of the stall.
PLACE = """SELECT y.name FROM stall s JOIN stack k ON k.id = s.user_stack_id JOIN symbol y ON y.id = k.symbol_id WHERE s.id = {id}
    UNION ALL SELECT c.function FROM calls c, stall s WHERE s.id = {id} AND c.thread_id = s.thread_id
    AND c.start_ns <= s.start_ns + {duration} / 2 AND c.end_ns >= s.start_ns + {duration} / 2"""


def query(stalltrap, db, sql):
    out = subprocess.run([stalltrap, "query", db, sql, "--format", "csv"], check=True, capture_output=True, text=True)
    return list(csv.DictReader(io.StringIO(out.stdout)))


def fired(stalltrap, db):
    """The stall that fired; its start is wall-clock time."""
    rows = query(stalltrap, db, STALL)
    if len(rows) != 1:
        raise ValueError(f"{len(rows)} stalls fired")
    return rows[0]


def place(stalltrap, db, stall):
    return [row["name"] for row in query(stalltrap, db, PLACE.format(**stall))]


def made(path):
    """The stalls of a log: start, end, least, tid."""
    with open(path) as file:
        lines = [line.split(None, 4) for line in file]
    return [tuple(int(field) for field in line[:4]) for line in lines]


def bounds(one, stall, slack, part):
    """What is wrong with the times, for one stall that was made; None: nothing."""
    start, end, least, _ = one
    begin, duration = int(stall["start"]), int(stall["duration"])
    slack += least // 20
    if begin < start - slack or begin > end:
        return f"begins {(begin - start) / MS:+.1f} ms from when it was asked for"
    if begin + duration > end + slack:
        return f"ends {(begin + duration - end) / MS:.1f} ms after it was over"
    if not part and stall["goes_on"] == "0" and duration < least - max(least // 20, MS // 10):
        return f"{duration / MS:.1f} ms, and it was at least {least / MS:.1f} ms"
    return None
