/* Two models, the second one in place of the first: what changed, by module and by tensor.
 *
 * Modules are the same where their paths are, tensors where their names are. Where an exporter numbers its
 * names, a change moves the numbers, and tensors of one size stand on both sides: those are left out.
 * Cost: sorts the names of both.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "report/format.h"
#include "report/json.h"
#include "report/modules.h"
#include "report/sections.h"
#include "report/value.h"

/* Of the first model, and of the second. */
typedef struct onv_diff_row {
    const char *name;
    bool is_in[2];
    uint64_t bytes[2];  /* of modules: activations */
    uint64_t params[2]; /* elements; modules only */
} onv_diff_row;

typedef struct onv_diff {
    onv_diff_row *modules, *tensors; /* with a change, the largest first */
    uint32_t n_modules, n_tensors;
} onv_diff;

/* --- Matching ---------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const onv_diff_row *)a)->name, ((const onv_diff_row *)b)->name);
}

static uint64_t apart(const uint64_t of[2])
{
    return of[0] > of[1] ? of[0] - of[1] : of[1] - of[0];
}

static uint64_t change_of(const onv_diff_row *row)
{
    uint64_t bytes = apart(row->bytes), params = apart(row->params);
    return bytes > params ? bytes : params;
}

static int by_change(const void *a, const void *b)
{
    uint64_t x = change_of(a), y = change_of(b);
    return x != y ? (x > y ? -1 : 1) : by_name(a, b);
}

static bool has_changed(const onv_diff_row *row)
{
    return row->is_in[0] != row->is_in[1] || change_of(row) > 0;
}

/* Joins rows of one name; those without a change go. `rows` holds first those of the first model. */
static uint32_t join(onv_diff_row *rows, uint32_t n)
{
    uint32_t kept = 0;
    if (n > 1) qsort(rows, n, sizeof *rows, by_name);
    for (uint32_t i = 0; i < n;) {
        onv_diff_row row = rows[i++];
        for (; i < n && strcmp(rows[i].name, row.name) == 0; i++)
            for (int k = 0; k < 2; k++) {
                row.is_in[k] |= rows[i].is_in[k];
                row.bytes[k] += rows[i].bytes[k];
                row.params[k] += rows[i].params[k];
            }
        if (has_changed(&row)) rows[kept++] = row;
    }
    if (kept > 1) qsort(rows, kept, sizeof *rows, by_change);
    return kept;
}

/* --- Renamed tensors --------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const onv_diff_row *x = a, *y = b;
    uint64_t m = x->bytes[0] + x->bytes[1], n = y->bytes[0] + y->bytes[1];
    if (m != n) return m > n ? -1 : 1;
    if (x->is_in[0] != y->is_in[0]) return x->is_in[0] ? -1 : 1;
    return by_name(a, b);
}

/* Of those that stand on one side alone, as many of each size as stand on the other side too are the same
 * under another name. */
static uint32_t drop_renamed(onv_diff_row *rows, uint32_t n)
{
    uint32_t kept = 0;
    if (n > 1) qsort(rows, n, sizeof *rows, by_size);
    for (uint32_t i = 0, end; i < n; i = end) {
        uint64_t size = rows[i].bytes[0] + rows[i].bytes[1];
        uint32_t alone[2] = {0}; /* in the first, in the second */
        for (end = i; end < n && rows[end].bytes[0] + rows[end].bytes[1] == size; end++) {
            alone[0] += !rows[end].is_in[1];
            alone[1] += !rows[end].is_in[0];
        }
        uint32_t same = alone[0] < alone[1] ? alone[0] : alone[1], skip[2] = {same, same};
        for (uint32_t k = i; k < end; k++) {
            bool is_second = rows[k].is_in[1], is_alone = !rows[k].is_in[0] || !is_second;
            if (is_alone && skip[is_second] > 0)
                skip[is_second]--;
            else
                rows[kept++] = rows[k];
        }
    }
    if (kept > 1) qsort(rows, kept, sizeof *rows, by_change);
    return kept;
}

