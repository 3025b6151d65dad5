/* Operations that torch.export takes apart, and calls that stand for views or write into other memory: what training keeps of
 * them, and what their backward makes on its way. Figures are those of PyTorch's formulas (derivatives.yaml). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "eager/trainer.h"
#include "lower/lower.h"

/* a and b are products of the input, [4, 8, 8]; F: one of them, M: a mask of it. */
enum { F = 4 * 8 * 8 * 4, M = F / 4, MAX_STEPS = 12 };

#define LINEAR "torch.nn.modules.linear.Linear"

typedef struct step {
    const char *op, *inputs, *output, *attributes, *call, *aten;
} step;

typedef struct row {
    const char *name; /* of the operation that gives y; NULL: the last node is one by itself */
    uint64_t kept, temps;
    step steps[MAX_STEPS];
    const char *line; /* of Python that calls all of them, where it matters */
} row;

#define Z1                                                                                         \
    {"Sub", "a b", "d", "", "sub", "aten.sub.Tensor"},                                             \
        {"Abs", "d", "z", "", "abs_1", "aten.abs.default"},                                        \
    {                                                                                              \
        "Less", "z one", "lt", "", "lt", "aten.lt.Scalar"                                          \
    }

static const row rows[] = {
    {"threshold",
     F,
     0,
     {{"LessOrEqual", "a one", "m", "", "le", "aten.le.Scalar"},
      {"Where", "m one a", "y", "", "where", "aten.where.ScalarSelf"}},
     NULL},
    {"softshrink",
     F,
     0,
     {{"Abs", "a", "z", "", "abs_1", "aten.abs.default"},
      {"Greater", "z one", "m", "", "gt", "aten.gt.Scalar"},
      {"Sign", "a", "s", "", "sign", "aten.sign.default"},
      {"Mul", "s one", "p", "", "mul", "aten.mul.Tensor"},
      {"Sub", "a p", "d", "", "sub", "aten.sub.Tensor"},
      {"Mul", "a two", "q", "", "mul_1", "aten.mul.Tensor"},
      {"Where", "m d q", "y", "", "where", "aten.where.self"}},
     NULL},
    {"nansum",
     F,
     2 * M,
     {{"IsNaN", "a", "m", "", "isnan", "aten.isnan.default"},
      {"Where", "m one a", "z", "", "where", "aten.where.self"},
      {"ReduceSum", "z last", "y", "keepdims=0", "sum_1", "aten.sum.dim_IntList"}},
     NULL},
    {"huber_loss",
     2 * F,
     0,
     {Z1,
      {"Mul", "z one", "p", "", "mul", "aten.mul.Tensor"},
      {"Mul", "p z", "q", "", "mul_1", "aten.mul.Tensor"},
      {"Sub", "z one", "s", "", "sub_1", "aten.sub.Tensor"},
      {"Where", "lt q s", "y", "", "where", "aten.where.self"}},
     NULL},
    /* Reduced in the same line. */
    {"huber_loss",
     2 * F,
     0,
     {Z1,
      {"Mul", "z one", "p", "", "mul", "aten.mul.Tensor"},
      {"Mul", "p z", "q", "", "mul_1", "aten.mul.Tensor"},
      {"Sub", "z one", "s", "", "sub_1", "aten.sub.Tensor"},
      {"Where", "lt q s", "w", "", "where", "aten.where.self"},
      {"ReduceMean", "w", "y", "keepdims=0", "mean", "aten.mean.default"}},
     NULL},
    {"smooth_l1_loss",
     2 * F,
     0,
     {Z1,
      {"Pow", "z two", "p", "", "pow_1", "aten.pow.Tensor_Scalar"},
      {"Mul", "p one", "q", "", "mul", "aten.mul.Tensor"},
      {"Sub", "z one", "s", "", "sub_1", "aten.sub.Tensor"},
      {"Where", "lt q s", "y", "", "where", "aten.where.self"}},
     NULL},
    {"bce_with_logits",
     2 * F,
     F,
     {{"Sub", "one b", "d", "", "sub", "aten.sub.Tensor"},
      {"Mul", "d a", "p", "", "mul", "aten.mul.Tensor"},
      {"Sigmoid", "a", "s", "", "log_sigmoid", "aten.log_sigmoid.default"},
      {"Log", "s", "q", "", "log_sigmoid", "aten.log_sigmoid.default"},
      {"Sub", "p q", "y", "", "sub_1", "aten.sub.Tensor"}},
     NULL},
    /* b is a weight of the positive targets, which is made with their sum. */
    {"bce_with_logits_weighted",
     2 * F,
     2 * F,
     {{"Sub", "one b", "d", "", "sub", "aten.sub.Tensor"},
      {"Mul", "d a", "p", "", "mul", "aten.mul.Tensor"},
      {"Mul", "wu b", "w", "", "mul_1", "aten.mul.Tensor"},
      {"Add", "w one", "v", "", "add", "aten.add.Tensor"},
      {"Sigmoid", "a", "s", "", "log_sigmoid", "aten.log_sigmoid.default"},
      {"Log", "s", "q", "", "log_sigmoid", "aten.log_sigmoid.default"},
      {"Mul", "v q", "r", "", "mul_2", "aten.mul.Tensor"},
      {"Sub", "p r", "y", "", "sub_1", "aten.sub.Tensor"}},
     NULL},
    /* Constants are on the host, where they are as small as these labels. */
    {"multi_margin_loss",
     F,
     0,
     {{"Reshape", "a tall", "p", "", "view", "aten.view.default"},
      {"Unsqueeze", "labels axis", "t", "", "unsqueeze", "aten.unsqueeze.default"},
      {"GatherElements", "p t", "g", "axis=1", "gather", "aten.gather.default"},
      {"Sub", "one g", "d", "", "sub", "aten.sub.Tensor"},
      {"Add", "d p", "s", "", "add", "aten.add.Tensor"},
      {"Clip", "s one", "c", "", "clamp_min", "aten.clamp_min.Tensor"},
      {"Equal", "places_of_classes t", "e", "", "ne", "aten.ne.Tensor"},
      {"Not", "e", "n", "", "ne", "aten.ne.Tensor"},
      {"Where", "n c one", "w", "", "where", "aten.where.self"},
      {"ReduceMean", "w axis", "y", "keepdims=0", "mean", "aten.mean.dim"}},
     NULL},
    /* Of classes, unreduced: the logarithms, and a number. */
    {"nll_loss",
     F + 4,
     0,
     {{"Reshape", "a tall", "p", "", "view", "aten.view.default"},
      {"SoftmaxCrossEntropyLoss", "p labels", "y", "reduction='none'", "cross_entropy_loss",
       "aten.cross_entropy_loss.default"}},
     NULL},
    /* Masks: no kernel makes truth of numbers first. */
    {"any",
     0,
     0,
     {{"Cast", "a", "t", "to=9", "convert", "prims.convert_element_type.default"},
      {"Cast", "t", "i", "to=7", "any_1", "aten.any.dim"},
      {"ReduceMax", "i last", "y", "keepdims=0", "any_1", "aten.any.dim"}},
     NULL},
    /* What is added is a part of b. */
    {"index_add",
     F,
     3 * 8 * 8 * 4,
     {{"Slice", "b zero_int three_ints", "p", "", "slice_1", "aten.slice.Tensor"},
      {"Mul", "p two", "q", "", "mul", "aten.mul.Tensor"},
      {"ScatterND", "a places q", "y", "reduction='add'", "index_put", "aten.index_put.default"}},
     "y = a.index_add(0, places, b[:3], alpha=2)"},
    {"exp2", F, F, {{"Pow", "two a", "y", "", "exp2", "aten.exp2.default"}}, NULL},
    {"fmod_tensor",
     2 * F,
     2 * F,
     {{"Mod", "a b", "y", "fmod=1", "fmod", "aten.fmod.Tensor"}},
     NULL},
    /* A parameter is an operand, too. */
    {"remainder_tensor",
     F + 8 * 8 * 4,
     3 * F - 8 * 8 * 4,
     {{"Div", "a wb", "d", "", "remainder", "aten.remainder.Tensor"},
      {"Floor", "d", "f", "", "remainder", "aten.remainder.Tensor"},
      {"Mul", "f wb", "p", "", "remainder", "aten.remainder.Tensor"},
      {"Sub", "a p", "y", "", "remainder", "aten.remainder.Tensor"}},
     NULL},
    {"logaddexp",
     2 * F,
     3 * F,
     {{"Exp", "a", "p", "", "logaddexp", "aten.logaddexp.default"},
      {"Exp", "b", "q", "", "logaddexp", "aten.logaddexp.default"},
      {"Add", "p q", "s", "", "logaddexp", "aten.logaddexp.default"},
      {"Log", "s", "y", "", "logaddexp", "aten.logaddexp.default"}},
     NULL},
    {"mse_loss",
     2 * F,
     0,
     {{"Sub", "a b", "d", "", "mse_loss", "aten.mse_loss.default"},
      {"Mul", "d d", "y", "", "mse_loss", "aten.mse_loss.default"}},
     NULL},
    {"addcmul",
     2 * F,
     F,
     {{"Mul", "a b", "p", "", "addcmul", "aten.addcmul.default"},
      {"Add", "b p", "y", "", "addcmul", "aten.addcmul.default"}},
     NULL},
    {"addcdiv",
     2 * F,
     4 * F,
     {{"Div", "a b", "p", "", "addcdiv", "aten.addcdiv.default"},
      {"Add", "a p", "y", "", "addcdiv", "aten.addcdiv.default"}},
     NULL},
    {"diagonal",
     0,
     0,
     {{"EyeLike", "square", "eye", "", "diagonal", "aten.diagonal.default"},
      {"Mul", "a eye", "p", "", "diagonal", "aten.diagonal.default"},
      {"ReduceSum", "p last", "s", "keepdims=0", "diagonal", "aten.diagonal.default"},
      {"Slice", "s zero four axis", "y", "", "diagonal", "aten.diagonal.default"}},
     NULL},
    {"adaptive_max_pool",
     2 * F,
     F + F / 2 + F,
     {{"Transpose", "a", "t", "perm=[0,2,1]", "transpose", "aten.transpose.int"},
      {"Unsqueeze", "t two_ints", "u", "", "unsqueeze", "aten.unsqueeze.default"},
      {"MaxPool", "u", "y", "kernel_shape=[1,2] strides=[1,2]", "max_pool2d_with_indices",
       "aten.max_pool2d_with_indices.default"}},
     NULL},
    {"max_pool",
     2 * F,
     0,
     {{"Transpose", "a", "t", "perm=[0,2,1]", "transpose", "aten.transpose.int"},
      {"Unsqueeze", "t two_ints", "u", "", "unsqueeze", "aten.unsqueeze.default"},
      {"MaxPool", "u", "y", "kernel_shape=[1,2] strides=[1,2]", "max_pool2d",
       "aten.max_pool2d.default"}},
     NULL},
    {"dist",
     2 * F + 4,
     2 * F,
     {{"Sub", "a b", "d", "", "sub", "aten.sub.Tensor"},
      {"Reshape", "d last", "r", "", "linalg_vector_norm", "aten.linalg_vector_norm.default"},
      {"ReduceL2", "r", "y", "keepdims=0", "linalg_vector_norm",
       "aten.linalg_vector_norm.default"}},
     "y = torch.dist(a, b)"},
    /* (a - b).norm() is as many operations. */
    {"ReduceL2",
     F + 4,
     F,
     {{"Sub", "a b", "d", "", "sub", "aten.sub.Tensor"},
      {"Reshape", "d last", "r", "", "linalg_vector_norm", "aten.linalg_vector_norm.default"},
      {"ReduceL2", "r", "y", "keepdims=0", "linalg_vector_norm",
       "aten.linalg_vector_norm.default"}},
     "y = distance(a, b) + torch.norm(a - b)"},
    {"renorm",
     F,
     3 * F,
     {{"ReduceL2", "a axis", "n", "keepdims=1", "norm", "aten.linalg_vector_norm.default"},
      {"Greater", "n one", "g", "", "gt", "aten.gt.Scalar"},
      {"Add", "n two", "s", "", "add", "aten.add.Tensor"},
      {"Reciprocal", "s", "i", "", "reciprocal", "aten.reciprocal.default"},
      {"Where", "g i one", "w", "", "where", "aten.where.ScalarOther"},
      {"Mul", "a w", "y", "", "mul", "aten.mul.Tensor"}},
     "y = a.renorm(2, 1, 1.0)"},
    {"sgn", 2 * F, 0, {{"Sign", "a", "y", "", "sign", "aten.sign.default"}}, "y = torch.sgn(a)"},
    {"take",
     F,
     0,
     {{"Reshape", "a last", "r", "", "view", "aten.view.default"},
      {"GatherND", "r places", "y", "", "index", "aten.index.Tensor"}},
     "y = torch.take(a, places)"},
    {"block_diag",
     0,
     0,
     {{"Concat", "a zeros", "p", "axis=2", "", ""},
      {"Concat", "zeros b", "q", "axis=2", "cat_1", "aten.cat.default"},
      {"Concat", "p q", "y", "axis=1", "cat", "aten.cat.default"}},
     "y = torch.block_diag(a, b)"},
    /* The pooling keeps the indices. */
    {"max_unpool",
     0,
     0,
     {{"MaxPool", "a", "p i", "kernel_shape=[2] strides=[2]", "max_pool1d_with_indices",
       "aten.max_pool1d_with_indices.default"},
      {"Add", "i offsets", "s", "", "add", "aten.add.Tensor"},
      {"Reshape", "s last", "si", "", "view", "aten.view.default"},
      {"Unsqueeze", "si last", "u", "", "put", "aten._unsafe_index_put.default"},
      {"ConstantOfShape", "shape", "c", "", "new_zeros", "aten.new_zeros.default"},
      {"Reshape", "c last", "cf", "", "view_1", "aten.view.default"},
      {"Reshape", "p last", "pf", "", "view_2", "aten.view.default"},
      {"ScatterND", "cf u pf", "z", "", "put", "aten._unsafe_index_put.default"},
      {"Reshape", "z shape", "y", "", "view_3", "aten.view.default"}},
     "y = F.max_unpool1d(*F.max_pool1d(a, 2, return_indices=True), 2)"},
    {"prod_all",
     F + 4,
     F,
     {{"ReduceProd", "a", "y", "keepdims=0", "prod", "aten.prod.default"}},
     NULL},
    /* Factors: each gradient of a product is multiplied once more. */
    {"addmm",
     2 * F,
     F,
     {{"Reshape", "a tall", "p", "", "view", "aten.view.default"},
      {"Reshape", "b wide", "q", "", "view_1", "aten.view.default"},
      {"Gemm", "p q wc", "y", "alpha=2.0", "addmm", "aten.addmm.default"}},
     NULL},
    {"baddbmm",
     2 * F,
     F,
     {{"MatMul", "a b", "p", "", "baddbmm", "aten.baddbmm.default"},
      {"Mul", "p two", "q", "", "baddbmm", "aten.baddbmm.default"},
      {"Add", "q x", "y", "", "baddbmm", "aten.baddbmm.default"}},
     NULL},
    {"addbmm",
     2 * F,
     0,
     {{"MatMul", "a b", "p", "", "addbmm", "aten.addbmm.default"},
      {"ReduceSum", "p zero", "s", "keepdims=0", "addbmm", "aten.addbmm.default"},
      {"Add", "wb s", "y", "", "addbmm", "aten.addbmm.default"}},
     NULL},
    /* The exporter makes matrices of the vectors; beta * grad is made before the others. */
    {"addr",
     2 * 8 * 4,
     8 * 4,
     {{"Reshape", "wv column", "p", "", "addr", "aten.addr.default"},
      {"Reshape", "wu line", "q", "", "addr", "aten.addr.default"},
      {"MatMul", "p q", "r", "", "addr", "aten.addr.default"},
      {"Mul", "two r", "s", "", "addr", "aten.addr.default"},
      {"Add", "wb s", "y", "", "addr", "aten.addr.default"}},
     NULL},
    {"addmv",
     8 * 8 * 4 + 8 * 4,
     8 * 8 * 4 - 8 * 4,
     {{"MatMul", "wb wv", "p", "", "addmv", "aten.addmv.default"},
      {"Mul", "p two", "q", "", "addmv", "aten.addmv.default"},
      {"Add", "wu q", "y", "", "addmv", "aten.addmv.default"}},
     NULL},
    /* The mean of both, and deviations that nothing reads. */
    {"mean_of_std",
     F + 4 * 8 * 4,
     0,
     {{"ReduceSum", "a last", "s", "keepdims=0", "sum_1", "prims.sum.default"},
      {"Reshape", "s offset_shape", "t", "", "broadcast_in_dim_1",
       "prims.broadcast_in_dim.default"},
      {"Div", "t two", "y", "", "div", "prims.div.default"}},
     "y = torch.std_mean(a, -1, keepdim=True)[1]"},
    {"mean_of_var",
     F,
     0,
     {{"ReduceSum", "a last", "s", "keepdims=0", "sum_1", "prims.sum.default"},
      {"Div", "s two", "y", "", "div", "prims.div.default"}},
     "y = torch.var_mean(a, -1)[1]"},
    /* Each product of a row is as large as its weight. */
    {"trilinear",
     2 * F + 4 * 8 * 8 * 4,
     32 * 8 * 8 * 4 - 4 * 8 * 8 * 4,
     {{"Reshape", "a tall", "p", "", "view", "aten.view.default"},
      {"Reshape", "b tall", "q", "", "view_1", "aten.view.default"},
      {"Reshape", "turned turned_shape", "w", "", "bilinear", "aten.bilinear.default"},
      {"MatMul", "p w", "r", "", "bilinear", "aten.bilinear.default"},
      {"Reshape", "r rows_shape", "s", "", "bilinear", "aten.bilinear.default"},
      {"Unsqueeze", "q last", "u", "", "bilinear", "aten.bilinear.default"},
      {"MatMul", "s u", "t", "", "bilinear", "aten.bilinear.default"},
      {"Squeeze", "t last", "y", "", "bilinear", "aten.bilinear.default"}},
     NULL},
    /* A copy of the columns that do not stand behind each other, for the gradient of b's part. */
    {"bmm",
     2 * F,
     F / 2,
     {{"Slice", "a zero four two_ints two_ints", "p", "", "slice_1", "aten.slice.Tensor"},
      {"Slice", "b zero four axis two_ints", "q", "", "slice_2", "aten.slice.Tensor"},
      {"MatMul", "p q", "y", "", "bmm", "aten.bmm.default"}},
     NULL},
    {"add_alpha",
     0,
     0,
     {{"Mul", "b two", "p", "", "add", "aten.add.Tensor"},
      {"Add", "a p", "y", "", "add", "aten.add.Tensor"}},
     NULL},
    {"sub_alpha",
     0,
     F,
     {{"Mul", "b two", "p", "", "sub", "aten.sub.Tensor"},
      {"Sub", "a p", "y", "", "sub", "aten.sub.Tensor"}},
     NULL},
    {"div_mode",
     2 * F,
     0,
     {{"Div", "a b", "p", "", "div", "aten.div.Tensor_mode"},
      {"Floor", "p", "y", "", "div", "aten.div.Tensor_mode"}},
     NULL},
    {"scatter_reduce",
     3 * F + 2 * F,
     0,
     {{"ScatterElements", "a elements b", "y", "reduction='add'", "scatter_reduce",
       "aten.scatter_reduce.two"}},
     NULL},
    {"scatter_reduce",
     3 * F + 2 * F,
     11 * F + 2 * M,
     {{"ScatterElements", "a elements b", "y", "reduction='mul'", "scatter_reduce",
       "aten.scatter_reduce.two"}},
     NULL},
    /* Bounds that are tensors. */
    {"clamp_between",
     3 * F,
     3 * M + F,
     {{"Max", "a x", "p", "", "clamp", "aten.clamp.Tensor"},
      {"Min", "p b", "y", "", "clamp", "aten.clamp.Tensor"}},
     NULL},
    {"vector_norm",
     F + 4 * 8 * 4,
     F,
     {{"Abs", "a", "p", "", "norm", "aten.linalg_vector_norm.default"},
      {"Pow", "p two", "q", "", "norm", "aten.linalg_vector_norm.default"},
      {"ReduceSum", "q last", "s", "keepdims=0", "norm", "aten.linalg_vector_norm.default"},
      {"Pow", "s one", "y", "", "norm", "aten.linalg_vector_norm.default"}},
     NULL},
    {"vector_norm_inf",
     F + 4 * 8 * 4,
     2 * F + 5 * M + 4 * 8 * 8 + 4 * 8 * 4,
     {{"Abs", "a", "p", "", "norm", "aten.linalg_vector_norm.default"},
      {"ReduceMax", "p last", "y", "keepdims=0", "norm", "aten.linalg_vector_norm.default"}},
     NULL},
    /* torch.trace */
    {"diagonal",
     0,
     0,
     {{"EyeLike", "square", "eye", "", "diagonal_copy", "aten.diagonal_copy.default"},
      {"Mul", "a eye", "p", "", "diagonal_copy", "aten.diagonal_copy.default"},
      {"ReduceSum", "p last", "y", "keepdims=0", "diagonal_copy", "aten.diagonal_copy.default"}},
     NULL},
    /* Complex numbers are pairs. */
    {"complex",
     2 * F,
     0,
     {{"Unsqueeze", "a last", "p", "", "complex", "aten.complex.default"},
      {"Unsqueeze", "b last", "q", "", "complex", "aten.complex.default"},
      {"Concat", "p q", "y", "axis=-1", "complex", "aten.complex.default"}},
     NULL},
    {"polar",
     2 * F,
     3 * 2 * F,
     {{"Cos", "b", "c", "", "polar", "aten.polar.default"},
      {"Mul", "a c", "p", "", "polar", "aten.polar.default"},
      {"Sin", "b", "s", "", "polar", "aten.polar.default"},
      {"Mul", "a s", "q", "", "polar", "aten.polar.default"},
      {"Concat", "p q", "y", "axis=-1", "polar", "aten.polar.default"}},
     NULL},
    {"complex_mul",
     2 * F,
     3 * F,
     {{"Mul", "a b", "p", "", "mul", "aten.mul.Tensor"},
      {"Sub", "p a", "q", "", "mul", "aten.mul.Tensor"},
      {"Concat", "p q", "y", "axis=-1", "mul", "aten.mul.Tensor"}},
     NULL},
    {"complex_abs",
     F,
     F,
     {{"ReduceL2", "a last", "y", "keepdims=0", "abs_1", "aten.abs.default"}},
     NULL},
    /* Lists of tensors, as hstack has them. */
    {"cat",
     0,
     0,
     {{"SequenceConstruct", "a b", "s", "", "atleast_1d", "aten.atleast_1d.Sequence"},
      {"SequenceAt", "s n0", "p", "", "getitem", "getitem"},
      {"SequenceAt", "s n1", "q", "", "getitem_1", "getitem"},
      {"Concat", "p q", "y", "axis=1", "cat", "aten.cat.default"}},
     NULL},
    {"stack",
     0,
     0,
     {{"SequenceEmpty", "", "e", "", "stack", "aten.stack.default"},
      {"SequenceInsert", "e a", "s", "", "stack", "aten.stack.default"},
      {"SequenceInsert", "s b", "t", "", "stack", "aten.stack.default"},
      {"ConcatFromSequence", "t", "y", "axis=1 new_axis=1", "stack", "aten.stack.default"}},
     NULL},
    /* In lines of two modules it is what it looks like: the mask alone is kept. */
    {"Where",
     M,
     0,
     {{"LessOrEqual", "a one", "m", "", "elsewhere", "aten.le.Scalar"},
      {"Where", "m one a", "y", "", "where", "aten.where.ScalarSelf"}},
     NULL},
};

