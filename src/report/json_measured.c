/* The member "measured" of a model's object. */
#include "report/json_parts.h"

static void put_sums(onv_json *json, const char *key, const onv_measured_pair *pair)
{
    onv_json_key(json, key);
    ONV_JSON_OBJECT(json, pair, predicted_bytes, measured_bytes);
}

static void put_figures(onv_json *json, const onv_measured *m)
{
    ONV_JSON_ROWS(json, "figures", i, m->n_figures, INLINE) {
        const onv_measured_figure *f = &m->figures[i];
        onv_json_put_string(json, "what", f->what);
        onv_json_put_total(json, f->predicted);
        ONV_JSON_FIELDS(json, f, measured_bytes, is_outside);
    }
}

static void put_singles(onv_json *json, const char *key, const onv_measured_single *rows, size_t n)
{
    ONV_JSON_LIST(json, key, LINES)
        for (size_t i = 0; i < n; i++) ONV_JSON_OBJECT(json, &rows[i], bytes, what, where);
}

static void put_parting(onv_json *json, const onv_measured_parting *p)
{
    ONV_JSON_FIELDS(json, p, step, phase, operation, node, module);
    ONV_JSON_FIELDS(json, &p->bytes, predicted_bytes, measured_bytes);
    if (p->where != NULL) onv_json_put_string(json, "where", p->where);
    if (p->is_lifetime) ONV_JSON_FIELDS(json, p, predicted_until, measured_until);
}

static void put_snapshot(onv_json *json, const onv_measured *m)
{
    ONV_JSON_FIELDS(json, m, snapshot, device, devices, allocations, has_history,
                    makes_optimizer_state, predicted_allocations, paired_allocations);
    ONV_JSON_PART(json, "kinds", LINES) {
        for (unsigned k = 0; k < ONV_N_MEASURED_KINDS; k++)
            put_sums(json, onv_measured_kind_name((onv_measured_kind)k), &m->kinds[k]);
        put_sums(json, "rounding", &m->rounding);
        put_sums(json, "cached", &m->cached);
    }
    ONV_JSON_FIELDS(json, m, predicted_peak, measured_peak);
    if (m->parting.found)
        ONV_JSON_PART(json, "parts_at", LINES) put_parting(json, &m->parting);
    ONV_JSON_ROWS(json, "modules", i, m->modules.count, INLINE) {
        onv_json_put_string(json, "module", m->modules.at[i].path);
        ONV_JSON_FIELDS(json, &m->modules.at[i].bytes, predicted_bytes, measured_bytes);
    }
    put_singles(json, "only_measured", m->only_measured.at, m->only_measured.count);
    put_singles(json, "only_predicted", m->only_predicted.at, m->only_predicted.count);
}

void onv_json_write_measured(onv_json *json, const onv_view *view)
{
    const onv_measured *m = &view->measured;
    onv_json_put_string(json, "runtime", m->row->runtime);
    onv_json_put_bool(json, "is_outside", m->is_outside);
    put_figures(json, m);
    if (m->snapshot != NULL) put_snapshot(json, m);
}
