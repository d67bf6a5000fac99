# fish completion of stalltrap: the program itself says what may stand there.
function __stalltrap_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct | string replace -r '^[\'"]' '' | string unescape)
    test -n "$last"; or set last ''
    for line in ($words[1] complete $words[2..-1] $last 2>/dev/null)
        set -l part (string split \t -- $line)
        if test -n "$part[1]"
            echo $line
        else if test "$part[2]" = files
            for path in $last*
                if test -d $path
                    echo $path/
                else if string match -q -- "*$part[3]" $path
                    echo $path
                end
            end
        else if test "$part[2]" = folders
            __fish_complete_directories $last
        else if test "$part[2]" = command
            set -l at (math $part[3] + 1)
            if test (count $words) -lt $at
                complete -C "$last"
            else
                complete -C (string join -- ' ' (string escape -- $words[$at..-1]) (string escape -- $last))
            end
        end
    end
end
complete -c stalltrap -f -a '(__stalltrap_complete)'
