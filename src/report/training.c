/* "training": what it needs, checkpointing plans, torch.compile. */
#include "program/view.h"
#include "report/sections.h"

/* What was asked for beside the usual. */
static void add_parts(onv_table *table, const onv_page *page, const onv_training *t)
{
    const onv_train_parts *parts = &t->figures.parts;
    const struct {
        const char *name;
        uint64_t bytes;
        const char *note;
    } rows[] = {
        {"quantized", parts->quantized_bytes, "of the parameters, with their scales"},
        {"master", parts->master_bytes, "float32 copies of parameters"},
        {"average", parts->ema_bytes, "of the parameters"},
        {"buckets", parts->bucket_bytes, "of DDP"},
        {"gathered", parts->gathered_bytes, "parameters of FSDP's units, at most"},
        {"reduced", parts->reduce_bytes, "gradients on their way through FSDP, at most"},
        {"on the host", parts->host_bytes, "state and copies, not in the peak"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].bytes > 0)
            onv_table_fact(table, page, rows[i].name, rows[i].bytes, rows[i].note);
}

static const char *peak_note(const onv_view *view, const onv_page *page)
{
    static const char *const phases[ONV_N_PHASES] = {"forward", "forward", "backward", "optimizer"};
    const onv_training *t = &view->training;
    if (!onv_is_node(t->figures.peak_node))
        return onv_page_print(page, "%s, %s", phases[t->figures.peak_phase], t->figures.peak_label);
    return onv_page_print(page, "%s of %s %s", phases[t->figures.peak_phase], t->figures.peak_label,
                          onv_model_node(t->model, t->figures.peak_node)->name);
}

/* What libraries take at the peak that they are a part of. */
static const char *workspace_note(const onv_view *view, const onv_page *page)
{
    const onv_training_figures *f = &view->training.figures;
    if (f->workspace_bytes == 0) return "blocks of 512 bytes and more";
    const char *where = onv_is_node(f->requested_peak_node)
                            ? onv_model_node(view->training.model, f->requested_peak_node)->name
                            : "";
    return onv_page_print(page, "%s: %s at %s %s", f->workspace_library,
                          onv_label_bytes(f->workspace_bytes).text, f->requested_peak_label, where);
}

/* Or why there is none. */
static void add_time(onv_table *table, const onv_page *page, const onv_time *time)
{
    if (time->refused != NULL)
        onv_table_row(table, "time", "", onv_page_print(page, "none: %s", time->refused));
    if (!onv_time_is_known(time)) return;
    onv_label label = onv_label_time(time->all.low, time->all.high, onv_page_dash(page));
    onv_table_row(table, "time", onv_page_label(page, label),
                  "a step, estimated by peaks of the GPU");
}

/* --- Checkpointing plans ----------------------------------------------------------------------- */

/* What the table shows beside what all have. */
typedef struct shown {
    bool time, moved, batches;
} shown;

static onv_table plan_table(shown has)
{
    onv_table table =
        onv_table_of("plan", "id", "> peak", "> reserved", "> saved", "> recomputed", "> overhead");
    if (has.time) onv_table_column(&table, "> time");
    onv_table_column(&table, "> segments");
    if (has.moved) onv_table_column(&table, "> moved");
    if (has.moved) onv_table_column(&table, "> on the host");
    onv_table_column(&table, "!");
    if (has.batches) onv_table_column(&table, "> max batch");
    return table;
}

static const char *verdict(const onv_training *t, uint32_t plan)
{
    if (plan != t->chosen || t->n_plans == 1) return "";
    return t->plan_fits ? "fits best" : "smallest";
}

static const char *overhead_text(const onv_page *page, const onv_training_plan *plan)
{
    if (plan->does.recomputed_macs < plan->pass_macs || plan->pass_macs == 0)
        return onv_page_label(page, onv_label_share(plan->does.recomputed_macs, plan->pass_macs));
    /* More than the passes themselves, where segments are nested. */
    return onv_page_print(page, "%.0f%%",
                          100.0 * (double)plan->does.recomputed_macs / (double)plan->pass_macs);
}

static bool moves(const onv_training_plan *plan)
{
    return plan->does.saves_on_cpu || plan->does.offload_until > 0;
}

const char *onv_plan_label(const onv_page *page, const onv_training_plan *plan)
{
    if (!plan->does.compiles) return plan->does.name;
    return onv_page_print(page, "%s, compile=%g", plan->does.name, plan->does.memory_budget);
}

