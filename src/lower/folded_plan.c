/* Which constants are terms of parameters, and the sizes that they leave open. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "lower/folded_terms.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

#define UNKNOWN_RANK UINT32_MAX

/* --- What the file has of parameters ----------------------------------------------------------- */

static bool type_shape(const onv_type *type, onv_shape *shape)
{
    shape->rank = type->rank > 0 ? (uint32_t)type->rank : 0;
    if (shape->rank > ONV_MAX_RANK) return false;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (!onv_dim_is_const(type->dims[i]) || type->dims[i].raw <= 0) return false;
        shape->dims[i] = type->dims[i].raw;
    }
    return true;
}

/* A constant that is a view of all of a parameter, as a layer's weight that was turned. */
static size_t whole_of(const onv_lowering *l, const onv_value *value)
{
    static const char *const turns[] = {"t",       "transpose", "permute",
                                        "numpy_T", "unsqueeze", "view"};
    size_t listed = onv_has_made_up_name(value->name) ||
                            onv_is_call_of_any(value->name, turns, sizeof turns / sizeof turns[0])
                        ? onv_folded_only_name(l, value)
                        : SIZE_MAX;
    return listed != SIZE_MAX && l->signature.file_elems[listed] == 0 ? listed : SIZE_MAX;
}

static onv_status find_values(onv_lowering *l)
{
    for (uint32_t i = 0; i < l->emit.model->values.count; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        onv_shape shape;
        if (!onv_work(1)) return ONV_ERR_CANCELLED;
        if (value->tensor == NULL || value->graph.index != 0) continue;
        bool is_constant = value->role == ONV_ROLE_NOT_NOTED && value->folded_from != NULL &&
                           onv_dtype_is_float((onv_dtype)value->tensor->type.dtype) &&
                           !onv_has_made_up_name(value->name);
        if (is_constant && !onv_ptr_map_set(&l->folded.constants, value->name, i))
            return onv_fail_memory(l->emit.err);
        if (value->role != ONV_ROLE_NOT_NOTED) {
            if (!onv_ptr_map_set(&l->folded.leaf_values, value->name, i))
                return onv_fail_memory(l->emit.err);
            continue;
        }
        size_t listed = whole_of(l, value);
        if (listed == SIZE_MAX || l->folded.leaves[listed].rank != UNKNOWN_RANK ||
            !type_shape(&value->type, &shape) || shape.rank != 2)
            continue;
        l->folded.leaves[listed] = (onv_shape){2, {shape.dims[1], shape.dims[0]}};
        if (!onv_ptr_map_set(&l->folded.leaf_values, l->signature.names[listed], i))
            return onv_fail_memory(l->emit.err);
    }
    return ONV_OK;
}

bool onv_folded_leaf_shape(const onv_lowering *l, const char *name, onv_shape *shape)
{
    uint32_t value;
    size_t listed = onv_listed_find(l, name);
    if (listed != SIZE_MAX && l->folded.leaves[listed].rank != UNKNOWN_RANK) {
        *shape = l->folded.leaves[listed];
        return true;
    }
    return (onv_ptr_map_get(&l->folded.leaf_values, name, &value) ||
            onv_ptr_map_get(&l->folded.constants, name, &value)) &&
           type_shape(&l->emit.model->values.at[value].type, shape);
}

/* --- Terms ------------------------------------------------------------------------------------- */

static bool is_told(const onv_folded_plan *plan, const onv_term *term)
{
    for (uint32_t i = 0; i < term->shape.dims.rank; i++)
        if (onv_term_dim(plan, term->shape.dims.dims[i]) == 0) return false;
    return true;
}

static onv_shape shape_of(const onv_folded_plan *plan, const onv_term *term)
{
    onv_shape shape = {.rank = term->shape.dims.rank};
    for (uint32_t k = 0; k < shape.rank; k++)
        shape.dims[k] = onv_term_dim(plan, term->shape.dims.dims[k]);
    return shape;
}

