/* Programs with checkpoints: what runs again, what is held, and that nothing else changes. */
#include "base/quota.h"
#include "base/strings.h"
#include "ckpt/taped.h"
#include "support/test.h"

/* --- By hand ----------------------------------------------------------------------------------- */

/* The labels of the second iteration's backward, what runs again in capitals. */
static void backward_text(const taped *t, const onv_train_program *program, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < program->timeline.steps.count; i++) {
        const onv_step *step = &program->timeline.steps.at[i];
        if (step->iteration != 1 || step->phase != ONV_PHASE_BACKWARD || !onv_is_node(step->node))
            continue;
        const char *name = onv_model_node(&t->flow.model, step->node)->name;
        length += (size_t)snprintf(text + length, size - length, "%s%c%c", length > 0 ? " " : "",
                                   step->is_recompute ? 'R' : 'b', name[strlen(name) - 1]);
        assert_true(length < size);
    }
}

static void expect_backward(taped *t, const onv_tape_segment *segments, uint32_t count,
                            const char *expected)
{
    char text[256];
    onv_train_program program = taped_program(t, segments, count);
    backward_text(t, &program, text, sizeof text);
    onv_train_program_cleanup(&program);
    assert_string_equal(text, expected);
}

/* A product keeps its operands, before it computes: the last one of a segment does not run again,
 * nor do inner segments whose input is the last thing that the outer one keeps. */
TEST(second_runs_stop_early)
{
    taped t;
    OWNED_MODEL m = taped_four_products();
    taped_open_model(&t, m);
    assert_int_equal(t.eager.first_loss_op, 4);
    expect_backward(&t, NULL, 0, "b4 b3 b2 b1");
    expect_backward(&t, (onv_tape_segment[]){{1, 2}}, 1, "b4 R2 b3 b2 b1");
    expect_backward(&t, (onv_tape_segment[]){{0, 0}, {1, 3}}, 2, "R2 R3 b4 b3 b2 b1");
    /* Inner segments: the outer run brings the input of 2..3, that one is forgotten, 4 is kept. */
    expect_backward(&t, (onv_tape_segment[]){{0, 3}, {1, 2}}, 2, "R1 R2 R3 b4 R2 b3 b2 b1");
    expect_backward(&t, (onv_tape_segment[]){{0, 3}, {0, 1}, {2, 3}}, 3, "R1 R2 R3 b4 b3 R1 b2 b1");
    taped_close(&t);
}

static void expect_pruned(taped *t, const onv_tape_segment *segments, uint32_t count,
                          const uint32_t *kept, uint32_t n_kept, const char *expected)
{
    t->options.prunes = true;
    t->options.kept_ops = kept;
    t->options.n_kept_ops = n_kept;
    expect_backward(t, segments, count, expected);
    t->options.prunes = false;
    t->options.n_kept_ops = 0;
}

/* As second_runs_stop_early, but for results that are kept: then what comes before them does not run. */
TEST(pruned_runs_take_what_is_kept)
{
    taped t;
    OWNED_MODEL m = taped_four_products();
    taped_open_model(&t, m);
    const onv_tape_segment whole = {0, 3};
    expect_pruned(&t, &whole, 1, NULL, 0, "R1 R2 R3 b4 b3 b2 b1");
    expect_pruned(&t, &whole, 1, (uint32_t[]){1}, 1, "R1 R3 b4 b3 b2 b1");
    expect_pruned(&t, &whole, 1, (uint32_t[]){0, 1, 2, 3}, 4, "b4 b3 b2 b1");
    expect_pruned(&t, (onv_tape_segment[]){{0, 3}, {1, 2}}, 2, (uint32_t[]){0}, 1,
                  "R2 R3 b4 R2 b3 b2 b1");
    expect_pruned(&t, (onv_tape_segment[]){{0, 3}, {1, 2}}, 2, (uint32_t[]){2}, 1,
                  "R1 b4 R2 b3 b2 b1");
    taped_close(&t);
}

/* Of two products at the end of a segment the last one reads what comes from outside, which autograd holds itself: in a pruned
 * segment it goes backward before the second run. torch.utils.checkpoint runs again for what comes from outside, too. */
TEST(what_comes_from_outside_takes_no_second_run)
{
    taped t;
    OWNED_MODEL m =
        model_read(17, "in x f32[16,256]", "weight w1 f32[256,256]", "weight w2 f32[256,256]",
                   "weight w3 f32[256,256]", "weight w4 f32[256,256]", "a = MatMul(x w1) mm1",
                   "b = MatMul(a w2) mm2", "c = MatMul(b w3) mm3", "d = MatMul(a w4) mm4",
                   "y = Add(c d) sum5", "out y f32");
    taped_open_model(&t, m);
    const onv_tape_segment segment = {1, 3};
    expect_backward(&t, &segment, 1, "b5 R2 R3 b4 b3 b2 b1");
    expect_pruned(&t, &segment, 1, NULL, 0, "b5 b4 R2 b3 b2 b1");
    taped_close(&t);
}

