#include "report/value.h"

#include <string.h>

#include "base/checked.h"

enum { SHORT_FACTORS = 10 }; /* columns */

const onv_buffer *onv_view_interval(const onv_view *view, onv_value_id id)
{
    uint32_t row = view->live.of_value[id.index];
    return row == UINT32_MAX ? NULL : &view->live.timeline.buffers.at[row];
}

bool onv_view_is_there(const onv_view *view, onv_value_id id)
{
    const onv_value *value = onv_model_value(&view->model, id);
    return !value->is_dropped && !onv_model_graph(&view->model, value->graph)->never_runs;
}

bool onv_view_bytes(const onv_view *view, onv_value_id id, uint64_t *bytes)
{
    const onv_buffer *interval = onv_view_interval(view, id);
    const onv_value *value = onv_model_value(&view->model, id);
    if (interval != NULL) {
        *bytes = interval->bytes;
        return interval->sized;
    }
    if (!onv_value_is_weight(value) || value->tensor == NULL) return false;
    *bytes = value->tensor->bytes;
    return true;
}

bool onv_view_is_bound(const onv_view *view, onv_value_id id)
{
    const onv_buffer *interval = onv_view_interval(view, id);
    return (interval != NULL && interval->bound) || onv_model_value(&view->model, id)->bound_used;
}

onv_tensor_kind onv_view_kind(const onv_view *view, onv_value_id id)
{
    const onv_value *value = onv_model_value(&view->model, id);
    bool top = value->graph.index == 0;
    if (value->kind == ONV_VALUE_INITIALIZER) return ONV_TENSOR_INITIALIZER;
    if (value->kind == ONV_VALUE_CONSTANT) return ONV_TENSOR_CONSTANT;
    if (value->kind == ONV_VALUE_INPUT && top) return ONV_TENSOR_INPUT;
    return value->is_output && top ? ONV_TENSOR_OUTPUT : ONV_TENSOR_ACTIVATION;
}

const char *onv_view_kind_name(const onv_view *view, onv_value_id id)
{
    static const char *const names[] = {"input", "output", "activation", "initializer", "constant"};
    return names[onv_view_kind(view, id)];
}

const char *onv_view_dtype(onv_arena *arena, const onv_type *type)
{
    const onv_type *held = onv_type_elements(type).type;
    const char *inner = held != NULL ? onv_view_dtype(arena, held) : "?";
    switch (type->kind) {
    case ONV_TYPE_TENSOR: return onv_dtype_name((onv_dtype)type->dtype);
    case ONV_TYPE_SPARSE_TENSOR:
        return onv_arena_printf(arena, "sparse(%s)", onv_dtype_name((onv_dtype)type->dtype));
    case ONV_TYPE_SEQUENCE: return onv_arena_printf(arena, "sequence(%s)", inner);
    case ONV_TYPE_OPTIONAL: return onv_arena_printf(arena, "optional(%s)", inner);
    case ONV_TYPE_MAP:
        return onv_arena_printf(arena, "map(%s, %s)", onv_dtype_name((onv_dtype)type->dtype),
                                inner);
    default: return "?";
    }
}

onv_dim onv_view_dim(const onv_view *view, onv_dim d)
{
    if (!onv_dim_has_bound(&view->model.dims, d)) return d;
    onv_dim upper = onv_dim_upper(&view->model.dims, d);
    return onv_dim_is_const(upper) ? upper : d;
}

/* The text of a dim, in parentheses where it is a sum or a product. */
static const char *dim_factor(const onv_view *view, onv_arena *arena, onv_dim d)
{
    const char *text = onv_dim_text(&view->model.dims, arena, d);
    if (text == NULL || onv_dim_is_const(d) || onv_dim_is_symbol(&view->model.dims, d) ||
        strchr(text, ' ') == NULL)
        return text;
    return onv_arena_printf(arena, "(%s)", text);
}

/* `parts` with `sign` between them. */
static const char *join(onv_arena *arena, const char *const *parts, uint32_t n, const char *sign)
{
    const char *text = n > 0 ? parts[0] : "";
    for (uint32_t i = 1; i < n && text != NULL; i++)
        text = parts[i] == NULL ? NULL : onv_arena_printf(arena, "%s%s%s", text, sign, parts[i]);
    return text;
}

