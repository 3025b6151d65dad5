/* What leads to a call, by its form. */
#include <string.h>

#include "base/checked.h"
#include "base/quota.h"
#include "lower/folded_solver.h"
#include "lower/weight_place.h"

/* Calls that lead to the smaller operand. */
enum { MOST_BESIDE = 4 };

/* A layer's own weight or bias, which is no factor. */
static bool is_of_layer(const onv_solver *s, uint32_t calls, uint32_t leaves)
{
    if (!onv_set_is_one(leaves) || onv_term_calls_of(s, calls, ONV_TERM_LINEAR) == 0) return false;
    const char *name = s->leaves[onv_set_first(leaves)].name;
    return onv_term_ends_with(name, ".weight") || onv_term_ends_with(name, ".bias");
}

static bool is_buffer(const onv_solver *s, uint32_t leaves)
{
    return onv_set_is_one(leaves) && s->leaves[onv_set_first(leaves)].is_buffer;
}

static bool turns(const onv_solver *s, uint32_t calls)
{
    static const char *const turning[] = {"t", "transpose", "numpy_T", "permute"};
    for (uint32_t i = 0; i < s->n_calls; i++)
        if ((calls >> i & 1) != 0 && onv_is_call_of_any(s->calls[i].name, turning, 4)) return true;
    return false;
}

/* `b` of the calls and leaves lead to the second operand, the others to the first. One leaf leads to both. */
static bool solve_parts(onv_solver *s, uint32_t c, const onv_term_shape *shape,
                        const onv_term_shape in[2], uint32_t calls, uint32_t leaves, uint16_t *at)
{
    onv_attempt before = s->now;
    uint32_t most = onv_set_size(calls);
    bool has_layers = (onv_term_calls_of(s, ONV_ALL_CALLS, ONV_TERM_LINEAR) |
                       onv_term_calls_of(s, ONV_ALL_CALLS, ONV_TERM_PRODUCT)) != 0;
    if (most > MOST_BESIDE) most = MOST_BESIDE;
    /* Of two products each is one side of a pair. */
    bool is_of_two = s->calls[c].kind->form == ONV_TERM_PAIR
                         ? onv_set_size(onv_term_calls_of(s, calls, ONV_TERM_PRODUCT)) == 2
                         : turns(s, calls); /* `a @ a.T` */
    for (uint32_t k = 0; k <= most; k++) {
        uint32_t n = (k + is_of_two) % (most + 1);
        for (uint32_t b = calls;; b = (b - 1) & calls) {
            if (s->steps++ >= ONV_TERM_MOST_STEPS || !onv_work(1)) return false;
            for (uint32_t of_b = leaves; onv_set_size(b) == n && of_b != 0;
                 of_b = (of_b - 1) & leaves) {
                uint32_t of_a = onv_set_is_one(leaves) ? leaves : leaves & ~of_b;
                /* Functions are of parameters. */
                if ((b == 0 && b != calls && is_buffer(s, of_a)) ||
                    (b == calls && b != 0 && is_buffer(s, of_b)))
                    continue;
                uint16_t operands[2];
                bool is_pair = s->calls[c].kind->form == ONV_TERM_PAIR;
                if (of_a == 0) continue;
                if (is_pair && (is_of_layer(s, calls, of_a) || is_of_layer(s, calls, of_b)))
                    continue;
                if (is_pair && has_layers &&
                    (onv_term_is_unknown_buffer(s, of_a) || onv_term_is_unknown_buffer(s, of_b)))
                    continue;
                if (onv_term_solve(s, &in[0], calls & ~b, of_a, &operands[0]) &&
                    onv_term_solve(s, &in[1], b, of_b, &operands[1]) &&
                    onv_term_add_call(s, c, shape, operands, 2, at))
                    return true;
                s->now = before;
                if (s->steps >= ONV_TERM_MOST_STEPS) return false;
            }
            if (b == 0) break;
        }
    }
    return false;
}

/* Inner sizes of products are small, or what is multiplied would be one parameter. */
enum { LIKELY_INNER = 8, COORDINATES = 2, LIKELY_HIDDEN = 512 };

/* 'nd,dkio->nkio': rows of factors, times what is of each factor. */
static bool solve_einsum(onv_solver *s, uint32_t c, const onv_term_shape *shape, int64_t inner,
                         uint32_t calls, uint32_t leaves, uint16_t *at)
{
    if (shape->is_wild) return false;
    onv_term_shape in[2] = {onv_term_matrix(shape->dims.dims[0], inner), *shape};
    in[1].dims.dims[0] = inner;
    return solve_parts(s, c, shape, in, calls, leaves, at);
}

