# bash completion for onnxvram

# The names of GPUs, a word each.
_onnxvram_gpus() {
    onnxvram --list-gpus 2>/dev/null | sed '1d; s/  .*//; s/ /-/g'
}

# Items of a list with commas: the last one is completed.
_onnxvram_list() {
    local cur=$1 before=
    if [[ $cur == *,* ]]; then before=${cur%,*},; fi
    compopt -o nospace 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$2" -- "${cur##*,}")
}

_onnxvram() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local options='-b --batch -d --dim -s --shape -i --input-value --op-shapes --program --precision --order
        --runtime --effort --jobs --limit --no-external-data --untrusted --expandable-segments --pytorch --gpu --channels-last --no-tf32 --cudnn-benchmark --ort --ort-advise --ort-partition --shape-trace --together --budget --margin --max-batch --list-gpus --replay
        --train --amp --loss --freeze --train-only --inplace --parameters --buffers --attention-dropout --accumulate --zero --world --ddp --fsdp --master-weights
        --offload --ema --weights --kv-cache --pool --as-exported --folded-norms --graph-module --no-fast-path --attention --locals --zero-grad
        --optimizer-impl --checkpoint --plan --plan-out --compile --json --html --svg --memory-viz --perfetto --model-explorer --timelines --csv
        --layers --formula --format --baseline --snapshot --measured --max-growth --max-dim --onnx-out --align --dump --top --color -q --quiet --strict -v --verbose --version -h --help'
    local files='*.onnx' runtimes='ideal arena torch ort async'

    case ${COMP_WORDS[1]} in
    attach)
        options='-o -h --help'
        files='*'
        ;;
    plan)
        options='--capacity --effort --align -o -h --help'
        files='*.csv'
        ;;
    simulate)
        runtimes='ideal arena torch torch-expandable bfc bfc-same pattern async raw'
        options='-r --runtime --capacity --summary --header --expandable-segments -h --help'
        files='*.csv'
        ;;
    esac

    # "=" is a word of its own for readline.
    local option=$prev
    if [[ $cur == '=' ]]; then
        cur=
    elif [[ $prev == '=' ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $prev == --replay || $prev == --ddp || $prev == --formula ]]; then
        option= # its value comes with "=" only; this is a model
    fi

    case $option in
    --color) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$cur") ;;
    --kv-cache) mapfile -t COMPREPLY < <(compgen -W 'copies shared' -- "$cur") ;;
    --format) mapfile -t COMPREPLY < <(compgen -W 'text markdown' -- "$cur") ;;
    --formula) mapfile -t COMPREPLY < <(compgen -W 'text python c' -- "$cur") ;;
    --dump) mapfile -t COMPREPLY < <(compgen -W 'graph program intervals plan header trace replay' -- "$cur") ;;
    --replay) mapfile -t COMPREPLY < <(compgen -W 'cuda host' -- "$cur") ;;
    -r | --runtime) _onnxvram_list "$cur" "$runtimes" ;;
    --budget) _onnxvram_list "$cur" "$(_onnxvram_gpus)" ;;
    --gpu) mapfile -t COMPREPLY < <(compgen -W "$(_onnxvram_gpus)" -- "$cur") ;;
    --train)
        mapfile -t COMPREPLY < <(compgen -W 'sgd momentum nesterov adam adamw adam8bit rmsprop adagrad adafactor lion lamb' -- "$cur")
        ;;
    --amp) mapfile -t COMPREPLY < <(compgen -W 'fp16 bf16' -- "$cur") ;;
    --loss) mapfile -t COMPREPLY < <(compgen -W 'cross-entropy fused-cross-entropy chunked-cross-entropy mse none' -- "$cur") ;;
    --zero) mapfile -t COMPREPLY < <(compgen -W '1 2 3' -- "$cur") ;;
    --ddp) mapfile -t COMPREPLY < <(compgen -W 'copy view' -- "$cur") ;;
    --offload) mapfile -t COMPREPLY < <(compgen -W 'optimizer gradients' -- "$cur") ;;
    --weights) mapfile -t COMPREPLY < <(compgen -W 'int8 int4 nf4' -- "$cur") ;;
    --precision) mapfile -t COMPREPLY < <(compgen -W 'fp32 fp16 bf16' -- "$cur") ;;
    --order) mapfile -t COMPREPLY < <(compgen -W 'model ort greedy optimal' -- "$cur") ;;
    --pytorch)
        mapfile -t COMPREPLY < <(compgen -W '2.15 2.14 2.13 2.12 2.11 2.10 2.9 2.8 2.7 2.6 2.5 2.4 2.3 2.2 2.1 2.0 1.13 1.12 1.11 1.10 1.9' -- "$cur")
        ;;
    --ort)
        compopt -o nospace
        mapfile -t COMPREPLY < <(
            compgen -S = -W 'graph_optimization_level arena_extend_strategy gpu_mem_limit cudnn_conv_algo_search
                cudnn_conv_use_max_workspace cudnn_conv1d_pad_to_nc1d fuse_conv_bias prefer_nhwc use_tf32
                enable_mem_pattern enable_mem_reuse session.use_device_allocator_for_initializers
                session.disable_prepacking session.use_deterministic_compute
                optimization.enable_gelu_approximation' -- "$cur"
        )
        ;;
    --attention) mapfile -t COMPREPLY < <(compgen -W 'auto math flash efficient' -- "$cur") ;;
    --zero-grad) mapfile -t COMPREPLY < <(compgen -W 'before-forward before-backward keep' -- "$cur") ;;
    --optimizer-impl) mapfile -t COMPREPLY < <(compgen -W 'foreach fused for-loop' -- "$cur") ;;
    --checkpoint)
        _onnxvram_list "$cur" 'all none sqrt every= segments= blocks optimal offload joint'
        ;;
    --limit)
        compopt -o nospace
        mapfile -t COMPREPLY < <(
            compgen -S = -W 'nodes values nesting function-depth attr-elems name-bytes
                memory file-bytes output known-elems expression node-runs seconds' -- "$cur"
        )
        ;;
    -b | --batch | -d | --dim | -s | --shape | -i | --input-value | --effort | --jobs | \
        --margin | --top | --capacity | --align)
        COMPREPLY=()
        ;;
    *)
        if [[ $cur == -* && $option == "$prev" ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        elif [[ $prev == '=' || ${COMP_WORDS[COMP_CWORD]} == '=' || $prev == -o || $option == --op-shapes || $option == --program || $option == --ort-partition || $option == --shape-trace || $option == --plan || $option == --plan-out || $option == --onnx-out ]]; then
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        else
            compopt -o filenames
            mapfile -t COMPREPLY < <(
                if ((COMP_CWORD == 1)); then compgen -W 'attach compare diff hf plan simulate verify' -- "$cur"; fi
                compgen -d -- "$cur"
                compgen -f -X "!$files" -- "$cur"
            )
        fi
        ;;
    esac
}

complete -F _onnxvram onnxvram
