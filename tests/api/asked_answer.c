#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/asked.h"
#include "api/asked_json.h"

static json_t *range(uint64_t low, uint64_t high)
{
    return json_pack("[I, I]", (json_int_t)low, (json_int_t)high);
}

static void put_total(json_t *object, uint64_t low, uint64_t high)
{
    put_u64(object, "low_bytes", low);
    put_u64(object, "high_bytes", high);
}

/* The parts add up to the total. */
static json_t *runtime(const onv_answer_runtime_info *r)
{
    json_t *row = json_object();
    put_text(row, "runtime", r->name);
    put_total(row, r->low_bytes, r->high_bytes);
    put_u64(row, "weight_bytes", r->weight_bytes);
    put_u64(row, "live_bytes", r->live_bytes);
    put(row, "reserved_bytes", range(r->reserved_low, r->reserved_high));
    put_u64(row, "library_bytes", r->library_bytes);
    put(row, "context_bytes", range(r->context_low, r->context_high));
    put_text(row, "set_by", r->set_by);
    put_bool(row, "out_of_memory", r->out_of_memory);
    assert_int_equal(r->low_bytes, r->reserved_low + r->library_bytes + r->context_low);
    assert_int_equal(r->high_bytes, r->reserved_high + r->library_bytes + r->context_high);
    return row;
}

/* A device fits where every runtime does, and its figures are those of the largest one. */
static json_t *device(const onv_analysis *a, size_t index, const onv_answer_device_info *d)
{
    json_t *object = json_object(), *rows = json_array();
    onv_answer_runtime_info r;
    onv_answer_fit_info f;
    uint64_t most = 0;
    bool fits = true;
    put_text(object, "device", d->name);
    put_text(object, "gpu", d->gpu);
    put_bool(object, "gpu_assumed", d->gpu_assumed);
    put_u64(object, "budget_bytes", d->fit.budget);
    put_u64(object, "usable_bytes", d->fit.usable);
    put_text(object, "runtime", d->runtime);
    put_total(object, d->low_bytes, d->high_bytes);
    onv_device_runtime_info all = {d->high_bytes, d->fit.fits, d->fit.max_batch,
                                   d->fit.fits_by_release, d->fit.max_batch_by_release};
    asked_put_fits(object, &d->fit, &all);
    for (size_t i = 0; onv_analysis_answer_fit(a, index, i, &f); i++) {
        json_t *row = json_object();
        assert_true(onv_analysis_answer_runtime(a, i, &r));
        put_text(row, "runtime", r.name);
        put_total(row, f.low_bytes, f.high_bytes);
        onv_device_runtime_info there = {f.high_bytes, f.fits, f.max_batch, f.fits_by_release,
                                         f.max_batch_by_release};
        asked_put_fits(row, &d->fit, &there);
        json_array_append_new(rows, row);
        if (f.high_bytes > most) most = f.high_bytes;
        fits &= f.fits;
    }
    assert_int_equal(d->high_bytes, most);
    assert_int_equal(d->fit.fits, fits);
    put(object, "runtimes", rows);
    return object;
}

static void put_devices(json_t *answer, const char *key, const onv_analysis *a, size_t first,
                        size_t count)
{
    onv_answer_device_info d;
    json_t *list = json_array();
    for (size_t i = first; i < first + count; i++) {
        assert_true(onv_analysis_answer_device(a, i, &d));
        json_array_append_new(list, device(a, i, &d));
    }
    if (count > 0)
        put(answer, key, list);
    else
        json_decref(list);
}

void asked_add_answer(json_t *object, const onv_analysis *a)
{
    json_t *answer = json_object(), *warnings = json_array(), *rows = json_array();
    onv_answer_info info;
    onv_answer_runtime_info r;
    assert_true(onv_analysis_answer(a, &info));
    put_text(answer, "runtime", info.runtime);
    put_text(answer, "gpu", info.gpu);
    put_bool(answer, "gpu_assumed", info.gpu_assumed);
    put_known(answer, "low_bytes", info.runtime != NULL, info.low_bytes);
    put_known(answer, "high_bytes", info.runtime != NULL, info.high_bytes);
    put(answer, "fits", info.has_verdict ? json_boolean(info.fits) : json_null());
    put_text(answer, "set_by", info.set_by);
    for (size_t i = 0; i < info.warnings; i++)
        json_array_append_new(warnings, json_string(onv_analysis_answer_warning(a, i)));
    assert_null(onv_analysis_answer_warning(a, info.warnings));
    put(answer, "warnings", warnings);
    for (size_t i = 0; onv_analysis_answer_runtime(a, i, &r); i++)
        json_array_append_new(rows, runtime(&r));
    assert_int_equal(json_array_size(rows), info.runtimes);
    put(answer, "runtimes", rows);
    put(object, "answer", answer);
    json_t *remedies = json_array();
    onv_remedy_info remedy;
    for (size_t i = 0; onv_analysis_remedy(a, i, &remedy); i++) {
        json_t *one = json_object();
        put_text(one, "option", remedy.option);
        put_text(one, "what", remedy.what);
        put_text(one, "runtime", remedy.runtime);
        put_total(one, remedy.low_bytes, remedy.high_bytes);
        put_bool(one, "fits", remedy.fits);
        json_array_append_new(remedies, one);
    }
    if (json_array_size(remedies) > 0)
        put(answer, "remedies", remedies);
    else
        json_decref(remedies);
    put_devices(answer, "devices", a, 0, info.devices);
    put_devices(answer, "usual_devices", a, info.devices, info.usual_devices);
    onv_answer_device_info beyond;
    assert_false(onv_analysis_answer_device(a, info.devices + info.usual_devices, &beyond));
}
