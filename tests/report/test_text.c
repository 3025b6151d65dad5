/* The report for people. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* x (1 KiB) -> a (1 KiB) -> b (1 KiB); y = a + b + x: the peak of 4 KiB is at step 2. */
static model *diamond(const char *type)
{
    model *m = model_new(17);
    model_input(m, "x", type);
    model_add(m, "a = Relu(x) /stem/Relu", "b = Neg(a) /body/Neg", "y = Sum(a b x) /body/Sum",
              "out y f32");
    return m;
}

static onv_report_options unicode(void)
{
    onv_report_options options = onv_report_options_default();
    options.unicode = true;
    return options;
}

static char *text_of(model *m, const onv_options *bindings, const onv_report_options *options)
{
    onv_analysis *a = model_analyse(m, bindings);
    char *text = report_text(a, ONV_FORMAT_TEXT, options);
    onv_analysis_destroy(a);
    model_free(m);
    return text;
}

TEST(sizes_and_peak)
{
    onv_report_options options = unicode();
    OWNED_TEXT text = text_of(diamond("f32[4,64]"), NULL, &options);
    expect_safe(text, 80);
    expect_contains(text, "nodes       3\n");
    expect_contains(text, "opset       17\n");
    expect_contains(text, "  inputs       1.0 KiB\n");
    expect_contains(text, "  outputs      1.0 KiB\n");
    expect_contains(text, "  activations  3.0 KiB  all node outputs");
    expect_contains(text, "  peak         4.0 KiB  the most");
    expect_contains(text, "Peak 4.0 KiB at step 2 of 3, Sum /body/Sum\n");
    expect_contains(text, "  1.0 KiB  25%  ████████  float32  4x64  x\n");
    expect_contains(text, "  ▄▆█\n    ^ step 2\n");
    expect_contains(text, "  1.0 KiB    0-2  float32  4x64   x\n");
    expect_lacks(text, "Notes");
    expect_lacks(text, "Free dimensions");
}

TEST(ascii_without_unicode)
{
    OWNED_TEXT text = text_of(diamond("f32[4,64]"), NULL, NULL);
    for (const char *c = text; *c != '\0'; c++) assert_true(*c == '\n' || (*c >= ' ' && *c < 127));
    expect_contains(text, "  1.0 KiB  25%  ########  float32");
    expect_contains(text, "  =*#\n    ^ step 2\n");
}

TEST(color_only_where_asked)
{
    onv_report_options options = unicode();
    options.color = true;
    char *text = text_of(diamond("f32[4,64]"), NULL, &options);
    expect_contains(text, "\033[1mMemory of the graph\033[0m, ");
    /* Every style ends: as many ends as beginnings. */
    assert_int_equal(count_parts(text, "\033["), 2 * count_parts(text, "\033[0m"));
    free(text);
    options.color = false;
    text = text_of(diamond("f32[4,64]"), NULL, &options);
    expect_lacks(text, "\033");
    free(text);
}

TEST(free_dims_give_expressions)
{
    onv_report_options options = unicode();
    OWNED_TEXT text = text_of(diamond("f32[batch,64]"), NULL, &options);
    expect_safe(text, 80);
    expect_contains(text, "  peak         1.0 KiB × batch  the most");
    expect_contains(text, "Peak 1.0 KiB × batch at step 2 of 3");
    expect_contains(text, "  256 B × batch    0-2  float32  batch×64  x\n");
    expect_contains(text, "  batch  --batch N  axis 0 of x\n");
}

TEST(the_fixed_part_is_told)
{
    model *m = model_read(17, "in x f32[batch,64]", "in mask f32[3,64]", "y = Relu(x)",
                          "z = Relu(mask)", "out y f32", "out z f32");
    onv_report_options options = unicode();
    OWNED_TEXT text = text_of(m, NULL, &options);
    expect_contains(text, "  inputs       256 B × batch + 768 B\n");
    expect_contains(text, "Peak 512 B × batch + 768 B at step 0 of 2, Relu y\n");
    expect_contains(text, "  and 768 B that are fixed\n");
}

/* Different forms have no sum; the options that bind the dims are named. */
TEST(several_forms_ask_for_bindings)
{
    model *m = model_read(17, "in ids f32[batch,seq]", "in scores f32[batch,seq,seq]",
                          "y = Relu(ids)", "z = Relu(scores)", "out y f32", "out z f32");
    onv_report_options options = unicode();
    OWNED_TEXT text = text_of(m, NULL, &options);
    expect_safe(text, 80);
    expect_contains(text, "  batch  --batch N    axis 0 of ids\n");
    expect_contains(text, "  seq    --dim seq=N  axis 1 of ids\n");
    expect_contains(text, "  4 B × …    0-1  float32  batch×seq×seq  scores\n");
    expect_lacks(text, "Live memory");
}

