/* What is said while dims are free: what binds them, the formula of the peak, the command that asks for numbers, an example. */
#include <stdio.h>
#include <string.h>

#include "infer/infer.h"
#include "report/quoted.h"
#include "report/sections.h"
#include "report/value.h"

enum { MAX_OPEN_DIMS = 16, MAX_PIECES = 4 };

/* --- Free dims --------------------------------------------------------------------------------- */

const char *onv_binding_option(const onv_page *page, const onv_free_dim *dim, int64_t size)
{
    char number[24] = "N";
    if (size >= 0) snprintf(number, sizeof number, "%lld", (long long)size);
    if (dim->axis == 0) return onv_page_print(page, "--batch %s", number);
    const char *binding = onv_page_print(page, "%s=%s", dim->name, number);
    return onv_page_print(page, "--dim %s", onv_shell_word(page, binding));
}

static void write_dims(const onv_view *view, const onv_page *page)
{
    size_t count = view->infer.free_dims.count;
    onv_page_text(page, ONV_STYLE_WARN, "Free dimensions");
    onv_page_text(page, ONV_STYLE_PLAIN, ", bound by");
    onv_page_line(page);
    onv_table table = onv_table_of("8", "12", "16~");
    for (size_t i = 0; i < count && i < MAX_OPEN_DIMS; i++) {
        const onv_free_dim *dim = &view->infer.free_dims.at[i];
        onv_table_row(
            &table, dim->name, onv_binding_option(page, dim, -1),
            dim->input == NULL ? "" : onv_page_print(page, "axis %d of %s", dim->axis, dim->input));
    }
    onv_table_finish(&table, page);
    if (count > MAX_OPEN_DIMS)
        onv_write_format(page->out, "  and %s more\n", onv_label_count(count - MAX_OPEN_DIMS).text);
}

/* --- The formula ------------------------------------------------------------------------------- */

const char *onv_formula_text(const onv_view *view, const onv_page *page, onv_dim amount,
                             onv_label (*label)(uint64_t number))
{
    onv_dim_part parts[ONV_DIM_MAX_TERMS + 1];
    uint32_t n = onv_dim_parts(&view->model.dims, amount, parts);
    const char *times = onv_page_is_unicode(page) ? " × " : " * ", *text = "";
    for (uint32_t i = 0; i < n; i++) {
        bool is_negative = parts[i].coef < 0;
        uint64_t size = is_negative ? 0 - (uint64_t)parts[i].coef : (uint64_t)parts[i].coef;
        const char *sign = is_negative ? (i > 0 ? " - " : "-") : i > 0 ? " + " : "";
        text = onv_page_print(page, "%s%s%s", text, sign, label(size).text);
        onv_dim factors[ONV_DIM_MAX_TERMS];
        uint32_t n_factors = onv_dim_factors(&view->model.dims, parts[i].product, factors);
        for (uint32_t k = 0; k < n_factors; k++)
            text = onv_page_print(
                page, "%s%s%s", text, times,
                onv_page_kept(onv_dim_text(&view->model.dims, page->arena, factors[k])));
    }
    return text;
}

static void write_piece(const onv_view *view, const onv_page *page, const onv_piece *piece)
{
    const onv_node *node =
        onv_model_node(&view->model, view->live.timeline.steps.at[piece->step].node);
    const char *amount = onv_formula_text(view, page, piece->bytes, onv_label_bytes);
    const char *range = onv_range_text(view, page->arena, piece);
    onv_write_text(page->out, "  ");
    onv_page_wrapped(page, amount, 2, 6);
    const char *where =
        onv_page_print(page, "%s%sstep %lu, %s %s", range, range[0] != '\0' ? "; " : "",
                       (unsigned long)piece->step, node->op_type, onv_view_node_name(view, node));
    onv_write_text(page->out, "      ");
    onv_page_fitted(page, ONV_STYLE_DIM, where, page->width - 6);
    onv_page_line(page);
}