static onv_diff_row row_of(const char *name, bool is_after, uint64_t bytes, uint64_t params)
{
    onv_diff_row row = {.name = name};
    row.is_in[is_after] = true;
    row.bytes[is_after] = bytes;
    row.params[is_after] = params;
    return row;
}

static void add_tensors(const onv_view *view, bool is_after, onv_diff_row *rows, uint32_t *n)
{
    for (uint32_t i = 0; i < view->model.values.count; i++) {
        uint64_t bytes = 0;
        if (!onv_view_is_there(view, (onv_value_id){i})) continue;
        if (!onv_view_bytes(view, (onv_value_id){i}, &bytes)) bytes = 0;
        rows[(*n)++] = row_of(view->model.values.at[i].name, is_after, bytes, 0);
    }
}

/* --- Modules ----------------------------------------------------------------------------------- */

/* "encoder/layer.0/attention". */
static const char *path_of(onv_arena *arena, const onv_modules *modules, uint32_t at)
{
    const onv_module *module = &modules->list.at[at];
    if (module->depth == 0) return "";
    const char *above = path_of(arena, modules, module->parent); /* as deep as modules are */
    if (above == NULL || above[0] == '\0') return above == NULL ? NULL : module->name;
    return onv_arena_printf(arena, "%s/%s", above, module->name);
}

static bool add_modules(const onv_view *view, const onv_page *page, bool is_after,
                        onv_diff_row **rows, uint32_t *n)
{
    onv_modules modules;
    bool done = onv_modules_init(&modules, view, page, 0);
    onv_diff_row *more =
        done ? ONV_ARENA_ARRAY(page->arena, onv_diff_row, *n + modules.list.count) : NULL;
    if (more != NULL && *n > 0) memcpy(more, *rows, *n * sizeof *more);
    for (uint32_t i = 1; more != NULL && i < modules.list.count; i++) {
        const onv_module *module = &modules.list.at[i];
        const char *path = onv_page_kept(path_of(page->arena, &modules, i));
        more[(*n)++] = row_of(path, is_after, module->activation.fixed, module->params);
    }
    onv_modules_cleanup(&modules);
    *rows = more;
    return more != NULL && !page->arena->failed;
}

/* In the page's arena; false where memory is short. Sizes that are not known count as 0. */
static bool make_diff(onv_diff *diff, const onv_view *before, const onv_view *after,
                      const onv_page *page)
{
    *diff = (onv_diff){0};
    uint32_t n = 0;
    size_t most = before->model.values.count + after->model.values.count;
    diff->tensors = ONV_ARENA_ARRAY(page->arena, onv_diff_row, most);
    if (diff->tensors == NULL) return false;
    add_tensors(before, false, diff->tensors, &n);
    add_tensors(after, true, diff->tensors, &n);
    diff->n_tensors = drop_renamed(diff->tensors, join(diff->tensors, n));
    n = 0;
    if (!add_modules(before, page, false, &diff->modules, &n) ||
        !add_modules(after, page, true, &diff->modules, &n))
        return false;
    diff->n_modules = join(diff->modules, n);
    return true;
}