TEST(unknown_operators_are_lower_limits)
{
    model *m = model_read(17, "in x f32[4,64]", "y = NoSuchOperator(x) /odd", "out y f32");
    OWNED_TEXT text = text_of(m, NULL, NULL);
    expect_contains(text, "  outputs               ?\n");
    expect_contains(text, "  peak         >= 1.0 KiB");
    expect_contains(text, "NoSuchOperator");
    expect_contains(text, "  unknown-op: node '/odd': ");
}

/* Where the data decides, upper bounds are counted, and the report says so at every such figure. */
TEST(bounds_are_marked)
{
    model *m =
        model_read(17, "in x f32[8,16]", "y = Relu(x)", "where = NonZero(y) find", "out where i64");
    onv_report_options options = unicode();
    OWNED_TEXT text = text_of(m, NULL, &options);
    expect_contains(text, "  outputs      ≤ 2.0 KiB\n");
    expect_contains(text, "  inputs           512 B\n");
    expect_contains(text, "Peak ≤ 2.5 KiB at step 1 of 2, NonZero find\n");
    expect_contains(text, "  ≤ 2.0 KiB  80%  ████████  int64    2x128  where\n");
    expect_contains(text, "      512 B    0-0  float32  8x16   x\n");
    expect_contains(text, "  sizes that depend on the data: 1; ");
}

/* Two directions of 8 KiB over all steps: 5 values each. */
TEST(reserves_are_told)
{
    onv_report_options options = unicode();
    onv_options training = onv_options_default();
    training.train = "sgd";
    model *m =
        model_read(17, "in x f32[16,8,16]", "weight W f32[2,64,16]", "weight R f32[2,64,16]",
                   "y = LSTM(x W R) lstm hidden_size=16 direction='bidirectional'", "out y f32");
    char *text = text_of(m, &training, &options);
    expect_safe(text, 80);
    expect_contains(text, "  cuDNN keeps 80.3 KiB for recurrent layers.");
    free(text);
    text = text_of(diamond("f32[4,64]"), &training, &options);
    expect_lacks(text, "cuDNN");
    free(text);
}

TEST(tiny_rows_fold)
{
    OWNED_MODEL m = model_new(17);
    char name[16], names[1024] = "";
    model_input(m, "large", "f32[1024,1024]");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "t%d", i);
        model_input(m, name, "f32[64]");
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", name);
    }
    model_node(m, "Relu", "", "large", "y", "");
    model_node(m, "Concat", "", names + 1, "z", "axis=0");
    model_output(m, "z", "f32");
    onv_report_options options = unicode();
    options.top = 2;
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    char *text = report_text(a, ONV_FORMAT_TEXT, &options);
    /* Two large rows, one more to have three, 39 left out. */
    expect_contains(text, "  and 39 more, 9.8 KiB\n");
    char *largest = strstr(text, "Largest tensors");
    strstr(largest, "\n\n")[1] = '\0'; /* what follows is another block */
    assert_int_equal(count_parts(largest, "\n"), 4);
    free(text);
    options.verbosity = 1;
    text = report_text(a, ONV_FORMAT_TEXT, &options);
    expect_lacks(text, " more, ");
    expect_contains(text, "  t39\n");
    free(text);
    options.verbosity = -1;
    text = report_text(a, ONV_FORMAT_TEXT, &options);
    assert_int_equal(count_parts(text, "\n"), 1);
    expect_contains(text, "test.onnx: torch ");
    free(text);
}

TEST(models_side_by_side)
{
    model *m = diamond("f32[4,64]"), *n = diamond("f32[batch,64]");
    const onv_analysis *both[] = {model_analyse(m, NULL), model_analyse(n, NULL)};
    onv_report_options options = unicode();
    OWNED_CAPTURE caught = {0};
    assert_int_equal(onv_report(both, 2, ONV_FORMAT_TEXT, &options, capture_write, &caught, NULL),
                     ONV_OK);
    expect_safe(caught.text, 80);
    assert_int_equal(count_parts(caught.text, "Largest tensors\n"), 1);
    char *table = strstr(caught.text, "Side by side\n");
    assert_non_null(table);
    assert_int_equal(count_parts(table, "\n"), 4);
    expect_contains(table, "  1.0 KiB × batch\n");
    for (int i = 0; i < 2; i++) onv_analysis_destroy((onv_analysis *)(uintptr_t)both[i]);
    model_free(m);
    model_free(n);
}