static model *build(const row *r)
{
    const int64_t last = -1, zero = 0, four = 8, axis = 1;
    model *m = model_new(18);
    model_input(m, "x", "f32[4,8,8]");
    model_weight(m, "wa", "f32[8,8]");
    model_weight(m, "wb", "f32[8,8]");
    model_weight(m, "square", "f32[8,8]");
    model_ints(m, "last", 1, &last);
    model_ints(m, "zero", 1, &zero);
    model_ints(m, "four", 1, &four);
    model_ints(m, "axis", 1, &axis);
    model_ints(m, "two_ints", 1, (const int64_t[]){2});
    model_ints(m, "shape", 3, (const int64_t[]){4, 8, 8});
    model_ints(m, "tall", 2, (const int64_t[]){32, 8});
    model_ints(m, "wide", 2, (const int64_t[]){8, 32});
    model_node(m, "Constant", "n0", "", "n0", "value_int=0");
    model_node(m, "Constant", "n1", "", "n1", "value_int=1");
    model_weight(m, "labels", "i64[32]");
    model_weight(m, "places_of_classes", "i64[8]");
    model_ints(m, "zero_int", 1, &zero);
    model_ints(m, "three_ints", 1, (const int64_t[]){3});
    model_ints(m, "column", 2, (const int64_t[]){8, 1});
    model_ints(m, "line", 2, (const int64_t[]){1, 8});
    model_ints(m, "offset_shape", 3, (const int64_t[]){4, 8, 1});
    model_ints(m, "turned_shape", 2, (const int64_t[]){8, 32});
    model_ints(m, "rows_shape", 3, (const int64_t[]){32, 4, 8});
    model_weight(m, "turned", "f32[8,4,8]");
    model_weight(m, "wu", "f32[8]");
    model_weight(m, "wv", "f32[8]");
    model_role(m, "wu", "PARAMETER");
    model_role(m, "wv", "PARAMETER");
    model_weight(m, "zeros", "f32[4,8,8]");
    model_weight(m, "places", "i64[3,1]");
    model_weight(m, "offsets", "i64[4,8,1]");
    model_weight(m, "elements", "i64[4,8,8]");
    model_weight(m, "wc", "f32[32,32]");
    model_role(m, "wc", "PARAMETER");
    model_role(m, "wa", "PARAMETER");
    model_role(m, "wb", "PARAMETER");
    model_node(m, "Constant", "one", "", "one", "value_float=1.0");
    model_node(m, "Constant", "two", "", "two", "value_float=2.0");
    for (int k = 0; k < 2; k++) {
        model_source(m, k == 0 ? "fa" : "fb", k == 0 ? "linear" : "linear_1");
        model_class(m, LINEAR, "aten.linear.default");
        model_node(m, "MatMul", k == 0 ? "a" : "b", k == 0 ? "x wa" : "x wb", k == 0 ? "a" : "b",
                   "");
    }
    for (uint32_t i = 0; i < MAX_STEPS && r->steps[i].op != NULL; i++) {
        const step *s = &r->steps[i];
        model_source(m, strcmp(s->call, "elsewhere") == 0 ? "other" : "m", s->call);
        model_class(m, "Net", s->aten);
        if (r->line != NULL) model_trace(m, r->line);
        model_node(m, s->op, s->output, s->inputs, s->output, s->attributes);
    }
    model_output(m, "y", "f32");
    return m;
}

