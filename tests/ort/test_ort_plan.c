/* ONNX Runtime's plan of buffers, rule by rule, and what a session makes of it. */
#include "ort/ort.h"
#include "support/flow.h"
#include "support/test.h"

#define MIB  (UINT64_C(1) << 20)
#define NONE UINT32_MAX

typedef struct planned {
    model *m;
    flow f;
    onv_ort_plan plan;
} planned;

/* Takes the model over. In the order of the file. */
static void plan(planned *p, model *m, onv_ort_provider provider)
{
    onv_error err = {0};
    p->m = m;
    flow_open_model(&p->f, m, NULL);
    assert_int_equal(onv_ort_plan_compute(&p->f.model, &p->f.live,
                                          &(onv_ort_session){.provider = provider}, &p->plan, &err),
                     ONV_OK);
}

static void drop(planned *p)
{
    flow_close(&p->f);
    model_free(p->m);
}

static uint32_t buffer_of(const planned *p, const char *name)
{
    return p->plan.of_value[p->f.live.timeline.buffers.at[flow_row(&p->f, name)].value.index];
}

/* --- Who has whose buffer ----------------------------------------------------------------------- */

/* Each value is read by one node, but a, which two read. */
#define UNARY(op)                                                                                  \
    "in x f32[8]; a = " op "(x) 0; b = " op "(a) 1; c = Add(a b) 2; d = " op                       \
    "(c) 3; y = Add(d d) 4; out y f32"

/* a and d are read again: an alias shares all the same. */
#define ALIASES                                                                                    \
    "in x f32[8]; weight w f32[8]; ints shape 4 2; same = Identity(x) 0; "                         \
    "weight = Identity(w) 1; a = Add(same weight) 2; b = Reshape(a shape) 3; c = Neg(b) 4; "       \
    "d = Neg(a) 5; e = Reshape(d shape) 6; y = Add(c e) 7; out y f32"

/* x through a Reshape, its shape a constant or put together from x's own, then three more nodes. */
#define RESHAPED(shape)                                                                            \
    "in x f32[8,2]; ints zero 0; ints two 2; ints constant 8 2; dims = Shape(x) s; "               \
    "rows = Gather(dims zero) g; put_together = Concat(rows two) c axis=0; a = Abs(x) 0; "         \
    "b = Reshape(a " shape                                                                         \
    ") 1; c = Abs(b) 2; d = Abs(c) 3; e = Abs(d) 4; y = Abs(e) 5; out y f32"

