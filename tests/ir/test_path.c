/* Dotted paths of modules. */
#include "ir/path.h"
#include "support/test.h"

TEST(a_module_has_what_follows_a_dot)
{
    assert_true(onv_path_is_inside("layer1.0.conv", "layer1"));
    assert_true(onv_path_is_inside("layer1.0.conv", "layer1.0"));
    assert_false(onv_path_is_inside("layer10.conv", "layer1"));
    assert_false(onv_path_is_inside("layer1", "layer1"));
    assert_false(onv_path_is_inside("layer", "layer1"));
    assert_true(onv_path_is_part("layer1.0", "layer1.1", 6));
    assert_false(onv_path_is_part("layer1.0", "layer1.1", 8));
}

TEST(everything_is_inside_of_the_network)
{
    assert_true(onv_path_is_inside("layer1", ""));
    assert_false(onv_path_is_inside("", ""));
    assert_false(onv_path_is_inside(NULL, "layer1"));
}
