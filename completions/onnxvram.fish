# fish completion for onnxvram: the program says what a word may become; files where it says nothing

function __onnxvram_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (onnxvram complete $words[2..-1] 2>/dev/null)
    set -l option (string match -r -- '^--[^=]*=' $words[-1])
    if set -q found[1]
        printf '%s\n' $found
    else
        printf "$option%s\n" (__fish_complete_path (string replace -- "$option" '' $words[-1]))
    end
end

complete -c onnxvram -f -a '(__onnxvram_complete)'
