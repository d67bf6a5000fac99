"""check_kind.py DB NOTED KIND TRIGGER CONDITION: what a snapshot tells of the stalls that the workload noted itself (tests/workloads/kinds.c).

Exit: 0 a whole stall is told as it was, 1 something is told that was not, 2 none of the workload's stalls is told whole."""
import re
import sqlite3
import sys

path, noted, kind, trigger, condition = sys.argv[1:]
# A hit has no length, and a handler of the kernel's is no stall of the workload's: what is told need only be of its thread.
LONG = {"offcpu", "syscall", "func", "busy", "runq", "socket", "quiet"}
STALL = 300_000_000
# Of a wait, some of the time may pass before it begins: a thread that is preempted on its way into it.
LEAST = 270_000_000


def bad(text):
    print(f"FAILED: {text}")
    sys.exit(1)


db = sqlite3.connect(path)
db.row_factory = sqlite3.Row
meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
offset = int(meta["origin_perf_ns"]) + int(meta["wall_offset_ns"])
stalls = [tuple(map(int, line.split())) for line in open(noted, encoding="utf-8") if line.endswith("\n")]
tid = stalls[0][0] if stalls else None
attr = re.sub(r"attr\(('\w+')\)", r"(SELECT value FROM stall_attr WHERE stall_id = s.id AND key = \1)", condition)
rows = db.execute(f"SELECT s.*, ({attr}) AS holds, s.id = {meta['trigger_stall_id']} AS fired FROM stalls s").fetchall()
if not any(r["fired"] for r in rows):
    bad("the stall that fired has no row")
whole = 0
for row in rows:
    if row["kind"] != kind or row["trigger"] != trigger:
        bad(f"kind {row['kind']} of {row['trigger']}")
    if tid is not None and row["tid"] != tid:
        bad(f"thread {row['tid']}, where {tid} stalls: {row['reason']}")
    if kind not in LONG:
        whole += bool(row["holds"])
        continue
    if row["end_ns"] is None:
        continue
    # The stall of the workload in which the middle of this one lies.
    middle = row["start_ns"] + row["duration_ns"] // 2 + offset
    own = next((s for s in stalls if s[1] <= middle <= s[1] + s[2]), None)
    if not own or row["duration_ns"] < LEAST:
        continue
    if row["duration_ns"] > own[2]:
        bad(f"told {row['duration_ns']} ns, where all of the stall took {own[2]} ns: {row['reason']}")
    if not row["holds"]:
        bad(f"told {row['reason']!r} (state {row['state']}, system call {row['syscall']}), where {condition}")
    whole += 1
print(f"{len(rows)} rows, {whole} of them whole stalls of the workload")
sys.exit(0 if whole else 2)
