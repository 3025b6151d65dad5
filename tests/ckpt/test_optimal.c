/* The plan "optimal" on tapes: against every other plan, against all plans of small networks, and on
 * networks that checkpointing is for. */
#include "ckpt/front.h"
#include "ckpt/improve.h"
#include "ckpt/plans.h"
#include "ckpt/tape.h"
#include "ckpt/taped.h"
#include "support/alike.h"
#include "support/capture.h"
#include "support/test.h"

typedef struct subject {
    taped t;
    onv_ckpt_plans optimal;
} subject;

/* After the tape was opened. */
static void plan(subject *s, const char *optimizer)
{
    s->t.options.optimizer = onv_optimizer_find(optimizer);
    taped_price(&s->t);
    s->optimal = taped_plans(&s->t, "optimal");
}

static void close(subject *s)
{
    onv_ckpt_plans_cleanup(&s->optimal);
    taped_close(&s->t);
}

static onv_ckpt_plan measured(subject *s, const onv_tape_segment *segments, uint32_t count)
{
    onv_ckpt_plan result = {.segments = segments, .n_segments = count};
    onv_error err = {0};
    result.prunes = s->t.problem.prunes && s->t.places.is_told;
    if (onv_ckpt_measure(&s->t.problem, &result, NULL, &err) != ONV_OK) fail_msg("%s", err.message);
    return result;
}

/* The least peak of an optimal plan that recomputes no more, also one that is left out of the list; UINT64_MAX: none. */
static uint64_t least_peak(const subject *s, uint64_t macs)
{
    uint64_t least = UINT64_MAX;
    size_t n = s->optimal.at.count;
    for (size_t i = 0; i < n + s->optimal.spare.count; i++) {
        const onv_ckpt_plan *at = i < n ? &s->optimal.at.at[i] : &s->optimal.spare.at[i - n];
        if (at->recomputed_macs <= macs && at->peak_bytes < least) least = at->peak_bytes;
    }
    return least;
}

static uint64_t forward_macs(const subject *s)
{
    uint64_t macs = 0;
    for (size_t i = 0; i < s->t.eager.ops.count; i++) macs += s->t.eager.ops.at[i].macs;
    return macs;
}

/* Dearest last, each smaller than the one before; what they say of themselves is so. */
static void check_front(subject *s)
{
    assert_true(s->optimal.at.count > 0);
    for (size_t i = 0; i < s->optimal.at.count; i++) {
        const onv_ckpt_plan *at = &s->optimal.at.at[i];
        onv_ckpt_plan again = *at;
        onv_error err = {0};
        again.peak_bytes = again.recomputed_macs = 0;
        assert_int_equal(onv_ckpt_measure(&s->t.problem, &again, NULL, &err), ONV_OK);
        assert_int_equal(again.peak_bytes, at->peak_bytes);
        assert_int_equal(again.recomputed_macs, at->recomputed_macs);
        if (i == 0) continue;
        assert_true(at->recomputed_macs > at[-1].recomputed_macs);
        assert_true(at->peak_bytes < at[-1].peak_bytes);
    }
}

/* --- Against the named plans ------------------------------------------------------------------- */

static void no_better(subject *s, const onv_ckpt_plan_kind *kind, uint32_t count)
{
    onv_ckpt_plans plans = {0};
    onv_error err = {0};
    onv_ckpt_problem problem = s->t.problem;
    problem.count = count;
    if (kind->make(&problem, &plans, &err) != ONV_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < plans.at.count; i++) {
        const onv_ckpt_plan *at = &plans.at.at[i];
        if (least_peak(s, at->recomputed_macs) > at->peak_bytes)
            fail_msg("%s has %ju bytes for %ju MACs", at->name, (uintmax_t)at->peak_bytes,
                     (uintmax_t)at->recomputed_macs);
    }
    onv_ckpt_plans_cleanup(&plans);
}