/* --- Text -------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 15 };

static void add_total(onv_table *table, const onv_page *page, const char *what, uint64_t before,
                      uint64_t after, onv_label (*label)(uint64_t))
{
    onv_table_row(table, what, onv_page_print(page, "%s", label(before).text),
                  onv_page_print(page, "%s", label(after).text),
                  onv_difference_text(page, before, after));
}

static void write_totals(const onv_view *a, const onv_view *b, const onv_page *page)
{
    onv_table table = onv_table_of("12", ">10 before", ">10 after", "> change");
    const onv_live *x = &a->live, *y = &b->live;
    add_total(&table, page, "nodes", x->timeline.steps.count, y->timeline.steps.count,
              onv_label_count);
    add_total(&table, page, "parameters", x->weight_elems, y->weight_elems, onv_label_count);
    add_total(&table, page, "MACs", x->macs, y->macs, onv_label_scaled);
    add_total(&table, page, "weights", x->weight_bytes, y->weight_bytes, onv_label_bytes);
    add_total(&table, page, "peak", x->peak_bytes, y->peak_bytes, onv_label_bytes);
    add_total(&table, page, "weights + peak", x->weight_bytes + x->peak_bytes,
              y->weight_bytes + y->peak_bytes, onv_label_bytes);
    /* The runtimes that are judged are the same: both models have the same options. */
    for (uint32_t i = 0; i < a->answer.n_rows && i < b->answer.n_rows; i++) {
        const onv_answer_row *before = &a->answer.rows[i], *after = &b->answer.rows[i];
        const char *what = onv_page_print(page, "%s reserves", before->runtime);
        add_total(&table, page, what, before->reserved.high, after->reserved.high, onv_label_bytes);
    }
    onv_table_finish(&table, page);
}

static const char *peak_node(const onv_view *view)
{
    const onv_live *live = &view->live;
    return onv_view_node_name(
        view, onv_model_node(&view->model, live->timeline.steps.at[live->peak_step].node));
}

static void write_peaks(const onv_view *a, const onv_view *b, const onv_page *page)
{
    onv_page_say(page, "peak: at step %lu, %s, before; at step %lu, %s",
                 (unsigned long)a->live.peak_step, peak_node(a), (unsigned long)b->live.peak_step,
                 peak_node(b));
}

static const char *change_text(const onv_page *page, const onv_diff_row *row, const uint64_t of[2])
{
    if (!row->is_in[0]) return "new";
    if (!row->is_in[1]) return "gone";
    return onv_difference_text(page, of[0], of[1]);
}

static void write_modules(const onv_diff *diff, const onv_page *page)
{
    if (diff->n_modules == 0) return;
    onv_page_title(page, "Modules that changed");
    onv_table table =
        onv_table_of("12* module", "> parameters", "> change", "> activations", "> change");
    for (uint32_t i = 0; i < diff->n_modules && i < MOST_ROWS; i++) {
        const onv_diff_row *row = &diff->modules[i];
        bool last = row->is_in[1];
        onv_table_row(&table, row->name, onv_page_count(page, row->params[last]),
                      change_text(page, row, row->params), onv_page_bytes(page, row->bytes[last]),
                      change_text(page, row, row->bytes));
    }
    onv_table_finish(&table, page);
}

static void write_tensors(const onv_diff *diff, const onv_page *page)
{
    if (diff->n_tensors == 0) return;
    onv_page_title(page, "Tensors that changed");
    onv_table table = onv_table_of("12", ">10 before", ">10 after", "> change");
    for (uint32_t i = 0; i < diff->n_tensors && i < MOST_ROWS; i++) {
        const onv_diff_row *row = &diff->tensors[i];
        onv_table_row(&table, row->name, row->is_in[0] ? onv_page_bytes(page, row->bytes[0]) : "",
                      row->is_in[1] ? onv_page_bytes(page, row->bytes[1]) : "",
                      change_text(page, row, row->bytes));
    }
    onv_table_finish(&table, page);
    if (diff->n_tensors > MOST_ROWS) {
        onv_page_item(page);
        onv_write_format(page->out, "and %s more\n",
                         onv_label_count(diff->n_tensors - MOST_ROWS).text);
    }
}

/* Which sizes an example has, where dims are free. */
static void write_sizes(const onv_view *a, const onv_view *b, const onv_page *page)
{
    const char *before = onv_sizes_text(a, page), *now = onv_sizes_text(b, page);
    if (strcmp(before, now) == 0)
        onv_page_say(page, "an example%s", now);
    else
        onv_page_say(page, "examples, before%s; now%s", before, now);
}

