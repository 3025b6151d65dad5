/* What users mistype: each mistake gets one line that says what was found, as it must be typed, what was expected
 * and what to do. One row is one mistake. */
#include <sys/stat.h>

#include "cli/program.h"
#include "support/test.h"

#define MODEL    ONV_SOURCE_DIR "/samples/resnet18-train.onnx"
#define OTHER    ONV_SOURCE_DIR "/samples/resnet18.onnx"
#define BERT     ONV_SOURCE_DIR "/samples/bert.onnx"
#define B1       "-b 1 " MODEL " "
#define TRAIN    B1 "--train sgd "
#define TRAINING "add --train OPTIMIZER"

typedef struct mistake {
    const char *arguments;
    int status;
    const char *found;    /* NULL: nothing was given */
    const char *expected; /* what the program takes there */
    const char *advice;   /* NULL: what was expected says it */
} mistake;

static const mistake mistakes[] = {
    /* Words that are no option, no command, no file */
    {"", 2, NULL, "an ONNX file", "onnxvram model.onnx"},
    {"--train " MODEL, 2, "'" MODEL "'", "an optimizer", "--train adamw " MODEL},
    {"--bacth 4 " MODEL, 2, "'--bacth'", "option", "did you mean '--batch'?"},
    {"--trian sgd " MODEL, 2, "'--trian'", "option", "did you mean '--train'?"},
    {"--bogus " MODEL, 2, "'--bogus'", "option", "--help"},
    {"-Z " MODEL, 2, "'-Z'", "option", "--help"},
    {"--in 4 " MODEL, 2, "'--in'", "--input-value, --inplace", "write one of them out"},
    {"--capacity 4 " MODEL, 2, "'--capacity'", "option", "onnxvram offsets and simulate"},
    {"--batc 4 " MODEL, 2, "'--batc'", "not a whole option", "write it out: --batch"},
    {"--seq-len 4 " MODEL, 2, "'--seq-len'", "option", "--dim sequence=128"},
    {"--gradient-checkpointing " MODEL, 2, "'--gradient-checkpointing'", "option",
     "--checkpoint blocks"},
    {"help trian", 2, "'trian'", "a command, a topic or an option", "did you mean 'train'?"},
    {"help train fit", 2, "'fit'", "takes one topic", NULL},
    {"gpus T4", 2, "'T4'", "takes nothing", "leave it out"},
    {B1 "--runtime cpu --budget T4", 2, "'T4'", "the host's memory", "--budget 64GiB"},
    {"gate " B1, 2, NULL, "nothing to judge by", "--baseline FILE"},
    {"fit " MODEL, 2, NULL, "fit needs a budget", "--budget L4"},
    {"pln i.csv", 2, "'pln'", "neither a file nor a command", "did you mean 'onnxvram plan'?"},
    {"absent.onnx", 1, "absent.onnx", "cannot be opened", "No such file"},
    {B1 OTHER " 8", 2, "'8'", "is not a file", "--batch 8"},
    {B1 OTHER " 24GiB", 2, "'24GiB'", "is not a file", "--budget 24GiB"},
    {B1 OTHER " T4", 2, "'T4'", "is not a file", "--budget T4"},
    {"text.onnx.data", 2, "'text.onnx.data'", "has the weights", "'text.onnx'"},
    {". ", 1, ".", "is a directory, not a file", NULL},
    {"nothing.onnx", 1, "nothing.onnx", "is empty", NULL},
    {"text.onnx", 1, "text.onnx", "plain text", NULL},
    {"pipe.fifo", 1, "pipe.fifo", "not a regular file", "'-' reads a model from standard input"},
    {"- </dev/null", 1, "standard input", "is empty", NULL},
    {"- -", 2, "'-' is given 2 times", "standard input is one model", "write the others to files"},
    /* Values that are missing, or too many */
    {"--batch", 2, "'--batch'", "needs a value", "--batch N"},
    {"--quiet=yes " MODEL, 2, "'--quiet=yes'", "takes no value", NULL},
    {B1 "--runtime torch ort", 2, "'ort'", "is not a file",
     "values of --runtime are one word with commas"},
    {B1 "--budget T4 L4", 2, "'L4'", "is not a file",
     "values of --budget are one word with commas"},
    {MODEL " -d batch=1 width=2", 2, "'width=2'", "--dim takes one value", "--dim width=2"},
    {"--json report.json " B1, 2, "'report.json'", "is not a model", "--json=report.json"},
    {"--replay host " B1, 2, "'host'", "is not a model", "--replay=host"},
    {"--json --csv " B1, 2, "2", "one output can go to standard output", "--json=FILE"},
    {"--json --json=o.json " B1, 2, "'-' and to 'o.json'", "twice", "leave one out"},
    /* Sizes and names of dims and inputs */
    {"--batch 0 " MODEL, 2, "'0'", "a number of at least 1", "--batch 8"},
    {"--batch -3 " MODEL, 2, "'-3'", "a number of at least 1", "--batch 8"},
    {"--batch 8,16 " MODEL, 2, "'8,16'", "one number", "onnxvram sweep"},
    {"--batch x " MODEL, 2, "'x'", "a number of at least 1", "--batch 8"},
    {"--dim n " MODEL, 2, "'n'", "NAME=N", "--dim batch=8"},
    {"--dim n=-1 " MODEL, 2, "'n=-1'", "NAME=N", "--dim batch=8"},
    {"--dim batchh=1 " MODEL, 2, "'batchh'", "Choose from batch", "did you mean 'batch'?"},
    {"--dim sequnce=1 " BERT " " OTHER, 2, "'sequnce'", "Choose from batch, sequence",
     "did you mean 'sequence'?"},
    {"--shape x=1x " MODEL, 2, "'x=1x'", "INPUT=AxBxC", "--shape input=1x3x224x224"},
    {"--shape inptu=1x3x64x64 " MODEL, 2, "--shape: 'inptu'", "Choose from input",
     "did you mean 'input'?"},
    {"-s input=1x3x96x96 " ONV_SOURCE_DIR "/samples/vit_b_16.onnx", 1, "'input', which it has as",
     "do not broadcast", "dynamic_shapes"},
    {B1 "--shape input=2x3x224x224", 2, "both 2 and 1", "dimension 'batch'", NULL},
    {"-i target " MODEL, 2, "'target'", "NAME=V,V,... or NAME=@FILE.pb", "--input-value size=2,3"},
    {"-i target=1,x " MODEL, 2, "'target=1,x'", "NAME=V,V,... or NAME=@FILE.pb", NULL},
    {"-i target=1,nan " MODEL, 2, "'target=1,nan'", "NAME=V,V,... or NAME=@FILE.pb", NULL},
    {"-i target= " MODEL, 2, "'target='", "NAME=V,V,... or NAME=@FILE.pb", NULL},
    /* Choices */
    {B1 "--runtime trch", 2, "'trch'", "from ideal, arena, torch, ort, async",
     "did you mean 'torch'?"},
    {B1 "--runtime pytroch", 2, "'pytroch'", "from ideal, arena", "did you mean 'torch'?"},
    {B1 "--precision int8", 2, "'int8'", "from fp32, fp16, bf16", "--weight-format int8"},
    {B1 "--runtime torch,", 2, "''", "from ideal, arena, torch, ort, async", NULL},
    {B1 "--order optmal", 2, "'optmal'", "from model, ort, greedy, optimal",
     "did you mean 'optimal'?"},
    {B1 "--train adamv", 2, "'adamv'", "from sgd, momentum", "did you mean 'adam'?"},
    {B1 "--precision fp8", 2, "'fp8'", "choose from fp32, fp16, bf16", NULL},
    {TRAIN "--amp int8", 2, "'int8'", "choose from fp16, bf16", NULL},
    {TRAIN "--amp fp32", 2, "'fp32'", "from fp16, bf16", NULL},
    {TRAIN "--loss cross-entrpy", 2, "'cross-entrpy'", "mse, none",
     "did you mean 'cross-entropy'?"},
    {TRAIN "--checkpoint block", 2, "'block'", "none, sqrt, every", "did you mean 'blocks'?"},
    {TRAIN "--checkpoint every", 2, "'every'", "a count of at least 1", "every=4"},
    {TRAIN "--checkpoint save", 2, "'save' is incomplete", "save=KINDS", NULL},
    {TRAIN "--checkpoint reentrant=2", 2, "'reentrant=2'", "just 'reentrant'", NULL},
    {TRAIN "-b 1 --checkpoint save=conv", 2, "found 'conv'", "product+attention", NULL},
    {TRAIN "-b 1 --checkpoint modules=layer9.*", 2, "'layer9.*'", "no module", NULL},
    {TRAIN "-b 1 --checkpoint modules=layer1.*/0", 2, "'layer1.*/0'", "layers.*/2", NULL},
    {TRAIN "-b 1 --checkpoint optimal@5", 2, "'5'", "an overhead as in @5%", "@12GiB"},
    {"compare " B1 "--measured 7421", 2, "'7421'", "a size above", "7421MiB"},
    {TRAIN "--plan " ONV_SOURCE_DIR "/README.md", 1, "README.md", "is not valid JSON",
     "--plan-out FILE.json"},
    {TRAIN "--ddp=vew --world 2", 2, "'vew'", "from copy, view", "did you mean 'view'?"},
    {TRAIN "--offload disk", 2, "'disk'", "choose from optimizer, gradients", NULL},
    {TRAIN "--zero-grad never", 2, "'never'", "choose from before-forward, before-backward, keep",
     NULL},
    {TRAIN "--optimizer-impl fuse", 2, "'fuse'", "from foreach, fused, for-loop",
     "did you mean 'fused'?"},
    {B1 "--attention flsh", 2, "'flsh'", "from auto, math, flash, efficient",
     "did you mean 'flash'?"},
    {B1 "--pytorch 2.150", 2, "'2.150'", "Choose from 2.15, 2.14", "did you mean '2.15'?"},
    {B1 "--format html", 2, "'html'", "choose from text, markdown", "a page is --html"},
    {B1 "--format json", 2, "'json'", "from text, markdown", "JSON is --json"},
    {B1 "--formula=pyton", 2, "'pyton'", "from text, python, c", "did you mean 'python'?"},
    {B1 "--dump=grph", 2, "'grph'", "from graph, program, intervals", "did you mean 'graph'?"},
    {B1 "--color sometimes", 2, "'sometimes'", "choose from auto, always, never", NULL},
    {B1 "--replay=abacus", 2, "'abacus'", "choose from cuda, host", NULL},
    {B1 "--limit nods=5", 2, "'nods'", "Choose from nodes, values", "did you mean 'nodes'?"},
    {B1 "--limit nodes", 2, "'nodes'", "--limit takes NAME=N", "--limit nodes=1000"},
    {B1 "--limit nodes=0", 2, "'0'", "a number of at least 1", NULL},
    {B1 "--limit nesting=8GiB", 2, "'8GiB'", "a number of at least 1 that fits it", NULL},
    {B1 "--ort enable_mem_patern=0", 2, "'enable_mem_patern'", "arena_extend_strategy",
     "did you mean 'enable_mem_pattern'?"},
    {B1 "--ort enable_mem_pattern", 2, "'enable_mem_pattern'", "KEY=VALUE", "enable_mem_pattern=0"},
    {B1 "--ort arena_extend_strategy=kSameasRequested", 2, "'kSameasRequested'",
     "takes kNextPowerOfTwo or kSameAsRequested", "did you mean 'kSameAsRequested'?"},
    {TRAIN "--freeze head", 2, "'head'", "no parameter and no module", "'conv1.weight'"},
    {B1 "--weight-format int3", 2, "'int3'", "int8", NULL},
    {B1 "--kv-cache both", 2, "'both'", "choose from copies, shared", NULL},
    /* Devices and budgets */
    {B1 "--budget 16", 2, "'16'", "a size with its unit", "16GiB, 16GB or 16B"},
    {B1 "--budget 0", 2, "'0'", "a size above 0 like 16GiB", "--list-gpus"},
    {B1 "--budget -1GiB", 2, "'-1GiB'", "a size above 0 like 16GiB", "--list-gpus"},
    {B1 "--budget 1e30GB", 2, "'1e30GB'", "a size like 16GiB", "--list-gpus"},
    {B1 "--budget T4,", 2, "''", "a size above 0 like 16GiB", "--list-gpus"},
    {B1 "--budget T5", 2, "'T5'", "a size like 16GiB or a GPU", "did you mean 'T4'?"},
    {B1 "--budget 'RTX 4O90'", 2, "'RTX 4O90'", "a GPU of --list-gpus", "did you mean 'RTX-4090'?"},
    {B1 "--budget A100", 2, "'A100'", "A100-40GB, A100-80GB", "write one of them out"},
    {B1 "--budget thor", 2, "'thor'", "Jetson-Thor-T4000, Jetson-Thor-T5000",
     "write one of them out"},
    {B1 "--gpu 16GiB", 2, "'16GiB'", "a GPU of --list-gpus", NULL},
    {MODEL " --budget 1GiB", 2, "70 tensors have no size", "cannot check the budget", "--batch N"},
    {MODEL " --train sgd", 2, "70 tensors have no size", "cannot size training", "bind --batch N"},
    {MODEL " --replay=host", 2, "70 tensors have no size", "cannot replay", "--batch N"},
    {B1 "--budget T4 --margin 100%", 2, "'100%'", "a percentage below 100", "--margin 10"},
    {BERT " --budget T4 --max-dim sequnce", 2, "--max-dim: 'sequnce'",
     "Choose from batch, sequence", "did you mean 'sequence'?"},
    /* Numbers */
    {TRAIN "--accumulate 0", 2, "'0'", "a number of at least 1", NULL},
    {TRAIN "--zero 4 --world 2", 2, "'4'", "a number from 1 to 3", NULL},
    {B1 "--layers=99999999999", 2, "'99999999999'", "a number of at least 1", NULL},
    {B1 "--top many", 2, "'many'", "a number of at least 1", NULL},
    {B1 "--effort 10x", 2, "'10x'", "a number of at least 1", NULL},
    {B1 "--cached 0", 2, "'0'", "a size above 0 like 2GiB", NULL},
    {B1 "--align 0x100", 2, "'0x100'", "a power of two up to 1GiB", "--align 256"},
    {B1 "--align 2GiB", 2, "'2GiB'", "a power of two up to 1GiB", "--align 256"},
    {B1 "--budget 0x10GiB", 2, "'0x10GiB'", "a size like 16GiB", "--list-gpus"},
    {B1 "--baseline b.json --max-growth -5%", 2, "'-5%'", "a percentage", "5% or 0.5%"},
    {MODEL " --baseline figures.json --max-growth 5%", 2, "70 tensors have no size",
     "cannot compare with a baseline", "--batch N"},
    {"diff -b 1 " MODEL " absent.onnx", 1, "absent.onnx", "cannot be opened", NULL},
    {B1 "--align 24", 2, "'24'", "a power of two", "--align 256"},
    {B1 "--perfetto=", 2, "go to a file", "traces and node data", "--svg peak.svg"},
    {MODEL " " MODEL " --memory-viz m.pickle", 2, "not 2", "are of one model", "give one"},
    {MODEL " --model-explorer -", 1, "is free", "the node data needs every size", "--dim "},
    {TRAIN "--missing-parameters 1e6", 2, "'1e6'", "a number of at least 1", NULL},
    {TRAIN "--attention-dropout 1.5", 2, "'1.5'", "from 0 to below 1", NULL},
    {TRAIN "--compile=1.5", 2, "'1.5'", "a memory budget from 0 to 1", NULL},
    {B1 "--baseline b.json --max-growth 5percent", 2, "'5percent'", "a percentage", "5% or 0.5%"},
    /* Options that would change nothing */
    {B1 "--attention-dropout 0.1", 2, "--attention-dropout", "needs training", TRAINING},
    {B1 "--runtime ort --amp fp16", 2, "--amp", "needs PyTorch", "add torch to --runtime"},
    {B1 "--loss mse", 2, "--loss", "needs training", TRAINING},
    {B1 "--freeze fc", 2, "--freeze", "needs training", TRAINING},
    {B1 "--ema", 2, "--ema", "needs training", TRAINING},
    {B1 "--compile", 2, "--compile", "needs training", TRAINING},
    {B1 "--checkpoint none", 2, "--checkpoint", "needs training", TRAINING},
    {TRAIN "--plan-out plan.py", 2, "--plan-out", "needs plans", "add --checkpoint LIST"},
    {B1 "--plan plan.json", 2, "--plan", "needs training", TRAINING},
    {TRAIN "--zero 1", 2, "--zero", "needs 2 devices or more", "--world 2"},
    {TRAIN "--zero 1 --world 1", 2, "--zero", "needs 2 devices or more", "--world 2"},
    {TRAIN "--ddp", 2, "--ddp", "needs 2 devices or more", "--world 2"},
    {TRAIN "--world 2", 2, "--world", "needs something to share", "--zero STAGE, --ddp or --fsdp"},
    {B1 "--runtime ort --missing-parameters 9", 2, "--missing-parameters", "needs PyTorch",
     "add torch to --runtime"},
    {B1 "--runtime ort --no-tf32", 2, "--no-tf32", "needs PyTorch", "add torch to --runtime"},
    {B1 "--runtime ideal --locals", 2, "--locals", "needs inference in PyTorch",
     "add torch to --runtime"},
    {B1 "--runtime ideal --gpu T4", 2, "--gpu", "needs a runtime with libraries",
     "add torch or ort"},
    {B1 "--runtime torch --ort enable_mem_pattern=0", 2, "--ort", "needs ONNX Runtime",
     "add ort to --runtime"},
    {B1 "--runtime torch --ort-advise", 2, "--ort-advise", "needs ONNX Runtime",
     "add ort to --runtime"},
    {B1 "--runtime torch --together", 2, "--together", "needs ONNX Runtime",
     "add ort to --runtime"},
    {B1 "--runtime torch --align 64", 2, "--align", "needs the runtime arena",
     "add arena to --runtime"},
    {B1 "--max-batch", 2, "--max-batch", "needs a budget or a replay", "--budget L4"},
    {B1 "--max-dim sequence", 2, "--max-dim", "needs a budget", "--budget L4"},
    {B1 "--budget T4 --objective batch", 2, "--objective", "needs the largest batch",
     "--max-batch"},
    {B1 "--budget T4 --max-batch --objective speed", 2, "'speed'", "batch or throughput", NULL},
    {B1 "--budget 16GiB --max-batch --objective throughput", 2, "samples per second", "name one",
     "--budget L4"},
    {B1 "--margin 5", 2, "--margin", "needs a budget", "--budget L4"},
    {B1 "--max-growth 5%", 2, "--max-growth", "needs figures to compare with",
     "add --baseline FILE"},
    {B1 "--json --format markdown", 2, "--format", "needs standard output", "--json=FILE"},
    {B1 "--dump=replay", 2, "--dump=replay", "needs a replay", "--replay=host"},
    {B1 "--formula=text " OTHER, 2, "not 2", "one model", "give one"},
    /* Options that exclude each other */
    {TRAIN "--fsdp --zero 1 --world 2", 2, "DDP, FSDP and ZeRO's stages", "exclude each other",
     NULL},
    {TRAIN "--fsdp --world 2 --offload optimizer", 2, "FSDP", "together", "--offload gradients"},
    {TRAIN "--ddp --world 2 --offload gradients", 2, "DDP", "gradients on the device",
     "--offload optimizer"},
    {B1 "--onnx-out new.onnx --precision fp16", 2, "--onnx-out", "the types of the file",
     "leave --precision out"},
    {B1 "--onnx-out new.onnx " OTHER, 2, "not 2", "one model", NULL},
    {B1 "--untrusted --replay=host", 2, "--replay", "allocates what a model asks for",
     "leave it or --untrusted out"},
    {B1 "--together --replay=host", 2, "--replay", "runs one model", "leave it or --together out"},
    {"-b 1 '" MODEL "*2'", 2, "*2'", "several of one model", "add --together"},
    {BERT " -b 1 -d sequence=4 --budget T4 --max-dim sequence", 2, "'sequence' is bound to 4",
     "--max-dim is to choose it", NULL},
    {B1 "--weight-format nf4 --onnx-out x.onnx", 2, "--onnx-out", "the weights of the file",
     "leave --weight-format out"},
    {TRAIN "--kv-cache copies", 2, "--kv-cache", "of inference", "leave --train or --kv-cache out"},
    /* Reports of before, and diff */
    {B1 "--baseline absent.json", 1, "absent.json", "cannot be opened", NULL},
    {B1 "--baseline broken.json", 1, "broken.json", "not a report of --json", NULL},
    {B1 "--baseline other.json", 1, "'resnet18-train.onnx'", "has no model", "--json=FILE"},
    {"diff " MODEL, 2, "not 1", "two models", "onnxvram diff OLD.onnx NEW.onnx"},
    {"diff --csv " MODEL " " OTHER, 2, "other outputs", "--json", "leave other outputs out"},
    /* plan and simulate */
    {"plan", 2, "not 0", "one file", "onnxvram plan intervals.csv"},
    {"offsets i.csv i.csv", 2, "not 2", "offsets takes one file", "onnxvram offsets intervals.csv"},
    {"plan absent.csv", 1, "absent.csv", "cannot be opened", NULL},
    {"plan i.csv --capacity 0", 2, "'0'", "a size above 0", "64MiB"},
    {"plan i.csv --capacity some", 2, "'some'", "a size above 0", "64MiB"},
    {"plan i.csv --capacity", 2, "'--capacity'", "needs a value", NULL},
    {"plan i.csv --effort hard", 2, "'hard'", "a number of at least 1", NULL},
    {"plan i.csv --align 12", 2, "'12'", "a power of two", "--align 256"},
    {"plan i.csv --sideways", 2, "'--sideways'", "option", NULL},
    {"plan i.csv --capcity 4", 2, "'--capcity'", "option", "did you mean '--capacity'?"},
    {"plan i.csv --order model", 2, "'--order'", "an option of an analysis", "leave it out"},
    {"simulate --runtime torch", 2, "not 0", "one file", "onnxvram simulate trace.csv"},
    {"simulate t.csv", 2, NULL, "needs an allocator", "add --runtime NAME"},
    {"simulate t.csv --runtime trch", 2, "'trch'", "from arena, ideal, torch",
     "did you mean 'torch'?"},
    {"simulate t.csv --runtime", 2, "'--runtime'", "needs a value", NULL},
    {"simulate t.csv --runtime torch --order model", 2, "'--order'", "an option of an analysis",
     "leave it out"},
    {"simulate t.csv --runtime torch --capacity big", 2, "'big'", "a size above 0", "64MiB"},
    {"simulate t.csv --runtime arena --summary", 2, "arena", "no allocator", NULL},
    {"simulate i.csv --runtime torch", 1, "i.csv", "line 1", NULL},
};