/* Both ways, and what it takes there. */
static void add_moved(onv_table *table, const onv_page *page, const onv_training_plan *plan)
{
    uint64_t bytes = plan->figures.offloaded_bytes + plan->figures.returned_bytes;
    if (bytes < plan->figures.returned_bytes) bytes = UINT64_MAX;
    onv_table_add(table, onv_page_bytes(page, bytes));
    onv_table_add(table, onv_page_bytes(page, plan->figures.pinned_bytes));
}

static unsigned long long percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (unsigned long long)(100.0 * (double)part / (double)whole + 0.5);
}

/* What it adds to the time of a step: a share of either end. */
static const char *time_text(const onv_page *page, const onv_time *time)
{
    if (!onv_time_is_known(time)) return "?";
    unsigned long long low = percent(time->more.low, time->all.low - time->more.low);
    unsigned long long high = percent(time->more.high, time->all.high - time->more.high);
    if (low == high) return onv_page_print(page, "+%llu%%", low);
    return onv_page_print(page, "+%llu%s%llu%%", low < high ? low : high, onv_page_dash(page),
                          low < high ? high : low);
}

static void add_plan(onv_table *table, const onv_page *page, const onv_view *view, uint32_t index,
                     shown has)
{
    const onv_training *t = &view->training;
    const onv_training_plan *plan = &t->plans[index];
    const char *const cells[] = {
        onv_plan_label(page, plan),
        plan->id,
        onv_page_bytes(page, plan->figures.peak_bytes),
        plan->figures.held_ends[1] > 0
            ? onv_page_range(page, plan->figures.held_ends[0], plan->figures.held_ends[1])
            : onv_page_bytes(page, plan->figures.reserved_peak_bytes),
        onv_page_bytes(page, plan->figures.saved_activation_bytes),
        onv_page_label(page, onv_label_scaled(plan->does.recomputed_macs)),
        overhead_text(page, plan),
    };
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) onv_table_add(table, cells[i]);
    if (has.time) onv_table_add(table, time_text(page, &plan->figures.time));
    onv_table_add(table, onv_page_print(page, "%lu", (unsigned long)plan->does.n_segments));
    if (has.moved) add_moved(table, page, plan);
    onv_table_add(table, verdict(t, index));
    if (has.batches)
        onv_table_add(table, onv_batches_text(page, plan->max_batch, plan->max_batch_by_release));
}

/* Of a long front some points do, both ends and the chosen one among them. */
static bool is_shown(const onv_training *t, uint32_t index)
{
    enum { MOST = 7 };
    uint32_t first = index, end = index + 1;
    while (first > 0 && t->plans[first - 1].does.item == t->plans[index].does.item) first--;
    while (end < t->n_plans && t->plans[end].does.item == t->plans[index].does.item) end++;
    uint64_t n = end - first, at = index - first;
    if (n <= MOST || index == t->chosen || index == onv_training_knee(t) || at == n - 1)
        return true;
    /* The first one of each of MOST - 1 even parts. */
    return at == 0 || at * (MOST - 1) / (n - 1) != (at - 1) * (MOST - 1) / (n - 1);
}

/* Training as a whole chooses among plans that are made for that size. */
static void write_largest(const onv_view *view, const onv_page *page)
{
    const onv_largest_size *at = &view->training.largest;
    const char *what = view->fit.max_dim != NULL ? "size" : "batch";
    if (at->size == 0) return;
    onv_write_format(
        page->out, "  At the largest %s, %s, the plan is %s@%s: overhead %s, %lu segments\n", what,
        onv_label_count((uint64_t)at->size).text, at->name, at->id,
        onv_label_share(at->recomputed_macs, at->pass_macs).text, (unsigned long)at->n_segments);
}

/* Where no budget chooses. */
static void write_knee(const onv_training *t, const onv_page *page)
{
    uint32_t knee = t->chosen == ONV_NO_PLAN ? onv_training_knee(t) : ONV_NO_PLAN;
    if (knee == ONV_NO_PLAN) return;
    const onv_training_plan *plan = &t->plans[knee];
    onv_write_format(page->out,
                     "  Recommended: %s, %s reserved instead of %s for %s; below it a byte less "
                     "costs more.\n  --checkpoint %s --plan-out plan.py writes it.\n",
                     plan->id, onv_label_bytes(plan->figures.reserved_peak_bytes).text,
                     onv_label_bytes(t->figures.reserved_peak_bytes).text,
                     overhead_text(page, plan), plan->id);
}