/* "a=b": one buffer; "a!b": two; "-a": none; "+a": one; "a@2-5": its buffer lives from step 2 to step 5. */
static const struct {
    onv_ort_provider provider;
    const char *lines, *buffers;
    int64_t reused; /* values that take a buffer over; -1: any number */
} rules[] = {
    /* Outputs have buffers of their own, neither in place nor in the freed a, and are not taken over. */
    {ONV_ORT_CUDA, "in x f32[8]; a = Abs(x) 0; b = Neg(a) 1; y = Relu(b) 2; out y f32", "y!b y!a",
     0},
    {ONV_ORT_CUDA, "in x f32[8]; y = Abs(x) 0; a = Relu(y) 1; z = Abs(a) 2; out y f32; out z f32",
     "a!y", -1},
    /* An alias lives from the first definition to the last use of all that is in it; x is a copy of the input on the device, and
     * the caller's own memory on the CPU. */
    {ONV_ORT_CUDA, ALIASES, "a=b d=e x=same -weight a@2-5", -1},
    {ONV_ORT_CPU, ALIASES, "-x -same", -1},
    /* In place goes what nobody else reads, and no graph input; kernels of providers differ. */
    {ONV_ORT_CUDA, UNARY("Relu"), "a!x b!a d=c", -1},
    {ONV_ORT_CPU, UNARY("Celu"), "d=c", -1},
    {ONV_ORT_CUDA, UNARY("Celu"), "d!c", -1},
    {ONV_ORT_CPU, UNARY("Abs"), "d!c", -1},
    {ONV_ORT_CUDA, UNARY("HardSwish"), "d=c", -1},
    {ONV_ORT_CPU, UNARY("HardSwish"), "d!c", -1},
    /* In place wants the same element size: int32, then float16. */
    {ONV_ORT_CPU,
     "in x f32[8]; a = Abs(x) 0; b = Cast(a) 1 to=6; c = Cast(b) 2 to=10; y = Cast(c) 3 to=1; "
     "out y f32",
     "a=b c!b", -1},
    /* Equal bytes are not an equal shape: a is free behind b, and taken for [32, 128] alone. */
    {ONV_ORT_CUDA,
     "in x f32[32,128]; a = Abs(x) 0; b = Transpose(a) 1; c = Abs(b) 2; d = Neg(c) 3; "
     "e = Transpose(d) 4; y = Abs(e) 5; out y f32",
     "c!a d=b e=a", 2},
    /* A buffer keeps the shape it was made for: b is [8] in one of [4, 2], which d does not get. */
    {ONV_ORT_CUDA,
     "in x f32[4,2]; ints shape 8; a = Abs(x) 0; b = Reshape(a shape) 1; c = Neg(b) 2; "
     "d = Neg(c) 3; y = Neg(d) 4; out y f32",
     "a=b d!b", -1},
    /* Scalars are never used again. */
    {ONV_ORT_CUDA,
     "in x f32[8]; a = ReduceSum(x) 0 keepdims=0; b = Abs(a) 1; c = Abs(b) 2; y = Abs(c) 3; "
     "out y f32",
     "", 0},
    /* The last one freed comes first: s frees a, then b. */
    {ONV_ORT_CUDA,
     "in x f32[8]; a = Abs(x) 0; b = Neg(x) 1; s = Add(a b) 2; t = Abs(s) 3; u = Neg(s) 4; "
     "y = Add(t u) 5; out y f32",
     "t=b u=a", -1},
    /* What nobody reads can be used again but uses nothing; odd stays until the run is over. */
    {ONV_ORT_CUDA, "in x f32[8]; v w = Split(x) 0; b odd = Split(x) 1; y = Add(b b) 2; out y f32",
     "b=w odd!v odd@1-2", -1},
    /* Shape arithmetic is on the host with CUDA. */
    {ONV_ORT_CUDA, RESHAPED("put_together"), "-dims -put_together", -1},
    {ONV_ORT_CPU, RESHAPED("put_together"), "+dims", -1},
};

static bool holds(const planned *p, const char *word)
{
    char a[32], b[32], what;
    unsigned first, last;
    if (word[0] == '-' || word[0] == '+')
        return (buffer_of(p, word + 1) == NONE) == (word[0] == '-');
    if (sscanf(word, "%31[^@]@%u-%u", a, &first, &last) == 3) {
        const onv_buffer *buffer = &p->plan.buffers[buffer_of(p, a)];
        return buffer->first == first && buffer->last == last;
    }
    assert_int_equal(sscanf(word, "%31[^=!]%c%31s", a, &what, b), 3);
    bool is_one = buffer_of(p, a) == buffer_of(p, b);
    return what == '=' ? is_one && buffer_of(p, a) != NONE : !is_one;
}

TEST(buffers_are_taken_over_by_rules)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        planned p;
        model *m = model_new(17);
        model_add_text(m, rules[i].lines);
        plan(&p, m, rules[i].provider);
        char *words = strdup(rules[i].buffers), *rest = words;
        for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;)
            if (!holds(&p, word)) fail_msg("%s: not %s", rules[i].lines, word);
        free(words);
        if (rules[i].reused >= 0) assert_int_equal(p.plan.reused, rules[i].reused);
        drop(&p);
    }
}

/* --- Workspaces -------------------------------------------------------------------------------- */

static void expect_workspaces(model *m, uint32_t n, const uint64_t *bytes, bool has_stream)
{
    planned p;
    uint32_t found = 0;
    plan(&p, m, ONV_ORT_CUDA);
    for (uint32_t i = 0; i < p.plan.count; i++) {
        if (p.plan.buffers[i].kind != ONV_BUFFER_WORKSPACE) continue;
        assert_true(found < n);
        assert_int_equal(p.plan.buffers[i].bytes, bytes[found]);
        assert_int_equal(p.plan.buffers[i].stream != ONV_ORT_NO_STREAM, has_stream);
        found++;
    }
    assert_int_equal(found, n);
    drop(&p);
}