TEST(named_plans_are_no_better)
{
    static const struct {
        const char *sample, *dims;
    } samples[] = {
        {"resnet18-train.onnx", ""},
        {"mobilenet_v2-train.onnx", ""},
        {"vit-small-train.onnx", ""},
        {"unet-train.onnx", " height=64 width=96"},
    };
    static const struct {
        const char *batch, *optimizer;
        onv_dtype amp;
    } ways[] = {
        {"batch=1", "sgd", ONV_UNDEFINED},       {"batch=8", "adamw", ONV_UNDEFINED},
        {"batch=64", "momentum", ONV_UNDEFINED}, {"batch=2", "adafactor", ONV_BFLOAT16},
        {"batch=32", "adamw", ONV_FLOAT16},
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            char dims[64];
            subject s;
            snprintf(dims, sizeof dims, "%s%s", ways[w].batch, samples[i].dims);
            taped_open_sample(&s.t, samples[i].sample, dims, ways[w].amp);
            plan(&s, ways[w].optimizer);
            check_front(&s);
            no_better(&s, &onv_ckpt_none, 0);
            no_better(&s, &onv_ckpt_sqrt, 0);
            no_better(&s, &onv_ckpt_blocks, 0);
            for (uint32_t k = 1; k <= s.t.units.count; k++) {
                no_better(&s, &onv_ckpt_every, k);
                no_better(&s, &onv_ckpt_segments, k);
            }
            close(&s);
        }
}

/* --- Against every plan of small networks ------------------------------------------------------ */

static uint32_t below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

/* A few layers, each on the last result; now and then one that comes back to an earlier one. */
static model *small_network(uint64_t *seed, uint32_t n)
{
    static const char *const names[] = {"x", "a", "b", "c", "d", "e", "f", "g"};
    static const char *const weights[] = {"f32[8,8,3,3]", "f32[8,8,5,5]", "f32[8,8,1,1]"};
    static const char *const pads[] = {"pads=[1,1,1,1]", "pads=[2,2,2,2]", ""};
    model *m = model_read(17, "in x f32[4,8,16,16]");
    for (uint32_t i = 0; i < n; i++) {
        char in[32], weight[16];
        uint32_t kind = below(seed, 6), size = below(seed, 3);
        snprintf(weight, sizeof weight, "w%u", i);
        if (i == 0 || kind < 2) {
            snprintf(in, sizeof in, "%s %s", names[i], weight);
            model_weight(m, weight, weights[size]);
            model_node(m, "Conv", names[i + 1], in, names[i + 1], pads[size]);
        } else if (kind == 5) {
            snprintf(in, sizeof in, "%s %s", names[i], names[1 + below(seed, i)]);
            model_node(m, below(seed, 2) ? "Add" : "Mul", names[i + 1], in, names[i + 1], "");
        } else {
            static const char *const ops[] = {"Relu", "Sigmoid", "Softplus"};
            model_node(m, ops[kind - 2], names[i + 1], names[i], names[i + 1], "");
        }
    }
    model_output(m, names[n], "f32");
    return m;
}

typedef struct tally {
    uint32_t n_plans, n_better; /* than all optimal ones of their price */
    double most;                /* the ratio of peaks */
} tally;

/* Segments that begin with what overwrites their input are no plans, and those that compute more
 * than is looked for are none here. */
static void try_plan(subject *s, const one_plan *ranges, tally *sum)
{
    onv_tape_segment segments[MAX_PLAN_UNITS * 2];
    for (uint32_t i = 0; i < ranges->count; i++) {
        segments[i] = (onv_tape_segment){ranges->at[i].first, ranges->at[i].end - 1};
        if (s->t.eager.ops.at[segments[i].first_op].in_place) return;
    }
    onv_ckpt_plan got = measured(s, segments, ranges->count);
    if (got.recomputed_macs > ONV_TAPE_MAX_RERUNS * forward_macs(s)) return;
    uint64_t least = least_peak(s, got.recomputed_macs);
    sum->n_plans++;
    if (least <= got.peak_bytes) return;
    double ratio = (double)least / (double)got.peak_bytes;
    sum->n_better++;
    if (ratio > sum->most) sum->most = ratio;
}