static void write_formula(const onv_view *view, const onv_page *page)
{
    const onv_formula *f = view->formula;
    onv_page_head(page, "Peak for any sizes");
    if (f->n_pieces == 0) {
        onv_write_text(page->out, ": ");
        onv_page_wrapped(page, onv_page_print(page, "no formula, as %s", f->why_not), 20, 2);
        return;
    }
    onv_page_text(page, ONV_STYLE_PLAIN,
                  f->n_pieces > 1 ? ", without the weights: the largest of"
                                  : ", without the weights");
    onv_page_line(page);
    for (uint32_t i = 0; i < f->n_pieces && i < MAX_PIECES; i++)
        write_piece(view, page, &f->pieces[i]);
    if (f->n_pieces > MAX_PIECES)
        onv_write_format(page->out, "  and %lu more: --formula, --formula=python, --formula=c\n",
                         (unsigned long)f->n_pieces - MAX_PIECES);
}

/* --- The command ------------------------------------------------------------------------------- */

/* The size of that dim in the example. */
static int64_t size_in(const onv_view *example, const char *name)
{
    for (size_t i = 0; example != NULL && i < example->infer.bounds.count; i++)
        if (strcmp(example->infer.bounds.at[i].name, name) == 0)
            return example->infer.bounds.at[i].size;
    return -1;
}

/* A word of the command; what does not fit the line begins the next one, as a shell takes it. */
static void write_word(const onv_page *page, const char *word, size_t *at)
{
    size_t columns = onv_clean_columns(word, page->mode);
    if (*at + 1 + columns + 2 > page->width) {
        onv_write_text(page->out, " \\\n     ");
        *at = 5;
    }
    onv_write_char(page->out, ' ');
    onv_page_put(page, word);
    *at += 1 + columns;
}

/* What was bound already; a batch that the export fixed has no name of its own. */
static const char *given_option(const onv_view *view, const onv_page *page, const onv_bound *bound)
{
    bool is_batch = strcmp(bound->name, "batch") == 0;
    if (bound->size >= 0 && is_batch)
        return onv_page_print(page, "--batch %lld", (long long)bound->size);
    if (bound->size >= 0)
        return onv_page_print(page, "--dim %s",
                              onv_shell_word(page, onv_page_print(page, "%s=%lld", bound->name,
                                                                  (long long)bound->size)));
    onv_value_id input = onv_view_bound_input(view, bound);
    const char *shape =
        !onv_is_value(input)
            ? "?"
            : onv_page_kept(onv_view_shape(view, page->arena, input, ONV_CLEAN_ASCII));
    return onv_page_print(page, "--shape %s",
                          onv_shell_word(page, onv_page_print(page, "%s=%s", bound->name, shape)));
}

/* Never cut: it is to be copied. */
static void write_command(const onv_view *view, const onv_page *page)
{
    const char *path = view->model.path != NULL ? view->model.path : "-";
    size_t at = 10;
    onv_page_head(page, "To size it, with the sizes that you need");
    onv_write_text(page->out, "\n  onnxvram");
    write_word(page, onv_shell_word(page, path), &at);
    for (size_t i = 0; i < view->infer.bounds.count; i++)
        write_word(page, given_option(view, page, &view->infer.bounds.at[i]), &at);
    for (size_t i = 0; i < view->infer.free_dims.count; i++) {
        const onv_free_dim *dim = &view->infer.free_dims.at[i];
        write_word(page, onv_binding_option(page, dim, size_in(view->example, dim->name)), &at);
    }
    onv_page_line(page);
}

void onv_write_open(const onv_view *view, const onv_page *page)
{
    if (view->infer.free_dims.count == 0) return;
    onv_page_line(page);
    write_dims(view, page);
    if (view->live.unknown == 0) return;
    write_formula(view, page);
    write_command(view, page);
}

