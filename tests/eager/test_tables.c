/* Tables of positions, which the exporter computed, beside parameters that it lists. */
#include "eager/noted_network.h"
#include "eager/trainer.h"
#include "support/test.h"

enum { W = 8 * 8 * 4 };

/* Where a parameter has no tensor, a table that the exporter computed may be made of it: what is multiplied by that. */
TEST(tables_may_be_of_missing_parameters)
{
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
