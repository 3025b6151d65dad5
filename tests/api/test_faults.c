/* No memory, at every allocation of every public call in turn: each fails with ONV_ERR_MEMORY and a
 * message, leaves nothing behind (seen by AddressSanitizer) and gives no result, until there is
 * enough. Writers that refuse end a call the same way. */
#include <unistd.h>

#include "api/analysis.h"
#include "base/heap.h"
#include "support/capture.h"
#include "support/folder.h"
#include "support/nested.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* --- Calls ------------------------------------------------------------------------------------- */

/* What is called, with whatever it needs. */
typedef struct call {
    const char *name;
    onv_status (*make)(const struct call *c, onv_error *error);
    const char *path; /* of the model or table */
    onv_options options;
    onv_format format;
    const onv_analysis *analysis; /* to be reported */
    size_t room;                  /* bytes that `write` takes before it refuses */
    const void *data;             /* of the model, instead of the path */
    size_t bytes;
    bool may_make_none; /* it writes what is there, line by line */
} call;

static bool take(void *context, const char *text, size_t bytes)
{
    size_t *left = context;
    (void)text;
    if (bytes > *left) return false;
    *left -= bytes;
    return true;
}

static onv_status analyse(const call *c, onv_error *error)
{
    onv_analysis *const untouched = (onv_analysis *)(uintptr_t)1, *analysis = untouched;
    onv_status status = c->data != NULL
                            ? onv_analysis_new_from_memory(c->data, c->bytes, c->path, &c->options,
                                                           &analysis, error)
                            : onv_analysis_new(c->path, &c->options, &analysis, error);
    if (status == ONV_OK)
        onv_analysis_destroy(analysis);
    else
        assert_null(analysis);
    return status;
}

static onv_status report(const call *c, onv_error *error)
{
    size_t left = c->room;
    return onv_report(&c->analysis, 1, c->format, NULL, take, &left, error);
}

static onv_status plan(const call *c, onv_error *error)
{
    size_t left = c->room;
    onv_plan_info info = {.height = 77};
    onv_status status = onv_plan_file(c->path, 0, 0, 0, take, &left, &info, error);
    assert_true(status == ONV_OK || info.height == 77);
    return status;
}

static onv_status simulate(const call *c, onv_error *error)
{
    size_t left = c->room;
    char names[512] = "arena";
    for (size_t i = 0; onv_name_at(ONV_NAMES_ALLOCATORS, i, NULL) != NULL; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), ",%s",
                 onv_name_at(ONV_NAMES_ALLOCATORS, i, NULL));
    onv_simulate_options options = {.struct_size = sizeof options, .header = true};
    onv_status status = onv_simulate_file(c->path, names, &options, take, &left, error);
    if (status != ONV_OK) return status;
    options.summary = true;
    return onv_simulate_file(c->path, "torch", &options, take, &left, error);
}

/* Answers are false for want of memory; all of them are asked. */
static onv_status ask(const call *c, onv_error *error)
{
    onv_analysis *a;
    onv_tensor_info tensor;
    onv_module_table *table = NULL;
    bool done = true;
    onv_status status = onv_analysis_new(c->path, &c->options, &a, error);
    if (status != ONV_OK) return status;
    for (size_t i = 0; i < onv_analysis_tensor_count(a); i++)
        done = done && onv_analysis_tensor(a, i, &tensor);
    status = onv_module_table_new(a, 0, &table, error);
    assert_int_equal(status == ONV_OK, table != NULL);
    onv_module_table_destroy(table);
    onv_analysis_destroy(a);
    if (done || status != ONV_OK) return status;
    *error = (onv_error){.code = ONV_ERR_MEMORY, .message = "an answer was false"};
    return ONV_ERR_MEMORY;
}

