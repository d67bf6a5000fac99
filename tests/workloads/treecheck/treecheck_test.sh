#!/bin/sh
# Tests treecheck itself: the canonical form, tail calls, logs, and that it finds what differs.
# usage: treecheck_test.sh TREECHECK
set -u
treecheck=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
expect() { # expect NAME STATUS COMMAND...: compares the output with the file "expected"
    name=$1 status=$2
    shift 2
    "$@" >got 2>error
    found=$?
    if [ $found -ne "$status" ] || ! cmp -s expected got; then
        echo "FAIL $name: exit status $found, expected $status"
        diff expected got
        cat error
        failed=1
    fi
}

cat >tree <<'T'
thread b
  main
    twice x2
      leaf
      leaf
    once
thread a
  start
T
cat >expected <<'T'
thread a
  start
thread b
  main
    twice x2
      leaf x2
    once
T
expect "canonical form" 0 "$treecheck" canon tree
cat >unfolded <<'T'
thread a
  start
thread b
  main
    twice
      leaf x2
    twice
      leaf
      leaf
    once
T
: >expected
expect "equal trees" 0 "$treecheck" compare tree unfolded
sed 's/once/more/' tree >other
expect "another name" 1 "$treecheck" compare tree other
grep -q '^- .*once' error && grep -q '^+ .*more' error || { echo "FAIL: the difference is not shown"; failed=1; }
sed 's/twice x2/twice/' tree >other
expect "a call less" 1 "$treecheck" compare tree other
sed 's/^    once/  once/' tree >other
expect "another depth" 1 "$treecheck" compare tree other
grep -v start tree >other
expect "a thread less" 1 "$treecheck" compare tree other
expect "no file" 2 "$treecheck" compare tree nowhere
printf 'thread a\n      deep\n' >other
expect "an indent without parent" 1 "$treecheck" canon other
printf '  main\n' >other
expect "no block" 1 "$treecheck" canon other
printf 'thread a\n  two words\n' >other
expect "two words" 1 "$treecheck" canon other

cat >tails <<'T'
thread t
  main
    first
      plain
      second [tail]
        third [tail]
    last
T
cat >expected <<'T'
thread t
  main
    first
      plain
    second
    third
    last
T
expect "tails as siblings" 0 "$treecheck" --tails sibling canon tails
cat >expected <<'T'
thread t
  main
    first
      plain
      second
        third
    last
T
expect "tails nested" 0 "$treecheck" --tails nested canon tails
cp tails expected
expect "tails kept" 0 "$treecheck" canon tails
cat >expected <<'T'
thread t
  main
    plain
    second [tail]
      third [tail]
    last
T
expect "a call removed" 0 "$treecheck" --without first canon tails
printf '%s\n' main first plain second third last >expected
expect "flat" 0 "$treecheck" flat tails

# outer is left by a longjmp: after stands at its place (frame ff0), so it is main's child
cat >log <<'T'
N 1 0 prog -
E 1 1000 prog main
E 1 ff0 prog outer
E 1 fe0 prog inner
E 1 ff0 prog after
X 1 ff0 prog after
E 2 2000 child work
X 1 1000 prog main
N 2 0 target -
E 2 3000 target main
T
cat >expected <<'T'
thread prog
  main
    outer
      inner
    after
thread target
  work
  main
T
expect "a log" 0 "$treecheck" log log
# a handler on a stack of its own is left by siglongjmp
cat >log <<'T'
S 1 9000 1000 -
S 1 5000 1000 co
E 1 1000 prog main
E 1 ff0 prog raiser
E 1 9800 prog handler
E 1 ff0 prog after
E 1 5800 prog entry
E 1 fe0 prog deeper
E 1 5700 prog step
T
cat >expected <<'T'
stack co
  entry
    step
thread prog
  main
    raiser
      handler
    after
      deeper
T
expect "stacks" 0 "$treecheck" log log
: >expected
echo rubbish >log
expect "a log that is none" 1 "$treecheck" log log
expect "no command" 2 "$treecheck"
exit $failed
