/* Element types: what n of them take, and what a number becomes in them. */
#include <math.h>

#include "ir/type.h"
#include "support/test.h"

TEST(bits_are_rounded_up_once)
{
    static const struct {
        onv_dtype dtype;
        uint64_t elems, bytes;
    } cases[] = {{ONV_FLOAT, 3, 12},      {ONV_BOOL, 3, 3},
                 {ONV_COMPLEX128, 3, 48}, {ONV_INT4, 0, 0},
                 {ONV_INT4, 1, 1},        {ONV_INT4, 2, 1},
                 {ONV_INT4, 3, 2},        {ONV_UINT2, 4, 1},
                 {ONV_UINT2, 5, 2},       {ONV_FLOAT6E2M3, 1, 1},
                 {ONV_FLOAT6E2M3, 4, 3},  {ONV_FLOAT6E3M2, 5, 4},
                 {ONV_FLOAT4E2M1, 17, 9}, {ONV_FLOAT6E3M2, 8001, 6001}};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(onv_dtype_bytes(cases[i].dtype, cases[i].elems, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
    assert_true(onv_dtype_bytes(ONV_INT4, UINT64_MAX, &bytes));
    assert_int_equal(bytes, UINT64_MAX / 2 + 1);
    assert_true(onv_dtype_bytes(ONV_FLOAT6E2M3, UINT64_MAX, &bytes));
    assert_int_equal(bytes, UINT64_MAX / 4 * 3 + 3);
    assert_true(onv_dtype_bytes(ONV_INT8, UINT64_MAX, &bytes));
    assert_false(onv_dtype_bytes(ONV_INT16, UINT64_MAX / 2 + 1, &bytes));
    assert_false(onv_dtype_bytes(ONV_DOUBLE, UINT64_MAX / 8 + 1, &bytes));
}

/* Values of IEEE 754's binary16 and of bfloat16, a float32 with 7 bits behind the point. */
TEST(numbers_become_what_the_type_holds)
{
    static const struct {
        onv_dtype dtype;
        double given, held;
    } cases[] = {
        {ONV_FLOAT, 0.1, 0x1.99999ap-4},
        {ONV_FLOAT, 16777217, 16777216},
        {ONV_DOUBLE, 16777217, 16777217},
        {ONV_INT64, 0.5, 0.5},
        {ONV_FLOAT16, 0, 0},
        {ONV_FLOAT16, 0.1, 0x1.998p-4},
        {ONV_FLOAT16, 2049, 2048}, /* halfway: to the even one */
        {ONV_FLOAT16, 2051, 2052},
        {ONV_FLOAT16, -2049.5, -2050},
        {ONV_FLOAT16, 65504, 65504},
        {ONV_FLOAT16, 65519.99, 65504},
        {ONV_FLOAT16, 65520, INFINITY},
        {ONV_FLOAT16, -1e30, -INFINITY},
        {ONV_FLOAT16, 0x1p-24, 0x1p-24}, /* the least of all */
        {ONV_FLOAT16, 0x1p-25, 0},
        {ONV_FLOAT16, 0x1.8p-25, 0x1p-24},
        {ONV_FLOAT16, 0x1.004p-14, 0x1.004p-14}, /* the first normal ones */
        {ONV_FLOAT16, 0x1.002p-14, 0x1p-14},
        {ONV_FLOAT16, INFINITY, INFINITY},
        {ONV_BFLOAT16, 1, 1},
        {ONV_BFLOAT16, 257, 256},
        {ONV_BFLOAT16, 259, 260},
        {ONV_BFLOAT16, -1.01, -1.0078125},
        {ONV_BFLOAT16, 0x1.fep127, 0x1.fep127},
        {ONV_BFLOAT16, 0x1.ffp127, INFINITY},
        {ONV_BFLOAT16, -INFINITY, -INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double held = onv_dtype_round(cases[i].dtype, cases[i].given);
        if (held != cases[i].held)
            fail_msg("%s of %a is %a, not %a", onv_dtype_name(cases[i].dtype), cases[i].given, held,
                     cases[i].held);
    }
    assert_true(isnan(onv_dtype_round(ONV_FLOAT16, NAN)));
    assert_true(isnan(onv_dtype_round(ONV_BFLOAT16, NAN)));
    assert_true(signbit(onv_dtype_round(ONV_FLOAT16, -0.0)));
}

TEST(numbers_beyond_the_table_are_no_type)
{
    for (int64_t n = 1; n < ONV_DTYPE_COUNT; n++) {
        onv_dtype dtype = onv_dtype_from(n);
        assert_int_equal(dtype, n);
        assert_string_not_equal(onv_dtype_name(dtype), "undefined");
        assert_false(onv_dtype_is_float(dtype) && onv_dtype_is_integer(dtype));
        for (int64_t other = 1; other < n; other++)
            assert_string_not_equal(onv_dtype_name(dtype), onv_dtype_name((onv_dtype)other));
    }
    static const int64_t wrong[] = {0,         -1,        ONV_DTYPE_COUNT,
                                    INT64_MIN, INT64_MAX, (INT64_C(1) << 32) + 1};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(onv_dtype_from(wrong[i]), ONV_UNDEFINED);
    assert_string_equal(onv_dtype_name(ONV_DTYPE_COUNT), "undefined");
    assert_int_equal(onv_dtype_bits(ONV_DTYPE_COUNT), 0);
    assert_false(onv_dtype_is_float(ONV_DTYPE_COUNT));
}
