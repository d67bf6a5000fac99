#!/usr/bin/env python3
"""Whether the tests find faults: puts each fault of faults.txt into a copy of the tree, builds what the room's tests need, and runs them
until one fails.

usage: run.py [--build BUILD] [--only TEXT] [--gate] [--check]

  --build  where the copy goes (build/mutate) and how the tree is configured
  --only   the faults whose file or text has TEXT in it
  --gate   the faults marked `gate`, and the tests of the gate alone: those of the room first, and then all
  --check  looks only whether each fault can be put into the tree as it is, and whether each room has two for the gate

A fault is found when a test that passes without it fails with it, twice in a row; one that is skipped has not failed. Exit: 0 at least
nine of ten were found (of the gate's, every one) and each of the others has its reason in the list, 1 they were not, 2 the list or the
tree is not fit for it.
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
EVERY = "."  # tests of the gate; they may take
EVERY_LIMIT = 4 * 3600
GATE_EACH = 2  # faults for the gate, at least, of a room
# One that was skipped, or disabled, has not failed: ctest marks all of these with asterisks.
FAILED = re.compile(r"Test\s+#\d+: (\S+) [. ]*\*\*\*(?!Skipped|Not Run \(Disabled\))")


HANG = "(they hang)"


class Fault:
    """One of the list."""

    def __init__(self, head, lines):
        self.file, self.what = head.split(": ", 1)
        self.room = self.file.split("/")[0]
        self.old = next((x[1:] for x in lines if x.startswith("-")), None)
        self.new = next((x[1:] for x in lines if x.startswith("+")), None)
        self.missed = next((x[8:] for x in lines if x.startswith("missed: ")), None)
        self.gate = "gate" in lines

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


def only(names):
    """The regular expression of these tests."""
    return "^(" + "|".join(map(re.escape, names)) + ")$"


def stop(text):
    print(f"run.py: {text}", file=sys.stderr)
    sys.exit(2)


def check(faults, tests):
    bad = [f"{f.file}: {f.what}: {why}" for f in faults if (why := f.wrong(ROOT) or (None if f.room in tests else "no tests for its room"))]
    bad += [f"{room}: fewer than {GATE_EACH} faults for the gate" for room in tests if sum(f.gate for f in faults if f.room == room) < GATE_EACH]
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

    def __init__(self, build, choice):
        self.choice = choice  # ctest's arguments: the tests that may be asked at all
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
        command = ["ctest", "--test-dir", self.build, "-j", str(os.cpu_count()), "--timeout", "120", "-R", regex, *self.choice, *more]
        # The sanitized build of the copy, with the fuzz targets, is not made.
        command += ["-E", "^(sanitized|fuzz)[.]" + "".join(f"|^{re.escape(name)}$" for name in without)]
        status, out = run(command, EVERY_LIMIT if regex == EVERY else LIMIT)
        return [None] if status is None else FAILED.findall(out)


def first_failing(copy, regex, without):
    """The first test that fails twice in a row, or None."""
    without = list(without)
    while suspects := copy.fails(regex, without, ["--stop-on-failure"]):
        if suspects[0] is None:
            return HANG
        if again := copy.fails(only(suspects)):
            return again[0] or suspects[0]
        without += suspects
    return None


def find_with(copy, fault, regexes, without):
    """The same, with the fault in the tree. The tests are asked in the order of their regular expressions."""
    copy.put(fault.file, fault.old, fault.new)
    try:
        status, out = copy.compile()
        if status:
            stop(f"{fault.file}: {fault.what}: it does not compile:\n{out[-2000:]}")
        return next((test for regex in regexes if (test := first_failing(copy, regex, without))), None)
    finally:
        copy.put(fault.file, fault.new, fault.old)


def try_fault(copy, fault, regexes, without):
    """The name of the test that finds it, or None. What fails without the fault is told, and added to `without`."""
    while test := find_with(copy, fault, regexes, without):
        copy.compile()
        if test == HANG or not copy.fails(only([test])):
            return test
        print(f"left out, since it fails without a fault: {test}", flush=True)
        without.append(test)
    return None


def verdict(found, missed, least):
    print(f"\n{len(found)} of {len(found) + len(missed)} faults are found")
    for fault in missed:
        print(f"missed: {fault.file}: {fault.what}: {fault.missed or 'no reason is given'}")
    for fault in (f for f in found if f.missed):
        print(f"found, though the list says it cannot be: {fault.file}: {fault.what}")
    few = len(found) < least * (len(found) + len(missed))
    return 1 if few or any(not f.missed for f in missed) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--only", default="")
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    faults, tests = read_list()
    check(faults, tests)
    if options.check:
        print(f"{len(faults)} faults can be put into the tree")
        return 0
    chosen = [f for f in faults if options.only in f"{f.file}: {f.what}" and (f.gate or not options.gate)]
    copy = Copy(os.path.join(os.path.abspath(options.build), "mutate"), ["-L", "^gate$"] if options.gate else [])
    # What is quick first: the room's units.
    regexes = {f.room: [f"^unit_{f.room}_", tests[f.room]] + [EVERY] * options.gate for f in chosen}
    found, missed, without = [], [], []
    for fault in chosen:
        begun = time.monotonic()
        test = try_fault(copy, fault, regexes[fault.room], without)
        (found if test else missed).append(fault)
        print(f"{'found ' if test else 'MISSED'} {time.monotonic() - begun:4.0f} s  {fault.file}: {fault.what}" + (f" -- {test}" if test else ""), flush=True)
    return verdict(found, missed, 1 if options.gate else FOUND_LEAST)


if __name__ == "__main__":
    sys.exit(main())
