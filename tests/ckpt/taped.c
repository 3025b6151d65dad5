#include "ckpt/taped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "graph/storage.h"
#include "lower/lower.h"

static void lower(taped *t, onv_dtype amp)
{
    onv_error err = {0};
    bool *is_host;
    t->options = (onv_train_options){.optimizer = onv_optimizer_find("momentum"),
                                     .lower = {.amp = amp, .checkpoints = true}};
    onv_status status = onv_mark_host_values(&t->flow.model, &t->flow.live, &is_host, &err);
    if (status == ONV_OK)
        status = onv_eager_lower(&t->flow.model, &t->flow.live, is_host, &t->options.lower,
                                 &t->eager, &err);
    onv_arena_init(&t->arena, SIZE_MAX);
    if (status == ONV_OK)
        status = onv_places_find(&t->flow.model, &t->eager, &t->arena, &t->places, &err);
    if (status == ONV_OK)
        status = onv_ckpt_units_find(&t->flow.model, &t->eager, &t->places, &t->units, &err);
    if (status != ONV_OK) fail_msg("%s", err.message);
    t->problem = (onv_ckpt_problem){.model = &t->flow.model,
                                    .eager = &t->eager,
                                    .units = &t->units,
                                    .places = &t->places,
                                    .options = &t->options};
    taped_price(t);
}

void taped_price(taped *t)
{
    onv_error err = {0};
    onv_pricing_close(t->problem.pricing);
    t->problem.pricing = NULL;
    if (onv_pricing_open(&t->flow.model, &t->eager, &t->options, &t->problem.pricing, &err) !=
        ONV_OK)
        fail_msg("%s", err.message);
}

void taped_open_sample(taped *t, const char *name, const char *dims, onv_dtype amp)
{
    flow_open(&t->flow, flow_sample(name), dims, NULL);
    lower(t, amp);
}

void taped_open_model(taped *t, model *m)
{
    flow_open_model(&t->flow, m, NULL);
    lower(t, ONV_UNDEFINED);
}

void taped_close(taped *t)
{
    onv_pricing_close(t->problem.pricing);
    onv_eager_cleanup(&t->eager);
    onv_places_cleanup(&t->places);
    onv_arena_cleanup(&t->arena);
    flow_close(&t->flow);
}

/* An allocator that serves the simulation does what it does with the program, on a device that has less, too: both run
 * out, or return as much. Iterations behind the program are as if it had them. */
static void check_served(taped *t, const onv_train_options *options,
                         const onv_train_program *program, uint64_t peak_bytes, uint32_t later)
{
    onv_error err = {0};
    onv_train_record made;
    onv_held_figures held;
    onv_placement p;
    onv_train_program whole; /* with the iterations that the allocator repeats */
    onv_train_options longer = *options;
    onv_alloc_options alloc = {.torch = {.pool_bytes = 3 << 20}}, again = alloc;
    again.later_iterations = later;
    longer.iterations = ONV_TRAIN_ITERATIONS + later;
    if (options->parallel == ONV_PARALLEL_FSDP) return; /* it has streams */
    if (onv_pricing_record(t->problem.pricing, options, &made, &err) != ONV_OK ||
        onv_train_program_build(&t->flow.model, &t->eager, &longer, &whole, &err) != ONV_OK)
        fail_msg("%s", err.message);
    assert_int_equal(made.peak_bytes, peak_bytes);
    assert_int_equal(made.program.saved_bytes, program->saved_bytes);
    const onv_alloc_model *torch = onv_alloc_model_find("torch");
    const unsigned likely = ONV_WORKSPACE_LIKELY;
    for (int i = 0; i < 2; i++) {
        if (onv_requests_serve(&made.requests, &likely, 1, torch, &again, &held, &err) != ONV_OK ||
            onv_alloc_run(&whole.timeline, torch, &alloc, &p, &err) != ONV_OK)
            fail_msg("%s", err.message);
        const onv_held_figures expected = p.figures;
        onv_placement_cleanup(&p);
        assert_int_equal(held.out_of_memory, expected.out_of_memory);
        if (held.out_of_memory) break;
        assert_int_equal(held.allocated_peak, expected.allocated_peak);
        assert_int_equal(held.reserved_peak, expected.reserved_peak);
        assert_int_equal(held.requested_peak, expected.requested_peak);
        assert_int_equal(held.returned_bytes, expected.returned_bytes);
        alloc.capacity_bytes = again.capacity_bytes = expected.reserved_peak - (1 << 21);
    }
    onv_requests_cleanup(&made.requests);
    onv_train_program_cleanup(&whole);
}