static bool solve_product(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                          uint32_t leaves, uint16_t *at)
{
    onv_attempt before = s->now;
    uint32_t rank = shape->dims.rank;
    int64_t inner;
    if (rank < 2 || !onv_term_unknown(s, LIKELY_INNER, &inner)) return false;
    if (strcmp(s->calls[c].kind->call, "einsum") == 0 && rank > 2)
        return solve_einsum(s, c, shape, inner, calls, leaves, at);
    onv_term_shape in[2] = {*shape, onv_term_matrix(inner, shape->dims.dims[rank - 1])};
    in[0].dims.dims[rank - 1] = inner;
    if (!shape->is_wild || rank == 2) {
        in[0].is_wild = false;
        onv_term_shape result = *shape;
        result.is_wild = false;
        if (solve_parts(s, c, &result, in, calls, leaves, at)) return true;
    }
    /* What becomes a view of several dims: of all but the first one, or but the last one. */
    int64_t rows = 1, columns = 1;
    for (uint32_t i = 0; i < rank && shape->is_wild && rank > 2; i++)
        if (shape->dims.dims[i] <= 0) return false;
    for (uint32_t split = 1; split < rank && shape->is_wild && rank > 2; split += rank - 2) {
        rows = columns = 1;
        for (uint32_t i = 0; i < rank; i++)
            if (!onv_i64_mul(i < split ? rows : columns, shape->dims.dims[i],
                             i < split ? &rows : &columns))
                return false;
        s->now = before;
        if (!onv_term_unknown(s, LIKELY_INNER, &inner)) return false;
        in[0] = onv_term_matrix(rows, inner);
        in[1] = onv_term_matrix(inner, columns);
        onv_term_shape result = onv_term_matrix(rows, columns);
        if (solve_parts(s, c, &result, in, calls, leaves, at)) return true;
    }
    return false;
}

/* "a.bias" beside "a.weight": the other leaf of the layer; UINT32_MAX: it has none. */
static uint32_t bias_of(const onv_solver *s, uint32_t weight, uint32_t leaves)
{
    static const char suffix[] = "weight";
    const char *name = s->leaves[weight].name;
    size_t length = strlen(name) - (sizeof suffix - 1);
    for (uint32_t i = 0; i < s->n_leaves; i++) {
        const char *other = s->leaves[i].name;
        if ((leaves >> i & 1) != 0 && strncmp(other, name, length) == 0 &&
            strcmp(other + length, "bias") == 0)
            return i;
    }
    return UINT32_MAX;
}

/* The result of a layer of which that is a view: rows of `size` elements, where that is told; else all but the first dim are
 * one, or the result is that of a vector. False: there is no such `choice`. */
static bool layer_result(onv_solver *s, const onv_term_shape *shape, int64_t size, uint32_t choice,
                         onv_term_shape *result)
{
    uint32_t rank = shape->dims.rank, open;
    int64_t elems, unknown, first = rank > 0 ? shape->dims.dims[0] : 1,
                            last = rank > 0 ? shape->dims.dims[rank - 1] : 1;
    *result = *shape;
    result->is_wild = result->is_reshaped = false;
    if (!shape->is_wild) return choice == 0;
    if (!onv_term_count(s, shape, &elems, &open, &unknown) || open > 0) return false;
    if (size > 0 && (choice > 0 || elems % size != 0)) return false;
    if (size > 0 && size < elems) *result = onv_term_matrix(elems / size, size);
    if (size == elems) *result = (onv_term_shape){.dims = {1, {elems}}};
    if (size > 0) return true;
    bool is_vector = choice == 1 || (shape->is_reshaped && rank < 3);
    if (is_vector)
        *result = (onv_term_shape){.dims = {1, {elems}}};
    else
        *result = shape->is_reshaped ? onv_term_matrix(first, elems / first)
                                     : onv_term_matrix(elems / last, last);
    return choice < 2;
}

static int64_t told_size(const onv_solver *s, uint32_t weight, uint32_t bias)
{
    const onv_leaf *w = &s->leaves[weight], *b = bias != UINT32_MAX ? &s->leaves[bias] : w;
    if (b->is_known && b->shape.dims.rank > 0) return b->shape.dims.dims[0];
    return w->is_known && w->shape.dims.rank > 0 ? w->shape.dims.dims[0] : 0;
}

