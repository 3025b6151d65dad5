/* What PyTorch's derivative formulas allocate on the way to a gradient.
 *
 * A formula (tools/autograd/derivatives.yaml and the functions that it calls) is written down in the operator's row as the
 * tensors that it makes, one letter each, in the order in which it makes them:
 *
 *     x X I   like the input that the gradient is of: in its dtype, a mask of bytes, int64
 *     w       like that input in the result's dtype
 *     n N     a copy of that input where it is not contiguous, and of the other
 *     c C     casts of the result's gradient and of the input, where their dtypes differ
 *     R       C of a reduction, whose kernels read 16 bits where the result is float32 (make_reduction_from_out_ty())
 *     y Y     like the other input: in its dtype, a mask of bytes
 *     f m i   like the result: in its dtype, a mask of bytes, int64
 *     s       a single number in the result's dtype
 *     [...]   a function or a statement of its own: when it ends, all but its last tensor go
 *     (...)   what is gone before the next tensor is made
 *     ^       in front of the gradient, where it is not the last tensor
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

enum { MAX_TENSORS = ONV_ATEN_MOST_TEMPS, MAX_DEPTH = ONV_ATEN_MOST_NESTED, NO_TEMP = UINT32_MAX };

/* The tensors that formulas allocate, in their order. */
typedef struct made {
    onv_backward_temp at[ONV_BACKWARD_TEMPS];
    uint32_t n;
    bool is_full; /* some have no place */
} made;

static uint32_t make(made *m, uint64_t bytes)
{
    m->is_full |= m->n == ONV_BACKWARD_TEMPS;
    if (bytes == 0 || m->is_full) return NO_TEMP;
    m->at[m->n] = (onv_backward_temp){.bytes = bytes, .until = ONV_BACKWARD_TEMPS};
    return m->n++;
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
    case 'I': return onv_u64_times(o->self.elems, sizeof(int64_t));
    case 'w': return in_dtype_of_result(o);
    case 'n': return onv_tensor_is_contiguous(&o->self) ? 0 : in_dtype_of_result(o);
    case 'N': return onv_tensor_is_contiguous(&o->other) ? 0 : o->other.bytes;
    case 'C': return o->self.dtype != o->result.dtype ? in_dtype_of_result(o) : 0;
    case 'c': return o->self.dtype != o->result.dtype ? o->self.bytes : 0;
    case 'R': {
        bool reads_low =
            onv_dtype_bits((onv_dtype)o->self.dtype) == 16 && o->result.dtype == ONV_FLOAT;
        return reads_low ? 0 : bytes_of('C', o);
    }
    case 'y': return o->other.bytes;
    case 'Y': return o->other.elems;
    case 'f': return o->result.bytes;
    case 'm': return o->result.elems;
    case 'i': return onv_u64_times(o->result.elems, sizeof(int64_t));
    case 's': return onv_dtype_bits((onv_dtype)o->result.dtype) / 8;
    default: return UINT64_MAX; /* no letter of ONV_ATEN_TENSORS */
    }
}

static operands operands_of(const onv_emitter *e)
{
    return (operands){.self = onv_tensor_at(e, e->in.at[0].tensor),
                      .other = onv_tensor_at(e, e->in.at[e->in.count > 1 ? 1 : 0].tensor),
                      .result = onv_tensor_at(e, e->out.at[0])};
}

/* The first operand is added. */
static bool adds_product(onv_aten_id op)
{
    return op == ONV_ATEN_addcmul || op == ONV_ATEN_addcdiv;
}