static void expect_softmax(int opset, const char *op, const char *axis, uint32_t n)
{
    static const uint64_t bytes[] = {131072, 131072};
    model *m = model_read(opset, "in x f32[4,8,16,64]", "a = Abs(x) 0");
    model_node(m, op, "1", "a", "b", axis);
    model_add(m, "y = Abs(b) 2", "out y f32");
    expect_workspaces(m, n, bytes, false);
}

/* Measured: ONNX Runtime 1.31, the CUDA build without a GPU. */
TEST(a_softmax_along_an_inner_axis_is_transposed)
{
    expect_softmax(13, "Softmax", "axis=1", 2);
    expect_softmax(13, "LogSoftmax", "axis=0", 2);
    expect_softmax(13, "Softmax", "axis=-1", 0);
    expect_softmax(13, "Softmax", "axis=3", 0);
    expect_softmax(13, "Softmax", "", 0);
    expect_softmax(11, "Softmax", "axis=1", 0);
}

TEST(tensors_of_einsum_are_asked_for_without_a_stream)
{
    const uint64_t transposed = 32768;
    model *m = model_read(17, "in x f32[64,128]", "a = Abs(x) 0");
    model_add(m, "b = Einsum(a) 1 equation='ij->ji'", "y = Abs(b) 2", "out y f32");
    expect_workspaces(m, 1, &transposed, false);
}

static void expect_split(const char *in, uint32_t n, const int64_t *sizes, uint32_t n_expected,
                         const uint64_t *expected)
{
    char outputs[512] = "";
    model *m = model_read(13, in, "a = Abs(x) 0");
    model_ints(m, "s", n, sizes);
    for (uint32_t i = 0; i < n; i++)
        snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "o%u ", i);
    model_node(m, "Split", "1", "a s", outputs, "axis=1");
    model_add(m, "y = Abs(o0) 2", "out y f32");
    expect_workspaces(m, n_expected, expected, true);
}

TEST(a_split_into_parts_of_several_sizes_has_arrays)
{
    int64_t many[40];
    for (int i = 0; i < 40; i++) many[i] = 8;
    expect_split("in x f32[4,16,32]", 2, (const int64_t[]){8, 8}, 0, NULL);
    expect_split("in x f32[4,24,32]", 2, (const int64_t[]){8, 16}, 4,
                 (const uint64_t[]){16, 16, 16, 192});
    expect_split("in x f32[4,320,32]", 40, many, 1, (const uint64_t[]){320});
}

/* Measured: ONNX Runtime 1.31, the CUDA build without a GPU; 0: nothing. */
static const struct {
    const char *op, *in;
    int64_t axes[3];
    uint32_t n_axes;
    uint64_t bytes;
} reductions[] = {
    {"ReduceMean", "in x f32[8,64,32,32]", {1}, 1, 2097152},
    {"ReduceMean", "in x f32[8,64,32,32]", {1, 2}, 2, 2097152},
    {"ReduceMean", "in x f32[8,64,32,32]", {2, 3}, 2, 4111},
    {"ReduceMean", "in x f32[8,64,32,32]", {0}, 1, 0},
    {"ReduceMean", "in x f32[8,65,31,33]", {-2, -1}, 2, 4175},
    {"ReduceMean", "in x f16[8,64,32,32]", {1}, 1, 2097152},
    {"ReduceMean", "in x f16[8,64,32,32]", {1, 2, 3}, 3, 2095},
    {"ReduceMean", "in x f32[8,64,1,1]", {2, 3}, 2, 4111},
    {"ReduceMean", "in x f32[8,64,32,1]", {2}, 1, 4111},
    {"ReduceMean", "in x f32[1,64,32,32]", {1}, 1, 0},
    {"ReduceMean", "in x f32[4,8,16,64]", {0}, 0, 0},
    {"ReduceSum", "in x f32[2,4,4,4096]", {3}, 1, 655},
    {"ReduceMean", "in x f32[2,2,512,512]", {2, 3}, 2, 4127},
    {"ReduceMean", "in x f32[2,3000]", {1}, 1, 39},
    {"ReduceMean", "in x f32[3,5,7,9]", {1, 3}, 2, 3780},
    {"ReduceSum", "in x f64[8,64,32]", {1}, 1, 131072},
    {"ReduceSum", "in x f64[8,64,32]", {2}, 1, 6159},
    {"ReduceSum", "in x i32[8,64,32]", {1}, 1, 0},
    {"ReduceLogSum", "in x f32[8,64,32]", {2}, 1, 4111},
    {"ReduceMax", "in x f16[8,64,32,32]", {2, 3}, 2, 2097152},
    {"ReduceMax", "in x f32[4,8]", {0, 1}, 2, 128},
    {"ReduceMin", "in x f32[8,64,32]", {1}, 1, 65536},
    {"ReduceProd", "in x f32[8,64,32]", {1}, 1, 65536},
    {"ReduceL1", "in x f32[8,64,32]", {1}, 1, 65536},
    {"ReduceL2", "in x f32[16,100]", {1}, 1, 6400},
};

