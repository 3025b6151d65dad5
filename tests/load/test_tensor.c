/* Contents of tensors: every type, and every way to store it in the model. */
#include <math.h>

#include "load/one_tensor.h"
#include "support/test.h"

TEST(raw_data_of_every_type)
{
    static const struct {
        onv_dtype dtype;
        uint32_t elems;
        const char *data;
        size_t bytes;
        double want[4];
    } cases[] = {
        {ONV_FLOAT, 2, "\0\0\x80\x3f\0\0\x20\xc0", 8, {1.0, -2.5}},
        {ONV_DOUBLE, 1, "\0\0\0\0\0\0\x04\xc0", 8, {-2.5}},
        {ONV_INT8, 2, "\x7f\x80", 2, {127, -128}},
        {ONV_UINT8, 2, "\x7f\x80", 2, {127, 128}},
        {ONV_INT16, 2, "\xff\x7f\0\x80", 4, {32767, -32768}},
        {ONV_UINT16, 2, "\xff\x7f\0\x80", 4, {32767, 32768}},
        {ONV_INT32, 1, "\xfe\xff\xff\xff", 4, {-2}},
        {ONV_UINT32, 1, "\xfe\xff\xff\xff", 4, {4294967294.0}},
        {ONV_INT64, 1, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, {-2}},
        {ONV_UINT64, 1, "\x05\0\0\0\0\0\0\0", 8, {5}},
        {ONV_BOOL, 3, "\0\x01\x02", 3, {0, 1, 1}},
        {ONV_FLOAT16, 4, "\0\x3c\0\xc0\x01\0\0\xfc", 8, {1, -2, 0x1p-24, -INFINITY}},
        {ONV_BFLOAT16, 3, "\x80\x3f\x20\xc0\x80\x7f", 6, {1, -2.5, INFINITY}},
        {ONV_UINT4, 3, "\x21\xff", 2, {1, 2, 15}},
        {ONV_INT4, 3, "\x81\x0f", 2, {1, -8, -1}},
        {ONV_UINT2, 4, "\xe4", 1, {0, 1, 2, 3}},
        {ONV_INT2, 4, "\xe4", 1, {0, 1, -2, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, T_RAW, cases[i].data, cases[i].bytes);
        one_tensor o = one_tensor_model(tensor);
        one_tensor_read(&o);
        assert_int_equal(o.status, ONV_OK);
        assert_int_equal(o.known->dtype, cases[i].dtype);
        assert_int_equal(o.known->count, cases[i].elems);
        assert_int_equal(o.model.values.at[0].tensor->bytes, cases[i].bytes);
        for (uint32_t k = 0; k < cases[i].elems; k++)
            if (number(o.known, k) != cases[i].want[k])
                fail_msg("%s element %u: %g, not %g", onv_dtype_name(cases[i].dtype), k,
                         number(o.known, k), cases[i].want[k]);
        one_tensor_done(&o);
        /* One byte less is too short. */
        tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, T_RAW, cases[i].data, cases[i].bytes - 1);
        o = one_tensor_model(tensor);
        one_tensor_read(&o);
        assert_int_equal(o.status, ONV_ERR_MODEL);
        assert_non_null(strstr(o.err.message, "tensor 't'"));
        assert_null(o.known);
        one_tensor_done(&o);
    }
}

TEST(not_a_number)
{
    static const struct {
        onv_dtype dtype;
        const char *data;
        size_t bytes;
    } cases[] = {
        {ONV_FLOAT16, "\x01\x7c", 2},
        {ONV_BFLOAT16, "\xc1\x7f", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *tensor = tensor_of(cases[i].dtype, 1);
        m_bytes(tensor, T_RAW, cases[i].data, cases[i].bytes);
        one_tensor o = one_tensor_model(tensor);
        one_tensor_read(&o);
        assert_int_equal(o.status, ONV_OK);
        if (!isnan(o.known->elems[0].f)) fail_msg("%s", onv_dtype_name(cases[i].dtype));
        one_tensor_done(&o);
    }
}

/* No shape follows from numbers of 8 bits and fewer that are no integers. */
TEST(small_floats_are_not_read)
{
    static const onv_dtype dtypes[] = {ONV_FLOAT8E4M3FN, ONV_FLOAT8E5M2, ONV_FLOAT8E8M0,
                                       ONV_FLOAT4E2M1, ONV_FLOAT6E2M3};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        msg *tensor = tensor_of(dtypes[i], 1);
        m_bytes(tensor, T_RAW, "\x08", 1);
        one_tensor o = one_tensor_model(tensor);
        one_tensor_read(&o);
        assert_int_equal(o.status, ONV_OK);
        assert_null(o.known);
        one_tensor_done(&o);
    }
}

