/* ONNX Runtime with its CUDA provider, sequential execution, default arena and pattern. The graph is
 * taken as it stands: what the optimizer folds and fuses before a session runs is not followed.
 *
 * Initializers lie in one buffer (each rounded up to 256 bytes) that is reserved beside the arena.
 * In the first run of a shape every buffer of the plan (ort.h) is an arena allocation. From the
 * second run on, the temporaries are one allocation, packed as the first run traced them; graph
 * outputs and inputs are apart. Arenas never shrink, so the second run may add to what the first one
 * took. The workspaces of kernels are no part of this: they come out of the same arena for the time
 * of a node and are estimated apart.
 */
#include "ort/ort.h"

#include "base/heap.h"
#include "runtime/runtime.h"

enum { N_RUNS = 3 };

static bool is_temporary(const onv_ort_plan *plan, uint32_t i)
{
    return plan->buffers[i].kind == ONV_BUFFER_ACTIVATION && !plan->is_fetched[i];
}

/* --- The memory pattern ------------------------------------------------------------------------ */

typedef struct pattern {
    uint64_t bytes;
    uint64_t *offsets; /* by buffer of the plan */
} pattern;

static onv_status pack(const onv_ort_plan *plan, uint32_t n_steps, const onv_alloc_options *options,
                       pattern *to, onv_error *err)
{
    onv_timeline t = {0};
    onv_placement packed;
    uint32_t n = 0;
    onv_status status = ONV_OK;
    to->offsets = onv_heap_calloc(plan->count, sizeof *to->offsets);
    if (to->offsets == NULL || !onv_vec_reserve(&t.steps, n_steps) ||
        !onv_vec_reserve(&t.buffers, plan->count))
        status = onv_fail_memory(err);
    for (uint32_t i = 0; i < n_steps && status == ONV_OK; i++)
        t.steps.at[t.steps.count++] = (onv_step){.node = ONV_NO_NODE};
    for (uint32_t i = 0; i < plan->count && status == ONV_OK; i++)
        if (is_temporary(plan, i)) {
            t.buffers.at[t.buffers.count] = plan->buffers[i];
            t.buffers.at[t.buffers.count].becomes = ONV_NO_BUFFER;
            t.buffers.at[t.buffers.count++].within = ONV_NO_BUFFER;
        }
    if (status == ONV_OK)
        status = onv_alloc_run(&t, onv_alloc_model_find("pattern"), options, &packed, err);
    if (status == ONV_OK) {
        to->bytes = packed.figures.reserved_peak;
        for (uint32_t i = 0; i < plan->count; i++)
            if (is_temporary(plan, i)) to->offsets[i] = packed.places.at[n++].offset;
        onv_placement_cleanup(&packed);
    }
    onv_timeline_cleanup(&t);
    return status;
}

/* --- Runs -------------------------------------------------------------------------------------- */

/* Buffers of a run: inputs, the block of the pattern, what else there is. Fetched outputs of inner
 * graphs die with what they are handed to, those of the main graph and the copies of the inputs with
 * the run. */
static void add_run(const onv_ort_plan *plan, uint32_t first, uint32_t n_steps, const pattern *in,
                    onv_timeline *t)
{
    uint32_t block = ONV_NO_BUFFER, last = first + n_steps - 1;
    for (int is_input = 1; is_input >= 0; is_input--) {
        for (uint32_t i = 0; i < plan->count; i++) {
            onv_buffer b = plan->buffers[i];
            if ((b.kind == ONV_BUFFER_INPUT) != (is_input == 1)) continue;
            b.becomes = b.within = ONV_NO_BUFFER; /* the plan says who shares memory */
            b.first += first;
            b.last = b.kind == ONV_BUFFER_ACTIVATION ? b.last + first : last;
            if (block != ONV_NO_BUFFER && is_temporary(plan, i)) {
                b.within = block;
                b.offset = in->offsets[i];
            }
            t->buffers.at[t->buffers.count++] = b;
        }
        if (is_input == 0 || in == NULL || in->bytes == 0) continue;
        block = (uint32_t)t->buffers.count;
        t->buffers.at[t->buffers.count++] =
            onv_buffer_new(ONV_BUFFER_POOL, in->bytes, first, last, "pattern");
    }
}

onv_status onv_ort_add_runs(const onv_ort_plan *plan, uint32_t n_steps, uint32_t n_runs,
                            const onv_alloc_options *options, onv_timeline *t, onv_error *err)
{
    pattern in = {0};
    if (!onv_vec_reserve(&t->buffers, ((size_t)plan->count + 1) * n_runs))
        return onv_fail_memory(err);
    onv_status status = n_runs > 1 ? pack(plan, n_steps, options, &in, err) : ONV_OK;
    for (uint32_t run = 0; run < n_runs && status == ONV_OK; run++)
        add_run(plan, run * n_steps, n_steps, run > 0 ? &in : NULL, t);
    onv_heap_free(in.offsets);
    return status;
}

static onv_status produce_session(onv_model *model, const onv_live *live,
                                  const onv_runtime_options *options, onv_execution *made,
                                  onv_error *err)
{
    onv_ort_plan plan;
    ONV_TRY(onv_ort_plan_compute(model, live, ONV_ORT_CUDA, &plan, err));
    made->reused_values = plan.reused;
    ONV_TRY(onv_execution_begin(made, live, N_RUNS, err));
    ONV_TRY(onv_each_device_weight(model, onv_execution_add_weight, made, err));
    return onv_ort_add_runs(&plan, live->n_steps, N_RUNS, &options->alloc, &made->timeline, err);
}

const onv_runtime onv_runtime_ort = {
    .name = "ort",
    .summary = "ONNX Runtime's CUDA provider: buffer reuse, memory pattern, BFC arena",
    .order = "ort",
    .has_context = true,
    .consumer = ONV_SERVED_BY_ALLOCATOR,
    .mode = "ort",
    .allocator = "bfc",
    .pack_bytes = 256, /* ONNX Runtime's alignment of packed initializers */
    .produce = produce_session,
};
