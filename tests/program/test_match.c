/* A program of a model: found, named, inside of it, refused; what eager PyTorch then runs. */
#include <sys/stat.h>
#include <unistd.h>

#include "api/analysis.h"
#include "base/heap.h"
#include "program/packed.h"
#include "program/program.h"
#include "support/capture.h"
#include "support/folder.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static void write_file(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* The model of document(): x of those dims, through a ReLU, and a parameter of those dims. */
static void write_model(const char *name, const char *x, const char *w)
{
    OWNED_MODEL m = model_new(17);
    size_t bytes;
    model_input(m, "x", x);
    model_weight(m, "w", w);
    model_add(m, "a = Relu(x) relu", "y = Add(a w) add", "out y f32");
    const void *data = model_bytes(m, &bytes);
    write_file(name, data, bytes);
}

static void write_program(const char *name)
{
    packed p = document("", "");
    write_file(name, p.at, p.bytes);
    packed_free(&p);
}

static onv_status analyse(const char *name, const onv_options *options, onv_analysis **analysis,
                          onv_error *err)
{
    return onv_analysis_new(name, options, analysis, err);
}

/* Whether eager PyTorch ran a program, which has one call. */
static bool runs_program(const onv_analysis *analysis)
{
    for (size_t i = 0; i < analysis->n_runtimes; i++)
        if (strcmp(analysis->runtimes[i].runtime->name, "torch") == 0)
            return analysis->runtimes[i].model->program != NULL;
    fail_msg("torch did not run");
    return false;
}

static void expect(const char *name, const onv_options *options, bool with_program,
                   const char *code, const char *part)
{
    onv_analysis *analysis;
    onv_error err;
    if (analyse(name, options, &analysis, &err) != ONV_OK) fail_msg("%s", err.message);
    assert_int_equal(runs_program(analysis), with_program);
    const char *said = code != NULL ? message_of(analysis, code) : NULL;
    if (code != NULL && (said == NULL || strstr(said, part) == NULL))
        fail_msg("%s is '%s'", code, said != NULL ? said : "not said");
    if (code == NULL) assert_null(message_of(analysis, "program"));
    onv_analysis_destroy(analysis);
}

static void refuse(const char *name, const onv_options *options, const char *part)
{
    onv_analysis *analysis;
    onv_error err;
    onv_status status = analyse(name, options, &analysis, &err);
    if (status == ONV_OK || strstr(err.message, part) == NULL)
        fail_msg("expected '%s', found status %d: %s", part, status, err.message);
}

TEST(programs_are_found)
{
    static const char *const names[] = {"model.pt2", "model.program.json.gz", "model.program.json"};
    onv_options options = onv_options_default();
    options.batch = 6;
    options.runtimes = "torch";
    write_model("model.onnx", "f32[batch,4]", "f32[4]");
    expect("model.onnx", &options, false, NULL, NULL);
    for (size_t i = 0; i < 3; i++) { /* each is read before those written so far */
        write_program(names[i]);
        expect("model.onnx", &options, true, "program", names[i]);
    }
    options.program = "none";
    expect("model.onnx", &options, false, NULL, NULL);
    options.program = NULL;
    options.no_external_data = true;
    expect("model.onnx", &options, false, NULL, NULL);
    for (size_t i = 0; i < 3; i++) unlink(names[i]);
    write_program("other.json");
    options.program = "other.json";
    expect("model.onnx", &options, true, "program", "other.json");
}

TEST(sizes_are_those_of_the_model)
{
    onv_options options = onv_options_default();
    options.batch = 6;
    options.runtimes = "torch";
    options.program = "other.json";
    write_program("other.json");
    write_model("model.onnx", "f32[batch,4]", "f32[4]");
    onv_analysis *analysis;
    assert_int_equal(analyse("model.onnx", &options, &analysis, NULL), ONV_OK);
    const onv_model *view = analysis->runtimes[0].model;
    assert_int_equal(view->values.at[view->nodes.at[0].outputs[0].index].type.dims[0].raw, 6);
    onv_analysis_destroy(analysis);
}