const char *onv_sizes_text(const onv_view *example, const onv_page *page)
{
    const char *text = "";
    for (size_t i = 0; i < example->infer.bounds.count; i++) {
        const onv_bound *bound = &example->infer.bounds.at[i];
        if (bound->size < 0) continue;
        text = onv_page_print(page, "%s, %s = %lld", text, bound->name, (long long)bound->size);
    }
    return text;
}

void onv_write_example_title(const onv_view *example, const onv_page *page)
{
    onv_page_line(page);
    onv_page_text(page, ONV_STYLE_WARN, "An example");
    onv_page_wrapped(page, onv_sizes_text(example, page), 10, 2);
}

/* --- JSON -------------------------------------------------------------------------------------- */

static void put_free_dims(onv_json *json, const onv_view *view)
{
    ONV_JSON_ROWS(json, "free_dims", i, view->infer.free_dims.count, INLINE) {
        const onv_free_dim *dim = &view->infer.free_dims.at[i];
        const char *past, *sequence;
        ONV_JSON_FIELDS(json, dim, name, input);
        onv_json_key(json, "axis");
        onv_json_i64(json, dim->axis);
        const onv_page page = {.arena = json->scratch};
        onv_json_put_string(json, "option", onv_binding_option(&page, dim, -1));
        if (onv_infer_is_total(&view->infer, dim->name, &past, &sequence)) {
            onv_json_put_open(json, "sum_of", '[', ONV_JSON_INLINE);
            onv_json_string(json, past);
            onv_json_string(json, sequence);
            onv_json_close(json);
        }
    }
}

static void put_dim(onv_json *json, const onv_view *view, const char *key, onv_dim d)
{
    onv_json_key(json, key);
    onv_json_dim(json, &view->model.dims, d);
}

typedef struct postfix {
    onv_json *json;
    const onv_view *view;
    bool is_free; /* every symbol is a free dim */
} postfix;

/* The free dim that is the symbol; their number: none is. */
static size_t free_index(const onv_view *view, onv_dim symbol)
{
    const char *name = onv_dim_symbol_name(&view->model.dims, symbol);
    size_t i = 0;
    while (i < view->infer.free_dims.count && strcmp(view->infer.free_dims.at[i].name, name) != 0)
        i++;
    return i;
}

static void put_op(void *context, onv_dim_op op, onv_dim d)
{
    static const char *const names[] = {
        [ONV_DIM_OP_ADD] = "+",    [ONV_DIM_OP_MULTIPLY] = "*", [ONV_DIM_OP_FLOOR_DIVIDE] = "//",
        [ONV_DIM_OP_MODULO] = "%", [ONV_DIM_OP_MIN] = "min",    [ONV_DIM_OP_MAX] = "max"};
    const postfix *p = context;
    const onv_view *view = p->view;
    if (op == ONV_DIM_OP_NUMBER) {
        onv_json_i64(p->json, d.raw);
    } else if (op == ONV_DIM_OP_SYMBOL) {
        onv_json_open(p->json, '[', ONV_JSON_INLINE);
        onv_json_u64(p->json, free_index(view, d));
        onv_json_close(p->json);
    } else {
        onv_json_string(p->json, names[op]);
    }
}

static void find_free(void *context, onv_dim symbol)
{
    postfix *p = context;
    p->is_free &= free_index(p->view, symbol) < p->view->infer.free_dims.count;
}

/* The expression in postfix order, for programs: numbers, indices of free_dims in brackets, operators. Absent where it has other
 * symbols. */
static void put_postfix(onv_json *json, const onv_view *view, onv_dim d)
{
    postfix p = {json, view, onv_dim_is_const(d) || onv_dim_is_expr(d)};
    onv_dim_each_symbol(&view->model.dims, d, find_free, &p);
    if (!p.is_free) return;
    ONV_JSON_LIST(json, "postfix", INLINE) onv_dim_each_op(&view->model.dims, d, put_op, &p);
}