/* All segmentations of up to six operations, nested ones too, each measured on its program. The chain
 * is exact in its own model of memory (test_chain.c); in the program, what is an input of several
 * checkpoints counts once. */
TEST(plans_of_small_networks)
{
    uint64_t seed = 42;
    tally sum = {.n_plans = 0};
    for (int round = 0; round < 80 / OF_ALIKE; round++) {
        subject s;
        plan_list plans;
        OWNED_MODEL m = small_network(&seed, 3 + below(&seed, 4));
        taped_open_model(&s.t, m);
        plan(&s, round % 2 ? "sgd" : "adamw");
        check_front(&s);
        assert_in_range(s.t.eager.first_loss_op, 1, MAX_PLAN_UNITS - 1);
        plans_all(s.t.eager.first_loss_op + 1, &plans); /* the loss is one more unit */
        for (size_t p = 0; p < plans.count; p++) try_plan(&s, &plans.at[p], &sum);
        onv_vec_cleanup(&plans);
        close(&s);
    }
    print_message("%u of %u plans are smaller than optimal ones, by up to %.1f %%\n", sum.n_better,
                  sum.n_plans, sum.n_better > 0 ? 100 - 100 / sum.most : 0.0);
    assert_true(sum.n_plans > 20000 / OF_ALIKE);
    assert_true(sum.n_better * 100 < sum.n_plans * OF_ALIKE); /* fewer networks scatter more */
    assert_true(sum.most < 1.2);
}

/* --- Against what the chain said --------------------------------------------------------------- */

/* Of forwards, beyond the one that is needed anyway. */
static double again(uint64_t cost, uint64_t once)
{
    return (double)cost / (double)once - 1;
}

static void keeps_its_word(subject *s, const onv_tape_chain *tape,
                           const onv_chain_solution *solution, uint32_t point)
{
    static onv_tape_segment segments[1024];
    const onv_chain_front *front = &solution->front;
    onv_chain_ranges ranges = {0};
    uint32_t n = 0;
    assert_int_equal(onv_chain_plan(solution, point, &ranges, NULL), ONV_OK);
    assert_true(ranges.count < sizeof segments / sizeof segments[0]);
    for (size_t i = 0; i < ranges.count; i++)
        n += onv_tape_chain_segment(&s->t.problem, tape, ranges.at[i], &segments[n]);
    onv_vec_cleanup(&ranges);
    onv_ckpt_plan got = measured(s, segments, n);
    double peak = (double)got.peak_bytes / (double)front->at[point].peak_bytes;
    double said = again(front->at[point].cost, front->at[front->count - 1].cost);
    double ran = (double)got.recomputed_macs / (double)forward_macs(s);
    if (peak < 0.95 || peak > 1.1 || ran > said + 0.001)
        fail_msg("point %u: %.4f of the peak, %.4f forwards again, not %.4f", point, peak, ran,
                 said);
}

TEST(programs_do_as_the_chain_says)
{
    static const struct {
        const char *sample, *dims;
        onv_dtype amp;
    } cases[] = {
        {"resnet18-train.onnx", "batch=32", ONV_UNDEFINED},
        {"mobilenet_v2-train.onnx", "batch=32", ONV_BFLOAT16},
        {"vit-small-train.onnx", "batch=32", ONV_UNDEFINED},
        {"unet-train.onnx", "batch=8 height=128 width=128", ONV_UNDEFINED},
        {"swin-2stage.onnx", "batch=8", ONV_UNDEFINED}, /* attention: views are read late */
        {"bert.onnx", "batch=8 sequence=128", ONV_BFLOAT16},
        {"resnet50.onnx", "batch=32", ONV_UNDEFINED},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        subject s = {.optimal = {{0}}};
        onv_arena arena;
        onv_tape_chain tape;
        onv_chain_solution solution;
        onv_error err = {0};
        taped_open_sample(&s.t, cases[i / 2].sample, cases[i / 2].dims, cases[i / 2].amp);
        s.t.problem.prunes = i % 2 == 1;
        onv_arena_init(&arena, SIZE_MAX);
        onv_tape_beside beside;
        const onv_tape_chain_options options = {.max_units = 160};
        onv_status status = onv_tape_beside_find(&s.t.problem, &arena, &beside, &err);
        if (status == ONV_OK)
            status = onv_tape_chain_build(&s.t.problem, &beside, &options, &arena, &tape, &err);
        if (status == ONV_OK) status = onv_chain_solve(&tape.chain, &arena, &solution, &err);
        if (status != ONV_OK) fail_msg("%s: %s", cases[i / 2].sample, err.message);
        assert_int_equal(tape.n_fine, tape.chain.n_units);
        assert_true(solution.front.count > 20);
        for (uint32_t k = 0; k < solution.front.count; k += OF_ALIKE)
            keeps_its_word(&s, &tape, &solution, k);
        onv_arena_cleanup(&arena);
        close(&s);
    }
}