/* The planner, an allocator and an order, of what is in memory. */
static onv_status plan_memory(const call *c, onv_error *error)
{
    (void)c;
    const onv_interval intervals[] = {{0, 3, 40}, {1, 4, 30}, {2, 6, 50}, {3, 5, 20}};
    const onv_event events[] = {{.bytes = 512, .frees = ONV_NO_INDEX},
                                {.bytes = 5 << 20, .frees = ONV_NO_INDEX},
                                {.frees = 0}};
    const onv_graph_value values[] = {{8, 1, false}, {8, 0, true}};
    const onv_graph_read read = {0, 0};
    const onv_size_graph graph = {.struct_size = sizeof graph,
                                  .n_nodes = 2,
                                  .values = values,
                                  .n_values = 2,
                                  .reads = &read,
                                  .n_reads = 1};
    uint64_t offsets[4];
    size_t order[2];
    onv_status status = onv_plan_intervals(intervals, 4, NULL, offsets, NULL, error);
    if (status == ONV_OK) status = onv_simulate_events(events, 3, "torch", NULL, NULL, error);
    if (status == ONV_OK) status = onv_simulate_events(events, 3, "arena", NULL, NULL, error);
    return status == ONV_OK ? onv_order_graph(&graph, NULL, order, NULL, error) : status;
}

/* --- The nth allocation -------------------------------------------------------------------------- */

#ifdef ONV_FAULT_INJECTION
static void can_fail(void) {}

/* Every allocation up to the 300th, then ever fewer: a call may make many thousands. */
static void fail_each(const call *c)
{
    onv_status status;
    long n = 0;
    for (;; n += 1 + n / 300) {
        onv_error error = {0};
        onv_heap_fail_after(n);
        status = c->make(c, &error);
        onv_heap_fail_after(-1);
        if (status == ONV_OK) break;
        if (status != ONV_ERR_MEMORY || error.code != status || error.message[0] == '\0')
            fail_msg("%s: allocation %ld: %s, '%s'", c->name, n, onv_status_name(status),
                     error.message);
        if (n > 10000000) fail_msg("%s: never enough", c->name);
    }
    if (n < 1 && !c->may_make_none) fail_msg("%s: makes only %ld allocations", c->name, n);
}
#else
/* Ends a test before it makes anything: this build cannot make allocations fail. */
static void can_fail(void)
{
    skip();
}

static void fail_each(const call *c)
{
    (void)c;
    skip();
}
#endif

#define SAMPLE(name) ONV_SOURCE_DIR "/samples/" name ".onnx"
#define SEED(name)   ONV_SOURCE_DIR "/tests/fuzz/corpus/models/" name ".onnx"

static void bind(call *c, const char *one, const char *other)
{
    static onv_dim_binding dims[2];
    dims[0] = (onv_dim_binding){one, 32};
    dims[1] = (onv_dim_binding){other, 32};
    c->options.dims = dims;
    c->options.n_dims = other != NULL ? 2 : 1;
}

static const char *write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    return name;
}

/* What inference and its options reach. */
TEST(analyses)
{
    call calls[] = {
        {.name = "symbols", .path = SAMPLE("control-flow")},
        {.name = "functions", .path = SAMPLE("functions")},
        {.name = "scan", .path = SAMPLE("scan"), .options = {.batch = 2}},
        {.name = "free dims", .path = SAMPLE("lstm")},
        {.name = "another batch", .path = SAMPLE("resnet50-batch1"), .options = {.batch = 8}},
        {.name = "orders",
         .path = SAMPLE("unet"),
         .options = {.batch = 1, .order = "optimal", .precision = ONV_PRECISION_FP16}},
        {.name = "the largest batch",
         .path = SAMPLE("scan"),
         .options = {.budget = 1 << 20, .max_batch = true, .runtimes = "torch,ort"}},
        {.name = "timelines", .path = SAMPLE("scan"), .options = {.batch = 2, .timelines = true}},
        {.name = "a snapshot",
         .path = ONV_SOURCE_DIR "/tests/measured/tiny.onnx",
         .options = {.batch = 8,
                     .train = "adamw",
                     .measured = 500 << 20,
                     .snapshot = ONV_SOURCE_DIR "/tests/fuzz/corpus/snapshot/longer.pickle"}},
        {.name = "remedies",
         .path = SAMPLE("scan"),
         .options = {.batch = 4, .budget = 1 << 28, .remedies = true}},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        calls[i].make = analyse;
        calls[i].options.struct_size = sizeof calls[i].options;
        if (strcmp(calls[i].name, "orders") == 0) bind(&calls[i], "height", "width");
        if (strcmp(calls[i].name, "the largest batch") == 0) bind(&calls[i], "sequence", NULL);
        if (strcmp(calls[i].name, "remedies") == 0) bind(&calls[i], "sequence", NULL);
        fail_each(&calls[i]);
    }
}