/* The parameters of the term, as far as it tells their sizes, are those of other terms as well. */
static void note_leaves(onv_lowering *l, const onv_folded_plan *plan)
{
    for (uint32_t i = 0; i < plan->n_terms; i++) {
        const onv_term *term = &plan->terms[i];
        size_t listed = term->form == ONV_TERM_LEAF ? onv_listed_find(l, term->name) : SIZE_MAX;
        if (listed == SIZE_MAX) continue;
        l->signature.explained[listed] = true;
        if (l->folded.open_leaves[listed].rank == UNKNOWN_RANK && !term->shape.is_wild)
            l->folded.open_leaves[listed] = shape_of(plan, term);
        if (l->folded.leaves[listed].rank != UNKNOWN_RANK || plan->is_assumed ||
            !is_told(plan, term))
            continue;
        l->folded.leaves[listed] = shape_of(plan, term);
    }
}

/* The gain of a convolution that standardizes its weight by a batch norm. */
static bool is_of_norm(const onv_lowering *l, uint32_t value)
{
    const onv_weight_read *read = &l->weights.reads.at[l->values[value].first_read - 1];
    return strcmp(l->emit.model->nodes.at[read->node].op_type, "BatchNormalization") == 0;
}

onv_status onv_folded_plan_all(onv_lowering *l)
{
    l->folded.plans =
        ONV_ARENA_ARRAY(&l->emit.model->arena, onv_folded_plan *, l->emit.model->values.count);
    l->folded.leaves = ONV_ARENA_ARRAY(&l->emit.model->arena, onv_shape, l->signature.count);
    l->folded.open_leaves = ONV_ARENA_ARRAY(&l->emit.model->arena, onv_shape, l->signature.count);
    if (l->folded.plans == NULL || l->folded.leaves == NULL || l->folded.open_leaves == NULL)
        return onv_fail_memory(l->emit.err);
    for (size_t i = 0; i < l->signature.count; i++)
        l->folded.leaves[i].rank = l->folded.open_leaves[i].rank = UNKNOWN_RANK;
    ONV_TRY(find_values(l));
    onv_folded_count_parts(l);
    for (uint32_t round = 0; round < 2; round++) { /* what a later one tells */
        for (uint32_t i = 0; i < l->emit.model->values.count && l->emit.status == ONV_OK; i++) {
            if (l->emit.model->values.at[i].folded_from == NULL || l->values[i].first_read == 0 ||
                is_of_norm(l, i))
                continue;
            l->folded.plans[i] = onv_folded_solve(l, i);
            if (l->folded.plans[i] != NULL) note_leaves(l, l->folded.plans[i]);
        }
    }
    return l->emit.status;
}

bool onv_folded_is_term(const onv_lowering *l, onv_value_id id)
{
    return l->folded.plans != NULL && l->folded.plans[id.index] != NULL;
}

/* --- Sizes that are left open ------------------------------------------------------------------- */

/* Elements of parameters: those that are known, and how often the one size that is not, and its square. */
typedef struct sum {
    uint64_t known, times, squares;
    bool is_told;
} sum;

static void add_leaf(sum *all, const onv_folded_plan *plan, const onv_term *term)
{
    uint64_t elems = 1;
    uint32_t open = 0;
    for (uint32_t i = 0; i < term->shape.dims.rank; i++) {
        int64_t dim = onv_term_dim(plan, term->shape.dims.dims[i]);
        open += dim == 0;
        if (dim > 0) all->is_told &= onv_u64_mul(elems, (uint64_t)dim, &elems);
    }
    uint64_t *of[] = {&all->known, &all->times, &all->squares};
    all->is_told &=
        open < 3 && onv_u64_add(*of[open < 3 ? open : 2], elems, of[open < 3 ? open : 2]);
}