/* --- Networks ---------------------------------------------------------------------------------- */

/* The least peak, as a part of that without checkpoints, for at most this part of a forward again. */
static double part_of_none(const char *sample, const char *dims, double again)
{
    subject s;
    taped_open_sample(&s.t, sample, dims, ONV_UNDEFINED);
    plan(&s, "adamw");
    onv_ckpt_plan none = measured(&s, NULL, 0);
    uint64_t least = least_peak(&s, (uint64_t)(again * (double)forward_macs(&s)));
    double part = (double)least / (double)none.peak_bytes;
    close(&s);
    return part;
}

/* Also behind a backward of several steps, as attention's is: here that of the first product from the end. */
TEST(every_operation_goes_back)
{
    static taped t;
    onv_arena arena;
    onv_tape_beside beside;
    taped_open_sample(&t, "resnet18-train.onnx", "batch=2", ONV_UNDEFINED);
    onv_eager_op *last = &t.eager.ops.at[t.eager.first_loss_op - 1];
    while (last->macs == 0) last--;
    for (uint32_t k = 0; k < ONV_BACKWARD_TEMPS; k++)
        assert_true(onv_vec_push(&t.eager.temps, ((onv_backward_temp){1000, k + 1, 0})));
    last->first_temp = (uint32_t)t.eager.temps.count - ONV_BACKWARD_TEMPS;
    last->n_temps = ONV_BACKWARD_TEMPS;
    onv_arena_init(&arena, SIZE_MAX);
    assert_int_equal(onv_tape_beside_find(&t.problem, &arena, &beside, NULL), ONV_OK);
    for (uint32_t i = 0; i < t.eager.ops.count; i++)
        if (t.eager.ops.at[i].has_backward) assert_true(beside.goes_back[i]);
    onv_arena_cleanup(&arena);
    taped_close(&t);
}

TEST(networks_shrink)
{
    assert_true(part_of_none("unet-train.onnx", "batch=8 height=256 width=256", 0.3) <= 0.45);
    assert_true(part_of_none("mobilenet_v2-train.onnx", "batch=32", 0.3) <= 0.25);
    assert_true(part_of_none("resnet50.onnx", "batch=32", 0.3) <= 0.6);
    assert_true(part_of_none("vit-small-train.onnx", "batch=32", 0.3) <= 0.65);
}

/* A product inside of a module's code that reads a copy of what comes in: a unit begins between the two. */
TEST(units_begin_at_places)
{
    assert_true(part_of_none("vit-small-train.onnx", "batch=64", 0) <= 0.78);
}

/* Long connections cross every cut there is: the named plans find next to nothing to cut. */
TEST(long_connections)
{
    subject s;
    taped_open_sample(&s.t, "unet-train.onnx", "batch=8 height=256 width=256", ONV_UNDEFINED);
    plan(&s, "adamw");
    onv_ckpt_plans blocks = taped_plans(&s.t, "blocks");
    const onv_ckpt_plan *named = &blocks.at.at[0];
    assert_true(least_peak(&s, named->recomputed_macs / 2) < named->peak_bytes);
    onv_ckpt_plans_cleanup(&blocks);
    close(&s);
}

/* --- Small changes ----------------------------------------------------------------------------- */

