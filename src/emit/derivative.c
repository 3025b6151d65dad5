/* What PyTorch's derivative formulas allocate on the way to a gradient.
 *
 * A formula (tools/autograd/derivatives.yaml and the functions that it calls) is written down in the operator's row as the
 * tensors that it makes, one letter each, in the order in which it makes them:
 *
 *     x X I   like the input that the gradient is of: in its dtype, a mask of bytes, int64
 *     w       like that input in the result's dtype
 *     c C     casts of the result's gradient and of the input, where their dtypes differ
 *     y Y     like the other input: in its dtype, a mask of bytes
 *     f m i   like the result: in its dtype, a mask of bytes, int64
 *     s       a single number in the result's dtype
 *     [...]   a function or a statement of its own: when it ends, all but its last tensor go
 *     (...)   what is gone before the next tensor is made
 *     <       in front of other's: it comes after self's, by their names ("target")
 *
 * All tensors of a statement live to its end, as C++ keeps what is not named until then; the last one
 * is the gradient. Formulas of several inputs run one after another, the last input's first (their
 * names are sorted: exponent, other, self), and their results stay. Then the engine sums what was
 * broadcast and casts what was promoted, one after another: until then the gradients of such inputs
 * are as large as the result. */
#include "emit/emit.h"

#include "base/checked.h"

/* --- Running a formula ------------------------------------------------------------------------- */

enum { MAX_TENSORS = 16, MAX_DEPTH = 4, MAX_INPUTS = 8 };

typedef struct memory {
    uint64_t now, most;
} memory;

/* What does not fit is caught where it is counted. */
static void grow(memory *m, uint64_t bytes)
{
    m->now = onv_u64_plus(m->now, bytes);
    if (m->now > m->most) m->most = m->now;
}

static uint64_t int64_bytes(uint64_t elems)
{
    uint64_t bytes;
    return onv_u64_mul(elems, sizeof(int64_t), &bytes) ? bytes : UINT64_MAX;
}

typedef struct operands {
    onv_eager_tensor self, other, result;
} operands;

static uint64_t in_dtype_of_result(const operands *o)
{
    uint64_t bytes;
    return onv_dtype_bytes((onv_dtype)o->result.dtype, o->self.elems, &bytes) ? bytes : UINT64_MAX;
}

static uint64_t bytes_of(char letter, const operands *o)
{
    switch (letter) {
    case 'x': return o->self.bytes;
    case 'X': return o->self.elems;
    case 'I': return int64_bytes(o->self.elems);
    case 'w': return in_dtype_of_result(o);
    case 'C': return o->self.dtype != o->result.dtype ? in_dtype_of_result(o) : 0;
    case 'c': return o->self.dtype != o->result.dtype ? o->self.bytes : 0;
    case 'y': return o->other.bytes;
    case 'Y': return o->other.elems;
    case 'f': return o->result.bytes;
    case 'm': return o->result.elems;
    case 'i': return int64_bytes(o->result.elems);
    default: return onv_dtype_bits((onv_dtype)o->result.dtype) / 8;
    }
}

/* The first operand is added. */
static bool adds_product(onv_aten_id op)
{
    return op == ONV_ATEN_addcmul || op == ONV_ATEN_addcdiv;
}

static const char *text_of(const onv_aten_op *f, uint32_t input)
{
    const char *text = input == 1 && f->temps_of_second != NULL ? f->temps_of_second : f->temps;
    if (text == NULL || (input == 0 && adds_product(onv_aten_id_of(f)))) return "x";
    return *text == '<' ? text + 1 : text;
}

/* What a formula of that input calls the other one. */
static uint32_t other_of(const onv_aten_op *f, uint32_t input, uint32_t n_in)
{
    if (n_in < 2) return input;
    if (adds_product(onv_aten_id_of(f)) && n_in == 3 && input > 0) return 3 - input;
    return input == 0 ? 1 : 0;
}

/* The size of the last tensor, which alone is left. */
static uint64_t run(const char *text, const operands *o, memory *m)
{
    uint64_t live[MAX_TENSORS], before = m->now;
    uint32_t n = 0, starts[MAX_DEPTH], depth = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '[' || *c == '(') {
            starts[depth++] = n;
        } else if (*c == ']' || *c == ')') {
            uint32_t start = starts[--depth];
            uint64_t last = live[n - 1];
            while (n > start) m->now -= live[--n];
            if (*c == ')') continue;
            live[n++] = last;
            m->now += last;
        } else {
            live[n++] = bytes_of(*c, o);
            grow(m, live[n - 1]);
        }
    }
    /* cppcheck-suppress uninitvar ; a formula has a tensor */
    m->now = before + live[n - 1];
    return live[n - 1];
}

uint64_t onv_derivative_temps(const onv_emitter *e)
{
    const onv_aten_op *f = &onv_aten_ops[e->op.aten];
    const onv_eager_arg *in = e->in.at;
    uint32_t n_in = (uint32_t)e->in.count;
    if ((f->temps == NULL && f->temps_of_second == NULL) || e->out.count == 0) return 0;
    memory m = {0};
    uint64_t all = 0, made[MAX_INPUTS] = {0};
    operands o = {.result = onv_tensor_at(e, e->out.at[0])};
    bool self_first = f->temps_of_second != NULL && f->temps_of_second[0] == '<';
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t k = self_first ? i : n_in - 1 - i;
        if (in[k].grad != ONV_GRAD_NEW) continue;
        o.self = onv_tensor_at(e, in[k].tensor);
        o.other = onv_tensor_at(e, in[other_of(f, k, n_in)].tensor);
        uint64_t bytes = run(text_of(f, k), &o, &m);
        if (k < MAX_INPUTS) made[k] = bytes;
        all = onv_u64_plus(all, o.self.bytes);
    }
    for (uint32_t k = 0; k < n_in && k < MAX_INPUTS; k++) {
        uint64_t bytes = onv_tensor_at(e, in[k].tensor).bytes;
        if (in[k].grad != ONV_GRAD_NEW || bytes == made[k]) continue;
        grow(&m, bytes);
        m.now -= made[k];
    }
    return m.most > all ? m.most - all : 0;
}

uint64_t onv_forward_temps(const onv_emitter *e)
{
    const char *text = onv_aten_ops[e->op.aten].forward_temps;
    if (text == NULL || e->in.count == 0 || e->out.count == 0) return 0;
    memory m = {0};
    operands o = {.self = onv_tensor_at(e, e->in.at[0].tensor),
                  .other = onv_tensor_at(e, e->in.at[e->in.count > 1 ? 1 : 0].tensor),
                  .result = onv_tensor_at(e, e->out.at[0])};
    run(text, &o, &m);
    return m.most;
}
