#include "support/capture.h"
#include "ir/model.h"
#include "support/test.h"

bool capture_write(void *context, const char *text, size_t bytes)
{
    capture *caught = context;
    if (caught->limit > 0 && caught->length + bytes > caught->limit) return false;
    if (caught->length + bytes + 1 > caught->capacity) {
        caught->capacity = (caught->length + bytes + 1) * 2;
        caught->text = realloc(caught->text, caught->capacity);
        assert_non_null(caught->text);
    }
    memcpy(caught->text + caught->length, text, bytes);
    caught->length += bytes;
    caught->text[caught->length] = '\0';
    return true;
}

void end_text(char **text)
{
    free(*text);
}

void end_json(json_t **json)
{
    json_decref(*json);
}

void end_analysis(onv_analysis **analysis)
{
    onv_analysis_destroy(*analysis);
}

bool capture_size(void *count, const char *text, size_t bytes)
{
    (void)text;
    *(size_t *)count += bytes;
    return true;
}

void capture_free(capture *caught)
{
    free(caught->text);
    *caught = (capture){0};
}

char *capture_file(const char *file)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *from = fopen(file, "rb"), *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    for (int c; from != NULL && (c = getc(from)) != EOF;) putc(c, to);
    if (from != NULL) fclose(from);
    fclose(to);
    return text;
}

char *report_text(const onv_analysis *analysis, onv_format format,
                  const onv_report_options *options)
{
    capture caught = {0};
    onv_error error = {0};
    onv_status status = onv_report(&analysis, 1, format, options, capture_write, &caught, &error);
    if (status != ONV_OK) fail_msg("%s: %s", onv_status_name(status), error.message);
    assert_non_null(caught.text);
    return caught.text;
}

json_t *report_json(const onv_analysis *analysis)
{
    json_error_t error;
    char *text = report_text(analysis, ONV_FORMAT_JSON, NULL);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) fail_msg("line %d: %s", error.line, error.text);
    free(text);
    json_t *models = json_object_get(root, "models");
    assert_int_equal(json_array_size(models), 1);
    json_t *model = json_incref(json_array_get(models, 0));
    json_decref(root);
    return model;
}

const onv_diag *diag_of(const onv_model *of, const char *code)
{
    for (size_t i = 0; i < of->diags.count; i++)
        if (strcmp(of->diags.at[i].code, code) == 0) return &of->diags.at[i];
    return NULL;
}

const char *message_of(const onv_analysis *analysis, const char *code)
{
    onv_diagnostic diag;
    for (size_t i = 0; onv_analysis_diagnostic(analysis, i, &diag); i++)
        if (strcmp(diag.code, code) == 0) return diag.message;
    return NULL;
}

json_int_t json_number(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) fail_msg("'%s' is no number", key);
    return json_integer_value(value);
}

/* One character of strict UTF-8, written apart from the decoder under test. */
static size_t decode(const unsigned char *s, uint32_t *code)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t n = 0; n < 4; n++) {
        if ((s[0] & forms[n].mask) != forms[n].lead) continue;
        uint32_t c = s[0] & (unsigned char)~forms[n].mask;
        for (size_t i = 1; i <= n; i++) {
            if (s[i] < 0x80 || s[i] > 0xbf) return 0;
            c = c * 64 + (s[i] - 0x80);
        }
        *code = c;
        return c >= forms[n].least && c < 0x110000 && (c < 0xd800 || c > 0xdfff) ? n + 1 : 0;
    }
    return 0;
}

void expect_safe(const char *text, size_t width)
{
    size_t columns = 0;
    const unsigned char *s = (const unsigned char *)text;
    while (*s != '\0') {
        uint32_t code = 0;
        size_t length = decode(s, &code);
        if (length == 0) fail_msg("ill-formed UTF-8 at '%.20s'", (const char *)s);
        bool control = (code < 0x20 && code != '\n') || (code >= 0x7f && code < 0xa0);
        bool bidi = code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
                    (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f);
        if (control || bidi) fail_msg("U+%04X reached the output", (unsigned)code);
        columns = code == '\n' ? 0 : columns + 1;
        if (width > 0 && columns > width) fail_msg("a line passes %zu columns: %s", width, text);
        s += length;
    }
}

void expect_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("no '%s' in:\n%s", part, text);
}

void expect_lacks(const char *text, const char *part)
{
    if (strstr(text, part) != NULL) fail_msg("'%s' stands in:\n%s", part, text);
}

size_t count_parts(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) count++;
    return count;
}
