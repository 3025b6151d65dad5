/* Notes of constants, and the search for the call that was the last one. */
#include "lower/folded_terms.h"

#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "lower/folded_solver.h"
#include "lower/weight_place.h"

static const onv_term_kind kinds[] = {
    {"softmax", "softmax", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 12},
    {"_softmax", "softmax", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 12},
    {"log_softmax", "log_softmax", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 12},
    {"relu", "relu", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 11},
    {"sigmoid", "sigmoid", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 11},
    {"tanh", "tanh", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 11},
    {"exp", "exp", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 11},
    {"sqrt", "sqrt", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 11},
    {"rsqrt", "rsqrt", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 11},
    {"reciprocal", "reciprocal", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_RESULT, 11},
    {"elu", "elu", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"leaky_relu", "leaky_relu", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"gelu", "gelu", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"silu", "silu", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"softplus", "softplus", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"sin", "sin", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"cos", "cos", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"log", "log", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"abs", "abs", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"pow", "pow", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 11},
    {"clamp", "clamp", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 9},
    {"clamp_min", "clamp_min", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_OPERAND, 9},
    {"neg", "neg", ONV_TERM_POINTWISE, ONV_TERM_KEEPS_NOTHING, 9},
    {"add", "add", ONV_TERM_PAIR, ONV_TERM_KEEPS_NOTHING, 9},
    {"sub", "sub", ONV_TERM_PAIR, ONV_TERM_KEEPS_NOTHING, 9},
    {"mul", "mul", ONV_TERM_PAIR, ONV_TERM_KEEPS_OPERAND, 8},
    {"div", "div", ONV_TERM_PAIR, ONV_TERM_KEEPS_OPERAND, 7},
    {"linear", "addmm", ONV_TERM_LINEAR, ONV_TERM_KEEPS_OPERAND, 5},
    {"mm", "mm", ONV_TERM_PRODUCT, ONV_TERM_KEEPS_OPERAND, 5},
    {"matmul", "mm", ONV_TERM_PRODUCT, ONV_TERM_KEEPS_OPERAND, 5},
    {"bmm", "bmm", ONV_TERM_PRODUCT, ONV_TERM_KEEPS_OPERAND, 5},
    {"einsum", "einsum", ONV_TERM_PRODUCT, ONV_TERM_KEEPS_OPERAND, 5},
    {"stack", "cat", ONV_TERM_JOIN, ONV_TERM_KEEPS_NOTHING, 12},
    {"cat", "cat", ONV_TERM_JOIN, ONV_TERM_KEEPS_NOTHING, 12},
    {"view", "view", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"reshape", "view", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"flatten", "view", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"unsqueeze", "unsqueeze", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"squeeze", "squeeze", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"permute", "permute", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"transpose", "transpose", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"t", "t", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"numpy_T", "t", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"expand", "expand", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"select", "select", ONV_TERM_PART, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"repeat", "repeat", ONV_TERM_COPY, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"clone", "clone", ONV_TERM_COPY, ONV_TERM_KEEPS_NOTHING, ONV_TERM_VIEW_LATE},
    {"linalg_vector_norm", "vector_norm_2", ONV_TERM_REDUCTION, ONV_TERM_KEEPS_OPERAND, 1},
    {"norm", "vector_norm_2", ONV_TERM_REDUCTION, ONV_TERM_KEEPS_OPERAND, 1},
    {"var", "var", ONV_TERM_REDUCTION, ONV_TERM_KEEPS_OPERAND, 1},
    {"std", "std", ONV_TERM_REDUCTION, ONV_TERM_KEEPS_OPERAND, 1},
    {"mean", "mean", ONV_TERM_REDUCTION, ONV_TERM_KEEPS_NOTHING, 1},
    {"sum", "sum", ONV_TERM_REDUCTION, ONV_TERM_KEEPS_NOTHING, 1},
    {"embedding", "embedding", ONV_TERM_ROWS, ONV_TERM_KEEPS_NOTHING, 2},
    {"index", "index", ONV_TERM_ROWS, ONV_TERM_KEEPS_NOTHING, 2},
    {"index_select", "index", ONV_TERM_ROWS, ONV_TERM_KEEPS_NOTHING, 2},
    {"arange", "arange", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"eye", "eye", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"eq", "eq", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"zeros", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"ones", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"full", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"zeros_like", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"ones_like", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"linspace", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
    {"_to_copy", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0},
};

/* Above what counts of calls come to. */
enum { LOOKS_UP = 1024 };

static bool looks_up(const onv_solver *s, uint32_t calls)
{
    uint32_t rows = onv_term_calls_of(s, calls, ONV_TERM_ROWS);
    return rows != 0 && strcmp(s->calls[onv_set_first(rows)].kind->op, "index") == 0;
}

/* How likely the call is the last one of them. Layers alternate with functions of what they give: as long as there are more
 * layers, the kind of which there are most comes last. */
static uint32_t rank_last(const onv_solver *s, uint32_t c, uint32_t calls)
{
    const onv_term_kind *kind = s->calls[c].kind;
    uint32_t n = 0,
             layers = onv_set_size(onv_term_calls_of(s, calls, ONV_TERM_PRODUCT) |
                                   onv_term_calls_of(s, calls, ONV_TERM_LINEAR)),
             functions = onv_set_size(onv_term_calls_of(s, calls, ONV_TERM_POINTWISE)),
             pairs = onv_set_size(onv_term_calls_of(s, calls, ONV_TERM_PAIR));
    for (uint32_t i = 0; i < s->n_calls; i++) {
        if ((calls >> i & 1) == 0 || s->calls[i].kind != kind) continue;
        if (s->calls[i].number > s->calls[c].number) return 0;
        n++;
    }
    /* Rows are looked up of what layers give, and what is computed of them comes behind. */
    if (layers > 0 && looks_up(s, calls)) {
        if (kind->form == ONV_TERM_ROWS) return LOOKS_UP;
        if (kind->form == ONV_TERM_PAIR) return LOOKS_UP + 2;
        if (kind->form == ONV_TERM_POINTWISE && functions >= layers) return LOOKS_UP + 1;
    }
    if (kind->late <= ONV_TERM_VIEW_LATE) return kind->late;
    /* Sums and products of numbers come behind functions, but quotients before, unless they are of sums of rows. */
    bool divides = strcmp(kind->op, "div") == 0;
    bool is_behind = kind->form == ONV_TERM_PAIR && pairs >= functions &&
                     (!divides || onv_term_calls_of(s, calls, ONV_TERM_REDUCTION) != 0);
    bool has_linear = onv_term_calls_of(s, calls, ONV_TERM_LINEAR) != 0;
    if (functions == 0 && !has_linear) return kind->late; /* products of factors */
    if (functions >= layers) return kind->late + (is_behind ? 16 : 0);
    return 16 * n + kind->late;
}

bool onv_term_solve(onv_solver *s, const onv_term_shape *shape, uint32_t calls, uint32_t leaves,
                    uint16_t *at)
{
    if (s->steps++ >= ONV_TERM_MOST_STEPS || !onv_work(1 + s->n_calls)) return false;
    if (calls == 0)
        return onv_set_is_one(leaves) && onv_term_use_leaf(s, onv_set_first(leaves), shape, at);
    if (leaves == 0) return false;
    onv_attempt before = s->now;
    for (uint32_t tried = 0; tried != calls;) {
        uint32_t best = UINT32_MAX, best_rank = 0;
        for (uint32_t c = 0; c < s->n_calls; c++) {
            if (((calls & ~tried) >> c & 1) == 0) continue;
            uint32_t rank = rank_last(s, c, calls);
            if (rank > best_rank) {
                best = c;
                best_rank = rank;
            }
        }
        if (best == UINT32_MAX) return false;
        tried |= UINT32_C(1) << best;
        if (onv_term_solve_call(s, best, shape, calls & ~(UINT32_C(1) << best), leaves, at))
            return true;
        s->now = before;
    }
    return false;
}

/* --- Notes ------------------------------------------------------------------------------------- */

static const onv_term_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (onv_is_call_of(name, kinds[i].call)) return &kinds[i];
    return NULL;
}

