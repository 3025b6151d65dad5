/* Contents of tensors: every type, every way to store it, external files and their rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>

#include "load/bytes.h"
#include "load/load.h"

/* --- Inline ------------------------------------------------------------------------------------ */

/* A model with one initializer, loaded; contents or error of that initializer. */
typedef struct one {
    msg *file;
    onv_model model;
    const onv_known *known;
    onv_status status;
    onv_error err;
} one;

static one read_tensor(msg *tensor)
{
    one o = {0};
    msg *graph = m_graph("", "");
    m_put(graph, G_INIT, tensor);
    o.file = m_model(graph);
    return o;
}

static void read_now(one *o)
{
    if (m_load(o->file, &o->model, &o->err) != ONV_OK) fail_msg("%s", o->err.message);
    o->status = onv_load_known(&o->model, o->model.values.at[0].tensor, &o->known, &o->err);
}

static void done(one *o)
{
    onv_model_cleanup(&o->model);
    m_free(o->file);
}

static double number(const onv_known *known, uint32_t i)
{
    return onv_dtype_is_float(known->dtype) ? known->elems[i].f : (double)known->elems[i].i.raw;
}

static msg *tensor_of(onv_dtype dtype, int64_t elems)
{
    return m_tensor("t", dtype, 1, &elems);
}

static void raw_data_of_every_type(void **state)
{
    (void)state;
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
        {ONV_FLOAT8E4M3FN, 4, "\x38\xc0\x7e\x01", 4, {1, -2, 448, 0x1p-9}},
        {ONV_FLOAT8E4M3FNUZ, 4, "\x40\xc8\x7f\x01", 4, {1, -2, 240, 0x1p-10}},
        {ONV_FLOAT8E5M2, 4, "\x3c\xc0\x7b\x7c", 4, {1, -2, 57344, INFINITY}},
        {ONV_FLOAT8E5M2FNUZ, 4, "\x40\xc4\x7f\x01", 4, {1, -2, 57344, 0x1p-17}},
        {ONV_FLOAT8E8M0, 3, "\x7f\x80\0", 3, {1, 2, 0x1p-127}},
        {ONV_FLOAT4E2M1, 4, "\x72\x1a", 2, {1, 6, -1, 0.5}},
        {ONV_FLOAT6E2M3, 4, "\x48\xf6\x07", 3, {1, 4.5, -7.5, 0.125}},
        {ONV_FLOAT6E3M2, 4, "\x0c\xf7\x07", 3, {1, 16, -28, 0.0625}},
        {ONV_UINT4, 3, "\x21\xff", 2, {1, 2, 15}},
        {ONV_INT4, 3, "\x81\x0f", 2, {1, -8, -1}},
        {ONV_UINT2, 4, "\xe4", 1, {0, 1, 2, 3}},
        {ONV_INT2, 4, "\xe4", 1, {0, 1, -2, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, T_RAW, cases[i].data, cases[i].bytes);
        one o = read_tensor(tensor);
        read_now(&o);
        assert_int_equal(o.status, ONV_OK);
        assert_int_equal(o.known->dtype, cases[i].dtype);
        assert_int_equal(o.known->count, cases[i].elems);
        assert_int_equal(o.model.values.at[0].tensor->bytes, cases[i].bytes);
        for (uint32_t k = 0; k < cases[i].elems; k++)
            if (number(o.known, k) != cases[i].want[k])
                fail_msg("%s element %u: %g, not %g", onv_dtype_name(cases[i].dtype), k,
                         number(o.known, k), cases[i].want[k]);
        done(&o);
        /* One byte less is too short. */
        tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, T_RAW, cases[i].data, cases[i].bytes - 1);
        o = read_tensor(tensor);
        read_now(&o);
        assert_int_equal(o.status, ONV_ERR_MODEL);
        assert_non_null(strstr(o.err.message, "tensor 't'"));
        assert_null(o.known);
        done(&o);
    }
}