/* Names that attack: they reach every text format only as escapes, and no line grows. */
TEST(hostile_names_are_escaped)
{
    static const onv_format formats[] = {ONV_FORMAT_TEXT, ONV_FORMAT_LAYERS, ONV_FORMAT_DUMP_GRAPH,
                                         ONV_FORMAT_DUMP_TRACE, ONV_FORMAT_CSV};
    model *m = model_new(17);
    model_input(m, "\x1b[2J\x1b]0;owned\a", "f32[4,64]");
    model_input(m, "\xe2\x80\xaegnp.exe\xc2\x9b", "f32[batch\x1b[31m,64]");
    model_weight(m, "w\x7f\x01.weight", "f32[4,64]");
    model_node(m, "Sum", "/a\x1b[31m/\xe2\x81\xa6/Sum",
               "\x1b[2J\x1b]0;owned\a \xe2\x80\xaegnp.exe\xc2\x9b w\x7f\x01.weight", "y\rz", "");
    model_node(m,
               "Odd\x1b"
               "Op",
               "=cmd", "y\rz", "u", "");
    model_output(m, "y\rz", "f32");
    onv_options bindings = onv_options_default();
    bindings.batch = 4;
    size_t size;
    const unsigned char *bytes = model_bytes(m, &size);
    onv_analysis *a;
    assert_int_equal(
        onv_analysis_new_from_memory(bytes, size, "models/\x1b[2J\xff.onnx", &bindings, &a, NULL),
        ONV_OK);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        for (int ascii = 0; ascii < 2; ascii++) {
            onv_report_options options = unicode();
            options.unicode = !ascii;
            options.verbosity = 1;
            capture caught = {0};
            onv_error error = {0};
            onv_status status = onv_report((const onv_analysis *const *)&a, 1, formats[i], &options,
                                           capture_write, &caught, &error);
            /* The trace refuses the unknown operator; its message names it as it is. */
            if (formats[i] == ONV_FORMAT_DUMP_TRACE) {
                assert_int_equal(status, ONV_ERR_MODEL);
                continue;
            }
            assert_int_equal(status, ONV_OK);
            if (formats[i] == ONV_FORMAT_CSV)
                for (char *c = caught.text; *c != '\0'; c++)
                    if (*c == '\r') *c = ' '; /* stands in a quoted field */
            bool table = formats[i] == ONV_FORMAT_TEXT || formats[i] == ONV_FORMAT_LAYERS;
            expect_safe(caught.text, table ? 80 : 0);
            capture_free(&caught);
        }
    }
    onv_analysis_destroy(a);
    model_free(m);
}

/* Long names, long paths, narrow pages: a line never passes the page. */
TEST(lines_keep_to_the_page)
{
    char name[400], node[400];
    memset(name, 'n', sizeof name - 1);
    memset(node, 'm', sizeof node - 1);
    for (size_t i = 7; i < sizeof node - 1; i += 11) node[i] = '/';
    name[sizeof name - 1] = node[sizeof node - 1] = '\0';
    OWNED_MODEL m = model_new(17);
    model_input(m, name, "f32[some_long_symbol,another_long_symbol,64,3,3,3,3]");
    model_node(m, "Relu", node, name, "y", "");
    model_node(m, "NoSuchOperatorAnywhereInAnyDomain", node, "y", "z", "");
    model_output(m, "y", "f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    static const unsigned widths[] = {72, 80, 132};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        onv_report_options options = unicode();
        options.width = widths[i];
        char *text = report_text(a, ONV_FORMAT_TEXT, &options);
        char *notes = strstr(text, "\nNotes\n");
        assert_non_null(notes);
        *notes = '\0'; /* words of notes are not cut */
        expect_safe(text, widths[i]);
        free(text);
        text = report_text(a, ONV_FORMAT_LAYERS, &options);
        expect_safe(text, widths[i]);
        free(text);
    }
}

/* As another process does. */
static void add_as_part(onv_report_stream *stream, const onv_analysis *analysis, onv_format format)
{
    capture part = {0};
    if (stream == NULL) return;
    assert_int_equal(onv_report_part(analysis, format, 2, NULL, capture_write, &part, NULL),
                     ONV_OK);
    assert_int_equal(onv_report_add_part(stream, part.text, part.length, NULL), ONV_OK);
    capture_free(&part);
}

