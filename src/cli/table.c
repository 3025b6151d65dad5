#include "cli/table.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/values.h"

#define AT(field)      .at = offsetof(onv_cli, field)
#define KIND(of, text) .kind = ONV_CLI_##of, .takes = (text)
#define FROM_1(field)  AT(field), KIND(COUNT, "a number of at least 1"), .least = 1, .most = INT_MAX
#define COUNT(field, top)                                                                          \
    AT(field), KIND(COUNT, "a number from 1 to " #top), .least = 1, .most = (top)
#define LIST(field, n)    AT(field), .count = offsetof(onv_cli, n)
#define NEEDS(what)       .needs = ONV_NEEDS_##what
#define WIDE(field)       AT(field), KIND(WIDE, "a number of at least 1")
#define POWER             KIND(POWER, "a power of two up to 1GiB, as in --align 256")
#define SIZE_LIKE(text)   KIND(SIZE, "a size above 0 like " text)
#define SIZE(field, like) AT(field), SIZE_LIKE(like)
#define OUTPUT(format)    .output = 1 + ONV_FORMAT_##format
#define TOPIC(name, text) .topic = name "\0" text
#define FLAG(field)       .flag = offsetof(onv_cli, field)
#define NAMES(of)         .list = ONV_LIST_NAMES + ONV_NAMES_##of
#define CHOICE(list)      .kind = ONV_CLI_CHOICE, .words = (list) /* as the enum is ordered */

static const onv_format dumps[] = {ONV_FORMAT_DUMP_GRAPH,     ONV_FORMAT_DUMP_PROGRAM,
                                   ONV_FORMAT_DUMP_INTERVALS, ONV_FORMAT_DUMP_PLAN,
                                   ONV_FORMAT_DUMP_HEADER,    ONV_FORMAT_DUMP_TRACE,
                                   ONV_FORMAT_DUMP_REPLAY};
static const onv_format formulas[] = {ONV_FORMAT_FORMULA, ONV_FORMAT_FORMULA_PYTHON,
                                      ONV_FORMAT_FORMULA_C};
static const onv_format reports[] = {ONV_FORMAT_TEXT, ONV_FORMAT_MARKDOWN};
static const onv_format layers[] = {ONV_FORMAT_LAYERS};

const onv_cli_row onv_cli_rows[] = {
    {"batch", "N", "the batch size: the first dimension of the inputs", .letter = 'b',
     .read = onv_cli_set_batch, TOPIC("sizes", "Model and sizes")},
    {"dim", "NAME=N",
     "bind a symbolic dimension, or a data-dependent size by its name (range#1); repeatable",
     .letter = 'd', .read = onv_cli_add_dim},
    {"shape", "INPUT=AxBxC", "give an input's whole shape; repeatable", .letter = 's',
     .read = onv_cli_add_shape},
    {"input-value", "NAME=V,V,...", "value of a shape-determining input; or NAME=@FILE.pb",
     .letter = 'i', .read = onv_cli_add_input_value},
    {"op-shapes", "FILE", "shape rules for custom operators: docs/op-shapes.md",
     AT(analysis.op_shapes_file)},
    {"program", "FILE",
     "PyTorch's program of the model (.pt2, its JSON, a recording), or none; else one next to "
     "it: MODEL.pt2",
     AT(analysis.program)},
    {"precision", "TYPE", "what-if: cast all float tensors to fp32, fp16 or bf16",
     AT(analysis.precision), CHOICE("fp32 fp16 bf16"), .least = ONV_PRECISION_FP32},
    {"weight-format", "FORMAT",
     "what-if: linear layers in fewer bits; with --train the frozen ones", AT(analysis.weights),
     NAMES(WEIGHT_FORMATS), .like = "weights"},
    {"kv-cache", "HOW",
     "what-if: key-value cache as copies or shared (one buffer a layer); with --budget the longest "
     "context",
     AT(analysis.kv_cache), .words = "copies shared"},
    {"order", "NAME", "order of execution", AT(analysis.order), NAMES(ORDERS)},
    {"runtime", "LIST",
     "runtimes to simulate, with commas; torch and ort are judged unless a list is given",
     AT(analysis.runtimes), NAMES(RUNTIMES)},
    {"budget", "SIZE|GPU,...",
     "memory to fit: 16GiB, 80GB, a GPU, or several; exit status 3 if the model fits none",
     .read = onv_cli_set_budget, .list = ONV_LIST_GPUS, TOPIC("budget", "Budget")},
    {"margin", "PERCENT", "keep this part of the budget free (0)", AT(analysis.margin_percent),
     KIND(PERCENT, "a percentage below 100, as in --margin 10"), .most = 99},
    {"max-batch", NULL, "find the largest batch that fits the budget", AT(analysis.max_batch)},
    {"objective", "WHAT",
     "with --max-batch, the best batch: batch (the largest), or throughput (samples per second)",
     AT(analysis.objective), .words = "batch throughput"},
    {"max-dim", "NAME", "find the largest size of a symbolic dimension that fits the budget",
     AT(analysis.max_dim), FLAG(analysis.max_batch)},
    {"gpu", "NAME", "the GPU whose libraries take workspaces (that of --budget, or H100)",
     .read = onv_cli_set_gpu, .list = ONV_LIST_GPUS},
    {"list-gpus", NULL, "list the GPUs that --budget knows", .read = onv_cli_list_gpus},
    {"quiet", NULL, "print the answer in a line; warnings go to standard error", .letter = 'q',
     AT(report.verbosity), .constant = -1, TOPIC("text", "Report")},
    {"strict", NULL,
     "warnings make exit status 5, unless it is another one; contradictions end the analysis",
     AT(analysis.strict)},
    {"verbose", NULL, "print every diagnostic and every row", .letter = 'v', AT(report.verbosity),
     .constant = 1},
    {"top", "N", "how many of the largest tensors to list (10)", FROM_1(report.top)},
    {"color", "WHEN", "auto, always or never", AT(color), CHOICE("auto always never")},
    {"format", "NAME", "format of the report: text, or markdown for a pull request", AT(format),
     CHOICE("text markdown"), .formats = reports, NEEDS(PAGE)},
    {"layers", "[=DEPTH]", "print a table per module", FROM_1(report.layer_depth),
     .outputs = layers},
    {"formula", "[=HOW]", "print peak and totals as functions of the free dims: text, python, c",
     .outputs = formulas, FLAG(analysis.formulas), CHOICE("text python c")},
    {"baseline", "FILE", "compare with an earlier --json report", AT(baseline)},
    {"max-growth", "PERCENT", "exit status 3 if a figure grew by more since the baseline",
     .read = onv_cli_set_max_growth, NEEDS(BASELINE)},
    {"snapshot", "FILE",
     "compare with a file of torch.cuda.memory._dump_snapshot(); exit status 4 if it is outside",
     AT(analysis.snapshot)},
    {"measured", "SIZE", "compare with what the device was seen to hold, as in 7421MiB",
     SIZE(analysis.measured, "7421MiB, as nvidia-smi says"), .least = 1 << 20},
    {"json", "[=FILE]", "write everything as JSON", OUTPUT(JSON),
     TOPIC("outputs", "Other outputs")},
    {"timelines", NULL, "with --json: the steps, buffers and offsets of each runtime, too",
     AT(analysis.timelines)},
    {"html", "[=FILE]", "write a self-contained page (MODEL.html)", OUTPUT(HTML), .fallback = ""},
    {"svg", "FILE", "write a picture of live memory over the steps", OUTPUT(SVG)},
    {"csv", "[=FILE]", "write one row per tensor as CSV", OUTPUT(CSV)},
    {"memory-viz", "FILE", "write a memory snapshot for PyTorch's viewer, MemoryViz.js",
     OUTPUT(MEMORY_VIZ)},
    {"perfetto", "FILE", "write a trace for Perfetto: bytes over the steps", OUTPUT(PERFETTO)},
    {"model-explorer", "FILE", "write bytes by node, as node data for Model Explorer",
     OUTPUT(MODEL_EXPLORER)},
    {"onnx-out", "FILE",
     "write the model with shapes, bytes and steps of its values, nodes in the --order",
     OUTPUT(ONNX), FLAG(analysis.onnx_out)},
    {"dump", "WHAT",
     "print intermediate data: graph, program, intervals, plan, header, trace, replay",
     .outputs = dumps, CHOICE("graph program intervals plan header trace replay")},
    {"align", "N", "round offsets of the runtime arena up to multiples of N bytes, a power of two",
     AT(analysis.align), POWER},
    {"train", "OPTIMIZER", "size training with this optimizer", AT(analysis.train),
     NAMES(OPTIMIZERS), TOPIC("training", "Training")},
    {"loss", "NAME",
     "cross-entropy, fused-cross-entropy, chunked-cross-entropy[=N], mse or none; OUTPUT=NAME,... "
     "for single outputs",
     AT(analysis.loss),
     .words = "cross-entropy fused-cross-entropy chunked-cross-entropy mse none"},
    {"amp", "TYPE", "autocast to fp16 or bf16, in inference too", AT(analysis.amp),
     CHOICE("fp16 bf16"), .least = ONV_PRECISION_FP16},
    {"freeze", "PATTERN", "parameters or modules that are not trained (* and ?); repeatable",
     LIST(freeze, analysis.n_freeze)},
    {"train-only", "PATTERN", "train these parameters or modules only; repeatable",
     LIST(train_only, analysis.n_train_only)},
    {"accumulate", "N", "batches per optimizer step", FROM_1(analysis.accumulate)},
    {"zero-grad", "WHEN",
     "when gradients are freed: before-forward, before-backward, or keep (filled with zeros)",
     AT(analysis.zero_grad), .words = "before-forward before-backward keep"},
    {"optimizer-impl", "NAME", "foreach (PyTorch's choice on GPUs), fused or for-loop",
     AT(analysis.optimizer_impl), .words = "foreach fused for-loop"},
    {"master-weights", NULL, "float32 copies of 16-bit parameters (--precision) in the optimizer",
     AT(analysis.master_weights)},
    {"ema", NULL, "a moving average of the parameters, on the device", AT(analysis.ema)},
    {"offload", "WHAT", "optimizer: state and step on the host; gradients: gradients too",
     AT(analysis.offload), .words = "optimizer gradients"},
    {"ddp", "[=HOW]",
     "DistributedDataParallel; gradients are copied into buckets (copy) or are views of them "
     "(view)",
     AT(analysis.ddp), .fallback = "copy", .words = "copy view"},
    {"fsdp", "[=PATTERN,...]",
     "fully_shard of these modules (repeated modules, if none is given) and of the network",
     AT(analysis.fsdp), .fallback = ""},
    {"zero", "STAGE", "ZeRO stage 1, 2 or 3; with --world", COUNT(analysis.zero_stage, 3),
     .words = "1 2 3"},
    {"world", "N", "number of data-parallel ranks, with --zero, --ddp or --fsdp",
     FROM_1(analysis.world)},
    {"checkpoint", "LIST[@WHICH]",
     "compare checkpointing plans, with commas; @5%, @12GiB or @ID takes one",
     AT(analysis.checkpoint), .list = ONV_LIST_PLANS,
     TOPIC("checkpointing", "Checkpointing plans and torch.compile")},
    {"plan", "FILE", "a plan that --plan-out FILE.json wrote", AT(analysis.plan)},
    {"plan-out", "FILE.py|FILE.json",
     "write the chosen plan, else the recommended one: a module to import, or data",
     .read = onv_cli_set_plan_out, NEEDS(CHECKPOINTS)},
    {"compile", "[=BUDGET]",
     "torch.compile: what it saves for backward, with an activation_memory_budget from 0 to 1 (1)",
     AT(analysis.compile_budget), FLAG(analysis.compile), .fallback = "1",
     KIND(SHARE, "a memory budget from 0 to 1")},
    {"pytorch", "VERSION", "follow the rules of this release", AT(analysis.pytorch), NAMES(PYTORCH),
     TOPIC("pytorch", "Eager PyTorch")},
    {"attention", "KERNEL",
     "auto (PyTorch's choice), math (separate operations), flash or efficient",
     AT(analysis.attention), .words = "auto math flash efficient"},
    {"attention-dropout", "P",
     "dropout inside scaled_dot_product_attention, which exports leave out",
     AT(analysis.attention_dropout), KIND(PART, "a probability from 0 to below 1")},
    {"inplace", "[=PATTERN]",
     "activations that overwrite their input: all, or those of modules; repeatable; "
     "without it, ReLUs and those that timm and torchvision build so; none: no activation",
     LIST(inplace, analysis.n_inplace), .fallback = "*"},
    {"locals", NULL, "values stay until the call of the module that names them returns",
     AT(analysis.locals)},
    {"missing-parameters", "N", "number of elements of all parameters, where the file lacks some",
     WIDE(analysis.parameters), .like = "parameters"},
    {"missing-buffers", "SIZE", "bytes of all registered buffers, where the file lacks some",
     SIZE(analysis.buffers, "32768 or 2MiB"), .like = "buffers"},
    {"graph-module", NULL,
     "the network is a torch.fx.GraphModule, whose code frees values after their last use",
     AT(analysis.graph_module)},
    {"folded-norms", NULL, "batch norms that the export folded are folded in the network, too",
     AT(analysis.folded_norms)},
    {"no-fast-path", NULL, "layers of nn.TransformerEncoder run operation by operation",
     AT(analysis.no_fast_path)},
    {"as-exported", NULL, "do not fuse decomposed patterns", AT(analysis.as_exported)},
    {"channels-last", NULL, "convolutions in channels_last", AT(analysis.channels_last)},
    {"no-tf32", NULL, "convolutions without TF32", AT(analysis.no_tf32)},
    {"cudnn-benchmark", NULL, "the first iteration tries all of cuDNN's kernels",
     AT(analysis.cudnn_benchmark)},
    {"expandable-segments", NULL, "expandable_segments:True in PyTorch's allocator",
     AT(analysis.expandable_segments)},
    {"cached", "SIZE", "memory that PyTorch's allocator has cached before, in one segment",
     SIZE(analysis.pool, "2GiB"), .like = "pool"},
    {"ort", "KEY=VALUE", "a setting of ONNX Runtime, by its own name; repeatable",
     LIST(ort, analysis.n_ort), NAMES(ORT_SETTINGS), TOPIC("ort", "ONNX Runtime")},
    {"ort-advise", NULL, "compare ONNX Runtime's settings and print the best",
     AT(analysis.ort_advise)},
    {"ort-partition", "FILE", "write bytes by node for session.resource_cuda_partitioning_settings",
     OUTPUT(ORT_PARTITION), FLAG(analysis.ort_partition)},
    {"shape-trace", "FILE",
     "simulate requests to one session: a header with names of dims, then a line of sizes for each",
     AT(analysis.shape_trace)},
    {"contexts", "N", "execution contexts of the engine, for --runtime tensorrt (1)",
     COUNT(analysis.contexts, 1024)},
    {"profile", "NAME=MIN:OPT:MAX",
     "sizes that the engine is built for, of a dim or an input, for --runtime tensorrt; repeatable",
     .read = onv_cli_add_profile},
    {"workspace", "SIZE", "what each context may take for tactics, for --runtime tensorrt",
     SIZE(analysis.workspace, "1GiB, as --memPoolSize of trtexec")},
    {"genai", "FOLDER", "what onnxruntime-genai takes for the models of genai_config.json",
     AT(genai)},
    {"triton", "FOLDER", "what a Triton Inference Server takes for a repository of models",
     AT(triton)},
    {"together", NULL, "add up sessions in one process: the models given, MODEL*N for N of one",
     AT(together), .like = "ort-advise"},
    {"sequential", NULL, "with --together: each session ends before the next one is made",
     AT(sequential), .like = "ort-advise"},
    {"replay", "[=DEVICE]",
     "make the allocations and compare: cuda (the default) or host; exit status 4 if they differ",
     AT(analysis.replay), .fallback = "cuda", NAMES(REPLAY_DEVICES),
     TOPIC("replay", "Replay on a device")},
    {"effort", "N", "work limit of searches", WIDE(analysis.effort),
     TOPIC("limits", "Limits and searches")},
    {"jobs", "N", "how many models are analysed at once (one for each core)", COUNT(jobs, 1024)},
    {"limit", "NAME=N", "safety limits; repeatable", .read = onv_cli_set_limit,
     .list = ONV_LIST_LIMITS},
    {"untrusted", NULL, "for untrusted files: small limits, no external data, a confined process",
     AT(untrusted)},
    {"no-external-data", NULL, "open only the model file", AT(analysis.no_external_data)},
    {"version", NULL, "print the version", .read = onv_cli_say_version,
     TOPIC("program", "Program")},
    {"help", "[=TOPIC]", "print help: of a topic, a command or an option, or all", .letter = 'h',
     .read = onv_cli_say_help},
};

const size_t onv_cli_n_rows = sizeof onv_cli_rows / sizeof onv_cli_rows[0];

_Static_assert(sizeof onv_cli_rows / sizeof onv_cli_rows[0] <= ONV_CLI_MAX_ROWS,
               "given[] of onv_cli has no room for all options");

/* --- Of commands with options of their own -------------------------------------------------------- */

#define OF(field) .at = offsetof(onv_cli_tool, field)

static const onv_cli_row tool_rows[] = {
    {"output", "FILE", "where the result goes; -: standard output", .letter = 'o', OF(output)},
    {"runtime", "NAME,...", "the allocators, with commas", .letter = 'r', OF(runtimes),
     .list = ONV_LIST_ALLOCATORS},
    {"capacity", "BYTES", "the bytes that there are", OF(capacity), SIZE_LIKE("64MiB")},
    {"effort", "N", "work limit of the search", OF(effort), KIND(WIDE, "a number of at least 1")},
    {"align", "N", "offsets at multiples of N bytes, a power of two", OF(alignment), POWER},
    {"summary", NULL, "a line on each event", OF(summary)},
    {"header", NULL, "the names of the columns first", OF(header)},
    {"expandable-segments", NULL, "expandable_segments:True in PyTorch's allocator",
     OF(expandable_segments)},
    {"help", NULL, "print this help", .letter = 'h', .read = onv_cli_say_help},
};

bool onv_cli_has_table(const onv_cli_command *command)
{
    return command->run == NULL || command->has_table;
}

const onv_cli_row *onv_cli_row_at(const onv_cli_command *command, size_t index)
{
    char name[64];
    if (onv_cli_has_table(command)) return index < onv_cli_n_rows ? &onv_cli_rows[index] : NULL;
    if (!onv_cli_word_at(command->options, index, name)) return NULL;
    size_t i = 0;
    while (strcmp(tool_rows[i].name, name) != 0) i++;
    return &tool_rows[i];
}

const onv_cli_row *onv_cli_row_named(const onv_cli_command *command, const char *name)
{
    const onv_cli_row *row;
    for (size_t i = 0; i < onv_cli_n_spellings && onv_cli_has_table(command); i++)
        if (strcmp(onv_cli_spellings[i].other, name) == 0) name = onv_cli_spellings[i].name;
    for (size_t i = 0; (row = onv_cli_row_at(command, i)) != NULL; i++)
        if (strcmp(row->name, name) == 0) break;
    return row;
}

bool onv_cli_may_take_value(const onv_cli_row *row)
{
    return row->arg != NULL;
}

bool onv_cli_takes_value(const onv_cli_row *row)
{
    return row->arg != NULL && row->arg[0] != '[';
}

const onv_cli_spelling onv_cli_spellings[] = {
    {"batch-size", "batch"},
    {"dtype", "precision"},
    {"optimizer", "train"},
    {"weights", "weight-format"},
    {"parameters", "missing-parameters"},
    {"buffers", "missing-buffers"},
    {"pool", "cached"},
};

const size_t onv_cli_n_spellings = sizeof onv_cli_spellings / sizeof onv_cli_spellings[0];

_Static_assert(sizeof onv_cli_spellings / sizeof onv_cli_spellings[0] <= ONV_CLI_MAX_SPELLINGS,
               "lists of names have no room for all spellings");

const char *onv_cli_hint(const char *option)
{
    static const char *const rows[][2] = {
        {"seq-len", "a length is a dim of the model, as in --dim sequence=128"},
        {"sequence-length", "a length is a dim of the model, as in --dim sequence=128"},
        {"max-length", "a length is a dim of the model, as in --dim sequence=128"},
        {"max-model-len", "--max-dim NAME finds the longest that fits; --dim NAME=N binds one"},
        {"gradient-checkpointing", "with --train it is --checkpoint blocks"},
        {"activation-checkpointing", "with --train it is --checkpoint blocks"},
        {"num-gpus", "--world N, with --ddp, --fsdp or --zero"},
        {"n-gpus", "--world N, with --ddp, --fsdp or --zero"},
        {"bf16", "--amp bf16 is autocast, --precision bf16 casts the weights"},
        {"fp16", "--amp fp16 is autocast, --precision fp16 casts the weights"},
        {"load-in-4bit", "--weight-format nf4"},
        {"load-in-8bit", "--weight-format int8"},
        {"quantization", "--weight-format int8, int4 or nf4"},
        {"gradient-accumulation-steps", "--accumulate N"},
        {"gpu-memory-utilization", "--margin PERCENT keeps a part of the budget free"},
        {"device", "--gpu NAME"},
        {"framework", "--runtime torch or ort"},
        {"deepspeed", "--zero STAGE, with --world N"},
        {"output", "--json=FILE, --html=FILE or --csv=FILE"},
        {"capacity", "it is an option of onnxvram offsets and simulate"},
        {"summary", "it is an option of onnxvram simulate"},
        {"header", "it is an option of onnxvram simulate"},
        {"precision=int8", "--weight-format int8 quantizes linear layers"},
        {"precision=int4", "--weight-format int4 quantizes linear layers"},
        {"format=json", "JSON is --json"},
        {"format=csv", "CSV is --csv"},
        {"format=html", "a page is --html"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i][0], option) == 0) return rows[i][1];
    return NULL;
}