static void not_a_number(void **state)
{
    (void)state;
    static const struct {
        onv_dtype dtype;
        const char *data;
        size_t bytes;
    } cases[] = {
        {ONV_FLOAT16, "\x01\x7c", 2},    {ONV_BFLOAT16, "\xc1\x7f", 2},
        {ONV_FLOAT8E4M3FN, "\x7f", 1},   {ONV_FLOAT8E4M3FN, "\xff", 1},
        {ONV_FLOAT8E4M3FNUZ, "\x80", 1}, {ONV_FLOAT8E5M2, "\x7d", 1},
        {ONV_FLOAT8E5M2FNUZ, "\x80", 1}, {ONV_FLOAT8E8M0, "\xff", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *tensor = tensor_of(cases[i].dtype, 1);
        m_bytes(tensor, T_RAW, cases[i].data, cases[i].bytes);
        one o = read_tensor(tensor);
        read_now(&o);
        assert_int_equal(o.status, ONV_OK);
        if (!isnan(o.known->elems[0].f)) fail_msg("%s", onv_dtype_name(cases[i].dtype));
        done(&o);
    }
}

static void typed_fields_of_every_type(void **state)
{
    (void)state;
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
        {ONV_FLOAT8E4M3FN, 1, T_INT32S, "\x38", 1, {1.0}},
        {ONV_INT4, 3, T_INT32S, "\x81\x01\x0f", 3, {1, -8, -1}},
        {ONV_UINT2, 5, T_INT32S, "\xe4\x01\x01", 3, {0, 1, 2, 3, 1}},
        {ONV_FLOAT6E2M3, 2, T_INT32S, "\x08\x19", 2, {1, 4.5}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        msg *tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, cases[i].field, cases[i].data, cases[i].bytes);
        one o = read_tensor(tensor);
        read_now(&o);
        if (o.status != ONV_OK) fail_msg("%s", o.err.message);
        for (uint32_t k = 0; k < cases[i].elems; k++)
            if (number(o.known, k) != cases[i].want[k])
                fail_msg("%s element %u: %g, not %g", onv_dtype_name(cases[i].dtype), k,
                         number(o.known, k), cases[i].want[k]);
        done(&o);
        tensor = tensor_of(cases[i].dtype, cases[i].elems);
        m_bytes(tensor, cases[i].field, cases[i].data, cases[i].bytes - 1);
        o = read_tensor(tensor);
        read_now(&o);
        assert_int_equal(o.status, ONV_ERR_MODEL);
        done(&o);
    }
}

static void elements_in_pieces(void **state)
{
    (void)state;
    /* One by one, each behind a tag; then a packed piece; a field of another type in between. */
    msg *tensor = tensor_of(ONV_INT64, 5);
    m_int(tensor, T_INT64S, 10);
    m_int(tensor, T_INT64S, -20);
    m_f32(tensor, T_FLOATS, 9.0f);
    m_int(tensor, T_INT64S, 300);
    m_bytes(tensor, T_INT64S, "\x04\x05", 2);
    one o = read_tensor(tensor);
    read_now(&o);
    assert_int_equal(o.status, ONV_OK);
    static const double want[] = {10, -20, 300, 4, 5};
    for (uint32_t i = 0; i < 5; i++) assert_true(number(o.known, i) == want[i]);
    done(&o);

    tensor = tensor_of(ONV_FLOAT, ONV_KNOWN_MAX_ELEMS);
    for (int i = 0; i < ONV_KNOWN_MAX_ELEMS; i++) m_f32(tensor, T_FLOATS, (float)i);
    o = read_tensor(tensor);
    read_now(&o);
    assert_int_equal(o.status, ONV_OK);
    assert_true(number(o.known, ONV_KNOWN_MAX_ELEMS - 1) == ONV_KNOWN_MAX_ELEMS - 1);
    done(&o);
}

static void raw_data_goes_first(void **state)
{
    (void)state;
    msg *tensor = tensor_of(ONV_INT64, 1);
    m_bytes(tensor, T_INT64S, "\x07", 1);
    m_bytes(tensor, T_RAW, "\x01\0\0\0\0\0\0\0", 8);
    m_bytes(tensor, T_RAW, "\x02\0\0\0\0\0\0\0", 8);
    one o = read_tensor(tensor);
    read_now(&o);
    assert_true(number(o.known, 0) == 2); /* of several, the last */
    done(&o);
}

