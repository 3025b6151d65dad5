# fish completion for onnxvram

complete -c onnxvram -f
complete -c onnxvram -k -a '(__fish_complete_suffix .onnx)'
complete -c onnxvram -s b -l batch -x -d 'The batch size'
complete -c onnxvram -s d -l dim -x -d 'Bind a symbolic dimension: NAME=N'
complete -c onnxvram -s s -l shape -x -d 'Give the whole shape of an input: INPUT=AxBxC'
complete -c onnxvram -s i -l input-value -x -d 'Give the value of an input: NAME=V,V,... or NAME=@FILE'
complete -c onnxvram -l json -d 'Everything, as JSON (=FILE)'
complete -c onnxvram -l csv -d 'One row per tensor, as CSV (=FILE)'
complete -c onnxvram -l layers -d 'A table per module (=DEPTH)'
complete -c onnxvram -l dump -x -a 'graph intervals trace' -d 'What stands between the passes'
complete -c onnxvram -l top -x -d 'How many of the largest tensors to list'
complete -c onnxvram -l color -x -a 'auto always never' -d 'When to use colors'
complete -c onnxvram -s q -l quiet -d 'Only the figures'
complete -c onnxvram -s v -l verbose -d 'Every diagnostic and every row'
complete -c onnxvram -l version -d 'Print the version'
complete -c onnxvram -s h -l help -d 'Print a summary of the options'
