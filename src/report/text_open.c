/* What the text report says while dims are free: what binds them, the formula of the peak, and the command
 * that asks for numbers. */
#include <stdio.h>
#include <string.h>

#include "report/quoted.h"
#include "report/text.h"
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