static void each_is_one_operation(void **state)
{
    (void)state;
    uint32_t n_wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trainer t;
        onv_error err = {0};
        onv_eager eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .no_inplace = true};
        model *m = build(&rows[i]);
        trainer_open_model(&t, m);
        if (onv_eager_lower(&t.model, &t.live, t.is_host, &options, &eager, &err) != ONV_OK)
            fail_msg("%s: %s (%s)", rows[i].name, err.message, err.node);
        const onv_eager_op *op = &eager.ops.at[eager.ops.count - 1];
        uint64_t kept = 0;
        for (uint32_t k = 0; k < op->n_saved; k++)
            for (uint32_t j = 0; j <= k; j++) { /* each storage once */
                if (j == k) kept += eager.storages.at[op->saved[k]].bytes;
                if (op->saved[j] == op->saved[k]) break;
            }
        bool is_wrong = strcmp(op->name, rows[i].name) != 0 || kept != rows[i].kept ||
                        op->backward_temp_bytes < rows[i].temps ||
                        op->backward_temp_bytes > rows[i].temps + 8;
        if (is_wrong)
            print_error(
                "%s: %s keeps %llu bytes, not %llu; backward makes %llu, not %llu\n", rows[i].name,
                op->name, (unsigned long long)kept, (unsigned long long)rows[i].kept,
                (unsigned long long)op->backward_temp_bytes, (unsigned long long)rows[i].temps);
        n_wrong += is_wrong;
        onv_eager_cleanup(&eager);
        trainer_close(&t);
        model_free(m);
    }
    assert_int_equal(n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_one_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