/* Another constant of the file, which the note names as a call. */
static bool is_constant(const onv_solver *s, const char *name)
{
    return name != s->value->name && onv_ptr_map_get(&s->l->folded.constants, name, NULL);
}

static bool add_name(onv_solver *s, const char *name)
{
    static const onv_term_kind other = {"", "", ONV_TERM_OTHER, ONV_TERM_KEEPS_NOTHING, 0};
    const onv_term_kind *kind = is_constant(s, name) ? NULL : find_kind(name);
    bool is_call = !is_constant(s, name) && onv_listed_find(s->l, name) == SIZE_MAX &&
                   strchr(name, '.') == NULL &&
                   !onv_ptr_map_get(&s->l->signature.buffers, name, NULL) &&
                   !onv_folded_leaf_shape(s->l, name, &(onv_shape){0});
    if (kind == NULL && is_call) kind = &other;
    if (kind != NULL) {
        if (s->n_calls == ONV_TERM_MOST_CALLS) return false;
        onv_call_name call_name = onv_call_name_of(name);
        s->calls[s->n_calls++] = (onv_call){kind, name, call_name.number};
        return true;
    }
    if (s->n_leaves == ONV_TERM_MOST_LEAVES) return false;
    onv_leaf *added = &s->leaves[s->n_leaves];
    *added = (onv_leaf){.name = name};
    added->is_known = onv_folded_leaf_shape(s->l, name, &added->shape.dims);
    s->now.leaf_term[s->n_leaves++] = ONV_NO_TERM;
    added->is_buffer = onv_listed_find(s->l, name) == SIZE_MAX && !is_constant(s, name);
    return added->is_known || !added->is_buffer ||
           onv_ptr_map_get(&s->l->signature.buffers, name, NULL);
}

