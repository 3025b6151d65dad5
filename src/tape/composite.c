/* Operators that PyTorch computes by others (CompositeImplicitAutograd of native_functions.yaml), in the words of its source:
 * aten/src/ATen/native/Loss.cpp, LossNLL.cpp, Distance.cpp, ReduceOps.cpp, UnaryOps.cpp.
 *
 * Statements end with ';'; "swap?" stands before one that runs where that argument is true, "swap!" where it is not. What one makes
 * lives to its end, what has a name to the end of the call. Tensor arguments are a, b, c; numbers are left out, "_" overwrites.
 * "sum.l" is over the last dim, "sum.m" over the classes, "sum.a" over all, "norm.k" keeps the call's dim, "sum.r" gives what the call
 * gives, "gather.i" what is like the last argument; "norm" is of its order p. A letter before '?' asks whether there is that argument,
 * "mean" whether the loss is one, "sum" whether it is the other. */
#include <string.h>

#include "tape/state.h"

#define DISTANCE(x, y) "norm.l(add(sub(" x "," y ")))"

static const struct {
    onv_aten_id id;
    const char *text;
} texts[] = {
    {ONV_ATEN_cosine_embedding_loss,
     "p=sum.l(mul(a,b));x=add(sum.l(mul(a,a)));y=add(sum.l(mul(b,b)));d=sqrt_(mul(x,y));q=div(p,d);"
     "z=zeros_like(q);f=rsub(q);n=clamp_min_(sub(q));f=where(eq(c),f,z);n=where(eq(c),n,z);"
     "o=add(f,n);reduced(o)"},
    {ONV_ATEN_cosine_similarity,
     "a=expand(a,b);b=expand(b,a);n=clone(norm.k(a));m=clone(norm.k(b));"
     "sum.r(mul(div(a,n),div(b,m)))"},
    {ONV_ATEN_cross_entropy_loss, /* of probabilities */
     "label_smoothing?b=add(mul(b));c?o=mul(mul(a,b),c);c!o=mul(a,b);s=neg(sum.r(o));mean?div(s)"},
    {ONV_ATEN_cross_entropy_smoothed, /* a: logarithms, d: the loss without smoothing */
     "l=a;n=d;c?s=neg(sum.m(mul(a,c)));c!s=neg(sum.m(a));i=eq(b);s=masked_fill_(s,i);"
     "mean?c?s=div(sum.a(s),sum.a(gather.i(c,masked_select.i(b,logical_not(i)))));"
     "mean?c!m=logical_not(i);mean?c!s=div(sum.a(s),sum.a(m));sum?s=sum.a(s);add(mul(n),mul(s))"},
    {ONV_ATEN_hinge_embedding_loss,
     "z=zeros_like(a);m=rsub(a);m=clamp_min_(m);m=where(ne(b),m,z);s=where(ne(b),a,z);o=add(m,s);"
     "reduced(o)"},
    {ONV_ATEN_kl_div,
     "log_target?o=mul(exp(b),sub(b,a));log_target!o=sub(xlogy(b,b),mul(b,a));reduced(o)"},
    {ONV_ATEN_l1_loss, "reduced(abs(sub(a,b)))"},
    {ONV_ATEN_ldexp, "mul(a,pow(b))"},
    {ONV_ATEN_margin_ranking_loss, "o=add(mul(neg(c),sub(a,b)));o=clamp_min_(o);reduced(o)"},
    {ONV_ATEN_nanmean, "f=sum.r(logical_not_(isnan(a)));div(nansum.r(a),f)"},
    {ONV_ATEN_pairwise_distance, "norm.r(add(sub(a,b)))"},
    {ONV_ATEN_poisson_nll_loss,
     "log_input?o=sub(exp(a),mul(b,a));log_input!o=sub(a,mul(b,log(add(a))));"
     "full?s=add(sub(mul(b,log(b)),b),mul(log(mul(b))));full?o=add_(o,masked_fill(s,eq(b)));"
     "reduced(o)"},
    {ONV_ATEN_special_ndtr, "mul(add(erf(mul(a))))"},
    {ONV_ATEN_triplet_margin_loss,
     "p=" DISTANCE("a", "b") ";n=" DISTANCE("a", "c") ";swap?s=" DISTANCE(
         "b", "c") ";swap?n=minimum(n,s);reduced(clamp_min(sub(add(p),n)))"},
};

