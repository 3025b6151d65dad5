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
 * Sizes are bytes in uint64_t. The library keeps no global state: different analyses may run on
 * different threads; one analysis belongs to one thread at a time.
 */
#ifndef ONNXVRAM_H
#define ONNXVRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; that of the library is onv_version_number(). One can be older than the other: structs
 * grow at their end alone, and say how large they are. Those that say nothing, because they stand in arrays or pass
 * errors (onv_error, onv_dim_binding, onv_shape_binding, onv_input_value, onv_budget, onv_figure, onv_baseline), never
 * change. */
#define ONV_VERSION_MAJOR 0
#define ONV_VERSION_MINOR 2
#define ONV_VERSION_PATCH 0
#define ONV_VERSION_NUMBER                                                                         \
    (ONV_VERSION_MAJOR * 1000000 + ONV_VERSION_MINOR * 1000 + ONV_VERSION_PATCH)

#ifdef __cplusplus
static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "onnxvram needs a 64-bit platform");
#else
_Static_assert(sizeof(void *) == 8 && sizeof(size_t) == 8, "onnxvram needs a 64-bit platform");
#endif

#if defined(__GNUC__)
#define ONV_API __attribute__((visibility("default")))
#else
#define ONV_API
#endif

/* --- Status and errors ------------------------------------------------------------------------ */

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

ONV_API const char *onv_status_name(onv_status status);
ONV_API const char *onv_version(void);     /* "0.2.0" */
ONV_API unsigned onv_version_number(void); /* like ONV_VERSION_NUMBER, of the library */

/* Copies `text`, which may come from a model, into out[size] so that it is safe to show on a
 * terminal: control characters, bidirectional overrides and ill-formed UTF-8 become escapes like
 * \x1b. Cut to what fits; always NUL-terminated if size > 0. Returns the length written. */
ONV_API size_t onv_printable(const char *text, char *out, size_t size);

/* --- Options ---------------------------------------------------------------------------------- */

/* Limits that hostile input meets. 0 in any field means its default. */
typedef struct onv_limits {
    size_t struct_size; /* sizeof(onv_limits), set by onv_limits_default() or onv_limits_init() */
    uint64_t nodes;     /* nodes after expansion of functions; default 4 Mi, of functions one for
                                each byte of the file beside 65536 */
    uint64_t values;    /* default 16 Mi */
    uint32_t nesting;   /* depth of messages in the file; default 200 */
    uint32_t function_depth; /* functions calling functions; default 64 */
    uint64_t attr_elems;     /* elements of one attribute; default 1 Mi */
    uint64_t name_bytes;     /* length of one name; default 64 KiB */
    uint64_t arena_bytes;    /* memory of one analysis; default 480 MiB */
    uint64_t file_bytes;     /* of the model's file; default 1 TiB */
    uint32_t known_elems;    /* of a tensor whose contents decide shapes; default 4096 */
    uint32_t expression;     /* parts of the expression of a size; default 4096 */
    uint64_t node_runs;      /* of inference, beside 64 for each node; default 1 Mi */
    uint64_t seconds;        /* of an analysis with one of its reports; default 600 */
    uint64_t output_bytes;   /* of one report; default 200 for each byte of the file beside 1 MiB */
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
    bool ema;            /* a moving average of the parameters beside them */
    uint64_t pool;       /* bytes that PyTorch's allocator has cached before, in one segment */
    const char *weights; /* a format of onv_weight_format_name(): of linear layers; of frozen ones,
                               with `train` */
    bool as_exported;    /* no operator that the exporter decomposed is recognised */
    const char *attention;      /* "auto", "math", "flash", "efficient"; NULL: the first */
    const char *checkpoint;     /* plans of onv_checkpoint_name(), with commas, or "all" */
    const char *zero_grad;      /* "before-forward", "before-backward", "keep"; NULL: the first */
    const char *optimizer_impl; /* "foreach", "fused", "for-loop"; NULL: as PyTorch chooses */
    const char *replay;         /* "cuda", "host": replay the allocations there; NULL: not */
    bool (*replay_cancelled)(void *context); /* asked often; true ends with ONV_ERR_CANCELLED */
    void *replay_context;
    /* Asked now and then by searches, from the thread of the call; true ends the analysis with
     * ONV_ERR_CANCELLED. */
    bool (*cancelled)(void *context);
    void *cancel_context;
    bool
        no_external_data; /* no file beside the model's own is opened: what decides shapes in one is
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
    /* With max_batch: the symbolic dim whose largest size is searched; NULL: the batch. */
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
} onv_options;

/* All options at their defaults; `size` is sizeof(onv_options) of the caller's header. */
ONV_API void onv_options_init(onv_options *options, size_t size);

static inline onv_options onv_options_default(void)
{
    onv_options options;
    onv_options_init(&options, sizeof options);
    return options;
}

/* --- Analysis --------------------------------------------------------------------------------- */

typedef struct onv_analysis onv_analysis;

/* Reads the model at `path` and analyses it. On failure *analysis is NULL and the error is filled.
 * Files of 4 MiB and more are mapped, here and in onv_simulate_file(): where others may shorten them
 * meanwhile, a caller that must not die of SIGBUS has to handle it. */
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

/* A file beside the model's own that holds weights, as the model names it; NULL: all are in the model. */
ONV_API const char *onv_analysis_external_file(const onv_analysis *analysis);

typedef enum onv_tensor_kind {
    ONV_TENSOR_INPUT,
    ONV_TENSOR_OUTPUT,
    ONV_TENSOR_ACTIVATION,
    ONV_TENSOR_INITIALIZER,
    ONV_TENSOR_CONSTANT
} onv_tensor_kind;