/* Quantized weights, a cache that is shared with its longest context, changes that save memory. */
TEST(what_would_be)
{
    can_fail();
    static const onv_dim_binding dim = {"p", 7};
    call c = {.name = "what if", .make = analyse, .options = onv_options_default()};
    OWNED_MODEL m = model_read(17, "in past_key_values.0.key f32[B,2,p,8]", "in x f32[B,2,1,8]",
                               "weight w f32[8,8]", "a = Exp(x) e", "k = MatMul(a w) project",
                               "present.0.key = Concat(past_key_values.0.key k) grow axis=2",
                               "s = ReduceMax(present.0.key) reduce axes=[2] keepdims=1",
                               "y = Add(s a) join", "out y f32", "out present.0.key f32");
    c.data = model_bytes(m, &c.bytes);
    c.options.batch = 4;
    c.options.dims = &dim;
    c.options.n_dims = 1;
    c.options.weights = "int4";
    c.options.kv_cache = "shared";
    c.options.savings = true;
    c.options.budget = 4096;
    c.options.runtimes = "ideal";
    fail_each(&c);
    c.options.budget = 0;
    c.options.runtimes = "ort";
    fail_each(&c);
}

/* A model in memory, an operator that is declared, and contents of an input from a file. */
TEST(other_inputs)
{
    can_fail();
    static const char shapes[] = "my.domain::Twice(x, n): [x.0 * 2, n[0]]\n";
    static const unsigned char tensor[] = {0x08, 2, 0x10, 7, 0x4a, 16, 5, 0, 0, 0, 0,
                                           0,    0, 0,    6, 0,    0,  0, 0, 0, 0, 0};
    onv_input_value value = {.name = "n", .file = "n.pb"};
    FILE *file = fopen("n.pb", "wb");
    assert_non_null(file);
    assert_true(fwrite(tensor, sizeof tensor, 1, file) == 1 && fclose(file) == 0);
    OWNED_MODEL m = model_read(17, "import my.domain 1", "in x f32[batch,3]", "in n i64[2]",
                               "y = my.domain::Twice(x n) t", "out y f32");
    call c = {.name = "other inputs", .make = analyse, .options = onv_options_default()};
    c.data = model_bytes(m, &c.bytes);
    c.options.batch = 4;
    c.options.op_shapes_file = write_file("ops.txt", shapes);
    c.options.input_values = &value;
    c.options.n_input_values = 1;
    onv_analysis *analysis;
    onv_error error = {0};
    if (onv_analysis_new_from_memory(c.data, c.bytes, NULL, &c.options, &analysis, &error) !=
        ONV_OK)
        fail_msg("%s: %s", error.node, error.message);
    assert_string_equal(model_shape(analysis, "y"), "[8, 5]");
    onv_analysis_destroy(analysis);
    fail_each(&c);
}

TEST(trainings)
{
    static const char *const frozen[] = {"*bias"};
    call calls[] = {
        {.name = "training", .options = {.batch = 2, .train = "adamw", .freeze = frozen}},
        {.name = "checkpoints", .options = {.batch = 2, .train = "sgd", .checkpoint = "all"}},
        {.name = "compiled",
         .options = {.batch = 2, .train = "sgd", .compile = true, .compile_budget = 0.3}},
        {.name = "drawn",
         .options = {.batch = 2, .train = "sgd", .checkpoint = "sqrt", .timelines = true}},
        {.name = "mixed", .options = {.batch = 2, .train = "adam8bit", .amp = ONV_PRECISION_BF16}},
        {.name = "sharded", .options = {.batch = 2, .train = "lamb", .zero_stage = 3, .world = 4}},
        {.name = "recurrent", .path = SEED("recurrent"), .options = {.checkpoint = "sqrt"}},
        {.name = "attention",
         .path = SEED("attention"),
         .options = {.attention = "flash", .amp = ONV_PRECISION_FP16, .checkpoint = "all"}},
        {.name = "notes", .path = SEED("notes"), .options = {.batch = 2, .checkpoint = "all"}},
    };
    calls[0].options.n_freeze = 1;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        calls[i].make = analyse;
        if (calls[i].path == NULL) calls[i].path = SAMPLE("vgg16");
        calls[i].options.struct_size = sizeof calls[i].options;
        if (calls[i].options.train == NULL) calls[i].options.train = "adamw";
        if (calls[i].options.batch == 0) bind(&calls[i], "seq", "batch");
        fail_each(&calls[i]);
    }
}