/* always: x, targets (16384 each), four weights; with momentum four states. In the second iteration
 * the output of the one before (y4) and its loss are there too, until they are made again. */
TEST(held_bytes_by_hand)
{
    taped t;
    OWNED_MODEL m = taped_four_products();
    taped_open_model(&t, m);
    t.options.lower.loss = ONV_LOSS_CROSS_ENTROPY;
    onv_train_program plain = taped_program(&t, NULL, 0);
    onv_train_program program = taped_program(&t, (onv_tape_segment[]){{0, 2}}, 1);
    const uint64_t row = 16384, macs = 16 * 256 * 256;
    /* x, y1, y2, y3, the loss's own; then x, y3 and the same. */
    assert_int_equal(plain.saved_bytes - program.saved_bytes, 2 * row);
    assert_int_equal(plain.forward_macs, 4 * macs);
    assert_int_equal(plain.recomputed_macs, 0);
    assert_int_equal(program.recomputed_macs, 2 * macs); /* the third product need not run */
    onv_train_program_cleanup(&plain);
    onv_train_program_cleanup(&program);
    taped_close(&t);
}

TEST(bad_segments_are_refused)
{
    static const struct {
        onv_tape_segment at[2];
        uint32_t count;
    } cases[] = {
        {{{2, 1}}, 1},         {{{0, 4}}, 1},         {{{2, 3}, {0, 1}}, 2},
        {{{0, 2}, {1, 3}}, 2}, {{{1, 2}, {0, 3}}, 2},
    };
    taped t;
    OWNED_MODEL m = taped_four_products();
    taped_open_model(&t, m);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_error err = {0};
        onv_train_program program;
        onv_train_options options = t.options;
        options.segments = cases[i].at;
        options.n_segments = cases[i].count;
        assert_int_equal(onv_train_program_build(&t.flow.model, &t.eager, &options, &program, &err),
                         ONV_ERR_USAGE);
        assert_non_null(strstr(err.message, "checkpoint segment"));
    }
    taped_close(&t);
}

/* --- Properties -------------------------------------------------------------------------------- */

static uint32_t next_random(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

enum { MAX_SEGMENTS = 64 };

/* Segments in [from, to), nested up to a depth; they may begin and end anywhere. */
static void scatter(uint64_t *seed, uint32_t from, uint32_t to, int depth,
                    onv_tape_segment *segments, uint32_t *count)
{
    while (from < to && *count < MAX_SEGMENTS) {
        uint32_t first = from + next_random(seed, 6);
        uint32_t last = first + next_random(seed, (to - from) / 2 + 1);
        if (last >= to) return;
        segments[(*count)++] = (onv_tape_segment){first, last};
        if (depth > 0) scatter(seed, first, last + 1, depth - 1, segments, count);
        from = last + 1;
    }
}

/* Sums by kind of everything that is made, and the rows that stay at the end of an iteration. */
typedef struct summary {
    uint64_t gradients, outputs, steps_hash;
    uint64_t again_macs, activations_left;
} summary;

static summary summarise(const taped *t, const onv_train_program *program)
{
    summary s = {0};
    uint32_t end = 0; /* of the second iteration */
    for (size_t i = 0; i < program->timeline.steps.count; i++) {
        const onv_step *step = &program->timeline.steps.at[i];
        if (step->iteration <= 1) end = (uint32_t)i;
        if (step->iteration == 0 && step->is_recompute) s.again_macs += step->macs;
        if (step->is_recompute) continue;
        /* Everything but second runs happens in the same order. */
        s.steps_hash = onv_hash_u64(s.steps_hash * 31 + step->phase);
        s.steps_hash ^= onv_hash_bytes(step->label, strlen(step->label), step->node.index);
    }
    for (size_t i = 0; i < program->timeline.buffers.count; i++) {
        const onv_buffer *b = &program->timeline.buffers.at[i];
        if (b->kind == ONV_BUFFER_GRADIENT) s.gradients += b->bytes;
        bool left = b->first <= end && b->last > end;
        if (b->kind == ONV_BUFFER_ACTIVATION && left) s.activations_left += b->bytes;
    }
    for (size_t i = 0; i < t->eager.storages.count; i++)
        if (t->eager.storages.at[i].is_output &&
            t->eager.storages.at[i].kind == ONV_STORAGE_ACTIVATION)
            s.outputs += t->eager.storages.at[i].bytes;
    return s;
}

/* Some operations inside segments. */
static uint32_t pick_kept(uint64_t *seed, const taped *t, const onv_tape_segment *segments,
                          uint32_t count, uint32_t *kept)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->eager.first_loss_op; i++) {
        bool inside = false;
        for (uint32_t k = 0; k < count; k++)
            inside |= segments[k].first_op <= i && i <= segments[k].last_op;
        if (inside && t->eager.ops.at[i].macs > 0 && next_random(seed, 3) == 0) kept[n++] = i;
    }
    return n;
}

