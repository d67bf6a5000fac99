# bash completion of stalltrap: the program itself says what may stand there.

# The words of the line up to the cursor, without their quotes, into _stalltrap_words; bash's own COMP_WORDS cuts at ':' and '='.
# _stalltrap_quote is the quote that is still open.
_stalltrap_split() { # LINE
    local line=$1 word='' begun='' i char
    _stalltrap_words=()
    _stalltrap_quote=''
    for ((i = 0; i < ${#line}; i++)); do
        char=${line:i:1}
        if [[ -n $_stalltrap_quote && $char == "$_stalltrap_quote" ]]; then
            _stalltrap_quote=''
        elif [[ $char == \\ && $_stalltrap_quote != \' ]]; then
            ((++i))
            word+=${line:i:1} begun=1
        elif [[ -z $_stalltrap_quote && $char == [\'\"] ]]; then
            _stalltrap_quote=$char begun=1
        elif [[ -z $_stalltrap_quote && $char == [[:space:]] ]]; then
            [[ -z $begun ]] || _stalltrap_words+=("$word")
            word='' begun=''
        else
            word+=$char begun=1
        fi
    done
    _stalltrap_words+=("$word")
}

# What the shell is to list itself. The command's place counts from the program's name as 0.
_stalltrap_directive() { # WHAT ARGUMENT WORD
    local path
    case $1 in
    folders) COMPREPLY=($(compgen -d -- "$3")) ;;
    files)
        compopt -o filenames
        while IFS= read -r path; do
            [[ -d $path || $path == *"$2" ]] && COMPREPLY+=("$path")
        done < <(compgen -f -- "$3")
        ;;
    command)
        if declare -F _command_offset >/dev/null; then
            # Its place among bash's own words.
            local at
            for ((at = 1; at < COMP_CWORD; at++)); do
                [[ ${COMP_WORDS[at]} != -- ]] || break
            done
            _command_offset $((at + 1))
        else
            while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -c -- "$3")
        fi
        ;;
    esac
}

_stalltrap() {
    local _stalltrap_words _stalltrap_quote word about rest cut=''
    _stalltrap_split "${COMP_LINE:0:COMP_POINT}"
    # Variables may be set before the command.
    while [[ ${#_stalltrap_words[@]} -gt 2 && ${_stalltrap_words[0]} != "$1" && ${_stalltrap_words[0]} == *=* ]]; do
        _stalltrap_words=("${_stalltrap_words[@]:1}")
    done
    local last=${_stalltrap_words[-1]}
    # readline replaces only what follows the last ':' or '=' outside of quotes.
    [[ -n $_stalltrap_quote || $last != *[:=]* ]] || cut=${last%"${last##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r rest; do
        if [[ $rest == $'\t'* ]]; then
            rest=${rest#$'\t'}
            _stalltrap_directive "${rest%%$'\t'*}" "${rest#*$'\t'}" "${last#"$cut"}"
            continue
        fi
        word=${rest%%$'\t'*}
        [[ $word != *[:\>=/] ]] || compopt -o nospace
        word=${word#"$cut"}
        [[ -n $_stalltrap_quote ]] || {
            printf -v word %q "$word"
            word=${word//\\,/,}
        }
        COMPREPLY+=("$word")
    done < <("${_stalltrap_words[0]/#\~\//$HOME/}" complete "${_stalltrap_words[@]:1}" 2>/dev/null)
}
complete -F _stalltrap stalltrap