/* A layer is mostly as wide as what it is given, as far as exporters compute with its weight. */
static int64_t likely_width(int64_t size)
{
    if (size <= 0) return LIKELY_INNER;
    int64_t most = ONV_TERM_MOST_FOLDED / size;
    return size < most || most == 0 ? size : most;
}

/* What no parameter leads to: a table of angles, made of a buffer that the file lacks. Layers share it. */
static bool solve_made(onv_solver *s, const onv_term_shape *shape, uint32_t calls, uint32_t leaves,
                       uint16_t *at)
{
    static const onv_term_kind filled = {"full", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0};
    uint32_t functions = onv_term_calls_of(s, calls, ONV_TERM_POINTWISE);
    uint32_t last = 0;
    for (uint32_t i = 0; i < s->n_leaves; i++)
        if ((leaves >> i & 1) != 0 && (!s->leaves[i].is_buffer || s->leaves[i].is_known))
            return false;
    for (uint32_t i = 0; i < s->n_calls; i++)
        if ((calls >> i & 1) != 0 && s->calls[i].kind->late >= s->calls[last].kind->late) last = i;
    if (functions == 0 || (calls >> last & 1) == 0 ||
        onv_term_calls_of(s, calls, ONV_TERM_MADE) == 0)
        return false;
    onv_term made = {.kind = &filled, .name = s->calls[last].name, .form = ONV_TERM_MADE};
    made.shape = *shape;
    return onv_term_add(s, made, at);
}

static bool solve_layer(onv_solver *s, uint32_t c, const onv_term_shape *result, uint32_t calls,
                        uint32_t leaves, uint32_t w, uint32_t bias, uint16_t *at)
{
    uint32_t rank = result->dims.rank;
    uint16_t in[3];
    int64_t inner, size = rank > 0 ? result->dims.dims[rank - 1] : 0;
    onv_term_shape x = *result;
    uint32_t views =
        onv_term_calls_of(s, calls, ONV_TERM_VIEW) | onv_term_calls_of(s, calls, ONV_TERM_COPY);
    bool is_of_places = calls == views && onv_term_is_unknown_buffer(s, leaves);
    if (rank == 0 || !onv_term_unknown(s, likely_width(size), &inner)) return false;
    if (is_of_places && size <= 0) inner = COORDINATES;
    if (is_of_places) onv_term_set_likely(s, inner, LIKELY_INNER);
    if (is_of_places) onv_term_set_likely(s, size, LIKELY_HIDDEN);
    x.dims.dims[rank - 1] = inner;
    onv_term_shape weight = onv_term_matrix(size, inner), vector = {.dims = {1, {size}}};
    return (solve_made(s, &x, calls, leaves, &in[0]) ||
            onv_term_solve(s, &x, calls, leaves, &in[0])) &&
           onv_term_use_leaf(s, w, &weight, &in[1]) &&
           (bias == UINT32_MAX || onv_term_use_leaf(s, bias, &vector, &in[2])) &&
           onv_term_add_call(s, c, result, in, bias == UINT32_MAX ? 2 : 3, at);
}

/* The last layer mostly has the last name of those of one sequence. */
static bool solve_linear(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                         uint32_t leaves, uint16_t *at)
{
    onv_attempt before = s->now;
    for (uint32_t w = s->n_leaves; w-- > 0;) {
        uint32_t left = leaves & ~(UINT32_C(1) << w);
        if ((leaves >> w & 1) == 0 || !onv_term_ends_with(s->leaves[w].name, "weight")) continue;
        uint32_t bias = bias_of(s, w, leaves);
        if (bias != UINT32_MAX) left &= ~(UINT32_C(1) << bias);
        onv_term_shape result;
        int64_t size = told_size(s, w, bias);
        for (uint32_t i = 0; left != 0 && layer_result(s, shape, size, i, &result); i++) {
            s->now = before;
            if (solve_layer(s, c, &result, calls, left, w, bias, at)) return true;
        }
    }
    s->now = before;
    return false;
}

static bool is_last(const onv_solver *s, uint32_t c, uint32_t calls)
{
    for (uint32_t i = 0; i < s->n_calls; i++)
        if ((calls >> i & 1) != 0 && s->calls[i].kind == s->calls[c].kind &&
            s->calls[i].number > s->calls[c].number)
            return false;
    return true;
}