static void shapes_of_contents(void **state)
{
    (void)state;
    static const int64_t dims[] = {2, 3}, none[] = {4, 0};
    msg *tensor = m_tensor("t", ONV_UINT8, 2, dims);
    m_bytes(tensor, T_RAW, "abcdef", 6);
    one o = read_tensor(tensor);
    read_now(&o);
    assert_int_equal(o.known->rank, 2);
    assert_int_equal(o.known->dims[1], 3);
    done(&o);
    o = read_tensor(m_tensor("t", ONV_UINT8, 2, none)); /* empty: needs no data */
    read_now(&o);
    assert_int_equal(o.status, ONV_OK);
    assert_int_equal(o.known->count, 0);
    done(&o);
    o = read_tensor(m_tensor("t", ONV_UINT8, 0, NULL)); /* a scalar does */
    read_now(&o);
    assert_int_equal(o.status, ONV_ERR_MODEL);
    assert_non_null(strstr(o.err.message, "holds only 0 bytes"));
    done(&o);
}

static void what_is_not_tracked(void **state)
{
    (void)state;
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
        one o = read_tensor(tensor);
        read_now(&o);
        assert_int_equal(o.status, ONV_OK);
        assert_null(o.known);
        done(&o);
    }
}

static void refuse(msg *tensor, onv_status status, const char *text)
{
    one o = read_tensor(tensor);
    assert_int_equal(m_load(o.file, &o.model, &o.err), status);
    if (strstr(o.err.message, text) == NULL) fail_msg("%s", o.err.message);
    m_free(o.file);
}

static void impossible_tensors(void **state)
{
    (void)state;
    static const int64_t negative[] = {2, -3}, huge[] = {INT64_C(1) << 60, 1 << 10},
                         wide[] = {INT64_C(1) << 60, 8}, beyond[] = {INT64_C(1) << 62, 0};
    static const int64_t deep[33] = {0};
    refuse(m_tensor("t", ONV_FLOAT, 2, negative), ONV_ERR_MODEL, "dim 1 of tensor 't' is -3");
    refuse(m_tensor("t", ONV_FLOAT, 2, huge), ONV_ERR_OVERFLOW, "elements of tensor 't'");
    refuse(m_tensor("t", ONV_FLOAT, 2, wide), ONV_ERR_OVERFLOW, "size of tensor 't'");
    refuse(m_tensor("t", ONV_FLOAT, 2, beyond), ONV_ERR_OVERFLOW, "tensor 't'");
    refuse(m_tensor("t", ONV_FLOAT, 33, deep), ONV_ERR_LIMIT, "tensor 't' has rank 33");
    refuse(m_tensor("t", (onv_dtype)77, 0, NULL), ONV_ERR_MODEL,
           "tensor 't' has the unknown data type 77");
}

/* --- External ---------------------------------------------------------------------------------- */

/* A folder of its own: model.onnx, data.bin of 16 bytes, and outside it secret.bin. */
static char root[200];

static void write_file(const char *name, const void *data, size_t bytes)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void link_to(const char *target, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(symlink(target, path), 0);
}

#define DIGEST_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define DIGEST_2 "abababababababababababababababababababab"

/* Names that exporters give, and names of what is no business of a model. */
static const char *const weights[] = {
    "model.onnx.data", "model.onnx_data",   "model.onnx_data_1", "weights.bin",
    "model_data/0",    "model_data/w.data", "conv1.weight",      "layers.0.bias",
    "onnx__MatMul_17", "model.data",        "model_weights",     "Constant_3_attr__value",
    "MODEL.BIN"};
static const char *const secrets[] = {".env",         "id_rsa",          "password.txt",
                                      "metadata",     ".weights.bin",    ".ssh/key.bin",
                                      "wallet.dat",   "sub/credentials", "model_data/notes.txt",
                                      "database.sql", "tokens.json"};

