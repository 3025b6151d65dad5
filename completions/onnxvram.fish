# fish completion for onnxvram

set -l tools plan simulate
set -l analyse "not __fish_seen_subcommand_from $tools"
set -l runtimes 'ideal arena torch ort async'
set -l allocators 'ideal arena torch torch-expandable bfc bfc-same pattern async raw'

complete -c onnxvram -f
complete -c onnxvram -s h -l help -d 'Print a summary of the options'

complete -c onnxvram -n __fish_use_subcommand -a plan -d 'Find an offset for every buffer'
complete -c onnxvram -n __fish_use_subcommand -a simulate -d 'Run a trace through an allocator'
complete -c onnxvram -n $analyse -k -a '(__fish_complete_suffix .onnx)'
complete -c onnxvram -n $analyse -s b -l batch -x -d 'The batch size'
complete -c onnxvram -n $analyse -s d -l dim -x -d 'Bind a symbolic dimension: NAME=N'
complete -c onnxvram -n $analyse -s s -l shape -x -d 'Give the whole shape of an input: INPUT=AxBxC'
complete -c onnxvram -n $analyse -s i -l input-value -x -d 'Give the value of an input: NAME=V,V,... or NAME=@FILE'
complete -c onnxvram -n $analyse -l op-shapes -r -F -d 'Teach operators that are not known'
complete -c onnxvram -n $analyse -l precision -x -a 'fp32 fp16 bf16' -d 'As if the float tensors were cast'
complete -c onnxvram -n $analyse -l order -x -a 'model ort greedy optimal' -d 'The order of execution'
complete -c onnxvram -n $analyse -l runtime -x -a $runtimes -d 'Whose memory to work out'
complete -c onnxvram -n $analyse -l budget -x -d 'Memory to fit'
complete -c onnxvram -n $analyse -l margin -x -d 'Percent of the budget to keep free'
complete -c onnxvram -n $analyse -l max-batch -d 'The largest batch that fits the budget'
complete -c onnxvram -n $analyse -l list-gpus -d 'List the GPUs that a budget may name'
complete -c onnxvram -n $analyse -l json -d 'Everything, as JSON (=FILE)'
complete -c onnxvram -n $analyse -l csv -d 'One row per tensor, as CSV (=FILE)'
complete -c onnxvram -n $analyse -l layers -d 'A table per module (=DEPTH)'
complete -c onnxvram -n $analyse -l dump -x -a 'graph intervals plan trace' -d 'What stands between the passes'
complete -c onnxvram -n $analyse -l top -x -d 'How many of the largest tensors to list'
complete -c onnxvram -n $analyse -l color -x -a 'auto always never' -d 'When to use colors'
complete -c onnxvram -n $analyse -s q -l quiet -d 'Only the figures'
complete -c onnxvram -n $analyse -s v -l verbose -d 'Every diagnostic and every row'
complete -c onnxvram -n $analyse -l version -d 'Print the version'

complete -c onnxvram -n "not __fish_seen_subcommand_from simulate" -l effort -x -d 'How much work a search may do'
complete -c onnxvram -n "not __fish_seen_subcommand_from plan" -l expandable-segments -d 'A setting of the allocator of PyTorch'

complete -c onnxvram -n "__fish_seen_subcommand_from $tools" -k -a '(__fish_complete_suffix .csv)'
complete -c onnxvram -n "__fish_seen_subcommand_from $tools" -l capacity -x -d 'Bytes of the device'
complete -c onnxvram -n "__fish_seen_subcommand_from plan" -s o -r -d 'Where the plan goes'
complete -c onnxvram -n "__fish_seen_subcommand_from simulate" -s r -l runtime -x -a $allocators -d 'The allocators'
complete -c onnxvram -n "__fish_seen_subcommand_from simulate" -l summary -d 'What each allocator held in the end'
complete -c onnxvram -n "__fish_seen_subcommand_from simulate" -l header -d 'A line of column names first'
