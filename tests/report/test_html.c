/* The page and the picture: the block of data is the JSON report, and no name of a model gets out of its place. */
#include <jansson.h>

#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static const char *const hostile[] = {
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\xe2\x80\xae"
    "evil",
    "{{data}}",
    "a&b\x01",
};
enum { N_HOSTILE = sizeof hostile / sizeof hostile[0] };

static model *named(void)
{
    model *m = model_new(17);
    char last[64] = "x", next[64];
    model_input(m, "x", "f32[batch,8]");
    /* The writer's lists of names are split at spaces, and the names hold none. */
    for (int i = 0; i < N_HOSTILE; i++) {
        strcpy(next, hostile[i]);
        model_node(m, "Relu", hostile[i], last, next, "");
        strcpy(last, next);
    }
    model_output(m, last, "f32");
    return m;
}

static char *report_of(int64_t batch, onv_format format)
{
    model *m = named();
    onv_options options = onv_options_default();
    options.batch = batch;
    options.timelines = options.example = true;
    onv_analysis *a = model_analyse(m, &options);
    char *text = report_text(a, format, NULL);
    onv_analysis_destroy(a);
    model_free(m);
    return text;
}

static json_t *parse(const char *text, size_t length)
{
    json_error_t error;
    json_t *root =
        json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
    if (root == NULL) fail_msg("line %d: %s", error.line, error.text);
    return root;
}

TEST(the_block_is_the_report)
{
    static const char begin[] = "<script type=\"application/json\" id=\"report\">";
    for (int64_t batch = 0; batch < 2; batch++) {
        char *page = report_of(batch, ONV_FORMAT_HTML), *json = report_of(batch, ONV_FORMAT_JSON);
        assert_int_equal(count_parts(page, begin), 1);
        const char *block = strstr(page, begin) + sizeof begin - 1;
        size_t length = strcspn(block, "<>&");
        assert_int_equal(strncmp(block + length, "</script>", 9), 0);
        json_t *shown = parse(block, length), *written = parse(json, strlen(json));
        assert_true(json_equal(shown, written));
        json_t *first = json_array_get(json_object_get(shown, "models"), 0);
        json_t *sized = batch > 0 ? first : json_object_get(first, "example");
        assert_non_null(json_object_get(json_object_get(sized, "timelines"), "executions"));
        json_decref(shown);
        json_decref(written);
        free(page);
        free(json);
    }
}

TEST(names_stay_text)
{
    OWNED_MODEL plain = model_read(17, "in x f32[2,8]", "y = Relu(x) r", "out y f32");
    onv_options options = onv_options_default();
    options.timelines = true;
    OWNED_ANALYSIS a = model_analyse(plain, &options);
    OWNED_TEXT harmless = report_text(a, ONV_FORMAT_HTML, NULL);
    char *page = report_of(2, ONV_FORMAT_HTML), *picture = report_of(2, ONV_FORMAT_SVG);
    static const char *const parts[] = {"<script",   "</script",     "<!--", "<svg",
                                        "alert(1)<", "\xe2\x80\xae", "\x01"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        assert_int_equal(count_parts(page, parts[i]), count_parts(harmless, parts[i]));
    expect_lacks(picture, "<script");
    expect_lacks(picture, "\xe2\x80\xae");
    expect_contains(picture, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    free(page);
    free(picture);
}

/* Where nothing was kept, or nothing has a size, there is a page all the same. */
TEST(nothing_to_draw)
{
    OWNED_MODEL m = named();
    onv_options options = onv_options_default();
    OWNED_ANALYSIS a = model_analyse(m, &options);
    char *page = report_text(a, ONV_FORMAT_HTML, NULL),
         *picture = report_text(a, ONV_FORMAT_SVG, NULL);
    expect_lacks(page, "\"timelines\":");
    expect_contains(picture, "Nothing to draw");
    free(page);
    free(picture);
}
