#!/bin/bash
# Whoever owns a folder may put another file in the place of a name between two looks at it: what looks something up by a path stands in a list,
# with the reason why that is safe there (open_by_path.py finds it, in all rooms).
cd "$SOURCE" || exit 1
finder=tests/hostile/open_by_path.py list=tests/hostile/open_by_path.txt
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# What it takes for such a call, and what not.
mkdir -p "$work/recorder/sources/step"
cat >"$work/recorder/sources/step/calls.c" <<'EOF'
static int access(int what);
int two(const char *path) { return open(path, O_RDONLY) / (unlink(path) + rename(path, "chmod(x)")); }
/* stat(path) of a comment */ int three = fopen("/a//b", "w") || mkdir(path, f(0, 1));
int safe = openat(folder, name, O_NOFOLLOW | f(1)) + openat(folder, ".", O_TMPFILE) + unlinkat(folder, name, 0) + access(1) +
    ops->open(path) + fstatat(folder, name,
                              &st, AT_SYMLINK_NOFOLLOW) + renameat(folder, a, folder, b);
int unsafe = openat(folder, name, O_RDONLY) + unlinkat(AT_FDCWD, name, 0) + fstatat(folder, name, &st, 0) +
    fchownat(folder, name, uid, gid, 0);
EOF
found=$(cd "$work" && python3 "$SOURCE/$finder" | cut -d' ' -f2 | xargs)
expected="open unlink rename fopen mkdir openat unlinkat fstatat fchownat"
[ "$found" = "$expected" ] || fail "in an example it finds '$found', not '$expected'"

python3 $finder | sort -u >"$work/found"
grep -v '^#' $list | cut -d' ' -f1,2 | sort >"$work/listed"
[ "$(wc -l <"$work/found")" -gt 80 ] || fail "only $(wc -l <"$work/found") calls were found"
new=$(comm -23 "$work/found" "$work/listed")
[ -z "$new" ] || fail "these look something up by a path and are not in $list; use base/infile.h or base/folder.h:
$new"
old=$(comm -13 "$work/found" "$work/listed")
[ -z "$old" ] || fail "these are in $list, and there is no such call:
$old"
bare=$(grep -v '^#' $list | grep -vE '^[^ ]+ [^ ]+ [^ ]')
[ -z "$bare" ] || fail "these have no reason:
$bare"
[ $failures = 0 ] || exit 1
echo "all of $(wc -l <"$work/found") are in the list"
