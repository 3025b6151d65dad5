/* The view of a program: what analyses of a file get, with sizes bound as those of a model are. */
#include "api/analysis.h"
#include "ir/notes.h"
#include "program/packed.h"
#include "program/program.h"
#include "report/report.h"
#include "support/capture.h"
#include "support/test.h"

static onv_options lifetimes_alone(void)
{
    onv_options options = onv_options_default();
    options.runtimes = "ideal";
    return options;
}

static onv_analysis *analysed(packed p, const onv_options *options)
{
    onv_analysis *analysis;
    onv_error err;
    if (onv_analysis_new_from_memory(p.at, p.bytes, "net.pt2", options, &analysis, &err) != ONV_OK)
        fail_msg("%s: %s", err.node, err.message);
    return analysis;
}

static void refuses(packed p, const onv_options *options, const char *part)
{
    onv_analysis *analysis;
    onv_error err;
    onv_status status =
        onv_analysis_new_from_memory(p.at, p.bytes, "net.pt2", options, &analysis, &err);
    if (status != ONV_ERR_USAGE || strstr(err.message, part) == NULL)
        fail_msg("expected '%s', found status %d: %s", part, status, err.message);
}

TEST(nodes_are_calls)
{
    packed p = packed_file("tests/program/flow.json.gz");
    onv_options options = lifetimes_alone();
    options.batch = 6;
    OWNED_ANALYSIS analysis = analysed(p, &options);
    const onv_model *model = &analysis->model;
    const onv_program *program = model->program;
    assert_int_equal(model->nodes.count, program->calls.count);
    assert_int_equal(model->values.count, program->values.count);
    for (size_t i = 0; i < model->values.count; i++) {
        assert_int_equal(model->values.at[i].type.rank, program->values.at[i].rank);
        assert_ptr_equal(model->values.at[i].type.dims, program->values.at[i].dims);
    }
    const onv_node *lin = &model->nodes.at[2];
    assert_string_equal(lin->op_type, "linear");
    assert_string_equal(lin->domain, "pytorch.aten");
    assert_string_equal(lin->name, "linear_1");
    assert_string_equal(onv_noted(lin)->scope, "block.lin");
    assert_string_equal(onv_noted(lin)->calls, "['', 'block', 'block.lin'");
    assert_string_equal(onv_noted(lin)->aten_op, "aten.linear.default");
    /* The line of the network binds x; those of inner calls bind nothing. */
    assert_memory_equal(onv_noted(lin)->statements, "55s:x<", 6);
    assert_non_null(strstr(onv_noted(lin)->statements, ";46s:<return,"));
    assert_string_equal(model->values.at[lin->inputs[1].index].name, "block.lin.weight");
    assert_int_equal(model->values.at[lin->inputs[1].index].kind, ONV_VALUE_INITIALIZER);
    const onv_graph *branch = &model->graphs.at[2];
    assert_string_equal(model->nodes.at[branch->owner.index].op_type, "cond");
    assert_string_equal(model->nodes.at[branch->owner.index].domain, "pytorch.higher_order");
    assert_string_equal(model->values.at[branch->outputs[0].index].name, "cond/true_graph_0/add");
    packed_free(&p);
}

/* Every size that is computed, at several batches, as PyTorch gives it. */
TEST(sizes_are_bound)
{
    static const struct {
        int64_t batch;
        const char *name;
        int64_t dims[4];
    } rows[] = {
        {4, "pad", {4, 9}},
        {6, "pad", {6, 8}},
        {8, "pad", {8, 10}},
        {4, "new_zeros", {6, 4}},
        {5, "new_zeros", {7, 5}},
        {1, "new_zeros", {1, 3}},
        {2, "new_zeros", {3, 3}},
        {4, "upsample_nearest2d", {1, 1, 6, 12}},
        {5, "upsample_nearest2d", {1, 1, 7, 12}},
        {3, "linear_1", {3, 8}},
    };
    packed p = packed_file("tests/program/flow.json.gz");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_options options = lifetimes_alone();
        options.batch = rows[i].batch;
        OWNED_ANALYSIS analysis = analysed(p, &options);
        bool found = false;
        for (size_t v = 0; v < analysis->model.values.count; v++) {
            const onv_value *value = &analysis->model.values.at[v];
            if (strcmp(value->name, rows[i].name) != 0) continue;
            found = true;
            for (int k = 0; k < value->type.rank; k++)
                assert_int_equal(value->type.dims[k].raw, rows[i].dims[k]);
        }
        assert_true(found);
        assert_int_equal(analysis->live.unknown, 0);
    }
    packed_free(&p);
}

