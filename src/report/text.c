/* The default report: what a model needs, and why, for a reader at a terminal. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "program/view.h"
#include "report/sections.h"

enum {
    BAR_COLUMNS = 8,
    PEAK_ROWS = 12,
    NOMINAL_DIM = 64,
    LEAST_SHARE = 100 /* a hundredth of the peak */
};

/* --- The model --------------------------------------------------------------------------------- */

/* "batch = 256", or the whole shape where an input's was given. */
static const char *binding_text(const onv_view *view, const onv_page *page, const onv_bound *bound)
{
    if (bound->size >= 0)
        return onv_page_print(page, "%s = %lld", bound->name, (long long)bound->size);
    onv_value_id input = onv_view_bound_input(view, bound);
    if (!onv_is_value(input)) return bound->name;
    return onv_page_print(page, "%s = %s", bound->name,
                          onv_page_kept(onv_view_shape(view, page->arena, input, page->mode)));
}

static const char *opsets_text(const onv_view *view, const onv_page *page)
{
    const char *text = "";
    for (size_t i = 0; i < view->model.opsets.count && i < 8; i++) {
        const onv_opset *opset = &view->model.opsets.at[i];
        text = onv_page_print(page, "%s%s%s%s%d", text, i > 0 ? ", " : "", opset->domain,
                              opset->domain[0] != '\0' ? " " : "", (int)opset->version);
    }
    return text;
}

/* Another order than the file's, and what is proven of it. */
static void add_order(const onv_view *view, const onv_page *page, onv_table *table)
{
    const onv_order_result *order = &view->order;
    if (strcmp(order->name, "model") == 0) return;
    const char *text = order->name;
    if (order->proven)
        text = onv_page_print(page, "%s: no order has a lower peak", order->name);
    else if (order->has_bound)
        text = onv_page_print(page, "%s: no order has a peak below %s", order->name,
                              onv_label_bytes(order->lower_bound_bytes).text);
    onv_table_row(table, "order", text);
}

/* Of eager PyTorch, where the graph alone says what it runs. */
static void add_no_program(const onv_view *view, onv_table *table)
{
    static const char exporter[] = "pytorch";
    bool has_eager = onv_view_trains(view);
    for (size_t i = 0; i < view->n_runtimes; i++)
        has_eager |= strcmp(view->runtimes[i].runtime->name, "torch") == 0;
    if (!has_eager || strncmp(view->model.producer, exporter, sizeof exporter - 1) != 0) return;
    onv_table_add(table, "program");
    onv_table_add(table, "none: calls that the exporter removed or added are not seen");
}

/* The program that eager PyTorch runs, where that is not the model itself. */
static void add_program(const onv_view *view, const onv_page *page, onv_table *table)
{
    const onv_model *ran = NULL;
    if (onv_view_trains(view)) ran = view->training.model;
    for (size_t i = 0; i < view->n_runtimes && ran == NULL; i++)
        if (view->runtimes[i].model->program != NULL) ran = view->runtimes[i].model;
    if (ran == NULL || ran->program == NULL) {
        add_no_program(view, table);
        return;
    }
    onv_table_row(table, "program",
                  onv_page_print(page, "%s%s%s", ran == &view->model ? "" : ran->path,
                                 ran == &view->model ? "" : ": ",
                                 onv_program_source_text(ran->program)));
}

void onv_write_title(const onv_view *view, const onv_page *page)
{
    onv_page_fitted(page, ONV_STYLE_TITLE, onv_view_path(view), page->width);
    onv_page_line(page);
}

static void write_model(const onv_view *view, const onv_page *page)
{
    const onv_model *model = &view->model;
    const onv_live *live = &view->live;
    onv_page_title(page, "Model");
    onv_table table = onv_table_of("~", "20");
    if (model->producer[0] != '\0') onv_table_row(&table, "producer", model->producer);
    if (model->opsets.count > 0) onv_table_row(&table, "opset", opsets_text(view, page));
    add_program(view, page, &table);
    onv_table_row(&table, "nodes", onv_page_count(page, live->timeline.steps.count));
    onv_table_row(&table, "parameters", onv_page_count(page, live->weight_elems));
    onv_table_row(&table, "MACs", onv_macs_text(view, page));
    for (size_t i = 0; i < view->infer.bounds.count; i++)
        onv_table_row(&table, i == 0 ? "bound" : "",
                      binding_text(view, page, &view->infer.bounds.at[i]));
    add_order(view, page, &table);
    onv_table_finish(&table, page);
}