/* --- What values are chosen from --------------------------------------------------------------- */

bool onv_cli_word_at(const char *words, size_t index, char word[static 64])
{
    int used;
    for (size_t i = 0; words != NULL && sscanf(words, "%63s%n", word, &used) == 1; words += used)
        if (i++ == index) return true;
    return false;
}

static bool gpu_at(size_t index, onv_cli_item *item)
{
    onv_gpu_info gpu;
    if (!onv_gpu_at(index, &gpu)) return false;
    onv_cli_gpu_word(gpu.name, item->name);
    snprintf(item->about, sizeof item->about, "%llu MiB",
             (unsigned long long)(gpu.usable_bytes >> 20));
    return true;
}

static bool limit_at(size_t index, onv_cli_item *item)
{
    uint64_t fallback;
    const char *summary, *name = onv_limit_name(index, &summary, &fallback);
    if (name == NULL) return false;
    snprintf(item->name, sizeof item->name, "%s=", name);
    snprintf(item->about, sizeof item->about, "%s (%llu)", summary, (unsigned long long)fallback);
    return true;
}

static bool plan_at(size_t index, onv_cli_item *item)
{
    const char *summary = "all that use the device alone";
    const char *name =
        index == 0 ? "all" : onv_checkpoint_name(index - 1, &summary, &item->argument);
    if (name == NULL) return false;
    snprintf(item->name, sizeof item->name, "%s%s", name, item->argument != NULL ? "=" : "");
    snprintf(item->about, sizeof item->about, "%s", summary);
    return true;
}