enum { NONE, MEAN, SUM }; /* "reduction" */
enum { LETTERS = 'z' - 'a' + 1, MOST_MADE = 12, MOST_ARGUMENTS = 3, MAX_NAME = 24 };

typedef struct composite {
    onv_tape *t;
    const onv_program_call *call;
    uint32_t named[LETTERS]; /* tensors */
    uint32_t made[MOST_MADE], n_made, names[MOST_MADE], n_names;
} composite;

onv_shape onv_tape_broadcast(const onv_tape *t, uint32_t a, uint32_t b)
{
    onv_eager_tensor x = onv_tensor_at(&t->emit, a), y = onv_tensor_at(&t->emit, b);
    onv_eager_tensor big = x.rank >= y.rank ? x : y, small = x.rank >= y.rank ? y : x;
    onv_shape shape = {.rank = big.rank};
    if (big.rank > 0) memcpy(shape.dims, big.dims, big.rank * sizeof *big.dims);
    for (uint32_t i = 0; i < small.rank; i++) {
        int64_t *dim = &shape.dims[big.rank - small.rank + i];
        if (*dim == 1) *dim = small.dims[i];
    }
    return shape;
}

static uint32_t reduced(onv_tape *t, const onv_program_call *c, uint32_t x)
{
    static const onv_shape number = {0};
    int64_t reduction = onv_call_int(t, c, "reduction", MEAN);
    return reduction == NONE
               ? x
               : onv_emit_step(&t->emit, reduction == MEAN ? ONV_ATEN_mean : ONV_ATEN_sum, x,
                               ONV_NO_TENSOR, 0, &number);
}

static onv_shape shape_of(const composite *s, char kind, const uint32_t *x, uint32_t n)
{
    onv_shape shape = onv_tape_broadcast(s->t, x[n - 1], x[n > 1 ? n - 2 : 0]);
    if (kind == 'l' && shape.rank > 0) shape.rank--;
    if (kind == 'm' && shape.rank-- > 2)
        memmove(&shape.dims[1], &shape.dims[2], (shape.rank - 1) * sizeof *shape.dims);
    if (kind == 'a') shape.rank = 0;
    if (kind == 'i') shape = onv_tape_broadcast(s->t, x[n - 1], x[n - 1]);
    int64_t axis = onv_call_int(s->t, s->call, "dim", 1);
    if (axis < 0) axis += shape.rank;
    if (kind == 'k' && axis >= 0 && axis < shape.rank) shape.dims[axis] = 1;
    if (kind == 'r') onv_tape_shape(s->t, onv_call_result(s->call, 0), &shape);
    return shape;
}

static uint8_t dtype_of(const onv_tape *t, onv_aten_id id, const uint32_t *x, uint32_t n)
{
    uint8_t first = onv_tensor_at(&t->emit, x[0]).dtype;
    bool asks = id == ONV_ATEN_eq || id == ONV_ATEN_isnan || id == ONV_ATEN_logical_not;
    if (asks) return ONV_BOOL;
    if (id == ONV_ATEN_sum && first == ONV_BOOL) return ONV_INT64;
    bool widens = t->row->cast == ONV_CAST_RESULT && t->emit.amp != ONV_UNDEFINED;
    if (widens && onv_dtype_is_float((onv_dtype)first)) return ONV_FLOAT;
    for (uint32_t i = n; i-- > 0;) {
        uint8_t dtype = onv_tensor_at(&t->emit, x[i]).dtype;
        if (onv_dtype_is_float((onv_dtype)dtype)) return dtype;
    }
    return first;
}

static uint32_t apply(composite *s, const char *name, char kind, const uint32_t *x, uint32_t n)
{
    onv_tape *t = s->t;
    if (strcmp(name, "reduced") == 0) return reduced(t, s->call, x[0]);
    bool is_norm = strcmp(name, "norm") == 0;
    t->row = &onv_aten_ops[is_norm ? ONV_ATEN_linalg_vector_norm : onv_aten_named(name)];
    onv_aten_id id = is_norm ? onv_tape_norm(onv_call_real(s->call, "p", 2)) : onv_aten_as(t->row);
    onv_shape shape = shape_of(s, kind, x, n);
    if (id == ONV_ATEN_expand) /* as expand_outplace() does */
        return onv_tensor_has_dims(&t->emit, x[0], shape.rank, shape.dims)
                   ? x[0]
                   : onv_emit_expand(&t->emit, x[0], shape.rank, shape.dims);
    uint8_t dtype = dtype_of(t, id, x, n);
    uint32_t out =
        onv_tape_step(t, id, x, n,
                      name[strlen(name) - 1] == '_'
                          ? ONV_NO_TENSOR
                          : onv_tensor_new(&t->emit, dtype, shape.rank, shape.dims, NULL));
    if (s->n_made < MOST_MADE) s->made[s->n_made++] = out;
    return out;
}