TEST(reductions_take_what_was_measured)
{
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        model *m = model_read(18, reductions[i].in, "a = Abs(x) 0");
        if (reductions[i].n_axes > 0)
            model_ints(m, "axes", reductions[i].n_axes, reductions[i].axes);
        model_node(m, reductions[i].op, "1", reductions[i].n_axes > 0 ? "a axes" : "a", "b", "");
        model_add(m, "y = Cast(b) 2 to=1", "out y f32");
        expect_workspaces(m, reductions[i].bytes > 0, &reductions[i].bytes, true);
    }
}

/* How many values take a buffer over, by what ONNX Runtime sees of shapes. */
static uint64_t count_reused(bool computed)
{
    OWNED_MODEL m = model_new(17);
    OWNED_FLOW f;
    onv_rewritten rewritten;
    onv_ort_plan plan;
    onv_error err = {0};
    model_add_text(m, computed ? RESHAPED("put_together") : RESHAPED("constant"));
    flow_open_model(&f, m, NULL);
    onv_live live = flow_rewrite(&f, ONV_PROVIDER_CUDA, ONV_REWRITE_DISABLED, &rewritten);
    const onv_ort_session session = {.provider = ONV_ORT_CUDA, .seen = rewritten.seen};
    assert_int_equal(onv_ort_plan_compute(&rewritten.model, &live, &session, &plan, &err), ONV_OK);
    onv_rewritten_cleanup(&rewritten);
    return plan.reused;
}

TEST(unknown_shapes_are_not_used_again)
{
    assert_int_equal(count_reused(false), 3); /* b is a; d and e are in what was freed */
    assert_int_equal(count_reused(true), 1);
}

/* A detector that finds nothing is a run, too (measured: RetinaNet). */
TEST(sizes_that_data_decides_may_be_nothing)
{
    planned p;
    plan(&p,
         model_read(17, "in x f32[4,8]", "i = NonZero(x) 0", "t = Transpose(i) 1",
                    "g = GatherND(x t) 2", "z = Exp(g) 3", "o = Exp(z) 4", "y = Neg(o) 5",
                    "out y f32"),
         ONV_ORT_CUDA);
    const onv_buffer *z = &p.plan.buffers[buffer_of(&p, "z")];
    assert_int_equal(z->bytes, 32 * 4);
    assert_true(onv_ort_plan_choose(&p.plan, ONV_ORT_LEAST));
    assert_int_equal(z->bytes, 0);
    onv_ort_plan_choose(&p.plan, ONV_ORT_MOST);
    assert_int_equal(z->bytes, 32 * 4);
    drop(&p);
}

