/* The part "training" of the JSON report: figures, plans, torch.compile. */
#include "program/view.h"
#include "report/json_parts.h"

static void put_ends(onv_json *json, const char *key, const uint64_t ends[2],
                     const uint64_t wholes[2])
{
    /* The larger share may be of either end. */
    bool turns = (double)ends[0] * (double)wholes[1] > (double)ends[1] * (double)wholes[0];
    ONV_JSON_PART(json, key, INLINE) {
        onv_json_put_ratio(json, "low", ends[turns], wholes[turns]);
        onv_json_put_ratio(json, "high", ends[!turns], wholes[!turns]);
    }
}

static void write_time(onv_json *json, const onv_time *time, bool is_plan)
{
    const uint64_t giga[2] = {1000000000, 1000000000}, seconds[2] = {time->all.low, time->all.high};
    const uint64_t more[2] = {time->more.low, time->more.high};
    const uint64_t others[2] = {seconds[0] - more[0], seconds[1] - more[1]};
    if (time->refused != NULL) {
        onv_json_put_string(json, "refused", time->refused);
        return;
    }
    put_ends(json, "seconds", seconds, giga);
    ONV_JSON_FIELDS(json, time, macs, bytes, kernels);
    if (is_plan) put_ends(json, "overhead", more, others);
}

void onv_json_put_time(onv_json *json, const onv_time *time, bool is_plan)
{
    if (time->refused != NULL || time->all.high > 0)
        ONV_JSON_PART(json, "time", INLINE) write_time(json, time, is_plan);
}

static void write_plan(onv_json *json, const onv_training *t, uint32_t index, uint32_t knee)
{
    const onv_training_plan *plan = &t->plans[index];
    ONV_JSON_FIELDS(json, &plan->does, name);
    ONV_JSON_FIELDS(json, plan, id);
    ONV_JSON_FIELDS(json, &plan->figures, peak_bytes, saved_activation_bytes, allocated_peak_bytes,
                    reserved_peak_bytes);
    if (plan->figures.held_ends[0] != plan->figures.held_ends[1])
        onv_json_put_range(json, "reserved_bytes",
                           (onv_range){plan->figures.held_ends[0], plan->figures.held_ends[1]});
    onv_json_put_u64(json, "recompute_macs", plan->does.recomputed_macs);
    onv_json_put_ratio(json, "overhead", plan->does.recomputed_macs, plan->pass_macs);
    onv_json_put_time(json, &plan->figures.time, true);
    if (plan->does.saves_on_cpu || plan->does.offload_until > 0) {
        ONV_JSON_FIELDS(json, &plan->figures, offloaded_bytes, returned_bytes);
        onv_json_put_u64(json, "host_bytes", plan->figures.pinned_bytes);
    }
    if (plan->does.compiles) onv_json_put_memory_budget(json, plan->does.memory_budget);
    if (index == t->chosen) onv_json_put_bool(json, "chosen", true);
    if (t->chosen == ONV_NO_PLAN && index == knee) onv_json_put_bool(json, "knee", true);
    if (plan->max_batch > 0) onv_json_put_u64(json, "max_batch", (uint64_t)plan->max_batch);
    if (plan->max_batch_by_release > plan->max_batch)
        onv_json_put_u64(json, "max_batch_by_release", (uint64_t)plan->max_batch_by_release);
    if (plan->n_by_hand > 0) onv_json_put_u64(json, "by_hand", plan->n_by_hand);
    onv_json_put_segments(json, plan, false);
    onv_json_put_plan(json, "apply", plan);
}

static void write_largest(onv_json *json, const onv_largest_size *at)
{
    onv_json_put_u64(json, "size", (uint64_t)at->size);
    onv_json_put_string(json, "plan", at->name);
    onv_json_put_string(json, "id", at->id);
    onv_json_put_u64(json, "recompute_macs", at->recomputed_macs);
    onv_json_put_ratio(json, "overhead", at->recomputed_macs, at->pass_macs);
    onv_json_put_u64(json, "segments", at->n_segments);
}

/* What was asked for beside the usual. */
static void write_training_parts(onv_json *json, const onv_training *t)
{
    const onv_train_parts *parts = &t->figures.parts;
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {
        {"bucket_bytes", parts->bucket_bytes},
        {"gathered_bytes", parts->gathered_bytes},
        {"reduce_bytes", parts->reduce_bytes},
        {"master_bytes", parts->master_bytes},
        {"ema_bytes", parts->ema_bytes},
        {"host_bytes", parts->host_bytes},
        {"quantized_bytes", parts->quantized_bytes},
        {"dequantized_bytes", parts->dequantized_bytes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].bytes > 0) onv_json_put_u64(json, rows[i].name, rows[i].bytes);
    if (t->n_units > 0) onv_json_put_u64(json, "units", t->n_units);
}

