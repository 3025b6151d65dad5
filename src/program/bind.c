/* Symbols of a program become sizes. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "program/view.h"

/* A bound beyond this is none: torch.export writes the largest number of a type where it knows nothing. */
#define ONV_MOST_BOUND ((int64_t)1 << 40)

typedef struct binder {
    onv_model *view;
    onv_dim *sizes; /* by symbol */
    bool *is_bound; /* likewise: its size is a bound */
    bool uses_bound;
    onv_error *err;
} binder;

static void note_bound(void *context, onv_dim symbol)
{
    binder *b = context;
    b->uses_bound |= b->is_bound[onv_dim_symbol_index(&b->view->dims, symbol)];
}

static onv_dim bound(binder *b, onv_dim d)
{
    if (!onv_dim_is_expr(d)) return d;
    onv_dim_each_symbol(&b->view->dims, d, note_bound, b);
    return onv_dim_eval(&b->view->dims, d, b->sizes);
}

static bool has_symbols(const onv_dim *dims, uint32_t n)
{
    for (uint32_t i = 0; dims != NULL && i < n; i++)
        if (onv_dim_is_expr(dims[i])) return true;
    return false;
}

static onv_status bind_list(binder *b, const onv_dim **dims, uint32_t n)
{
    if (!has_symbols(*dims, n)) return ONV_OK;
    onv_dim *made = ONV_ARENA_ARRAY(&b->view->arena, onv_dim, n);
    if (made == NULL) return onv_fail_memory(b->err);
    ONV_WORK(n);
    for (uint32_t i = 0; i < n; i++) made[i] = bound(b, (*dims)[i]);
    *dims = made;
    return ONV_OK;
}

static onv_status bind_value(binder *b, onv_program_value *from, onv_value *value)
{
    b->uses_bound = false;
    ONV_TRY(bind_list(b, &from->dims, from->rank));
    value->bound_used = b->uses_bound;
    ONV_TRY(bind_list(b, &from->strides, from->rank));
    from->offset = bound(b, from->offset);
    value->type.dims = from->dims;
    for (uint32_t i = 0; i < from->rank; i++)
        if (onv_dim_is_const(from->dims[i]) && from->dims[i].raw < 0)
            return onv_fail(b->err, ONV_ERR_USAGE,
                            "with these sizes dimension %u of '%.100s' would be %" PRId64
                            ": the program was not exported for them",
                            i, value->name, from->dims[i].raw);
    return ONV_OK;
}

static bool argument_has_symbols(const onv_argument *a)
{
    if (a->kind == ONV_ARGUMENT_INT) return onv_dim_is_expr(a->number);
    return a->kind == ONV_ARGUMENT_INTS && has_symbols(a->numbers, a->count);
}

static onv_status bind_call(binder *b, onv_program_call *call)
{
    bool any = false;
    for (uint32_t i = 0; i < call->n_arguments; i++)
        any |= argument_has_symbols(&call->arguments[i]);
    if (!any) return ONV_OK;
    onv_argument *arguments =
        onv_arena_copy(&b->view->arena, call->arguments, call->n_arguments * sizeof *arguments);
    if (arguments == NULL) return onv_fail_memory(b->err);
    call->arguments = arguments;
    for (uint32_t i = 0; i < call->n_arguments; i++) {
        onv_argument *a = &arguments[i];
        if (a->kind == ONV_ARGUMENT_INT) a->number = bound(b, a->number);
        if (a->kind == ONV_ARGUMENT_INTS) ONV_TRY(bind_list(b, &a->numbers, a->count));
    }
    return ONV_OK;
}

/* The sizes that were given, and bounds of those that only data decides. A lower end of 2 is torch.export's own: it treats 0 and 1
 * apart, and the calls are the same. */
static onv_status take_sizes(binder *b, const onv_program *p, const onv_dim *sizes)
{
    uint32_t n = b->view->dims.n_symbols;
    b->sizes = ONV_ARENA_ARRAY(&b->view->arena, onv_dim, n);
    b->is_bound = ONV_ARENA_ARRAY(&b->view->arena, bool, n);
    if (b->sizes == NULL || b->is_bound == NULL) return onv_fail_memory(b->err);
    for (uint32_t i = 0; i < n; i++) {
        const onv_program_symbol *symbol = &p->symbols.at[i];
        b->sizes[i] = i < p->symbols.count ? sizes[i] : onv_dim_symbol_at(&b->view->dims, i);
        if (i >= p->symbols.count) continue;
        int64_t size = sizes[i].raw;
        bool is_number = onv_dim_is_const(sizes[i]);
        if (is_number && (size > symbol->high || (size < symbol->low && symbol->low > 2)))
            onv_model_diag(b->view, ONV_WARNING, "program-range", NULL,
                           "the program was exported for %s from %" PRId64 " to %" PRId64
                           ", and is read with %" PRId64
                           ": export it with another range (dynamic_shapes) if it fails there",
                           symbol->name, symbol->low, symbol->high, size);
        if (is_number || !symbol->is_made || symbol->high > ONV_MOST_BOUND) continue;
        b->sizes[i] = onv_dim_const(symbol->high);
        b->is_bound[i] = true;
    }
    return ONV_OK;
}

onv_status onv_program_bind(onv_model *view, const onv_dim *sizes, onv_error *err)
{
    const onv_program *from = view->program;
    binder b = {.view = view, .err = err};
    if (from->symbols.count == 0) return ONV_OK;
    ONV_TRY(take_sizes(&b, from, sizes));
    onv_program *to = onv_arena_copy(&view->arena, from, sizeof *to);
    if (to == NULL) return onv_fail_memory(err);
    to->values.at =
        onv_arena_copy(&view->arena, from->values.at, from->values.count * sizeof *to->values.at);
    to->calls.at =
        onv_arena_copy(&view->arena, from->calls.at, from->calls.count * sizeof *to->calls.at);
    if (to->values.at == NULL || to->calls.at == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < to->values.count; i++)
        ONV_TRY(bind_value(&b, &to->values.at[i], &view->values.at[i]));
    for (size_t i = 0; i < to->calls.count; i++) ONV_TRY(bind_call(&b, &to->calls.at[i]));
    view->program = to;
    return view->dims.failed ? onv_fail_memory(err) : ONV_OK;
}
