"""Lists the calls by which the sources look something up by a path: lines "FILE CALL".

What names its last part below an open folder, and follows no link there, is left out: it is safe by itself.
With --where, the place and the words of each call instead.
"""

import pathlib
import re
import sys

ROOMS = ("base", "perfdata", "decoder", "recorder", "triggers", "tracedb", "viewer")
CALLS = """open fopen freopen creat opendir scandir glob nftw ftw fts_open
    mkdir mkdtemp mkstemp mkostemp mknod mkfifo bind rename link symlink unlink rmdir remove truncate
    chmod chown lchown stat lstat access statfs statvfs readlink realpath utimensat execv execve execvp execvpe
    openat openat2 faccessat fchmodat fchownat fstatat linkat mkdirat mknodat readlinkat renameat renameat2 statx symlinkat
    unlinkat sqlite3_open_v2 elf_begin""".split()
# Without a link to follow: what they make or remove is the name itself.
NAMES_ALONE = {"linkat", "mkdirat", "mknodat", "renameat", "renameat2", "symlinkat", "unlinkat", "readlinkat"}
NO_LINK = re.compile(r"O_NOFOLLOW|AT_SYMLINK_NOFOLLOW|O_TMPFILE|RESOLVE_(BENEATH|NO_SYMLINKS)")
TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.DOTALL)
CALL = re.compile(r"(?<![\w.>])(%s)\(" % "|".join(CALLS))


def keep_lines(match):
    """A comment becomes its line ends; strings stay, for they say what is opened, without what looks like a call."""
    text = match.group()
    return "\n" * text.count("\n") if text.startswith("/") else text.replace("(", "<")


def arguments(text, start):
    depth = 1
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    return text[start:]


def is_safe(call, words):
    first, _, rest = words.partition(",")
    if not call.endswith(("at", "at2")) or call == "stat" or call == "lstat" or "AT_FDCWD" in words:
        return False
    return call in NAMES_ALONE or bool(NO_LINK.search(rest)) or rest.strip().startswith('"."')


def calls_of(path):
    text = TOKENS.sub(keep_lines, path.read_text())
    own = set(re.findall(r"^static [\w ]*?[\w*]+ \**(\w+)\(", text, re.MULTILINE))
    for match in CALL.finditer(text):
        call, words = match.group(1), " ".join(arguments(text, match.end()).split())
        if call not in own and not is_safe(call, words):
            yield call, words, text.count("\n", 0, match.start()) + 1


def main():
    for file in sorted(f for room in ROOMS for f in pathlib.Path(room).rglob("*.[ch]")):
        for call, words, line in calls_of(file):
            if sys.argv[1:] == ["--where"]:
                print(f"{file}:{line}: {call}({words})")
            else:
                print(file, call)


if __name__ == "__main__":
    main()