/* What is computed of sums, or of the like, of all numbers of a row: `x / x.norm()`, `x - x.mean()`. */
static uint32_t of_rows(const onv_solver *s, uint32_t c, uint32_t calls)
{
    static const char *const small[] = {"expand", "clamp_min", "sqrt", "rsqrt", "add",
                                        "view",   "unsqueeze", "pow",  "clamp", "reshape"};
    bool divides = strcmp(s->calls[c].kind->op, "div") == 0, has_sub = false;
    uint32_t reductions = onv_term_calls_of(s, calls, ONV_TERM_REDUCTION), found = 0;
    if (reductions == 0 || strcmp(s->calls[c].kind->op, "add") == 0) return 0;
    for (uint32_t i = 0; i < s->n_calls; i++)
        has_sub |= (calls >> i & 1) != 0 && strcmp(s->calls[i].kind->call, "sub") == 0;
    for (uint32_t i = 0; i < s->n_calls; i++) {
        const onv_term_kind *kind = s->calls[i].kind;
        bool is_mean = strcmp(kind->call, "mean") == 0;
        bool is_small =
            divides && onv_is_call_of_any(kind->call, small, sizeof small / sizeof small[0]);
        bool is_taken =
            kind->form == ONV_TERM_REDUCTION ? !(divides && has_sub && is_mean) : is_small;
        if (is_small && strcmp(kind->call, "add") == 0) is_taken = is_last(s, i, calls);
        if ((calls >> i & 1) != 0 && is_taken) found |= UINT32_C(1) << i;
    }
    return (found & reductions) != 0 ? found : 0;
}

/* Of the last reduction among them, in the order in which functions of it mostly are. */
static bool add_small(onv_solver *s, uint32_t rows, const onv_term_shape *shape, uint16_t x,
                      uint16_t *at)
{
    static const char *const order[] = {"sqrt", "rsqrt", "clamp", "clamp_min", "add"};
    uint32_t reductions = onv_term_calls_of(s, rows, ONV_TERM_REDUCTION), reduction = 0;
    onv_term_shape each = *shape;
    for (uint32_t i = 0; i < s->n_calls; i++)
        if ((reductions >> i & 1) != 0) reduction = i;
    for (uint32_t i = 1; i < each.dims.rank; i++) each.dims.dims[i] = 1;
    if (!onv_term_add_call(s, reduction, &each, &x, 1, at)) return false;
    for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
        for (uint32_t i = 0; i < s->n_calls; i++) {
            if ((rows >> i & 1) == 0 || strcmp(s->calls[i].kind->call, order[k]) != 0) continue;
            uint16_t before = *at;
            if (!onv_term_add_call(s, i, &each, &before, 1, at)) return false;
        }
    return true;
}

static bool solve_by_rows(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                          uint32_t leaves, uint16_t *at)
{
    onv_attempt before = s->now;
    uint32_t rows = of_rows(s, c, calls);
    uint16_t in[2];
    if (rows == 0 || shape->dims.rank == 0) return false;
    if (onv_term_solve(s, shape, calls & ~rows, leaves, &in[0]) &&
        add_small(s, rows, shape, in[0], &in[1]) && onv_term_add_call(s, c, shape, in, 2, at))
        return true;
    s->now = before;
    return false;
}

/* A parameter for each head, and what is computed of pairs of places: distances, times slopes. */
static bool solve_places(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                         uint32_t leaves, uint16_t *at)
{
    onv_attempt before = s->now;
    uint32_t rank = shape->dims.rank, views = 0;
    uint16_t in[2];
    if (!onv_set_is_one(leaves) || shape->is_wild || rank < 3) return false;
    int64_t places = onv_term_resolve(s->now.sizes, shape->dims.dims[rank - 1]);
    if (places <= 1 || places != onv_term_resolve(s->now.sizes, shape->dims.dims[rank - 2]))
        return false;
    onv_term_shape heads = *shape, distances = *shape;
    heads.dims.dims[rank - 1] = heads.dims.dims[rank - 2] = 1;
    for (uint32_t i = 0; i + 2 < rank; i++) distances.dims.dims[i] = 1;
    for (uint32_t i = 0; i < s->n_calls; i++)
        if ((calls >> i & 1) != 0 && s->calls[i].kind->form == ONV_TERM_VIEW)
            views = UINT32_C(1) << i; /* the last one by its name */
    onv_term made = {.kind = &(const onv_term_kind){0}, .form = ONV_TERM_MADE, .shape = distances};
    static const onv_term_kind filled = {"full", "full", ONV_TERM_MADE, ONV_TERM_KEEPS_NOTHING, 0};
    made.kind = &filled;
    if (onv_term_solve(s, &heads, views, leaves, &in[0]) && onv_term_add(s, made, &in[1]) &&
        onv_term_add_call(s, c, shape, in, 2, at))
        return true;
    s->now = before;
    return false;
}

