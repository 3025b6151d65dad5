/* What Inductor's decompositions make of the tape's operations.
 *
 * A recipe is a list of statements, one for each operation:
 *
 *     d=po(x,m)    d is made of x and m by a pointwise operation, as large as the result
 *     >pr(m)       a result of forward that no variable names
 *     !p(d)        what depends on gradients reads d, and is pointwise
 *     !c1(x)       the same in a product, where input 1 gets a gradient
 *
 * Inputs are x, y, z, w, the result is o. Kinds are p (pointwise, and reductions), v (a view), g (a part
 * of a result of several tensors), c (products), n (kernels of their own); capitals have such a result.
 * Sizes are o, x, y (like these), a (all results of the tape's operation), q (o and b), r (its statistics: of each
 * row, each channel), R (two of them), b and m (a byte for each element of o and x), f (a float32), i
 * (an int64), 0 to 2 (the tape's extra storages), 3 (eight bytes). A variable that nothing defines (no
 * bias) is left out; a pointwise operation that it leaves with one operand of two is none.
 *
 * What backward computes without gradients follows the recipe of forward, and may read its variables:
 * equal operations of both are one, as after AOTAutograd's elimination of common subexpressions. */
#include <stdlib.h>
#include <string.h>

#include "ckpt/joint.h"

/* Those of channels, as PyTorch's batch_norm: the running statistics are results too. */
#define STATISTICS "V=PR(x) v=gr(V) m=gr(V) a=pr(v) s=pr(a) d=po(x,m) h=po(d,s) M=vr(m) S=vr(s) "
#define RUNNING    "q=pr(M) >pr(q) t=vr(v) u=pr(t) j=pr(u) >pr(j) "
#define AFFINE     "A=vy(y) B=vy(A) k=po(h,B) C=vy(z) D=vy(C) o=po(k,D)"
#define OF_CHANNELS                                                                                \
    "E=vr(M) F=vr(E) G=vr(F) H=po(x,G) !p(H) I=pr(S,S) !p(I) J=pr(S,y) K=vr(J) L=vr(K) N=vr(L) "   \
    "!p(N) !p(S)"
/* Of channels of each sample: weight and bias are repeated. */
#define REPEATED "e=nr(y) f=nr(z) A=vr(e) B=vr(A) k=po(h,B) C=vr(f) D=vr(C) o=po(k,D)"
#define OF_REPEATED                                                                                \
    "E=vr(M) F=vr(E) G=vr(F) H=po(x,G) !p(H) I=pr(S,S) !p(I) J=pr(S,e) K=vr(J) L=vr(K) N=vr(L) "   \
    "!p(N) !p(S)"
#define OF_ROWS        "e=pr(s) !p0(e) !p(h) !p0(y)"
#define ATTENTION      "A=Ca(x,y,z,w) o=go(A) l=g0(A) s=g1(A) t=g2(A)"
#define OF_ATTENTION   "!c(x,y,z,w,o,l,s,t)"
#define GELU           "a=po(x) b=po(x) e=po(b) f=po(e) o=po(a,f)"
#define OF_GELU        "g=po(f) h=po(x,x) i=po(h) j=po(i) k=po(j) l=po(x,k) q=po(g,l) !p(q)"
#define ELU            "g=pb(x) m=po(x) e=po(m) k=po(e) o=po(g,x,k)"
#define OF_ELU         "l=pm(x) !p(l) n=po(x) q=po(n) !p(q)"
#define HARD_SIGMOID   "a=po(x) b=po(a) c=po(b) "
#define SOFTPLUS       "e=po(x) l=po(e) g=pb(x) o=po(g,x,l)"
#define OF_SOFTPLUS    "q=po(x) e=po(q) !p(e) h=pb(q) !p(h)"
#define MISH           "e=po(x) l=po(e) t=po(l) o=po(x,t)"
#define OF_MISH        "e=po(x) l=po(e) t=po(l) !p(x,t)"
#define SOFTMAX        "a=pr(x) d=po(x,a) e=po(d) t=pr(e) o=po(e,t)"
#define OF_SOFTMAX     "n=po(o) !p(n) !p(o)"
#define LOG_SOFTMAX    "a=pr(x) d=po(x,a) e=po(d) t=pr(e) l=pr(t) o=po(d,l)"
#define OF_LOG_SOFTMAX "e=po(o) !p(e)"
#define HARD_SWISH     HARD_SIGMOID "d=po(x,c) o=po(d)"
#define OF_HARD_SWISH  "l=pm(x) k=pm(x) e=po(x) f=po(e) !p(l,k,f)"
#define OF_CLAMP       "l=pm(x) k=pm(x) m=pm(l,k) !p(m)"
#define OF_EXTREME     "m=pm(x,o) !p(m) c=po(m) !p(c)"
#define MAX_POOL       "A=Nq(x) o=go(A) j=gb(A)"
#define SHUFFLE        "a=vx(x) b=vx(a) c=po(b) o=vo(c)"
#define RANDOM         "s=n3() o=no(s)"
#define DROPOUT        "s=n3() u=nf(s) k=pb(u) a=po(k,x) o=po(a)"
#define OF_DROPOUT     "c=po(k) d=po(c) !p(d)"