TEST(replays)
{
    call c = {.name = "replay", .make = analyse, .path = SAMPLE("functions")};
    c.options = onv_options_default();
    c.options.batch = 2;
    c.options.replay = "host";
    bind(&c, "sequence", NULL);
    fail_each(&c);
}

static onv_analysis *analysed(void)
{
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error error;
    options.batch = 2;
    options.train = "sgd";
    options.checkpoint = "sqrt";
    options.runtimes = "arena,torch";
    options.replay = "host";
    options.timelines = true;
    if (onv_analysis_new(SAMPLE("vgg16"), &options, &analysis, &error) != ONV_OK)
        fail_msg("%s", error.message);
    return analysis;
}

TEST(reports)
{
    can_fail();
    OWNED_ANALYSIS analysis = analysed();
    for (int format = ONV_FORMAT_TEXT; format <= ONV_FORMAT_MODEL_EXPLORER; format++) {
        if (format > ONV_FORMAT_CHECKPOINTS && format < ONV_FORMAT_HTML) continue;
        call c = {.name = "report",
                  .make = report,
                  .analysis = analysis,
                  .format = (onv_format)format,
                  .may_make_none = format >= ONV_FORMAT_CSV,
                  .room = SIZE_MAX};
        fail_each(&c);
    }
}

TEST(reports_of_measurements)
{
    can_fail();
    static const onv_format formats[] = {ONV_FORMAT_MEASURED, ONV_FORMAT_MEASURED_MARKDOWN,
                                         ONV_FORMAT_JSON};
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    onv_error error;
    options.batch = 8;
    options.train = "adamw";
    options.snapshot = ONV_SOURCE_DIR "/tests/fuzz/corpus/snapshot/early.pickle";
    options.measured = UINT64_C(7421) << 20;
    assert_int_equal(
        onv_analysis_new(ONV_SOURCE_DIR "/tests/measured/tiny.onnx", &options, &analysis, &error),
        ONV_OK);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        call c = {.name = "measured",
                  .make = report,
                  .analysis = analysis,
                  .format = formats[i],
                  .room = SIZE_MAX};
        fail_each(&c);
    }
    onv_analysis_destroy(analysis);
}

#ifdef ONV_FAULT_INJECTION
/* What an analysis says: of every tensor the shape and the bytes, and the sums. */
static char *told(const call *c, onv_status *status)
{
    onv_analysis *a;
    onv_error error = {0};
    *status = onv_analysis_new_from_memory(c->data, c->bytes, c->name, &c->options, &a, &error);
    if (*status != ONV_OK) return NULL;
    onv_heap_fail_after(-1);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    onv_tensor_info t;
    for (size_t i = 0; onv_analysis_tensor(a, i, &t); i++)
        fprintf(out, "%s %s %llu\n", t.name, t.shape, (unsigned long long)t.bytes);
    for (size_t i = 0; i < a->n_runtimes; i++)
        fprintf(out, "%s %llu\n", a->runtimes[i].runtime->name,
                (unsigned long long)a->runtimes[i].held_bytes);
    fclose(out);
    onv_analysis_destroy(a);
    return text;
}

/* Where a lookup without memory could pass for an answer (what both branches give, strides of views),
 * an analysis fails or is right. */
static void never_another_answer(const call *c)
{
    enum { BEYOND = 40 };
    onv_status status;
    OWNED_TEXT right = told(c, &status);
    assert_non_null(right);
    for (long n = 0, good = 0; good < BEYOND; n += 1 + n / 300) {
        onv_heap_fail_after(n);
        OWNED_TEXT now = told(c, &status);
        onv_heap_fail_after(-1);
        if (now != NULL && strcmp(now, right) != 0)
            fail_msg("%s: allocation %ld: '%s' instead of '%s'", c->name, n, now, right);
        if (now == NULL && status != ONV_ERR_MEMORY)
            fail_msg("%s: allocation %ld: %s", c->name, n, onv_status_name(status));
        good += now != NULL;
    }
}

