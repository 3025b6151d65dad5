/* Training, sessions of ONNX Runtime and replays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "api/asked.h"
#include "api/asked_json.h"

/* --- Training ---------------------------------------------------------------------------------- */

static json_t *plan(const onv_analysis *a, size_t index, const onv_checkpoint_info *c)
{
    json_t *row = json_object(), *segments = json_array();
    onv_segment_info segment;
    put_text(row, "name", c->name);
    put_u64(row, "peak_bytes", c->peak_bytes);
    put_u64(row, "saved_activation_bytes", c->saved_activation_bytes);
    put_u64(row, "allocated_peak_bytes", c->allocated_peak_bytes);
    put_u64(row, "reserved_peak_bytes", c->reserved_peak_bytes);
    put_u64(row, "recompute_macs", c->recompute_macs);
    put(row, "overhead", ratio(c->recompute_macs, c->pass_macs));
    if (c->offloads) {
        put_u64(row, "offloaded_bytes", c->offloaded_bytes);
        put_u64(row, "returned_bytes", c->returned_bytes);
        put_u64(row, "host_bytes", c->host_bytes);
    }
    if (c->chosen) put_bool(row, "chosen", true);
    if (c->max_batch > 0) put_u64(row, "max_batch", (uint64_t)c->max_batch);
    if (c->max_batch_by_release > c->max_batch)
        put_u64(row, "max_batch_by_release", (uint64_t)c->max_batch_by_release);
    if (c->by_hand > 0) put_u64(row, "by_hand", c->by_hand);
    if (c->compiles) put(row, "memory_budget", json_real(c->memory_budget));
    if (c->kept > 0) {
        json_t *kept = json_array();
        for (size_t i = 0; i < c->kept; i++)
            json_array_append_new(kept, text(onv_analysis_checkpoint_kept(a, index, i)));
        put(row, "kept", kept);
    }
    assert_null(onv_analysis_checkpoint_kept(a, index, c->kept));
    for (size_t i = 0; onv_analysis_checkpoint_segment(a, index, i, &segment); i++)
        json_array_append_new(segments, json_pack("[s, s]", segment.first, segment.last));
    assert_int_equal(json_array_size(segments), c->segments);
    put(row, "segments", segments);
    return row;
}

static void add_compiled(json_t *object, const onv_analysis *a)
{
    onv_compiled_info c;
    onv_compiled_tensor_info t;
    if (!onv_analysis_compiled(a, &c)) return;
    json_t *row = json_object(), *saved = json_array();
    put(row, "memory_budget", json_real(c.budget));
    put_u64(row, "saved_activation_bytes", c.saved_activation_bytes);
    put_u64(row, "peak_bytes", c.peak_bytes);
    put_u64(row, "recompute_macs", c.recompute_macs);
    put(row, "overhead", ratio(c.recompute_macs, c.pass_macs));
    for (size_t i = 0; onv_analysis_compiled_tensor(a, i, &t); i++) {
        json_t *tensor = json_object();
        if (t.tensor != ONV_NO_INDEX) put_text(tensor, "name", name_of(a, t.tensor));
        if (t.node != NULL) put_text(tensor, "node", t.node);
        if (t.operation != NULL) put_text(tensor, "operation", t.operation);
        put_u64(tensor, "bytes", t.bytes);
        json_array_append_new(saved, tensor);
    }
    assert_int_equal(json_array_size(saved), c.saved);
    put(row, "saved", saved);
    put(object, "compile", row);
}

