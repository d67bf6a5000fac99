#!/usr/bin/env python3
"""Runs tests by ctest, and says at the end what a reader of a green line would not know: which tests did not pass at their first try
(with each output), what they left running, and what was skipped and why.

usage: suite.py [--build BUILD] [--jobs N] [--tries N] [--table] [CTEST-OPTION...]

  --tries  1: nothing is tried again. More (3): what failed and has one of the labels timing, net and field is tried again, alone,
           each time when the machine is quiet. What a sanitizer finds, or crashes, is never tried again: it is found
  --table  a line a test at the end: what became of it, seconds, why

Exit: 0 all passed, were skipped or were inconclusive, 1 a test failed (each time, where it was tried again), 2 ctest did not run.
"""
import argparse
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

# What a sanitizer says; without it a sanitized test failed as others do.
FINDING = re.compile(r"ERROR: (?!Leak)\w+Sanitizer|runtime error:")
# A failed assertion leaves its test by a jump, so that what the test held is lost.
LEAK, ASSERTION = re.compile(r"ERROR: LeakSanitizer"), re.compile(r"^\[  FAILED  \] ", re.MULTILINE)
# What is printed of all failures together, so that a record of the last page of a run has each of them, and the least of one.
LINES, LEAST = 120, 12
PROGRESS = re.compile(r"^\s*(\d+)/(\d+) Test\s+#\d+: (\S+) [. ]*(.*)$")
PROGRESS_EVERY = 120  # seconds, where no one watches
PR_SET_CHILD_SUBREAPER = 36
CMOCKA_SKIP = re.compile(r"^\[  SKIPPED \] (?!\d+ test)(\S.*)$")
INCONCLUSIVE = re.compile(r"^\s*inconclusive\b:?\s*(.*)$", re.IGNORECASE | re.MULTILINE)
CRASH = re.compile(r"Segmentation fault|core dumped|Aborted|SIGSEGV|SIGABRT|SIGBUS")
TRIED_AGAIN = {"timing", "net", "field"}  # labels
QUIET, QUIET_FOR, PATIENCE = 0.2, 20, 300  # share of the processors that others may have, over so many seconds, and how long to wait
REASON = re.compile(r"^\s*(?:truth: )?(skipped|skip)\b:?\s*(.*)$", re.IGNORECASE)


class Result:
    """What became of one test."""

    def __init__(self, case):
        self.name = case.get("name")
        self.seconds = float(case.get("time") or 0)
        self.output = case.findtext("system-out") or ""
        skipped = case.find("skipped")
        self.skipped = skipped is not None and "SKIP_" in (skipped.get("message") or "")
        self.inconclusive = INCONCLUSIVE.search(self.output) if self.skipped else None
        self.passed = case.get("status") == "run"
        # ctest does not tell a test that took too long from others here: the time does.
        self.why = skipped.get("message") if skipped is not None else f"after {self.seconds:.0f} s"

    def tail(self, lines):
        return "\n".join(self.output.rstrip().splitlines()[-lines:])


def follow(pipe):
    """ctest's progress for someone who reads it later: little of it, and no output of tests."""
    said, again = time.monotonic(), []
    for line in pipe:
        done = PROGRESS.match(line)
        if not done:
            continue
        number, count, name, outcome = done.groups()
        if not re.match("Passed|.*Skipped", outcome):
            again.append(name)
        if time.monotonic() - said >= PROGRESS_EVERY or number == count:
            said = time.monotonic()
            print(f"{number} of {count}, load {os.getloadavg()[0]:.1f}" + (f"; did not pass: {', '.join(again)}" if again else ""), flush=True)


def children():
    """[(pid, name)]: what ctest's tests left behind; it has come to us (prctl(2), PR_SET_CHILD_SUBREAPER)"""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                head, rest = f.read().rsplit(")", 1)
            state, parent = rest.split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                    found.append((int(pid), f.read().replace("\0", " ").strip() or head.split("(", 1)[1]))
        except (OSError, ValueError):
            continue
    return found


def end_left_behind():
    """What still runs would disturb whatever comes next."""
    for _ in range(20):
        left = children()
        for pid, name in left:
            print(f"left running, and ended: {pid} {name[:100]!r}")
            os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if not left:
            return
        time.sleep(0.1)  # its children come to us now


def run(command):
    if sys.stdout.isatty():
        return subprocess.run([*command, "--output-on-failure"], check=False).returncode
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as child:
        follow(child.stdout)
    return child.returncode


def ctest(build, options, report):
    """name -> Result; ctest's own progress goes to the terminal."""
    command = ["ctest", "--test-dir", build, "--output-junit", report, "--test-output-size-passed", "1000000",
               "--test-output-size-failed", "1000000", "--no-tests=error", *options]  # fmt: skip
    if os.path.exists(report):
        os.unlink(report)
    status = run(command)
    end_left_behind()
    if not os.path.exists(report):
        sys.exit(f"suite.py: ctest ended with {status} and left no report: {' '.join(command)}" if status else "suite.py: no tests were found")
    return {r.name: r for r in map(Result, xml.parse(report).getroot().iter("testcase"))}


def labels_of(build):
    """name -> its labels"""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout
    return {t["name"]: {v for p in t.get("properties", []) if p["name"] == "LABELS" for v in p["value"]} for t in json.loads(listed)["tests"]}