static const char *text_of(const onv_aten_op *f, uint32_t input)
{
    const onv_aten_temps *t = f->temps;
    const char *text = input == 1 && t->of_second != NULL ? t->of_second : t->backward;
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

/* Frees the tensors from `from` on, but for `left`. Returns how many stay. */
static uint32_t end(made *m, uint32_t *live, uint32_t from, uint32_t n, uint32_t left)
{
    uint32_t stay = from;
    for (uint32_t i = from; i < n; i++)
        if (live[i] == left)
            live[stay++] = left;
        else
            m->at[live[i]].until = m->n;
    return stay;
}

/* Returns the gradient; all others are freed. */
static uint32_t run(const char *text, const operands *o, made *m)
{
    uint32_t live[MAX_TENSORS], n = 0, starts[MAX_DEPTH], depth = 0, grad = NO_TEMP;
    for (const char *c = text; *c != '\0'; c++) {
        uint32_t last = n > 0 ? live[n - 1] : NO_TEMP;
        if (*c == '[' || *c == '(') {
            starts[depth++] = n;
        } else if (*c == ']' || *c == ')') {
            n = end(m, live, starts[--depth], n, *c == ']' ? last : NO_TEMP);
        } else if (*c != '^') {
            live[n] = make(m, bytes_of(*c, o));
            if (c > text && c[-1] == '^') grad = live[n];
            n += live[n] != NO_TEMP;
        }
    }
    if (grad == NO_TEMP && n > 0) grad = live[n - 1];
    end(m, live, 0, n, grad);
    return grad;
}

/* The engine sums the gradient of input k, where that was broadcast, and casts it, where it was promoted. */
static void finish(made *m, uint32_t last, uint32_t k, uint64_t bytes)
{
    if (last == NO_TEMP || m->at[last].bytes != bytes) {
        uint32_t sum = make(m, bytes);
        if (last != NO_TEMP) m->at[last].until = m->n;
        last = sum;
    }
    if (last != NO_TEMP) m->at[last].grad_of = 1 + k;
}

void onv_emit_derivative(onv_emitter *e)
{
    const onv_aten_op *f = &onv_aten_ops[e->op.aten];
    const onv_eager_arg *in = e->in.at;
    uint32_t n_in = (uint32_t)e->in.count, last[ONV_BACKWARD_TEMPS];
    const onv_aten_temps *temps = f->temps;
    if (temps == NULL || e->out.count == 0) return;
    if (temps->backward == NULL && temps->of_second == NULL) return;
    made m = {.is_full = n_in > ONV_BACKWARD_TEMPS};
    operands o = {.result = onv_tensor_at(e, e->out.at[0])};
    bool self_first = temps->of_second != NULL && temps->of_second[0] == '<';
    for (uint32_t i = 0; i < n_in && !m.is_full; i++) {
        uint32_t k = self_first ? i : n_in - 1 - i;
        if (in[k].grad != ONV_GRAD_NEW) continue;
        o.self = onv_tensor_at(e, in[k].tensor);
        o.other = onv_tensor_at(e, in[other_of(f, k, n_in)].tensor);
        last[k] = run(text_of(f, k), &o, &m);
    }
    for (uint32_t k = 0; k < n_in && !m.is_full; k++)
        if (in[k].grad == ONV_GRAD_NEW)
            finish(&m, last[k], k, onv_tensor_at(e, in[k].tensor).bytes);
    onv_emit_backward_temps(e, &e->op, m.at, m.n);
}

uint64_t onv_forward_temps(const onv_emitter *e)
{
    const onv_aten_temps *temps = onv_aten_ops[e->op.aten].temps;
    if (temps == NULL || temps->forward == NULL || e->in.count == 0 || e->out.count == 0) return 0;
    made m = {0};
    operands o = operands_of(e);
    run(temps->forward, &o, &m);
    return onv_backward_temps_most(m.at, m.n);
}

void onv_emit_hidden_result(onv_emitter *e)
{
    const onv_aten_temps *temps = onv_aten_ops[e->op.aten].temps;
    if (temps == NULL || temps->hidden == NULL || e->in.count == 0 || e->out.count == 0) return;
    operands o = operands_of(e);
    uint64_t bytes = bytes_of(temps->hidden[0], &o);
    if (e->op.has_backward)
        onv_emit_extra(e, bytes, 1, "hidden result");
    else
        e->op.forward_temp_bytes = onv_u64_plus(e->op.forward_temp_bytes, bytes);
}