/* Analyses that come one after another, and go. */
TEST(streams_are_the_reports)
{
    for (int format = ONV_FORMAT_TEXT; format <= ONV_FORMAT_MODEL_EXPLORER; format++) {
        capture at_once = {0}, joined = {0};
        onv_analysis *both[2] = {NULL};
        onv_report_stream *stream;
        onv_error error;
        onv_options options = onv_options_default();
        model *m[] = {diamond("f32[4,64]"), diamond("f32[batch,64]")};
        onv_status begun =
            onv_report_begin((onv_format)format, 2, NULL, capture_write, &joined, &stream, &error);
        assert_int_equal(begun, onv_report_can_stream((onv_format)format) ? ONV_OK : ONV_ERR_USAGE);
        assert_int_equal(error.code, begun);
        options.example = true;
        for (int i = 0; i < 2; i++) {
            both[i] = model_analyse(m[i], &options);
            OWNED_ANALYSIS again = model_analyse(m[i], &options);
            add_as_part(stream, again, (onv_format)format);
        }
        if (begun == ONV_OK) {
            assert_int_equal(onv_report((const onv_analysis *const *)both, 2, (onv_format)format,
                                        NULL, capture_write, &at_once, NULL),
                             ONV_OK);
            assert_int_equal(onv_report_end(stream, &error), ONV_OK);
            assert_string_equal(joined.text, at_once.text);
        }
        for (int i = 0; i < 2; i++) onv_analysis_destroy(both[i]);
        for (int i = 0; i < 2; i++) model_free(m[i]);
        capture_free(&at_once);
        capture_free(&joined);
    }
}

/* A part that is cut anywhere, or has any byte changed, is refused or gives some text; nothing else happens. */
TEST(parts_are_not_trusted)
{
    OWNED_MODEL m = diamond("f32[4,64]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    capture part = {0}, whole;
    onv_error error;
    assert_int_equal(onv_report_part(a, ONV_FORMAT_TEXT, 2, NULL, capture_write, &part, NULL),
                     ONV_OK);
    assert_int_equal(onv_report_part(a, ONV_FORMAT_SVG, 2, NULL, capture_write, &part, &error),
                     ONV_ERR_USAGE);
    size_t n_refused = 0;
    for (size_t i = 0; i < 2 * part.length; i++) {
        bool cuts = i < part.length;
        size_t bytes = cuts ? i : part.length;
        OWNED_TEXT copy = malloc(bytes > 0 ? bytes : 1);
        onv_report_stream *stream;
        assert_non_null(copy);
        memcpy(copy, part.text, bytes);
        if (!cuts) copy[i - part.length] ^= (char)0xff;
        whole = (capture){0};
        assert_int_equal(
            onv_report_begin(ONV_FORMAT_TEXT, 2, NULL, capture_write, &whole, &stream, NULL),
            ONV_OK);
        onv_status status = onv_report_add_part(stream, copy, bytes, &error);
        if (status != ONV_OK) assert_int_equal(status, ONV_ERR_FORMAT);
        assert_int_equal(onv_report_add_part(stream, part.text, part.length, NULL), status);
        assert_int_equal(onv_report_end(stream, NULL), status);
        n_refused += status != ONV_OK;
        capture_free(&whole);
    }
    assert_true(n_refused > part.length / 2);
    capture_free(&part);
}

/* Whoever takes the text refuses some of it: the rest is not offered. */
TEST(streams_end_where_they_fail)
{
    OWNED_MODEL m = diamond("f32[4,64]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    capture part = {0}, caught = {.limit = 100};
    onv_report_stream *stream;
    onv_error error;
    assert_int_equal(
        onv_report_begin(ONV_FORMAT_JSON, 2, NULL, capture_write, &caught, &stream, NULL), ONV_OK);
    assert_int_equal(onv_report_part(a, ONV_FORMAT_JSON, 2, NULL, capture_write, &part, NULL),
                     ONV_OK);
    assert_int_equal(onv_report_add_part(stream, part.text, part.length, &error), ONV_ERR_IO);
    size_t length = caught.length;
    assert_int_equal(onv_report_add_part(stream, part.text, part.length, &error), ONV_ERR_IO);
    assert_int_equal(error.code, ONV_ERR_IO);
    assert_int_equal(onv_report_end(stream, &error), ONV_ERR_IO);
    assert_int_equal(error.code, ONV_ERR_IO);
    assert_int_equal(caught.length, length);
    assert_int_equal(onv_report_end(NULL, NULL), ONV_OK);
    capture_free(&caught);
    capture_free(&part);
}