static void write_plans(const onv_view *view, const onv_page *page)
{
    const onv_training *t = &view->training;
    shown has = {.batches = view->fit.has_max_batch};
    uint32_t hidden = 0;
    if (t->n_plans == 0) return;
    for (uint32_t i = 0; i < t->n_plans; i++) {
        has.moved |= moves(&t->plans[i]);
        has.time |= onv_time_is_known(&t->plans[i].figures.time);
    }
    onv_page_titled(page, "Checkpointing",
                    " (overhead: of forward + backward, which counts as two forwards%s)",
                    has.time ? "; time: of a step, an estimate" : "");
    onv_table table = plan_table(has);
    for (uint32_t i = 0; i < t->n_plans; i++) {
        if (page->verbose || is_shown(t, i))
            add_plan(&table, page, view, i, has);
        else
            hidden++;
    }
    onv_table_finish(&table, page);
    if (hidden > 0)
        onv_write_format(page->out, "  %u more between these: --verbose, --json\n",
                         (unsigned)hidden);
    write_knee(t, page);
    if (has.batches) write_largest(view, page);
}

/* --- torch.compile ----------------------------------------------------------------------------- */

static void write_compiled(const onv_training *t, const onv_page *page)
{
    const onv_compiled *c = t->compiled;
    if (c == NULL) return;
    onv_page_head(page, "torch.compile");
    if (c->budget < 1)
        onv_write_format(page->out, " with activation_memory_budget = %g", c->budget);
    onv_page_line(page);
    onv_table table = onv_table_of(ONV_FACTS);
    const char *note = onv_page_print(
        page, "saved for backward: %s of eager PyTorch's",
        onv_label_share(c->saved_activation_bytes, t->figures.saved_activation_bytes).text);
    onv_table_fact(&table, page, "activations", c->saved_activation_bytes, note);
    onv_table_fact(&table, page, "peak", c->peak_bytes, "of the eager step that keeps these");
    onv_table_finish(&table, page);
    if (c->recomputed_macs > 0)
        onv_write_format(page->out,
                         "  recomputes %s multiply-accumulates, %s of forward + backward\n",
                         onv_label_scaled(c->recomputed_macs).text,
                         onv_label_share(c->recomputed_macs, c->pass_macs).text);
}

/* What the figures rest on. */
static void write_assumptions(const onv_training *t, const onv_page *page)
{
    if (t->restored_norms > 0)
        onv_write_format(page->out,
                         "  %u batch norms that the export folded are counted as its notes say.\n",
                         (unsigned)t->restored_norms);
    if (t->reserve_bytes > 0)
        onv_write_format(page->out, "  cuDNN keeps %s for recurrent layers.\n",
                         onv_label_bytes(t->reserve_bytes).text);
    if (t->slow_attentions > 0)
        onv_write_format(page->out, "  Attention runs as separate operations; kernels keep less: "
                                    "--attention flash\n");
}

static bool compiles(const onv_training *t)
{
    return t->chosen != ONV_NO_PLAN && t->plans[t->chosen].does.compiles;
}

/* An ONNX file does not say requires_grad. */
static const char *parameters_note(const onv_training *t)
{
    if (t->is_unlisted) return "that operations read: the export lists none";
    bool trains_all = t->figures.gradient_bytes == t->figures.parameter_bytes;
    return trains_all && t->model->program == NULL ? "all trained: --freeze PATTERN freezes some"
                                                   : "";
}

void onv_write_training(const onv_view *view, const onv_page *page)
{
    const onv_training *t = &view->training;
    if (t->optimizer == NULL) return;
    onv_page_head(page, "Training");
    onv_write_format(page->out, " with %s in %s, loss: %s", t->optimizer->name,
                     compiles(t) ? "PyTorch under torch.compile" : "eager PyTorch", t->loss);
    if (t->chosen != ONV_NO_PLAN)
        onv_write_format(page->out, ", checkpoints: %s",
                         onv_plan_label(page, &t->plans[t->chosen]));
    if (t->world > 1) onv_write_format(page->out, ", one of %u devices", t->world);
    if (t->zero_stage > 0) onv_write_format(page->out, ", ZeRO %u", t->zero_stage);
    onv_page_line(page);
    onv_table table = onv_table_of(ONV_FACTS);
    onv_table_fact(&table, page, "parameters", t->figures.parameter_bytes, parameters_note(t));
    onv_table_fact(&table, page, "buffers", t->figures.buffer_bytes,
                   "running statistics, constants");
    onv_table_fact(&table, page, "gradients", t->figures.gradient_bytes, "");
    onv_table_fact(&table, page, "optimizer", t->figures.optimizer_bytes, "state");
    add_parts(&table, page, t);
    onv_table_fact(&table, page, "activations", t->figures.saved_activation_bytes,
                   "saved for backward");
    onv_table_fact(&table, page, "peak", t->figures.peak_bytes, peak_note(view, page));
    onv_table_fact(&table, page, "allocated", t->figures.allocated_peak_bytes,
                   workspace_note(view, page));
    if (t->figures.first_peak_bytes > 0)
        onv_table_fact(&table, page, "first", t->figures.first_peak_bytes,
                       "iteration: it tries the kernels of cuDNN");
    onv_table_fact(&table, page, "reserved", t->figures.reserved_peak_bytes,
                   "by PyTorch's caching allocator");
    add_time(&table, page, &t->figures.time);
    onv_table_finish(&table, page);
    if (t->figures.release.suffices)
        onv_write_format(page->out,
                         "  Within the budget PyTorch's allocator must return cached memory to the "
                         "device, %s in\n  these iterations, and request it again, which is "
                         "slower.\n",
                         onv_label_bytes(t->figures.release.returned_bytes).text);
    write_assumptions(t, page);
    write_plans(view, page);
    write_compiled(t, page);
    if (t->folded_norms == 0) return;
    onv_write_format(page->out,
                     "  The export folded batch norms into %u convolutions: training needs more "
                     "than\n  this. Export with training=TrainingMode.TRAINING.\n",
                     (unsigned)t->folded_norms);
}