/* The two models as they are compared; *is_example: of usual sizes, as dims are free. */
static onv_status compare(const onv_report_job *job, const onv_view *both[2], bool *is_example,
                          onv_diff *diff)
{
    if (job->count != 2)
        return onv_fail(job->err, ONV_ERR_USAGE, "a diff is of two models, not of %zu", job->count);
    for (size_t i = 0; i < 2; i++) both[i] = onv_view_sized(job->views[i]);
    *is_example = both[0] != job->views[0] || both[1] != job->views[1];
    return make_diff(diff, both[0], both[1], &job->page) ? ONV_OK : onv_fail_memory(job->err);
}

onv_status onv_format_diff_write(onv_report_job *job)
{
    const onv_page *page = &job->page;
    const onv_view *both[2];
    bool is_example;
    onv_diff diff;
    ONV_TRY(compare(job, both, &is_example, &diff));
    onv_page_text(page, ONV_STYLE_TITLE, "Changes");
    const char *text =
        onv_page_print(page, " from %s to %s", onv_view_path(both[0]), onv_view_path(both[1]));
    onv_page_wrapped(page, text, 7, 2);
    if (is_example) write_sizes(both[0], both[1], page);
    write_totals(both[0], both[1], page);
    write_peaks(both[0], both[1], page);
    write_modules(&diff, page);
    write_tensors(&diff, page);
    return ONV_OK;
}

/* --- JSON -------------------------------------------------------------------------------------- */

static void put_rows(onv_json *json, const char *key, const onv_diff_row *rows, uint32_t n,
                     bool has_params)
{
    static const char *const bytes[] = {"bytes_before", "bytes_after"};
    static const char *const activations[] = {"activation_bytes_before", "activation_bytes_after"};
    static const char *const params[] = {"parameters_before", "parameters_after"};
    ONV_JSON_ROWS(json, key, i, n, INLINE) {
        const onv_diff_row *row = &rows[i];
        onv_json_put_string(json, "name", row->name);
        for (int k = 0; k < 2; k++)
            onv_json_put_known(json, has_params ? activations[k] : bytes[k], row->is_in[k],
                               row->bytes[k]);
        for (int k = 0; k < 2 && has_params; k++)
            onv_json_put_known(json, params[k], row->is_in[k], row->params[k]);
    }
}

onv_status onv_format_diff_json_write(onv_report_job *job)
{
    const onv_view *both[2];
    bool is_example;
    onv_diff diff;
    onv_json *json = &job->json;
    ONV_TRY(compare(job, both, &is_example, &diff));
    onv_json_open(json, '{', ONV_JSON_LINES);
    onv_json_put_u64(json, "schema_version", 1);
    onv_json_put_string(json, "before", both[0]->model.path);
    onv_json_put_string(json, "after", both[1]->model.path);
    onv_json_put_bool(json, "is_example", is_example);
    static const char *const keys[] = {"totals_before", "totals_after"};
    for (int i = 0; i < 2; i++) {
        const onv_live *live = &both[i]->live;
        onv_json_put_open(json, keys[i], '{', ONV_JSON_INLINE);
        onv_json_put_u64(json, "nodes", live->timeline.steps.count);
        onv_json_put_u64(json, "parameters", live->weight_elems);
        onv_json_put_known(json, "macs", live->macs_known, live->macs);
        onv_json_put_u64(json, "weight_bytes", live->weight_bytes);
        onv_json_put_known(json, "peak_bytes", live->unknown == 0, live->peak_bytes);
        for (size_t r = 0; r < both[i]->n_runtimes; r++)
            onv_json_put_u64(json, both[i]->runtimes[r].runtime->name,
                             both[i]->runtimes[r].held_bytes);
        onv_json_close(json);
    }
    put_rows(json, "modules", diff.modules, diff.n_modules, true);
    put_rows(json, "tensors", diff.tensors, diff.n_tensors, false);
    onv_json_close(json);
    return ONV_OK;
}