static bool says(const char *text, const char *part)
{
    return part == NULL || strstr(text, part) != NULL;
}

TEST(each_is_told_in_three_parts)
{
    char text[PROGRAM_TEXT];
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const mistake *m = &mistakes[i];
        int status = program_run(m->arguments, text);
        const char *end = strchr(text, '\n');
        bool is_line = strncmp(text, "onnxvram: ", 10) == 0 && end != NULL && end[1] == '\0';
        if (status == m->status && is_line && says(text, m->found) && says(text, m->expected) &&
            says(text, m->advice))
            continue;
        print_error("'%s' gives %d: %s\n", m->arguments, status, text);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static int prepare(void **state)
{
    static const char intervals[] = "id,lower,upper,size\na,0,2,10\n", trace[] = "alloc,a,1000\n";
    int status = folder_enter(state);
    program_write("i.csv", intervals, strlen(intervals));
    program_write("t.csv", trace, strlen(trace));
    program_write("nothing.onnx", "", 0);
    program_write("text.onnx", "hello, world\n", 13);
    program_write("broken.json", "{\"models\": [", 12);
    program_write("other.json", "{\"models\": []}", 14);
    program_write(
        "figures.json",
        "{\"models\": [{\"path\": \"resnet18-train.onnx\", \"parameters\": {\"bytes\": 1}}]}", 73);
    return status != 0 ? status : mkfifo("pipe.fifo", 0600);
}

TEST_GROUP(prepare, folder_leave)
