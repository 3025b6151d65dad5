#include "program/packed.h"

#include <minizip/zip.h>
#include <unistd.h>
#include <zlib.h>

#include "program/load.h"
#include "support/test.h"

packed packed_copy(const char *text)
{
    packed p = {strdup(text), strlen(text)};
    assert_non_null(p.at);
    return p;
}

void packed_free(packed *p)
{
    free(p->at);
    *p = (packed){0};
}

packed document(const char *nodes, const char *tensors)
{
    static const char form[] =
        "{\"schema_version\": {\"major\": 8, \"minor\": 20}, \"torch_version\": \"2.15.0\",\n"
        "\"range_constraints\": {\"s\": {\"min_val\": 2, \"max_val\": 64}},\n"
        "\"graph_module\": {\"graph\": {\n"
        "\"inputs\": [{\"as_tensor\": {\"name\": \"p_w\"}}, {\"as_tensor\": {\"name\": \"x\"}}],\n"
        "\"outputs\": [{\"as_tensor\": {\"name\": \"relu\"}}],\n"
        "\"nodes\": [{\"target\": \"torch.ops.aten.relu.default\", \"inputs\": [{\"name\": "
        "\"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1}],\n"
        "\"outputs\": [{\"as_tensor\": {\"name\": \"relu\"}}], \"metadata\": {\"nn_module_stack\": "
        "\"L__self__,,m.Net;L__self__a,a,torch.nn.ReLU\"}, \"name\": \"relu\"}%s],\n"
        "\"tensor_values\": {\n"
        "\"p_w\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 4}], \"requires_grad\": true, "
        "\"strides\": [{\"as_int\": 1}]},\n"
        "\"x\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": \"Symbol('s')\"}}, "
        "{\"as_int\": 4}], \"strides\": [{\"as_int\": 4}, {\"as_int\": 1}]},\n"
        "\"relu\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": \"Symbol('s')\"}}, "
        "{\"as_int\": 4}], \"strides\": [{\"as_int\": 4}, {\"as_int\": 1}]}%s},\n"
        "\"sym_int_values\": {\"half\": {\"as_expr\": {\"expr_str\": \"FloorDiv(Symbol('s'), "
        "Integer(2))\"}}}},\n"
        "\"signature\": {\"input_specs\": [{\"parameter\": {\"arg\": {\"name\": \"p_w\"}, "
        "\"parameter_name\": \"w\"}}, {\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": "
        "\"x\"}}}}],\n"
        "\"output_specs\": [{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": "
        "\"relu\"}}}}]}}}";
    size_t room = sizeof form + strlen(nodes) + strlen(tensors);
    packed p = {malloc(room), 0};
    assert_non_null(p.at);
    p.bytes = (size_t)snprintf(p.at, room, form, nodes, tensors);
    return p;
}

packed packed_file(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", ONV_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("no %s", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    packed p = {NULL, (size_t)ftell(file)};
    rewind(file);
    p.at = malloc(p.bytes + 1);
    assert_non_null(p.at);
    assert_int_equal(fread(p.at, 1, p.bytes, file), p.bytes);
    fclose(file);
    return p;
}

packed packed_gzip(packed text)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    packed p = {NULL, deflateBound(&z, text.bytes)};
    p.at = malloc(p.bytes);
    assert_non_null(p.at);
    z.next_in = (Bytef *)text.at;
    z.avail_in = (uInt)text.bytes;
    z.next_out = (Bytef *)p.at;
    z.avail_out = (uInt)p.bytes;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    p.bytes = z.total_out;
    deflateEnd(&z);
    return p;
}

static void add_entry(zipFile zip, const char *name, const char *data, size_t bytes,
                      bool compresses)
{
    assert_int_equal(zipOpenNewFileInZip64(zip, name, NULL, NULL, 0, NULL, 0, NULL,
                                           compresses ? Z_DEFLATED : 0, 9, 0),
                     ZIP_OK);
    assert_int_equal(zipWriteInFileInZip(zip, data, (unsigned)bytes), ZIP_OK);
    assert_int_equal(zipCloseFileInZip(zip), ZIP_OK);
}

packed packed_zip(packed text, const char *name, bool compresses)
{
    return packed_zip_with(text, name, compresses, NULL);
}

packed packed_zip_with(packed text, const char *name, bool compresses, const char *weights)
{
    char path[] = "/tmp/onnxvram-zip-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    zipFile zip = zipOpen64(path, APPEND_STATUS_CREATE);
    assert_non_null(zip);
    add_entry(zip, "net/data/weights/weight_0", "0123456789", 10, false);
    add_entry(zip, name, text.at, text.bytes, compresses);
    if (weights != NULL)
        add_entry(zip, "net/data/weights/model_weights_config.json", weights, strlen(weights),
                  compresses);
    assert_int_equal(zipClose(zip, NULL), ZIP_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    packed p = {malloc(text.bytes + 4096), 0};
    assert_non_null(p.at);
    p.bytes = fread(p.at, 1, text.bytes + 4096, file);
    fclose(file);
    unlink(path);
    return p;
}

onv_status packed_read(packed p, onv_error *err)
{
    const onv_program_file file = {"net.pt2", p.at, p.bytes};
    onv_model model;
    onv_status status = onv_program_load(&file, NULL, ONV_PROGRAM_INFERENCE, &model, err);
    if (status == ONV_OK) onv_model_cleanup(&model);
    return status;
}