/* All that led to another constant is behind that. */
static void hide_names(onv_solver *s, const char *constant, onv_ptr_map *hidden)
{
    uint32_t value;
    onv_ptr_map_get(&s->l->folded.constants, constant, &value);
    const char *at = s->l->emit.model->values.at[value].folded_from, *name;
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL;) {
        const char *copy = onv_intern_n(&s->l->emit.model->strings, name, length);
        if (copy == NULL || !onv_work(1) || !onv_ptr_map_set(hidden, copy, 1)) {
            s->l->emit.status = onv_fail_memory(s->l->emit.err);
            return;
        }
    }
}

/* What the note names; false where something of it is not known. */
static bool add_names(onv_solver *s, onv_ptr_map *hidden, bool hides)
{
    const char *at = s->value->folded_from, *name;
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL;) {
        const char *copy = onv_intern_n(&s->l->emit.model->strings, name, length);
        if (copy == NULL) s->l->emit.status = onv_fail_memory(s->l->emit.err);
        if (copy == NULL) return false;
        if (strncmp(copy, "scalar_tensor", 13) == 0 || onv_has_made_up_name(copy)) continue;
        if (hides && is_constant(s, copy)) hide_names(s, copy, hidden);
        if (!hides && !onv_ptr_map_get(hidden, copy, NULL) && !add_name(s, copy)) return false;
    }
    return s->l->emit.status == ONV_OK;
}

static bool read_names(onv_solver *s)
{
    enum { PER_WORK = 16 };
    onv_ptr_map hidden = {0};
    if (s->value->folded_from == NULL || !onv_work(1 + strlen(s->value->folded_from) / PER_WORK))
        return false;
    bool is_known = add_names(s, &hidden, true) && add_names(s, &hidden, false);
    onv_ptr_map_cleanup(&hidden);
    return is_known;
}

/* Of a parameter alone, several parts of which the file has. */
static bool takes_parts(const onv_solver *s)
{
    for (uint32_t i = 0; i < s->now.n_terms; i++)
        if (s->terms[i].form != ONV_TERM_PART && s->terms[i].form != ONV_TERM_LEAF) return false;
    return s->n_parts > 1;
}

/* Rows of a parameter that no other rule has found. */
static bool looks_up_rows(const onv_solver *s)
{
    bool found = false;
    for (uint32_t i = 0; i < s->now.n_terms; i++) found |= s->terms[i].form == ONV_TERM_ROWS;
    return found && s->l->folded.takes_rows;
}

