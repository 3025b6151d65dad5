/* Names of operators have the numbers of their rows. */
#include "ir/model.h"
#include "support/test.h"

TEST(every_name_has_its_number)
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

TEST(others_have_none)
{
    onv_node node = {.code = ONV_OP_Add};
    onv_node_set_op(&node, "add");
    assert_int_equal(node.code, ONV_OP_OTHER);
    assert_int_equal(onv_op_name_of("AddX"), ONV_OP_OTHER);
    assert_int_equal(onv_op_name_of(""), ONV_OP_OTHER);
}
