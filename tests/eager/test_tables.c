/* Tables of positions, which the exporter computed, beside parameters that it lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "eager/noted_network.h"
#include "eager/trainer.h"

enum { W = 8 * 8 * 4 };

/* Where a parameter has no tensor, a table that the exporter computed may be made of it: what is multiplied by that. */
static void tables_may_be_of_missing_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *listed, *told;
    } cases[] = {{"fc.weight embeddings.class", "up to 128 bytes"}, {"fc.weight", NULL}};
    for (size_t i = 0; i < 2; i++) {
        const network n = {cases[i].listed,
                           "val_1 f32[8,8] cos f32[4,8]",
                           {FC,
                            {"Mul", "h cos", "y", "", "layers.0.attention", "mul", "zoo.Attention",
                             "aten.mul.Tensor"}}};
        outcome o = run(&n);
        assert_int_equal(o.factors[0] != '\0', cases[i].told != NULL);
        if (cases[i].told != NULL) assert_non_null(strstr(o.factors, cases[i].told));
    }
}

static void tables_of_sinusoidal_modules_are_not_trained(void **state)
{
    (void)state;
    for (int is_table = 0; is_table < 2; is_table++) {
        network n = {"fc.weight positions.weight",
                     "val_1 f32[8,8] positions.weight f32[4,8]",
                     {FC,
                      {"Add", "h positions.weight", "y", "", "positions", "add",
                       is_table ? "zoo.SinusoidalPositionalEmbedding" : "zoo.Positions",
                       "aten.add.Tensor"}}};
        outcome o = run(&n);
        assert_int_equal(o.figures.parameter_bytes, W + 4 * 8 * 4);
        assert_int_equal(o.figures.gradient_bytes, W + (is_table ? 0 : 4 * 8 * 4));
    }
}

/* Attention with a parameter of its own that is neither weight nor bias, or a bias: tables of rotations, and one that all
 * queries are multiplied by, are none of them. */
static void tables_of_positions_are_no_parameters(void **state)
{
    (void)state;
    enum { X = 4 * 8 * 4, VECTOR = 8 * 4 };
#define ATTENTION(call) "net.attention", call, "zoo.Attention", "aten.op.default"
    static const network networks[] = {
        {"net.attention.sinks fc.weight",
         "val_1 f32[8,8] unsqueeze_1 f32[4,8] unsqueeze_2 f32[4,8] view_3 f32[1,8]",
         {FC,
          {"Mul", "h unsqueeze_1", "a", "", ATTENTION("mul")},
          {"Split", "h", "l r", "axis=1 num_outputs=2", ATTENTION("split")},
          {"Neg", "r", "n", "", ATTENTION("neg")},
          {"Concat", "n l", "c", "axis=1", ATTENTION("cat")},
          {"Mul", "c unsqueeze_2", "b", "", ATTENTION("mul_1")},
          {"Add", "a b", "t", "", ATTENTION("add")},
          {"Sub", "t view_3", "y", "", ATTENTION("sub_2")}}},
        {"net.attention.sinks fc.weight", /* pairs of neighbours */
         "val_1 f32[8,8] unsqueeze_1 f32[4,8] unsqueeze_2 f32[4,8] view_3 f32[1,8]",
         {FC,
          {"Constant", "", "pairs", "value_ints=[4,4,2]", NULL, NULL, NULL, NULL},
          {"Constant", "", "whole", "value_ints=[4,8]", NULL, NULL, NULL, NULL},
          {"Mul", "h unsqueeze_1", "a", "", ATTENTION("mul")},
          {"Reshape", "h pairs", "p", "", ATTENTION("view")},
          {"Split", "p", "l r", "axis=2 num_outputs=2", ATTENTION("split")},
          {"Neg", "r", "n", "", ATTENTION("neg")},
          {"Concat", "n l", "c", "axis=2", ATTENTION("stack")},
          {"Reshape", "c whole", "v", "", ATTENTION("view_1")},
          {"Mul", "v unsqueeze_2", "b", "", ATTENTION("mul_1")},
          {"Add", "a b", "t", "", ATTENTION("add")},
          {"Sub", "t view_3", "y", "", ATTENTION("sub_2")}}},
        {"net.attention.gate_bias fc.weight",
         "val_1 f32[8,8] unsqueeze_1 f32[4,8] unsqueeze_4 f32[1,8]",
         {FC,
          {"Mul", "h unsqueeze_1", "a", "", ATTENTION("mul")},
          {"Add", "a unsqueeze_4", "y", "", ATTENTION("add")}}}};
    static const uint64_t kept[] = {3 * X, 3 * X, 2 * X}; /* x, and the tables */
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        outcome o = run(&networks[i]);
        assert_int_equal(o.figures.parameter_bytes, W + VECTOR);
        assert_int_equal(o.figures.saved_activation_bytes, kept[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_may_be_of_missing_parameters),
        cmocka_unit_test(tables_of_sinusoidal_modules_are_not_trained),
        cmocka_unit_test(tables_of_positions_are_no_parameters),
    };
    return cmocka_run_group_tests_name("eager.tables", tests, NULL, NULL);
}