static int make_folder(void **state)
{
    (void)state;
    char path[300];
    snprintf(root, sizeof root, "%s/external-XXXXXX", ONV_BUILD_DIR);
    assert_non_null(mkdtemp(root));
    static const char *const folders[] = {"model",      "model/sub", "model/model_data",
                                          "model/.ssh", "cache",     "links"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    static const char data[16] = "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40"; /* 1 2 3 4 */
    write_file("secret.bin", data, 16);
    write_file("model/data.bin", data, 16);
    write_file("model/sub/data.bin", data, 16);
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        snprintf(path, sizeof path, "model/%s", weights[i]);
        write_file(path, data, 16);
    }
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        snprintf(path, sizeof path, "model/%s", secrets[i]);
        write_file(path, data, 16);
    }
    write_file("cache/" DIGEST_1, "", 0);
    write_file("cache/" DIGEST_2, data, 16);
    write_file("cache/id_rsa", data, 16);
    link_to("../secret.bin", "model/escape.bin");
    link_to("data.bin", "model/alias.bin");
    link_to("..", "model/up");
    link_to("../cache/" DIGEST_1, "links/model.onnx");
    link_to("../cache/" DIGEST_2, "links/data.bin");
    link_to("../cache/id_rsa", "links/key.bin");
    link_to("../secret.bin", "links/escape.bin");
    snprintf(path, sizeof path, "%s/model/fifo.bin", root);
    assert_int_equal(mkfifo(path, 0600), 0);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static msg *external(const char *location, int64_t offset, int64_t length)
{
    char text[32];
    msg *tensor = m_external("t", 2, location);
    snprintf(text, sizeof text, "%lld", (long long)offset);
    if (offset >= 0) m_put(tensor, T_EXTERNAL, m_pair("offset", text));
    snprintf(text, sizeof text, "%lld", (long long)length);
    if (length >= 0) m_put(tensor, T_EXTERNAL, m_pair("length", text));
    return tensor;
}

/* The first element, or -1 where the contents are not there. */
static double read_external(const char *model_path, msg *tensor, onv_status want)
{
    char path[300];
    one o = read_tensor(tensor);
    double first = -1;
    snprintf(path, sizeof path, "%s/%s", root, model_path);
    if (onv_load_memory(o.file->at, o.file->count, path, NULL, &o.model, &o.err) != ONV_OK)
        fail_msg("%s", o.err.message);
    o.status = onv_load_known(&o.model, o.model.values.at[0].tensor, &o.known, &o.err);
    if (o.status != want) fail_msg("status %d: %s", (int)o.status, o.err.message);
    if (o.known != NULL) first = o.known->elems[0].f;
    done(&o);
    return first;
}

static double from_model(const char *location, int64_t offset, int64_t length, onv_status want)
{
    return read_external("model/model.onnx", external(location, offset, length), want);
}

static void external_files(void **state)
{
    (void)state;
    assert_true(from_model("data.bin", -1, -1, ONV_OK) == 1);
    assert_true(from_model("./data.bin", 4, 8, ONV_OK) == 2);
    assert_true(from_model("data.bin", 8, -1, ONV_OK) == 3);
    assert_true(from_model("sub/data.bin", 0, 16, ONV_OK) == 1);
    assert_true(from_model("alias.bin", 0, 8, ONV_OK) == 1); /* a link that stays inside */
    /* Absent: not known, no error. */
    assert_true(from_model("absent.bin", -1, -1, ONV_OK) == -1);
    assert_true(from_model("absent/data.bin", -1, -1, ONV_OK) == -1);
    assert_true(from_model("data.bin/data.bin", -1, -1, ONV_OK) == -1);
    /* Too short. */
    assert_true(from_model("data.bin", 12, -1, ONV_ERR_MODEL) == -1);
    assert_true(from_model("data.bin", 1000, 8, ONV_ERR_MODEL) == -1);
    assert_true(from_model("data.bin", 0, 7, ONV_ERR_MODEL) == -1);
}

