"""check_export.py FORMAT FILE DB: an export holds the same calls, waits, CPUs, gaps, marks and wake-ups as the database."""
import json
import re
import sqlite3
import sys
import xml.etree.ElementTree
from collections import Counter

FORMAT, FILE, DB = sys.argv[1:]
db = sqlite3.connect(f"file:{DB}?mode=ro", uri=True)
db.text_factory = lambda raw: raw.decode("utf-8", "replace")

CALLS = """SELECT t.tid, s.name, m.name, c.start_ns, c.duration_ns FROM call c JOIN thread t ON t.id = c.thread_id
           JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id"""
OFF = """SELECT t.tid, CASE preempted WHEN 1 THEN 'preempted' ELSE 'waiting' END, o.start_ns, o.end_ns FROM offcpu o
         JOIN thread t ON t.id = o.thread_id WHERE t.id IN (SELECT thread_id FROM call)"""
WAKES = """SELECT w.tid, l.wake_ns, t.tid, l.end_ns FROM stall l JOIN thread t ON t.id = l.thread_id
           JOIN thread w ON w.id = l.waker_thread_id"""


def same(what, got, sql):
    want = db.execute(sql).fetchall()
    got = [tuple(g) for g in got]
    if Counter(got) != Counter(want):
        missing, extra = Counter(want) - Counter(got), Counter(got) - Counter(want)
        sys.exit(f"{what}: {len(got)} in the export, {len(want)} in the database; missing {list(missing)[:3]}, extra {list(extra)[:3]}")
    return len(want)


def safe(name):
    """As the program makes foreign names printable."""
    return "".join(c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode()) for c in name)


