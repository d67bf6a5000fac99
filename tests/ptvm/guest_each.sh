# guest_each.sh COMMAND...: runs each of them, a word that holds a command with its arguments, in one boot of the machine.
failed=
for command; do
    begin=$SECONDS
    # shellcheck disable=SC2086 # the words of a command are meant to be split
    if $command; then
        echo "== $command: passed, $((SECONDS - begin)) s"
    else
        echo "== $command: FAILED, $((SECONDS - begin)) s"
        failed="$failed '$command'"
    fi
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
