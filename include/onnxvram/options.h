/* What an analysis is asked: sizes, the network and how it runs, budgets, limits. */
#ifndef ONNXVRAM_OPTIONS_H
#define ONNXVRAM_OPTIONS_H

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits that hostile input meets. 0 in any field means its default. */
typedef struct onv_limits {
    size_t struct_size; /* sizeof(onv_limits), set by onv_limits_default() or onv_limits_init() */
    uint64_t nodes;     /* nodes after expansion of functions; default 4 Mi, of functions one for
                                each byte of the file, plus 65536 */
    uint64_t values;    /* default 16 Mi */
    uint32_t nesting;   /* depth of messages in the file; default 200 */
    uint32_t function_depth; /* functions calling functions; default 64 */
    uint64_t attr_elems;     /* elements of one attribute; default 1 Mi */
    uint64_t name_bytes;     /* length of one name; default 64 KiB */
    uint64_t arena_bytes;    /* memory; default 480 MiB, or 8 for each byte of the file, to 2 GiB */
    uint64_t file_bytes;     /* of the model's file; default 1 TiB */
    uint32_t known_elems;    /* of a tensor whose contents decide shapes; default 4096 */
    uint32_t expression;     /* parts of the expression of a size; default 4096 */
    uint64_t node_runs;      /* of inference, plus 64 for each node; default 1 Mi */
    uint64_t seconds;        /* of an analysis with one of its reports; default 600 */
    uint64_t output_bytes;   /* of one report; default 200 for each byte of the file plus 1 MiB */
    /* Units of all passes, which follow from the input alone; default 0: any, but 2^27 with plans, and 2^30 for what
     * repeats the analysis (searches for the largest batch or dim, several budgets, examples, savings). */
    uint64_t work;
} onv_limits;

/* The limits by name ("nodes", "function-depth" ...), for options; NULL beyond the last one. */
ONV_API const char *onv_limit_name(size_t index, const char **summary, uint64_t *fallback);

/* All limits at their defaults; `size` is sizeof(onv_limits) of the caller's header. */
ONV_API void onv_limits_init(onv_limits *limits, size_t size);

static inline onv_limits onv_limits_default(void)
{
    onv_limits limits;
    onv_limits_init(&limits, sizeof limits);
    return limits;
}

/* Sets the limit of that name; false if there is none, the value does not fit, or the caller's header
 * does not have it. */
ONV_API bool onv_limits_set(onv_limits *limits, const char *name, uint64_t value);

/* `name` is a symbolic dim. */
typedef struct onv_dim_binding {
    const char *name;
    int64_t size;
} onv_dim_binding;

/* `name` is a graph input; its whole shape. */
typedef struct onv_shape_binding {
    const char *name;
    const int64_t *dims;
    size_t rank;
} onv_shape_binding;

/* A device that a model is to fit. */
typedef struct onv_budget {
    const char *name; /* for reports; NULL: none */
    uint64_t bytes;
    unsigned compute_capability; /* of its libraries, 10 * major + minor; 0: that of the options */
} onv_budget;

/* Figures of an earlier analysis of the same model, and the sizes that it was of. */
typedef struct onv_figure {
    const char *what; /* "weights", "peak", "total", a runtime, "train" */
    uint64_t bytes;
} onv_figure;

typedef struct onv_baseline {
    const char *name; /* for reports */
    const onv_figure *figures;
    size_t n_figures;
    const onv_dim_binding *bindings; /* NULL: not known */
    size_t n_bindings;
} onv_baseline;

/* The contents of a graph input: numbers in row-major order, or a TensorProto file. */
typedef struct onv_input_value {
    const char *name;
    const double *numbers; /* integers up to 2^53 are exact */
    size_t count;
    const char *file; /* used when not NULL */
} onv_input_value;

typedef enum onv_precision {
    ONV_PRECISION_AS_EXPORTED = 0,
    ONV_PRECISION_FP32,
    ONV_PRECISION_FP16,
    ONV_PRECISION_BF16
} onv_precision;

/* All pointers stay the caller's and must live until the call returns. Zero means "default"
 * throughout, so that a struct of an older header keeps its meaning. */