def perfetto_messages():
    """The messages of Perfetto's .proto files that are needed here, made at run time; numbers and types from those files."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    F = descriptor_pb2.FieldDescriptorProto
    types = {"u64": F.TYPE_UINT64, "i64": F.TYPE_INT64, "i32": F.TYPE_INT32, "u32": F.TYPE_UINT32, "f64": F.TYPE_FIXED64, "str": F.TYPE_STRING}
    messages = {
        "Trace": [("packet", 1, "TracePacket*")],
        "TracePacket": [("timestamp", 8, "u64"), ("sequence", 10, "u32"), ("track_event", 11, "TrackEvent"), ("interned_data", 12, "InternedData"),
                        ("sequence_flags", 13, "u32"), ("track_descriptor", 60, "TrackDescriptor")],
        "InternedData": [("event_categories", 1, "Interned*"), ("event_names", 2, "Interned*")],
        "Interned": [("iid", 1, "u64"), ("name", 2, "str")],
        "TrackDescriptor": [("uuid", 1, "u64"), ("name", 2, "str"), ("process", 3, "Process"), ("thread", 4, "Thread"), ("parent_uuid", 5, "u64")],
        "Process": [("pid", 1, "i32"), ("process_name", 6, "str")],
        "Thread": [("pid", 1, "i32"), ("tid", 2, "i32"), ("thread_name", 5, "str")],
        "TrackEvent": [("category_iids", 3, "u64*"), ("debug_annotations", 4, "Annotation*"), ("type", 9, "u32"), ("name_iid", 10, "u64"),
                       ("track_uuid", 11, "u64"), ("categories", 22, "str*"), ("name", 23, "str"), ("flow_ids", 47, "f64*"),
                       ("terminating_flow_ids", 48, "f64*")],
        "Annotation": [("int_value", 4, "i64"), ("string_value", 6, "str"), ("name", 10, "str")],
    }
    file = descriptor_pb2.FileDescriptorProto(name="trace.proto", package="p", syntax="proto2")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            f = message.field.add(name=field, number=number, label=F.LABEL_REPEATED if kind.endswith("*") else F.LABEL_OPTIONAL)
            kind = kind.rstrip("*")
            f.type = types.get(kind, F.TYPE_MESSAGE)
            if kind not in types:
                f.type_name = ".p." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("p.Trace"))


def check_perfetto():
    with open(FILE, "rb") as f:
        trace = perfetto_messages().FromString(f.read())
    names, categories, tracks, open_slices, slices, instants, flows = {}, {}, {}, {}, [], [], {}
    if not trace.packet[0].sequence_flags & 1:
        sys.exit("the first packet does not begin a sequence")
    last = {}
    for p in trace.packet:
        for entry in p.interned_data.event_names:
            names[entry.iid] = entry.name
        for entry in p.interned_data.event_categories:
            categories[entry.iid] = entry.name
        if p.HasField("track_descriptor"):
            tracks[p.track_descriptor.uuid] = p.track_descriptor
        if not p.HasField("track_event"):
            continue
        e, time = p.track_event, p.timestamp
        if e.track_uuid not in tracks:
            sys.exit("an event on a track that was not described")
        if e.type == 1:
            name = names[e.name_iid] if e.HasField("name_iid") else e.name
            category = categories[e.category_iids[0]] if e.category_iids else e.categories[0]
            if time < last.get(e.track_uuid, 0) and category not in ("gap", "stall", "CPU"):
                sys.exit(f"time goes back on a track at {time}")
            open_slices.setdefault(e.track_uuid, []).append((name, category, time))
        elif e.type == 2:
            name, category, start = open_slices[e.track_uuid].pop()
            slices.append((tracks[e.track_uuid], category, name, start, time))
        else:
            instants.append((tracks[e.track_uuid], e, time))
            for flow in list(e.flow_ids) + list(e.terminating_flow_ids):
                flows.setdefault(flow, []).append((tracks[e.track_uuid].thread.tid, time))
        if e.type != 3:
            last[e.track_uuid] = time
    if any(open_slices.values()):
        sys.exit("a slice without an end")

    def tid(track):
        while not track.HasField("thread") and track.parent_uuid:
            track = tracks[track.parent_uuid]
        return track.thread.tid if track.HasField("thread") else None

    own = {"off-CPU", "CPU", "gap", "stall"}
    calls = [(tid(t), n, c, s, e - s) for t, c, n, s, e in slices if t.HasField("thread")]
    db.create_function("safe", 1, safe)
    count = same("calls", calls, CALLS.replace("s.name, m.name", "safe(s.name), safe(m.name)"))
    same("waits", [(tid(t), n, s, e) for t, c, n, s, e in slices if c == "off-CPU"], OFF)
    same("CPUs", [(int(t.name[4:]), int(n.split()[-1]), s, e) for t, c, n, s, e in slices if c == "CPU"],
         "SELECT cpu, t.tid, s.start_ns, s.end_ns FROM slice s JOIN thread t ON t.id = s.thread_id")
    same("gaps", [(tid(t), n, s, e) for t, c, n, s, e in slices if c == "gap"],
         "SELECT t.tid, reason, g.start_ns, g.end_ns FROM gap g LEFT JOIN thread t ON t.id = g.thread_id")
    same("stalls", [(tid(t), n, s, e) for t, c, n, s, e in slices if c == "stall"],
         "SELECT t.tid, l.trigger, l.start_ns, coalesce(l.end_ns, l.start_ns + l.duration_ns) FROM stall l LEFT JOIN thread t ON t.id = l.thread_id")
    same("marks", [(tid(t), e.name, time) for t, e, time in instants if e.categories[0] == "mark"],
         "SELECT t.tid, m.name, time_ns FROM mark m LEFT JOIN thread t ON t.id = m.thread_id")
    same("wake-ups", [a + b for a, b in flows.values()], WAKES)
    if len(slices) != count + sum(c in own for _, c, *_ in slices):
        sys.exit("slices of an unknown kind")


def nanoseconds(microseconds):
    return round(microseconds * 1000)


def check_chrome():
    with open(FILE, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    spans, ends = {}, {}
    for e in events:
        if e["ph"] in "be":
            (spans if e["ph"] == "b" else ends)[e["id"]] = e
    flows = {}
    for e in events:
        if e["ph"] in "sf":
            flows.setdefault(e["id"], {})[e["ph"]] = (e["tid"], nanoseconds(e["ts"]))
    same("calls", [(e["tid"], e["name"], e["cat"], nanoseconds(e["ts"]), nanoseconds(e["dur"])) for e in events if e["ph"] == "X"], CALLS)
    same("waits", [(e["tid"], e["name"], nanoseconds(e["ts"]), nanoseconds(ends[i]["ts"])) for i, e in spans.items() if e["cat"] == "off-CPU"], OFF)
    same("gaps", [(e["name"], nanoseconds(e["ts"]), nanoseconds(ends[i]["ts"])) for i, e in spans.items() if e["cat"] == "gap"],
         "SELECT reason, start_ns, end_ns FROM gap")
    same("marks", [(e["name"], nanoseconds(e["ts"])) for e in events if e["ph"] == "i"], "SELECT name, time_ns FROM mark")
    same("wake-ups", [f["s"] + f["f"] for f in flows.values()], WAKES)
    same("thread names", {(e["tid"], e["args"]["name"]) for e in events if e["name"] == "thread_name"},
         "SELECT tid, name FROM thread WHERE id IN (SELECT thread_id FROM call)")


def check_folded():
    on, off = Counter(), Counter()
    with open(FILE, encoding="utf-8") as f:
        for line in f:
            stack, value = re.fullmatch(r"(.+) (\d+)\n", line).groups()
            frames = stack.split(";")
            if frames[-1] == "[off-CPU]":
                off[tuple(frames[:-1])] += int(value)
            else:
                on[tuple(frames)] += int(value)
    db.create_function("frame", 2, lambda name, kernel: safe(name).replace(";", ":") + ("_[k]" if kernel else ""))
    paths = """WITH RECURSIVE path(id, frames) AS (
                   SELECT c.id, frame(t.name || ' ' || t.tid, 0) || ';' || frame(s.name, m.kernel) FROM call c JOIN thread t ON t.id = c.thread_id
                   JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id WHERE c.parent_id IS NULL
                   UNION ALL SELECT c.id, p.frames || ';' || frame(s.name, m.kernel) FROM path p JOIN call c ON c.parent_id = p.id
                   JOIN symbol s ON s.id = c.symbol_id JOIN module m ON m.id = s.module_id) """
    same("time on the CPU", [(";".join(k), v) for k, v in on.items()],
         paths + "SELECT frames, sum(self_ns) FROM path JOIN call USING (id) GROUP BY frames HAVING sum(self_ns) > 0")
    same("time off the CPU", [(";".join(k), v) for k, v in off.items()],
         paths + "SELECT frames, sum(end_ns - start_ns) FROM path JOIN offcpu o ON o.call_id = path.id GROUP BY frames")


def check_speedscope():
    """The rules of speedscope's file format: known keys, frames that exist, times that do not go back, balanced events."""
    with open(FILE, encoding="utf-8") as f:
        file = json.load(f)
    if file["$schema"] != "https://www.speedscope.app/file-format-schema.json" or set(file) - {"$schema", "name", "exporter", "activeProfileIndex", "profiles", "shared"}:
        sys.exit("not what the schema allows")
    frames, calls, threads = file["shared"]["frames"], [], []
    if not 0 <= file["activeProfileIndex"] < len(file["profiles"]) or any(set(f) - {"name", "file"} for f in frames):
        sys.exit("a wrong index or frame")
    for profile in file["profiles"]:
        if set(profile) != {"type", "name", "unit", "startValue", "endValue", "events"} or profile["type"] != "evented" or profile["unit"] != "nanoseconds":
            sys.exit("a profile the schema does not allow")
        stack, at, tid = [], profile["startValue"], int(profile["name"].split()[-1])
        threads.append((tid,))
        for e in profile["events"]:
            if e["at"] < at or e["at"] > profile["endValue"]:
                sys.exit(f"time goes back from {at} to {e['at']}")
            at = e["at"]
            if e["type"] == "O":
                stack.append((e["frame"], at))
                continue
            frame, start = stack.pop()
            if frame != e["frame"]:
                sys.exit("events that do not nest")
            if frame:
                calls.append((tid, frames[frame]["name"], frames[frame]["file"], start, at - start))
        if stack:
            sys.exit("a frame that stays open")
    same("calls", calls, CALLS)
    same("profiles", threads, "SELECT tid FROM thread WHERE id IN (SELECT thread_id FROM call)")