/* From plans of one segment each come plans of several, and such as keep results. */
TEST(plans_learn_from_each_other)
{
    subject s;
    onv_error err = {0};
    uint32_t products[64], n_products = 0, most_segments = 0, n_kept = 0;
    uint64_t least = UINT64_MAX;
    s.optimal = (onv_ckpt_plans){0};
    taped_open_sample(&s.t, "resnet18-train.onnx", "batch=16", ONV_UNDEFINED);
    s.t.problem.prunes = true;
    onv_ckpt_plans every = taped_plans(&s.t, "every=2");
    assert_true(every.at.at[0].n_segments >= 4);
    for (uint32_t i = 0; i < every.at.at[0].n_segments; i++) {
        onv_tape_segment segment = every.at.at[0].segments[i];
        onv_ckpt_plan one = {.name = "one", .segments = &segment, .n_segments = 1, .prunes = true};
        assert_int_equal(onv_ckpt_plans_take(&s.t.problem, &one, &s.optimal, &err), ONV_OK);
        if (s.optimal.at.at[i].peak_bytes < least) least = s.optimal.at.at[i].peak_bytes;
    }
    for (uint32_t i = 0; i < s.t.eager.first_loss_op && n_products < 64; i++)
        if (s.t.eager.ops.at[i].macs > 0 && onv_places_keeper(&s.t.places, &s.t.eager, i) == i)
            products[n_products++] = i;
    assert_true(n_products > 10);
    assert_int_equal(onv_front_improve(&s.t.problem, products, n_products, &s.optimal, &err),
                     ONV_OK);
    check_front(&s);
    for (size_t i = 0; i < s.optimal.at.count; i++) {
        const onv_ckpt_plan *plan = &s.optimal.at.at[i];
        if (plan->n_segments > most_segments) most_segments = plan->n_segments;
        n_kept += plan->n_kept_ops;
        for (uint32_t k = 1; k < plan->n_segments; k++)
            assert_true(plan->segments[k].first_op >= plan->segments[k - 1].first_op);
    }
    assert_true(most_segments >= 2);
    assert_true(n_kept > 0);
    assert_true(least_peak(&s, UINT64_MAX) < least - least / 10);
    onv_ckpt_plans_cleanup(&every);
    close(&s);
}

/* --- Deep ones --------------------------------------------------------------------------------- */

static model *deep_network(int n)
{
    model *m = model_read(17, "in v0 f32[256,64]");
    for (int i = 1; i <= n; i++) {
        char weight[16], in[48], product[16], out[16];
        snprintf(weight, sizeof weight, "w%d", i);
        snprintf(in, sizeof in, "v%d w%d", i - 1, i);
        snprintf(product, sizeof product, "p%d", i);
        snprintf(out, sizeof out, "v%d", i);
        model_weight(m, weight, "f32[64,64]");
        model_node(m, "MatMul", product, in, product, "");
        model_node(m, "Softplus", out, product, out, "");
        if (i == n) model_output(m, out, "f32");
    }
    return m;
}

/* The search is bounded, and says so. What it misses then is no plan that the list asks for. */
TEST(deep_networks_are_searched_in_part)
{
    static const char *const list = "optimal,every=301,segments=171,sqrt";
    subject s;
    OWNED_MODEL m = deep_network(1000);
    taped_open_model(&s.t, m);
    s.optimal = taped_plans(&s.t, list);
    assert_true(diag_of(&s.t.flow.model, "optimal-joined") != NULL);
    size_t n = s.optimal.at.count;
    onv_ckpt_plan named[3];
    for (uint32_t i = 0; i < 3; i++) {
        named[i] = s.optimal.at.at[n - 3 + i];
        assert_int_equal(named[i].item, i + 1);
    }
    assert_string_equal(named[0].name, "every=301");
    assert_string_equal(named[2].name, "sqrt");
    s.optimal.at.count = n - 3;
    for (size_t i = 0; i < s.optimal.at.count; i++) assert_int_equal(s.optimal.at.at[i].item, 0);
    check_front(&s);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(least_peak(&s, named[i].recomputed_macs) <= named[i].peak_bytes);
    assert_true(least_peak(&s, UINT64_MAX) < named[2].peak_bytes);
    close(&s);
}

