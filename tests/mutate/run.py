#!/usr/bin/env python3
"""Whether the tests find faults: puts each fault of faults.txt into a copy of the tree, builds what the room's tests need, and runs them
until one fails.

usage: run.py [--build BUILD] [--only TEXT] [--check]

  --build  where the copy goes (build/mutate) and how the tree is configured
  --only   the faults whose file or text has TEXT in it
  --check  looks only whether each fault can be put into the tree as it is

A fault is found when a test that passes without it fails with it, twice in a row. Exit: 0 at least nine of ten were found and each
of the others has its reason in the list, 1 they were not, 2 the list or the tree is not fit for it.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FOUND_LEAST = 0.9
LIMIT = 900  # seconds for the tests of a fault: what hangs is found
FAILED = re.compile(r"Test\s+#\d+: (\S+) [. ]*\*\*\*")


class Fault:
    """One of the list."""

    def __init__(self, head, lines):
        self.file, self.what = head.split(": ", 1)
        self.room = self.file.split("/")[0]
        self.old = next((x[1:] for x in lines if x.startswith("-")), None)
        self.new = next((x[1:] for x in lines if x.startswith("+")), None)
        self.missed = next((x[8:] for x in lines if x.startswith("missed: ")), None)

    def wrong(self, tree):
        """Why it cannot be put into the tree; None: it can."""
        if self.old is None or self.new is None or self.old == self.new:
            return "has not two different lines"
        try:
            with open(os.path.join(tree, self.file), encoding="utf-8") as f:
                count = f.read().split("\n").count(self.old)
        except OSError as e:
            return e.strerror
        return None if count == 1 else f"the file has the line {count} times"


def read_list():
    """[Fault], {room: regex}"""
    faults, tests = [], {}
    with open(os.path.join(HERE, "faults.txt"), encoding="utf-8") as f:
        parts = f.read().split("\n\n")
    for part in parts:
        lines = [x for x in part.split("\n") if x and not x.startswith("#")]
        if lines and lines[0].startswith("tests "):
            tests.update(x.split(" ", 2)[1:] for x in lines)
        elif lines:
            faults.append(Fault(lines[0], lines[1:]))
    return faults, tests


def stop(text):
    print(f"run.py: {text}", file=sys.stderr)
    sys.exit(2)


def check(faults, tests):
    bad = [f"{f.file}: {f.what}: {why}" for f in faults if (why := f.wrong(ROOT) or (None if f.room in tests else "no tests for its room"))]
    if bad:
        stop("faults.txt does not fit the tree:\n  " + "\n  ".join(bad))


def run(command, limit=None):
    """(status, output); a status of None: it took too long, and it and its children were ended"""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as p:
        try:
            out = p.communicate(timeout=limit)[0]
            return p.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            return None, ""


class Copy:
    """The tree that the faults are put into."""

    def __init__(self, build):
        self.tree, self.build = os.path.join(build, "tree"), os.path.join(build, "out")
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        shutil.rmtree(self.tree, ignore_errors=True)
        for name in listed.split("\n"):
            if name and os.path.isfile(os.path.join(ROOT, name)):
                os.makedirs(os.path.dirname(os.path.join(self.tree, name)), exist_ok=True)
                shutil.copy2(os.path.join(ROOT, name), os.path.join(self.tree, name))
        self.must(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja"])
        self.must(["cmake", "--build", self.build, "--target", "all", "tests"])

    def must(self, command):
        status, out = run(command)
        if status:
            stop(f"{' '.join(command)}:\n{out[-4000:]}")

    def put(self, file, old, new):
        path = os.path.join(self.tree, file)
        with open(path, encoding="utf-8") as f:
            text = f.read().split("\n")
        text[text.index(old)] = new
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(text))

    def compile(self):
        return run(["cmake", "--build", self.build, "--target", "all", "tests"])

    def fails(self, regex, without=(), more=()):
        """The tests that fail; [None]: they take too long."""
        command = ["ctest", "--test-dir", self.build, "-j", str(os.cpu_count()), "--timeout", "120", "-R", regex, *more]
        if without:
            command += ["-E", "^(" + "|".join(map(re.escape, without)) + ")$"]
        status, out = run(command, LIMIT)
        return [None] if status is None else FAILED.findall(out)


def try_fault(copy, fault, regex, without):
    """The name of the test that finds it, or None."""
    copy.put(fault.file, fault.old, fault.new)
    try:
        status, out = copy.compile()
        if status:
            stop(f"{fault.file}: {fault.what}: it does not compile:\n{out[-2000:]}")
        suspects = copy.fails(regex, without, ["--stop-on-failure"])
        while suspects:
            if suspects[0] is None:
                return "(they hang)"
            if again := copy.fails("^(" + "|".join(map(re.escape, suspects)) + ")$"):
                return again[0] or "(it hangs)"
            without = [*without, *suspects]
            suspects = copy.fails(regex, without, ["--stop-on-failure"])
        return None
    finally:
        copy.put(fault.file, fault.new, fault.old)


def verdict(found, missed):
    print(f"\n{len(found)} of {len(found) + len(missed)} faults are found")
    for fault in missed:
        print(f"missed: {fault.file}: {fault.what}: {fault.missed or 'no reason is given'}")
    for fault in (f for f in found if f.missed):
        print(f"found, though the list says it cannot be: {fault.file}: {fault.what}")
    few = len(found) < FOUND_LEAST * (len(found) + len(missed))
    return 1 if few or any(not f.missed for f in missed) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--only", default="")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    faults, tests = read_list()
    check(faults, tests)
    if options.check:
        print(f"{len(faults)} faults can be put into the tree")
        return 0
    chosen = [f for f in faults if options.only in f"{f.file}: {f.what}"]
    copy = Copy(os.path.join(os.path.abspath(options.build), "mutate"))
    without = {room: copy.fails(tests[room]) for room in {f.room for f in chosen}}
    for room, failing in without.items():
        if failing:
            print(f"{room}: left out, since they fail without a fault: {', '.join(map(str, failing))}", flush=True)
    found, missed = [], []
    for fault in chosen:
        begun = time.monotonic()
        test = try_fault(copy, fault, tests[fault.room], without[fault.room])
        (found if test else missed).append(fault)
        print(f"{'found ' if test else 'MISSED'} {time.monotonic() - begun:4.0f} s  {fault.file}: {fault.what}" + (f" -- {test}" if test else ""), flush=True)
    return verdict(found, missed)


if __name__ == "__main__":
    sys.exit(main())
