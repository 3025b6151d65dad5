/* "answer", the first member of a model's object: what is judged, on which GPU, and whether it fits. */
#include "report/json_parts.h"

void onv_json_put_range(onv_json *json, const char *key, onv_range range)
{
    onv_json_key(json, key);
    onv_json_open(json, '[', ONV_JSON_INLINE);
    onv_json_u64(json, range.low);
    onv_json_u64(json, range.high);
    onv_json_close(json);
}

static void put_gpu(onv_json *json, const char *gpu, bool is_assumed)
{
    onv_json_put_string(json, "gpu", gpu);
    onv_json_put_bool(json, "gpu_assumed", is_assumed);
}

void onv_json_put_total(onv_json *json, onv_range total)
{
    onv_json_put_u64(json, "low_bytes", total.low);
    onv_json_put_u64(json, "high_bytes", total.high);
}

static void write_row(onv_json *json, const onv_answer_row *row)
{
    onv_json_put_string(json, "runtime", row->runtime);
    onv_json_put_total(json, row->total);
    onv_json_put_u64(json, "weight_bytes", row->weight_bytes);
    onv_json_put_range(json, "live_bytes", row->live);
    onv_json_put_range(json, "reserved_bytes", row->reserved);
    onv_json_put_u64(json, "library_bytes", row->library_bytes);
    onv_json_put_range(json, "context_bytes", row->context);
    ONV_JSON_FIELDS(json, row, set_by, out_of_memory);
}

static void write_device(onv_json *json, const onv_answer *answer, const onv_answer_device *device)
{
    onv_json_put_string(json, "device", device->name);
    put_gpu(json, device->gpu, device->is_assumed);
    ONV_JSON_FIELDS(json, device->fit, budget_bytes, usable_bytes);
    onv_json_put_string(json, "runtime", answer->rows[device->largest].runtime);
    onv_json_put_total(json, device->totals[device->largest]);
    onv_json_write_fit_of(json, device->fit, &device->fit->all);
    ONV_JSON_ROWS(json, "runtimes", i, answer->n_rows, INLINE) {
        const onv_fit_of *of = onv_answer_fit_of(answer, device, i);
        onv_json_put_string(json, "runtime", answer->rows[i].runtime);
        onv_json_put_total(json, device->totals[i]);
        onv_json_write_fit_of(json, device->fit, of);
    }
}

static void write_remedies(onv_json *json, const onv_answer *answer)
{
    if (answer->n_remedies == 0) return;
    ONV_JSON_ROWS(json, "remedies", i, answer->n_remedies, INLINE) {
        const onv_remedy *r = &answer->remedies[i];
        ONV_JSON_FIELDS(json, r, option, what, runtime);
        onv_json_put_total(json, r->total);
        onv_json_put_bool(json, "fits", r->fits);
    }
}

void onv_json_write_answer(onv_json *json, const onv_view *view)
{
    const onv_answer *answer = &view->answer;
    const onv_answer_row *row = answer->n_rows > 0 ? &answer->rows[answer->largest] : NULL;
    onv_json_put_string(json, "runtime", row != NULL ? row->runtime : NULL);
    put_gpu(json, answer->gpu, answer->is_assumed);
    onv_json_put_known(json, "low_bytes", row != NULL, row != NULL ? row->total.low : 0);
    onv_json_put_known(json, "high_bytes", row != NULL, row != NULL ? row->total.high : 0);
    onv_json_key(json, "fits");
    if (answer->verdict == ONV_VERDICT_NONE)
        onv_json_null(json);
    else
        onv_json_bool(json, answer->verdict == ONV_VERDICT_FITS);
    onv_json_put_string(json, "set_by", row != NULL ? row->set_by : NULL);
    onv_json_put_texts(json, "warnings", answer->warnings, answer->n_warnings);
    ONV_JSON_ROWS(json, "runtimes", i, answer->n_rows, INLINE) write_row(json, &answer->rows[i]);
    if (answer->n_devices > 0)
        ONV_JSON_ROWS(json, "devices", i, answer->n_devices, LINES)
            write_device(json, answer, &answer->devices[i]);
    if (answer->n_usual > 0)
        ONV_JSON_ROWS(json, "usual_devices", i, answer->n_usual, LINES)
            write_device(json, answer, &answer->devices[answer->n_devices + i]);
    write_remedies(json, answer);
}
