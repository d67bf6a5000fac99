"""check_kind.py DB NOTED KIND TRIGGER CONDITION: what a snapshot tells of the stalls that the workload noted itself (tests/workloads/kinds.c).

Exit: 0 a whole stall is told as it was, 1 something is told that was not, 2 none of the workload's stalls is told whole."""
import re
import sqlite3
import sys

path, noted, kind, trigger, condition = sys.argv[1:]
STALL = 300_000_000
# What is told of a whole stall is at least this long. A call, a function, a loop's turn and a silence enclose all of it. Of a wait, some of
# the time may pass before it begins: the thread is preempted on its way into it, or the data come late. Of the other kinds a hit has no length, and a
# handler of the kernel's is no stall of the workload's: they need only be of its thread.
LEAST = {"syscall": STALL, "func": STALL, "busy": STALL, "quiet": STALL}
LEAST |= {kind: STALL * 9 // 10 for kind in ("offcpu", "runq", "socket")}
# A stall that other work made longer than this may hold a long wait of another kind.
MOST = STALL * 3 // 2


def bad(text):
    print(f"FAILED: {text}")
    sys.exit(1)


db = sqlite3.connect(path)
db.row_factory = sqlite3.Row
meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
offset = int(meta["origin_perf_ns"]) + int(meta["wall_offset_ns"])
stalls = [tuple(map(int, line.split())) for line in open(noted, encoding="utf-8") if line.endswith("\n")]
if not stalls:
    print("the workload has noted nothing yet")
    sys.exit(2)
if "trigger_stall_id" not in meta:
    bad("meta names no stall that fired")
tid = stalls[0][0]
attr = re.sub(r"attr\(('\w+')\)", r"(SELECT value FROM stall_attr WHERE stall_id = s.id AND key = \1)", condition)
rows = db.execute(f"SELECT s.*, ({attr}) AS holds, s.id = {meta['trigger_stall_id']} AS fired FROM stalls s").fetchall()
if not any(r["fired"] for r in rows):
    bad("the stall that fired has no row")
whole = 0
for row in rows:
    if row["kind"] != kind or row["trigger"] != trigger:
        bad(f"kind {row['kind']} of {row['trigger']}")
    if row["tid"] != tid:
        bad(f"thread {row['tid']}, where {tid} stalls: {row['reason']}")
    if kind not in LEAST:
        whole += bool(row["holds"])
        continue
    if row["end_ns"] is None:
        continue
    # The stall of the workload in which the middle of this one lies.
    middle = row["start_ns"] + row["duration_ns"] // 2 + offset
    own = next((s for s in stalls if s[1] <= middle <= s[1] + s[2]), None)
    if not own:
        continue
    if row["duration_ns"] > own[2]:
        bad(f"told {row['duration_ns']} ns, where all of the stall took {own[2]} ns: {row['reason']}")
    if row["duration_ns"] < LEAST[kind] or own[2] > MOST:
        continue
    if not row["holds"]:
        bad(f"told {row['reason']!r} (state {row['state']}, system call {row['syscall']}), where {condition}")
    whole += 1
print(f"{len(rows)} rows, {whole} of them whole stalls of the workload")
sys.exit(0 if whole else 2)