typedef struct onv_options {
    size_t
        struct_size; /* sizeof(onv_options), set by onv_options_default() or onv_options_init() */
    const onv_limits *limits; /* NULL: defaults */
    int64_t batch;            /* 0: not bound */
    const onv_dim_binding *dims;
    size_t n_dims;
    const onv_shape_binding *shapes;
    size_t n_shapes;
    const onv_input_value *input_values;
    size_t n_input_values;
    const char *order; /* of execution, a name of ONV_NAMES_ORDERS; NULL: "model" */
    const char
        *runtimes; /* names of ONV_NAMES_RUNTIMES, with commas; NULL: all but cpu and tensorrt */
    onv_precision precision;    /* as if the float tensors were cast */
    uint64_t effort;            /* of searches, in units of work; 0: default */
    bool expandable_segments;   /* a setting of PyTorch's allocator */
    uint64_t budget;            /* bytes of device memory to fit; 0: not asked */
    unsigned margin_percent;    /* of the budget, kept free */
    bool max_batch;             /* find the largest batch that fits the budget */
    const char *op_shapes_file; /* shapes of operators that are not known, see docs/op-shapes.md */
    const char *train;          /* an optimizer of ONV_NAMES_OPTIMIZERS: size training; NULL: not */
    const char *loss;           /* "cross-entropy", "mse", "none"; NULL: as the output suggests */
    onv_precision amp;          /* ONV_PRECISION_FP16, ONV_PRECISION_BF16: under autocast */
    const char *const *freeze;  /* patterns (* and ?) of parameters and modules: not trained */
    size_t n_freeze;
    const char *const *train_only; /* likewise: all others are not trained */
    size_t n_train_only;
    const char *const
        *inplace; /* likewise: modules whose activations overwrite their input; "none":
                                   no activation does, ReLUs neither */
    size_t n_inplace;
    double attention_dropout; /* of scaled_dot_product_attention, which exports leave out; below 0:
                                 not told */
    unsigned accumulate;      /* batches whose gradients are added up before a step; 0: 1 */
    unsigned zero_stage;      /* ZeRO 1, 2 or 3 over `world` devices; 0: none */
    unsigned world;
    const char *ddp;  /* DistributedDataParallel: "copy", "view" (gradients are views of buckets) */
    const char *fsdp; /* fully_shard: patterns of its units with commas; "": repeated modules */
    bool master_weights; /* the optimizer has float32 copies of 16-bit parameters */
    const char *offload; /* to the host: "optimizer", "gradients" (those too); NULL: nothing */
    bool ema;            /* a moving average of the parameters */
    uint64_t pool;       /* bytes that PyTorch's allocator has cached before, in one segment */
    const char *weights; /* a format of ONV_NAMES_WEIGHT_FORMATS: of linear layers; of frozen ones,
                               with `train` */
    bool as_exported;    /* no operator that the exporter decomposed is recognised */
    const char *attention;  /* "auto", "math", "flash", "efficient"; NULL: the first */
    const char *checkpoint; /* plans of onv_checkpoint_name(), with commas, or "all"; behind one "@"
                                   with an overhead ("5%"), a size ("12GiB") or an id takes one of its plans */
    const char *zero_grad;  /* "before-forward", "before-backward", "keep"; NULL: the first */
    const char *optimizer_impl; /* "foreach", "fused", "for-loop"; NULL: as PyTorch chooses */
    const char *replay;         /* "cuda", "host": replay the allocations there; NULL: not */
    /* Asked now and then by searches and replays, from the thread of the call; true ends the analysis with
     * ONV_ERR_CANCELLED. */
    bool (*cancelled)(void *context);
    void *cancel_context;
    bool no_external_data; /* only the model file is opened: what decides shapes in one is
                              not known */
    bool locals; /* eager inference: names of modules hold what they can until their calls return */
    const char *const *ort; /* "KEY=VALUE", ONNX Runtime's own names: ONV_NAMES_ORT_SETTINGS */
    size_t n_ort;
    bool ort_advise;         /* compare settings of ONNX Runtime */
    bool ort_partition;      /* make the statistics of ONV_FORMAT_ORT_PARTITION */
    const char *shape_trace; /* a CSV file of requests to one session of ONNX Runtime: the names of
                                dims, then a line of sizes for each request; NULL: none */
    unsigned
        compute_capability; /* 10 * major + minor of the device whose libraries take workspaces:
                                    80, 86, 89; 0: 90 */
    bool channels_last,
        no_tf32;          /* settings of PyTorch: how tensors of convolutions lie, and compute */
    bool cudnn_benchmark; /* likewise: the first iteration tries all kernels */
    const char *pytorch;  /* a release of ONV_NAMES_PYTORCH; NULL: the first */
    bool example;         /* where dims are free: analyse usual sizes too, for the reports */
    /* Devices that are judged each by its own libraries; `budget` is then ignored, and the first one is
     * what the report is of. */
    const onv_budget *budgets;
    size_t n_budgets;
    /* The symbolic dim whose largest size is searched, as that of the batch by max_batch; NULL: none. */
    const char *max_dim;
    const onv_baseline *baseline; /* of before, to compare with; NULL: none */
    bool has_max_growth;
    uint32_t max_growth_basis_points; /* hundredths of a percent that a figure may grow by */
    bool folded_norms; /* batch norms that the export folded are folded in the network, too */
    bool
        graph_module; /* the network is code that torch.fx or torch.export made: no call of an inner
                             module, and no name, holds a value longer than it is read */
    bool no_fast_path;     /* layers of nn.TransformerEncoder run operation by operation */
    bool compile;          /* training under torch.compile, too */
    double compile_budget; /* its activation_memory_budget, from 0 to 1 */
    uint64_t align; /* offsets of the runtime arena are multiples of it: a power of two; 0: 1 */
    bool onnx_out;  /* make what ONV_FORMAT_ONNX writes: types for sizes that are not bound */
    /* `n_dims` flags: set to true where the model has a dim of that name, which it then may lack; NULL: a name
     * that it lacks is an error. */
    bool *dims_found;
    /* Told now and then what is worked on ("inferring shapes"), from the thread of the call; NULL: not. */
    void (*progress)(void *context, const char *stage);
    void *progress_context;
    /* "copies", "shared": how the application holds the key-value cache between steps; NULL: not asked. With a
     * budget the longest context is searched. */
    const char *kv_cache;
    bool savings;   /* find changes that make the peak smaller, each analysed; for the reports */
    bool timelines; /* keep what each runtime executes, for reports that draw it: from
                       ONV_FORMAT_HTML on, and "timelines" in ONV_FORMAT_JSON */
    /* Elements of all parameters of the network, as PyTorch counts them: those that the file lacks, too. 0: not told. */
    uint64_t parameters;
    /* Bytes of all registered buffers of the network, as PyTorch counts them: those that the file lacks, too. 0: not told. */
    uint64_t buffers;
    bool remedies; /* where no budget fits: find ways to make it fit, each analysed (answer.h) */
    const char *
        gpu; /* the name of the GPU of `compute_capability`, whose speed estimates times; NULL: not told */
    /* PyTorch's program of the model: a file of torch.export.save(), its JSON, or a recording. Eager PyTorch and training are computed
     * of it. "none": of no program; NULL: of one inside the model, or next to it under its stem. */
    const char *program;
    /* A file of torch.cuda.memory._dump_snapshot(), next to which PyTorch's figures are laid; NULL: none. */
    const char *snapshot;
    /* A checkpointing plan that ONV_FORMAT_CHECKPOINTS wrote, behind those of `checkpoint`: a file; NULL: none. */
    const char *plan;
    uint64_t
        measured; /* bytes that the device was seen to hold, next to which the answer is laid; 0: none */
    bool strict; /* a node that contradicts its operator's definition ends the analysis */
    /* With `max_batch`: the best batch, with its plan and how long a step takes there, an estimate. "batch": the largest one;
     * "throughput": the most samples per second, on a GPU that is named. NULL: not asked. */
    const char *objective;
    /* Of the runtime tensorrt: contexts of one engine, 0: 1; bytes that each may take for tactics, 0: not counted. */
    unsigned contexts;
    uint64_t workspace;
    /* Where dims are free: formulas of what each runtime of `runtimes` holds, found from some hundred analyses around an example of usual sizes. */
    bool formulas;
    bool
        answer_alone; /* no runtimes but those of the answer (answer.h), where `runtimes` names none */
} onv_options;

/* All options at their defaults; `size` is sizeof(onv_options) of the caller's header. */
ONV_API void onv_options_init(onv_options *options, size_t size);

static inline onv_options onv_options_default(void)
{
    onv_options options;
    onv_options_init(&options, sizeof options);
    return options;
}

/* What is missing for an option, by the program's name ("ort-advise"), to change anything: "ONNX Runtime: add ort to
 * --runtime, as in --runtime ort". NULL: nothing. An analysis refuses options that would change nothing
 * (ONV_ERR_USAGE). */
ONV_API const char *onv_option_missing(const onv_options *options, const char *option);

#ifdef __cplusplus
}
#endif

#endif
