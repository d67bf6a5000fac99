#!/usr/bin/env python3
"""Runs one test of the sanitized build, as ctest would there, but beside others: two ctests in one folder write the same log.

usage: sanitized.py CTEST BUILD/sanitize NAME    Exit: the test's.
"""
import json
import os
import re
import subprocess
import sys

ctest, build, name = sys.argv[1:]
listed = subprocess.run([ctest, "--test-dir", build, "--show-only=json-v1", "-R", f"^{re.escape(name)}$"], capture_output=True, text=True, check=False)
tests = json.loads(listed.stdout)["tests"] if listed.returncode == 0 and listed.stdout else []
if len(tests) != 1 or "command" not in tests[0]:
    sys.exit(f"{build} has no test {name}: make sanitize builds it")
properties = {p["name"]: p["value"] for p in tests[0]["properties"]}
os.chdir(properties["WORKING_DIRECTORY"])
environment = dict(os.environ, **dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", [])))
command = tests[0]["command"]
os.execvpe(command[0], command, environment)
