#include "cli/table.h"

#include <limits.h>
#include <string.h>

#include "cli/values.h"

#define AT(field)         .at = offsetof(onv_cli, field)
#define COUNT(field, top) AT(field), .least = 1, .most = (top)
#define LIST(field, n)    AT(field), .count = offsetof(onv_cli, n)
#define NEEDS(what)       .needs = ONV_NEEDS_##what
#define WIDE(field)       AT(field), .is_wide = true
#define SIZE(field, like) AT(field), .size = (like)
#define OUTPUT(format)    .output = 1 + ONV_FORMAT_##format

/* As the enums are ordered. */
static const char *const colors[] = {"auto", "always", "never", NULL};
static const char *const precisions[] = {"fp32", "fp16", "bf16", NULL};

const onv_cli_row onv_cli_rows[] = {
    {'b', "batch", "N", "the batch size: the first dimension of the inputs",
     .read = onv_cli_set_batch, .heading = "Model and sizes"},
    {'d', "dim", "NAME=N",
     "bind a symbolic dimension, or a data-dependent size by its name (range#1); repeatable",
     .read = onv_cli_add_dim},
    {'s', "shape", "INPUT=AxBxC", "give an input's whole shape; repeatable",
     .read = onv_cli_add_shape},
    {'i', "input-value", "NAME=V,V,...", "value of a shape-determining input; or NAME=@FILE.pb",
     .read = onv_cli_add_input_value},
    {0, "op-shapes", "FILE", "shape rules for custom operators: docs/op-shapes.md",
     AT(analysis.op_shapes_file)},
    {0, "program", "FILE",
     "PyTorch's program of the model (.pt2, its JSON, a recording), or none; else one next to "
     "it: MODEL.pt2",
     AT(analysis.program)},
    {0, "precision", "TYPE", "what-if: cast all float tensors to fp32, fp16 or bf16",
     AT(analysis.precision), .choices = precisions, .least = ONV_PRECISION_FP32},
    {0, "weights", "FORMAT",
     "what-if: linear layers in fewer bits; with --train the frozen ones; see below",
     AT(analysis.weights)},
    {0, "kv-cache", "HOW",
     "what-if: key-value cache as copies or shared (one buffer a layer); with --budget the longest "
     "context",
     .read = onv_cli_set_kv_cache},
    {0, "order", "NAME", "order of execution; see below", AT(analysis.order)},
    {0, "runtime", "LIST", "runtimes to simulate: a comma-separated list; see below",
     AT(analysis.runtimes)},
    {0, "budget", "SIZE|GPU,...",
     "memory to fit: 16GiB, 80GB, a GPU, or several; exit status 3 if the model fits none",
     .read = onv_cli_set_budget, .heading = "Budget"},
    {0, "margin", "PERCENT", "keep this part of the budget free (0)", .read = onv_cli_set_margin},
    {0, "max-batch", NULL, "find the largest batch that fits the budget", AT(analysis.max_batch)},
    {0, "max-dim", "NAME", "find the largest size of a symbolic dimension that fits the budget",
     .read = onv_cli_set_max_dim},
    {0, "gpu", "NAME", "the GPU whose libraries take workspaces (that of --budget, or H100)",
     .read = onv_cli_set_gpu},
    {0, "list-gpus", NULL, "list the GPUs that --budget knows", .read = onv_cli_list_gpus},
    {'q', "quiet", NULL, "print the answer in a line; warnings go to standard error",
     .read = onv_cli_be_quiet, .heading = "Report"},
    {0, "strict", NULL,
     "warnings make exit status 5, unless it is another one; contradictions end the analysis",
     AT(analysis.strict)},
    {'v', "verbose", NULL, "print every diagnostic and every row", .read = onv_cli_be_verbose},
    {0, "top", "N", "how many of the largest tensors to list (10)", COUNT(report.top, INT_MAX)},
    {0, "color", "WHEN", "auto, always or never", AT(color), .choices = colors},
    {0, "format", "NAME", "format of the report: text, or markdown for a pull request",
     .read = onv_cli_set_format, NEEDS(PAGE)},
    {0, "layers", "[=DEPTH]", "print a table per module", .read = onv_cli_add_layers},
    {0, "formula", "[=HOW]", "print peak and totals as functions of the free dims: text, python, c",
     .read = onv_cli_add_formula},
    {0, "baseline", "FILE", "compare with an earlier --json report", AT(baseline)},
    {0, "max-growth", "PERCENT", "exit status 3 if a figure grew by more since the baseline",
     .read = onv_cli_set_max_growth, NEEDS(BASELINE)},
    {0, "snapshot", "FILE",
     "compare with a file of torch.cuda.memory._dump_snapshot(); exit status 4 if it is outside",
     AT(analysis.snapshot)},
    {0, "measured", "SIZE", "compare with what the device was seen to hold, as in 7421MiB",
     SIZE(analysis.measured, "7421MiB, as nvidia-smi says")},
    {0, "json", "[=FILE]", "write everything as JSON", OUTPUT(JSON), .heading = "Other outputs"},
    {0, "timelines", NULL, "with --json: the steps, buffers and offsets of each runtime, too",
     AT(analysis.timelines)},
    {0, "html", "[=FILE]", "write a self-contained page (MODEL.html)", OUTPUT(HTML),
     .fallback = ""},
    {0, "svg", "FILE", "write a picture of live memory over the steps", OUTPUT(SVG)},
    {0, "csv", "[=FILE]", "write one row per tensor as CSV", OUTPUT(CSV)},
    {0, "memory-viz", "FILE", "write a memory snapshot for PyTorch's viewer, MemoryViz.js",
     OUTPUT(MEMORY_VIZ)},
    {0, "perfetto", "FILE", "write a trace for Perfetto: bytes over the steps", OUTPUT(PERFETTO)},
    {0, "model-explorer", "FILE", "write bytes by node, as node data for Model Explorer",
     OUTPUT(MODEL_EXPLORER)},
    {0, "onnx-out", "FILE",
     "write the model with shapes, bytes and steps of its values, nodes in the --order",
     OUTPUT(ONNX), AT(analysis.onnx_out)},
    {0, "dump", "WHAT",
     "print intermediate data: graph, program, intervals, plan, header, trace, replay",
     .read = onv_cli_add_dump},
    {0, "align", "N",
     "round offsets of the runtime arena up to multiples of N bytes, a power of two",
     .read = onv_cli_set_arena_align},
    {0, "train", "OPTIMIZER", "size training with this optimizer; see below", AT(analysis.train),
     .heading = "Training"},
    {0, "loss", "NAME",
     "cross-entropy, fused-cross-entropy, chunked-cross-entropy[=N], mse or none; OUTPUT=NAME,... "
     "for single outputs",
     AT(analysis.loss)},
    {0, "amp", "TYPE", "autocast to fp16 or bf16, in inference too", AT(analysis.amp),
     .choices = precisions + 1, .least = ONV_PRECISION_FP16},
    {0, "freeze", "PATTERN", "parameters or modules that are not trained (* and ?); repeatable",
     LIST(freeze, analysis.n_freeze)},
    {0, "train-only", "PATTERN", "train these parameters or modules only; repeatable",
     LIST(train_only, analysis.n_train_only)},
    {0, "accumulate", "N", "batches per optimizer step", COUNT(analysis.accumulate, INT_MAX)},
    {0, "zero-grad", "WHEN",
     "when gradients are freed: before-forward, before-backward, or keep (filled with zeros)",
     AT(analysis.zero_grad)},
    {0, "optimizer-impl", "NAME", "foreach (PyTorch's choice on GPUs), fused or for-loop",
     AT(analysis.optimizer_impl)},
    {0, "master-weights", NULL,
     "float32 copies of 16-bit parameters (--precision) in the optimizer",
     AT(analysis.master_weights)},
    {0, "ema", NULL, "a moving average of the parameters, on the device", AT(analysis.ema)},
    {0, "offload", "WHAT", "optimizer: state and step on the host; gradients: gradients too",
     AT(analysis.offload)},
    {0, "ddp", "[=HOW]",
     "DistributedDataParallel; gradients are copied into buckets (copy) or are views of them "
     "(view)",
     AT(analysis.ddp), .fallback = "copy"},
    {0, "fsdp", "[=PATTERN,...]",
     "fully_shard of these modules (repeated modules, if none is given) and of the network",
     AT(analysis.fsdp), .fallback = ""},
    {0, "zero", "STAGE", "ZeRO stage 1, 2 or 3; with --world", COUNT(analysis.zero_stage, 3)},
    {0, "world", "N", "number of data-parallel ranks, with --zero, --ddp or --fsdp",
     COUNT(analysis.world, INT_MAX)},
    {0, "checkpoint", "LIST[@WHICH]",
     "compare checkpointing plans: a comma-separated list; see below; @5%, @12GiB or @ID takes one",
     AT(analysis.checkpoint), .heading = "Checkpointing plans and torch.compile"},
    {0, "plan", "FILE", "a plan that --plan-out FILE.json wrote", AT(analysis.plan)},
    {0, "plan-out", "FILE.py|FILE.json",
     "write the chosen plan, else the recommended one: a module to import, or data",
     .read = onv_cli_set_plan_out, NEEDS(CHECKPOINTS)},
    {0, "compile", "[=BUDGET]",
     "torch.compile: what it saves for backward, with an activation_memory_budget from 0 to 1 (1)",
     .read = onv_cli_set_compile},
    {0, "pytorch", "VERSION", "follow the rules of this release; see below", AT(analysis.pytorch),
     .heading = "Eager PyTorch"},
    {0, "attention", "KERNEL",
     "auto (PyTorch's choice), math (separate operations), flash or efficient",
     AT(analysis.attention)},
    {0, "attention-dropout", "P",
     "dropout inside scaled_dot_product_attention, which exports leave out",
     .read = onv_cli_set_attention_dropout},
    {0, "inplace", "[=PATTERN]",
     "activations that overwrite their input: all, or those of modules; repeatable; "
     "without it, ReLUs and those that timm and torchvision build so; none: no activation",
     LIST(inplace, analysis.n_inplace), .fallback = "*"},
    {0, "locals", NULL, "values stay until the call of the module that names them returns",
     AT(analysis.locals)},
    {0, "parameters", "N", "number of elements of all parameters, where the file lacks some",
     WIDE(analysis.parameters)},
    {0, "buffers", "SIZE", "bytes of all registered buffers, where the file lacks some",
     SIZE(analysis.buffers, "32768 or 2MiB")},
    {0, "graph-module", NULL,
     "the network is a torch.fx.GraphModule, whose code frees values after their last use",
     AT(analysis.graph_module)},
    {0, "folded-norms", NULL, "batch norms that the export folded are folded in the network, too",
     AT(analysis.folded_norms)},
    {0, "no-fast-path", NULL, "layers of nn.TransformerEncoder run operation by operation",
     AT(analysis.no_fast_path)},
    {0, "as-exported", NULL, "do not fuse decomposed patterns", AT(analysis.as_exported)},
    {0, "channels-last", NULL, "convolutions in channels_last", AT(analysis.channels_last)},
    {0, "no-tf32", NULL, "convolutions without TF32", AT(analysis.no_tf32)},
    {0, "cudnn-benchmark", NULL, "the first iteration tries all of cuDNN's kernels",
     AT(analysis.cudnn_benchmark)},
    {0, "expandable-segments", NULL, "expandable_segments:True in PyTorch's allocator",
     AT(analysis.expandable_segments)},
    {0, "pool", "SIZE", "memory that PyTorch's allocator has cached before, in one segment",
     SIZE(analysis.pool, "2GiB")},
    {0, "ort", "KEY=VALUE", "a setting of ONNX Runtime, by its own name; see below; repeatable",
     LIST(ort, analysis.n_ort), .heading = "ONNX Runtime"},
    {0, "ort-advise", NULL, "compare ONNX Runtime's settings and print the best",
     AT(analysis.ort_advise)},
    {0, "ort-partition", "FILE",
     "write bytes by node for session.resource_cuda_partitioning_settings", OUTPUT(ORT_PARTITION),
     AT(analysis.ort_partition)},
    {0, "shape-trace", "FILE",
     "simulate requests to one session: a header with names of dims, then a line of sizes for each",
     AT(analysis.shape_trace)},
    {0, "together", NULL, "add up sessions in one process: the models given, MODEL*N for N of one",
     AT(together), .like = "ort"},
    {0, "replay", "[=DEVICE]",
     "make the allocations and compare: cuda (the default) or host; exit status 4 if they differ",
     AT(analysis.replay), .fallback = "cuda", .heading = "Replay on a device"},
    {0, "effort", "N", "work limit of searches", WIDE(analysis.effort),
     .heading = "Limits and searches"},
    {0, "jobs", "N", "how many models are analysed at once (one for each core)", COUNT(jobs, 1024)},
    {0, "limit", "NAME=N", "safety limits; see below; repeatable", .read = onv_cli_set_limit},
    {0, "untrusted", NULL,
     "for untrusted files: small limits, no external data, a confined process", AT(untrusted)},
    {0, "no-external-data", NULL, "open only the model file", AT(analysis.no_external_data)},
    {0, "version", NULL, "print the version", .read = onv_cli_say_version, .heading = "Program"},
    {'h', "help", NULL, "print this", .read = onv_cli_say_help},
};

const size_t onv_cli_n_rows = sizeof onv_cli_rows / sizeof onv_cli_rows[0];

_Static_assert(sizeof onv_cli_rows / sizeof onv_cli_rows[0] <= ONV_CLI_MAX_ROWS,
               "given[] of onv_cli has no room for all options");

bool onv_cli_may_take_value(const onv_cli_row *row)
{
    return row->arg != NULL;
}

bool onv_cli_takes_value(const onv_cli_row *row)
{
    return row->arg != NULL && row->arg[0] != '[';
}

const char *onv_cli_command_of(const char *option)
{
    static const char *const rows[][2] = {
        {"capacity", "plan and simulate"}, {"summary", "simulate"}, {"header", "simulate"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i][0], option) == 0) return rows[i][1];
    return NULL;
}
