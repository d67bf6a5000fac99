"""screens.py PROGRAM DB EXPECTED-DIR PAGE: screens after scripted keys, at 80x24 and 200x60, against files of EXPECTED-DIR.

Without a terminal in UTF-8 and in ASCII (screens-CHARSET-SIZE.txt), and in tmux with the colours of four kinds of terminals
(colours-KIND-SIZE.txt, escape sequences as `cat -v` shows them). A file holds its screens one after the other, each behind a line
`== KEYS`. The screens of PAGE, docs/viewer.md, are what their commands print. UPDATE=1 writes what comes out as the new expectation.
"""
import difflib
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import time

PROGRAM, DB, EXPECTED, PAGE = sys.argv[1:]
UPDATE = bool(os.environ.get("UPDATE"))
SIZES = ("80x24", "200x60")
KEYS = ["", "0", "0www", "0wwwdd", "tLL<Enter>", "0<Tab><Tab>", "0K", "0<Space>", "i", "S", "0/work<Enter>nn", "0/work<Enter>f", "F", "mauu'a", "0uujMll",
        "?", "0<Tab>p", ";SELECT function, duration_ns FROM calls<Enter>"]
COLOUR_KEYS = {"80x24": ["", "0", "0/work<Enter>f", "0K", "S", "i"], "200x60": ["0", "0wwL"]}
# TERM, COLORTERM, and what its escape sequences must hold: the palette is tmux's business, which of it is used is ours.
KINDS = {"24bit": ("xterm-256color", "truecolor", "^[[48;5;"), "256": ("tmux-256color", "", "^[[48;5;"), "8": ("xterm", "", "^[[30m^[[4"),
         "mono": ("vt100", "", "^[[7m")}
COLOUR = re.compile(r"\^\[\[(?:3[0-8]|4[0-8])")
passed = failed = 0


def result(what, ok, got="", want=""):
    global passed, failed
    passed += bool(ok)
    failed += not ok
    if not ok:
        print(f"FAILED: {what}")
        print("\n".join(difflib.unified_diff(want.split("\n"), got.split("\n"), "expected", "came out", lineterm="", n=1)))


def expected(name):
    """{keys: screen} of a file."""
    screens = {}
    if not UPDATE:
        with open(f"{EXPECTED}/{name}.txt", encoding="utf-8") as f:
            for part in f.read().split("== ")[1:]:
                keys, screen = part.split("\n", 1)
                screens[keys] = screen
    return screens


def save(name, screens):
    if UPDATE:
        with open(f"{EXPECTED}/{name}.txt", "w", encoding="utf-8") as f:
            f.write("".join(f"== {keys}\n{screen}" for keys, screen in screens.items()))


def plain_screens(charset, size):
    name, got = f"screens-{charset}-{size}", {}
    want = expected(name)
    for keys in KEYS:
        command = [PROGRAM, "view", DB, "--size", size, "--keys", keys, "--screen", "-"] + ["--ascii"] * (charset == "ascii")
        got[keys] = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
        result(f"{name}, keys '{keys}'", UPDATE or got[keys] == want.get(keys), got[keys], want.get(keys, ""))
        width, height = map(int, size.split("x"))
        lines = got[keys].split("\n")[:-1]
        result(f"{name}, keys '{keys}': its size", len(lines) == height and all(len(l) <= width for l in lines))
        result(f"{name}, keys '{keys}': no other characters", charset != "ascii" or got[keys].isascii())
    save(name, got)


def page_screens():
    """Blocks of the page: a line `    $ stalltrap view ...` and what it prints, indented and ended by a line of no indent."""
    with open(PAGE, encoding="utf-8") as f:
        parts = re.split(r"(^    \$ stalltrap .*\n)((?:    .*\n|\n(?=    |\n))*)", f.read(), flags=re.M)
    for i in range(1, len(parts), 3):
        command = [PROGRAM] + shlex.split(parts[i].strip())[2:]
        out = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8", cwd=os.path.dirname(DB)).stdout
        shown = "".join("    " + line + "\n" if line else "\n" for line in out.split("\n")[:-1])
        result(f"{PAGE}: {parts[i].strip()}", UPDATE or parts[i + 1].rstrip() == shown.rstrip(), shown, parts[i + 1])
        parts[i + 1] = shown
    result(f"{PAGE} has screens", len(parts) > 12)
    if UPDATE:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write("".join(parts))


class Terminal:
    def __init__(self, folder, size):
        self.socket = f"{folder}/tmux-{size}"
        width, height = size.split("x")
        self.run("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "cat")
        self.run("set-option", "-g", "status", "off")
        self.run("resize-window", "-x", width, "-y", height)
        self.run("set-option", "-g", "remain-on-exit", "on")

    def run(self, *command):
        return subprocess.run(["tmux", "-S", self.socket, *command], capture_output=True, text=True, check=True, encoding="utf-8").stdout

    def start(self, term, colorterm, keys):
        environment = f"env -u COLUMNS -u LINES LC_ALL=C.UTF-8 TERM={term} COLORTERM={colorterm}"
        self.run("clear-history")
        self.run("respawn-pane", "-k", f"exec {environment} '{PROGRAM}' view '{DB}' --keys '{keys}'")

    def screen(self):
        text = self.run("capture-pane", "-p", "-e").replace("\x1b", "^[").replace("\x0e", "^N").replace("\x0f", "^O")
        return "\n".join(line.rstrip() for line in text.split("\n"))

    def settled(self, want):
        """The screen once it is the wanted one; after two minutes whatever there is. To update: once it stays as it is."""
        before, until = "", time.monotonic() + (1 if UPDATE else 120)
        while time.monotonic() < until:
            now = self.screen()
            if now == want:
                break
            time.sleep(0.2 if UPDATE else 0.01)
            before = now
        return self.screen()

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False)


def colour_screens(terminal, kind, size):
    term, colorterm, must_hold = KINDS[kind]
    name, got = f"colours-{kind}-{size}", {}
    want = expected(name)
    for keys in COLOUR_KEYS[size]:
        terminal.start(term, colorterm, keys)
        got[keys] = terminal.settled(want.get(keys, ""))
        result(f"{name}, keys '{keys}'", UPDATE or got[keys] == want.get(keys), got[keys], want.get(keys, ""))
        result(f"{name}, keys '{keys}': its escape sequences", must_hold in got[keys], got[keys])
        result(f"{name}, keys '{keys}': no colours", kind != "mono" or not COLOUR.search(got[keys]))
        result(f"{name}, keys '{keys}': ends to the eighth of a cell", keys != "0" or re.search("[▏▎▍▌▋▊▉]", got[keys]))
    save(name, got)


for charset in ("utf8", "ascii"):
    for size in SIZES:
        plain_screens(charset, size)
def palette():
    """With 24 bits the palette is set to the modules' colours; how the program says so, up to its end."""
    output = b""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
        os.execv(PROGRAM, [PROGRAM, "view", DB, "--keys", "q"])
    while True:
        try:
            part = os.read(fd, 4096)
        except OSError:
            part = b""
        if not part:
            break
        output += part
    result("24 bits: the colours are set", os.waitpid(pid, 0)[1] == 0 and len(set(re.findall(rb"\x1b\]4;\d+;rgb:[\w/]+", output))) >= 20)


page_screens()
palette()
with tempfile.TemporaryDirectory() as folder:
    for size in SIZES:
        terminal = Terminal(folder, size)
        try:
            for kind in KINDS:
                colour_screens(terminal, kind, size)
        finally:
            terminal.end()
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0 or passed < 200)