/* Of the plan itself: `recomputed` is the bound of what runs again that the pricing asks with. */
typedef struct as_good {
    uint64_t peak, *recomputed;
} as_good;

static uint64_t peak_of(const void *context, uint64_t recomputed_macs)
{
    const as_good *other = context;
    *other->recomputed = recomputed_macs;
    return other->peak;
}

static onv_price price_of(taped *t, const onv_train_options *options, const onv_price_rival *rival)
{
    onv_error err = {0};
    onv_price price;
    if (onv_pricing_find(t->problem.pricing, options, rival, &price, &err) != ONV_OK)
        fail_msg("%s", err.message);
    return price;
}

/* A rival that is as good changes nothing; one that is better stops the pricing, which is of use after that: for the same
 * plan, and for training without one. */
static void check_rivals(taped *t, const onv_train_options *options, const onv_price *price)
{
    onv_train_options none = *options;
    none.n_segments = none.n_kept_ops = 0;
    onv_price without = price_of(t, &none, NULL);
    uint64_t recomputed = 0, unused;
    for (uint64_t less = 0; less < 3 && less < price->peak_bytes; less++) {
        const as_good other = {price->peak_bytes - less % 2, &recomputed};
        const onv_price_rival rival = {peak_of, &other};
        onv_price again = price_of(t, options, &rival), unchanged = price_of(t, &none, NULL);
        assert_memory_equal(&unchanged, &without, sizeof without);
        const as_good small = {without.peak_bytes / 2, &unused};
        price_of(t, &none, &(onv_price_rival){peak_of, &small});
        unchanged = price_of(t, options, NULL);
        assert_memory_equal(&unchanged, price, sizeof unchanged);
        assert_true(recomputed <= price->recomputed_macs);
        assert_true(again.peak_bytes > other.peak || less % 2 == 0);
        assert_true(again.peak_bytes <= price->peak_bytes);
        if (less % 2 == 0) assert_memory_equal(&again, price, sizeof again);
    }
}

/* Sums say what the program does, whatever was priced before. */
static void check_price(taped *t, const onv_train_options *options,
                        const onv_train_program *program)
{
    onv_error err = {0};
    onv_price price = price_of(t, options, NULL);
    onv_peak all, tensors;
    assert_int_equal(onv_timeline_peak(&program->timeline, &all, NULL, &err), ONV_OK);
    assert_int_equal(onv_timeline_peak_without(&program->timeline, ONV_BUFFERS_BESIDE_TENSORS,
                                               &tensors, NULL, &err),
                     ONV_OK);
    for (uint32_t later = 0; later < (options->parallel == ONV_PARALLEL_NONE ? 4 : 1); later++)
        check_served(t, options, program, tensors.bytes, later);
    check_rivals(t, options, &price);
    assert_int_equal(price.peak_bytes, tensors.bytes);
    assert_int_equal(price.requested_bytes, all.bytes);
    assert_int_equal(price.recomputed_macs, program->recomputed_macs);
    assert_int_equal(price.moved_bytes, program->offloaded_bytes + program->returned_bytes);
}

onv_train_program taped_program(taped *t, const onv_tape_segment *segments, uint32_t count)
{
    onv_error err = {0};
    onv_train_program program;
    onv_train_options options = t->options;
    options.segments = segments;
    options.n_segments = count;
    onv_status status =
        onv_train_program_build(&t->flow.model, &t->eager, &options, &program, &err);
    if (status == ONV_OK) status = onv_train_program_check(&program, &err);
    if (status != ONV_OK) fail_msg("%s", err.message);
    check_price(t, &options, &program);
    return program;
}

onv_ckpt_plans taped_plans(taped *t, const char *list)
{
    onv_error err = {0};
    onv_ckpt_plans plans;
    const onv_ckpt_wanted wanted = {.list = list, .spares = true};
    if (onv_ckpt_make(&t->flow.model, &t->eager, t->problem.pricing, NULL, &t->options, wanted,
                      &plans, &err) != ONV_OK)
        fail_msg("%s: %s", list, err.message);
    return plans;
}

model *taped_four_products(void)
{
    model *m = model_read(17, "in x f32[16,256]");
    for (int i = 1; i <= 4; i++) {
        char weight[16], name[16], inputs[48], output[16];
        snprintf(weight, sizeof weight, "w%d", i);
        snprintf(name, sizeof name, "mm%d", i);
        snprintf(output, sizeof output, "y%d", i);
        snprintf(inputs, sizeof inputs, "%s%.0d %s", i == 1 ? "x" : "y", i - 1, weight);
        model_weight(m, weight, "f32[256,256]");
        model_node(m, "MatMul", name, inputs, output, "");
    }
    model_output(m, "y4", "f32");
    return m;
}