/* An operand is a function of a parameter alone, whose shape neither the file nor another term tells. */
static bool may_be_smaller(const onv_solver *s, uint16_t pair)
{
    for (uint32_t k = 0; k < s->terms[pair].n_in; k++) {
        const onv_term *at = &s->terms[s->terms[pair].in[k]];
        while (at->form == ONV_TERM_POINTWISE || at->form == ONV_TERM_VIEW ||
               (at->form == ONV_TERM_PAIR && at->n_in == 1))
            at = &s->terms[at->in[0]];
        for (uint32_t i = 0; i < s->n_leaves && at->form == ONV_TERM_LEAF; i++)
            if (s->leaves[i].name == at->name && !s->leaves[i].is_known && !s->leaves[i].is_buffer)
                return true;
    }
    return false;
}

/* Of two operands, a number, or what no parameter leads to. */
static bool solve_pair(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                       uint32_t leaves, uint16_t *at)
{
    onv_attempt before = s->now;
    uint16_t in;
    if (onv_term_calls_of(s, calls, ONV_TERM_MADE) != 0)
        return solve_places(s, c, shape, calls, leaves, at);
    if (solve_by_rows(s, c, shape, calls, leaves, at)) return true;
    if (onv_term_calls_of(s, calls, ONV_TERM_REDUCTION) != 0) return false;
    const onv_term_shape both[2] = {*shape, *shape};
    bool has_layers =
        onv_term_calls_of(s, calls, ONV_TERM_LINEAR) != 0; /* mostly scaled by a number */
    for (uint32_t k = 0; k < 2; k++) {
        bool is_number = (k == 0) == (has_layers || onv_set_is_one(leaves));
        if (!is_number && solve_parts(s, c, shape, both, calls, leaves, at)) {
            s->now.is_assumed |= may_be_smaller(s, *at);
            return true;
        }
        if (is_number && onv_term_solve(s, shape, calls, leaves, &in) &&
            onv_term_add_call(s, c, shape, &in, 1, at))
            return true;
        s->now = before;
    }
    s->now = before;
    return false;
}

/* cat([a, b]) of parameters: those whose size nothing tells share what is left, as their sum is all that counts. */
static bool solve_cat(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t leaves,
                      uint16_t *at)
{
    enum { MOST = sizeof s->terms->in / sizeof *s->terms->in };
    uint32_t rank = shape->dims.rank, n = onv_set_size(leaves), n_open = 0;
    uint16_t in[MOST];
    if (n < 2 || n > MOST || rank == 0 || shape->is_wild || shape->dims.dims[0] <= 0) return false;
    int64_t left = shape->dims.dims[0];
    for (uint32_t i = 0; i < s->n_leaves; i++) {
        const onv_leaf *leaf = &s->leaves[i];
        if ((leaves >> i & 1) == 0) continue;
        n_open += !leaf->is_known;
        if (leaf->is_known && leaf->shape.dims.rank > 0) left -= leaf->shape.dims.dims[0];
    }
    if (left < n_open || (n_open == 0 && left != 0)) return false;
    n = 0;
    for (uint32_t i = 0; i < s->n_leaves; i++) {
        const onv_leaf *leaf = &s->leaves[i];
        onv_term_shape part = *shape;
        if ((leaves >> i & 1) == 0) continue;
        part.dims.dims[0] = leaf->is_known ? leaf->shape.dims.dims[0] : left / n_open;
        if (!leaf->is_known) left -= part.dims.dims[0];
        n_open -= !leaf->is_known;
        if (!onv_term_use_leaf(s, i, &part, &in[n++])) return false;
    }
    return onv_term_add_call(s, c, shape, in, n, at);
}

