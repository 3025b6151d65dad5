/* Contents of tensors in files of their own, and the rules of these. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "load/one_tensor.h"
#include "support/test.h"

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
    one_tensor o = one_tensor_model(tensor);
    double first = -1;
    snprintf(path, sizeof path, "%s/%s", root, model_path);
    if (onv_load_memory(o.file->at, o.file->count, path, NULL, &o.model, &o.err) != ONV_OK)
        fail_msg("%s", o.err.message);
    o.status = onv_load_known(&o.model, o.model.values.at[0].tensor, &o.known, &o.err);
    if (o.status != want) fail_msg("status %d: %s", (int)o.status, o.err.message);
    if (o.known != NULL) first = o.known->elems[0].f;
    one_tensor_done(&o);
    return first;
}

static double from_model(const char *location, int64_t offset, int64_t length, onv_status want)
{
    return read_external("model/model.onnx", external(location, offset, length), want);
}

TEST(external_files)
{
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

TEST(external_files_stay_in_the_folder)
{
    assert_true(from_model("escape.bin", -1, -1, ONV_ERR_MODEL) == -1);
    assert_true(from_model("up/secret.bin", -1, -1, ONV_ERR_MODEL) == -1);
    assert_true(from_model("model_data", -1, -1, ONV_ERR_IO) == -1);
    assert_true(from_model("fifo.bin", -1, -1, ONV_ERR_IO) == -1);
    static const char *const outside[] = {
        "/etc/hostname", "../secret.bin", "sub/../../secret.bin", "..", "sub/..", "//etc/hostname"};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        tensor_refuse(external(outside[i], -1, -1), ONV_ERR_MODEL, "outside the model's folder");
    /* Names that only begin like it are fine. */
    assert_true(from_model("..absent", -1, -1, ONV_OK) == -1);
    assert_true(from_model("a..b", -1, -1, ONV_OK) == -1);
}

/* A file that is not called as weights are is not read, and the analysis says so. */
TEST(external_files_are_called_as_weights_are)
{
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        if (from_model(weights[i], 0, 8, ONV_OK) != 1) fail_msg("%s is not read", weights[i]);
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
        if (from_model(secrets[i], 0, 8, ONV_OK) != -1) fail_msg("%s is read", secrets[i]);
}

static void diagnosed(const char *path, bool no_external_data, const char *location,
                      const char *part)
{
    one_tensor o = one_tensor_model(external(location, 0, 8));
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
    one_tensor_done(&o);
}

TEST(what_is_not_read_is_said_once)
{
    char path[300];
    snprintf(path, sizeof path, "%s/model/model.onnx", root);
    diagnosed(path, false, ".env", "its file '.env' is not read: it is not called as weights are");
    diagnosed(path, true, "data.bin", "its file 'data.bin' is not read: external data is not to");
    diagnosed("/model.onnx", false, "proc/self/data.bin", "root of the file system");
    diagnosed("/./model.onnx", false, "proc/self/data.bin", "root of the file system");
    diagnosed("/proc/../model.onnx", false, "proc/self/data.bin", "root of the file system");
}

/* Files of the system are no weights, whatever they are called. */
TEST(external_files_are_no_files_of_the_system)
{
    if (access("/proc/sys/net/core/tstamp_allow_data", R_OK) != 0) skip();
    one_tensor o = one_tensor_model(external("tstamp_allow_data", 0, 8));
    assert_int_equal(onv_load_memory(o.file->at, o.file->count, "/proc/sys/net/core/x.onnx", NULL,
                                     &o.model, &o.err),
                     ONV_OK);
    assert_int_equal(onv_load_known(&o.model, o.model.values.at[0].tensor, &o.known, &o.err),
                     ONV_ERR_IO);
    assert_non_null(strstr(o.err.message, "is not a regular file"));
    one_tensor_done(&o);
}

/* Caches of downloads hold files under other names, and folders of links to them. */
TEST(a_cache_of_links)
{
    assert_true(read_external("links/model.onnx", external("data.bin", -1, -1), ONV_OK) == 1);
    assert_true(read_external("links/model.onnx", external("escape.bin", -1, -1), ONV_ERR_MODEL) ==
                -1);
    assert_true(read_external("links/model.onnx", external("key.bin", -1, -1), ONV_ERR_MODEL) ==
                -1);
}

TEST(a_model_in_the_working_folder)
{
    char before[4096], folder[300];
    assert_non_null(getcwd(before, sizeof before));
    snprintf(folder, sizeof folder, "%s/model", root);
    assert_int_equal(chdir(folder), 0);
    one_tensor o = one_tensor_model(external("data.bin", -1, -1));
    assert_int_equal(
        onv_load_memory(o.file->at, o.file->count, "model.onnx", NULL, &o.model, &o.err), ONV_OK);
    assert_int_equal(onv_load_known(&o.model, o.model.values.at[0].tensor, &o.known, &o.err),
                     ONV_OK);
    assert_non_null(o.known);
    one_tensor_done(&o);
    /* Without a path there is no folder to look in. */
    o = one_tensor_model(external("data.bin", -1, -1));
    one_tensor_read(&o);
    assert_int_equal(o.status, ONV_OK);
    assert_null(o.known);
    one_tensor_done(&o);
    assert_int_equal(chdir(before), 0);
}

TEST(external_entries_that_make_no_sense)
{
    msg *tensor = m_external("t", 2, "data.bin");
    m_put(tensor, T_EXTERNAL, m_pair("offset", "-4"));
    tensor_refuse(tensor, ONV_ERR_MODEL, "external data of tensor 't': offset is '-4'");
    tensor = m_external("t", 2, "data.bin");
    m_put(tensor, T_EXTERNAL, m_pair("length", "99999999999999999999"));
    tensor_refuse(tensor, ONV_ERR_MODEL, "length is '99999999999999999999'");
    tensor = m_external("t", 2, "data.bin");
    m_put(tensor, T_EXTERNAL, m_pair("offset", "9223372036854775807"));
    tensor_refuse(tensor, ONV_ERR_MODEL, "ends beyond any file");
    tensor_refuse(m_external("t", 2, ""), ONV_ERR_MODEL, "has no location");
}

/* What is compared, and decides no shape, is looked at where it may be, and left without a word where not. */
TEST(heads_of_external_files)
{
    static const struct {
        const char *location;
        bool no_external_data, is_read;
    } cases[] = {{"data.bin", false, true},
                 {"data.bin", true, false},
                 {"id_rsa", false, false},
                 {"absent.bin", false, false}};
    char path[300];
    snprintf(path, sizeof path, "%s/model/model.onnx", root);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        one_tensor o = one_tensor_model(external(cases[i].location, 0, 8));
        const unsigned char *data;
        unsigned char *buffer;
        assert_int_equal(onv_load_memory(o.file->at, o.file->count, path, NULL, &o.model, &o.err),
                         ONV_OK);
        o.model.no_external_data = cases[i].no_external_data;
        assert_int_equal(
            onv_load_head(&o.model, o.model.values.at[0].tensor, 4, &data, &buffer, &o.err),
            ONV_OK);
        assert_int_equal(data != NULL, cases[i].is_read);
        if (data != NULL) assert_memory_equal(data, "\0\0\x80\x3f", 4);
        assert_int_equal(o.model.diags.count, 0);
        onv_heap_free(buffer);
        one_tensor_done(&o);
    }
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

TEST(tensor_files)
{
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

TEST_GROUP(make_folder, remove_folder)