#define ONV_SIZE_UNKNOWN UINT64_MAX

typedef struct onv_tensor_info {
    const char *name;
    onv_tensor_kind kind;
    const char *dtype; /* "float32" ... */
    const char *shape; /* "[256, 64, 112, 112]", dims may be expressions, "?" */
    uint64_t bytes;    /* ONV_SIZE_UNKNOWN if it has none */
    bool bound;        /* bytes is an upper bound */
    bool live;         /* has a lifetime (weights have none) */
    uint64_t first_step, last_step;
} onv_tensor_info;

ONV_API size_t onv_analysis_tensor_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_tensor_get(const onv_analysis *analysis, size_t index,
                                     onv_tensor_info *info, size_t size);

static inline bool onv_analysis_tensor(const onv_analysis *analysis, size_t index,
                                       onv_tensor_info *info)
{
    return onv_analysis_tensor_get(analysis, index, info, sizeof *info);
}

/* What a runtime would hold on the device. Exact under its rules, but for the two ranges, which are
 * estimates. */
typedef struct onv_runtime_info {
    const char *name;
    const char *summary;
    uint64_t weight_bytes;
    uint64_t activation_bytes;          /* the most beyond the weights */
    uint64_t held_bytes;                /* both together, as taken from the device */
    uint64_t driver_bytes;              /* handles of libraries, beside the allocator */
    uint64_t context_low, context_high; /* of the driver */
    uint64_t total_low, total_high;
    bool out_of_memory; /* a limit of its own, like gpu_mem_limit, is not enough */
} onv_runtime_info;

/* Training in eager PyTorch, on one device. Sizes as asked for; the last two as PyTorch's allocator
 * counts. */
typedef struct onv_training_info {
    const char *optimizer, *loss;
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes;
    uint64_t saved_activation_bytes; /* between forward and backward, each storage once */
    uint64_t peak_bytes;             /* tensors alone */
    uint64_t allocated_peak_bytes, reserved_peak_bytes; /* with workspaces of libraries */
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
} onv_checkpoint_info;

/* False beyond the last one. */
ONV_API bool onv_analysis_checkpoint_get(const onv_analysis *analysis, size_t index,
                                         onv_checkpoint_info *info, size_t size);

static inline bool onv_analysis_checkpoint(const onv_analysis *analysis, size_t index,
                                           onv_checkpoint_info *info)
{
    return onv_analysis_checkpoint_get(analysis, index, info, sizeof *info);
}

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

typedef struct onv_fit_info {
    uint64_t budget, usable; /* usable: less the margin */
    bool fits;               /* for every runtime asked for, at the upper end of the estimates */
    int64_t max_batch;       /* that fits all of them; 0: none, or not asked for */
} onv_fit_info;

/* False where no budget was given, or a tensor is of unknown size. */
ONV_API bool onv_analysis_fit_get(const onv_analysis *analysis, onv_fit_info *info, size_t size);

static inline bool onv_analysis_fit(const onv_analysis *analysis, onv_fit_info *info)
{
    return onv_analysis_fit_get(analysis, info, sizeof *info);
}

/* The figures beside those of onv_options.baseline. */
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

/* What the replay found: all allocations that were predicted were made on the device, every buffer was
 * written and read again. Of several runtimes the largest. */
typedef struct onv_replay_info {
    const char *device; /* what ran: a GPU's name, "host memory (no GPU)" */
    bool is_gpu;
    bool agrees;        /* everything was as predicted */
    bool out_of_memory; /* the device was too small for some of it */
    uint64_t predicted_bytes, measured_bytes;
    uint64_t faults; /* of which a report tells */
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

/* The runtimes asked for; none while a tensor is of unknown size. */
ONV_API size_t onv_analysis_runtime_count(const onv_analysis *analysis);
ONV_API bool onv_analysis_runtime_get(const onv_analysis *analysis, size_t index,
                                      onv_runtime_info *info, size_t size);

static inline bool onv_analysis_runtime(const onv_analysis *analysis, size_t index,
                                        onv_runtime_info *info)
{
    return onv_analysis_runtime_get(analysis, index, info, sizeof *info);
}

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

/* --- Reports ---------------------------------------------------------------------------------- */

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

/* Takes `bytes` bytes at `text`; returns false to stop (the report then fails with ONV_ERR_IO). */
typedef bool (*onv_write_fn)(void *context, const char *text, size_t bytes);

ONV_API onv_status onv_report(const onv_analysis *const *analyses, size_t count, onv_format format,
                              const onv_report_options *options, onv_write_fn write, void *context,
                              onv_error *error);

/* --- Names -------------------------------------------------------------------------------------- */

/* The name of a list (NULL after the last one) that a mistyped word was likely meant to be; NULL where none is
 * near. */
ONV_API const char *onv_nearest_name(const char *word, const char *const *names);

/* --- GPUs ------------------------------------------------------------------------------------- */

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

/* --- Other files ------------------------------------------------------------------------------ */

typedef struct onv_plan_info {
    uint64_t height;      /* bytes that the plan needs */
    uint64_t lower_bound; /* no plan needs less */
    bool optimal;         /* the two are equal */
    bool fits;            /* within the capacity, or none was given */
    uint64_t nodes;       /* of the exact search */
    const char *strategy; /* static text */
} onv_plan_info;

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
 * segments. Beside the runtimes of an analysis, allocators by their own names: see
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