/* Convolutions, and activations that overwrite their results: half a MiB each. */
static model *chain_of_convolutions(int n, int channels)
{
    char input[48], kernel[48];
    snprintf(input, sizeof input, "in v0 f32[%d,%d,32,32]", 128 / channels, channels);
    snprintf(kernel, sizeof kernel, "f32[%d,%d,3,3]", channels, channels);
    model *m = model_read(17, input);
    for (int i = 1; i <= n; i++) {
        char weight[16], in[48], product[16], out[16], conv[32], relu[32];
        snprintf(weight, sizeof weight, "w%d", i);
        snprintf(in, sizeof in, "v%d w%d", i - 1, i);
        snprintf(product, sizeof product, "p%d", i);
        snprintf(out, sizeof out, "v%d", i);
        snprintf(conv, sizeof conv, "/block%d/Conv", (i - 1) / 2);
        snprintf(relu, sizeof relu, "/block%d/Relu", (i - 1) / 2);
        model_weight(m, weight, kernel);
        model_node(m, "Conv", conv, in, product, "pads=[1,1,1,1]");
        model_node(m, "Relu", relu, product, out, "");
        if (i == n) model_output(m, out, "f32");
    }
    return m;
}

enum { MOST_CONVOLUTIONS = 500, MOST_LEVELS = 2 };

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The least bytes in which a row of equal units goes forward and backward, over all ways to cut it into segments, inside of
 * segments too, so that a unit runs again at most `level` times: a dynamic program. A unit saves what comes into it, and
 * those behind a segment have their gradients when it runs again, and behind all are the results of the loss. What an
 * operation takes while it runs is left out, and the network's result that the caller holds, so that no such plan takes less. */
static uint64_t least_of_all(int n, int level, uint64_t saved, uint64_t gradient, uint64_t loss)
{
    static uint64_t least[MOST_LEVELS + 1][MOST_CONVOLUTIONS + 1]; /* without the loss */
    static uint64_t whole[MOST_LEVELS + 1][MOST_CONVOLUTIONS + 1];
    for (int k = 0; k <= level; k++)
        for (int length = 1; length <= n; length++) {
            uint64_t best = k == 0 ? (uint64_t)length * saved : least[k - 1][length];
            uint64_t last = k == 0 ? best + loss : whole[k - 1][length];
            for (int first = 1; first < length && k > 0; first++) {
                uint64_t again = least[k - 1][first] + gradient * (uint64_t)(length - first);
                best = smaller(best, larger(again, saved + least[k][length - first]));
                last = smaller(last, larger(again, saved + whole[k][length - first]));
            }
            least[k][length] = best;
            whole[k][length] = last;
        }
    return whole[level][n];
}

/* In per cent, how much more the front's plan takes for as many operations; less, where few of them run once more than that and
 * the others once less. */
static double above_the_least(const subject *s, int n, int level)
{
    const uint64_t saved = UINT64_C(4) * 8 * 16 * 32 * 32, gradient = UINT64_C(4) * 16 * 16 * 3 * 3;
    /* Parameters and AdamW's two states of each, the batch, and the gradient that a convolution makes while it has that of
     * its result, whose activation is over. */
    uint64_t rest = 3 * (uint64_t)n * gradient + 2 * saved;
    uint64_t least = rest + least_of_all(n, level, saved, gradient, 2 * saved);
    uint64_t found = least_peak(s, (uint64_t)level * forward_macs(s));
    return 100 * ((double)found / (double)least - 1);
}

/* n units in s segments that grow shorter need s (s + 1) / 2 >= n: about 25 in place of 35 tensors for 300; with
 * segments in segments C(s + 2, 3) >= n. */