TEST(arguments_and_strides_are_bound)
{
    packed p = packed_file("tests/program/flow.json.gz");
    onv_options options = lifetimes_alone();
    onv_dim_binding dim = {"s77", 4};
    options.dims = &dim;
    options.n_dims = 1;
    OWNED_ANALYSIS analysis = analysed(p, &options);
    const onv_program *program = analysis->model.program;
    for (size_t i = 0; i < program->calls.count; i++) {
        const onv_argument *size = onv_call_argument(&program->calls.at[i], "size");
        if (strcmp(program->calls.at[i].op_name, "aten.new_zeros.default") != 0) continue;
        assert_int_equal(size->numbers[0].raw, 6);
        assert_int_equal(size->numbers[1].raw, 4);
    }
    for (size_t i = 0; i < program->values.count; i++)
        for (uint32_t k = 0; k < program->values.at[i].rank; k++)
            assert_true(onv_dim_is_const(program->values.at[i].strides[k]));
    packed_free(&p);
}

/* What only data decides counts with its bound, and is said to be one; a size can be given. */
TEST(bounds_are_counted)
{
    packed p = packed_file("tests/program/flow.json.gz");
    for (int given = 0; given < 2; given++) {
        onv_options options = lifetimes_alone();
        onv_dim_binding dims[] = {{"s77", 4}, {"u0", 2}};
        options.dims = dims;
        options.n_dims = 1 + (size_t)given;
        OWNED_ANALYSIS analysis = analysed(p, &options);
        for (size_t i = 0; i < analysis->model.values.count; i++) {
            const onv_value *value = &analysis->model.values.at[i];
            if (strcmp(value->name, "nonzero") != 0) continue;
            assert_int_equal(value->bound_used, !given);
            assert_int_equal(value->type.dims[0].raw, given ? 2 : 5);
        }
    }
    packed_free(&p);
}

/* Without one nothing is sized, and the refusal names the options that do. */
TEST(sizes_that_only_data_decides_can_be_bound)
{
    static const char found[] = "{\"dtype\": 5, \"sizes\": [{\"as_expr\": {\"expr_str\": "
                                "\"Symbol('u0')\"}}, {\"as_int\": 2}], \"strides\": "
                                "[{\"as_int\": 2}, {\"as_int\": 1}]}";
    char tensors[400];
    snprintf(tensors, sizeof tensors, ", \"found\": %s", found);
    packed p =
        document(", {\"target\": \"torch.ops.aten.nonzero.default\", \"inputs\": [{\"name\": "
                 "\"self\", \"arg\": {\"as_tensor\": {\"name\": \"relu\"}}, \"kind\": 1}], "
                 "\"outputs\": [{\"as_tensor\": {\"name\": \"found\"}}], \"metadata\": {}, "
                 "\"name\": \"found\"}",
                 tensors);
    onv_options options = lifetimes_alone();
    onv_dim_binding dims[] = {{"s", 4}, {"u0", 2}};
    options.dims = dims;
    options.n_dims = 1;
    OWNED_ANALYSIS analysis = analysed(p, &options);
    assert_int_equal(analysis->infer.data_dims.count, 1);
    onv_error err = {0};
    assert_int_equal(onv_fail_unsized(analysis, "size training", &err), ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "1 tensors have no size; bind --dim u0=N"));
    options.n_dims = 2;
    OWNED_ANALYSIS sized = analysed(p, &options);
    assert_int_equal(sized->infer.data_dims.count, 0);
    assert_int_equal(sized->live.unknown, 0);
    packed_free(&p);
}

