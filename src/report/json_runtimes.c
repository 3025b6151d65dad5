/* The member "runtimes" of a model's object. */
#include <string.h>

#include "program/view.h"
#include "report/json_parts.h"

/* What became of the graph: how often each rewrite applied, and those that would and are not modelled. */
static void write_rewrites(onv_json *json, const onv_rewritten *r, bool is_not_modelled)
{
    ONV_JSON_PART(json, is_not_modelled ? "not_modelled" : "rewrites", INLINE)
        for (uint32_t i = 0; i < r->n_counts; i++)
            if (r->counts[i].is_not_modelled == is_not_modelled)
                onv_json_put_u64(json, r->counts[i].name, r->counts[i].count);
}

static void write_rewritten(onv_json *json, const onv_rewritten *r)
{
    onv_json_put_u64(json, "nodes", r->model.nodes.count);
    onv_json_put_u64(json, "nodes_on_cpu", r->n_nodes_on_cpu);
    onv_json_put_u64(json, "copies", r->n_copies);
    write_rewrites(json, r, false);
    write_rewrites(json, r, true);
}

/* What the contract names for each runtime; "total_bytes" is what the runtime itself holds, the
 * ranges say what libraries and the driver add. */
static void write_runtime(onv_json *json, const onv_runtime_result *r)
{
    const char *name = r->runtime->name;
    if (strcmp(name, "ideal") == 0 || strcmp(name, "arena") == 0)
        onv_json_put_u64(json, "activation_peak_bytes", r->activation_bytes);
    if (strcmp(name, "arena") == 0) {
        onv_json_put_u64(json, "lower_bound_bytes", r->lower_bound_bytes);
        if (r->alignment > 1) onv_json_put_u64(json, "alignment_bytes", r->alignment);
        onv_json_put_bool(json, "optimal", r->optimal);
    } else if (r->runtime->consumer == ONV_CONSUMER_PLANNER) {
        onv_json_put_u64(json, "activation_peak_bytes", r->activation_bytes);
        onv_json_put_u64(json, "low_bytes", r->low_bytes);
        onv_json_put_u64(json, "high_bytes", r->held_bytes);
        onv_json_put_bool(json, "estimate", true);
    } else if (r->runtime->provider != ONV_PROVIDER_NONE) {
        ONV_JSON_FIELDS(json, r, first_run_bytes, steady_bytes, low_bytes);
        onv_json_put_u64(json, "high_bytes", r->held_bytes);
        ONV_JSON_FIELDS(json, r, driver_bytes, out_of_memory);
        onv_json_put_ort_settings(json, &r->ort);
        if (r->rewritten != NULL)
            ONV_JSON_PART(json, "graph", INLINE) write_rewritten(json, r->rewritten);
    } else if (strcmp(name, "ideal") != 0) {
        if (strcmp(name, "torch") == 0)
            onv_json_put_string(json, "evidence", onv_program_evidence(r->model));
        bool pool = strcmp(name, "async") == 0;
        onv_json_put_u64(json, pool ? "used_peak_bytes" : "allocated_peak_bytes",
                         r->allocated_peak_bytes);
        ONV_JSON_FIELDS(json, r, reserved_peak_bytes, tensor_peak_bytes, driver_bytes);
        if (r->allocated_ends.high > 0) {
            onv_json_put_u64(json, "least_peak_bytes", r->allocated_ends.low);
            onv_json_put_u64(json, "locals_peak_bytes", r->allocated_ends.high);
            onv_json_put_range(json, "tensor_range_bytes", r->tensor_ends);
        }
    }
    onv_json_put_u64(json, "total_bytes", r->held_bytes);
    onv_json_put_u64(json, "weight_bytes", r->weight_bytes);
    onv_json_put_time(json, &r->time, false);
    if (r->runtime->has_context) {
        onv_json_put_range(json, "context_bytes", r->context_bytes);
        onv_json_put_range(json, "total_range_bytes", r->total_bytes);
    }
}

void onv_json_write_runtimes(onv_json *json, const onv_view *view)
{
    if (view->n_runtimes == 0) return;
    ONV_JSON_PART(json, "runtimes", LINES)
        for (size_t i = 0; i < view->n_runtimes; i++)
            ONV_JSON_PART(json, view->runtimes[i].runtime->name, INLINE)
                write_runtime(json, &view->runtimes[i]);
}
