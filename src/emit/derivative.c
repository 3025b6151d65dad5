/* What PyTorch's derivative formulas allocate on the way to a gradient.
 *
 * A formula (tools/autograd/derivatives.yaml and the functions that it calls) is written down as the
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

#include <string.h>

#include "base/checked.h"

typedef struct formula {
    const char *name;    /* of the operation, as it was emitted */
    const char *of_self; /* of all inputs but the second; NULL: one kernel */
    const char *of_other;
} formula;

/* In comments: what the letters stand for. An operation that is not here makes its gradients and
 * nothing else, as those do whose backward is one kernel. */
static const formula formulas[] = {
    {"Abs", "ff", NULL},              /* grad * self.sgn() */
    {"Acos", "ffffff", NULL},         /* grad * -((-self * self + 1).rsqrt()) */
    {"Acosh", "ffff", NULL},          /* grad * (self * self - 1).rsqrt() */
    {"Asin", "fffff", NULL},          /* grad * (-self * self + 1).rsqrt() */
    {"Asinh", "ffff", NULL},          /* grad * (self.pow(2) + 1).rsqrt() */
    {"Atan", "fff", NULL},            /* grad / (self * self + 1) */
    {"Atanh", "ffff", NULL},          /* grad * 1 / (1 - self.pow(2)) */
    {"Cos", "fff", NULL},             /* grad * -self.sin() */
    {"Cosh", "ff", NULL},             /* grad * self.sinh() */
    {"CumSum", "cxxx", NULL},         /* cumsum_backward: to, flip, cumsum, flip */
    {"Erf", "fffff", NULL},           /* 2 / sqrt(pi) * exp(-(self.pow(2))) * grad */
    {"Max", "mfmf", NULL},            /* masked_fill of grad / 2 where equal, 0 where less */
    {"Min", "mfmf", NULL},            /* the same where greater */
    {"PRelu", "f", "f"},              /* _prelu_kernel_backward */
    {"Reciprocal", "fff", NULL},      /* -grad * (result * result) */
    {"ReduceL1", "xw", NULL},         /* norm_backward: self.sgn() * grad */
    {"ReduceL2", "wmw", NULL},        /* self / norm, masked_fill_ where norm is 0, * grad */
    {"ReduceLogSumExp", "xxx", NULL}, /* logsumexp_backward: grad * (self - result).exp() */
    {"ReduceMax", "Xi(I)fx", NULL},   /* scale_grad_by_count: self == result, its sum, / and * */
    {"ReduceMin", "Xi(I)fx", NULL},   /* the same */
    {"ReduceProd", "CXi(I)ww", NULL}, /* prod_backward: zeros counted, grad * (result / self) */
    {"Sin", "ff", NULL},              /* grad * self.cos() */
    {"Sinh", "ff", NULL},             /* grad * self.cosh() */
    {"Sqrt", "ff", NULL},             /* grad / (2 * result) */
    {"Softmax", "fx", NULL},          /* CUDA's kernel takes grad * output */
    {"Tan", "fff", NULL},             /* grad * (1 + result.pow(2)) */
    {"Where", "[sf]", "[sf]"},        /* where(condition, grad, 0) */
    {"atan2", "[fff]f(m)ff", "[fff]f(m)fffff"}, /* atan2_backward: both after one reciprocal */
    {"addcdiv", "fyxff", "<yf"}, /* -grad * (tensor1 / (tensor2 * tensor2)); grad * (1 / tensor2) */
    {"addcmul", "yf", "<yf"},    /* grad * (tensor1 * value); grad * (tensor2 * value) */
    {"bce_with_logits", NULL, "<xx"}, /* sigmoid(self) - target, in place; -self * grad */
    {"bce_with_logits_weighted", "fxx",
     NULL},                  /* of pos_weight * target, that and 1, sigmoid(self) */
    {"clamp", "smmf", NULL}, /* where(self > min && self < max, grad, 0) */
    {"clamp_between", "mmmff",
     "mmmff"},                  /* of tensors: half where equal to one of them, 0 outside */
    {"clamp_min", "smf", NULL}, /* the same of one bound */
    {"clamp_tensor", "mfmf",
     "mfmf"}, /* where self > min, half where equal; and the other way round */
    /* norm_backward of self - other; of other, its negative */
    {"dist", "x[xmx]", "x[xmx]x"},
    {"dist_l1", "x[xx]", "x[xx]x"},
    {"complex_abs", "xx", NULL},  /* grad * self.sgn() */
    {"complex_mul", "yf", "yf"},  /* grad * other.conj(), which is resolved */
    {"div", "f", "ffff"},         /* grad / other; -grad * ((self / other) / other) */
    {"exp2", "ff", NULL},         /* grad * result * ln(2) */
    {"expm1", "ff", NULL},        /* grad * (result + 1) */
    {"fmod_tensor", NULL, "fff"}, /* grad; -grad * self.div(other, "trunc") */
    {"log10", "ff", NULL},        /* grad / (self * ln(10)) */
    {"log2", "ff", NULL},         /* grad / (self * ln(2)) */
    {"logaddexp", "ffff", NULL},  /* grad / (1 + exp(other - self)) */
    {"logaddexp2", "ffff", NULL}, /* grad / (1 + pow(2, other - self)) */
    {"logsumexp", "xxx", NULL},   /* as above */
    /* logcumsumexp_backward: log of grad where above 0, and of -grad where below, each summed from the end */
    {"logcumsumexp", "s[ff][mf][mf][f[fff]ff][f[fff]ff]f", NULL},
    {"lerp_tensor", "ff", "ff"}, /* grad * weight; grad * (1 - weight); grad * (end - self) */
    {"log1p", "ff", NULL},       /* grad / (self + 1) */
    {"max_all", "XXi(I)fx",
     NULL},            /* evenly_distribute_backward: isnan, self == result, as ReduceMax */
    {"mul", "f", "f"}, /* grad * other; grad * self */
    {"nan_to_num", "[mfmm]f", NULL}, /* grad * isfinite(self) */
    {"nansum", "XXx", NULL},         /* nansum_backward: grad * self.isnan().logical_not() */
    {"polar", "[fff]",
     "<fff"},             /* real(grad.conj() * sgn(result)); real(grad.conj() * (result * 1j)) */
    {"pow", "fff", NULL}, /* grad * (exponent * self.pow(exponent - 1)) */
    {"pow_scalar", "ff", NULL},              /* grad * (result * log(base)) */
    {"pow_tensor", "yfffsYf", "[mmm]ffsff"}, /* pow_backward_self, pow_backward_exponent */
    {"prod_all", "C(X)ww", NULL},            /* as ReduceProd, but zeros are looked for */
    {"reciprocal", "fff", NULL},             /* as above */
    {"remainder_tensor", NULL, "fff"},       /* grad; -grad * self.div(other, "floor") */
    /* renorm_backward: self * grad, summed; norm_backward; maxnorm * invnorm * (grad - invnorm * that) where above */
    {"renorm", "(x)[xx][xxx]x", NULL},
    {"rsqrt", "fff", NULL}, /* -0.5 * grad * result.pow(3) */
    /* sinc_backward: self * pi; self * self * pi; grad * ((x cos x - sin x) / that); where that is 0 */
    {"sinc", "f[ff][ffffff]msf", NULL},
    {"softmax", "fx", NULL},      /* as above */
    {"std", "[ff(m)]fxfx", NULL}, /* std_backward: grad / (2 * result), then as var */
    {"add_alpha", NULL, "f"},     /* grad; grad * alpha */
    {"sub_alpha", NULL, "ff"},    /* grad; -grad * alpha */
    {"sub", "x", "f"},            /* grad; -grad */
    /* norm_backward: self * self.abs().pow_(p - 2), times what norms give; of infinity: masks of isnan and self.abs() == norm, how many
     * are equal, self.sgn() times the gradient where they are */
    {"vector_norm", "[xx]x", NULL},
    {"vector_norm_inf", "XXXX[xX]ifxxx", NULL},
    {"var", "fxfx", NULL},               /* var_backward: a * grad * (self - self.mean()) */
    {"std_mean", "[ff(m)fxfx]xx", NULL}, /* as std, and the mean's quotient, and their sum */
    {"var_mean", "[fxfx]xx", NULL},      /* likewise */
    {"xlogy", "fmmmf", "ff"}, /* xlogy(grad, other), 0 where self is; grad * self / other */
};

