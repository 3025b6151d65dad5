# fish completion for onnxvram: the program says what a word may become; files where it says nothing

function __onnxvram_complete
    set -l words (commandline -opc) (commandline -ct)
    onnxvram complete $words[2..-1] 2>/dev/null
end

complete -c onnxvram -a '(__onnxvram_complete)'