static bool is_planned(const onv_lowering *l, const char *constant)
{
    uint32_t value;
    return onv_ptr_map_get(&l->folded.constants, constant, &value) &&
           l->folded.plans[value] != NULL;
}

/* Views and look-ups alone are other rules', but of a parameter that the file has as well. */
static bool computes(const onv_solver *s)
{
    size_t listed = s->n_leaves == 1 ? onv_listed_find(s->l, s->leaves[0].name) : SIZE_MAX;
    bool is_view = listed != SIZE_MAX && s->l->signature.file_elems[listed] > 0 &&
                   !onv_has_made_up_name(s->value->name);
    for (uint32_t i = 0; i < s->now.n_terms && is_view; i++)
        is_view = s->terms[i].form == ONV_TERM_VIEW || s->terms[i].form == ONV_TERM_LEAF;
    bool is_of_term = s->n_leaves == 1 && listed == SIZE_MAX && is_constant(s, s->leaves[0].name) &&
                      is_planned(s->l, s->leaves[0].name);
    if (is_view || is_of_term || (s->n_leaves == 1 && listed != SIZE_MAX && looks_up_rows(s)) ||
        (s->n_leaves == 1 && listed != SIZE_MAX && takes_parts(s)))
        return true;
    for (uint32_t i = 0; i < s->now.n_terms; i++) {
        uint8_t form = s->terms[i].form;
        bool joins = form == ONV_TERM_JOIN && s->terms[i].n_in > 1;
        if (joins || form == ONV_TERM_SCALED || form == ONV_TERM_REDUCTION ||
            form == ONV_TERM_PRODUCT || form == ONV_TERM_LINEAR || form == ONV_TERM_PAIR ||
            form == ONV_TERM_POINTWISE)
            return true;
    }
    return false;
}

/* Exporters compute with tensors up to a limit, so that all but the constant itself are smaller. What is likely is so, too. */
static bool fits(onv_solver *s)
{
    for (uint32_t i = 0; i + 1 < s->now.n_terms; i++) {
        int64_t known, open = 0;
        uint32_t n;
        if (!onv_term_count(s, &s->terms[i].shape, &known, &n, &open) ||
            known > ONV_TERM_MOST_FOLDED)
            return false;
        int64_t likely = n == 1 ? s->now.likely[-1 - open] : 0;
        if (likely > ONV_TERM_MOST_FOLDED / known)
            s->now.likely[-1 - open] = ONV_TERM_MOST_FOLDED / known;
    }
    return true;
}

static onv_folded_plan *make_plan(const onv_solver *s)
{
    onv_arena *arena = &s->l->emit.model->arena;
    onv_folded_plan *plan = ONV_ARENA_ARRAY(arena, onv_folded_plan, 1);
    onv_term *terms = onv_arena_copy(arena, s->terms, s->now.n_terms * sizeof *terms);
    if (plan == NULL || terms == NULL) {
        s->l->emit.status = onv_fail_memory(s->l->emit.err);
        return NULL;
    }
    *plan = (onv_folded_plan){.terms = terms,
                              .n_terms = s->now.n_terms,
                              .n_unknowns = s->now.n_unknowns,
                              .is_assumed = s->now.is_assumed};
    memcpy(plan->sizes, s->now.sizes, sizeof plan->sizes);
    memcpy(plan->likely, s->now.likely, sizeof plan->likely);
    return plan;
}

/* The constant itself is the last call, unless the exporter made its name up: a layer's weight, which it turned, or what a
 * layer gives before its bias is added. */
static bool add_root(onv_solver *s)
{
    static const onv_term_kind turned = {"t", "t", ONV_TERM_VIEW, ONV_TERM_KEEPS_NOTHING,
                                         ONV_TERM_VIEW_LATE};
    const onv_term_kind *kind = find_kind(s->value->name);
    bool is_made_up = onv_has_made_up_name(s->value->name);
    const onv_weight_read *read =
        &s->l->weights.reads
             .at[s->l->values[s->value - s->l->emit.model->values.at].first_read - 1];
    if (s->n_calls == ONV_TERM_MOST_CALLS || (kind == NULL && !is_made_up)) return false;
    if (is_made_up)
        kind = onv_weight_is_product(s->l->emit.model, &s->l->emit.model->nodes.at[read->node],
                                     read->k)
                   ? find_kind("linear")
                   : &turned;
    s->calls[s->n_calls++] = (onv_call){kind, s->value->name, UINT32_MAX};
    return true;
}