TEST(typed_fields_of_every_type)
{
    static const struct {
        onv_dtype dtype;
        uint32_t elems, field;
        const char *data;
        size_t bytes;
        double want[5];
    } cases[] = {
        {ONV_FLOAT, 2, T_FLOATS, "\0\0\x80\x3f\0\0\x20\xc0", 8, {1.0, -2.5}},
        {ONV_DOUBLE, 1, T_DOUBLES, "\0\0\0\0\0\0\x04\xc0", 8, {-2.5}},
        {ONV_INT64, 2, T_INT64S, "\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, {300, -1}},
        {ONV_UINT64, 1, T_UINT64S, "\xac\x02", 2, {300}},
        {ONV_UINT32, 1, T_UINT64S, "\xac\x02", 2, {300}},
        {ONV_INT32, 2, T_INT32S, "\x05\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, {5, -2}},
        {ONV_INT8, 1, T_INT32S, "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, {-2}},
        {ONV_UINT16, 1, T_INT32S, "\xac\x02", 2, {300}},
        {ONV_BOOL, 2, T_INT32S, "\x01\0", 2, {1, 0}},
        {ONV_FLOAT16, 1, T_INT32S, "\x80\x78", 2, {1.0}},
        {ONV_BFLOAT16, 1, T_INT32S, "\x80\x7f", 2, {1.0}},
        {ONV_INT4, 3, T_INT32S, "\x81\x01\x0f", 3, {1, -8, -1}},
        {ONV_UINT2, 5, T_INT32S, "\xe4\x01\x01", 3, {0, 1, 2, 3, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, cases[i].field, cases[i].data, cases[i].bytes);
        one_tensor o = one_tensor_model(tensor);
        one_tensor_read(&o);
        if (o.status != ONV_OK) fail_msg("%s", o.err.message);
        for (uint32_t k = 0; k < cases[i].elems; k++)
            if (number(o.known, k) != cases[i].want[k])
                fail_msg("%s element %u: %g, not %g", onv_dtype_name(cases[i].dtype), k,
                         number(o.known, k), cases[i].want[k]);
        one_tensor_done(&o);
        tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, cases[i].field, cases[i].data, cases[i].bytes - 1);
        o = one_tensor_model(tensor);
        one_tensor_read(&o);
        assert_int_equal(o.status, ONV_ERR_MODEL);
        one_tensor_done(&o);
    }
}

TEST(elements_in_pieces)
{
    /* One by one, each behind a tag; then a packed piece; a field of another type in between. */
    msg *tensor = tensor_of(ONV_INT64, 5);
    m_int(tensor, T_INT64S, 10);
    m_int(tensor, T_INT64S, -20);
    m_f32(tensor, T_FLOATS, 9.0f);
    m_int(tensor, T_INT64S, 300);
    m_bytes(tensor, T_INT64S, "\x04\x05", 2);
    one_tensor o = one_tensor_model(tensor);
    one_tensor_read(&o);
    assert_int_equal(o.status, ONV_OK);
    static const double want[] = {10, -20, 300, 4, 5};
    for (uint32_t i = 0; i < 5; i++) assert_true(number(o.known, i) == want[i]);
    one_tensor_done(&o);

    tensor = tensor_of(ONV_FLOAT, ONV_KNOWN_MAX_ELEMS);
    for (int i = 0; i < ONV_KNOWN_MAX_ELEMS; i++) m_f32(tensor, T_FLOATS, (float)i);
    o = one_tensor_model(tensor);
    one_tensor_read(&o);
    assert_int_equal(o.status, ONV_OK);
    assert_true(number(o.known, ONV_KNOWN_MAX_ELEMS - 1) == ONV_KNOWN_MAX_ELEMS - 1);
    one_tensor_done(&o);
}

/* Writers may fill up a tag; readers of protobuf take it. */
TEST(tags_longer_than_they_need_to_be)
{
    static const unsigned char dims_of_3[] = {T_DIMS << 3 | 0x80, 0, 3};
    static const unsigned char is_double[] = {T_DTYPE << 3 | 0x80, 0, ONV_DOUBLE};
    msg *tensor = m_new();
    m_append(tensor, dims_of_3, sizeof dims_of_3);
    m_append(tensor, is_double, sizeof is_double);
    m_text(tensor, T_NAME, "t");
    one_tensor o = one_tensor_model(tensor);
    one_tensor_read(&o);
    assert_int_equal(o.model.values.at[0].tensor->bytes, 24);
    one_tensor_done(&o);
}

TEST(raw_data_goes_first)
{
    msg *tensor = tensor_of(ONV_INT64, 1);
    m_bytes(tensor, T_INT64S, "\x07", 1);
    m_bytes(tensor, T_RAW, "\x01\0\0\0\0\0\0\0", 8);
    m_bytes(tensor, T_RAW, "\x02\0\0\0\0\0\0\0", 8);
    one_tensor o = one_tensor_model(tensor);
    one_tensor_read(&o);
    assert_true(number(o.known, 0) == 2); /* of several, the last */
    one_tensor_done(&o);
}

TEST(shapes_of_contents)
{
    static const int64_t dims[] = {2, 3}, none[] = {4, 0};
    msg *tensor = m_tensor("t", ONV_UINT8, 2, dims);
    m_bytes(tensor, T_RAW, "abcdef", 6);
    one_tensor o = one_tensor_model(tensor);
    one_tensor_read(&o);
    assert_int_equal(o.known->rank, 2);
    assert_int_equal(o.known->dims[1], 3);
    one_tensor_done(&o);
    o = one_tensor_model(m_tensor("t", ONV_UINT8, 2, none)); /* empty: needs no data */
    one_tensor_read(&o);
    assert_int_equal(o.status, ONV_OK);
    assert_int_equal(o.known->count, 0);
    one_tensor_done(&o);
    o = one_tensor_model(m_tensor("t", ONV_UINT8, 0, NULL)); /* a scalar does */
    one_tensor_read(&o);
    assert_int_equal(o.status, ONV_ERR_MODEL);
    assert_non_null(strstr(o.err.message, "holds only 0 bytes"));
    one_tensor_done(&o);
}

TEST(what_is_not_tracked)
{
    static char zeros[(ONV_KNOWN_MAX_ELEMS + 1) * 16];
    static const struct {
        onv_dtype dtype;
        int64_t elems;
    } cases[] = {{ONV_UINT8, ONV_KNOWN_MAX_ELEMS + 1},
                 {ONV_COMPLEX64, 1},
                 {ONV_COMPLEX128, 1},
                 {ONV_STRING, 1}};
    for (size_t i = 0; i < 4; i++) {
        msg *tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, T_RAW, zeros, sizeof zeros);
        one_tensor o = one_tensor_model(tensor);
        one_tensor_read(&o);
        assert_int_equal(o.status, ONV_OK);
        assert_null(o.known);
        one_tensor_done(&o);
    }
}

TEST(impossible_tensors)
{
    static const int64_t negative[] = {2, -3}, huge[] = {INT64_C(1) << 60, 1 << 10},
                         wide[] = {INT64_C(1) << 60, 8}, beyond[] = {INT64_C(1) << 62, 0};
    static const int64_t deep[33] = {0};
    tensor_refuse(m_tensor("t", ONV_FLOAT, 2, negative), ONV_ERR_MODEL,
                  "dim 1 of tensor 't' is -3");
    tensor_refuse(m_tensor("t", ONV_FLOAT, 2, huge), ONV_ERR_OVERFLOW, "elements of tensor 't'");
    tensor_refuse(m_tensor("t", ONV_FLOAT, 2, wide), ONV_ERR_OVERFLOW, "size of tensor 't'");
    tensor_refuse(m_tensor("t", ONV_FLOAT, 2, beyond), ONV_ERR_OVERFLOW, "tensor 't'");
    tensor_refuse(m_tensor("t", ONV_FLOAT, 33, deep), ONV_ERR_LIMIT, "tensor 't' has rank 33");
    tensor_refuse(m_tensor("t", (onv_dtype)77, 0, NULL), ONV_ERR_MODEL,
                  "tensor 't' has the unknown data type 77");
}
