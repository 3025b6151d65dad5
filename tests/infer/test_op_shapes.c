/* Taught operators: the documented example, what lines mean, and what is wrong with bad ones. */
#include <unistd.h>

#include "base/heap.h"
#include "ops/op_shapes.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* --- Files ------------------------------------------------------------------------------------- */

/* The path of a new file with that text, to be unlinked. */
static const char *write_file(const char *text, size_t bytes)
{
    static char path[64];
    strcpy(path, "/tmp/op-shapes-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, bytes), bytes);
    close(file);
    return path;
}

/* The first block of code in the document. */
static char *documented_example(void)
{
    char path[512], *text = calloc(1, 1 << 16);
    snprintf(path, sizeof path, "%s/docs/op-shapes.md", ONV_SOURCE_DIR);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    if (file == NULL) fail_msg("no %s", path);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    char *from = strstr(text, "```\n");
    assert_non_null(from);
    char *end = strstr(from + 4, "```\n");
    assert_non_null(end);
    memmove(text, from + 4, (size_t)(end - from - 4));
    text[end - from - 4] = '\0';
    return text;
}

static onv_analysis *analyse_with(model *m, const char *text)
{
    onv_options options = onv_options_default();
    options.op_shapes_file = write_file(text, strlen(text));
    onv_analysis *a = model_analyse(m, &options);
    unlink(options.op_shapes_file);
    model_free(m);
    return a;
}

static const char *dtype_of(const onv_analysis *a, const char *name)
{
    onv_tensor_info info;
    for (size_t i = 0; onv_analysis_tensor(a, i, &info); i++)
        if (strcmp(info.name, name) == 0) return info.dtype;
    fail_msg("no tensor '%s'", name);
    return "";
}

static void expect(const onv_analysis *a, const char *name, const char *dtype, const char *shape)
{
    assert_string_equal(model_shape(a, name), shape);
    assert_string_equal(dtype_of(a, name), dtype);
}

TEST(the_documented_example_works)
{
    model *m = model_read(
        17, "import com.acme 1", "in x f32[batch,4,9]", "in w i64[3]",
        "in image f16[batch,3,224,100]", "in weight f32[5,9]", "in boxes f32[batch,1000,4]",
        "int most 100", "y z = com.acme::Fancy(x w) fancy",
        "p = com.acme::Patches(image) patches size=16", "l = com.acme::Linear(x weight) linear",
        "d n = com.acme::Detect(boxes boxes most) detect", "s = com.acme::Shift(x w) shift");
    for (const char *const *out = (const char *const[]){"y", "z", "p", "l", "d", "n", "s", NULL};
         *out != NULL; out++)
        model_output(m, *out, "f32");
    OWNED_TEXT example = documented_example();
    OWNED_ANALYSIS a = analyse_with(m, example);
    expect(a, "y", "float16", "[batch, 8, 6]");
    expect(a, "z", "int64", "[3]");
    expect(a, "p", "float16", "[batch, 14, 7, 768]");
    expect(a, "l", "float32", "[batch, 4, 5]");
    expect(a, "n", "int32", "[batch]");
    if (strncmp(model_shape(a, "d"), "[batch, Detect", 14) != 0)
        fail_msg("d is %s", model_shape(a, "d"));
    /* Version 1 of the domain is before the line's. */
    expect(a, "s", "float32", "[...]");
}

/* --- Meaning ----------------------------------------------------------------------------------- */

/* The shape of y = Op(x f32[n,4,6,8], v i64[2]={...}) under a line for it. */
static void expect_shape(const char *line, const char *attrs, const char *shape)
{
    static const int64_t two[] = {7, 3};
    model *m = model_read(17, "in x f32[n,4,6,8]");
    model_ints(m, "v", 2, two);
    model_node(m, "Op", "op", "x v -", "y", attrs);
    model_output(m, "y", "f32");
    OWNED_ANALYSIS a = analyse_with(m, line);
    if (strcmp(model_shape(a, "y"), shape) != 0)
        fail_msg("%s: %s instead of %s", line, model_shape(a, "y"), shape);
}

TEST(expressions_mean_what_they_say)
{
    expect_shape("Op(x): []", "", "[]");
    expect_shape("Op(x): like x", "", "[n, 4, 6, 8]");
    expect_shape("ai.onnx::Op(x): [x.-1]", "", "[8]");
    expect_shape("Op(x): [2 + 3 * 4, (2 + 3) * 4, 20 - 5 - 3, 20 - (5 - 3)]", "",
                 "[14, 20, 12, 18]");
    expect_shape("Op(x): [7 / 2, ceil(7 / 2), 7 % 4, -2 + 5, 100 / 5 / 2]", "", "[3, 4, 3, 3, 10]");
    expect_shape("Op(x): [min(x.1, x.2, 5), max(1, x.1), x.rank]", "", "[4, 4, 4]");
    expect_shape("Op(x): [x.:2, 9, x.2:, x.1:-1]", "", "[n, 4, 9, 6, 8, 4, 6]");
    expect_shape("Op(x): [x.5:, x.3:1]", "", "[]");
    expect_shape("Op(x, v): [v[0], v[1] * x.0]", "", "[7, n*3]");
    expect_shape("Op(x): [attr.k, attr.none or -3 + 5]", "k=12", "[12, 2]");
    expect_shape("Op(x): [attr.pads.2, attr.pads.0]", "pads=[5,6,7]", "[7, 5]");
    expect_shape("Op(x): [x.0 * 2 / 2, ceil((x.0 + 1) / 2)]", "", "[n, floor(n/2) + 1]");
    expect_shape("  Op ( x )\t:[ x.0 ,1]i64 # and so on", "", "[n, 1]");
    expect_shape("# nothing\n\n\r\nOp(x): [3]\r\n", "", "[3]");
    expect_shape("Op(x): ?", "", "[...]");
    expect_shape("Op(x[a, b, ..., c], v[k]): [c, b, a, k]", "", "[8, 4, n, 2]");
    expect_shape("Op(x[_, 4, attr.k, 8], v[...]): [x.elems / x.0]", "k=6", "[192]");
    expect_shape("Op(x, v, w): [w.0 or x.0, x.1 or 5, attr.a or attr.b or 3]", "b=9", "[n, 4, 9]");
    expect_shape("Op(x): [if(attr.k, 1, 2), if(attr.k - 1, 1, 2), if(x.0, 3, 3)]", "k=1",
                 "[1, 2, 3]");
    expect_shape("Op(x): [exact(x.2 / 3), upto(x.1, most), upto(0)]", "", "[2, most#0, 0]");
    expect_shape("Op(x[a, 2 * b, ...], v) where c = b * 3, a = a: [c, a]", "", "[6, n]");
    expect_shape("Op(x[a] or [a, b, c, attr.k * d], v): [a] or [d, c]", "k=4", "[2, 6]");
    expect_shape("Op(x[a] or [a, ...], v): [a, 1]", "", "[n, 1]");
    expect_shape("Op(x, v, w): [given(v), given(w), known(x.0), known(w.0)]", "", "[1, 0, 1, 0]");
    expect_shape("Op(x, v): [x.0, 0?, 0 * x.0?, 5?]", "", "[n, 5]");
    expect_shape("Op(x, v): [if(v[0], 3, exact(7 / 2)), if(0, attr.none, 4)]", "", "[3, 4]");
    expect_shape("Op(x): [attr.mode in (a, b, c), attr.none in (a, b)]", "mode='c'", "[2, 0]");
}

TEST(element_types_and_work_are_said)
{
    model *m = model_read(17, "in x f32[3,4]", "in w f16[5,4]", "y z v = Op(x w) op to=10",
                          "out y f32", "out z f32", "out v f32");
    OWNED_ANALYSIS a = analyse_with(m, "Op(x[..., k], w[n, k]): [x.:-1, n] attr.to or i8, like x "
                                       "attr.none or i8, like x attr.none or like w; x.elems * n");
    expect(a, "y", "float16", "[3, 5]");
    expect(a, "z", "int8", "[3, 4]");
    expect(a, "v", "float16", "[3, 4]");
    onv_summary summary;
    onv_analysis_summary(a, &summary);
    assert_int_equal(summary.macs, 60);
}

TEST(rows_are_chosen)
{
    expect_shape("Op(x): [1]\nOp@9(x): [2]\nOp@17(x): [3]\nOp@18(x): [4]", "", "[3]");
    /* A built-in operator stays as it is, unless the line insists. */
    model *m =
        model_read(17, "in x f32[2]", "y = Relu(x) r", "z = Abs(x) a", "out y f32", "out z f32");
    OWNED_ANALYSIS a = analyse_with(m, "Relu(x): [3]\n!Abs(x): [4] u8");
    expect(a, "y", "float32", "[2]");
    expect(a, "z", "uint8", "[4]");
}

/* --- Errors ------------------------------------------------------------------------------------ */

static void expect_parse_error(const char *text, const char *message)
{
    onv_arena arena;
    onv_op_shapes table;
    onv_error error = {0};
    onv_arena_init(&arena, 1 << 24);
    assert_int_equal(onv_op_shapes_parse(&table, &arena, "file", text, strlen(text), &error),
                     ONV_ERR_FORMAT);
    if (strstr(error.message, message) == NULL)
        fail_msg("'%s': '%s' does not say '%s'", text, error.message, message);
    onv_arena_cleanup(&arena);
}

#define MANY "[] or [] or [] or [] or [] or [] or [] or [] or [] or [] or [] or [] or [] or "

TEST(bad_lines_are_named)
{
    expect_parse_error("Op", "file:1:3: '(' is expected");
    expect_parse_error("\n\n3(x): []", "file:3:1: the name of an operator");
    expect_parse_error("a::(x): []", "file:1:4: the name of an operator");
    expect_parse_error("Op(x) [1]", "file:1:7: ':' is expected");
    expect_parse_error("Op(x): [y.0]", "file:1:9: the name of an input");
    expect_parse_error("Op(x): like y", "file:1:13: the name of an input");
    expect_parse_error("Op(x): [1", "file:1:10: ',' is expected");
    expect_parse_error("Op(x): [1] q7", "file:1:12: 'q7' is not an element type");
    expect_parse_error("Op(x): [1] f16 f16", "file:1:16: nothing more");
    expect_parse_error("Op(x): 3", "file:1:8: an output is expected");
    expect_parse_error("Op(x): [x.]", "file:1:11: a number is expected");
    expect_parse_error("Op(x): [x.0 + ]", "the name of an input");
    expect_parse_error("Op(x): [ceil(x.0)]", "ceil() takes a quotient");
    expect_parse_error("Op(x): [1 + x.1:]", "',' is expected");
    expect_parse_error("Op(x): [99999999999999999999]", "too large");
    expect_parse_error("Op(x, x): []", "two inputs");
    expect_parse_error("Op(attr): []", "can be called");
    expect_parse_error("Op(x[_ * a]): []", "'_' is not a factor");
    expect_parse_error("Op(x[a] or): []", "file:1:11: '[' is expected");
    expect_parse_error("Op(x[a] or [] or [] or [] or []): []", "more than 4 forms");
    expect_parse_error("Op(x[a] or []): [] or [1] or [2]", "the first input has 2 forms");
    expect_parse_error("Op(x[a] or [] or []): [] or [1]", "the first input has 3 forms");
    expect_parse_error("Op(x): " MANY MANY MANY MANY "[]", "the first input has 0 forms");
    expect_parse_error("Op(): " MANY "[]", "the first input has 1 forms");
    expect_parse_error("Op(x) where x = 1: []", "an input is called 'x'");
    expect_parse_error("Op(x) where a 1: []", "'=' is expected");
    expect_parse_error("Op(x): [attr.k in ()]", "64 words are expected");
    expect_parse_error("Op(x): [given(3)]", "the name of an input");
    expect_parse_error("Op@0(x): []", "not a version");
    expect_parse_error("Op(x): []\nOp(y): []", "file:2:1: 'Op' is already declared in line 1");
}

TEST(limits_hold)
{
    char text[3 * ONV_CUSTOM_OP_MAX_LINE] = "Op(x): [";
    memset(text + 8, '(', ONV_CUSTOM_OP_MAX_NESTING + 1);
    expect_parse_error(text, "nested too deeply");
    memset(text + 8, '-', ONV_CUSTOM_OP_MAX_NESTING + 1);
    expect_parse_error(text, "nested too deeply");
    memset(text + 8, ' ', ONV_CUSTOM_OP_MAX_LINE);
    expect_parse_error(text, "the line is longer");
    strcpy(text, "Op(x): [1");
    for (int i = 0; i < ONV_MAX_RANK; i++) strcat(text, ",1");
    expect_parse_error(text, "more than 32 dims");
    strcpy(text, "Op(x): ?");
    for (int i = 0; i < ONV_CUSTOM_OP_MAX_LIST; i++) strcat(text, ",?");
    expect_parse_error(text, "more than 64 outputs");
    OWNED_TEXT large = calloc(1, ONV_CUSTOM_OP_MAX_BYTES + 2);
    assert_non_null(large);
    memset(large, '\n', ONV_CUSTOM_OP_MAX_BYTES + 1);
    onv_arena arena;
    onv_op_shapes table;
    onv_arena_init(&arena, 1 << 24);
    const char *path = write_file(large, ONV_CUSTOM_OP_MAX_BYTES + 1);
    assert_int_equal(onv_op_shapes_load(&table, &arena, path, NULL), ONV_ERR_LIMIT);
    unlink(path);
    assert_int_equal(onv_op_shapes_load(&table, &arena, "/nowhere/at/all", NULL), ONV_ERR_IO);
    onv_arena_cleanup(&arena);
}

/* Every prefix and every text with a byte changed is read, or refused with a place. */
TEST(damaged_text_is_refused)
{
    static const char text[] =
        "!a.b::Op@3(x[a, 2 * b] or [a], y) where c = if(a, 1, b), a = 2: [x.:-1, min(x.0, y[1]) % "
        "-2, attr.a.1 or 3] or [c?], like y f16, [upto(ceil(x.0 / 2)), attr.k in (l, m)] like x or "
        "y, [given(y), known(c)]; c # end\n";
    static const char signs[] = {'\0', '(', ']', ':', '-', '.', '9', 'x', '\n', '\xff'};
    for (size_t i = 0; i < sizeof text; i++) {
        for (size_t k = 0; k <= sizeof signs; k++) {
            char copy[sizeof text];
            memcpy(copy, text, sizeof text);
            if (k < sizeof signs) copy[i] = signs[k];
            size_t bytes = k < sizeof signs ? sizeof text - 1 : i;
            onv_arena arena;
            onv_op_shapes table;
            onv_error error = {0};
            onv_arena_init(&arena, 1 << 24);
            onv_status status = onv_op_shapes_parse(&table, &arena, "f", copy, bytes, &error);
            assert_true(status == ONV_OK || status == ONV_ERR_FORMAT);
            if (status != ONV_OK) assert_memory_equal(error.message, "f:", 2);
            onv_arena_cleanup(&arena);
        }
    }
}

static void expect_model_error(const char *line, const char *attrs, const char *message)
{
    onv_options options = onv_options_default();
    onv_analysis *a;
    onv_error error;
    OWNED_MODEL m = model_read(17, "in x f32[n,4]");
    model_node(m, "Op", "op", "x", "y", attrs);
    model_output(m, "y", "f32");
    options.strict = true;
    options.op_shapes_file = write_file(line, strlen(line));
    assert_int_not_equal(model_try(m, &options, &a, &error), ONV_OK);
    unlink(options.op_shapes_file);
    if (strstr(error.message, message) == NULL)
        fail_msg("%s: '%s' does not say '%s'", line, error.message, message);
}

TEST(models_that_contradict_are_errors)
{
    expect_model_error("Op(x): [x.2]", "", ":1: input x has no axis 2: shape [n, 4]");
    expect_model_error("Op(x): [attr.k]", "", ":1: attribute 'k' is missing");
    expect_model_error("Op(x): [attr.k]", "k='a'", ":1: attribute 'k' is not an integer");
    expect_model_error("Op(x): [attr.k.2 or 1]", "k=[1,2]", "is not a list of integers that long");
    expect_model_error("Op(x): [x.1 / (4 - x.1)]", "", ":1: a division by 0");
    expect_model_error("Op(x): [x.1 - 5]", "", "a dim would be -1");
    expect_model_error("Op(x, y): [1]", "", "takes 2 to");
    expect_model_error("Op(x[_, 3 * a]): []", "",
                       ":1: axis 1 of input x is 4, which does not split");
    expect_model_error("Op(x[_, attr.k * a]): []", "k=-2", "which does not split into -2");
    expect_model_error("Op(x[_] or [_, _, _]): []", "", "a rank that is not allowed");
    expect_model_error("Op(x[_, a]) where a = 5: []", "", ":1: 5 is 5, not a = 4");
    expect_model_error("Op(x) where a = x.1 - 5: []", "", ":1: a: -1 is not a size");
    expect_model_error("Op(x): [attr.k in (a, b, c)]", "k='d'",
                       ":1: attribute 'k' is 'd', not a, b or c");
}

#ifdef ONV_FAULT_INJECTION
TEST(no_memory_is_no_crash)
{
    static const char text[] = "a::Op(x[n] or [n, 2 * m], y) where k = n: [x.0, attr.k or 2] or "
                               "[attr.l in (a, b)] f16, like y\nB(x): [x.:1]\n";
    const char *path = write_file(text, sizeof text - 1);
    for (long n = 0;; n++) {
        onv_arena arena;
        onv_op_shapes table;
        onv_arena_init(&arena, 1 << 24);
        onv_heap_fail_after(n);
        onv_status status = onv_op_shapes_load(&table, &arena, path, NULL);
        onv_heap_fail_after(-1);
        onv_arena_cleanup(&arena);
        if (status == ONV_OK) break;
        assert_int_equal(status, ONV_ERR_MEMORY);
    }
    unlink(path);
}
#endif