/* A name, or an operator with its arguments, from the last to the first (C++, compiled by GCC for x86-64). */
static uint32_t expression(composite *s, const char *at, const char *end)
{
    char name[MAX_NAME] = "", kind = '\0';
    uint32_t x[MOST_ARGUMENTS] = {0}, n = 0, depth = 0;
    size_t length = strcspn(at, "(.");
    if (at + length >= end) return s->named[*at - 'a'];
    memcpy(name, at, length < MAX_NAME ? length : MAX_NAME - 1);
    if (at[length] == '.') kind = at[length + 1];
    const char *open = strchr(at, '('), *last = end - 1;
    for (const char *c = last - 1; c >= open && n < MOST_ARGUMENTS; c--) {
        depth += *c == ')';
        if (depth == 0 && (*c == ',' || c == open)) {
            x[MOST_ARGUMENTS - ++n] = expression(s, c + 1, last);
            last = c;
        }
        depth -= *c == '(' && c != open;
    }
    return apply(s, name, kind, x + MOST_ARGUMENTS - n, n);
}

static void release(composite *s, const uint32_t *tensors, uint32_t n, uint32_t left)
{
    for (uint32_t i = 0; i < n; i++)
        if (tensors[i] != left) onv_emit_release(&s->t->emit, tensors[i]);
}

/* Whether that condition of a statement is true. */
static bool is_true(const composite *s, const char *condition)
{
    int64_t reduction = onv_call_int(s->t, s->call, "reduction", MEAN);
    if (condition[1] == '\0') return s->named[*condition - 'a'] != ONV_NO_TENSOR;
    if (strcmp(condition, "mean") == 0) return reduction == MEAN;
    if (strcmp(condition, "sum") == 0) return reduction == SUM;
    return onv_call_flag(s->call, condition, onv_call_real(s->call, condition, 0) > 0);
}

/* Whether the statement runs; `*at` moves behind its conditions. */
static bool holds(const composite *s, const char **at)
{
    bool all = true;
    for (size_t length; length = strcspn(*at, "?!;"), (*at)[length] == '?' || (*at)[length] == '!';
         *at += length + 1) {
        char condition[MAX_NAME] = "";
        memcpy(condition, *at, length < MAX_NAME ? length : MAX_NAME - 1);
        all &= is_true(s, condition) == ((*at)[length] == '?');
    }
    return all;
}

static uint32_t run(composite *s, const char *at)
{
    uint32_t result = ONV_NO_TENSOR;
    for (const char *end; *at != '\0'; at = end + (*end == ';')) {
        bool runs = holds(s, &at);
        char name = '\0';
        if (at[1] == '=') name = at[0];
        end = at + strcspn(at, ";");
        if (!runs) continue;
        result = expression(s, at + (name != '\0' ? 2 : 0), end);
        release(s, s->made, s->n_made, result);
        s->n_made = 0;
        if (name != '\0') s->named[name - 'a'] = result;
        if (name > 'c' && s->n_names < MOST_MADE) s->names[s->n_names++] = result;
    }
    release(s, s->names, s->n_names, result);
    return result;
}

uint32_t onv_tape_composite_of(onv_tape *t, const onv_program_call *c, onv_aten_id id)
{
    size_t i = 0;
    for (uint32_t k = 0; k < MOST_ARGUMENTS && t->row->cast == ONV_CAST_FLOAT32; k++)
        t->in[k] = onv_amp_fp32(&t->emit, t->in[k]);
    while (texts[i].id != id) i++;
    composite s = {.t = t, .call = c, .named = {t->in[0], t->in[1], t->in[2], t->in[3]}};
    return run(&s, texts[i].text);
}

uint32_t onv_tape_composite(onv_tape *t, const onv_program_call *c)
{
    return onv_tape_composite_of(t, c, onv_aten_id_of(t->row));
}