/* --- JSON -------------------------------------------------------------------------------------- */

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

static void put_time(onv_json *json, const onv_time *time, bool is_plan)
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
        ONV_JSON_PART(json, "time", INLINE) put_time(json, time, is_plan);
}

static void put_plan(onv_json *json, const onv_training *t, uint32_t index, uint32_t knee)
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
    if (moves(plan)) {
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

static void put_largest(onv_json *json, const onv_largest_size *at)
{
    onv_json_put_u64(json, "size", (uint64_t)at->size);
    onv_json_put_string(json, "plan", at->name);
    onv_json_put_string(json, "id", at->id);
    onv_json_put_u64(json, "recompute_macs", at->recomputed_macs);
    onv_json_put_ratio(json, "overhead", at->recomputed_macs, at->pass_macs);
    onv_json_put_u64(json, "segments", at->n_segments);
}

/* What was asked for beside the usual. */
static void put_training_parts(onv_json *json, const onv_training *t)
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

static void put_compiled(onv_json *json, const onv_model *model, const onv_compiled *c)
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

static void put_unit(onv_json *json, const onv_model *model, const onv_unit_list *list, uint32_t u)
{
    const onv_chain_unit *unit = &list->chain.units[u];
    const onv_listed_unit *named = &list->units[u];
    if (onv_is_node(named->node))
        onv_json_put_string(json, "node", onv_model_node(model, named->node)->name);
    ONV_JSON_FIELDS(json, named, operation, macs);
    ONV_JSON_FIELDS(json, unit, forward_bytes, passing_bytes, own_bytes, backward_bytes);
    onv_json_put_u64(json, "beside_bytes", list->chain.turn_bytes[u]);
}

static void put_readers(onv_json *json, const onv_chain_tensor *tensor, const char *key, bool save)
{
    ONV_JSON_LIST(json, key, INLINE) {
        for (uint32_t i = 0; i < tensor->n_readers; i++)
            if (!save || tensor->readers[i].saves) onv_json_u64(json, tensor->readers[i].unit);
        if (save && tensor->saved_by_maker) onv_json_u64(json, tensor->maker);
    }
}

/* What plans are made of: chain.h. */
static void put_units(onv_json *json, const onv_model *model, const onv_unit_list *list)
{
    onv_json_put_u64(json, "beside_bytes", list->chain.turn_bytes[list->chain.n_units]);
    ONV_JSON_ROWS(json, "units", u, list->chain.n_units, INLINE) put_unit(json, model, list, u);
    ONV_JSON_ROWS(json, "tensors", i, list->chain.n_tensors, INLINE) {
        const onv_chain_tensor *tensor = &list->chain.tensors[i];
        onv_json_put_u64(json, "bytes", tensor->bytes);
        onv_json_put_u64(json, "made_by", tensor->maker);
        put_readers(json, tensor, "read_by", false);
        put_readers(json, tensor, "saved_by", true);
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
    put_training_parts(json, t);
    if (t->n_plans > 0) {
        onv_json_put_u64(json, "forward_macs", t->figures.forward_macs);
        ONV_JSON_ROWS(json, "plans", i, t->n_plans, LINES)
            put_plan(json, t, i, onv_training_knee(t));
    }
    if (t->largest.size > 0)
        ONV_JSON_PART(json, "largest", LINES) put_largest(json, &t->largest);
    if (t->units != NULL)
        ONV_JSON_PART(json, "chain", LINES) put_units(json, t->model, t->units);
    if (t->compiled != NULL)
        ONV_JSON_PART(json, "compile", LINES) put_compiled(json, t->model, t->compiled);
}