static void put_piece(onv_json *json, const onv_view *view, const onv_piece *piece)
{
    put_dim(json, view, "bytes", piece->bytes);
    put_postfix(json, view, piece->bytes);
    onv_json_put_u64(json, "step", piece->step);
    if (onv_dim_is_known(piece->decided_by)) {
        put_dim(json, view, "decided_by", piece->decided_by);
        onv_json_put_u64(json, "from", (uint64_t)piece->from);
        onv_json_put_known(json, "until", piece->until != INT64_MAX, (uint64_t)piece->until);
    }
}

/* What runtimes hold, from analyses at points. */
static void put_sampled(onv_json *json, const onv_view *view)
{
    const onv_sampled *s = &view->sampled;
    if (s->why_not != NULL) onv_json_put_string(json, "why_not", s->why_not);
    onv_json_put_u64(json, "analyses", s->n_points);
    ONV_JSON_ROWS(json, "for", i, s->n_dims, INLINE) {
        const onv_sampled_dim *d = &s->dims[i];
        onv_json_put_string(json, "name", d->name);
        onv_json_put_u64(json, "from", (uint64_t)(d->low * d->unit));
        onv_json_put_u64(json, "until", (uint64_t)(d->high * d->unit));
        onv_json_put_u64(json, "unit", (uint64_t)d->unit);
    }
    ONV_JSON_ROWS(json, "figures", i, s->why_not == NULL ? s->n_figures : 0, INLINE) {
        const onv_sampled_figure *of = &s->figures[i];
        onv_json_put_string(json, "runtime", of->name);
        onv_json_put_string(json, "end", of->is_upper ? "high" : "low");
        if (of->why_not != NULL) onv_json_put_string(json, "why_not", of->why_not);
        ONV_JSON_LIST(json, "tensor_bytes_largest_of", INLINE)
            for (uint32_t k = 0; k < of->n_pieces; k++)
                ONV_JSON_ROW(json, INLINE) {
                    put_dim(json, view, "bytes", of->pieces[k]);
                    put_postfix(json, view, of->pieces[k]);
                }
    }
}

static void put_formula(onv_json *json, const onv_view *view)
{
    const onv_formula *f = view->formula;
    onv_json_put_u64(json, "weight_bytes", view->live.weight_bytes);
    if (f->why_not != NULL) onv_json_put_string(json, "why_not", f->why_not);
    ONV_JSON_ROWS(json, "peak_bytes_largest_of", i, f->n_pieces, INLINE)
        put_piece(json, view, &f->pieces[i]);
    put_dim(json, view, "input_bytes", f->input_bytes);
    put_dim(json, view, "output_bytes", f->output_bytes);
    put_dim(json, view, "activation_bytes", f->activation_bytes);
    put_dim(json, view, "macs", f->macs);
    if (view->sampled.n_figures > 0)
        ONV_JSON_PART(json, "runtimes", LINES) put_sampled(json, view);
}

static void put_example(onv_json *json, const onv_view *view)
{
    const onv_view *example = view->example;
    const onv_live *live = &example->live;
    onv_json_write_bindings(json, example);
    onv_json_put_known(json, "macs", live->macs_known, live->macs);
    ONV_JSON_PART(json, "answer", LINES) onv_json_write_answer(json, example);
    ONV_JSON_PART(json, "peak", INLINE) onv_json_write_peak(json, example);
    onv_json_write_runtimes(json, example);
    onv_json_write_timelines(json, example, view);
}

void onv_json_write_open(onv_json *json, const onv_view *view)
{
    if (view->infer.free_dims.count == 0) return;
    put_free_dims(json, view);
    if (view->live.unknown == 0) return;
    ONV_JSON_PART(json, "formula", LINES) put_formula(json, view);
    if (view->example != NULL)
        ONV_JSON_PART(json, "example", LINES) put_example(json, view);
}