def busy():
    """Processor time of the machine that was not idle, stolen time with it, and all of it, in ticks"""
    with open("/proc/stat", encoding="utf-8") as f:
        fields = [int(v) for v in f.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def wait_until_quiet():
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        before = busy()
        time.sleep(QUIET_FOR)
        used, whole = (b - a for a, b in zip(before, busy()))
        if used < QUIET * whole:
            return
    print(f"the machine does not get quiet: tried again all the same after {PATIENCE} s", flush=True)


def skips(result):
    """[(what, why)]: all of a test, or the parts of it that say so"""
    found, reason = [], ""
    for line in result.output.splitlines():
        if line.endswith("listed below:"):  # cmocka names them once more
            break
        said, part = REASON.match(line), CMOCKA_SKIP.match(line)
        if part:
            found.append((f"{result.name}: {part[1]}", reason or "it does not say why"))
            reason = ""
        elif said:
            if reason:
                found.append((result.name, reason))
            reason = said[2]
    if result.skipped and not found:
        last = (result.output.strip().splitlines() or ["it does not say why"])[-1]
        return [(result.name, reason or last)]
    return list(dict.fromkeys(found + ([(result.name, reason)] if reason else [])))


def headline(text):
    print(f"\n---- {text}")


def show_failures(tries):
    """Each try of each test that did not pass at its first."""
    failures = [(name, i + 1, r[name]) for name in sorted(set().union(*tries[1:], failed(tries[0]))) for i, r in enumerate(tries) if name in r]
    each = max(LEAST, LINES // max(sum(not r.passed for _, _, r in failures), 1))
    for name, number, result in failures:
        headline(f"{name}, try {number}: " + ("it passed" if result.passed else f"failed {result.why}"))
        print(result.tail(LEAST if result.passed else each))


def show_skips(results):
    found = [s for r in results.values() if r.passed or r.skipped for s in skips(r)]
    if found:
        headline(f"not run here ({len(found)})")
        for what, why in sorted(found):
            print(f"SKIP  {what}: {why}")


def show_slowest(results):
    headline("the slowest")
    for r in sorted(results.values(), key=lambda r: -r.seconds)[:10]:
        print(f"{r.seconds:7.1f} s  {r.name}")


def failed(results):
    return sorted(n for n, r in results.items() if not r.passed and not r.skipped)


def verdict(tries):
    final = {}
    for results in tries:
        final.update(results)
    bad, flaky = failed(final), [n for n in failed(tries[0]) if final[n].passed]
    skipped = sum(r.skipped for r in final.values())
    headline("in all")
    print(f"{100 * (len(final) - len(bad)) // max(len(final), 1)}% tests passed, {len(bad)} tests failed out of {len(final)}"
          f" ({skipped} skipped, {len(flaky)} flaky{': ' + ', '.join(flaky) if flaky else ''})")  # fmt: skip
    if bad:
        print("The following tests FAILED:")
        for name in bad:
            print(f"\t{name}: {final[name].why}")
    return 1 if bad else 0


def retried(results, labels):
    def found(r):
        leaks = LEAK.search(r.output) and not ASSERTION.search(r.output)
        return FINDING.search(r.output) or CRASH.search(r.output) or leaks

    return [n for n, r in results.items() if not r.passed and not r.skipped and labels.get(n, set()) & TRIED_AGAIN and not found(r)]


def outcome(name, tries):
    """(what became of it, why)"""
    last = [r[name] for r in tries if name in r][-1]
    if last.inconclusive:
        return "inconclusive", last.inconclusive[1]
    if last.skipped:
        return "skipped", skips(last)[0][1]
    if not last.passed:
        return "failed", (last.output.strip().splitlines() or [last.why])[-1]
    return ("passed", "") if tries[0].get(name, last).passed else ("flaky", (tries[0][name].output.strip().splitlines() or [""])[-1])


def show_table(tries):
    headline("each test")
    for name in sorted(set().union(*tries)):
        what, why = outcome(name, tries)
        seconds = sum(r[name].seconds for r in tries if name in r)
        print(f"{name:44} {what:12} {seconds:7.1f} s  {why[:100]}".rstrip())


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", default="build")
    parser.add_argument("--jobs", default=str(os.cpu_count()))
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--help", "-h", action="store_true")
    known, options = parser.parse_known_args()
    if known.help:
        print(__doc__)
        return 0
    build = os.path.abspath(known.build)
    report = os.path.join(build, "suite.xml")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    tries = [ctest(build, ["-j", known.jobs, *options], report)]
    if not tries[0]:
        sys.exit("suite.py: no tests were found")
    labels = labels_of(build)
    for _ in range(known.tries - 1):
        again = retried(tries[-1], labels)
        if not again:
            break
        headline(f"once more: {', '.join(again)}")
        wait_until_quiet()
        results = ctest(build, ["-j", "1", "-R", "^(" + "|".join(map(re.escape, again)) + ")$"], report)
        tries.append({n: r for n, r in results.items() if n in again})  # fixtures come with them
    show_skips({n: r for results in tries for n, r in results.items()})
    show_slowest(tries[0])
    if known.table:
        show_table(tries)
    show_failures(tries)
    return verdict(tries)


if __name__ == "__main__":
    sys.exit(main())