const char *onv_macs_text(const onv_view *view, const onv_page *page)
{
    onv_label macs = onv_label_scaled(view->live.macs);
    if (view->live.macs_known) return onv_page_label(page, macs);
    onv_dim_part parts[ONV_DIM_MAX_TERMS + 1];
    uint32_t n_parts = onv_dim_parts(&view->model.dims, view->formula->macs, parts);
    if (n_parts > 0 && n_parts < 3)
        return onv_formula_text(view, page, view->formula->macs, onv_label_scaled);
    if (view->example != NULL && view->example->live.macs_known)
        return onv_page_print(page, "%s in the example below",
                              onv_label_scaled(view->example->live.macs).text);
    if (view->live.macs == 0) return "?";
    return onv_page_print(page, "%s%s", onv_page_at_least(page), macs.text);
}

/* --- Memory ------------------------------------------------------------------------------------ */

static void write_memory(const onv_view *view, const onv_page *page, const onv_footprint *footprint)
{
    const onv_live *live = &view->live;
    onv_page_text(page, ONV_STYLE_TITLE, "Memory of the graph");
    onv_write_text(page->out, ", a lower bound: no allocator, libraries or context\n");
    onv_table table = onv_table_of(ONV_FACTS);
    const struct {
        const char *name, *note;
        onv_amount amount;
    } rows[] = {{"inputs", "", footprint->input},
                {"outputs", "", footprint->output},
                {"activations", "all node outputs together", footprint->activation},
                {"peak", "the most that is live at once", footprint->peak}};
    onv_table_fact(&table, page, "weights", live->weight_bytes, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        onv_table_row(&table, rows[i].name, onv_amount_text(footprint, page, rows[i].amount),
                      rows[i].note);
    onv_table_finish(&table, page);
}

/* --- The peak ---------------------------------------------------------------------------------- */

static void write_peak_title(const onv_view *view, const onv_page *page,
                             const onv_footprint *footprint)
{
    const onv_node *node =
        onv_model_node(&view->model, view->live.timeline.steps.at[footprint->peak_step].node);
    const char *amount = onv_amount_text(footprint, page, footprint->peak);
    const char *where =
        onv_page_print(page, " at step %lu of %lu, ", (unsigned long)footprint->peak_step,
                       (unsigned long)view->live.timeline.steps.count);
    onv_page_text(page, ONV_STYLE_TITLE, "Peak ");
    size_t used = 5 + onv_page_fitted(page, ONV_STYLE_PEAK, amount, page->width);
    used += onv_page_fitted(page, ONV_STYLE_PLAIN, where, page->width);
    if (used + 20 > page->width) {
        onv_page_line(page);
        onv_write_text(page->out, "  ");
        used = 2;
    }
    used += 1 + onv_page_fitted(page, ONV_STYLE_PLAIN, node->op_type, (page->width - used) / 2);
    onv_write_char(page->out, ' ');
    onv_page_name(page, ONV_STYLE_PLAIN, onv_view_node_name(view, node), page->width - used);
    onv_page_line(page);
}

static void add_peak_row(onv_table *table, const onv_view *view, const onv_page *page,
                         const onv_footprint *footprint, const onv_ranked *item, uint64_t whole)
{
    const onv_buffer *interval = &view->live.timeline.buffers.at[item->index];
    const onv_type *type = &onv_model_value(&view->model, interval->value)->type;
    const char *sign = interval->bound ? onv_page_at_most(page) : "";
    onv_table_row(table, onv_page_print(page, "%s%s", sign, onv_label_bytes(item->size).text),
                  onv_page_percent(page, item->size, whole),
                  onv_page_bar(page, item->size, footprint->peak_set[0].size, BAR_COLUMNS),
                  onv_view_dtype(page->arena, type),
                  onv_view_shape(view, page->arena, interval->value, page->mode), interval->label);
}

/* How many rows are worth showing: large ones, a few in any case, and never all but one. */
static uint32_t count_shown(const onv_footprint *footprint, uint64_t whole)
{
    uint32_t n = footprint->n_peak_set, shown = 0;
    while (shown < n && shown < PEAK_ROWS &&
           (shown < 3 || footprint->peak_set[shown].size >= whole / LEAST_SHARE))
        shown++;
    return shown + 1 == n ? n : shown;
}

static void write_peak(const onv_view *view, const onv_page *page, const onv_footprint *footprint)
{
    bool in_units = footprint->measure == ONV_MEASURE_UNITS;
    uint64_t whole = in_units ? footprint->peak.units : footprint->peak.fixed;
    write_peak_title(view, page, footprint);
    uint32_t shown = page->verbose ? footprint->n_peak_set : count_shown(footprint, whole);
    onv_table table = onv_table_of(">", ">", "#", "~", "12", "12*");
    uint64_t rest = whole;
    for (uint32_t i = 0; i < shown; i++) {
        rest -= footprint->peak_set[i].size;
        add_peak_row(&table, view, page, footprint, &footprint->peak_set[i], whole);
    }
    onv_table_finish(&table, page);
    if (shown < footprint->n_peak_set)
        onv_write_format(page->out, "  and %s more, %s\n",
                         onv_label_count(footprint->n_peak_set - shown).text,
                         onv_label_bytes(rest).text);
    if (in_units && footprint->peak.fixed > 0)
        onv_write_format(page->out, "  and %s that are fixed\n",
                         onv_label_bytes(footprint->peak.fixed).text);
}

/* --- Memory over time -------------------------------------------------------------------------- */

static const char *level_text(const onv_page *page, uint64_t bytes, uint64_t peak)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const signs[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
    unsigned level = onv_scale_share(bytes, peak, 8);
    if (level == 0 && bytes > 0) level = 1;
    return onv_page_is_unicode(page) ? blocks[level] : signs[level];
}

const char *onv_levels_text(const onv_page *page, const uint64_t *bytes, uint32_t n,
                            uint32_t columns, uint64_t peak)
{
    if (columns > n) columns = n;
    char *line = onv_arena_alloc(page->arena, (size_t)columns * 3 + 1), *to = line;
    if (line == NULL) return NULL;
    for (uint32_t c = 0; c < columns; c++) {
        /* Column c shows the steps [first, end): every step stands in one. */
        uint32_t end = (uint32_t)((uint64_t)(c + 1) * n / columns);
        uint64_t most = 0;
        for (uint32_t s = (uint32_t)((uint64_t)c * n / columns); s < end; s++)
            if (bytes[s] > most) most = bytes[s];
        to = stpcpy(to, level_text(page, most, peak));
    }
    while (to > line && to[-1] == ' ') to--;
    *to = '\0';
    return line;
}

/* The mark under the column of the peak; its label stands right of it, left where the page ends. */
static void write_mark(const onv_page *page, uint32_t column, uint32_t step)
{
    char label[32];
    size_t width = (size_t)snprintf(label, sizeof label, "step %lu", (unsigned long)step) + 1;
    bool fits = column + 1 + width <= page->width - 4;
    onv_write_text(page->out, "  ");
    for (size_t i = fits ? 0 : width; i < column; i++) onv_write_char(page->out, ' ');
    if (!fits) onv_write_format(page->out, "%s ", label);
    onv_page_text(page, ONV_STYLE_PEAK, "^");
    if (fits) onv_write_format(page->out, " %s", label);
    onv_page_line(page);
}

static void write_timeline(const onv_view *view, const onv_page *page,
                           const onv_footprint *footprint)
{
    uint32_t n = view->live.timeline.steps.count, columns = page->width - 4;
    if (columns > n) columns = n;
    uint32_t mark = (uint32_t)(((footprint->peak_step + UINT64_C(1)) * columns - 1) / n);
    uint64_t peak = footprint->steps[footprint->peak_step];
    const char *line = onv_levels_text(page, footprint->steps, n, columns, peak);
    if (line == NULL) return;
    onv_page_text(page, ONV_STYLE_TITLE, "Live memory over the steps");
    onv_write_text(page->out, "\n  ");
    onv_page_text(page, ONV_STYLE_BAR, line);
    onv_page_line(page);
    write_mark(page, mark, footprint->peak_step);
}

/* --- The largest tensors ----------------------------------------------------------------------- */

/* What values are ranked by: bytes, as if every free dim were NOMINAL_DIM. */
static uint64_t rank_size(const onv_view *view, onv_value_id id)
{
    uint64_t size;
    onv_growth growth;
    if (onv_view_bytes(view, id, &size)) return size;
    if (!onv_growth_of(&onv_model_value(&view->model, id)->type, &growth)) return 0;
    size = growth.coef;
    for (uint32_t i = 0; i < growth.n; i++)
        if (!onv_u64_mul(size, NOMINAL_DIM, &size)) return UINT64_MAX;
    return size;
}

static void write_largest(const onv_view *view, const onv_page *page, size_t top)
{
    size_t n_values = view->model.values.count, n = 0;
    onv_ranked *items = ONV_ARENA_ARRAY(page->arena, onv_ranked, n_values);
    if (items == NULL) return;
    for (uint32_t i = 0; i < n_values; i++) {
        if (!onv_view_is_there(view, (onv_value_id){i})) continue;
        uint64_t size = rank_size(view, (onv_value_id){i});
        if (size > 0) items[n++] = (onv_ranked){size, i};
    }
    onv_rank(items, n);
    if (n == 0) return;
    onv_page_head(page, "Largest tensors");
    if (view->live.unknown > 0 && view->infer.free_dims.count > 0)
        onv_write_format(page->out, ", in order as if every free dimension were %d", NOMINAL_DIM);
    onv_page_line(page);
    onv_table table = onv_table_of("> size", "> steps", "~ dtype", "12 shape", "12* name");
    for (size_t i = 0; i < n && i < top; i++) {
        onv_value_id id = {(uint32_t)items[i].index};
        const onv_value *value = onv_model_value(&view->model, id);
        const onv_buffer *interval = onv_view_interval(view, id);
        onv_table_row(&table, onv_view_size(view, page, id),
                      interval == NULL
                          ? "weight"
                          : onv_page_print(page, "%lu-%lu", (unsigned long)interval->first,
                                           (unsigned long)interval->last),
                      onv_view_dtype(page->arena, &value->type),
                      onv_view_shape(view, page->arena, id, page->mode), value->name);
    }
    onv_table_finish(&table, page);
}

/* --- All of it --------------------------------------------------------------------------------- */

static void write_quiet(const onv_view *view, const onv_page *page)
{
    onv_page_put(page, onv_view_path(view));
    onv_write_text(page->out, ": ");
    onv_write_answer_line(view, page);
    onv_write_growth_verdict(view, page);
    onv_write_replay_verdict(view, page);
    onv_write_text(page->out, "\n");
    onv_write_advice(view, page);
    onv_write_requests(view, page);
}

/* What a comment has room for: at most 25 lines. */
static void write_comment(const onv_view *view, const onv_page *page)
{
    enum { MOST_WARNINGS = 12 };
    onv_write_text(page->out, "### ");
    onv_write_title(view, page);
    onv_page_line(page);
    onv_write_answer_line(view, page);
    onv_page_line(page);
    onv_write_gate(view, page);
    for (uint32_t i = 0; i < view->answer.n_warnings && i < MOST_WARNINGS; i++)
        onv_write_format(page->out, "%s%s", i == 0 ? "\nWarnings: " : ", ",
                         view->answer.warnings[i]);
    if (view->answer.n_warnings > 0) onv_page_line(page);
}

/* What the sizes of tensors decide. Of these a summary has what a pull request is about. */
static void write_sizes(const onv_view *view, const onv_page *page, unsigned top)
{
    bool is_summary = onv_page_is_markdown(page);
    onv_footprint footprint;
    if (!onv_footprint_make(&footprint, view, page)) return;
    if (!is_summary) onv_page_line(page);
    write_memory(view, page, &footprint);
    onv_write_quantized(view, page);
    onv_write_kv_cache(view, page);
    /* While dims are free the peak of what has a size says nothing about the peak to come. */
    bool is_arbitrary =
        footprint.measure == ONV_MEASURE_AT_LEAST && view->infer.free_dims.count > 0;
    if (footprint.n_peak_set > 0 && !is_arbitrary && !is_summary) {
        onv_page_line(page);
        write_peak(view, page, &footprint);
        onv_page_line(page);
        write_timeline(view, page, &footprint);
    }
    onv_write_comparison_runtimes(view, page);
    onv_write_gate(view, page);
    onv_write_measured(view, page);
    if (!is_summary) {
        onv_write_advice(view, page);
        onv_write_replays(view, page);
        write_largest(view, page, top == 0 ? 10 : top);
        onv_write_global_savings(view, page);
    }
    onv_write_savings(view, page);
}

void onv_write_view(const onv_view *view, const onv_page *page, unsigned top)
{
    bool is_summary = onv_page_is_markdown(page);
    if (is_summary) onv_write_text(page->out, "### ");
    onv_write_title(view, page);
    onv_write_answer(view, page);
    onv_write_training(view, page);
    write_model(view, page);
    if (!is_summary) onv_write_open(view, page);
    if (view->example != NULL) onv_write_example_title(view->example, page);
    if (view->example != NULL) onv_write_answer(view->example, page);
    write_sizes(onv_view_sized(view), page, top);
    if (!is_summary) onv_write_requests(view, page);
    onv_write_notes(onv_view_sized(view), page);
}

onv_status onv_format_text_add(onv_report_job *job)
{
    const onv_page *page = &job->page;
    bool is_markdown = onv_page_is_markdown(page), is_quiet = job->options.verbosity < 0;
    if (is_quiet && !is_markdown) {
        write_quiet(job->views[0], page);
        return ONV_OK;
    }
    onv_write_between(job, is_markdown ? "\n" : "\n\n");
    if (is_quiet)
        write_comment(job->views[0], page);
    else
        onv_write_view(job->views[0], page, job->options.top);
    return job->expected > 1 && !is_markdown ? onv_compare(job) : ONV_OK;
}

onv_status onv_format_text_end(onv_report_job *job)
{
    if (job->compared.count > 1) onv_write_comparison(job);
    if (job->options.together != NULL) onv_write_together(job);
    return ONV_OK;
}