onv_dim onv_view_value_dim(const onv_view *view, onv_value_id id, int axis)
{
    onv_dim d = onv_model_value(&view->model, id)->type.dims[axis];
    const onv_buffer *interval = onv_view_interval(view, id);
    return interval == NULL || interval->sized ? onv_view_dim(view, d) : d;
}

const char *onv_view_shape(const onv_view *view, onv_arena *arena, onv_value_id id,
                           onv_clean_mode mode)
{
    const onv_type *type = &onv_model_value(&view->model, id)->type;
    if (!onv_type_has_rank(type) || type->rank > ONV_MAX_RANK) return "?";
    if (type->rank == 0) return "scalar";
    const char *parts[ONV_MAX_RANK];
    bool only_numbers = true;
    for (int i = 0; i < type->rank; i++) {
        onv_dim d = onv_view_value_dim(view, id, i);
        only_numbers = only_numbers && onv_dim_is_const(d);
        parts[i] = dim_factor(view, arena, d);
    }
    /* An x would run into the letters of a name. */
    const char *sign = only_numbers ? "x" : mode == ONV_CLEAN_UNICODE ? "×" : " x ";
    return join(arena, parts, (uint32_t)type->rank, sign);
}

/* --- Sizes ------------------------------------------------------------------------------------- */

static void insert_factor(onv_growth *growth, onv_dim d)
{
    uint32_t at = growth->n++;
    for (; at > 0 && growth->factors[at - 1].raw > d.raw; at--)
        growth->factors[at] = growth->factors[at - 1];
    growth->factors[at] = d;
}

bool onv_growth_of(const onv_type *type, onv_growth *growth)
{
    *growth = (onv_growth){0};
    if (!onv_type_has_rank(type) || type->kind != ONV_TYPE_TENSOR || type->rank > ONV_MAX_RANK)
        return false;
    if (onv_dtype_bits((onv_dtype)type->dtype) == 0) return false;
    uint64_t elems = 1;
    for (int i = 0; i < type->rank; i++) {
        onv_dim d = type->dims[i];
        bool fits =
            onv_dim_is_const(d) && d.raw >= 0 && onv_u64_mul(elems, (uint64_t)d.raw, &elems);
        if (onv_dim_is_expr(d))
            insert_factor(growth, d);
        else if (!fits)
            return false;
    }
    return onv_dtype_bytes((onv_dtype)type->dtype, elems, &growth->coef);
}

const char *onv_view_factors(const onv_view *view, const onv_page *page, const onv_growth *growth)
{
    const char *parts[ONV_MAX_RANK];
    for (uint32_t i = 0; i < growth->n; i++)
        parts[i] = dim_factor(view, page->arena, growth->factors[i]);
    return join(page->arena, parts, growth->n, onv_page_is_unicode(page) ? " × " : " * ");
}

const char *onv_view_size(const onv_view *view, const onv_page *page, onv_value_id id)
{
    const char *times = onv_page_is_unicode(page) ? "×" : "*";
    uint64_t bytes;
    onv_growth growth;
    const char *bound = onv_view_is_bound(view, id) ? onv_page_at_most(page) : "";
    if (onv_view_bytes(view, id, &bytes))
        return onv_page_print(page, "%s%s", bound, onv_label_bytes(bytes).text);
    if (!onv_growth_of(&onv_model_value(&view->model, id)->type, &growth)) return "?";
    const char *factors = onv_view_factors(view, page, &growth);
    if (factors == NULL) return NULL;
    if (onv_clean_columns(factors, page->mode) > SHORT_FACTORS)
        factors = onv_page_is_unicode(page) ? "…" : "...";
    return onv_page_print(page, "%s%s %s %s", bound, onv_label_bytes(growth.coef).text, times,
                          factors);
}

const char *onv_view_node_name(const onv_view *view, const onv_node *node)
{
    if (node->name != NULL && node->name[0] != '\0') return node->name;
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (onv_is_value(node->outputs[i]))
            return onv_model_value(&view->model, node->outputs[i])->name;
    return "";
}

onv_value_id onv_view_bound_input(const onv_view *view, const onv_bound *bound)
{
    const onv_graph *graph = onv_model_graph(&view->model, (onv_graph_id){0});
    onv_value_id input = ONV_NO_VALUE;
    for (uint32_t i = 0; bound->size < 0 && i < graph->n_inputs; i++)
        if (strcmp(onv_model_value(&view->model, graph->inputs[i])->name, bound->name) == 0)
            input = graph->inputs[i];
    return input;
}
