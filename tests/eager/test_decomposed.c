/* Operations that torch.export takes apart, and calls that stand for views or write into other memory: what training keeps of
 * them, and what their backward makes on its way. Figures are those of PyTorch's formulas (derivatives.yaml). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "eager/trainer.h"

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
      {"Where", "m one a", "y", "", "where", "aten.where.ScalarSelf"}}},
    {"softshrink",
     F,
     0,
     {{"Abs", "a", "z", "", "abs_1", "aten.abs.default"},
      {"Greater", "z one", "m", "", "gt", "aten.gt.Scalar"},
      {"Sign", "a", "s", "", "sign", "aten.sign.default"},
      {"Mul", "s one", "p", "", "mul", "aten.mul.Tensor"},
      {"Sub", "a p", "d", "", "sub", "aten.sub.Tensor"},
      {"Mul", "a two", "q", "", "mul_1", "aten.mul.Tensor"},
      {"Where", "m d q", "y", "", "where", "aten.where.self"}}},
    {"nansum",
     F,
     2 * M,
     {{"IsNaN", "a", "m", "", "isnan", "aten.isnan.default"},
      {"Where", "m one a", "z", "", "where", "aten.where.self"},
      {"ReduceSum", "z last", "y", "keepdims=0", "sum_1", "aten.sum.dim_IntList"}}},
    {"huber_loss",
     2 * F,
     0,
     {Z1,
      {"Mul", "z one", "p", "", "mul", "aten.mul.Tensor"},
      {"Mul", "p z", "q", "", "mul_1", "aten.mul.Tensor"},
      {"Sub", "z one", "s", "", "sub_1", "aten.sub.Tensor"},
      {"Where", "lt q s", "y", "", "where", "aten.where.self"}}},
    /* Reduced in the same line. */
    {"huber_loss",
     2 * F,
     0,
     {Z1,
      {"Mul", "z one", "p", "", "mul", "aten.mul.Tensor"},
      {"Mul", "p z", "q", "", "mul_1", "aten.mul.Tensor"},
      {"Sub", "z one", "s", "", "sub_1", "aten.sub.Tensor"},
      {"Where", "lt q s", "w", "", "where", "aten.where.self"},
      {"ReduceMean", "w", "y", "keepdims=0", "mean", "aten.mean.default"}}},
    {"smooth_l1_loss",
     2 * F,
     0,
     {Z1,
      {"Pow", "z two", "p", "", "pow_1", "aten.pow.Tensor_Scalar"},
      {"Mul", "p one", "q", "", "mul", "aten.mul.Tensor"},
      {"Sub", "z one", "s", "", "sub_1", "aten.sub.Tensor"},
      {"Where", "lt q s", "y", "", "where", "aten.where.self"}}},
    {"bce_with_logits",
     2 * F,
     F,
     {{"Sub", "one b", "d", "", "sub", "aten.sub.Tensor"},
      {"Mul", "d a", "p", "", "mul", "aten.mul.Tensor"},
      {"Sigmoid", "a", "s", "", "log_sigmoid", "aten.log_sigmoid.default"},
      {"Log", "s", "q", "", "log_sigmoid", "aten.log_sigmoid.default"},
      {"Sub", "p q", "y", "", "sub_1", "aten.sub.Tensor"}}},
    {"exp2", F, F, {{"Pow", "two a", "y", "", "exp2", "aten.exp2.default"}}},
    {"fmod_tensor", 2 * F, 2 * F, {{"Mod", "a b", "y", "fmod=1", "fmod", "aten.fmod.Tensor"}}},
    /* A parameter is an operand, too. */
    {"remainder_tensor",
     F + 8 * 8 * 4,
     3 * F - 8 * 8 * 4,
     {{"Div", "a wb", "d", "", "remainder", "aten.remainder.Tensor"},
      {"Floor", "d", "f", "", "remainder", "aten.remainder.Tensor"},
      {"Mul", "f wb", "p", "", "remainder", "aten.remainder.Tensor"},
      {"Sub", "a p", "y", "", "remainder", "aten.remainder.Tensor"}}},
    {"logaddexp",
     2 * F,
     3 * F,
     {{"Exp", "a", "p", "", "logaddexp", "aten.logaddexp.default"},
      {"Exp", "b", "q", "", "logaddexp", "aten.logaddexp.default"},
      {"Add", "p q", "s", "", "logaddexp", "aten.logaddexp.default"},
      {"Log", "s", "y", "", "logaddexp", "aten.logaddexp.default"}}},
    {"mse_loss",
     2 * F,
     0,
     {{"Sub", "a b", "d", "", "mse_loss", "aten.mse_loss.default"},
      {"Mul", "d d", "y", "", "mse_loss", "aten.mse_loss.default"}}},
    {"addcmul",
     2 * F,
     F,
     {{"Mul", "a b", "p", "", "addcmul", "aten.addcmul.default"},
      {"Add", "b p", "y", "", "addcmul", "aten.addcmul.default"}}},
    {"addcdiv",
     2 * F,
     4 * F,
     {{"Div", "a b", "p", "", "addcdiv", "aten.addcdiv.default"},
      {"Add", "a p", "y", "", "addcdiv", "aten.addcdiv.default"}}},
    {"diagonal",
     0,
     0,
     {{"EyeLike", "square", "eye", "", "diagonal", "aten.diagonal.default"},
      {"Mul", "a eye", "p", "", "diagonal", "aten.diagonal.default"},
      {"ReduceSum", "p last", "s", "keepdims=0", "diagonal", "aten.diagonal.default"},
      {"Slice", "s zero four axis", "y", "", "diagonal", "aten.diagonal.default"}}},
    {"adaptive_max_pool",
     2 * F,
     F + F / 2 + F,
     {{"Transpose", "a", "t", "perm=[0,2,1]", "transpose", "aten.transpose.int"},
      {"Unsqueeze", "t two_ints", "u", "", "unsqueeze", "aten.unsqueeze.default"},
      {"MaxPool", "u", "y", "kernel_shape=[1,2] strides=[1,2]", "max_pool2d_with_indices",
       "aten.max_pool2d_with_indices.default"}}},
    {"max_pool",
     2 * F,
     0,
     {{"Transpose", "a", "t", "perm=[0,2,1]", "transpose", "aten.transpose.int"},
      {"Unsqueeze", "t two_ints", "u", "", "unsqueeze", "aten.unsqueeze.default"},
      {"MaxPool", "u", "y", "kernel_shape=[1,2] strides=[1,2]", "max_pool2d",
       "aten.max_pool2d.default"}}},
    /* In lines of two modules it is what it looks like: the mask alone is kept. */
    {"Where",
     M,
     0,
     {{"LessOrEqual", "a one", "m", "", "elsewhere", "aten.le.Scalar"},
      {"Where", "m one a", "y", "", "where", "aten.where.ScalarSelf"}}},
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
        model_node(m, s->op, s->output, s->inputs, s->output, s->attributes);
    }
    model_output(m, "y", "f32");
    return m;
}

static void each_is_one_operation(void **state)
{
    (void)state;
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
        if (strcmp(op->name, rows[i].name) != 0 || kept != rows[i].kept ||
            op->backward_temp_bytes < rows[i].temps || op->backward_temp_bytes > rows[i].temps + 8)
            fail_msg("%s: %s keeps %llu bytes, not %llu; backward makes %llu, not %llu",
                     rows[i].name, op->name, (unsigned long long)kept,
                     (unsigned long long)rows[i].kept, (unsigned long long)op->backward_temp_bytes,
                     (unsigned long long)rows[i].temps);
        onv_eager_cleanup(&eager);
        trainer_close(&t);
        model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_one_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
