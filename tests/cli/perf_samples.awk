# `perf report -D` (or `perf script -D`): a line a sample with a call chain, as `decode --dump samples` writes it; none of a thread that
# has no number any more (-1), since it ends.
function flush() {
    if (line != "")
        print line
    line = ""
}
/PERF_RECORD_SAMPLE/ {
    flush()
    split($0, part, "PERF_RECORD_SAMPLE\\([^)]*\\): ")
    split(part[2], id, "[/:]")
    time = $2
    cpu = $1
    tid = id[2]
    next
}
/FP chain: nr:/ && tid != -1 {
    line = sprintf("%d.%09d %d %d", substr(time, 1, length(time) - 9), substr(time, length(time) - 8), tid, cpu)
    next
}
line != "" && /^\.\.\.\.\. *[0-9]+: / {
    sub("^0+", "", $NF)
    if ($NF == "")
        $NF = "0"
    if ($NF !~ /^ffffffffffff(ff80|fe00|f800)$/) # PERF_CONTEXT_KERNEL, _USER, _GUEST
        line = line " " $NF
    next
}
END { flush() }
