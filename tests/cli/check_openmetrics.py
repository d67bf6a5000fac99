#!/usr/bin/env python3
"""check_openmetrics.py < TEXT: it is OpenMetrics 1.0 as far as histograms and counters go: every sample belongs to the family that was
announced last, buckets are cumulative and end with +Inf, which is the count, and "# EOF" is the last line. Prints the count of each series."""
import re
import sys

lines = sys.stdin.read().split("\n")
assert lines[-1] == "" and lines[-2] == "# EOF", lines[-3:]
family, kinds, buckets, counts, sums = None, {}, {}, {}, {}
for line in lines[:-2]:
    if m := re.fullmatch(r"# (TYPE|UNIT|HELP) (\w+) (.+)", line):
        if m[1] == "TYPE":
            family = m[2]
            assert family not in kinds, line
            kinds[family] = m[3]
        assert m[2] == family, line
        continue
    m = re.fullmatch(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)', line)
    assert m and m[1].startswith(family), line
    suffix, labels, value = m[1][len(family):], m[2] or "", float(m[3])
    if kinds[family] == "counter":
        assert suffix == "_total", line
        continue
    le = re.search(r',?le="([^"]+)"$', labels)
    series = (family, labels[: le.start()] if le else labels)
    if suffix == "_bucket":
        buckets.setdefault(series, []).append((float(le[1]), value))
    else:
        {"_count": counts, "_sum": sums}[suffix][series] = value
assert set(buckets) == set(counts) == set(sums)
for series, row in buckets.items():
    assert row == sorted(row) and [v for _, v in row] == sorted(v for _, v in row), series
    assert row[-1] == (float("inf"), counts[series]), series
    print(series[0], series[1], int(counts[series]))
