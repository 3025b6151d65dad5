# bash completion for onnxvram: the program says what a word may become; files where it says nothing

_onnxvram() {
    local line=${COMP_LINE:0:COMP_POINT} word
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    word=${words[-1]}
    mapfile -t COMPREPLY < <(onnxvram complete "${words[@]:1}" 2>/dev/null | cut -f 1)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    # "=" begins a word for readline.
    [[ $word == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%=*}="}")
    return 0
}

complete -o default -F _onnxvram onnxvram
