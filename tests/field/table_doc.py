"""The page that table.py makes of its results: totals beside the goals, then a row a program and kind of stall."""
COLUMNS = ("fired", "length", "right", "wrong", "named", "false")


def undecided(one):
    """It fired, three times, on stalls that the machine made itself, or the observer was blind."""
    return bool(one.get("elsewhere") and one.get("real"))


def counted(trials):
    """A trial that did not fire on its stall tells no length, cause or name: each is missing in that row too."""
    undecided_ones = sum(map(undecided, trials))
    trials = [one for one in trials if not undecided(one)]
    fired = [one for one in trials if one["fired"]]
    return {
        "undecided": undecided_ones,
        "again": sum(one.get("again", 0) for one in trials),
        "trials": len(trials),
        "fired": len(fired),
        "length": sum(one["length"] for one in fired),
        "right": sum(one["cause"] == "right" for one in fired),
        "wrong": sum(one["cause"] == "wrong" for one in fired),
        "named": sum(one["named"] and one["cause"] == "right" for one in fired),
        "false": sum(bool(one["false"]) for one in fired),
        "elsewhere": sum(bool(one.get("elsewhere")) and not one.get("real") for one in trials),
    }


def rows(store, which="first"):
    for name, program in store["programs"].items():
        for cause, tried in program["causes"].items():
            if which in tried:
                yield name, cause, tried[which]["trigger"], counted(tried[which]["trials"])


def total(store, which="first"):
    found = [row[3] for row in rows(store, which)]
    return {key: sum(row[key] for row in found) for key in ("trials", *COLUMNS, "elsewhere", "undecided", "again")}


def alarms(store):
    found = [program["quiet"] for program in store["programs"].values() if "quiet" in program]
    return sum(not alarm["real"] for quiet in found for alarm in quiet["alarms"]), sum(quiet["seconds"] for quiet in found)


def goals(store):
    """What, the figure, the goal, whether it is reached."""
    sums = total(store)
    trials, fired = sums["trials"] or 1, sums["fired"] or 1
    false, seconds = alarms(store)

    def share(what, part, whole, goal):
        return what, f"{part} of {whole}, {100 * part / whole:.1f} %", f"≥ {goal} %", part * 100 >= goal * whole

    def none(what, part, whole):
        return what, f"{part} of {whole}", "0", part == 0
    return [
        share("fired, on the stall that was made, with the first trigger", sums["fired"], trials, 95),
        share("its length known, and right within 5 % + 1 ms, of all trials", sums["length"], trials, 95),
        share("its cause right, of all trials", sums["right"], trials, 80),
        none("its cause wrong", sums["wrong"], fired),
        share("holder, function or peer named, of all trials", sums["named"], trials, 80),
        none("reports with a false statement", sums["false"], fired),
        (f"fired on nothing that was observed, in {seconds} s of normal load", str(false), "0", false == 0),
    ]


def missed(store):
    return [goal for goal in goals(store) if not goal[3]] + [name for name, program in store["programs"].items() if program.get("broken")]


def summary(store):
    lines = [f"{'ok    ' if reached else 'MISSED'} {what}: {figure} (goal {goal})" for what, figure, goal, reached in goals(store)]
    lines += [f"BROKEN {name}: {program['broken']}" for name, program in store["programs"].items() if program.get("broken")]
    return "\n".join(lines)


def table(store, which):
    yield "| program | stall | trigger | trials | fired | length | cause right | not known | wrong | named | false |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, cause, trigger, n in rows(store, which):
        unknown = n["fired"] - n["right"] - n["wrong"]
        yield (f"| {name} | {cause} | `{trigger}` | {n['trials']} | {n['fired']} | {n['length']} | {n['right']} | {unknown} | {n['wrong']} | "
               f"{n['named']} | {n['false']} |")


INTRODUCTION = """# Programs of others that are made to stall

How `stalltrap arm --source sample -p PID --on TRIGGER`, with no other option, fares with nine servers of Debian's and four of ours (`tests/field/servers`) on the standard libraries of Python, Go, Java and Node.
`make field-table` makes this page. The product was mended by what these programs showed: they are not kept aside, and others may fare worse.

Each program has a normal load. A trial arms anew, waits for a second and a half, and then one stall of some 300 ms is made. When it was and how
long is told by who made it, by the program's own log, or, of a wait for the CPU or the disk, by a script of bpftrace's that sees the same switches. The
trigger is the one that a user tries first: `offcpu` for waits, `busy` for an event loop that computes or sleeps, `runq` where the CPU is taken.

- *fired*: on the stall that was made, and in its thread where that is known. *length*: known, and right within 5 % + 1 ms.
- *cause right*, *not known*, *wrong*: the `cause` line of `report`. *named*: the holder, function, file or peer in it.
- A wait of which only is told which thread ended it, which is true and no cause, counts as *not known*.
- Of a wait that only the observer can measure, its wait of the told thread is the truth that overlaps the told one most, within the stall that was made:
  a wrong thread is not found there.
- A proxy with a slow server behind it waits for work, and `offcpu` alone leaves that out: there the trigger has `idle=yes`.
- *false*: reports with a statement that is not true, of any line: a system call that the thread was not in, a state, a waker, a sum of parts.

The stalls: *stopped* by SIGSTOP; *unread*, the same as a socket sees it; *frozen* by its control group's freezer; *throttled* by its quota; *runq*, a
real-time thread has its CPU; *disk*, a file system whose device answers late; *peer*, a server behind it answers late; *lock* and *flock*, held by
another thread or process; *log pipe*, who reads its log is stopped; *sleep*, *child* and *compute*, in a request of its own.
"""


def repeated(store):
    """How many tries were repeated; runs of before that was counted do not tell."""
    trials = [one for program in store["programs"].values() for cause in program["causes"].values() for one in cause.get("first", {"trials": []})["trials"]]
    if any("again" not in one for one in trials):
        return "How many tries of the others were repeated for that was not counted in all of these runs."
    return f"{total(store)['again']} tries of the others were repeated for that."


def page(store):
    lines = [INTRODUCTION, f"Linux {store.get('kernel', '?')}.", "", "| | measured | goal | |", "|---|---|---|---|"]
    lines += [f"| {what} | {figure} | {goal} | {'reached' if reached else 'missed'} |" for what, figure, goal, reached in goals(store)]
    lines += ["", f"{total(store)['undecided']} trials were not decided in three tries: another stall came first, other programs had the CPU, or the observer was blind. "
              f"{repeated(store)}",
              "", "## With the first trigger", "", *table(store, "first")]
    if any(True for _ in rows(store, "second")):
        lines += ["", "## With the next one", "", *table(store, "second")]
    lines += ["", "## The programs", "", "| program | version | fired beside its normal load, by the observer on nothing |", "|---|---|---|"]
    for name, program in store["programs"].items():
        quiet = program.get("quiet", {"alarms": [], "seconds": 0})
        false = sum(not alarm["real"] for alarm in quiet["alarms"])
        lines.append(f"| {name} | {program.get('version', '?')} | {len(quiet['alarms'])}, {false}, in {quiet['seconds']} s |")
    return "\n".join(lines) + "\n"
