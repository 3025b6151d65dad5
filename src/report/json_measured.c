/* The member "measured" of a model's object. */
#include "report/json_parts.h"

static void put_pair(onv_json *json, onv_measured_pair pair)
{
    onv_json_put_u64(json, "predicted_bytes", pair.predicted);
    onv_json_put_u64(json, "measured_bytes", pair.measured);
}

static void put_sums(onv_json *json, const char *key, onv_measured_pair pair)
{
    onv_json_put_open(json, key, '{', ONV_JSON_INLINE);
    put_pair(json, pair);
    onv_json_close(json);
}

static void put_figures(onv_json *json, const onv_measured *m)
{
    onv_json_put_open(json, "figures", '[', ONV_JSON_LINES);
    for (uint32_t i = 0; i < m->n_figures; i++) {
        onv_json_open(json, '{', ONV_JSON_INLINE);
        onv_json_put_string(json, "what", m->figures[i].what);
        onv_json_put_u64(json, "low_bytes", m->figures[i].predicted.low);
        onv_json_put_u64(json, "high_bytes", m->figures[i].predicted.high);
        onv_json_put_u64(json, "measured_bytes", m->figures[i].measured);
        onv_json_put_bool(json, "is_outside", m->figures[i].is_outside);
        onv_json_close(json);
    }
    onv_json_close(json);
}

static void put_singles(onv_json *json, const char *key, const onv_measured_single *rows, size_t n)
{
    onv_json_put_open(json, key, '[', ONV_JSON_LINES);
    for (size_t i = 0; i < n; i++) {
        onv_json_open(json, '{', ONV_JSON_INLINE);
        onv_json_put_u64(json, "bytes", rows[i].bytes);
        onv_json_put_string(json, "what", rows[i].what);
        onv_json_put_string(json, "where", rows[i].where);
        onv_json_close(json);
    }
    onv_json_close(json);
}

static void put_parting(onv_json *json, const onv_measured_parting *p)
{
    if (!p->found) return;
    onv_json_put_open(json, "parts_at", '{', ONV_JSON_LINES);
    onv_json_put_u64(json, "step", p->step);
    onv_json_put_string(json, "phase", p->phase);
    onv_json_put_string(json, "operation", p->op);
    onv_json_put_string(json, "node", p->node);
    onv_json_put_string(json, "module", p->module);
    put_pair(json, p->bytes);
    if (p->where != NULL) onv_json_put_string(json, "where", p->where);
    if (p->is_lifetime) {
        onv_json_put_string(json, "predicted_until", p->until_predicted);
        onv_json_put_string(json, "measured_until", p->until_measured);
    }
    onv_json_close(json);
}

static void put_snapshot(onv_json *json, const onv_measured *m)
{
    onv_json_put_string(json, "snapshot", m->snapshot);
    onv_json_put_u64(json, "device", m->device);
    onv_json_put_u64(json, "devices", m->n_devices);
    onv_json_put_u64(json, "allocations", m->n_requests);
    onv_json_put_bool(json, "has_history", m->has_history);
    onv_json_put_bool(json, "makes_optimizer_state", m->makes_state);
    onv_json_put_u64(json, "predicted_allocations", m->n_predicted);
    onv_json_put_u64(json, "paired_allocations", m->n_paired);
    onv_json_put_open(json, "kinds", '{', ONV_JSON_LINES);
    for (unsigned k = 0; k < ONV_N_MEASURED_KINDS; k++)
        put_sums(json, onv_measured_kind_name((onv_measured_kind)k), m->kinds[k]);
    put_sums(json, "rounding", m->rounding);
    put_sums(json, "cached", m->cached);
    onv_json_close(json);
    onv_json_put_string(json, "predicted_peak", m->peak_predicted);
    onv_json_put_string(json, "measured_peak", m->peak_measured);
    put_parting(json, &m->parting);
    onv_json_put_open(json, "modules", '[', ONV_JSON_LINES);
    for (size_t i = 0; i < m->modules.count; i++) {
        onv_json_open(json, '{', ONV_JSON_INLINE);
        onv_json_put_string(json, "module", m->modules.at[i].path);
        put_pair(json, m->modules.at[i].bytes);
        onv_json_close(json);
    }
    onv_json_close(json);
    put_singles(json, "only_measured", m->only_measured.at, m->only_measured.count);
    put_singles(json, "only_predicted", m->only_predicted.at, m->only_predicted.count);
}

void onv_json_write_measured(const onv_json_part *job)
{
    const onv_measured *m = job->view->measured;
    if (m == NULL || m->n_figures == 0) return;
    onv_json_put_open(job->json, "measured", '{', ONV_JSON_LINES);
    onv_json_put_string(job->json, "runtime", m->row->runtime);
    onv_json_put_bool(job->json, "is_outside", m->is_outside);
    put_figures(job->json, m);
    if (m->snapshot != NULL) put_snapshot(job->json, m);
    onv_json_close(job->json);
}
