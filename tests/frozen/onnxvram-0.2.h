/* onnxvram: how much GPU memory an ONNX model needs, and why.
 *
 *     onv_options options = onv_options_default();
 *     options.batch = 256;
 *     onv_analysis *analysis;
 *     onv_error error = {0};
 *     if (onv_analysis_new("resnet50.onnx", &options, &analysis, &error) != ONV_OK) ...
 *     onv_summary summary;
 *     onv_analysis_summary(analysis, &summary);
 *     printf("%llu bytes at the peak\n", (unsigned long long)summary.peak_bytes);
 *     onv_analysis_destroy(analysis);
 *
 * Strings that come out of an analysis belong to it and live as long as it does. They are the
 * model's own text: untrusted, not sanitised for a terminal.
 * What comes in rows is asked for by index until the answer is false; a struct that is asked for is filled up to what
 * the caller's header has of it, and false leaves it as it was. Without memory for text the answer is false, too.
 * Sizes are bytes in uint64_t. The library keeps no global state: different analyses may run on
 * different threads; one analysis belongs to one thread at a time.
 */
#ifndef ONNXVRAM_H
#define ONNXVRAM_H

/* Analyses, and what each answers about the model itself. */
#ifndef ONNXVRAM_ANALYSIS_H
#define ONNXVRAM_ANALYSIS_H

/* What an analysis is asked: sizes, the network and how it runs, budgets, limits. */
#ifndef ONNXVRAM_OPTIONS_H
#define ONNXVRAM_OPTIONS_H

/* What all parts of the interface share: the version, names of statuses, safe text. */
#ifndef ONNXVRAM_COMMON_H
#define ONNXVRAM_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Statuses and errors. Nothing else is here, since nearly every file of the library includes it. */
#ifndef ONNXVRAM_STATUS_H
#define ONNXVRAM_STATUS_H

typedef enum onv_status {
    ONV_OK = 0,
    ONV_ERR_MEMORY,   /* an allocation failed */
    ONV_ERR_IO,       /* a file could not be opened, read or written */
    ONV_ERR_FORMAT,   /* not an ONNX file, or a damaged one */
    ONV_ERR_MODEL,    /* the model contradicts itself or the operators' definitions */
    ONV_ERR_LIMIT,    /* a limit of onv_limits was passed */
    ONV_ERR_OVERFLOW, /* a size does not fit 64 bits */
    ONV_ERR_USAGE,    /* an option that makes no sense, or not for this model */
    ONV_ERR_DEVICE,   /* a GPU, its driver or its memory */
    ONV_ERR_CANCELLED
} onv_status;

typedef struct onv_error {
    onv_status code;
    char message[512]; /* one line, without file name; may hold the model's own text */
    char node[160];    /* the node it is about, "" if none */
    char op_type[64];
} onv_error;

#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; that of the library is onv_version_number(). One can be older than the other: structs
 * grow at their end alone, and say how large they are. Those that say nothing, because they stand in arrays or pass
 * errors (onv_error, onv_expression, onv_interval, onv_event, onv_graph_value, onv_graph_read, onv_dim_binding, onv_shape_binding, onv_input_value, onv_budget, onv_figure, onv_baseline), never
 * change. */
#define ONV_VERSION_MAJOR 0
#define ONV_VERSION_MINOR 2
#define ONV_VERSION_PATCH 0
#define ONV_VERSION_NUMBER                                                                         \
    (ONV_VERSION_MAJOR * 1000000 + ONV_VERSION_MINOR * 1000 + ONV_VERSION_PATCH)

#ifdef __cplusplus
static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "onnxvram needs a 64-bit platform");
#elif !defined(__wasm__) /* the page of docs/packaging.md, where the program is the only caller */
_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "onnxvram needs a 64-bit platform");
#endif

#if defined(__GNUC__)
#define ONV_API __attribute__((visibility("default")))
#else
#define ONV_API
#endif

/* --- Status and errors ------------------------------------------------------------------------ */

ONV_API const char *onv_status_name(onv_status status);
ONV_API const char *onv_version(void);     /* "0.2.0" */
ONV_API unsigned onv_version_number(void); /* like ONV_VERSION_NUMBER, of the library */

/* Copies `text`, which may come from a model, into out[size] so that it is safe to show on a
 * terminal: control characters, bidirectional overrides and ill-formed UTF-8 become escapes like
 * \x1b. Cut to what fits; always NUL-terminated if size > 0. Returns the length written. */
ONV_API size_t onv_printable(const char *text, char *out, size_t size);

/* The name of a list (NULL after the last one) that a mistyped word was likely meant to be; NULL where none is
 * near. */
ONV_API const char *onv_nearest_name(const char *word, const char *const *names);

/* Where there is no row to refer to, and no size. */
#define ONV_NO_INDEX     SIZE_MAX
#define ONV_SIZE_UNKNOWN UINT64_MAX

/* A size: a number, or an expression in dims that are free. */
typedef struct onv_expression {
    int64_t number;   /* -1: it is none */
    const char *text; /* "256", "3*batch"; NULL: nothing is known of it */
} onv_expression;

