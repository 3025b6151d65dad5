/* Requests to one session, where several models may lack a dim of the options. */
#include <unistd.h>

#include "onnxvram/onnxvram.h"
#include "support/folder.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { DIMS = 24 };

static void write_requests(const char *header, int columns)
{
    FILE *file = fopen("requests.csv", "w");
    assert_non_null(file);
    fputs(header, file);
    for (int i = 0; i < columns; i++) fputs(i == 0 ? "\n2" : ",2", file);
    fputs("\n", file);
    assert_int_equal(fclose(file), 0);
}

/* A model of one input with DIMS dims, which are bound by requests; the flags are those of one bound dim. */
static onv_status run(const char *dim, bool flags[], onv_error *error)
{
    char type[16 * DIMS] = "f32[b";
    model *m = model_new(17);
    for (int i = 1; i < DIMS; i++) snprintf(type + strlen(type), 16, ",d%d", i);
    strcat(type, "]");
    model_input(m, "x", type);
    model_node(m, "Relu", "relu", "x", "y", "");
    model_output(m, "y", "f32");
    size_t size;
    const void *data = model_bytes(m, &size);
    onv_options options = onv_options_default();
    onv_dim_binding bound = {dim, 3};
    onv_analysis *analysis = NULL;
    options.runtimes = "ort";
    options.shape_trace = "requests.csv";
    options.dims = &bound;
    options.n_dims = 1;
    options.dims_found = flags;
    onv_status status =
        onv_analysis_new_from_memory(data, size, "model", &options, &analysis, error);
    onv_analysis_destroy(analysis);
    model_free(m);
    return status;
}

/* The options of a request have more dims than those of the caller, whose flags are as many as before. */
static void flags_are_the_callers(void **state)
{
    char header[16 * DIMS] = "d1";
    bool flags[64] = {false};
    onv_error error = {0};
    for (int i = 2; i < DIMS; i++) snprintf(header + strlen(header), 16, ",d%d", i);
    write_requests(header, DIMS - 1);
    assert_int_equal(run("b", flags, &error), ONV_OK);
    assert_true(flags[0]);
    for (size_t i = 1; i < sizeof flags / sizeof flags[0]; i++) assert_false(flags[i]);
}

static void a_column_is_a_dim_of_the_model(void **state)
{
    bool flags[64] = {false};
    onv_error error = {0};
    write_requests("b,nothing", 2);
    assert_int_equal(run("b", flags, &error), ONV_ERR_USAGE);
    assert_non_null(strstr(error.message, "'nothing'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_are_the_callers),
        cmocka_unit_test(a_column_is_a_dim_of_the_model),
    };
    return cmocka_run_group_tests(tests, folder_enter, folder_leave);
}