def check_svg():
    root = xml.etree.ElementTree.parse(FILE).getroot()
    ns = "{http://www.w3.org/2000/svg}"
    with open(FILE, encoding="utf-8") as f:
        text = f.read()
    if re.search(r"<script|href|url\((?!#)", text):
        sys.exit("the picture loads something")
    shown = 0
    for group in root.iter(ns + "g"):
        title = group.find(ns + "title").text
        many = re.match(r"(\d+) calls, the longest: ", title)
        shown += int(many.group(1)) if many else 1
        rect = group.find(ns + "rect")
        if float(rect.get("x")) < -1 or float(rect.get("x")) > 1600 or float(rect.get("width")) < 0:
            sys.exit("a call outside of the picture")
    same("calls", [(shown,)], "SELECT count(*) FROM call")


def check_html():
    with open(FILE, encoding="utf-8") as f:
        text = f.read()
    if re.search(r"(?:src|href)=|@import|https?://(?!www\.w3\.org)", text) or text.count("<script>") != 1 or text.count("</script>") != 1:
        sys.exit("the page loads something, or a name broke out of its script")
    trace = json.loads(re.search(r"const trace = (\{.*?\]\});\n", text, re.S).group(1))
    blocks = [[t["id"]] + t["blocks"][i:i + 6] for t in trace["threads"] for i in range(0, len(t["blocks"]), 6)]
    if not trace["least"]:
        same("calls", [(b[0], trace["symbols"][b[4]][0], b[1], b[2], b[3]) for b in blocks if b[3] >= 0],
             "SELECT c.thread_id, s.name, start_ns, duration_ns, depth FROM call c JOIN symbol s ON s.id = c.symbol_id")
    same("number of calls", [(sum(b[5] for b in blocks if b[3] >= 0),)], "SELECT count(*) FROM call")
    same("waits", [(b[0], b[1], b[1] + b[2]) for b in blocks if b[3] < 0],
         "SELECT thread_id, start_ns, end_ns FROM offcpu WHERE thread_id IN (SELECT thread_id FROM call)")
    same("gaps and stalls", [(s["kind"], s["start"], s["end"]) for s in trace["spans"]],
         "SELECT 'gap', start_ns, end_ns FROM gap UNION ALL SELECT 'mark', time_ns, time_ns FROM mark UNION ALL "
         "SELECT 'stall', start_ns, coalesce(end_ns, start_ns + duration_ns) FROM stall")


globals()["check_" + FORMAT]()