static void external_files_stay_in_the_folder(void **state)
{
    (void)state;
    assert_true(from_model("escape.bin", -1, -1, ONV_ERR_MODEL) == -1);
    assert_true(from_model("up/secret.bin", -1, -1, ONV_ERR_MODEL) == -1);
    assert_true(from_model("model_data", -1, -1, ONV_ERR_IO) == -1);
    assert_true(from_model("fifo.bin", -1, -1, ONV_ERR_IO) == -1);
    static const char *const outside[] = {
        "/etc/hostname", "../secret.bin", "sub/../../secret.bin", "..", "sub/..", "//etc/hostname"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        refuse(external(outside[i], -1, -1), ONV_ERR_MODEL, "outside the model's folder");
    /* Names that only begin like it are fine. */
    assert_true(from_model("..absent", -1, -1, ONV_OK) == -1);
    assert_true(from_model("a..b", -1, -1, ONV_OK) == -1);
}

/* A file that is not called as weights are is not read, and the analysis says so. */
static void external_files_are_called_as_weights_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        if (from_model(weights[i], 0, 8, ONV_OK) != 1) fail_msg("%s is not read", weights[i]);
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (from_model(secrets[i], 0, 8, ONV_OK) != -1) fail_msg("%s is read", secrets[i]);
}

static void diagnosed(const char *path, bool no_external_data, const char *location,
                      const char *part)
{
    one o = read_tensor(external(location, 0, 8));
    assert_int_equal(onv_load_memory(o.file->at, o.file->count, path, NULL, &o.model, &o.err),
                     ONV_OK);
    o.model.no_external_data = no_external_data;
    for (int i = 0; i < 2; i++)
        assert_int_equal(onv_load_known(&o.model, o.model.values.at[0].tensor, &o.known, &o.err),
                         ONV_OK);
    assert_null(o.known);
    assert_int_equal(o.model.diags.count, 1);
    assert_string_equal(o.model.diags.at[0].code, "external-data");
    if (strstr(o.model.diags.at[0].message, part) == NULL)
        fail_msg("%s", o.model.diags.at[0].message);
    done(&o);
}

static void what_is_not_read_is_said_once(void **state)
{
    (void)state;
    char path[300];
    snprintf(path, sizeof path, "%s/model/model.onnx", root);
    diagnosed(path, false, ".env", "its file '.env' is not read: it is not called as weights are");
    diagnosed(path, true, "data.bin", "its file 'data.bin' is not read: external data is not to");
    diagnosed("/model.onnx", false, "proc/self/data.bin", "root of the file system");
    diagnosed("/./model.onnx", false, "proc/self/data.bin", "root of the file system");
    diagnosed("/proc/../model.onnx", false, "proc/self/data.bin", "root of the file system");
}

/* Files of the system are no weights, whatever they are called. */
static void external_files_are_no_files_of_the_system(void **state)
{
    (void)state;
    if (access("/proc/sys/net/core/tstamp_allow_data", R_OK) != 0) skip();
    one o = read_tensor(external("tstamp_allow_data", 0, 8));
    assert_int_equal(onv_load_memory(o.file->at, o.file->count, "/proc/sys/net/core/x.onnx", NULL,
                                     &o.model, &o.err),
                     ONV_OK);
    assert_int_equal(onv_load_known(&o.model, o.model.values.at[0].tensor, &o.known, &o.err),
                     ONV_ERR_IO);
    assert_non_null(strstr(o.err.message, "is not a regular file"));
    done(&o);
}

/* Caches of downloads hold files under other names, and folders of links to them. */
static void a_cache_of_links(void **state)
{
    (void)state;
    assert_true(read_external("links/model.onnx", external("data.bin", -1, -1), ONV_OK) == 1);
    assert_true(read_external("links/model.onnx", external("escape.bin", -1, -1), ONV_ERR_MODEL) ==
                -1);
    assert_true(read_external("links/model.onnx", external("key.bin", -1, -1), ONV_ERR_MODEL) ==
                -1);
}

static void a_model_in_the_working_folder(void **state)
{
    (void)state;
    char before[4096], folder[300];
    assert_non_null(getcwd(before, sizeof before));
    snprintf(folder, sizeof folder, "%s/model", root);
    assert_int_equal(chdir(folder), 0);
    one o = read_tensor(external("data.bin", -1, -1));
    assert_int_equal(
        onv_load_memory(o.file->at, o.file->count, "model.onnx", NULL, &o.model, &o.err), ONV_OK);
    assert_int_equal(onv_load_known(&o.model, o.model.values.at[0].tensor, &o.known, &o.err),
                     ONV_OK);
    assert_non_null(o.known);
    done(&o);
    /* Without a path there is no folder to look in. */
    o = read_tensor(external("data.bin", -1, -1));
    read_now(&o);
    assert_int_equal(o.status, ONV_OK);
    assert_null(o.known);
    done(&o);
    assert_int_equal(chdir(before), 0);
}

