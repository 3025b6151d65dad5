/* What training needs. */
#include "report/text.h"

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
static bool is_shown(const onv_training *t, uint32_t index, bool verbose)
{
    enum { MOST = 7 };
    uint32_t first = index, end = index + 1;
    while (first > 0 && t->plans[first - 1].does.item == t->plans[index].does.item) first--;
    while (end < t->n_plans && t->plans[end].does.item == t->plans[index].does.item) end++;
    uint64_t n = end - first, at = index - first;
    if (verbose || n <= MOST || index == t->chosen || index == onv_training_knee(t) || at == n - 1)
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
    uint64_t bytes = plan->figures.reserved_peak_bytes, plain = t->figures.reserved_peak_bytes;
    onv_write_format(page->out, "  Recommended: %s, %s reserved instead of ", plan->id,
                     onv_label_bytes(bytes).text);
    onv_write_format(page->out, "%s for %s; below it a byte less costs more.\n",
                     onv_label_bytes(plain).text, overhead_text(page, plan));
    onv_write_format(page->out, "  --checkpoint %s --plan-out plan.py writes it.\n", plan->id);
}

static void write_plans(const onv_view *view, const onv_page *page, bool verbose)
{
    const onv_training *t = &view->training;
    shown has = {.batches = view->fit.has_max_batch};
    uint32_t hidden = 0;
    if (t->n_plans == 0) return;
    onv_page_head(page, "Checkpointing");
    for (uint32_t i = 0; i < t->n_plans; i++) {
        has.moved |= moves(&t->plans[i]);
        has.time |= onv_time_is_known(&t->plans[i].figures.time);
    }
    onv_write_format(page->out,
                     " (overhead: of forward + backward, which counts as two forwards%s)\n",
                     has.time ? "; time: of a step, an estimate" : "");
    onv_table table = plan_table(has);
    for (uint32_t i = 0; i < t->n_plans; i++) {
        if (is_shown(t, i, verbose))
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

void onv_write_training(const onv_view *view, const onv_page *page, bool verbose)
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
    write_plans(view, page, verbose);
    write_compiled(t, page);
    if (t->folded_norms == 0) return;
    onv_write_format(page->out,
                     "  The export folded batch norms into %u convolutions: training needs more "
                     "than\n  this. Export with training=TrainingMode.TRAINING.\n",
                     (unsigned)t->folded_norms);
}