/* Measured, ONNX Runtime 1.31, CUDA build without a GPU. */
TEST(a_session_that_tries_algorithms_has_a_handle_more)
{
    onv_error err = {0};
    onv_ort_handles handles;
    onv_ort_settings settings = onv_ort_settings_default;
    onv_rewritten rewritten;
    OWNED_MODEL m = model_read(17, "in x f32[2,8,8,8]", "weight w f32[8,8,3,3]", "y = Conv(x w) 0",
                               "out y f32");
    OWNED_FLOW f;
    flow_open_model(&f, m, NULL);
    onv_live live = flow_rewrite(&f, ONV_PROVIDER_CUDA, ONV_REWRITE_ALL, &rewritten);
    for (uint32_t search = ONV_ORT_CONV_EXHAUSTIVE; search <= ONV_ORT_CONV_DEFAULT; search++) {
        settings.cudnn_conv_algo_search = search;
        assert_int_equal(onv_ort_count_handles(&rewritten.model, &live,
                                               &(onv_ort_session){.settings = &settings}, &handles,
                                               &err),
                         ONV_OK);
        assert_int_equal(handles.has_conv, search == ONV_ORT_CONV_EXHAUSTIVE);
        assert_int_equal(handles.most, 2);
    }
    onv_rewritten_cleanup(&rewritten);
}

/* --- Runs -------------------------------------------------------------------------------------- */

/* Temporaries of 38,400 and 89,600 bytes that are live together; input 38,400, output 89,600. */
static model *two_temporaries(void)
{
    model *m = model_read(17, "in x f32[9600]", "weight w f32[12800]", "a = Abs(x) 0",
                          "b = Concat(a w) 1 axis=0", "y = Neg(b) 2", "out y f32");
    return m;
}

TEST(the_pattern_is_one_block)
{
    planned p;
    onv_error err = {0};
    onv_timeline t = {0};
    plan(&p, two_temporaries(), ONV_ORT_CUDA);
    uint32_t n_steps = p.f.live.timeline.steps.count, n = 0;
    assert_int_equal(onv_ort_add_runs(&p.plan, 2, NULL, &t, &err), ONV_OK);
    assert_int_equal(onv_timeline_check(&t, &err), ONV_OK);
    static const uint64_t sizes[] = {38400, 128000, 89600};
    for (size_t i = 0; i < t.buffers.count; i++) {
        const onv_buffer *b = &t.buffers.at[i];
        if (b->first < n_steps || b->within != ONV_NO_BUFFER) continue;
        assert_true(n < 3);
        assert_int_equal(b->bytes, sizes[n++]);
        assert_int_equal(b->last, 2 * n_steps - 1); /* all given back at the end of the run */
    }
    assert_int_equal(n, 3);
    onv_timeline_cleanup(&t);
    drop(&p);
}

TEST(weights_lie_in_the_arena_unless_told_otherwise)
{
    OWNED_FLOW f;
    OWNED_MODEL m = two_temporaries();
    flow_open_model(&f, m, "ort");
    /* Everything fits the first region of 1 MiB. */
    onv_runtime_result in_arena = flow_run(&f, "ort", NULL);
    assert_int_equal(in_arena.weight_bytes, 51200);
    assert_int_equal(in_arena.held_bytes, MIB);
    assert_int_equal(in_arena.low_bytes, MIB);
    onv_ort_settings beside = onv_ort_settings_default;
    beside.use_device_allocator_for_initializers = 1;
    onv_runtime_options options = {.ort = &beside};
    onv_runtime_result r = flow_run(&f, "ort", &options);
    assert_int_equal(r.weight_bytes, 51200);
    assert_int_equal(r.first_run_bytes, 51200 + MIB);
    assert_int_equal(r.steady_bytes, 51200 + MIB);
    assert_int_equal(r.held_bytes, 51200 + MIB);
    assert_int_equal(r.activation_bytes, MIB);
    /* The most that is in use: in the later runs input, pattern and output at once. */
    assert_int_equal(r.allocated_peak_bytes, 51200 + 38400 + 128000 + 89600);
}

TEST(same_as_requested_takes_no_more)
{
    OWNED_FLOW f;
    OWNED_MODEL m = two_temporaries();
    flow_open_model(&f, m, "ort");
    onv_ort_settings same = onv_ort_settings_default;
    same.arena_extend_strategy = ONV_BFC_SAME_AS_REQUESTED;
    onv_runtime_options options = {.ort = &same};
    onv_runtime_result r = flow_run(&f, "ort", &options);
    /* First run: x, a, b and y as four regions. The block of 128,000 fits none of them: a fifth. */
    assert_int_equal(r.first_run_bytes, 51200 + 2 * 38400 + 2 * 89600);
    assert_int_equal(r.steady_bytes, r.first_run_bytes + 128000);
}