#else
static void never_another_answer(const call *c)
{
    (void)c;
}
#endif

static model *views(void)
{
    static const int64_t split[] = {2, 3, 4, 4}, joined[] = {2, 3, 16};
    model *m = model_read(17, "in x f32[2,3,16]");
    model_ints(m, "split", 4, split);
    model_ints(m, "joined", 3, joined);
    model_add(m, "a = Reshape(x split) 0", "b = Transpose(a) 1 perm=[0,2,1,3]",
              "c = Transpose(b) 2 perm=[0,2,1,3]", "d = Reshape(c joined) 3", "e = Relu(d) 4",
              "f = Reshape(b joined) 5", "y = Add(e f) 6", "out y f32");
    return m;
}

TEST(lookups_without_memory)
{
    can_fail();
    for (size_t i = 0; i == 0 || nested_cases[i - 1].name != NULL; i++) {
        OWNED_MODEL m = i == 0 ? views() : nested_case_build(&nested_cases[i - 1]);
        call c = {.name = i == 0 ? "views" : nested_cases[i - 1].name};
        c.options = onv_options_default();
        c.options.runtimes = "ideal,torch";
        c.data = model_bytes(m, &c.bytes);
        never_another_answer(&c);
    }
}

static const call *tables(void)
{
    static const char intervals[] = "id,lower,upper,size\na,0,3,10\nb,1,4,7\nc,3,6,10\nd,0,2,9\n"
                                    "e,2,5,4\nf,5,6,12\ng,4,6,3\n";
    static const char trace[] = "alloc,a,1000\nalloc,b,3000000,1,name\nfree,a\nalloc,c,500,2,\n";
    static call calls[2] = {
        {.name = "plan", .make = plan, .room = SIZE_MAX},
        {.name = "simulate", .make = simulate, .room = SIZE_MAX},
    };
    calls[0].path = write_file("i.csv", intervals);
    calls[1].path = write_file("t.csv", trace);
    return calls;
}

TEST(plans_and_simulations)
{
    for (int i = 0; i < 2; i++) fail_each(&tables()[i]);
}

/* --- Writers that refuse ------------------------------------------------------------------------- */

/* Whatever a writer takes before it refuses, the call fails with ONV_ERR_IO. */
static void refuse_each(call c)
{
    onv_status status;
    size_t refused = 0;
    for (c.room = 0;; c.room += 1 + c.room / 16) {
        onv_error error = {0};
        status = c.make(&c, &error);
        if (status == ONV_OK) break;
        if (status != ONV_ERR_IO || error.code != status || error.message[0] == '\0')
            fail_msg("%s: after %zu bytes: %s, '%s'", c.name, c.room, onv_status_name(status),
                     error.message);
        refused++;
    }
    assert_true(refused > 5);
}

TEST(writers_that_refuse)
{
    OWNED_ANALYSIS analysis = analysed();
    for (int format = ONV_FORMAT_TEXT; format <= ONV_FORMAT_MODEL_EXPLORER; format++)
        if (format <= ONV_FORMAT_CHECKPOINTS || format >= ONV_FORMAT_HTML)
            refuse_each((call){.name = "report",
                               .make = report,
                               .analysis = analysis,
                               .format = (onv_format)format});
    for (int i = 0; i < 2; i++) refuse_each(tables()[i]);
}

TEST(answers)
{
    can_fail();
    static const char *const samples[] = {SAMPLE("control-flow"), SAMPLE("scan")};
    for (size_t i = 0; i < 4; i++) {
        call c = {.name = "answers",
                  .make = ask,
                  .path = samples[i / 2],
                  .options = onv_options_default()};
        c.options.runtimes = "ideal";
        if (i % 2 == 1) c.options.batch = 2;
        fail_each(&c);
    }
}

TEST(what_is_in_memory)
{
    can_fail();
    const call c = {.name = "planner", .make = plan_memory};
    fail_each(&c);
}

TEST_GROUP(folder_enter, folder_leave)