/* Pruned: nothing is lost, and no more runs again. */
static void check_pruned(taped *t, uint64_t *seed, const onv_tape_segment *segments, uint32_t count,
                         const summary *expected, uint64_t again_macs)
{
    static uint32_t kept[4096];
    uint64_t most = again_macs;
    assert_true(t->eager.first_loss_op <= 4096);
    t->options.prunes = true;
    for (int round = 0; round < 2; round++) {
        onv_train_program program = taped_program(t, segments, count);
        summary s = summarise(t, &program);
        assert_true(program.recomputed_macs <= most);
        most = program.recomputed_macs;
        onv_train_program_cleanup(&program);
        assert_true(s.steps_hash == expected->steps_hash);
        assert_int_equal(s.gradients, expected->gradients);
        assert_int_equal(s.activations_left, expected->outputs);
        t->options.kept_ops = kept;
        t->options.n_kept_ops = pick_kept(seed, t, segments, count, kept);
    }
    t->options.prunes = false;
    t->options.n_kept_ops = 0;
}

static void check_random_segments(taped *t, int rounds)
{
    uint64_t seed = 7;
    onv_train_program plain = taped_program(t, NULL, 0);
    summary expected = summarise(t, &plain);
    onv_train_program_cleanup(&plain);
    assert_int_equal(expected.activations_left, expected.outputs);
    for (int round = 0; round < rounds; round++) {
        onv_tape_segment segments[MAX_SEGMENTS];
        uint32_t count = 0;
        scatter(&seed, 0, t->eager.first_loss_op, round % 4, segments, &count);
        onv_train_program program = taped_program(t, segments, count); /* nothing is lost */
        summary s = summarise(t, &program);
        assert_int_equal(s.again_macs, program.recomputed_macs);
        onv_train_program_cleanup(&program);
        assert_true(s.steps_hash == expected.steps_hash);
        assert_int_equal(s.gradients, expected.gradients);
        assert_int_equal(s.activations_left, expected.outputs);
        check_pruned(t, &seed, segments, count, &expected, s.again_macs);
    }
}

TEST(recomputation_changes_no_result)
{
    static const struct {
        const char *name, *dims;
        onv_dtype amp;
    } cases[] = {
        {"resnet18-train.onnx", "batch=2", ONV_UNDEFINED},
        {"mobilenet_v2-train.onnx", "batch=2", ONV_BFLOAT16},
        {"mobilenet_v3_small.onnx", "batch=2", ONV_BFLOAT16},
        {"unet-train.onnx", "batch=2 height=64 width=64", ONV_UNDEFINED},
        {"vit-small-train.onnx", "batch=2", ONV_FLOAT16},
        {"densenet201.onnx", "batch=1", ONV_UNDEFINED},
        {"bert.onnx", "batch=2 sequence=16", ONV_UNDEFINED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        taped t;
        taped_open_sample(&t, cases[i].name, cases[i].dims, cases[i].amp);
        check_random_segments(&t, 12);
        taped_close(&t);
    }
}

/* Where the first iterations differ, or several passes make one, prices are of programs, too (taped_program). */
TEST(prices_of_shared_training)
{
    const onv_tape_segment segments[] = {{2, 20}, {5, 12}, {30, 50}};
    const onv_train_options ways[] = {{.parallel = ONV_PARALLEL_DDP, .world = 2},
                                      {.parallel = ONV_PARALLEL_FSDP, .world = 4},
                                      {.zero_stage = 3, .world = 4, .accumulate = 3},
                                      {.accumulate = 23},
                                      {.ema = true, .offload = ONV_OFFLOAD_GRADIENTS}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        taped t;
        taped_open_sample(&t, "resnet18-train.onnx", "batch=2", ONV_UNDEFINED);
        t.options.parallel = ways[i].parallel;
        t.options.zero_stage = ways[i].zero_stage;
        t.options.world = ways[i].world;
        t.options.accumulate = ways[i].accumulate;
        t.options.ema = ways[i].ema;
        t.options.offload = ways[i].offload;
        taped_price(&t);
        for (uint32_t n = 4; n-- > 0;) {
            onv_train_program program = taped_program(&t, segments, n);
            onv_train_program_cleanup(&program);
        }
        taped_close(&t);
    }
}

static uint64_t work_of_pricing(uint32_t passes)
{
    taped t;
    onv_error err = {0};
    onv_price price;
    onv_quota quota = {.limit = SIZE_MAX};
    taped_open_sample(&t, "resnet18-train.onnx", "batch=2", ONV_UNDEFINED);
    t.options.accumulate = passes;
    taped_price(&t);
    onv_quota *before = onv_quota_enter(&quota);
    if (onv_pricing_find(t.problem.pricing, &t.options, NULL, &price, &err) != ONV_OK)
        fail_msg("%s", err.message);
    onv_quota_enter(before);
    taped_close(&t);
    return quota.work;
}

/* Passes that find what one before them found are not counted again. */
TEST(passes_that_repeat_take_no_work)
{
    assert_int_equal(work_of_pricing(23), work_of_pricing(3));
}