static json_t *chain_units(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_chain_unit_info u;
    for (size_t i = 0; onv_analysis_chain_unit(a, i, &u); i++) {
        json_t *row = json_object();
        if (u.node != NULL) put_text(row, "node", u.node);
        put_text(row, "operation", u.operation);
        put_u64(row, "macs", u.macs);
        put_u64(row, "forward_bytes", u.forward_bytes);
        put_u64(row, "passing_bytes", u.passing_bytes);
        put_u64(row, "own_bytes", u.own_bytes);
        put_u64(row, "backward_bytes", u.backward_bytes);
        put_u64(row, "beside_bytes", u.beside_bytes);
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *chain_tensors(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_chain_tensor_info t;
    onv_chain_reader_info r;
    for (size_t i = 0; onv_analysis_chain_tensor(a, i, &t); i++) {
        json_t *row = json_object(), *reads = json_array(), *saves = json_array();
        for (size_t k = 0; onv_analysis_chain_reader(a, i, k, &r); k++) {
            json_array_append_new(reads, json_integer((json_int_t)r.unit));
            if (r.saves) json_array_append_new(saves, json_integer((json_int_t)r.unit));
        }
        assert_int_equal(json_array_size(reads), t.readers);
        if (t.saved_by_maker) json_array_append_new(saves, json_integer((json_int_t)t.made_by));
        put_u64(row, "bytes", t.bytes);
        put_u64(row, "made_by", t.made_by);
        put(row, "read_by", reads);
        put(row, "saved_by", saves);
        json_array_append_new(list, row);
    }
    return list;
}

static void add_chain(json_t *object, const onv_analysis *a)
{
    onv_chain_info c;
    if (!onv_analysis_chain(a, &c)) return;
    json_t *row = json_object(), *units = chain_units(a), *tensors = chain_tensors(a);
    assert_true(json_array_size(units) == c.units && json_array_size(tensors) == c.tensors);
    put_u64(row, "beside_bytes", c.beside_bytes);
    put(row, "units", units);
    put(row, "tensors", tensors);
    put(object, "chain", row);
}

static void add_parts(json_t *object, const onv_training_info *t)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"first_iteration_peak_bytes", t->first_iteration_peak_bytes},
                {"released_bytes", t->released_bytes},
                {"unbounded_reserved_bytes", t->unbounded_reserved_bytes},
                {"bucket_bytes", t->bucket_bytes},
                {"gathered_bytes", t->gathered_bytes},
                {"reduce_bytes", t->reduce_bytes},
                {"master_bytes", t->master_bytes},
                {"ema_bytes", t->ema_bytes},
                {"host_bytes", t->host_bytes},
                {"quantized_bytes", t->quantized_bytes},
                {"dequantized_bytes", t->dequantized_bytes},
                {"units", t->units}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].value > 0) put_u64(object, rows[i].name, rows[i].value);
}

void asked_add_training(json_t *object, const onv_analysis *a)
{
    onv_training_info t;
    onv_checkpoint_info c;
    if (!onv_analysis_training(a, &t)) return;
    json_t *row = json_object(), *plans = json_array();
    put_text(row, "optimizer", t.optimizer);
    put_text(row, "loss", t.loss);
    put_text(row, "evidence", t.evidence);
    put_u64(row, "parameter_bytes", t.parameter_bytes);
    put_u64(row, "gradient_bytes", t.gradient_bytes);
    put_u64(row, "optimizer_bytes", t.optimizer_bytes);
    put_u64(row, "buffer_bytes", t.buffer_bytes);
    put_u64(row, "saved_activation_bytes", t.saved_activation_bytes);
    put_u64(row, "peak_bytes", t.peak_bytes);
    put_u64(row, "tensor_peak_bytes", t.peak_bytes);
    put_u64(row, "requested_peak_bytes", t.requested_peak_bytes);
    put_u64(row, "allocated_peak_bytes", t.allocated_peak_bytes);
    put_u64(row, "reserved_peak_bytes", t.reserved_peak_bytes);
    put_u64(row, "driver_bytes", t.driver_bytes);
    add_parts(row, &t);
    for (size_t i = 0; onv_analysis_checkpoint(a, i, &c); i++)
        json_array_append_new(plans, plan(a, i, &c));
    if (json_array_size(plans) > 0) {
        put_u64(row, "forward_macs", t.forward_macs);
        json_object_set(row, "plans", plans);
    }
    json_decref(plans);
    add_chain(row, a);
    add_compiled(row, a);
    put(object, "training", row);
}

/* --- Sessions of ONNX Runtime ------------------------------------------------------------------ */