/* stack([eye(n), a]): one of its parts is of parameters. */
static bool solve_join(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                       uint32_t leaves, uint16_t *at)
{
    onv_attempt before = s->now;
    uint32_t made = onv_term_calls_of(s, calls, ONV_TERM_MADE), rank = shape->dims.rank;
    uint16_t in;
    if (strcmp(s->calls[c].kind->call, "cat") == 0 && calls == 0)
        return solve_cat(s, c, shape, leaves, at);
    if (strcmp(s->calls[c].kind->call, "stack") != 0 || made == 0 || rank < 2) return false;
    for (uint32_t i = 0; i < s->n_calls;
         i++) /* "eye" is a comparison of two ranges that have a dim more */
        if ((calls >> i & 1) != 0 && strcmp(s->calls[i].kind->call, "unsqueeze") == 0)
            made |= UINT32_C(1) << i;
    for (uint32_t dim = 0; dim < rank; dim++) {
        onv_term_shape part = {.dims = {.rank = rank - 1}};
        for (uint32_t i = 0; i + 1 < rank; i++)
            part.dims.dims[i] = shape->dims.dims[i + (i >= dim)];
        if (onv_term_solve(s, &part, calls & ~made, leaves, &in) &&
            onv_term_add_call(s, c, shape, &in, 1, at))
            return true;
        s->now = before;
    }
    return false;
}

static bool solve_view(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                       uint32_t leaves, uint16_t *at)
{
    const char *name = s->calls[c].kind->call;
    onv_term_shape from = *shape;
    bool swaps = strcmp(name, "t") == 0 || strcmp(name, "transpose") == 0 ||
                 strcmp(name, "numpy_T") == 0 || strcmp(name, "permute") == 0;
    bool spreads = strcmp(name, "expand") == 0 || strcmp(name, "repeat") == 0;
    uint16_t in;
    if (spreads) { /* the constant repeats what it is computed of */
        uint32_t repeated = onv_weight_repeated_dims(s->l, s->value->tensor);
        if (from.is_wild || from.dims.rank < 2) return false;
        if (from.dims.rank != (uint32_t)s->value->type.rank) repeated = 0;
        for (uint32_t i = 0; i < from.dims.rank; i++)
            if ((repeated >> i & 1) != 0 || (repeated == 0 && i == 0)) from.dims.dims[i] = 1;
        from.is_wild = true;
    } else if (swaps && from.dims.rank == 2 && !from.is_wild) {
        from.dims.dims[0] = shape->dims.dims[1];
        from.dims.dims[1] = shape->dims.dims[0];
    } else if (strcmp(name, "clone") != 0) {
        from.is_wild = true;
        from.is_reshaped |= strcmp(s->calls[c].kind->op, "view") == 0;
    }
    onv_term_shape result = *shape;
    result.is_reshaped = false;
    return onv_term_solve(s, &from, calls, leaves, &in) &&
           onv_term_add_call(s, c, &result, &in, 1, at);
}

/* The file has all parts, of the parts of parts, too: how many there are along each dim makes no difference. */
static bool solve_part(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                       uint32_t leaves, uint16_t *at)
{
    enum { LIKELY_PARTS = 2 };
    onv_attempt before = s->now;
    uint32_t rank = shape->dims.rank;
    bool is_last = c + 1 == s->n_calls;
    uint16_t in;
    for (uint32_t dim = 0; dim <= 2 * rank + 1 && rank < ONV_MAX_RANK; dim++) {
        onv_term_shape whole = *shape;
        int64_t n, told = is_last ? s->n_parts : 1;
        uint32_t to = dim % (rank + 1);
        s->now = before;
        memmove(whole.dims.dims + to + 1, whole.dims.dims + to,
                (rank - to) * sizeof *whole.dims.dims);
        if (!onv_term_unknown(s, is_last && s->n_parts > 1 ? s->n_parts : LIKELY_PARTS, &n)) break;
        whole.dims.dims[to] = n;
        whole.dims.rank = rank + 1;
        if (dim > rank && s->n_parts < 2) break;
        if (dim > rank) onv_term_set(s, n, told); /* what is not in the file */
        if (!onv_term_solve(s, &whole, calls, leaves, &in)) continue;
        if (s->n_parts > 1) onv_term_set(s, n, told);
        return onv_term_add_call(s, c, shape, &in, 1, at);
    }
    s->now = before;
    return false;
}

static int64_t root_of(int64_t n)
{
    int64_t root = 0;
    while (root < 1024 && (root + 1) * (root + 1) <= n) root++;
    return root * root == n ? root : 0;
}

