/* Names of operators have the numbers of their rows. */
#include "ir/model.h"
#include "support/test.h"

static void every_name_has_its_number(void **state)
{
    static const char *const names[] = {
#define OP(name) #name,
#include "ir/op_names.def"
#undef OP
    };
    onv_node node = {0};
    for (uint16_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        onv_node_set_op(&node, names[i]);
        assert_int_equal(node.code, 1 + i);
        assert_string_equal(node.op_type, names[i]);
        assert_true(ONV_IS_ANY(&node, ONV_OP_OTHER, node.code));
    }
}

static void others_have_none(void **state)
{
    onv_node node = {.code = ONV_OP_Add};
    onv_node_set_op(&node, "add");
    assert_int_equal(node.code, ONV_OP_OTHER);
    assert_int_equal(onv_op_name_of("AddX"), ONV_OP_OTHER);
    assert_int_equal(onv_op_name_of(""), ONV_OP_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_has_its_number),
        cmocka_unit_test(others_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
