#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "api/asked.h"
#include "api/asked_json.h"

static json_t *expression(const onv_expression *e)
{
    return e->number >= 0 ? json_integer(e->number) : text(e->text);
}

/* --- The file ---------------------------------------------------------------------------------- */

static json_t *dims(const onv_analysis *a, size_t tensor, int rank)
{
    json_t *list = json_array();
    if (rank < 0) {
        json_decref(list);
        return json_null();
    }
    for (size_t i = 0; i < (size_t)rank; i++) {
        onv_expression size;
        assert_true(onv_analysis_tensor_dim(a, tensor, i, &size));
        bool is_known = size.number >= 0 || size.text != NULL;
        json_array_append_new(list, is_known ? expression(&size) : json_string("?"));
    }
    onv_expression beyond;
    assert_false(onv_analysis_tensor_dim(a, tensor, (size_t)rank, &beyond));
    return list;
}

/* A dim and an input may share a name: the dim is what the object has. */
static json_t *bindings(const onv_analysis *a)
{
    json_t *object = json_object();
    onv_binding_info info;
    onv_tensor_info tensor;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; onv_analysis_binding(a, i, &info); i++) {
            if ((info.size < 0) != (pass == 1) || json_object_get(object, info.name) != NULL)
                continue;
            bool has_shape = info.size < 0 && onv_analysis_tensor(a, info.tensor, &tensor);
            put(object, info.name,
                info.size >= 0 ? json_integer(info.size)
                : has_shape    ? dims(a, info.tensor, tensor.rank)
                               : json_null());
        }
    return object;
}

static void add_file(json_t *object, const onv_analysis *a)
{
    onv_model_info model;
    onv_opset_info opset;
    onv_summary sums;
    json_t *opsets = json_object(), *parameters = json_object();
    assert_true(onv_analysis_model(a, &model));
    onv_analysis_summary(a, &sums);
    put_text(object, "path", model.path);
    put_u64(object, "ir_version", (uint64_t)model.ir_version);
    put_text(object, "producer", model.producer);
    for (size_t i = 0; onv_analysis_opset(a, i, &opset); i++)
        put_u64(opsets, opset.domain, (uint64_t)opset.version);
    put(object, "opset_import", opsets);
    put(object, "bindings", bindings(a));
    put_u64(parameters, "count", sums.parameters);
    put_u64(parameters, "bytes", sums.parameter_bytes);
    put(object, "parameters", parameters);
    if (model.dropped_diagnostics > 0)
        put_u64(object, "diagnostics_dropped", model.dropped_diagnostics);
}

/* --- The graph --------------------------------------------------------------------------------- */

static json_t *tensors(const onv_analysis *a)
{
    static const char *const kinds[] = {"input", "output", "activation", "initializer", "constant"};
    json_t *list = json_array();
    onv_tensor_info t;
    size_t n = 0;
    for (; onv_analysis_tensor(a, n, &t); n++) {
        if (t.is_dropped) continue;
        json_t *row = json_object();
        put_text(row, "name", t.name);
        put_text(row, "kind", kinds[t.kind]);
        put_text(row, "dtype", t.dtype);
        if (t.format != NULL) put_text(row, "format", t.format);
        put(row, "shape", dims(a, n, t.rank));
        put_size(row, "bytes", t.bytes);
        if (t.bound) put_bool(row, "bound", true);
        put_known(row, "first_step", t.live, t.first_step);
        put_known(row, "last_step", t.live, t.last_step);
        put_text(row, "alias_of", name_of(a, t.alias_of));
        json_array_append_new(list, row);
    }
    assert_int_equal(n, onv_analysis_tensor_count(a));
    return list;
}

static json_t *operands(const onv_analysis *a, size_t step, size_t count,
                        size_t (*at)(const onv_analysis *, size_t, size_t))
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const char *name = name_of(a, at(a, step, i));
        json_array_append_new(list, json_string(name != NULL ? name : ""));
    }
    assert_int_equal(at(a, step, count), ONV_NO_INDEX);
    return list;
}

static json_t *nodes(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_step_info s;
    size_t n = 0;
    for (; onv_analysis_step(a, n, &s); n++) {
        json_t *row = json_object();
        put_u64(row, "step", n);
        put_text(row, "name", s.node);
        put_text(row, "op_type", s.op_type);
        put_text(row, "domain", s.domain);
        put(row, "inputs", operands(a, n, s.inputs, onv_analysis_step_input));
        put(row, "outputs", operands(a, n, s.outputs, onv_analysis_step_output));
        put(row, "macs", expression(&s.macs));
        put_size(row, "live_bytes", s.live_bytes);
        json_array_append_new(list, row);
    }
    assert_int_equal(n, onv_analysis_step_count(a));
    return list;
}

