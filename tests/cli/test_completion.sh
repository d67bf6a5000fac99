#!/bin/bash
# What bash, zsh and fish offer behind `stalltrap`: subcommands, options and their words, triggers, reports, processes, files.
set -u
. "$SOURCE/tests/cli/lib.sh"
for shell in zsh fish; do
    command -v $shell >/dev/null || { echo "SKIP: $shell is not installed"; exit 77; }
done
mkdir bin files
ln -s "$STALLTRAP" bin/stalltrap
export PATH=$work/bin:$PATH HOME=$work XDG_CONFIG_HOME=$work XDG_CACHE_HOME=$work XDG_DATA_HOME=$work
touch files/one.db files/two.data files/three.txt
ln -s "$(command -v sleep)" bin/waits-long
start bin/waits-long 1000
cd files || exit 1

# A line each: what is written, and words that are offered, or "!WORD" for one that is not.
cat >../cases <<'END'
stalltrap |arm snap watch decode view query report export doctor !complete !decode-worker
stalltrap re|report !arm
stalltrap arm --s|--source --snapshots --syscalls !--on
stalltrap arm --no-|--no-kernel --no-decode
stalltrap arm --source |auto intel-pt sample step
stalltrap arm --callgraph d|dwarf !fp
stalltrap arm -q --rings |thread cpu
stalltrap arm --on 'of|offcpu>
stalltrap watch --on 's|syscall: syscall> socket> softirq> !offcpu>
stalltrap arm --on 'offcpu>2|offcpu>20ms !offcpu>worst
stalltrap arm --on 'offcpu>20ms,s|offcpu>20ms,state= !offcpu>20ms,idle=
stalltrap arm --on 'offcpu>20ms,state=blocked+s|offcpu>20ms,state=blocked+sleeping
stalltrap arm --on 'syscall:fsyn|syscall:fsync>
stalltrap arm --mark w|write: !offcpu>
stalltrap watch -p PID|PID
stalltrap watch --comm waits-l|waits-long
stalltrap decode --dump |branches calls packets samples
stalltrap decode |two.data !one.db !three.txt
stalltrap view |one.db !two.data !three.txt
stalltrap report one.db t|top tree tenancy !offcpu
stalltrap query one.db --format |table csv json
stalltrap export one.db --to s|speedscope svg !html
stalltrap arm -- waits-l|waits-long
END
sed -i "s/PID/$pid/g" ../cases

# Each asks for all lines, and leaves the answers in SHELL.1, SHELL.2 ...
bash_session() {
    bash --norc --noprofile -c '
        compopt() { :; }
        . "$SOURCE/completions/stalltrap.bash"
        [ "$(complete -p stalltrap)" = "complete -F _stalltrap stalltrap" ] || exit 1
        number=0
        while IFS="|" read -r COMP_LINE words; do
            COMP_POINT=${#COMP_LINE}
            _stalltrap stalltrap
            printf "%s\n" "${COMPREPLY[@]}" >"../bash.$((++number))"
        done <'"$1"
}
fish_session() {
    fish --no-config -c '
        source $SOURCE/completions/stalltrap.fish
        set number 0
        while read -l -d "|" line words
            set number (math $number + 1)
            complete -C $line | string replace -r "\t.*" "" >../fish.$number
        end <'"$1"
}
# In a terminal of its own, with compadd telling what it is given; all lines in one session.
zsh_session() {
    cat >../session.zsh <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
tell() { zpty -w shell "$1" }
tell 'PROMPT= RPROMPT= ; stty -echo; unsetopt zle_bracketed_paste prompt_cr prompt_sp; fpath=($SOURCE/completions $fpath)'
tell 'autoload -U compinit; compinit -u -D'
tell 'zstyle ":completion:*" completer _complete'
tell 'compadd() { [[ " $* " == *" -"[OAD]" "* ]] && { builtin compadd "$@"; return }; local -a hits; builtin compadd -O hits "$@"; print -rl -- "offered "${^hits} >>$offers; builtin compadd "$@"; }'
tell 'ask() { compstate[insert]= ; _main_complete; compstate[insert]= ; compstate[list]= ; print END >>$offers; zle -R; }; zle -C ask complete-word ask; bindkey "^T" ask; bindkey "^X" kill-whole-line'
number=0
while IFS= read -r line; do
    offers=$PWD/../zsh.$((++number))
    tell "offers=$offers"
    zpty -w -n shell "$line"$'\C-t'
    for ((wait = 0; wait < 1200; wait++)); do
        grep -qsx END $offers && break
        zpty -r -t shell output; sleep 0.05
    done
    zpty -w -n shell $'\C-x'
done
zpty -d shell
END
    cut -d '|' -f 1 "$1" | zsh -f ../session.zsh
    sed -i -n 's/^offered //p' ../zsh.*
}

for shell in bash fish zsh; do
    ${shell}_session ../cases 2>../complaints || fail "$shell ends with $?" ../complaints
done
number=0
while IFS='|' read -r line words; do
    ((++number))
    for shell in bash fish zsh; do
        offered=../$shell.$number
        [ -s "$offered" ] || fail "$shell offers nothing behind '$line'" ../complaints
        for word in $words; do
            case $word in
            !*) ! grep -Fqx -e "${word#!}" "$offered" || fail "$shell offers ${word#!} behind '$line'" "$offered" ;;
            *) grep -Fqx -e "$word" "$offered" || fail "$shell does not offer $word behind '$line'" "$offered" ;;
            esac
        done
    done
done <../cases

# Without quotes bash replaces only what follows the last ':' or '=', and what is offered must come through the shell.
cat >../cases <<'END'
stalltrap arm --on syscall:fsyn|fsync\>
stalltrap arm --on offcpu\>20ms,state=sl|sleeping
stalltrap arm --on offc|offcpu\>
A=1 stalltrap arm --source=st|step
END
sed 's/.*|//' ../cases >../expected
rm -f ../bash.*
bash_session ../cases
cat ../bash.[1-4] | diff ../expected - >../differences || fail "what bash offers without quotes" ../differences
