#!/usr/bin/env python3
"""truncated.py STALLTRAP SNAPSHOT: decodes the snapshot cut off at every length, the longest first.

Each must end with status 1 and one message that begins with the file's name, and leave no file. Works in the current folder.
"""
import os
import subprocess
import sys


def problem(run, before):
    """What is wrong with one decoding, or None."""
    lines = run.stderr.decode(errors="replace").splitlines()
    if run.returncode != 1:
        return f"exit status {run.returncode}"
    if not lines or not lines[0].startswith("stalltrap decode: cut.data: ") or len(lines) > 3:
        return f"it says {lines}"
    if run.stdout:
        return f"it prints {run.stdout}"
    left = sorted(set(os.listdir(".")) - before)
    return f"it leaves {left}" if left else None


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "rb") as snapshot, open("cut.data", "wb") as cut:
        whole = snapshot.read()
        cut.write(whole)
    before = set(os.listdir("."))
    command = [sys.argv[1], "decode", "cut.data", "-o", "cut.db"]
    failed = 0
    for length in range(len(whole) - 1, -1, -1):
        os.truncate("cut.data", length)
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        wrong = problem(run, before)
        if wrong:
            print(f"cut off at {length} of {len(whole)} bytes: {wrong}")
            failed += 1
            if failed == 10:
                break
    print(f"{len(whole)} lengths, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