TEST(other_programs_are_refused)
{
    static const struct {
        const char *x, *w, *part;
    } rows[] = {
        {"f32[batch,5]", "f32[5]",
         "dimension 1 of input 'x' is 5 in the model and 4 in the program"},
        {"f32[batch,4,1]", "f32[4]", "has rank 3 in the model and 2"},
        {"f16[batch,4]", "f16[4]", "is float16 in the model and float32"},
        {"f32[batch,4]", "f32[1,4]", "'w' has shape [1, 4] in the model and [4]"},
    };
    onv_options options = onv_options_default();
    options.batch = 6;
    options.runtimes = "torch";
    write_program("model.pt2");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_model("model.onnx", rows[i].x, rows[i].w);
        options.program = "model.pt2";
        refuse("model.onnx", &options, rows[i].part);
        refuse("model.onnx", &options, "--program none");
        options.program = NULL;
        expect("model.onnx", &options, false, "program-ignored", rows[i].part);
    }
    options.program = "absent.pt2";
    refuse("model.onnx", &options, "program 'absent.pt2': cannot be opened");
    options.program = "model.onnx";
    refuse("model.onnx", &options, "expected a program of PyTorch");
    options.program = "model.pt2";
    refuse("model.pt2", &options, "leave the option out");
    options.program = NULL;
    options.runtimes = "ort";
    refuse("model.pt2", &options, "give the .onnx file");
    unlink("model.pt2");
}

/* --- Inside ------------------------------------------------------------------------------------- */

TEST(a_program_travels_inside)
{
    onv_error err;
    capture first = {0}, again = {0}, other = {0};
    onv_options options = onv_options_default();
    options.batch = 6;
    options.runtimes = "torch";
    write_model("plain.onnx", "f32[batch,4]", "f32[4]");
    packed p = document("", "");
    packed zip = packed_zip(p, "net/models/model.json", false);
    write_file("net.pt2", zip.at, zip.bytes);
    packed_free(&zip);
    packed_free(&p);
    assert_int_equal(onv_attach_program("plain.onnx", "net.pt2", NULL, capture_write, &first, &err),
                     ONV_OK);
    write_file("both.onnx", first.text, first.length);
    expect("both.onnx", &options, true, "program", "inside the model");
    /* One entry, however often. */
    assert_int_equal(onv_attach_program("both.onnx", "net.pt2", NULL, capture_write, &again, &err),
                     ONV_OK);
    assert_int_equal(again.length, first.length);
    assert_memory_equal(again.text, first.text, first.length);
    /* A damaged one is left. */
    char *value = memmem(first.text, first.length, "H4sI", 4);
    assert_non_null(value);
    value[40] = value[40] == 'A' ? 'B' : 'A';
    write_file("both.onnx", first.text, first.length);
    expect("both.onnx", &options, false, "program-ignored", "inside the model");
    write_model("wide.onnx", "f32[batch,5]", "f32[5]");
    assert_int_equal(onv_attach_program("wide.onnx", "net.pt2", NULL, capture_write, &other, &err),
                     ONV_ERR_USAGE);
    assert_non_null(strstr(err.message, "program 'net.pt2'"));
    assert_int_equal(other.length, 0);
    free(first.text);
    free(again.text);
}

/* The one inside is of another width, and so is the one next to it. Leaks are looked for where sanitizers are. */
TEST(two_programs_are_left)
{
    onv_error err;
    capture whole = {0};
    struct stat plain;
    onv_options options = onv_options_default();
    options.batch = 6;
    options.runtimes = "torch";
    options.timelines = true; /* views are kept for further analyses */
    write_model("plain.onnx", "f32[batch,4]", "f32[4]");
    write_program("broad.pt2");
    assert_int_equal(
        onv_attach_program("plain.onnx", "broad.pt2", NULL, capture_write, &whole, &err), ONV_OK);
    assert_int_equal(stat("plain.onnx", &plain), 0);
    write_model("broad.onnx", "f32[batch,5]", "f32[5]");
    FILE *file = fopen("broad.onnx", "ab");
    assert_non_null(file);
    size_t entry = whole.length - (size_t)plain.st_size;
    assert_int_equal(fwrite(whole.text + plain.st_size, 1, entry, file), entry);
    assert_int_equal(fclose(file), 0);
    expect("broad.onnx", &options, false, "program-ignored", "inside the model");
    free(whole.text);
}

TEST(every_allocation_may_fail)
{
    onv_options options = onv_options_default();
    options.batch = 6;
    options.runtimes = "torch";
    options.program = "other.json";
    options.timelines = true; /* views are kept for further analyses */
    write_program("other.json");
    write_model("model.onnx", "f32[batch,4]", "f32[4]");
    for (int attaches = 0; attaches < 2; attaches++) {
        onv_status status;
        long n = 0;
        do {
            onv_error err = {0};
            OWNED_ANALYSIS analysis = NULL;
            capture written = {0};
            onv_heap_fail_after(n++);
            status = attaches ? onv_attach_program("model.onnx", "other.json", NULL, capture_write,
                                                   &written, &err)
                              : analyse("model.onnx", &options, &analysis, &err);
            onv_heap_fail_after(-1);
            assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
            free(written.text);
        } while (status != ONV_OK && n < 20000);
        assert_int_equal(status, ONV_OK);
    }
}

TEST_GROUP(folder_enter, folder_leave)
