# bash completion for onnxvram

_onnxvram() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local options='-b --batch -d --dim -s --shape -i --input-value --json --csv --layers --dump
        --top --color -q --quiet -v --verbose --version -h --help'

    # "=" is a word of its own for readline.
    local option=$prev
    if [[ $cur == '=' ]]; then
        cur=
    elif [[ $prev == '=' ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi

    case $option in
    --color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$cur") ;;
    --dump) mapfile -t COMPREPLY < <(compgen -W 'graph intervals trace' -- "$cur") ;;
    -b | --batch | -d | --dim | -s | --shape | -i | --input-value | --top) COMPREPLY=() ;;
    *)
        if [[ $cur == -* && $option == "$prev" ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        elif [[ $prev == '=' || ${COMP_WORDS[COMP_CWORD]} == '=' ]]; then
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        else
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -d -- "$cur"; compgen -f -X '!*.onnx' -- "$cur")
        fi
        ;;
    esac
}

complete -F _onnxvram onnxvram
