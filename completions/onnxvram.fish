# fish completion for onnxvram

# The names of GPUs, a word each.
function __onnxvram_gpus
    onnxvram --list-gpus 2>/dev/null | sed '1d; s/  .*//; s/ /-/g'
end

# Items of a list with commas: the last one is completed.
function __onnxvram_list
    set -l before (commandline -ct | string replace -r '^--[a-z-]+=' '' | string match -r '^.*,')
    for item in $argv
        echo "$before$item"
    end
end

set -l tools plan simulate
set -l analyse "not __fish_seen_subcommand_from $tools"
set -l runtimes 'ideal arena torch ort async'
set -l allocators 'ideal arena torch torch-expandable bfc bfc-same pattern async raw'

complete -c onnxvram -f
complete -c onnxvram -s h -l help -d 'Print a summary of the options'

complete -c onnxvram -n __fish_use_subcommand -a diff -d 'What changed between two models'
complete -c onnxvram -n __fish_use_subcommand -a plan -d 'Find an offset for every buffer'
complete -c onnxvram -n __fish_use_subcommand -a simulate -d 'Run a trace through an allocator'
complete -c onnxvram -n $analyse -k -a '(__fish_complete_suffix .onnx)'
complete -c onnxvram -n $analyse -s b -l batch -x -d 'The batch size'
complete -c onnxvram -n $analyse -s d -l dim -x -d 'Bind a symbolic dimension: NAME=N'
complete -c onnxvram -n $analyse -s s -l shape -x -d 'Give the whole shape of an input: INPUT=AxBxC'
complete -c onnxvram -n $analyse -s i -l input-value -x -d 'Give the value of an input: NAME=V,V,... or NAME=@FILE'
complete -c onnxvram -n $analyse -l op-shapes -r -F -d 'shape rules for custom operators'
complete -c onnxvram -n $analyse -l precision -x -a 'fp32 fp16 bf16' -d 'As if the float tensors were cast'
complete -c onnxvram -n $analyse -l order -x -a 'model ort greedy optimal' -d 'The order of execution'
complete -c onnxvram -n $analyse -l runtime -x -a "(__onnxvram_list $runtimes)" -d 'Runtimes to simulate'
complete -c onnxvram -n $analyse -l budget -x -a '(__onnxvram_list (__onnxvram_gpus))' -d 'Memory to fit'
complete -c onnxvram -n $analyse -l ort -x -d 'A setting of ONNX Runtime: KEY=VALUE' -a 'graph_optimization_level= arena_extend_strategy= gpu_mem_limit= cudnn_conv_algo_search= cudnn_conv_use_max_workspace= use_tf32= enable_mem_pattern= enable_mem_reuse= session.use_device_allocator_for_initializers='
complete -c onnxvram -n $analyse -l ort-advise -d 'Settings of ONNX Runtime side by side'
complete -c onnxvram -n $analyse -l ort-partition -r -d 'Bytes by node for ONNX Runtime'
complete -c onnxvram -n $analyse -l shape-trace -r -d 'Requests to one session of ONNX Runtime'
complete -c onnxvram -n $analyse -l together -d 'Sessions of ONNX Runtime in one process'
complete -c onnxvram -n $analyse -l untrusted -d 'for untrusted files'
complete -c onnxvram -n $analyse -l no-external-data -d 'Open no file beside that of the model'
complete -c onnxvram -n $analyse -l limit -x -d 'safety limits: NAME=N' -a 'nodes= values= nesting= function-depth= attr-elems= name-bytes= memory= file-bytes= known-elems= expression= node-runs= output= seconds='
complete -c onnxvram -n $analyse -l pytorch -x -a '2.15 2.14 2.13 2.12 2.11 2.10 2.9 2.8 2.7 2.6 2.5 2.4 2.3 2.2 2.1 2.0 1.13 1.12 1.11 1.10 1.9' -d 'The release whose rules apply'
complete -c onnxvram -n $analyse -l gpu -x -a '(__onnxvram_gpus)' -d 'Whose libraries take workspaces'
complete -c onnxvram -n $analyse -l channels-last -d 'Tensors of convolutions lie in channels_last'
complete -c onnxvram -n $analyse -l no-tf32 -d 'Convolutions do not use TF32'
complete -c onnxvram -n $analyse -l cudnn-benchmark -d 'The first iteration tries all kernels of cuDNN'
complete -c onnxvram -n $analyse -l margin -x -d 'Percent of the budget to keep free'
complete -c onnxvram -n $analyse -l max-batch -d 'The largest batch that fits the budget'
complete -c onnxvram -n $analyse -l replay -a 'cuda host' -d 'Make the allocations on a device and compare (=DEVICE)'
complete -c onnxvram -n $analyse -l list-gpus -d 'List the GPUs that a budget may name'
complete -c onnxvram -n $analyse -l train -x -a 'sgd momentum nesterov adam adamw adam8bit rmsprop adagrad adafactor lion lamb' -d 'What training would need'
complete -c onnxvram -n $analyse -l amp -x -a 'fp16 bf16' -d 'Mixed precision'
complete -c onnxvram -n $analyse -l loss -x -a 'cross-entropy fused-cross-entropy chunked-cross-entropy mse none' -d 'The loss'
complete -c onnxvram -n $analyse -l freeze -x -d 'Parameters that are not trained'
complete -c onnxvram -n $analyse -l train-only -x -d 'The only parameters that are trained'
complete -c onnxvram -n $analyse -l inplace -d 'Activations that overwrite their input (=PATTERN)'
complete -c onnxvram -n $analyse -l attention-dropout -x -d 'Dropout inside attention'
complete -c onnxvram -n $analyse -l accumulate -x -d 'Batches per step'
complete -c onnxvram -n $analyse -l zero -x -a '1 2 3' -d 'ZeRO stage'
complete -c onnxvram -n $analyse -l world -x -d 'Devices'
complete -c onnxvram -n $analyse -l ddp -d 'DistributedDataParallel (=copy, =view)'
complete -c onnxvram -n $analyse -l fsdp -d 'fully_shard of modules (=PATTERN,...)'
complete -c onnxvram -n $analyse -l master-weights -d 'Float32 copies of 16-bit parameters'
complete -c onnxvram -n $analyse -l offload -x -a 'optimizer gradients' -d 'What is on the host'
complete -c onnxvram -n $analyse -l ema -d 'A moving average of the parameters'
complete -c onnxvram -n $analyse -l weights -x -a 'int8 int4 nf4' -d 'Linear layers in fewer bits'
complete -c onnxvram -n $analyse -l kv-cache -x -a 'copies shared' -d 'How the key-value cache is held'
complete -c onnxvram -n $analyse -l pool -x -d 'Cached before by the allocator'
complete -c onnxvram -n $analyse -l as-exported -d 'The operators of the export'
complete -c onnxvram -n $analyse -l folded-norms -d 'Norms that the export folded are folded in the network'
complete -c onnxvram -n $analyse -l graph-module -d 'The network is a torch.fx.GraphModule'
complete -c onnxvram -n $analyse -l no-fast-path -d 'Layers of nn.TransformerEncoder run operation by operation'
complete -c onnxvram -n $analyse -l attention -x -a 'auto math flash efficient' -d 'How attention runs'
complete -c onnxvram -n $analyse -l locals -d 'Names of modules hold values until their calls return'
complete -c onnxvram -n $analyse -l zero-grad -x -a 'before-forward before-backward keep' -d 'Where gradients are freed'
complete -c onnxvram -n $analyse -l optimizer-impl -x -a 'foreach fused for-loop' -d 'How the optimizer works'
complete -c onnxvram -n $analyse -l checkpoint -x -a '(__onnxvram_list all none sqrt every= segments= blocks optimal offload joint)' -d 'Checkpointing plans'
complete -c onnxvram -n $analyse -l compile -d 'Training under torch.compile (=BUDGET)'
complete -c onnxvram -n $analyse -l plan-out -r -d 'Write the checkpointing plan'
complete -c onnxvram -n $analyse -l json -d 'Everything, as JSON (=FILE)'
complete -c onnxvram -n $analyse -l csv -d 'One row per tensor, as CSV (=FILE)'
complete -c onnxvram -n $analyse -l layers -d 'A table per module (=DEPTH)'
complete -c onnxvram -n $analyse -l format -x -a 'text markdown' -d 'Of the report'
complete -c onnxvram -n $analyse -l baseline -r -d 'A report of before to compare with'
complete -c onnxvram -n $analyse -l max-growth -x -d 'Exit status 3 if a figure grew by more'
complete -c onnxvram -n $analyse -l max-dim -x -d 'The largest size of a dimension that fits'
complete -c onnxvram -n $analyse -l formula -d 'Peak and totals as functions of the free dims (=text, python, c)'
complete -c onnxvram -n $analyse -l onnx-out -r -d 'The model with shapes, bytes and steps'
complete -c onnxvram -n $analyse -l dump -x -a 'graph intervals plan header trace replay' -d 'Intermediate data'
complete -c onnxvram -n $analyse -l top -x -d 'How many of the largest tensors to list'
complete -c onnxvram -n $analyse -l color -x -a 'auto always never' -d 'When to use colors'
complete -c onnxvram -n $analyse -s q -l quiet -d 'Only the figures'
complete -c onnxvram -n $analyse -s v -l verbose -d 'Every diagnostic and every row'
complete -c onnxvram -n $analyse -l version -d 'Print the version'

complete -c onnxvram -n "not __fish_seen_subcommand_from simulate" -l align -x -d 'Offsets are multiples of it'
complete -c onnxvram -n "not __fish_seen_subcommand_from simulate" -l effort -x -d 'How much work a search may do'
complete -c onnxvram -n "not __fish_seen_subcommand_from plan" -l expandable-segments -d 'A setting of the allocator of PyTorch'

complete -c onnxvram -n "__fish_seen_subcommand_from $tools" -k -a '(__fish_complete_suffix .csv)'
complete -c onnxvram -n "__fish_seen_subcommand_from $tools" -l capacity -x -d 'Bytes of the device'
complete -c onnxvram -n "__fish_seen_subcommand_from plan" -s o -r -d 'Where the plan goes'
complete -c onnxvram -n "__fish_seen_subcommand_from simulate" -s r -l runtime -x -a $allocators -d 'The allocators'
complete -c onnxvram -n "__fish_seen_subcommand_from simulate" -l summary -d 'What each allocator held in the end'
complete -c onnxvram -n "__fish_seen_subcommand_from simulate" -l header -d 'A line of column names first'