static uint64_t elems_of(const onv_shape *shape)
{
    uint64_t elems = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (!onv_u64_mul(elems, (uint64_t)shape->dims[i], &elems)) return UINT64_MAX;
    return elems;
}

/* By the name of layers: parameters that a term tells the shape of, those of other layers are called alike. */
static void list_alike(onv_lowering *l, onv_ptr_map *alike)
{
    for (uint32_t i = 0; i < l->signature.count && l->emit.status == ONV_OK; i++) {
        if (l->folded.leaves[i].rank == UNKNOWN_RANK) continue;
        const char *layers = onv_name_of_layers(l, l->signature.names[i]);
        if (layers != NULL && !onv_ptr_map_set(alike, layers, i))
            l->emit.status = onv_fail_memory(l->emit.err);
    }
}

/* The shape of the parameter: its own, or that of one that is called alike; NULL: none is known. */
static const onv_shape *shape_alike(onv_lowering *l, const onv_ptr_map *alike, size_t listed)
{
    uint32_t other;
    if (l->folded.leaves[listed].rank != UNKNOWN_RANK) return &l->folded.leaves[listed];
    const char *layers = onv_name_of_layers(l, l->signature.names[listed]);
    return layers != NULL && onv_ptr_map_get(alike, layers, &other) ? &l->folded.leaves[other]
                                                                    : NULL;
}

/* Of all listed parameters; not told where one of them has neither a tensor nor a term. */
static sum sum_parameters(onv_lowering *l)
{
    sum all = {.is_told = true};
    bool *seen = ONV_ARENA_ARRAY(&l->emit.model->arena, bool, l->signature.count);
    if (seen == NULL) l->emit.status = onv_fail_memory(l->emit.err);
    for (uint32_t i = 0; i < l->emit.model->values.count && seen != NULL; i++) {
        const onv_folded_plan *plan = l->folded.plans[i];
        for (uint32_t k = 0; plan != NULL && k < plan->n_terms; k++) {
            const onv_term *term = &plan->terms[k];
            size_t listed = term->form == ONV_TERM_LEAF ? onv_listed_find(l, term->name) : SIZE_MAX;
            if (listed == SIZE_MAX || seen[listed]) continue;
            seen[listed] = true;
            add_leaf(&all, plan, term);
        }
    }
    for (size_t i = 0; i < l->weights.reads.count && seen != NULL; i++) {
        const onv_weight_read *read = &l->weights.reads.at[i];
        const onv_tensor *tensor = l->emit.model->values.at[read->value].tensor;
        size_t listed = read->parameter != NULL && l->folded.plans[read->value] == NULL
                            ? onv_listed_find(l, read->parameter)
                            : SIZE_MAX;
        if (listed == SIZE_MAX || seen[listed] || tensor == NULL) continue;
        seen[listed] = true;
        all.is_told &= onv_u64_add(all.known, tensor->elems, &all.known);
    }
    onv_ptr_map alike = {0};
    list_alike(l, &alike);
    for (size_t i = 0; i < l->signature.count && seen != NULL && l->emit.status == ONV_OK; i++) {
        if (!seen[i] && l->signature.file_elems[i] > 0)
            seen[i] = onv_u64_add(all.known, l->signature.file_elems[i], &all.known);
        const onv_shape *shape = seen[i] ? NULL : shape_alike(l, &alike, i);
        if (shape != NULL) seen[i] = onv_u64_add(all.known, elems_of(shape), &all.known);
        all.is_told &= seen[i];
    }
    onv_ptr_map_cleanup(&alike);
    return all;
}

/* With that size. */
static uint64_t elems_with(const sum *all, uint64_t size)
{
    uint64_t by_square, by_size, elems;
    if (!onv_u64_mul(all->squares, size * size, &by_square) ||
        !onv_u64_mul(all->times, size, &by_size) || !onv_u64_add(by_square, by_size, &elems) ||
        !onv_u64_add(elems, all->known, &elems))
        return UINT64_MAX;
    return elems;
}