static json_t *regions(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_region_info r;
    for (size_t i = 0; onv_analysis_region(a, i, &r); i++) {
        json_t *row = json_object();
        put_text(row, "kind", r.kind);
        put_text(row, "node", r.node);
        put_text(row, "attribute", r.attribute);
        put_known(row, "first_step", r.has_steps, r.first_step);
        put_known(row, "last_step", r.has_steps, r.last_step);
        put_known(row, "parent", r.parent != ONV_NO_INDEX, r.parent);
        if (strcmp(r.kind, "loop") == 0) put(row, "trips", expression(&r.trips));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *peak(const onv_analysis *a)
{
    json_t *object = json_object(), *set = json_array();
    onv_summary sums;
    onv_step_info step;
    onv_tensor_info t;
    bool is_bound = false;
    uint64_t bytes = 0;
    size_t n = onv_analysis_peak_tensor_count(a);
    onv_analysis_summary(a, &sums);
    assert_true(onv_analysis_step(a, sums.peak_step, &step));
    put_known(object, "bytes", sums.sized, sums.peak_bytes);
    if (!sums.sized) put_u64(object, "at_least_bytes", sums.peak_bytes);
    if (!sums.sized) put_u64(object, "unknown_tensors", sums.unknown_tensors);
    for (size_t i = 0; i < n; i++) {
        assert_true(onv_analysis_tensor(a, onv_analysis_peak_tensor(a, i), &t));
        json_array_append_new(set, text(t.name));
        is_bound |= t.bound;
        if (t.bytes != ONV_SIZE_UNKNOWN) bytes += t.bytes;
    }
    assert_int_equal(onv_analysis_peak_tensor(a, n), ONV_NO_INDEX);
    assert_int_equal(bytes, sums.peak_bytes);
    if (is_bound) put_bool(object, "bound", true);
    put_u64(object, "step", sums.peak_step);
    put_text(object, "node", step.node);
    put(object, "tensors", set);
    return object;
}

static void add_graph(json_t *object, const onv_analysis *a)
{
    onv_largest_info largest;
    onv_best_order_info best;
    onv_order_info order;
    json_t *list = regions(a);
    put(object, "tensors", tensors(a));
    put(object, "nodes", nodes(a));
    if (json_array_size(list) > 0) json_object_set(object, "regions", list);
    json_decref(list);
    if (onv_analysis_largest(a, &largest)) {
        json_t *row = json_object();
        put_text(row, "name", name_of(a, largest.tensor));
        put_u64(row, "bytes", largest.bytes);
        put_u64(row, "elements", largest.elements);
        put_u64(row, "over_webgpu_binding", largest.over_webgpu_binding);
        put_u64(row, "over_tensorrt_volume", largest.over_tensorrt_volume);
        put(object, "largest_buffer", row);
    }
    if (onv_analysis_best_order(a, &best)) {
        json_t *row = json_object();
        put_u64(row, "peak_bytes", best.peak_bytes);
        put_u64(row, "lower_bound_bytes", best.lower_bound_bytes);
        put_bool(row, "proven", best.proven);
        put(object, "best_order", row);
    }
    assert_true(onv_analysis_order(a, &order));
    if (strcmp(order.name, "model") == 0) return;
    json_t *row = json_object();
    put_text(row, "name", order.name);
    if (order.has_bound) put_u64(row, "lower_bound_bytes", order.lower_bound_bytes);
    if (order.has_bound) put_bool(row, "proven", order.proven);
    put(object, "order", row);
}

/* --- Runtimes ---------------------------------------------------------------------------------- */

static json_t *rewritten(const onv_analysis *a, size_t runtime, const onv_runtime_info *r)
{
    json_t *object = json_object(), *applied = json_object(), *others = json_object();
    onv_rewrite_info rewrite;
    put_u64(object, "nodes", r->nodes);
    put_u64(object, "nodes_on_cpu", r->nodes_on_cpu);
    put_u64(object, "copies", r->copies);
    for (size_t i = 0; onv_analysis_runtime_rewrite(a, runtime, i, &rewrite); i++)
        put_u64(rewrite.is_not_modelled ? others : applied, rewrite.name, rewrite.count);
    put(object, "rewrites", applied);
    put(object, "not_modelled", others);
    return object;
}

static json_t *range(uint64_t low, uint64_t high)
{
    return json_pack("[I, I]", (json_int_t)low, (json_int_t)high);
}

static void add_allocator(json_t *row, const onv_runtime_info *r)
{
    bool is_pool = strcmp(r->name, "async") == 0;
    put_u64(row, is_pool ? "used_peak_bytes" : "allocated_peak_bytes", r->allocated_peak_bytes);
    put_u64(row, "reserved_peak_bytes", r->reserved_peak_bytes);
    put_u64(row, "tensor_peak_bytes", r->tensor_peak_bytes);
    put_u64(row, "driver_bytes", r->driver_bytes);
    if (r->locals_peak_bytes > 0) put_u64(row, "locals_peak_bytes", r->locals_peak_bytes);
    if (r->locals_peak_bytes > 0) put_u64(row, "inplace_peak_bytes", r->inplace_peak_bytes);
}

static json_t *runtime(const onv_analysis *a, size_t index, const onv_runtime_info *r)
{
    json_t *row = json_object();
    if (r->evidence != NULL) put_text(row, "evidence", r->evidence);
    bool is_ideal = strcmp(r->name, "ideal") == 0, is_arena = strcmp(r->name, "arena") == 0;
    if (is_ideal || is_arena) put_u64(row, "activation_peak_bytes", r->activation_bytes);
    if (is_arena) {
        put_u64(row, "lower_bound_bytes", r->lower_bound_bytes);
        if (r->alignment > 1) put_u64(row, "alignment_bytes", r->alignment);
        put_bool(row, "optimal", r->optimal);
    } else if (strcmp(r->name, "ort") == 0) {
        put_u64(row, "first_run_bytes", r->first_run_bytes);
        put_u64(row, "steady_bytes", r->steady_bytes);
        put_u64(row, "low_bytes", r->low_bytes);
        put_u64(row, "high_bytes", r->held_bytes);
        put_u64(row, "driver_bytes", r->driver_bytes);
        put_bool(row, "out_of_memory", r->out_of_memory);
        put(row, "options", settings(a, index, onv_analysis_runtime_setting));
        if (r->nodes > 0) put(row, "graph", rewritten(a, index, r));
    } else if (!is_ideal) {
        add_allocator(row, r);
    }
    put_u64(row, "total_bytes", r->held_bytes);
    put_u64(row, "weight_bytes", r->weight_bytes);
    if (r->context_high > 0) {
        put(row, "context_bytes", range(r->context_low, r->context_high));
        put(row, "total_range_bytes", range(r->total_low, r->total_high));
    }
    return row;
}

static json_t *runtimes(const onv_analysis *a)
{
    json_t *object = json_object();
    onv_runtime_info r;
    size_t n = 0;
    for (; onv_analysis_runtime(a, n, &r); n++) put(object, r.name, runtime(a, n, &r));
    assert_int_equal(n, onv_analysis_runtime_count(a));
    return object;
}

void asked_put_fits(json_t *object, const onv_fit_info *of, const onv_device_runtime_info *f)
{
    bool is_dim = of->max_dim != NULL;
    put_bool(object, "fits", f->fits);
    if (f->fits_by_release) put_bool(object, "fits_by_release", true);
    if (!of->has_max_batch) return;
    put_u64(object, is_dim ? "max_size" : "max_batch", (uint64_t)f->max_batch);
    if (f->max_batch_by_release > f->max_batch)
        put_u64(object, is_dim ? "max_size_by_release" : "max_batch_by_release",
                (uint64_t)f->max_batch_by_release);
}

/* `device`: ONV_NO_INDEX: the figures of the analysis. */
static json_t *fit(const onv_analysis *a, size_t device, const char *name, const onv_fit_info *f)
{
    json_t *object = json_object(), *of = json_object();
    onv_device_runtime_info all = {0, f->fits, f->max_batch, f->fits_by_release,
                                   f->max_batch_by_release};
    onv_runtime_info r;
    if (name != NULL) put_text(object, "device", name);
    put_u64(object, "budget_bytes", f->budget);
    put_u64(object, "margin_percent", f->margin_percent);
    put_u64(object, "usable_bytes", f->usable);
    if (f->max_dim != NULL) put_text(object, "max_dim", f->max_dim);
    asked_put_fits(object, f, &all);
    for (size_t i = 0; onv_analysis_runtime(a, i, &r); i++) {
        if (!r.is_judged) continue;
        onv_device_runtime_info there = {r.total_high, r.fits, r.max_batch, r.fits_by_release,
                                         r.max_batch_by_release};
        json_t *row = json_object();
        if (device != ONV_NO_INDEX) assert_true(onv_analysis_device_runtime(a, device, i, &there));
        assert_int_equal(there.fits, there.total_high <= f->usable);
        asked_put_fits(row, f, &there);
        put(of, r.name, row);
    }
    put(object, "runtimes", of);
    return object;
}

static void add_fits(json_t *object, const onv_analysis *a)
{
    onv_fit_info f;
    const char *name = NULL;
    size_t n = onv_analysis_device_count(a);
    if (!onv_analysis_fit(a, &f)) return;
    onv_fit_info first;
    if (n > 0) assert_true(onv_analysis_device(a, 0, &name, &first));
    put(object, "fit", fit(a, ONV_NO_INDEX, name, &f));
    if (n < 2) return;
    json_t *list = json_array();
    for (size_t i = 0; onv_analysis_device(a, i, &name, &f); i++)
        json_array_append_new(list, fit(a, i, name, &f));
    put(object, "fits", list);
}

static void add_growth(json_t *object, const onv_analysis *a)
{
    onv_growth_verdict verdict;
    onv_growth_info row;
    if (!onv_analysis_growth_verdict(a, &verdict)) return;
    json_t *growth = json_object(), *figures = json_array();
    put_text(growth, "baseline", verdict.baseline);
    put_bool(growth, "other_bindings", verdict.other_bindings);
    put_bool(growth, "exceeds", verdict.exceeds);
    if (verdict.has_max_growth)
        put(growth, "max_growth", ratio(verdict.max_growth_basis_points, 10000));
    for (size_t i = 0; onv_analysis_growth(a, i, &row); i++) {
        json_t *figure = json_object();
        put_text(figure, "what", row.what);
        put_u64(figure, "before_bytes", row.before);
        put_u64(figure, "after_bytes", row.after);
        put_bool(figure, "exceeds", row.exceeds);
        json_array_append_new(figures, figure);
    }
    put(growth, "figures", figures);
    put(object, "growth", growth);
}

/* --- Open sizes, what would be otherwise ------------------------------------------------------- */

static json_t *pieces(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_piece_info p;
    for (size_t i = 0; onv_analysis_piece(a, i, &p); i++) {
        json_t *row = json_object();
        put(row, "bytes", expression(&p.bytes));
        put_u64(row, "step", p.step);
        if (p.decided_by.text != NULL) {
            put(row, "decided_by", expression(&p.decided_by));
            put_u64(row, "from", (uint64_t)p.from);
            put_known(row, "until", p.until != INT64_MAX, (uint64_t)p.until);
        }
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *example(const onv_analysis *a)
{
    json_t *object = json_object();
    onv_summary sums;
    onv_step_info step;
    uint64_t macs = 0;
    bool is_known = true;
    onv_analysis_summary(a, &sums);
    for (size_t i = 0; onv_analysis_step(a, i, &step); i++) {
        is_known &= step.macs.number >= 0;
        macs += (uint64_t)step.macs.number;
    }
    if (is_known) assert_int_equal(macs, sums.macs);
    put(object, "bindings", bindings(a));
    put_known(object, "macs", is_known, sums.macs);
    asked_add_answer(object, a);
    put(object, "peak", peak(a));
    put(object, "runtimes", runtimes(a));
    return object;
}

static void add_open(json_t *object, const onv_analysis *a)
{
    json_t *list = json_array();
    onv_free_dim_info dim;
    onv_formula_info f;
    for (size_t i = 0; onv_analysis_free_dim(a, i, &dim); i++) {
        json_t *row = json_object();
        put_text(row, "name", dim.name);
        put_text(row, "input", dim.input);
        put_u64(row, "axis", (uint64_t)dim.axis);
        put_text(row, "option", dim.option);
        if (dim.past != NULL) put(row, "sum_of", json_pack("[s, s]", dim.past, dim.sequence));
        json_array_append_new(list, row);
    }
    assert_int_equal(json_array_size(list), onv_analysis_free_dim_count(a));
    if (json_array_size(list) > 0) json_object_set(object, "free_dims", list);
    json_decref(list);
    if (!onv_analysis_formula(a, &f)) return;
    json_t *formula = json_object();
    put_u64(formula, "weight_bytes", f.weight_bytes);
    if (f.why_not != NULL) put_text(formula, "why_not", f.why_not);
    put(formula, "peak_bytes_largest_of", pieces(a));
    put(formula, "input_bytes", expression(&f.input_bytes));
    put(formula, "output_bytes", expression(&f.output_bytes));
    put(formula, "activation_bytes", expression(&f.activation_bytes));
    put(formula, "macs", expression(&f.macs));
    put(object, "formula", formula);
    if (onv_analysis_example(a) != NULL) put(object, "example", example(onv_analysis_example(a)));
}

static json_t *pairs(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_kv_pair_info p;
    for (size_t i = 0; onv_analysis_kv_pair(a, i, &p); i++) {
        json_t *row = json_object();
        put_text(row, "past", name_of(a, p.past));
        put_text(row, "present", name_of(a, p.present));
        put_known(row, "axis", p.axis >= 0, (uint64_t)p.axis);
        put_u64(row, "past_bytes", p.past_bytes);
        put_u64(row, "present_bytes", p.present_bytes);
        put_u64(row, "token_bytes", p.token_bytes);
        put_bool(row, "in_place", p.in_place);
        json_array_append_new(list, row);
    }
    return list;
}

static void add_cache(json_t *object, const onv_analysis *a)
{
    onv_kv_cache_info c;
    if (!onv_analysis_kv_cache(a, &c)) return;
    json_t *row = json_object();
    put_text(row, "mode", c.mode);
    put_u64(row, "layers", c.layers);
    put_known(row, "token_bytes", c.is_sized, c.token_bytes);
    put_known(row, "past_tokens", c.is_sized, c.past_tokens);
    put_known(row, "tokens", c.is_sized, c.tokens);
    put_known(row, "past_bytes", c.is_sized, c.past_bytes);
    put_known(row, "present_bytes", c.is_sized, c.present_bytes);
    put_known(row, "fixed_bytes", c.is_sized, c.fixed_bytes);
    put_known(row, "bytes", c.is_sized, c.bytes);
    if (c.longest_context >= 0) put_u64(row, "longest_context", (uint64_t)c.longest_context);
    put(row, "pairs", pairs(a));
    put(object, "kv_cache", row);
}

static json_t *savings(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_saving_info s;
    for (size_t i = 0; onv_analysis_saving(a, i, &s); i++) {
        json_t *row = json_object();
        put_text(row, "kind", s.kind);
        put_u64(row, "saved_bytes", s.saved_bytes);
        put_u64(row, "peak_bytes", s.peak_bytes);
        if (s.tensor != ONV_NO_INDEX) put_text(row, "tensor", name_of(a, s.tensor));
        if (s.node != NULL) put_text(row, "node", s.node);
        if (s.everywhere) put_bool(row, "everywhere", true);
        if (s.parts > 0) put_u64(row, "parts", s.parts);
        if (s.parts > 0) put_u64(row, "batch", s.batch);
        put_u64(row, "more_macs", s.more_macs);
        put_u64(row, "more_nodes", s.more_nodes);
        json_array_append_new(list, row);
    }
    return list;
}

static void add_what_if(json_t *object, const onv_analysis *a)
{
    onv_quantized_info q;
    json_t *list = savings(a);
    if (json_array_size(list) > 0) json_object_set(object, "savings", list);
    json_decref(list);
    add_cache(object, a);
    if (!onv_analysis_quantized(a, &q)) return;
    json_t *row = json_object();
    put_text(row, "format", q.format);
    put_u64(row, "matrices", q.matrices);
    put_u64(row, "bytes_before", q.bytes_before);
    put_u64(row, "bytes", q.bytes);
    put_u64(row, "left_bytes", q.left_bytes);
    put_u64(row, "left_table_bytes", q.left_table_bytes);
    put_u64(row, "left_convolution_bytes", q.left_convolution_bytes);
    put(object, "quantization", row);
}

/* --- All of it --------------------------------------------------------------------------------- */

static json_t *diagnostics(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_diagnostic d;
    for (size_t i = 0; onv_analysis_diagnostic(a, i, &d); i++) {
        json_t *row = json_object();
        put_text(row, "severity", d.severity);
        put_text(row, "code", d.code);
        put_text(row, "node", d.node);
        put_text(row, "message", d.message);
        json_array_append_new(list, row);
    }
    return list;
}

json_t *asked_model(const onv_analysis *a)
{
    json_t *object = json_object();
    onv_summary sums;
    onv_step_info step;
    bool has_macs = true;
    onv_analysis_summary(a, &sums);
    for (size_t i = 0; onv_analysis_step(a, i, &step); i++) has_macs &= step.macs.number >= 0;
    asked_add_answer(object, a);
    add_file(object, a);
    put_known(object, "macs", has_macs, sums.macs);
    add_open(object, a);
    add_graph(object, a);
    put(object, "peak", peak(a));
    add_what_if(object, a);
    if (onv_analysis_runtime_count(a) > 0) put(object, "runtimes", runtimes(a));
    add_fits(object, a);
    add_growth(object, a);
    asked_add_sessions(object, a);
    asked_add_training(object, a);
    asked_add_replay(object, a);
    put(object, "diagnostics", diagnostics(a));
    return object;
}