/* In the order of names. */
static const onv_joint_recipe recipes[] = {
    {"Abs", NULL, NULL},
    {"Acos", NULL, NULL},
    {"Acosh", NULL, NULL},
    {"And", NULL, NULL},
    {"ArgMax", NULL, NULL},
    {"Asin", NULL, NULL},
    {"Asinh", NULL, NULL},
    {"Atan", NULL, NULL},
    {"Atanh", NULL, NULL},
    {"AveragePool", "o=no(x)", "!n0(x)"},
    {"Bernoulli", RANDOM, ""},
    {"Cast", NULL, NULL},
    {"Ceil", NULL, NULL},
    {"Celu", ELU, OF_ELU},
    {"ConstantOfShape", NULL, NULL},
    {"Cos", NULL, NULL},
    {"Cosh", NULL, NULL},
    {"CumSum", "o=no(x)", ""},
    {"DepthToSpace", SHUFFLE, ""},
    {"Elu", ELU, OF_ELU},
    {"Equal", NULL, NULL},
    {"Erf", NULL, NULL},
    {"Exp", NULL, NULL},
    {"Floor", NULL, NULL},
    {"GatherElements", NULL, NULL},
    {"GatherND", "o=po(x,y)", "!n0(y)"},
    {"Gelu", GELU, OF_GELU},
    {"Greater", NULL, NULL},
    {"GreaterOrEqual", NULL, NULL},
    {"HardSigmoid", HARD_SIGMOID "o=po(c)", OF_CLAMP},
    {"HardSwish", HARD_SWISH, OF_HARD_SWISH},
    {"IsInf", NULL, NULL},
    {"IsNaN", NULL, NULL},
    {"LeakyRelu", "g=pb(x) a=po(x) o=po(g,x,a)", "!p(g)"},
    {"Less", NULL, NULL},
    {"LessOrEqual", NULL, NULL},
    {"Log", NULL, NULL},
    {"LogSoftmax", LOG_SOFTMAX, OF_LOG_SOFTMAX},
    {"Max", NULL, NULL},
    {"Min", NULL, NULL},
    {"Mish", MISH, OF_MISH},
    {"Mod", NULL, NULL},
    {"Neg", NULL, NULL},
    {"Not", NULL, NULL},
    {"Or", NULL, NULL},
    {"PRelu", "g=pb(x) a=po(y,x) o=po(g,x,a)", "!p(g) !p0(y) !p1(x)"},
    {"Pad", "o=no(x)", ""},
    {"QuantizeLinear", NULL, NULL},
    {"RandomNormal", RANDOM, ""},
    {"RandomNormalLike", RANDOM, ""},
    {"RandomUniform", RANDOM, ""},
    {"RandomUniformLike", RANDOM, ""},
    {"Range", NULL, NULL},
    {"Reciprocal", NULL, NULL},
    {"ReduceMax", "o=po(x)", OF_EXTREME},
    {"ReduceMin", "o=no(x)", OF_EXTREME},
    {"Resize", "o=no(x)", ""},
    {"Round", NULL, NULL},
    {"ScatterElements", "o=no(x,y,z)", "!n(y)"},
    {"ScatterND", "o=no(x,y,z)", "!n(y)"},
    {"Selu", ELU, OF_ELU},
    {"Sigmoid", "o=po(x)", "u=po(o) v=po(o,u) !p(v)"},
    {"Sign", NULL, NULL},
    {"Sin", NULL, NULL},
    {"Sinh", NULL, NULL},
    {"Slice", "o=no(x)", ""},
    {"Softmax", SOFTMAX, OF_SOFTMAX},
    {"Softplus", SOFTPLUS, OF_SOFTPLUS},
    {"Softsign", NULL, NULL},
    {"SpaceToDepth", SHUFFLE, ""},
    {"Sqrt", NULL, NULL},
    {"Tan", NULL, NULL},
    {"Tanh", "o=po(x)", "u=po(o,o) v=po(u) !p(v)"},
    {"Tile", NULL, NULL},
    {"Trilu", NULL, NULL},
    {"Where", "o=po(x,y,z)", "!p(x)"},
    {"Xor", NULL, NULL},
    {"add", NULL, NULL},
    {"add_", NULL, NULL},
    {"addmm", "o=co(z,x,y)", "!c1(x) B=vy(y) !c0(B)"},
    {"atan2", NULL, NULL},
    {"avg_pool", "o=no(x)", "!n0(x)"},
    {"batch_norm", STATISTICS RUNNING AFFINE, OF_CHANNELS},
    {"bmm", "o=co(x,y)", "A=vx(x) !c1(A) B=vy(y) !c0(B)"},
    {"clamp", "a=po(x) o=po(a)", OF_CLAMP},
    {"clamp_min", "o=po(x)", "l=pm(x) !p(l)"},
    {"contiguous", NULL, NULL},
    {"conv", "o=co(x,y,z)", "!c(x,y)"},
    {"cudnn_attention", ATTENTION, OF_ATTENTION},
    {"div", NULL, NULL},
    {"dropout", DROPOUT, OF_DROPOUT},
    {"dropout_", DROPOUT, OF_DROPOUT},
    {"efficient_attention", ATTENTION, OF_ATTENTION},
    {"elu", ELU, OF_ELU},
    {"embedding", "o=no(x,y)", "!n0(y)"},
    {"exp2", NULL, NULL},
    {"expm1", NULL, NULL},
    {"flash_attention", ATTENTION, OF_ATTENTION},
    {"full", NULL, NULL},
    {"gelu", GELU, OF_GELU},
    {"glu", NULL, NULL},
    {"group_norm", STATISTICS AFFINE, "!p(x) !p(M) !p(S)"},
    {"hardshrink", NULL, NULL},
    {"hardsigmoid", HARD_SIGMOID "o=po(c)", OF_CLAMP},
    {"hardswish", HARD_SWISH, OF_HARD_SWISH},
    {"hardtanh", "a=po(x) o=po(a)", OF_CLAMP},
    {"instance_norm", STATISTICS REPEATED, OF_REPEATED},
    {"layer_norm",
     "V=PR(x) v=gr(V) m=gr(V) a=pr(v) s=pr(a) d=po(x,m) h=po(d,s) k=po(h,y) o=po(k,z)", OF_ROWS},
    {"log10", NULL, NULL},
    {"log1p", NULL, NULL},
    {"log2", NULL, NULL},
    {"log_sigmoid", NULL, NULL},
    {"log_softmax", LOG_SOFTMAX, OF_LOG_SOFTMAX},
    {"logsumexp", NULL, NULL},
    {"max", NULL, NULL},
    {"max_pool", MAX_POOL, "i=pi(j) q=vi(i) !n(q)"},
    {"max_pool3d", MAX_POOL, "i=pi(j) !n(x,i)"},
    {"mean", NULL, NULL},
    {"mish", MISH, OF_MISH},
    {"mm", "o=co(x,y)", "!c1(x) B=vy(y) !c0(B)"},
    {"mul", NULL, NULL},
    {"pad", "o=no(x)", ""},
    {"parametrize", NULL, NULL},
    {"pow", NULL, NULL},
    {"pow_scalar", NULL, NULL},
    {"pow_tensor", NULL, NULL},
    {"reciprocal", NULL, NULL},
    {"relu", "o=po(x)", "l=pb(o) !p(l)"},
    {"reshape", "c=po(x) o=vo(c)", ""},
    {"rms_norm", "q=po(x) n=pr(q) a=pr(n) s=pr(a) h=po(x,s) o=po(h,y)",
     "k=po(h) !p0(k) !p(h) !p(s)"},
    {"roll", "o=po(x)", ""},
    {"rsqrt", NULL, NULL},
    {"silu", "a=po(x) b=po(a) c=po(b) o=po(x,c)", "s=po(x) !p(s) u=po(s) v=po(x,u) w=po(v) !p(w)"},
    {"softmax", SOFTMAX, OF_SOFTMAX},
    {"softplus", SOFTPLUS, OF_SOFTPLUS},
    {"softshrink", NULL, NULL},
    {"std", NULL, NULL},
    {"sub", NULL, NULL},
    {"sum", NULL, NULL},
    {"threshold", "o=po(x)", "l=pm(x) !p(l)"},
    {"to", NULL, NULL},
    {"var", NULL, NULL},
};

static int compare(const void *name, const void *recipe)
{
    return strcmp(name, ((const onv_joint_recipe *)recipe)->name);
}

const onv_joint_recipe *onv_joint_recipe_of(const char *name)
{
    return bsearch(name, recipes, sizeof recipes / sizeof recipes[0], sizeof recipes[0], compare);
}