/* The size that makes them as many as was told, or not more; 0: none does. */
static int64_t told_size(const onv_lowering *l, const sum *all)
{
    uint64_t wanted = l->emit.options->parameters, low = 0, high = ONV_TERM_MOST_FOLDED;
    if (!all->is_told || all->times + all->squares == 0 || wanted <= all->known) return 0;
    while (low < high) {
        uint64_t middle = (low + high + 1) / 2;
        if (elems_with(all, middle) <= wanted)
            low = middle;
        else
            high = middle - 1;
    }
    return (int64_t)low;
}

static void settle(onv_lowering *l, onv_folded_plan *plan, int64_t told)
{
    for (uint32_t i = 0; i < plan->n_terms; i++) {
        const onv_term *term = &plan->terms[i];
        for (uint32_t k = 0; k < term->shape.dims.rank; k++) {
            int64_t dim = term->shape.dims.dims[k];
            while (dim < 0 && plan->sizes[-1 - dim] != 0) dim = plan->sizes[-1 - dim];
            if (dim >= 0) continue;
            plan->sizes[-1 - dim] = told > 0 ? told : plan->likely[-1 - dim];
            plan->is_assumed |= told == 0;
        }
    }
    note_leaves(l, plan);
}

/* Rows of tables that nothing else explains, which several constants may have. */
static void plan_rows(onv_lowering *l)
{
    bool *was_explained =
        onv_arena_copy(&l->emit.model->arena, l->signature.explained, l->signature.count);
    if (was_explained == NULL) l->emit.status = onv_fail_memory(l->emit.err);
    l->folded.takes_rows = true;
    for (uint32_t i = 0; i < l->emit.model->values.count && l->emit.status == ONV_OK; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        if (value->folded_from == NULL || l->values[i].first_read == 0 ||
            l->folded.plans[i] != NULL ||
            !(onv_folded_has_call(value, "embedding") || onv_is_call_of(value->name, "embedding")))
            continue;
        size_t listed = onv_folded_first_listed(l, value);
        if (listed == SIZE_MAX || was_explained[listed] ||
            onv_weight_use_of(l, (onv_value_id){i}) != ONV_WEIGHT_MADE)
            continue;
        l->folded.plans[i] = onv_folded_solve(l, i);
        if (l->folded.plans[i] != NULL) note_leaves(l, l->folded.plans[i]);
    }
    l->folded.takes_rows = false;
}

/* Once the other parameters have their names. */
void onv_folded_settle(onv_lowering *l)
{
    bool is_any = false;
    plan_rows(l);
    for (uint32_t i = 0; i < l->emit.model->values.count; i++) is_any |= l->folded.plans[i] != NULL;
    if (!is_any) return;
    sum all = sum_parameters(l);
    int64_t told = l->emit.options->parameters > 0 ? told_size(l, &all) : 0;
    bool is_exact = all.is_told && l->emit.options->parameters == elems_with(&all, (uint64_t)told);
    if (!is_exact && all.squares > 0) told = 0; /* there are several open sizes */
    for (uint32_t i = 0; i < l->emit.model->values.count && l->emit.status == ONV_OK; i++) {
        if (l->folded.plans[i] == NULL) continue;
        if (is_exact) l->folded.plans[i]->is_assumed = false;
        bool is_open = false;
        for (uint32_t k = 0; k < l->folded.plans[i]->n_terms; k++)
            is_open |= !is_told(l->folded.plans[i], &l->folded.plans[i]->terms[k]);
        if (!is_open) continue;
        onv_folded_plan *again = onv_folded_solve(l, i); /* as far as others tell by now */
        if (again != NULL) l->folded.plans[i] = again;
        if (is_exact) l->folded.plans[i]->is_assumed = false;
        settle(l, l->folded.plans[i], told);
    }
}