static const formula *find(const char *name)
{
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        if (strcmp(formulas[i].name, name) == 0) return &formulas[i];
    return NULL;
}

/* --- Running a formula ------------------------------------------------------------------------- */

enum { MAX_TENSORS = 16, MAX_DEPTH = 4, MAX_INPUTS = 8 };

typedef struct memory {
    uint64_t now, most;
} memory;

/* What does not fit is caught where it is counted. */
static void grow(memory *m, uint64_t bytes)
{
    if (!onv_u64_add(m->now, bytes, &m->now)) m->now = UINT64_MAX;
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

/* addcmul, addcdiv: the first operand is added. */
static bool adds_product(const char *name)
{
    return strncmp(name, "addc", 4) == 0;
}

static const char *text_of(const formula *f, uint32_t input)
{
    const char *text = input == 1 && f->of_other != NULL ? f->of_other : f->of_self;
    if (text == NULL || (input == 0 && adds_product(f->name))) return "x";
    return *text == '<' ? text + 1 : text;
}

/* What a formula of that input calls the other one. */
static uint32_t other_of(const formula *f, uint32_t input, uint32_t n_in)
{
    if (n_in < 2) return input;
    if (adds_product(f->name) && n_in == 3 && input > 0) return 3 - input;
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
    const formula *f = find(e->op.name);
    const onv_eager_arg *in = e->in.at;
    uint32_t n_in = (uint32_t)e->in.count;
    if (f == NULL || e->out.count == 0) return 0;
    memory m = {0};
    uint64_t all = 0, made[MAX_INPUTS] = {0};
    operands o = {.result = onv_tensor_at(e, e->out.at[0])};
    bool self_first = f->of_other != NULL && f->of_other[0] == '<';
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t k = self_first ? i : n_in - 1 - i;
        if (in[k].grad != ONV_GRAD_NEW) continue;
        o.self = onv_tensor_at(e, in[k].tensor);
        o.other = onv_tensor_at(e, in[other_of(f, k, n_in)].tensor);
        uint64_t bytes = run(text_of(f, k), &o, &m);
        if (k < MAX_INPUTS) made[k] = bytes;
        if (!onv_u64_add(all, o.self.bytes, &all)) all = UINT64_MAX;
    }
    for (uint32_t k = 0; k < n_in && k < MAX_INPUTS; k++) {
        uint64_t bytes = onv_tensor_at(e, in[k].tensor).bytes;
        if (in[k].grad != ONV_GRAD_NEW || bytes == made[k]) continue;
        grow(&m, bytes);
        m.now -= made[k];
    }
    return m.most > all ? m.most - all : 0;
}