static void external_entries_that_make_no_sense(void **state)
{
    (void)state;
    msg *tensor = m_external("t", 2, "data.bin");
    m_put(tensor, T_EXTERNAL, m_pair("offset", "-4"));
    refuse(tensor, ONV_ERR_MODEL, "external data of tensor 't': offset is '-4'");
    tensor = m_external("t", 2, "data.bin");
    m_put(tensor, T_EXTERNAL, m_pair("length", "99999999999999999999"));
    refuse(tensor, ONV_ERR_MODEL, "length is '99999999999999999999'");
    tensor = m_external("t", 2, "data.bin");
    m_put(tensor, T_EXTERNAL, m_pair("offset", "9223372036854775807"));
    refuse(tensor, ONV_ERR_MODEL, "ends beyond any file");
    refuse(m_external("t", 2, ""), ONV_ERR_MODEL, "has no location");
}

/* --- Tensor files ------------------------------------------------------------------------------ */

static onv_status load_file(const char *name, msg *tensor, double *first, onv_error *err)
{
    char path[300];
    onv_model model;
    const onv_known *known;
    snprintf(path, sizeof path, "%s/%s", root, name);
    if (tensor != NULL) write_file(name, tensor->at, tensor->count);
    m_free(tensor);
    onv_model_init(&model, SIZE_MAX);
    *err = (onv_error){0};
    onv_status status = onv_load_tensor_file(&model, path, &known, err);
    assert_int_equal(status == ONV_OK, known != NULL);
    if (known != NULL) *first = number(known, 0);
    onv_model_cleanup(&model);
    return status;
}

static void tensor_files(void **state)
{
    (void)state;
    onv_error err;
    double first = 0;
    msg *tensor = tensor_of(ONV_INT64, 2);
    m_bytes(tensor, T_INT64S, "\x2a\x01", 2);
    assert_int_equal(load_file("value.pb", tensor, &first, &err), ONV_OK);
    assert_true(first == 42);
    assert_int_equal(load_file("absent.pb", NULL, &first, &err), ONV_ERR_IO);
    assert_non_null(strstr(err.message, "absent.pb': cannot be opened"));
    assert_int_equal(load_file("value.pb", tensor_of(ONV_STRING, 1), &first, &err), ONV_ERR_USAGE);
    assert_int_equal(load_file("value.pb", tensor_of(ONV_UINT8, 5000), &first, &err),
                     ONV_ERR_USAGE);
    assert_int_equal(load_file("value.pb", m_external("t", 2, "data.bin"), &first, &err),
                     ONV_ERR_USAGE);
    assert_int_equal(load_file("value.pb", tensor_of(ONV_INT64, 2), &first, &err), ONV_ERR_MODEL);
    tensor = tensor_of(ONV_INT64, 2);
    m_tag(tensor, T_RAW, 2);
    m_varint(tensor, 1000);
    assert_int_equal(load_file("value.pb", tensor, &first, &err), ONV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "truncated: TensorProto.raw_data"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_data_of_every_type),
        cmocka_unit_test(not_a_number),
        cmocka_unit_test(typed_fields_of_every_type),
        cmocka_unit_test(elements_in_pieces),
        cmocka_unit_test(raw_data_goes_first),
        cmocka_unit_test(shapes_of_contents),
        cmocka_unit_test(what_is_not_tracked),
        cmocka_unit_test(impossible_tensors),
        cmocka_unit_test(external_files),
        cmocka_unit_test(external_files_stay_in_the_folder),
        cmocka_unit_test(external_files_are_called_as_weights_are),
        cmocka_unit_test(what_is_not_read_is_said_once),
        cmocka_unit_test(external_files_are_no_files_of_the_system),
        cmocka_unit_test(a_cache_of_links),
        cmocka_unit_test(a_model_in_the_working_folder),
        cmocka_unit_test(external_entries_that_make_no_sense),
        cmocka_unit_test(tensor_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