/* Weight norm, old and new, which runs as one kernel on the device, and was exported as what that computes. */
static bool solve_scaled(onv_solver *s, const onv_term_shape *shape)
{
    static const char *const lengths[] = {".weight.original0", "weight_g"}, *const directions[] = {
                                                                                ".weight.original1",
                                                                                "weight_v"};
    static const char *const calls[] = {"linalg_vector_norm", "norm", "div", "mul"};
    bool is_named = false;
    uint32_t rank = shape->dims.rank;
    uint16_t in[2], at;
    for (uint32_t k = 0; k < 2 && s->n_leaves == 2; k++)
        is_named |= onv_term_ends_with(s->leaves[0].name, lengths[k]) &&
                    onv_term_ends_with(s->leaves[1].name, directions[k]);
    for (uint32_t i = 0; i < s->n_calls; i++)
        is_named &= i + 1 == s->n_calls || onv_is_call_of_any(s->calls[i].name, calls, 4);
    if (!is_named || rank < 2) return false;
    onv_term_shape lengths_shape = *shape;
    for (uint32_t i = 1; i < rank; i++) lengths_shape.dims.dims[i] = 1;
    if (!onv_term_use_leaf(s, 1, shape, &in[0]) ||
        !onv_term_use_leaf(s, 0, &lengths_shape, &in[1]) ||
        !onv_term_add_call(s, s->n_calls - 1, shape, in, 2, &at))
        return false;
    s->terms[at].form = ONV_TERM_SCALED;
    return true;
}

/* Several layers of a table of places that the file lacks: of a window's, shapes tell the rest, and of no other. */
static bool is_of_unknown_places(const onv_solver *s)
{
    if (onv_set_size(onv_term_calls_of(s, ONV_ALL_CALLS, ONV_TERM_LINEAR)) < 2 ||
        onv_term_calls_of(s, ONV_ALL_CALLS, ONV_TERM_ROWS) != 0 ||
        onv_term_calls_of(s, ONV_ALL_CALLS, ONV_TERM_MADE) != 0)
        return false;
    for (uint32_t i = 0; i < s->n_leaves; i++)
        if (onv_term_is_unknown_buffer(s, UINT32_C(1) << i)) return true;
    return false;
}

onv_folded_plan *onv_folded_solve(onv_lowering *l, uint32_t value)
{
    onv_solver s = {
        .l = l, .value = &l->emit.model->values.at[value], .n_parts = onv_folded_parts(l, value)};
    const onv_type *type = &s.value->type;
    if (s.value->tensor == NULL || s.value->role != ONV_ROLE_NOT_NOTED ||
        !onv_dtype_is_float((onv_dtype)s.value->tensor->type.dtype) || type->rank > ONV_MAX_RANK ||
        !read_names(&s) || !add_root(&s) || s.n_leaves == 0)
        return NULL;
    if (is_of_unknown_places(&s)) return NULL;
    onv_term_shape shape = {.dims = {.rank = type->rank > 0 ? (uint32_t)type->rank : 0}};
    for (uint32_t i = 0; i < shape.dims.rank; i++) {
        if (!onv_dim_is_const(type->dims[i]) || type->dims[i].raw <= 0) return NULL;
        shape.dims.dims[i] = type->dims[i].raw;
    }
    uint32_t root = s.n_calls - 1, leaves = (UINT32_C(1) << s.n_leaves) - 1;
    uint16_t at;
    bool is_solved = solve_scaled(&s, &shape);
    onv_attempt before = s.now;
    for (s.is_strict = true; !is_solved; s.is_strict = false) {
        s.now = before;
        s.steps = 0;
        is_solved = onv_term_solve_call(&s, root, &shape, (UINT32_C(1) << root) - 1, leaves, &at);
        if (!s.is_strict) break;
    }
    return is_solved && fits(&s) && computes(&s) && l->emit.status == ONV_OK ? make_plan(&s) : NULL;
}