static json_t *advice(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_advice_info r;
    for (size_t i = 0; onv_analysis_advice(a, i, &r); i++) {
        json_t *row = json_object();
        put_u64(row, "first_run_bytes", r.first_run_bytes);
        put_u64(row, "steady_bytes", r.steady_bytes);
        put_u64(row, "low_bytes", r.low_bytes);
        put_u64(row, "in_use_bytes", r.in_use_bytes);
        put_u64(row, "least_limit_bytes", r.least_limit_bytes);
        put_bool(row, "given", r.is_given);
        put(row, "options", settings(a, i, onv_analysis_advice_setting));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *request(const onv_analysis *a, size_t index, size_t n_dims)
{
    json_t *row = json_object(), *dims = json_object(), *reserved = json_array();
    const char *name = NULL;
    for (size_t i = 0; i < n_dims; i++) {
        int64_t size = onv_analysis_request_dim(a, index, i, &name);
        put_u64(dims, name, (uint64_t)size);
    }
    for (size_t i = 0; i < onv_analysis_policy_count(a); i++)
        json_array_append_new(reserved,
                              json_integer((json_int_t)onv_analysis_request_reserved(a, index, i)));
    put(row, "dims", dims);
    put_u64(row, "in_use_bytes", onv_analysis_request_in_use(a, index));
    put(row, "reserved_bytes", reserved);
    return row;
}

void asked_add_sessions(json_t *object, const onv_analysis *a)
{
    static const char *const keys[] = {"policies",         "created_bytes",     "most_bytes",
                                       "best_order_bytes", "worst_order_bytes", "out_of_memory"};
    onv_shape_trace_info trace;
    onv_policy_info p;
    if (onv_analysis_advice_count(a) > 0) put(object, "ort_advice", advice(a));
    if (!onv_analysis_shape_trace(a, &trace)) return;
    json_t *row = json_object(), *lists[6], *requests = json_array();
    for (size_t i = 0; i < 6; i++) put(row, keys[i], lists[i] = json_array());
    for (size_t i = 0; onv_analysis_policy(a, i, &p); i++) {
        json_array_append_new(lists[0], text(p.name));
        json_array_append_new(lists[1], json_integer((json_int_t)p.created_bytes));
        json_array_append_new(lists[2], json_integer((json_int_t)p.most_bytes));
        json_array_append_new(lists[3], json_integer((json_int_t)p.best_order_bytes));
        json_array_append_new(lists[4], json_integer((json_int_t)p.worst_order_bytes));
        json_array_append_new(lists[5], json_boolean(p.out_of_memory));
    }
    put_u64(row, "orders", trace.orders);
    for (size_t i = 0; i < trace.requests; i++)
        json_array_append_new(requests, request(a, i, trace.dims));
    put(row, "requests", requests);
    put(object, "shape_trace", row);
}

/* --- Replays ----------------------------------------------------------------------------------- */

static json_t *faults(const onv_analysis *a, size_t mode)
{
    json_t *list = json_array();
    onv_fault_info f;
    for (size_t i = 0; onv_analysis_replay_fault(a, mode, i, &f); i++) {
        json_t *row = json_object();
        put_text(row, "kind", f.kind);
        put_u64(row, "step", f.step);
        put_u64(row, "offset", f.offset);
        put_text(row, "message", f.message);
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *steps(const onv_analysis *a, size_t mode, size_t n)
{
    static const char *const keys[] = {"predicted_bytes", "measured_bytes", "predicted_live_bytes",
                                       "measured_live_bytes"};
    json_t *object = json_object(), *lists[4];
    onv_replay_step_info s;
    for (size_t i = 0; i < 4; i++) put(object, keys[i], lists[i] = json_array());
    for (size_t i = 0; onv_analysis_replay_step(a, mode, i, &s); i++) {
        json_array_append_new(lists[0], json_integer((json_int_t)s.predicted_bytes));
        json_array_append_new(lists[1], json_integer((json_int_t)s.measured_bytes));
        json_array_append_new(lists[2], json_integer((json_int_t)s.predicted_live_bytes));
        json_array_append_new(lists[3], json_integer((json_int_t)s.measured_live_bytes));
    }
    assert_int_equal(json_array_size(lists[0]), n);
    return object;
}

static json_t *mode(const onv_analysis *a, size_t index, const onv_replay_mode_info *m)
{
    json_t *row = json_object();
    put_text(row, "mode", m->mode);
    put_text(row, "runtime", m->runtime);
    if (m->plan != NULL) put_text(row, "plan", m->plan);
    put_u64(row, "predicted_bytes", m->predicted_bytes);
    put_u64(row, "measured_bytes", m->measured_bytes);
    put_u64(row, "tolerance_bytes", m->tolerance_bytes);
    put_u64(row, "granularity_bytes", m->granularity_bytes);
    put_u64(row, "most_allocations", m->most_allocations);
    put_u64(row, "predicted_live_bytes", m->predicted_live_bytes);
    put_u64(row, "measured_live_bytes", m->measured_live_bytes);
    put_u64(row, "buffers", m->buffers);
    put_u64(row, "checked_buffers", m->checked_buffers);
    put_bool(row, "agrees", m->agrees);
    put(row, "device_free_bytes",
        json_pack("{s:I, s:I, s:I}", "before", (json_int_t)m->free_before, "least",
                  (json_int_t)m->free_least, "after", (json_int_t)m->free_after));
    put_u64(row, "foreign_bytes", m->foreign_bytes);
    if (m->has_pool)
        put(row, "pool",
            json_pack("{s:I, s:I, s:I}", "used_peak_bytes", (json_int_t)m->pool_used_peak_bytes,
                      "reserved_peak_bytes", (json_int_t)m->pool_reserved_peak_bytes,
                      "predicted_reserved_peak_bytes",
                      (json_int_t)m->pool_predicted_reserved_peak_bytes));
    if (m->out_of_memory)
        put(row, "out_of_memory",
            json_pack("{s:I, s:I, s:I}", "step", (json_int_t)m->oom_step, "bytes",
                      (json_int_t)m->oom_bytes, "free_bytes", (json_int_t)m->oom_free_bytes));
    put_u64(row, "faults", m->faults);
    put(row, "first_faults", faults(a, index));
    put(row, "timeline", steps(a, index, m->steps));
    return row;
}

static json_t *max_batches(const onv_analysis *a)
{
    json_t *list = json_array();
    onv_replay_max_batch_info w;
    for (size_t i = 0; onv_analysis_replay_max_batch(a, i, &w); i++) {
        json_t *row = json_object();
        put_text(row, "mode", w.mode);
        put_text(row, "runtime", w.runtime);
        if (w.plan != NULL) put_text(row, "plan", w.plan);
        put_u64(row, "predicted", (uint64_t)w.predicted);
        put_u64(row, "measured", (uint64_t)w.measured);
        put_bool(row, "predicted_is_least", w.predicted_is_least);
        put_bool(row, "agrees", w.agrees);
        json_array_append_new(list, row);
    }
    return list;
}

void asked_add_replay(json_t *object, const onv_analysis *a)
{
    onv_replay_info r;
    onv_replay_mode_info m;
    if (!onv_analysis_replay(a, &r)) return;
    json_t *row = json_object(), *list = max_batches(a), *modes = json_array();
    put_text(row, "device", r.device);
    put_text(row, "backend", r.backend);
    put_bool(row, "is_gpu", r.is_gpu);
    put_u64(row, "predicted_bytes", r.predicted_bytes);
    put_u64(row, "measured_bytes", r.measured_bytes);
    put_bool(row, "agrees", r.agrees);
    put_u64(row, "device_total_bytes", r.device_total_bytes);
    put_size(row, "context_bytes", r.context_bytes);
    put_known(row, "driver_version", r.driver_version > 0, r.driver_version);
    put_text(row, "filled_by", r.filled_by);
    if (json_array_size(list) > 0) json_object_set(row, "max_batch", list);
    json_decref(list);
    for (size_t i = 0; onv_analysis_replay_mode(a, i, &m); i++)
        json_array_append_new(modes, mode(a, i, &m));
    put(row, "modes", modes);
    put(object, "replay", row);
}