TEST(segments_grow_shorter)
{
    static const struct {
        int n;
        double once, twice; /* per cent above the least, at most */
    } chains[] = {{50, 0, 2}, {100, 5, 1}, {200, 3, 0}, {300, 2, 0}, {MOST_CONVOLUTIONS, 2, 0}};
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        subject s;
        OWNED_MODEL m = chain_of_convolutions(chains[i].n, 16);
        taped_open_model(&s.t, m);
        s.t.options.optimizer = onv_optimizer_find("adamw");
        taped_price(&s.t);
        s.optimal = taped_plans(&s.t, "optimal,sqrt");
        onv_ckpt_plan root = s.optimal.at.at[--s.optimal.at.count];
        check_front(&s);
        assert_true(least_peak(&s, root.recomputed_macs) <= root.peak_bytes);
        double once = above_the_least(&s, chains[i].n, 1);
        double twice = above_the_least(&s, chains[i].n, 2);
        assert_true(once < chains[i].once);
        assert_true(twice < chains[i].twice);
        close(&s);
    }
}

/* Where one run more does not quite suffice, few operations run twice more, not most. */
TEST(no_more_runs_again_than_bytes_ask_for)
{
    subject s;
    OWNED_MODEL m = chain_of_convolutions(600, 8);
    taped_open_model(&s.t, m);
    plan(&s, "momentum");
    assert_true(least_peak(&s, forward_macs(&s)) <= UINT64_C(22) << 20);
    assert_true(least_peak(&s, forward_macs(&s) / 4 * 5) <= UINT64_C(20) << 20);
    close(&s);
}

/* Of a thousand plans few are given: both ends, the one that another plan asks for, and of the others so many that at any
 * price the peak is hardly larger. Of sixty, all. */
TEST(long_fronts_are_thinned)
{
    enum { N = 1000, PRICED = 417 };
    onv_ckpt_plans front = {0}, others = {0}, given = {0};
    onv_eager eager = {0};
    onv_ckpt_problem problem = {.eager = &eager, .others = &others};
    onv_error err = {0};
    for (uint64_t i = 0; i < N; i++)
        assert_true(onv_vec_push(
            &front.at, ((onv_ckpt_plan){.peak_bytes = 1000000 - 900 * i, .recomputed_macs = i})));
    assert_true(onv_vec_push(&others.at, front.at.at[PRICED]));
    assert_int_equal(onv_front_give(&problem, &front, "optimal", &given, &err), ONV_OK);
    assert_in_range(given.at.count, 45, 64);
    assert_int_equal(given.at.at[0].peak_bytes, front.at.at[0].peak_bytes);
    assert_int_equal(given.at.at[given.at.count - 1].recomputed_macs, N - 1);
    bool has_priced = false;
    for (size_t i = 0, k = 0; i < N; i++) {
        while (k + 1 < given.at.count && given.at.at[k + 1].recomputed_macs <= i) k++;
        has_priced |= given.at.at[k].recomputed_macs == PRICED;
        assert_in_range(given.at.at[k].peak_bytes, 1, front.at.at[i].peak_bytes / 100 * 106);
    }
    assert_true(has_priced);
    assert_int_equal(given.at.count + given.spare.count, N);
    given.at.count = 0;
    eager.ops.count = 1000; /* a large tape: half as many */
    assert_int_equal(onv_front_give(&problem, &front, "optimal", &given, &err), ONV_OK);
    assert_in_range(given.at.count, 16, 32);
    eager.ops.count = 0;
    given.at.count = 0;
    problem.others = NULL;
    for (uint64_t i = 0; i < 60; i++) front.at.at[i].peak_bytes = 1000000 - i;
    front.at.count = 60;
    assert_int_equal(onv_front_give(&problem, &front, "optimal", &given, &err), ONV_OK);
    assert_int_equal(given.at.count, 60);
    onv_ckpt_plans_cleanup(&front);
    onv_ckpt_plans_cleanup(&others);
    onv_ckpt_plans_cleanup(&given);
}

TEST(small_searches_are_whole)
{
    subject s;
    OWNED_MODEL m = deep_network(6);
    taped_open_model(&s.t, m);
    plan(&s, "sgd");
    assert_false(diag_of(&s.t.flow.model, "optimal-joined") != NULL ||
                 diag_of(&s.t.flow.model, "optimal-thinned") != NULL);
    close(&s);
}