/* Takes `bytes` bytes at `text`; returns false to stop (the report then fails with ONV_ERR_IO). */
typedef bool (*onv_write_fn)(void *context, const char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif

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
    uint64_t arena_bytes;    /* memory of one analysis; default 480 MiB */
    uint64_t file_bytes;     /* of the model's file; default 1 TiB */
    uint32_t known_elems;    /* of a tensor whose contents decide shapes; default 4096 */
    uint32_t expression;     /* parts of the expression of a size; default 4096 */
    uint64_t node_runs;      /* of inference, plus 64 for each node; default 1 Mi */
    uint64_t seconds;        /* of an analysis with one of its reports; default 600 */
    uint64_t output_bytes;   /* of one report; default 200 for each byte of the file plus 1 MiB */
    uint64_t work; /* units of all passes, which follow from the input alone; default 0: any */
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
    const onv_dim_binding *bindings;
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
    const char *order;          /* of execution, a name of onv_order_name(); NULL: "model" */
    const char *runtimes;       /* names of onv_runtime_name(), with commas; NULL: all */
    onv_precision precision;    /* as if the float tensors were cast */
    uint64_t effort;            /* of searches, in units of work; 0: default */
    bool expandable_segments;   /* a setting of PyTorch's allocator */
    uint64_t budget;            /* bytes of device memory to fit; 0: not asked */
    unsigned margin_percent;    /* of the budget, kept free */
    bool max_batch;             /* find the largest batch that fits the budget */
    const char *op_shapes_file; /* shapes of operators that are not known, see docs/op-shapes.md */
    const char *train;          /* an optimizer of onv_optimizer_name(): size training; NULL: not */
    const char *loss;           /* "cross-entropy", "mse", "none"; NULL: as the output suggests */
    onv_precision amp;          /* ONV_PRECISION_FP16, ONV_PRECISION_BF16: under autocast */
    const char *const *freeze;  /* patterns (* and ?) of parameters and modules: not trained */
    size_t n_freeze;
    const char *const *train_only; /* likewise: all others are not trained */
    size_t n_train_only;
    const char *const *inplace; /* likewise: modules whose activations overwrite their input */
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
    const char *weights; /* a format of onv_weight_format_name(): of linear layers; of frozen ones,
                               with `train` */
    bool as_exported;    /* no operator that the exporter decomposed is recognised */
    const char *attention;      /* "auto", "math", "flash", "efficient"; NULL: the first */
    const char *checkpoint;     /* plans of onv_checkpoint_name(), with commas, or "all" */
    const char *zero_grad;      /* "before-forward", "before-backward", "keep"; NULL: the first */
    const char *optimizer_impl; /* "foreach", "fused", "for-loop"; NULL: as PyTorch chooses */
    const char *replay;         /* "cuda", "host": replay the allocations there; NULL: not */
    /* Asked now and then by searches and replays, from the thread of the call; true ends the analysis with
     * ONV_ERR_CANCELLED. */
    bool (*cancelled)(void *context);
    void *cancel_context;
    bool no_external_data; /* only the model file is opened: what decides shapes in one is
                              not known */
    bool locals; /* eager inference: names of modules hold what they can until their calls return */
    const char *const *ort; /* "KEY=VALUE", ONNX Runtime's own names: onv_ort_setting_at() */
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
    const char *pytorch;  /* a release of onv_pytorch_name(); NULL: the first */
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

#ifdef __cplusplus
extern "C" {
#endif

typedef struct onv_analysis onv_analysis;

/* Reads the model at `path` and analyses it. On failure *analysis is NULL and the error is filled.
 * Files of 4 MiB and more are mapped where they can be, here and in onv_simulate_file(): where others may
 * shorten them meanwhile, a caller that must not die of SIGBUS has to handle it. */
ONV_API onv_status onv_analysis_new(const char *path, const onv_options *options,
                                    onv_analysis **analysis, onv_error *error);

/* The same for a model in memory; the bytes must stay valid until onv_analysis_destroy. `name` is
 * shown as its path; external data is looked for in that path's folder. */
ONV_API onv_status onv_analysis_new_from_memory(const void *data, size_t bytes, const char *name,
                                                const onv_options *options, onv_analysis **analysis,
                                                onv_error *error);

/* NULL is allowed. */
ONV_API void onv_analysis_destroy(onv_analysis *analysis);

typedef struct onv_summary {
    uint64_t nodes;
    uint64_t parameters; /* elements of the weights, shared ones once */
    uint64_t trainable;  /* of the parameters: float, and no running statistics */
    uint64_t parameter_bytes;
    uint64_t macs; /* multiply-accumulates; 0 while dims are free, see sized */
    uint64_t input_bytes, output_bytes;
    uint64_t activation_bytes; /* sum over all node outputs */
    uint64_t peak_bytes;       /* "ideal": the most that is live at one step, without weights */
    uint64_t peak_step;
    uint64_t unknown_tensors; /* of unknown size, counted as 0 above */
    uint64_t free_dims;       /* symbols left unbound */
    bool sized;               /* every tensor has a size in bytes */
    bool bounded;             /* some sizes are upper bounds */
} onv_summary;

ONV_API void onv_analysis_summary_get(const onv_analysis *analysis, onv_summary *summary,
                                      size_t size);

static inline void onv_analysis_summary(const onv_analysis *analysis, onv_summary *summary)
{
    onv_analysis_summary_get(analysis, summary, sizeof *summary);
}

/* An external file that holds weights, as the model names it; NULL: all are in the model. */
ONV_API const char *onv_analysis_external_file(const onv_analysis *analysis);

typedef enum onv_tensor_kind {
    ONV_TENSOR_INPUT,
    ONV_TENSOR_OUTPUT,
    ONV_TENSOR_ACTIVATION,
    ONV_TENSOR_INITIALIZER,
    ONV_TENSOR_CONSTANT
} onv_tensor_kind;

typedef struct onv_tensor_info {
    const char *name;
    onv_tensor_kind kind;
    const char *dtype; /* "float32" ... */
    const char *shape; /* "[256, 64, 112, 112]", dims may be expressions, "?" */
    uint64_t bytes;    /* ONV_SIZE_UNKNOWN if it has none */
    bool bound;        /* bytes is an upper bound */
    bool live;         /* has a lifetime (weights have none) */
    uint64_t first_step, last_step;
    bool is_dropped;    /* it never is: a branch that cannot be taken, and what only that reads */
    const char *format; /* of weights in fewer bits (onv_options.weights); NULL: as in the file */
    size_t alias_of;    /* the tensor that takes its memory over; ONV_NO_INDEX: none */
    int rank;           /* -1: not known; axes: onv_analysis_tensor_dim() */
    uint64_t offset;    /* in the runtime arena, above the weights; ONV_SIZE_UNKNOWN: not planned */
} onv_tensor_info;

ONV_API size_t onv_analysis_tensor_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_tensor_get(const onv_analysis *analysis, size_t index,
                                     onv_tensor_info *info, size_t size);

static inline bool onv_analysis_tensor(const onv_analysis *analysis, size_t index,
                                       onv_tensor_info *info)
{
    return onv_analysis_tensor_get(analysis, index, info, sizeof *info);
}

/* The size of an axis. A size that only the data decides is its upper bound where the tensor's bytes are. False
 * beyond the last one. */
ONV_API bool onv_analysis_tensor_dim(const onv_analysis *analysis, size_t tensor, size_t axis,
                                     onv_expression *size);

/* --- The order of execution ------------------------------------------------------------------------ */

/* A node, in the order of execution; steps are rows. */
typedef struct onv_step_info {
    const char *node, *op_type, *domain;
    size_t inputs, outputs; /* how many: onv_analysis_step_input(), onv_analysis_step_output() */
    onv_expression macs;    /* multiply-accumulates, of all its iterations */
    uint64_t live_bytes; /* while it runs; ONV_SIZE_UNKNOWN where the size of something live is */
} onv_step_info;

ONV_API size_t onv_analysis_step_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_step_get(const onv_analysis *analysis, size_t index, onv_step_info *info,
                                   size_t size);

static inline bool onv_analysis_step(const onv_analysis *analysis, size_t index,
                                     onv_step_info *info)
{
    return onv_analysis_step_get(analysis, index, info, sizeof *info);
}

/* The tensor that a step reads or makes; ONV_NO_INDEX for an input that is left out, and beyond the last one. */
ONV_API size_t onv_analysis_step_input(const onv_analysis *analysis, size_t step, size_t index);
ONV_API size_t onv_analysis_step_output(const onv_analysis *analysis, size_t step, size_t index);

/* What is live at the peak, the largest first: a tensor; ONV_NO_INDEX beyond the last one. */
ONV_API size_t onv_analysis_peak_tensor_count(const onv_analysis *analysis);
ONV_API size_t onv_analysis_peak_tensor(const onv_analysis *analysis, size_t index);

/* A branch or a body. Its steps come before that of the node that owns it. */
typedef struct onv_region_info {
    const char *kind; /* "branch", "alternatives" (the branches of one If), "loop" */
    const char *node; /* that owns it */
    const char *attribute;
    bool has_steps;
    uint64_t first_step, last_step;
    size_t parent;        /* the region around it; ONV_NO_INDEX: none */
    onv_expression trips; /* of a loop */
} onv_region_info;

ONV_API size_t onv_analysis_region_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_region_get(const onv_analysis *analysis, size_t index,
                                     onv_region_info *info, size_t size);

static inline bool onv_analysis_region(const onv_analysis *analysis, size_t index,
                                       onv_region_info *info)
{
    return onv_analysis_region_get(analysis, index, info, sizeof *info);
}

typedef struct onv_order_info {
    const char *name;           /* of onv_order_name() */
    bool has_bound;             /* it was searched for: */
    uint64_t lower_bound_bytes; /* no order has a lower peak */
    bool proven;                /* this one has no higher one */
} onv_order_info;

ONV_API bool onv_analysis_order_get(const onv_analysis *analysis, onv_order_info *info,
                                    size_t size);

static inline bool onv_analysis_order(const onv_analysis *analysis, onv_order_info *info)
{
    return onv_analysis_order_get(analysis, info, sizeof *info);
}

/* The peak of the best order that a short search finds, to compare with the file's own order. */
typedef struct onv_best_order_info {
    uint64_t peak_bytes;        /* of live memory */
    uint64_t lower_bound_bytes; /* no order has a lower peak */
    bool proven;                /* this one has no higher one */
} onv_best_order_info;

/* False where it was not looked for: sizes are unknown, or another order was asked for. */
ONV_API bool onv_analysis_best_order_get(const onv_analysis *analysis, onv_best_order_info *info,
                                         size_t size);

static inline bool onv_analysis_best_order(const onv_analysis *analysis, onv_best_order_info *info)
{
    return onv_analysis_best_order_get(analysis, info, sizeof *info);
}

/* The largest tensor: some APIs bind no more than a limit at once. */
typedef struct onv_largest_info {
    size_t tensor;
    uint64_t bytes, elements;
    uint64_t over_webgpu_binding;  /* tensors beyond what WebGPU promises to bind */
    uint64_t over_tensorrt_volume; /* tensors of more elements than TensorRT takes */
} onv_largest_info;

/* False where the model has none of known size. */
ONV_API bool onv_analysis_largest_get(const onv_analysis *analysis, onv_largest_info *info,
                                      size_t size);

static inline bool onv_analysis_largest(const onv_analysis *analysis, onv_largest_info *info)
{
    return onv_analysis_largest_get(analysis, info, sizeof *info);
}

/* --- The file -------------------------------------------------------------------------------------- */

typedef struct onv_model_info {
    const char *path, *producer;
    int64_t ir_version;
    uint64_t dropped_diagnostics; /* beyond those that are kept */
} onv_model_info;

ONV_API bool onv_analysis_model_get(const onv_analysis *analysis, onv_model_info *info,
                                    size_t size);

static inline bool onv_analysis_model(const onv_analysis *analysis, onv_model_info *info)
{
    return onv_analysis_model_get(analysis, info, sizeof *info);
}

typedef struct onv_opset_info {
    const char *domain;
    int64_t version;
} onv_opset_info;

ONV_API size_t onv_analysis_opset_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_opset_get(const onv_analysis *analysis, size_t index,
                                    onv_opset_info *info, size_t size);

static inline bool onv_analysis_opset(const onv_analysis *analysis, size_t index,
                                      onv_opset_info *info)
{
    return onv_analysis_opset_get(analysis, index, info, sizeof *info);
}

/* A size that was given. */
typedef struct onv_binding_info {
    const char *name; /* a dim, or an input */
    int64_t size;     /* -1: the whole shape of the input */
    size_t tensor;    /* that input; ONV_NO_INDEX for a dim */
} onv_binding_info;

ONV_API size_t onv_analysis_binding_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_binding_get(const onv_analysis *analysis, size_t index,
                                      onv_binding_info *info, size_t size);

static inline bool onv_analysis_binding(const onv_analysis *analysis, size_t index,
                                        onv_binding_info *info)
{
    return onv_analysis_binding_get(analysis, index, info, sizeof *info);
}

typedef struct onv_diagnostic {
    const char *severity; /* "note", "warning" */
    const char *code;
    const char *node; /* "" if none */
    const char *message;
} onv_diagnostic;

ONV_API size_t onv_analysis_diagnostic_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_diagnostic_get(const onv_analysis *analysis, size_t index,
                                         onv_diagnostic *diagnostic, size_t size);

static inline bool onv_analysis_diagnostic(const onv_analysis *analysis, size_t index,
                                           onv_diagnostic *diagnostic)
{
    return onv_analysis_diagnostic_get(analysis, index, diagnostic, sizeof *diagnostic);
}

#ifdef __cplusplus
}
#endif

#endif
/* What each runtime executes, and where it places its memory: with onv_options.timelines. */
#ifndef ONNXVRAM_EXECUTIONS_H
#define ONNXVRAM_EXECUTIONS_H


#ifdef __cplusplus
extern "C" {
#endif

/* A run of a runtime, or training with a plan. */
typedef struct onv_execution_info {
    const char *runtime;            /* of onv_runtime_name(), or "train" */
    size_t plan;                    /* of onv_analysis_checkpoint(); ONV_NO_INDEX: none */
    uint64_t peak_bytes, peak_step; /* as asked for; counted from `measured_from` on */
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t measured_from; /* the step that peaks count from: training's second iteration */
    size_t steps, buffers, segments;
} onv_execution_info;

ONV_API size_t onv_analysis_execution_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_execution_get(const onv_analysis *analysis, size_t index,
                                        onv_execution_info *info, size_t size);

static inline bool onv_analysis_execution(const onv_analysis *analysis, size_t index,
                                          onv_execution_info *info)
{
    return onv_analysis_execution_get(analysis, index, info, sizeof *info);
}

typedef struct onv_execution_step_info {
    const char *node;  /* of the graph that runs; NULL: none, as the optimizer */
    const char *label; /* what runs; may be NULL */
    const char *phase; /* "forward", "loss", "backward", "optimizer" */
    uint32_t iteration;
    bool is_recompute;
    uint64_t live_bytes, allocated_bytes, reserved_bytes; /* the most while it runs */
} onv_execution_step_info;

/* False beyond the last one: of this and of the next two. */
ONV_API bool onv_analysis_execution_step_get(const onv_analysis *analysis, size_t execution,
                                             size_t index, onv_execution_step_info *info,
                                             size_t size);

static inline bool onv_analysis_execution_step(const onv_analysis *analysis, size_t execution,
                                               size_t index, onv_execution_step_info *info)
{
    return onv_analysis_execution_step_get(analysis, execution, index, info, sizeof *info);
}

typedef struct onv_execution_buffer_info {
    const char *name; /* may be NULL */
    size_t tensor;    /* of the model; ONV_NO_INDEX: it is none */
    const char *kind; /* "activation", "weight", "gradient", "workspace" ... */
    uint64_t bytes;
    uint64_t first_step, last_step;
    size_t within;     /* the buffer that it lies in; ONV_NO_INDEX: allocated by itself */
    bool is_transient; /* freed before the step's next buffer is allocated */
    size_t segment;    /* ONV_NO_INDEX: it has no place */
    uint64_t offset;   /* in the segment */
} onv_execution_buffer_info;

ONV_API bool onv_analysis_execution_buffer_get(const onv_analysis *analysis, size_t execution,
                                               size_t index, onv_execution_buffer_info *info,
                                               size_t size);

static inline bool onv_analysis_execution_buffer(const onv_analysis *analysis, size_t execution,
                                                 size_t index, onv_execution_buffer_info *info)
{
    return onv_analysis_execution_buffer_get(analysis, execution, index, info, sizeof *info);
}

/* Memory that the allocator takes from the device in one request. */
typedef struct onv_execution_segment_info {
    uint64_t bytes;
    uint64_t first_step,
        end_step; /* there from the one up to the other, which is the number of steps at most */
} onv_execution_segment_info;

ONV_API bool onv_analysis_execution_segment_get(const onv_analysis *analysis, size_t execution,
                                                size_t index, onv_execution_segment_info *info,
                                                size_t size);

static inline bool onv_analysis_execution_segment(const onv_analysis *analysis, size_t execution,
                                                  size_t index, onv_execution_segment_info *info)
{
    return onv_analysis_execution_segment_get(analysis, execution, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif
/* Sizes that are left open: free dims, the peak as a formula of them, and an example. */
#ifndef ONNXVRAM_FORMULA_H
#define ONNXVRAM_FORMULA_H


#ifdef __cplusplus
extern "C" {
#endif

typedef struct onv_free_dim_info {
    const char *name;
    const char *input; /* where it stands */
    int axis;
    const char *option; /* of the program, that binds it: "--batch N" */
} onv_free_dim_info;

ONV_API size_t onv_analysis_free_dim_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_free_dim_get(const onv_analysis *analysis, size_t index,
                                       onv_free_dim_info *info, size_t size);

static inline bool onv_analysis_free_dim(const onv_analysis *analysis, size_t index,
                                         onv_free_dim_info *info)
{
    return onv_analysis_free_dim_get(analysis, index, info, sizeof *info);
}

/* Everything as functions of the free dims. */
typedef struct onv_formula_info {
    uint64_t weight_bytes;
    const char *why_not; /* there are no pieces; NULL: there are */
    onv_expression input_bytes, output_bytes, activation_bytes, macs;
} onv_formula_info;

/* False where every tensor has a size. */
ONV_API bool onv_analysis_formula_get(const onv_analysis *analysis, onv_formula_info *info,
                                      size_t size);

static inline bool onv_analysis_formula(const onv_analysis *analysis, onv_formula_info *info)
{
    return onv_analysis_formula_get(analysis, info, sizeof *info);
}

/* The peak is the largest of these. */
typedef struct onv_piece_info {
    onv_expression bytes;
    uint64_t step;
    /* The dim that alone decides which piece is the peak: this one from `from` up to but not including `until`
     * (INT64_MAX: no end). `decided_by.text` is NULL where it is not so simple. */
    onv_expression decided_by;
    int64_t from, until;
} onv_piece_info;

ONV_API size_t onv_analysis_piece_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_piece_get(const onv_analysis *analysis, size_t index,
                                    onv_piece_info *info, size_t size);

static inline bool onv_analysis_piece(const onv_analysis *analysis, size_t index,
                                      onv_piece_info *info)
{
    return onv_analysis_piece_get(analysis, index, info, sizeof *info);
}

/* The model with usual sizes for its free dims (onv_options.example): an analysis like any other, which belongs to
 * this one. NULL: not asked for, no dim is free, or more than 1,000 are. */
ONV_API const onv_analysis *onv_analysis_example(const onv_analysis *analysis);

#ifdef __cplusplus
}
#endif

#endif
/* The modules of a model, found again from names. */
#ifndef ONNXVRAM_MODULES_H
#define ONNXVRAM_MODULES_H


#ifdef __cplusplus
extern "C" {
#endif

/* Made on request, of an analysis that it must not outlive. */
typedef struct onv_module_table onv_module_table;

/* Modules up to `depth` deep (0: all); deeper ones count to those around them. */
ONV_API onv_status onv_module_table_new(const onv_analysis *analysis, unsigned depth,
                                        onv_module_table **table, onv_error *error);

/* NULL is allowed. */
ONV_API void onv_module_table_destroy(onv_module_table *table);

/* With everything inside. */
typedef struct onv_module_info {
    const char *name; /* in the module around it */
    size_t parent;    /* ONV_NO_INDEX: it is the model itself, which comes first */
    unsigned depth;
    uint64_t parameters;       /* of weights, in the module that uses them first */
    uint64_t macs;             /* ONV_SIZE_UNKNOWN: not known of every node */
    uint64_t activation_bytes; /* what its nodes make; without those of unknown size */
    uint64_t
        activation_bytes_per_unit; /* while dims are free: for each of onv_module_table_unit() */
    uint64_t own_steps;            /* that belong to no module inside */
} onv_module_info;

ONV_API size_t onv_module_table_count(const onv_module_table *table);
ONV_API bool onv_module_table_get(const onv_module_table *table, size_t index,
                                  onv_module_info *info, size_t size);

static inline bool onv_module_table_at(const onv_module_table *table, size_t index,
                                       onv_module_info *info)
{
    return onv_module_table_get(table, index, info, sizeof *info);
}

/* "batch", "batch * sequence": NULL where sizes are numbers, or no product of dims is common to all. */
ONV_API const char *onv_module_table_unit(const onv_module_table *table);

/* Of weights that no node reads. */
ONV_API uint64_t onv_module_table_unused_parameters(const onv_module_table *table);

/* The module that a step belongs to; ONV_NO_INDEX beyond the last step. */
ONV_API size_t onv_module_table_of_step(const onv_module_table *table, size_t step);

#ifdef __cplusplus
}
#endif

#endif
/* The names that options take, and the table of GPUs. */
#ifndef ONNXVRAM_NAMES_H
#define ONNXVRAM_NAMES_H


#ifdef __cplusplus
extern "C" {
#endif

/* The runtimes and the orders of execution there are; NULL beyond the last one. */
ONV_API const char *onv_runtime_name(size_t index, const char **summary);
ONV_API const char *onv_weight_format_name(size_t index, const char **summary);
ONV_API const char *onv_optimizer_name(size_t index, const char **summary);

/* The PyTorch releases that are modelled, newest first; NULL beyond the last one. */
ONV_API const char *onv_pytorch_name(size_t index);
ONV_API const char *onv_order_name(size_t index, const char **summary);
/* The settings of ONNX Runtime that `ort` of the options takes, and which values; NULL beyond the last
 * one. */
ONV_API const char *onv_ort_setting_at(size_t index, const char **values);
/* The checkpointing plans; one that takes a count is written NAME=K. */
ONV_API const char *onv_checkpoint_name(size_t index, const char **summary, bool *takes_count);

typedef struct onv_gpu_info {
    const char *name;
    uint64_t nominal_bytes;      /* as sold */
    uint64_t usable_bytes;       /* as the driver reports */
    unsigned cc_major, cc_minor; /* compute capability */
    const char *source;          /* of usable_bytes */
} onv_gpu_info;

/* The table of GPUs, row by row; false beyond the last one. */
ONV_API bool onv_gpu_at_get(size_t index, onv_gpu_info *info, size_t size);

static inline bool onv_gpu_at(size_t index, onv_gpu_info *info)
{
    return onv_gpu_at_get(index, info, sizeof *info);
}

/* The rows that a name may mean, up to `capacity` of them: exactly one where the name is clear,
 * more where it is not ("A100"), none where it is not known. Returns how many there are. */
ONV_API size_t onv_gpu_by_name_get(const char *name, onv_gpu_info *found, size_t capacity,
                                   size_t size);

static inline size_t onv_gpu_by_name(const char *name, onv_gpu_info *found, size_t capacity)
{
    return onv_gpu_by_name_get(name, found, capacity, sizeof *found);
}

#ifdef __cplusplus
}
#endif

#endif
/* Intervals and traces without a model: offsets, and what allocators make of them. */
#ifndef ONNXVRAM_PLANNER_H
#define ONNXVRAM_PLANNER_H


#ifdef __cplusplus
extern "C" {
#endif

typedef struct onv_plan_info {
    uint64_t height;      /* bytes that the plan needs */
    uint64_t lower_bound; /* no plan needs less */
    bool optimal;         /* the two are equal */
    bool fits;            /* within the capacity, or none was given */
    uint64_t nodes;       /* of the exact search */
    const char *strategy; /* static text */
} onv_plan_info;

/* --- From memory, for programs that link the planner ---------------------------------------------- */

/* What these calls share. Results depend on the input and the options alone, never on time: what ends them early is
 * an error. */
typedef struct onv_planner_options {
    size_t struct_size;
    const onv_limits *limits; /* seconds and arena_bytes; NULL: defaults */
    uint64_t effort;          /* of searches, in units of work; 0: default */
    uint64_t
        capacity; /* onv_plan_intervals(): stop at the first plan within it; onv_simulate_events(): of the device; 0: none */
    uint64_t alignment;       /* onv_plan_intervals(): of offsets, a power of two; 0: 1 */
    bool expandable_segments; /* onv_simulate_events(): a setting of PyTorch's allocator */
    const char *order;        /* onv_order_graph(): "greedy", "optimal"; NULL: "optimal" */
    /* As in onv_options. */
    bool (*cancelled)(void *context);
    void *cancel_context;
} onv_planner_options;

ONV_API void onv_planner_options_init(onv_planner_options *options, size_t size);

static inline onv_planner_options onv_planner_options_default(void)
{
    onv_planner_options options;
    onv_planner_options_init(&options, sizeof options);
    return options;
}

/* Bytes that are needed from step `lower` up to but not including step `upper`. */
typedef struct onv_interval {
    uint64_t lower, upper, size;
} onv_interval;

/* Finds an offset for each interval so that no two that share a step overlap. `offsets` has room for `count`; they
 * are valid also where the plan does not fit the capacity (info.fits). `options` and `info` may be NULL. */
ONV_API onv_status onv_plan_get(const onv_interval *intervals, size_t count,
                                const onv_planner_options *options, uint64_t *offsets,
                                onv_plan_info *info, size_t size, onv_error *error);

static inline onv_status onv_plan_intervals(const onv_interval *intervals, size_t count,
                                            const onv_planner_options *options, uint64_t *offsets,
                                            onv_plan_info *info, onv_error *error)
{
    return onv_plan_get(intervals, count, options, offsets, info, sizeof *info, error);
}

/* An allocation, or the end of one. */
typedef struct onv_event {
    uint64_t bytes; /* of an allocation, as asked for */
    size_t frees; /* the index of the allocation that ends here; ONV_NO_INDEX: this event is one */
    uint32_t stream; /* of an allocation: the device's stream, 0 to 3; 0: the main one */
} onv_event;

typedef struct onv_simulated_info {
    uint64_t allocated_peak, reserved_peak, requested_peak; /* as the allocator counts them */
    uint64_t allocated_end, reserved_end;                   /* after the last event */
    uint64_t segments;  /* taken from the device, then still there */
    bool out_of_memory; /* there was no room in the capacity; the figures are those up to there */
    size_t oom_event;
    uint64_t oom_bytes;
} onv_simulated_info;

/* What an allocator of onv_allocator_name(), or "arena" (all of it at planned offsets in one block), makes of the
 * events. `options` may be NULL. */
ONV_API onv_status onv_simulate_get(const onv_event *events, size_t count, const char *allocator,
                                    const onv_planner_options *options, onv_simulated_info *info,
                                    size_t size, onv_error *error);

static inline onv_status onv_simulate_events(const onv_event *events, size_t count,
                                             const char *allocator,
                                             const onv_planner_options *options,
                                             onv_simulated_info *info, onv_error *error)
{
    return onv_simulate_get(events, count, allocator, options, info, sizeof *info, error);
}

/* Nodes, and values between them. */
typedef struct onv_graph_value {
    uint64_t bytes;
    size_t writer;  /* the node that makes it; ONV_NO_INDEX: it is there from the start */
    bool is_output; /* it stays to the end */
} onv_graph_value;

typedef struct onv_graph_read {
    size_t node, value;
} onv_graph_read;

typedef struct onv_size_graph {
    size_t struct_size;
    size_t n_nodes;
    const uint64_t *extra_bytes; /* by node: what it needs only while it runs; NULL: nothing */
    const onv_graph_value *values;
    size_t n_values;
    const onv_graph_read *reads; /* in any order */
    size_t n_reads;
} onv_size_graph;

typedef struct onv_graph_order_info {
    uint64_t peak_bytes;        /* the most that is live while a node runs */
    uint64_t lower_bound_bytes; /* no order has a lower peak; 0: the order was not searched for */
    bool proven;                /* the two are equal */
    uint64_t searched;          /* states looked at */
} onv_graph_order_info;

/* Finds an order of the nodes, each behind the writers of what it reads, with a small peak. A value is live from its
 * writer through its last reader. `order` has room for every node. `options` and `info` may be NULL. */
ONV_API onv_status onv_order_graph_get(const onv_size_graph *graph,
                                       const onv_planner_options *options, size_t *order,
                                       onv_graph_order_info *info, size_t size, onv_error *error);

static inline onv_status onv_order_graph(const onv_size_graph *graph,
                                         const onv_planner_options *options, size_t *order,
                                         onv_graph_order_info *info, onv_error *error)
{
    return onv_order_graph_get(graph, options, order, info, sizeof *info, error);
}

/* --- From files ------------------------------------------------------------------------------------ */

/* Reads intervals (CSV with the header id,lower,upper,size; half-open), finds an offset for each so
 * that no two that share a step overlap, and writes the same rows with a column `offset`. With a
 * capacity (not 0) the search ends at the first plan within it. Offsets are multiples of `alignment`, a power
 * of two (0: 1). `info` may be NULL. */
ONV_API onv_status onv_plan_file_get(const char *path, uint64_t capacity, uint64_t effort,
                                     uint64_t alignment, onv_write_fn write, void *context,
                                     onv_plan_info *info, size_t size, onv_error *error);

static inline onv_status onv_plan_file(const char *path, uint64_t capacity, uint64_t effort,
                                       uint64_t alignment, onv_write_fn write, void *context,
                                       onv_plan_info *info, onv_error *error)
{
    return onv_plan_file_get(path, capacity, effort, alignment, write, context, info, sizeof *info,
                             error);
}

typedef struct onv_simulate_options {
    size_t struct_size;
    bool summary;             /* a table of statistics per runtime instead of a row */
    bool header;              /* a header above the rows */
    bool expandable_segments; /* of PyTorch's allocator */
    uint64_t capacity;        /* of the device; 0: no limit */
} onv_simulate_options;

/* Reads a trace (lines alloc,ID,BYTES[,STEP,LABEL] and free,ID) and writes, for each runtime of the
 * comma-separated list, a row runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,
 * segments. In addition to the runtimes of an analysis, allocators by their own names: see
 * onv_allocator_name(). `options` may be NULL. ONV_ERR_DEVICE: everything is written, but a runtime
 * found no room in the capacity; its figures are those up to there. */
ONV_API onv_status onv_simulate_file(const char *path, const char *runtimes,
                                     const onv_simulate_options *options, onv_write_fn write,
                                     void *context, onv_error *error);

ONV_API const char *onv_allocator_name(size_t index, const char **summary);

#ifdef __cplusplus
}
#endif

#endif
/* What a replay of the allocations on a device found. */
#ifndef ONNXVRAM_REPLAY_H
#define ONNXVRAM_REPLAY_H


#ifdef __cplusplus
extern "C" {
#endif

/* What the replay found: all allocations that were predicted were made on the device, every buffer was
 * written and read again. Of several runtimes the largest. */
typedef struct onv_replay_info {
    const char *device; /* what ran: a GPU's name, "host memory (no GPU)" */
    bool is_gpu;
    bool agrees;        /* everything was as predicted */
    bool out_of_memory; /* the device was too small for some of it */
    uint64_t predicted_bytes, measured_bytes;
    uint64_t faults;     /* onv_analysis_replay_fault() has the first ones of each mode */
    const char *backend; /* of onv_replay_device_name() */
    uint64_t device_total_bytes;
    uint64_t context_bytes;  /* that creating the context took; ONV_SIZE_UNKNOWN: not measured */
    uint32_t driver_version; /* 12040: 12.4; 0: there is none */
    const char *filled_by;   /* what wrote and read the memory */
} onv_replay_info;

/* False where no replay was asked for. */
ONV_API bool onv_analysis_replay_get(const onv_analysis *analysis, onv_replay_info *info,
                                     size_t size);

static inline bool onv_analysis_replay(const onv_analysis *analysis, onv_replay_info *info)
{
    return onv_analysis_replay_get(analysis, info, sizeof *info);
}

/* The devices that replays know; NULL beyond the last one. */
ONV_API const char *onv_replay_device_name(size_t index, const char **summary);

/* What was replayed: the memory of a runtime, or of training. */
typedef struct onv_replay_mode_info {
    const char *mode, *runtime;
    const char *plan; /* of checkpoints; NULL: none */
    bool agrees;
    uint64_t predicted_bytes, measured_bytes, tolerance_bytes, granularity_bytes;
    uint64_t predicted_live_bytes, measured_live_bytes;
    uint64_t most_allocations; /* at a time */
    uint64_t buffers, checked_buffers;
    uint64_t free_before, free_least, free_after; /* of the device */
    uint64_t foreign_bytes;                       /* that came and went by other processes */
    bool has_pool;                                /* the next three are of the device's own pool */
    uint64_t pool_used_peak_bytes, pool_reserved_peak_bytes, pool_predicted_reserved_peak_bytes;
    bool out_of_memory; /* at this step, asking for so much while so much was free */
    uint64_t oom_step, oom_bytes, oom_free_bytes;
    uint64_t faults;
    size_t steps;
} onv_replay_mode_info;

ONV_API size_t onv_analysis_replay_mode_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_replay_mode_get(const onv_analysis *analysis, size_t index,
                                          onv_replay_mode_info *info, size_t size);

static inline bool onv_analysis_replay_mode(const onv_analysis *analysis, size_t index,
                                            onv_replay_mode_info *info)
{
    return onv_analysis_replay_mode_get(analysis, index, info, sizeof *info);
}

/* The most while a step runs. */
typedef struct onv_replay_step_info {
    uint64_t predicted_bytes, measured_bytes, predicted_live_bytes, measured_live_bytes;
} onv_replay_step_info;

/* False beyond the last one: of this and of the next. */
ONV_API bool onv_analysis_replay_step_get(const onv_analysis *analysis, size_t mode, size_t index,
                                          onv_replay_step_info *info, size_t size);

static inline bool onv_analysis_replay_step(const onv_analysis *analysis, size_t mode, size_t index,
                                            onv_replay_step_info *info)
{
    return onv_analysis_replay_step_get(analysis, mode, index, info, sizeof *info);
}

typedef struct onv_fault_info {
    const char *kind;
    uint64_t step;
    uint64_t offset; /* in the buffer */
    const char *message;
} onv_fault_info;

ONV_API bool onv_analysis_replay_fault_get(const onv_analysis *analysis, size_t mode, size_t index,
                                           onv_fault_info *info, size_t size);

static inline bool onv_analysis_replay_fault(const onv_analysis *analysis, size_t mode,
                                             size_t index, onv_fault_info *info)
{
    return onv_analysis_replay_fault_get(analysis, mode, index, info, sizeof *info);
}

/* The largest batch of a mode, where it was asked for. */
typedef struct onv_replay_max_batch_info {
    const char *mode, *runtime, *plan;
    int64_t predicted, measured;
    bool predicted_is_least; /* a pool may hold more */
    bool agrees;
} onv_replay_max_batch_info;

ONV_API size_t onv_analysis_replay_max_batch_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_replay_max_batch_get(const onv_analysis *analysis, size_t index,
                                               onv_replay_max_batch_info *info, size_t size);

static inline bool onv_analysis_replay_max_batch(const onv_analysis *analysis, size_t index,
                                                 onv_replay_max_batch_info *info)
{
    return onv_analysis_replay_max_batch_get(analysis, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif
/* Reports: everything that leaves the program as text. */
#ifndef ONNXVRAM_REPORT_H
#define ONNXVRAM_REPORT_H

/* Sessions of ONNX Runtime. */
#ifndef ONNXVRAM_SESSIONS_H
#define ONNXVRAM_SESSIONS_H

/* What runtimes would hold, and whether it fits. */
#ifndef ONNXVRAM_RUNTIMES_H
#define ONNXVRAM_RUNTIMES_H


#ifdef __cplusplus
extern "C" {
#endif

/* What a runtime would hold on the device. Exact under its rules, but for the two ranges, which are
 * estimates. */
typedef struct onv_runtime_info {
    const char *name;
    const char *summary;
    uint64_t weight_bytes;
    uint64_t activation_bytes;          /* the most beyond the weights */
    uint64_t held_bytes;                /* both together, as taken from the device */
    uint64_t driver_bytes;              /* handles of libraries, outside the allocator */
    uint64_t context_low, context_high; /* of the driver */
    uint64_t total_low, total_high;
    bool out_of_memory; /* a limit of its own, like gpu_mem_limit, is not enough */
    uint64_t oom_bytes; /* what found no memory there */
    /* torch, async: as their allocators count; tensors alone, without workspaces. 0 elsewhere. */
    uint64_t allocated_peak_bytes, reserved_peak_bytes, tensor_peak_bytes;
    /* torch: allocated where names of modules hold what they can, and where all activations that may work in
     * place do. */
    uint64_t locals_peak_bytes, inplace_peak_bytes;
    /* arena */
    uint64_t lower_bound_bytes; /* no plan needs less */
    uint64_t alignment;         /* of offsets */
    bool optimal;               /* the plan needs no more than that */
    /* ort: what the arena reserves in the first run and later, of the order of initializers that needs most, and
     * of the one that needs least. */
    uint64_t first_run_bytes, steady_bytes, low_bytes;
    /* The graph that runs, where the runtime makes its own of the model (ort): 0 elsewhere. */
    uint64_t nodes, nodes_on_cpu, copies;
    /* Of the first budget: as onv_fit_info. */
    bool fits;
    int64_t max_batch;
} onv_runtime_info;

/* The runtimes asked for; none while a tensor is of unknown size. */
ONV_API size_t onv_analysis_runtime_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_runtime_get(const onv_analysis *analysis, size_t index,
                                      onv_runtime_info *info, size_t size);

static inline bool onv_analysis_runtime(const onv_analysis *analysis, size_t index,
                                        onv_runtime_info *info)
{
    return onv_analysis_runtime_get(analysis, index, info, sizeof *info);
}

/* What a runtime rewrote in the model's graph (ort), by its own name. */
typedef struct onv_rewrite_info {
    const char *name;
    uint64_t count;
    bool is_not_modelled; /* it would, but the figures are without it */
} onv_rewrite_info;

/* False beyond the last one, and for other runtimes. */
ONV_API bool onv_analysis_runtime_rewrite_get(const onv_analysis *analysis, size_t runtime,
                                              size_t index, onv_rewrite_info *info, size_t size);

static inline bool onv_analysis_runtime_rewrite(const onv_analysis *analysis, size_t runtime,
                                                size_t index, onv_rewrite_info *info)
{
    return onv_analysis_runtime_rewrite_get(analysis, runtime, index, info, sizeof *info);
}

/* How it is configured (ort): a name of onv_ort_setting_at() and its value; false beyond the last one, and for other
 * runtimes. */
typedef struct onv_setting_info {
    const char *name, *value;
} onv_setting_info;

ONV_API bool onv_analysis_runtime_setting_get(const onv_analysis *analysis, size_t runtime,
                                              size_t index, onv_setting_info *info, size_t size);

static inline bool onv_analysis_runtime_setting(const onv_analysis *analysis, size_t runtime,
                                                size_t index, onv_setting_info *info)
{
    return onv_analysis_runtime_setting_get(analysis, runtime, index, info, sizeof *info);
}

typedef struct onv_fit_info {
    uint64_t budget, usable; /* usable: less the margin */
    bool fits;               /* for every runtime asked for, at the upper end of the estimates */
    int64_t max_batch;       /* that fits all of them; 0: none, or not asked for */
    bool has_max_batch;      /* it was asked for */
    const char *max_dim;     /* the dim whose largest size `max_batch` is; NULL: the batch */
    unsigned margin_percent;
} onv_fit_info;

/* False where no budget was given, or a tensor is of unknown size. */
ONV_API bool onv_analysis_fit_get(const onv_analysis *analysis, onv_fit_info *info, size_t size);

static inline bool onv_analysis_fit(const onv_analysis *analysis, onv_fit_info *info)
{
    return onv_analysis_fit_get(analysis, info, sizeof *info);
}

/* All of the comparison with onv_options.baseline. */
typedef struct onv_growth_verdict {
    const char *baseline;
    bool other_bindings; /* it is of other sizes */
    bool exceeds;        /* a figure grew by more than is allowed */
    bool has_max_growth;
    uint32_t max_growth_basis_points;
} onv_growth_verdict;

/* False where there is no baseline. */
ONV_API bool onv_analysis_growth_verdict_get(const onv_analysis *analysis, onv_growth_verdict *info,
                                             size_t size);

static inline bool onv_analysis_growth_verdict(const onv_analysis *analysis,
                                               onv_growth_verdict *info)
{
    return onv_analysis_growth_verdict_get(analysis, info, sizeof *info);
}

/* The figures to compare with those of onv_options.baseline. */
typedef struct onv_growth_info {
    const char *what; /* "weights", "peak", "total", a runtime, "train" */
    uint64_t before, after;
    bool exceeds; /* it grew by more than is allowed */
} onv_growth_info;

ONV_API size_t onv_analysis_growth_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_growth_get(const onv_analysis *analysis, size_t index,
                                     onv_growth_info *info, size_t size);

static inline bool onv_analysis_growth(const onv_analysis *analysis, size_t index,
                                       onv_growth_info *info)
{
    return onv_analysis_growth_get(analysis, index, info, sizeof *info);
}

/* Of each of onv_options.budgets. */
ONV_API size_t onv_analysis_device_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_device_get(const onv_analysis *analysis, size_t index, const char **name,
                                     onv_fit_info *info, size_t size);

static inline bool onv_analysis_device(const onv_analysis *analysis, size_t index,
                                       const char **name, onv_fit_info *info)
{
    return onv_analysis_device_get(analysis, index, name, info, sizeof *info);
}

/* A runtime on that device, whose libraries may differ. */
typedef struct onv_device_runtime_info {
    uint64_t total_high;
    bool fits;
    int64_t max_batch;
} onv_device_runtime_info;

/* False beyond the last device, and the last runtime. */
ONV_API bool onv_analysis_device_runtime_get(const onv_analysis *analysis, size_t device,
                                             size_t runtime, onv_device_runtime_info *info,
                                             size_t size);

static inline bool onv_analysis_device_runtime(const onv_analysis *analysis, size_t device,
                                               size_t runtime, onv_device_runtime_info *info)
{
    return onv_analysis_device_runtime_get(analysis, device, runtime, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Sessions of ONNX Runtime in one process on one device: each has an arena and handles of its own, the
 * context is there once. */
typedef struct onv_together_info {
    uint64_t sessions;
    uint64_t arenas_low, arenas_high;
    uint64_t shared_arena; /* what one arena for all of them grows to, one run at a time */
    uint64_t driver_bytes;
    uint64_t context_low, context_high;
    uint64_t total_low, total_high; /* with an arena each */
} onv_together_info;

/* Each analysis `instances[i]` times. ONV_ERR_USAGE where one has no figure for the runtime ort. */
ONV_API onv_status onv_together_get(onv_analysis *const *analyses, const unsigned *instances,
                                    size_t count, onv_together_info *info, size_t size,
                                    onv_error *error);

static inline onv_status onv_together(onv_analysis *const *analyses, const unsigned *instances,
                                      size_t count, onv_together_info *info, onv_error *error)
{
    return onv_together_get(analyses, instances, count, info, sizeof *info, error);
}

/* A session with other settings (onv_options.ort_advise), those that need least first. */
typedef struct onv_advice_info {
    uint64_t first_run_bytes, steady_bytes; /* of the order of initializers that needs most */
    uint64_t low_bytes;                     /* of the one that needs least */
    uint64_t in_use_bytes;                  /* at most */
    uint64_t least_limit_bytes;             /* the smallest gpu_mem_limit that is enough */
    bool is_given;                          /* the settings of the options */
} onv_advice_info;

ONV_API size_t onv_analysis_advice_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_advice_get(const onv_analysis *analysis, size_t index,
                                     onv_advice_info *info, size_t size);

static inline bool onv_analysis_advice(const onv_analysis *analysis, size_t index,
                                       onv_advice_info *info)
{
    return onv_analysis_advice_get(analysis, index, info, sizeof *info);
}

/* A setting of a row of advice: a name of onv_ort_setting_at() and its value. */
ONV_API bool onv_analysis_advice_setting_get(const onv_analysis *analysis, size_t row, size_t index,
                                             onv_setting_info *info, size_t size);

static inline bool onv_analysis_advice_setting(const onv_analysis *analysis, size_t row,
                                               size_t index, onv_setting_info *info)
{
    return onv_analysis_advice_setting_get(analysis, row, index, info, sizeof *info);
}

/* What a sequence of requests (onv_options.shape_trace) leaves reserved, by policy: how the arena is extended, and
 * whether it is shrunk after each run. */
typedef struct onv_shape_trace_info {
    size_t requests, dims;
    uint64_t orders; /* of the requests that were tried */
} onv_shape_trace_info;

/* False where no requests were given. */
ONV_API bool onv_analysis_shape_trace_get(const onv_analysis *analysis, onv_shape_trace_info *info,
                                          size_t size);

static inline bool onv_analysis_shape_trace(const onv_analysis *analysis,
                                            onv_shape_trace_info *info)
{
    return onv_analysis_shape_trace_get(analysis, info, sizeof *info);
}

typedef struct onv_policy_info {
    const char *name;
    uint64_t created_bytes;                       /* before the first request */
    uint64_t most_bytes;                          /* at any time */
    uint64_t best_order_bytes, worst_order_bytes; /* at the end, of the orders tried */
    bool out_of_memory;                           /* the limit is not enough */
} onv_policy_info;

ONV_API size_t onv_analysis_policy_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_policy_get(const onv_analysis *analysis, size_t index,
                                     onv_policy_info *info, size_t size);

static inline bool onv_analysis_policy(const onv_analysis *analysis, size_t index,
                                       onv_policy_info *info)
{
    return onv_analysis_policy_get(analysis, index, info, sizeof *info);
}

/* A request: what is in use while it runs; the size of one of its dims; what is reserved after it with a policy. */
ONV_API uint64_t onv_analysis_request_in_use(const onv_analysis *analysis, size_t request);
ONV_API int64_t onv_analysis_request_dim(const onv_analysis *analysis, size_t request, size_t dim,
                                         const char **name);
ONV_API uint64_t onv_analysis_request_reserved(const onv_analysis *analysis, size_t request,
                                               size_t policy);

#ifdef __cplusplus
}
#endif

#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum onv_format {
    ONV_FORMAT_TEXT,
    ONV_FORMAT_JSON,
    ONV_FORMAT_CSV,    /* the tensors, one row each */
    ONV_FORMAT_LAYERS, /* a table per module, from the scopes in node names */
    ONV_FORMAT_DUMP_GRAPH,
    ONV_FORMAT_DUMP_INTERVALS,
    ONV_FORMAT_DUMP_PLAN,
    ONV_FORMAT_DUMP_TRACE,
    ONV_FORMAT_DUMP_REPLAY,
    ONV_FORMAT_CHECKPOINTS,    /* the chosen checkpointing plan, or all, for programs to apply */
    ONV_FORMAT_ORT_PARTITION,  /* bytes by node, for ONNX Runtime's partitioning by resources */
    ONV_FORMAT_FORMULA,        /* peak and totals as functions of the free dims: text, */
    ONV_FORMAT_FORMULA_PYTHON, /* Python, */
    ONV_FORMAT_FORMULA_C,      /* C */
    ONV_FORMAT_MARKDOWN,       /* a summary for a pull request */
    ONV_FORMAT_DIFF,           /* of two models: what changed from the first to the second; text, */
    ONV_FORMAT_DIFF_MARKDOWN,  /* Markdown, */
    ONV_FORMAT_DIFF_JSON,      /* JSON */
    ONV_FORMAT_ONNX, /* the model itself, with shapes, lifetimes and the nodes in that order */
    ONV_FORMAT_DUMP_HEADER, /* the plan of the runtime arena as a header of C */
    ONV_FORMAT_HTML, /* a page to look at, which asks for nothing else: needs onv_options.timelines */
    ONV_FORMAT_SVG, /* live memory over the steps as a picture: likewise */
    /* For viewers of other projects, of one model with all sizes; likewise. */
    ONV_FORMAT_MEMORY_VIZ,    /* PyTorch's: the pickle of torch.cuda.memory._dump_snapshot */
    ONV_FORMAT_PERFETTO,      /* a trace of TrackEvents */
    ONV_FORMAT_MODEL_EXPLORER /* Model Explorer's node data, JSON */
} onv_format;

typedef struct onv_report_options {
    size_t struct_size;
    bool color;
    bool unicode;                      /* bars and lines in Unicode, else ASCII */
    unsigned width;                    /* columns; 0: 80 */
    unsigned top;                      /* how many of the largest tensors; 0: 10 */
    unsigned layer_depth;              /* scopes of ONV_FORMAT_LAYERS; 0: all */
    int verbosity;                     /* -1 quiet, 0, 1 verbose */
    const onv_together_info *together; /* said of all models; NULL: nothing */
} onv_report_options;

ONV_API void onv_report_options_init(onv_report_options *options, size_t size);

static inline onv_report_options onv_report_options_default(void)
{
    onv_report_options options;
    onv_report_options_init(&options, sizeof options);
    return options;
}

ONV_API onv_status onv_report(const onv_analysis *const *analyses, size_t count, onv_format format,
                              const onv_report_options *options, onv_write_fn write, void *context,
                              onv_error *error);

/* A report of analyses that come one after another: each may be destroyed once it was added. Formats that compare or
 * draw all models together have none; onv_report writes those, as all that say something of `together`. */
typedef struct onv_report_stream onv_report_stream;

ONV_API bool onv_report_can_stream(onv_format format);

/* `expected`: how many analyses will come, at most. What is written is what onv_report writes of those that came. */
ONV_API onv_status onv_report_begin(onv_format format, size_t expected,
                                    const onv_report_options *options, onv_write_fn write,
                                    void *context, onv_report_stream **stream, onv_error *error);
ONV_API onv_status onv_report_add(onv_report_stream *stream, const onv_analysis *analysis,
                                  onv_error *error);

/* Writes the end, where everything else was written, and destroys the stream in any case. NULL: nothing. */
ONV_API onv_status onv_report_end(onv_report_stream *stream, onv_error *error);

#ifdef __cplusplus
}
#endif

#endif
/* What training would hold, with checkpointing plans and under torch.compile. */
#ifndef ONNXVRAM_TRAINING_H
#define ONNXVRAM_TRAINING_H


#ifdef __cplusplus
extern "C" {
#endif

/* Training in eager PyTorch, on one device. Sizes as asked for; the last two as PyTorch's allocator
 * counts. */
typedef struct onv_training_info {
    const char *optimizer, *loss;
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes;
    uint64_t saved_activation_bytes; /* between forward and backward, each storage once */
    uint64_t peak_bytes;             /* tensors alone */
    uint64_t allocated_peak_bytes, reserved_peak_bytes; /* with workspaces of libraries */
    uint64_t buffer_bytes;                              /* running statistics, constants */
    uint64_t requested_peak_bytes;                      /* with workspaces, sizes as asked for */
    uint64_t driver_bytes;                              /* handles of libraries */
    uint64_t first_iteration_peak_bytes; /* where it tries kernels (cudnn_benchmark); else 0 */
    /* What the allocator has to give back to stay below the budget, and what it would reserve without one; 0 where
     * it need not. */
    uint64_t released_bytes, unbounded_reserved_bytes;
    uint64_t forward_macs;
    /* Optional costs that were asked for; 0: not. */
    uint64_t bucket_bytes, gathered_bytes, reduce_bytes; /* ddp, fsdp */
    uint64_t master_bytes, ema_bytes, host_bytes;
    uint64_t quantized_bytes, dequantized_bytes;
    uint64_t units; /* that fully_shard gathers one by one */
} onv_training_info;

/* False where training was not asked for. */
ONV_API bool onv_analysis_training_get(const onv_analysis *analysis, onv_training_info *info,
                                       size_t size);

static inline bool onv_analysis_training(const onv_analysis *analysis, onv_training_info *info)
{
    return onv_analysis_training_get(analysis, info, sizeof *info);
}

/* A checkpointing plan: training with it, and its price. */
typedef struct onv_checkpoint_info {
    const char *name;
    uint64_t peak_bytes, saved_activation_bytes;
    uint64_t allocated_peak_bytes, reserved_peak_bytes;
    uint64_t recompute_macs;
    uint64_t pass_macs; /* of a forward and a backward, which counts as two forwards */
    size_t segments;
    bool chosen; /* what the figures of training are of: the only plan, or the budget's choice */
    uint64_t offloaded_bytes, returned_bytes; /* copied to the host, and back */
    uint64_t host_bytes;                      /* of pinned memory for it */
    bool offloads;                            /* these three are figures of it */
    int64_t max_batch;                        /* that fits the budget; 0: none, or not asked for */
    uint64_t by_hand;     /* segments that nothing tells where in the network they are */
    size_t kept;          /* operations in segments whose results stay */
    bool compiles;        /* torch.compile in place of segments */
    double memory_budget; /* then its activation_memory_budget, from 0 to 1 */
} onv_checkpoint_info;

/* False beyond the last one. */
ONV_API bool onv_analysis_checkpoint_get(const onv_analysis *analysis, size_t index,
                                         onv_checkpoint_info *info, size_t size);

static inline bool onv_analysis_checkpoint(const onv_analysis *analysis, size_t index,
                                           onv_checkpoint_info *info)
{
    return onv_analysis_checkpoint_get(analysis, index, info, sizeof *info);
}

/* A segment: what it begins and ends with. */
typedef struct onv_segment_info {
    const char *first, *last;
} onv_segment_info;

/* False beyond the last one. */
ONV_API bool onv_analysis_checkpoint_segment_get(const onv_analysis *analysis, size_t plan,
                                                 size_t index, onv_segment_info *info, size_t size);

static inline bool onv_analysis_checkpoint_segment(const onv_analysis *analysis, size_t plan,
                                                   size_t index, onv_segment_info *info)
{
    return onv_analysis_checkpoint_segment_get(analysis, plan, index, info, sizeof *info);
}

/* The name of an operation of the plan whose result stays; NULL beyond the last one. */
ONV_API const char *onv_analysis_checkpoint_kept(const onv_analysis *analysis, size_t plan,
                                                 size_t index);

/* Training under torch.compile: what AOTAutograd's partition keeps, and the eager step with it. */
typedef struct onv_compiled_info {
    double budget;
    uint64_t saved_activation_bytes, peak_bytes;
    uint64_t recompute_macs, pass_macs; /* as above */
    size_t saved;                       /* tensors that the network keeps */
} onv_compiled_info;

/* False where it was not asked for. */
ONV_API bool onv_analysis_compiled_get(const onv_analysis *analysis, onv_compiled_info *info,
                                       size_t size);

static inline bool onv_analysis_compiled(const onv_analysis *analysis, onv_compiled_info *info)
{
    return onv_analysis_compiled_get(analysis, info, sizeof *info);
}

/* What the partition keeps. */
typedef struct onv_compiled_tensor_info {
    size_t tensor;         /* ONV_NO_INDEX: it is not a tensor of the model */
    const char *node;      /* that makes it; NULL: none */
    const char *operation; /* that makes it; NULL: not told */
    uint64_t bytes;
} onv_compiled_tensor_info;

ONV_API bool onv_analysis_compiled_tensor_get(const onv_analysis *analysis, size_t index,
                                              onv_compiled_tensor_info *info, size_t size);

static inline bool onv_analysis_compiled_tensor(const onv_analysis *analysis, size_t index,
                                                onv_compiled_tensor_info *info)
{
    return onv_analysis_compiled_tensor_get(analysis, index, info, sizeof *info);
}

/* What plans are made of (with onv_options.timelines): units that run one after the other, then their backwards in
 * reverse, and the tensors between them. */
typedef struct onv_chain_info {
    size_t units, tensors;
    uint64_t beside_bytes; /* there while the first units run */
} onv_chain_info;

/* False where no plans were asked for. */
ONV_API bool onv_analysis_chain_get(const onv_analysis *analysis, onv_chain_info *info,
                                    size_t size);

static inline bool onv_analysis_chain(const onv_analysis *analysis, onv_chain_info *info)
{
    return onv_analysis_chain_get(analysis, info, sizeof *info);
}

typedef struct onv_chain_unit_info {
    const char *node; /* of most products; NULL: none */
    const char *operation;
    uint64_t macs;
    uint64_t forward_bytes;  /* while it runs, and keeps what its backward needs */
    uint64_t passing_bytes;  /* while it runs, and keeps nothing */
    uint64_t own_bytes;      /* what it alone keeps */
    uint64_t backward_bytes; /* in its backward, in addition to what is held before it */
    uint64_t beside_bytes;   /* while units up to it run, and it is the next one to go backward */
} onv_chain_unit_info;

ONV_API size_t onv_analysis_chain_unit_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_chain_unit_get(const onv_analysis *analysis, size_t index,
                                         onv_chain_unit_info *info, size_t size);

static inline bool onv_analysis_chain_unit(const onv_analysis *analysis, size_t index,
                                           onv_chain_unit_info *info)
{
    return onv_analysis_chain_unit_get(analysis, index, info, sizeof *info);
}

/* A tensor that later units read. */
typedef struct onv_chain_tensor_info {
    uint64_t bytes;
    size_t made_by; /* a unit */
    bool saved_by_maker;
    size_t readers;
} onv_chain_tensor_info;

ONV_API size_t onv_analysis_chain_tensor_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_chain_tensor_get(const onv_analysis *analysis, size_t index,
                                           onv_chain_tensor_info *info, size_t size);

static inline bool onv_analysis_chain_tensor(const onv_analysis *analysis, size_t index,
                                             onv_chain_tensor_info *info)
{
    return onv_analysis_chain_tensor_get(analysis, index, info, sizeof *info);
}

/* A unit that reads it; whether its backward needs it. */
typedef struct onv_chain_reader_info {
    size_t unit;
    bool saves;
} onv_chain_reader_info;

ONV_API bool onv_analysis_chain_reader_get(const onv_analysis *analysis, size_t tensor,
                                           size_t index, onv_chain_reader_info *info, size_t size);

static inline bool onv_analysis_chain_reader(const onv_analysis *analysis, size_t tensor,
                                             size_t index, onv_chain_reader_info *info)
{
    return onv_analysis_chain_reader_get(analysis, tensor, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif
/* What would be otherwise: weights in fewer bits, key-value caches, possible savings. */
#ifndef ONNXVRAM_WHAT_IF_H
#define ONNXVRAM_WHAT_IF_H


#ifdef __cplusplus
extern "C" {
#endif

/* What became of the weights (onv_options.weights, without training). */
typedef struct onv_quantized_info {
    const char *format;
    uint64_t matrices;
    uint64_t bytes_before, bytes; /* of them */
    uint64_t left_bytes;          /* of all other weights, and of these: */
    uint64_t left_table_bytes, left_convolution_bytes;
} onv_quantized_info;

ONV_API bool onv_analysis_quantized_get(const onv_analysis *analysis, onv_quantized_info *info,
                                        size_t size);

static inline bool onv_analysis_quantized(const onv_analysis *analysis, onv_quantized_info *info)
{
    return onv_analysis_quantized_get(analysis, info, sizeof *info);
}

/* The key-value cache (onv_options.kv_cache). */
typedef struct onv_kv_cache_info {
    const char *mode; /* "copies", "shared" */
    uint64_t layers;
    bool is_sized; /* what follows is known */
    uint64_t token_bytes;
    uint64_t past_tokens, tokens;       /* before and after the step */
    uint64_t past_bytes, present_bytes; /* likewise */
    uint64_t fixed_bytes;               /* of what does not grow */
    uint64_t bytes;                     /* of all that the application holds */
    int64_t longest_context;            /* that fits the budget; -1: not asked for */
    size_t pairs;
} onv_kv_cache_info;

ONV_API bool onv_analysis_kv_cache_get(const onv_analysis *analysis, onv_kv_cache_info *info,
                                       size_t size);

static inline bool onv_analysis_kv_cache(const onv_analysis *analysis, onv_kv_cache_info *info)
{
    return onv_analysis_kv_cache_get(analysis, info, sizeof *info);
}

typedef struct onv_kv_pair_info {
    size_t past, present; /* tensors; ONV_NO_INDEX: there is no present */
    int axis;             /* of the sequence; -1: it does not grow */
    uint64_t past_bytes, present_bytes;
    uint64_t token_bytes; /* of one more */
    bool in_place;        /* its operator fills a shared buffer by itself */
} onv_kv_pair_info;

ONV_API size_t onv_analysis_kv_pair_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_kv_pair_get(const onv_analysis *analysis, size_t index,
                                      onv_kv_pair_info *info, size_t size);

static inline bool onv_analysis_kv_pair(const onv_analysis *analysis, size_t index,
                                        onv_kv_pair_info *info)
{
    return onv_analysis_kv_pair_get(analysis, index, info, sizeof *info);
}

/* A change that makes the peak smaller (onv_options.savings), the largest first. */
typedef struct onv_saving_info {
    const char *kind;
    uint64_t saved_bytes, peak_bytes; /* peak_bytes: with the change */
    size_t tensor;                    /* ONV_NO_INDEX: it is not of one */
    const char *node;                 /* NULL: likewise */
    bool everywhere;                  /* for all nodes of its operator */
    uint64_t parts, batch;          /* of a batch in parts: how many, of how many samples; else 0 */
    uint64_t more_macs, more_nodes; /* that run for it */
} onv_saving_info;

ONV_API size_t onv_analysis_saving_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_saving_get(const onv_analysis *analysis, size_t index,
                                     onv_saving_info *info, size_t size);

static inline bool onv_analysis_saving(const onv_analysis *analysis, size_t index,
                                       onv_saving_info *info)
{
    return onv_analysis_saving_get(analysis, index, info, sizeof *info);
}

#ifdef __cplusplus
}
#endif

#endif

#endif