/* A cast of the model is one of its program, also where no size is bound. */
TEST(casts_reach_the_program)
{
    packed p = packed_file("tests/program/flow.json.gz");
    for (int64_t batch = 0; batch < 3; batch++) {
        onv_options options = lifetimes_alone();
        options.batch = batch;
        options.precision = ONV_PRECISION_BF16;
        OWNED_ANALYSIS analysis = analysed(p, &options);
        const onv_program *program = analysis->model.program;
        for (size_t i = 0; i < program->values.count; i++) {
            assert_int_not_equal(program->values.at[i].dtype, ONV_FLOAT);
            assert_int_equal(program->values.at[i].dtype, analysis->model.values.at[i].type.dtype);
        }
    }
    packed_free(&p);
}

TEST(ranges_are_noted)
{
    static const struct {
        int64_t batch;
        bool is_noted;
    } rows[] = {{1, false}, {2, false}, {64, false}, {65, true}};
    packed p = document("", "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        onv_options options = lifetimes_alone();
        options.batch = rows[i].batch;
        OWNED_ANALYSIS analysis = analysed(p, &options);
        assert_int_equal(message_of(analysis, "program-range") != NULL, rows[i].is_noted);
    }
    packed_free(&p);
}

TEST(what_cannot_be_bound_is_refused)
{
    packed p = document("", "");
    onv_options options = lifetimes_alone();
    onv_dim_binding dim = {"t", 4};
    options.dims = &dim;
    options.n_dims = 1;
    refuses(p, &options, "'t' is unknown");
    dim.name = "s#1";
    refuses(p, &options, "--dump=program lists them");
    options.n_dims = 0;
    for (char *at = p.at; (at = strstr(at, "Symbol('s')")) != NULL;) memcpy(at, "Integer(08)", 11);
    options.batch = 8;
    onv_analysis_destroy(analysed(p, &options));
    options.batch = 9;
    refuses(p, &options, "fixed batch of 8");
    refuses(p, &options, "dynamic_shapes");
    packed_free(&p);
}

TEST(sizes_below_zero_are_refused)
{
    packed p =
        document(", {\"target\": \"m.f\", \"inputs\": [], \"outputs\": [{\"as_tensor\": {\"name\": "
                 "\"y\"}}]}",
                 ", \"y\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": "
                 "\"Add(Symbol('s'), Integer(-3))\"}}]}");
    onv_options options = lifetimes_alone();
    options.batch = 3;
    onv_analysis_destroy(analysed(p, &options));
    options.batch = 2;
    refuses(p, &options, "dimension 0 of 'y' would be -1");
    packed_free(&p);
}

/* --- Dumps --------------------------------------------------------------------------------------- */

/* ONV_UPDATE_GOLDEN=1 writes the files anew; look at the difference before it is committed. */
TEST(dumps_are_as_reviewed)
{
    static const char *const names[] = {"net", "flow"};
    for (size_t i = 0; i < 2; i++) {
        char name[200];
        onv_error err;
        capture written = {0};
        onv_options options = lifetimes_alone();
        snprintf(name, sizeof name, "tests/program/%s.json.gz", names[i]);
        packed p = packed_file(name);
        OWNED_ANALYSIS analysis = analysed(p, &options);
        const onv_analysis *one[] = {analysis};
        assert_int_equal(
            onv_report(one, 1, ONV_FORMAT_DUMP_PROGRAM, NULL, capture_write, &written, &err),
            ONV_OK);
        snprintf(name, sizeof name, "tests/program/%s.txt", names[i]);
        if (getenv("ONV_UPDATE_GOLDEN") != NULL) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s", ONV_SOURCE_DIR, name);
            FILE *file = fopen(path, "w");
            assert_non_null(file);
            fputs(written.text, file);
            fclose(file);
        }
        packed golden = packed_file(name);
        golden.at[golden.bytes] = '\0';
        assert_string_equal(written.text, golden.at);
        packed_free(&golden);
        free(written.text);
        packed_free(&p);
    }
}