static void write_compiled(onv_json *json, const onv_model *model, const onv_compiled *c)
{
    onv_json_put_memory_budget(json, c->budget);
    ONV_JSON_FIELDS(json, c, saved_activation_bytes, peak_bytes);
    onv_json_put_u64(json, "recompute_macs", c->recomputed_macs);
    onv_json_put_ratio(json, "overhead", c->recomputed_macs, c->pass_macs);
    ONV_JSON_ROWS(json, "saved", i, c->n_saved, INLINE) {
        const onv_compiled_tensor *t = &c->saved[i];
        if (onv_is_value(t->value))
            onv_json_put_string(json, "name", onv_model_value(model, t->value)->name);
        if (onv_is_node(t->node))
            onv_json_put_string(json, "node", onv_model_node(model, t->node)->name);
        if (t->operation != NULL) onv_json_put_string(json, "operation", t->operation);
        onv_json_put_u64(json, "bytes", t->bytes);
    }
}

static void write_unit(onv_json *json, const onv_model *model, const onv_unit_list *list,
                       uint32_t u)
{
    const onv_chain_unit *unit = &list->chain.units[u];
    const onv_listed_unit *named = &list->units[u];
    if (onv_is_node(named->node))
        onv_json_put_string(json, "node", onv_model_node(model, named->node)->name);
    ONV_JSON_FIELDS(json, named, operation, macs);
    ONV_JSON_FIELDS(json, unit, forward_bytes, passing_bytes, own_bytes, backward_bytes);
    onv_json_put_u64(json, "beside_bytes", list->chain.turn_bytes[u]);
}

static void write_readers(onv_json *json, const onv_chain_tensor *tensor, const char *key,
                          bool save)
{
    ONV_JSON_LIST(json, key, INLINE) {
        for (uint32_t i = 0; i < tensor->n_readers; i++)
            if (!save || tensor->readers[i].saves) onv_json_u64(json, tensor->readers[i].unit);
        if (save && tensor->saved_by_maker) onv_json_u64(json, tensor->maker);
    }
}

/* What plans are made of: chain.h. */
static void write_units(onv_json *json, const onv_model *model, const onv_unit_list *list)
{
    onv_json_put_u64(json, "beside_bytes", list->chain.turn_bytes[list->chain.n_units]);
    ONV_JSON_ROWS(json, "units", u, list->chain.n_units, INLINE) write_unit(json, model, list, u);
    ONV_JSON_ROWS(json, "tensors", i, list->chain.n_tensors, INLINE) {
        const onv_chain_tensor *tensor = &list->chain.tensors[i];
        onv_json_put_u64(json, "bytes", tensor->bytes);
        onv_json_put_u64(json, "made_by", tensor->maker);
        write_readers(json, tensor, "read_by", false);
        write_readers(json, tensor, "saved_by", true);
    }
}

void onv_json_write_training(onv_json *json, const onv_view *view)
{
    const onv_training *t = &view->training;
    onv_json_put_string(json, "optimizer", t->optimizer->name);
    onv_json_put_string(json, "loss", t->loss);
    onv_json_put_string(json, "evidence", onv_program_evidence(t->model));
    ONV_JSON_FIELDS(json, &t->figures, parameter_bytes, gradient_bytes, optimizer_bytes,
                    buffer_bytes, saved_activation_bytes, peak_bytes);
    onv_json_put_u64(json, "tensor_peak_bytes", t->figures.peak_bytes);
    ONV_JSON_FIELDS(json, &t->figures, requested_peak_bytes, allocated_peak_bytes,
                    reserved_peak_bytes, driver_bytes);
    if (t->figures.first_peak_bytes > 0)
        onv_json_put_u64(json, "first_iteration_peak_bytes", t->figures.first_peak_bytes);
    if (t->figures.release.suffices) {
        onv_json_put_u64(json, "released_bytes", t->figures.release.returned_bytes);
        onv_json_put_u64(json, "unbounded_reserved_bytes", t->figures.reserved_peak_bytes);
    }
    onv_json_put_time(json, &t->figures.time, false);
    write_training_parts(json, t);
    if (t->n_plans > 0) {
        onv_json_put_u64(json, "forward_macs", t->figures.forward_macs);
        ONV_JSON_ROWS(json, "plans", i, t->n_plans, LINES)
            write_plan(json, t, i, onv_training_knee(t));
    }
    if (t->largest.size > 0)
        ONV_JSON_PART(json, "largest", LINES) write_largest(json, &t->largest);
    if (t->units != NULL)
        ONV_JSON_PART(json, "chain", LINES) write_units(json, t->model, t->units);
    if (t->compiled != NULL)
        ONV_JSON_PART(json, "compile", LINES) write_compiled(json, t->model, t->compiled);
}
