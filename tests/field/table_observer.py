"""The independent observer of the table: a bpftrace script that tells when each thread of the program was off its CPU for more than 40 ms, and
when it had work for more than 5 ms without a sleep: it ran, or was ready to."""
import os
import re
import subprocess
import time

SCRIPT = """
tracepoint:sched:sched_switch /(WHOSE) && (args->prev_state & 0xf0) == 0/ {{ @off[tid] = nsecs; @state[tid] = args->prev_state; delete(@woken[tid]); }}
tracepoint:sched:sched_switch /(WHOSE) && @work[tid] && (args->prev_state & 0xf)/ {{
    if (nsecs - @work[tid] > 5000000) {{ printf("ran %d %ld %ld\\n", tid, @work[tid], nsecs); }}
    delete(@work[tid]);
}}
tracepoint:sched:sched_wakeup_new /WHOSE/ {{ @off[args->pid] = nsecs; @woken[args->pid] = nsecs; }}
tracepoint:sched:sched_wakeup /@off[args->pid]/ {{ @woken[args->pid] = nsecs; }}
tracepoint:sched:sched_switch /@off[args->next_pid]/ {{
    $t = args->next_pid;
    if (nsecs - @off[$t] > 40000000) {{ printf("span %d %ld %ld %ld %ld\\n", $t, @off[$t], @woken[$t], nsecs, @state[$t]); }}
    if (@state[$t] & 0xf) {{ @work[$t] = nsecs; }}
    delete(@off[$t]); delete(@woken[$t]); delete(@state[$t]);
}}
interval:ms:100 {{ printf("\\n"); }}
"""


class Observer:
    def __init__(self, pids, path):
        whose = " || ".join(f"pid == {pid}" for pid in pids)
        self.path = path
        self.file = open(path, "w")
        self.process = subprocess.Popen(["bpftrace", "-B", "line", "-e", SCRIPT.format().replace("WHOSE", whose)], stdout=self.file, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, BPFTRACE_MAP_KEYS_MAX="65536"))
        end = time.monotonic() + 60
        while "\n\n" not in open(path).read():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("bpftrace does not start")
            time.sleep(0.05)
        self.offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def spans(self):
        """Thread, off from, woken at (0: never slept), on again, state; wall-clock ns."""
        found = []
        for line in re.findall(r"^span (\d+) (\d+) (\d+) (\d+) (-?\d+)$", open(self.path).read(), re.M):
            tid, off, woken, on, state = map(int, line)
            found.append((tid, off + self.offset, woken + self.offset if woken else 0, on + self.offset, state))
        return found

    def ran(self, tid):
        """From when to when it had work."""
        found = re.findall(rf"^ran {tid} (\d+) (\d+)$", open(self.path).read(), re.M)
        return [(int(start) + self.offset, int(end) + self.offset) for start, end in found]

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.file.close()


def overlap(one, other):
    return min(one[1], other[1]) - max(one[0], other[0])


def waited(span, kind):
    """What a trigger of this kind measures of it."""
    tid, off, woken, on, _ = span
    return (woken or off, on) if kind == "runq" else (off, on)