/* The table of which [.., heads, queries, keys] are rows for each pair of a window's places, turned. */
static bool window_table(const onv_term_shape *shape, onv_term_shape *table)
{
    uint32_t rank = shape->dims.rank;
    if (!shape->is_wild || rank < 3 || shape->dims.dims[rank - 1] <= 0) return false;
    int64_t keys = shape->dims.dims[rank - 1], window = root_of(keys);
    if (window == 0 || shape->dims.dims[rank - 2] != keys) return false;
    *table = onv_term_matrix((2 * window - 1) * (2 * window - 1), shape->dims.dims[rank - 3]);
    return true;
}

/* Rows of a table, by indices that no parameter leads to. */
static bool solve_rows(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                       uint32_t leaves, uint16_t *at)
{
    uint32_t rank = shape->dims.rank, n = 0;
    int64_t rows = 1;
    onv_term_shape result = *shape;
    uint16_t in;
    onv_term_shape table;
    for (uint32_t i = 0; i < s->n_leaves; i++)
        n += (leaves >> i & 1) != 0 && s->leaves[i].is_buffer;
    if (n > 1 || (n == 1 && onv_term_calls_of(s, calls, ONV_TERM_LINEAR) == 0))
        for (uint32_t i = s->n_leaves; i-- > 0 && n > 0;) /* the last one by its name: indices */
            if ((leaves >> i & 1) != 0 && s->leaves[i].is_buffer) {
                leaves &= ~(UINT32_C(1) << i);
                n = 0;
            }
    if (onv_term_calls_of(s, calls, ONV_TERM_MADE) != 0)
        calls = 0; /* all the others lead to the indices */
    if (!window_table(shape, &table)) {
        for (uint32_t i = 0; i + 1 < rank; i++) {
            int64_t dim = onv_term_resolve(s->now.sizes, shape->dims.dims[i]);
            if (dim < 0 || !onv_i64_mul(rows, dim, &rows)) return false;
        }
        if (rank < 2 || (shape->is_wild && (shape->is_reshaped || !s->l->folded.takes_rows)))
            return false;
        table = onv_term_matrix(rows, shape->dims.dims[rank - 1]);
        if (shape->is_wild) result = table;
        if (!onv_term_unknown(s, rows, &table.dims.dims[0])) return false;
    }
    return onv_term_solve(s, &table, calls, leaves, &in) &&
           onv_term_add_call(s, c, &result, &in, 1, at);
}

/* Of functions of a parameter whose shape is known: a constant's own dims do not tell of what it is a sum. */
static bool solve_reduction(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                            uint32_t leaves, uint16_t *at)
{
    const onv_leaf *from = onv_set_is_one(leaves) ? &s->leaves[onv_set_first(leaves)] : NULL;
    uint16_t in;
    if (from == NULL || !from->is_known || from->shape.dims.rank < shape->dims.rank ||
        (calls & ~onv_term_calls_of(s, calls, ONV_TERM_POINTWISE)) != 0)
        return false;
    onv_term_shape whole = from->shape;
    return onv_term_solve(s, &whole, calls, leaves, &in) &&
           onv_term_add_call(s, c, shape, &in, 1, at);
}

bool onv_term_solve_call(onv_solver *s, uint32_t c, const onv_term_shape *shape, uint32_t calls,
                         uint32_t leaves, uint16_t *at)
{
    uint16_t in;
    switch ((onv_term_form)s->calls[c].kind->form) {
    case ONV_TERM_POINTWISE:
        return onv_term_solve(s, shape, calls, leaves, &in) &&
               onv_term_add_call(s, c, shape, &in, 1, at);
    case ONV_TERM_VIEW:
    case ONV_TERM_COPY: return solve_view(s, c, shape, calls, leaves, at);
    case ONV_TERM_PART: return solve_part(s, c, shape, calls, leaves, at);
    case ONV_TERM_PRODUCT: return solve_product(s, c, shape, calls, leaves, at);
    case ONV_TERM_LINEAR: return solve_linear(s, c, shape, calls, leaves, at);
    case ONV_TERM_PAIR: return solve_pair(s, c, shape, calls, leaves, at);
    case ONV_TERM_JOIN: return solve_join(s, c, shape, calls, leaves, at);
    case ONV_TERM_ROWS: return solve_rows(s, c, shape, calls, leaves, at);
    case ONV_TERM_REDUCTION: return solve_reduction(s, c, shape, calls, leaves, at);
    default: return false;
    }
}
