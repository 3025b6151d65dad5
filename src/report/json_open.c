/* What the JSON report says while dims are free. */
#include <string.h>

#include "infer/infer.h"
#include "report/json_parts.h"
#include "report/text.h"

static void write_free_dims(onv_json *json, const onv_view *view)
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
        const char *name = onv_dim_symbol_name(&view->model.dims, d);
        uint32_t i = 0;
        while (strcmp(view->infer.free_dims.at[i].name, name) != 0) i++;
        onv_json_open(p->json, '[', ONV_JSON_INLINE);
        onv_json_u64(p->json, i);
        onv_json_close(p->json);
    } else {
        onv_json_string(p->json, names[op]);
    }
}

static void find_free(void *context, onv_dim symbol)
{
    postfix *p = context;
    const onv_view *view = p->view;
    const char *name = onv_dim_symbol_name(&view->model.dims, symbol);
    bool is_found = false;
    for (size_t i = 0; i < view->infer.free_dims.count && !is_found; i++)
        is_found = strcmp(view->infer.free_dims.at[i].name, name) == 0;
    p->is_free = p->is_free && is_found;
}

/* The expression for programs: numbers, indices of free_dims in brackets, operations on what stands
 * before. Absent where it holds more than those. */
static void put_postfix(onv_json *json, const onv_view *view, onv_dim d)
{
    postfix p = {json, view, onv_dim_is_const(d) || onv_dim_is_expr(d)};
    onv_dim_each_symbol(&view->model.dims, d, find_free, &p);
    if (!p.is_free) return;
    ONV_JSON_LIST(json, "postfix", INLINE) onv_dim_each_op(&view->model.dims, d, put_op, &p);
}

static void write_piece(onv_json *json, const onv_view *view, const onv_piece *piece)
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
static void write_sampled(onv_json *json, const onv_view *view)
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

static void write_formula(onv_json *json, const onv_view *view)
{
    const onv_formula *f = view->formula;
    onv_json_put_u64(json, "weight_bytes", view->live.weight_bytes);
    if (f->why_not != NULL) onv_json_put_string(json, "why_not", f->why_not);
    ONV_JSON_ROWS(json, "peak_bytes_largest_of", i, f->n_pieces, INLINE)
        write_piece(json, view, &f->pieces[i]);
    put_dim(json, view, "input_bytes", f->input_bytes);
    put_dim(json, view, "output_bytes", f->output_bytes);
    put_dim(json, view, "activation_bytes", f->activation_bytes);
    put_dim(json, view, "macs", f->macs);
    if (view->sampled.n_figures > 0)
        ONV_JSON_PART(json, "runtimes", LINES) write_sampled(json, view);
}

static void write_example(onv_json *json, const onv_view *view)
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
    write_free_dims(json, view);
    if (view->live.unknown == 0) return;
    ONV_JSON_PART(json, "formula", LINES) write_formula(json, view);
    if (view->example != NULL)
        ONV_JSON_PART(json, "example", LINES) write_example(json, view);
}