/* Those of the library, and the planner in their place. */
static bool allocator_at(size_t index, onv_cli_item *item)
{
    const char *about = "the whole trace at planned offsets in one block";
    const char *name = index == 0 ? "arena" : onv_name_at(ONV_NAMES_ALLOCATORS, index - 1, &about);
    if (name == NULL) return false;
    snprintf(item->name, sizeof item->name, "%s", name);
    snprintf(item->about, sizeof item->about, "%s", about);
    return true;
}

bool onv_cli_item_at(const onv_cli_row *row, size_t index, onv_cli_item *item)
{
    const char *summary;
    *item = (onv_cli_item){.argument = NULL};
    switch (row->list) {
    case ONV_LIST_GPUS: return gpu_at(index, item);
    case ONV_LIST_LIMITS: return limit_at(index, item);
    case ONV_LIST_PLANS: return plan_at(index, item);
    case ONV_LIST_ALLOCATORS: return allocator_at(index, item);
    case ONV_LIST_NONE: return onv_cli_word_at(row->words, index, item->name);
    default: break;
    }
    onv_names list = (onv_names)(row->list - ONV_LIST_NAMES);
    const char *name = onv_name_at(list, index, &summary);
    if (name == NULL) return false;
    snprintf(item->name, sizeof item->name, "%s%s", name,
             list == ONV_NAMES_ORT_SETTINGS ? "=" : "");
    snprintf(item->about, sizeof item->about, "%s", summary);
    return true;
}
