#include "report/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "load/text.h"
#include "report/clean.h"

void onv_json_init(onv_json *json, onv_writer *out, onv_arena *scratch)
{
    *json = (onv_json){.out = out, .scratch = scratch};
}

static void new_line(onv_json *json)
{
    onv_write_char(json->out, '\n');
    for (unsigned i = 0; i < json->depth; i++) onv_write_text(json->out, "  ");
}

/* What stands before a value or a key: the comma, the line. */
static void begin_item(onv_json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth == 0) return;
    bool is_first = !json->open[json->depth - 1].has_items;
    json->open[json->depth - 1].has_items = true;
    if (!is_first) onv_write_char(json->out, ',');
    if (json->open[json->depth - 1].lines)
        new_line(json);
    else if (!is_first && !json->open[json->depth - 1].dense)
        onv_write_char(json->out, ' ');
}

void onv_json_open(onv_json *json, char bracket, onv_json_layout layout)
{
    assert(json->depth < ONV_JSON_MAX_DEPTH);
    begin_item(json);
    onv_write_char(json->out, bracket);
    json->open[json->depth].close = bracket == '{' ? '}' : ']';
    json->open[json->depth].lines = layout == ONV_JSON_LINES && !json->is_embedded;
    json->open[json->depth].dense = layout == ONV_JSON_DENSE || json->is_embedded;
    json->open[json->depth].has_items = false;
    json->depth++;
}

void onv_json_close(onv_json *json)
{
    assert(json->depth > 0);
    json->depth--;
    if (json->open[json->depth].lines && json->open[json->depth].has_items) new_line(json);
    onv_write_char(json->out, json->open[json->depth].close);
    if (json->depth == 0 && !json->is_embedded) onv_write_char(json->out, '\n');
}

void onv_json_separate(onv_json *json, bool has_items)
{
    json->open[json->depth - 1].has_items = has_items;
}

/* --- Strings ----------------------------------------------------------------------------------- */

enum { PLAIN = 1, PLAIN_IN_HTML = 2 };

/* Bytes that stand for themselves: printable ASCII but for the quote and the backslash, and in a page for what HTML acts on.
 * Characters that JavaScript once took for ends of lines are no ASCII, so they are escapes already. */
#define BOTH (PLAIN | PLAIN_IN_HTML)
static const uint8_t plain_bytes[256] =
    {
        [' '] = BOTH,          ['!'] = BOTH,         ['#' ... '%'] = BOTH, ['&'] = PLAIN,
        ['\'' ... ';'] = BOTH, ['<'] = PLAIN,        ['='] = BOTH,         ['>'] = PLAIN,
        ['?' ... '['] = BOTH,  [']' ... '~'] = BOTH,
};

/* The character at *text as an escape; *text moves behind it. A byte that is no UTF-8 becomes text. */
static void write_escape(onv_writer *out, const char **text)
{
    static const char letters[] = "\"\\bfnrt", of[] = "\"\\\b\f\n\r\t";
    const char *letter = strchr(of, **text);
    uint32_t code;
    size_t length = onv_utf8_decode(*text, ONV_UTF8_MOST, &code);
    if (letter != NULL)
        onv_write_format(out, "\\%c", letters[letter - of]);
    else if (length == 0)
        onv_write_format(out, "\\\\x%02x", (unsigned)(unsigned char)**text);
    else if (code > 0xffff)
        onv_write_format(out, "\\u%04X\\u%04X", 0xd800 | (code - 0x10000) >> 10,
                         0xdc00 | (code & 0x3ff));
    else
        onv_write_format(out, code >= ' ' && code <= 0x7f ? "\\u%04x" : "\\u%04X", code);
    *text += length > 0 ? length : 1;
}

static void write_string(const onv_json *json, const char *text)
{
    const uint8_t plain = json->is_embedded ? PLAIN_IN_HTML : PLAIN;
    onv_write_char(json->out, '"');
    while (*text != '\0') {
        size_t n = 0;
        while ((plain_bytes[(unsigned char)text[n]] & plain) != 0) n++;
        onv_write_bytes(json->out, text, n);
        text += n;
        if (*text != '\0') write_escape(json->out, &text);
    }
    onv_write_char(json->out, '"');
}

void onv_json_key(onv_json *json, const char *key)
{
    begin_item(json);
    write_string(json, key);
    onv_write_char(json->out, ':');
    if (!json->is_embedded) onv_write_char(json->out, ' ');
    json->after_key = true;
}

void onv_json_value(onv_json *json, const char *text)
{
    begin_item(json);
    onv_write_text(json->out, text);
}

void onv_json_string(onv_json *json, const char *text)
{
    begin_item(json);
    if (text == NULL)
        onv_write_text(json->out, "null");
    else
        write_string(json, text);
}

/* --- Other values ------------------------------------------------------------------------------ */

void onv_json_null(onv_json *json)
{
    onv_json_string(json, NULL);
}

void onv_json_bool(onv_json *json, bool value)
{
    begin_item(json);
    onv_write_text(json->out, value ? "true" : "false");
}

void onv_json_u64(onv_json *json, uint64_t value)
{
    enum { MOST_DIGITS = 20 };
    size_t n = 1;
    begin_item(json);
    char *at = onv_writer_room(json->out, MOST_DIGITS);
    for (uint64_t rest = value; rest >= 10; rest /= 10) n++;
    for (size_t i = n; i-- > 0; value /= 10) at[i] = (char)('0' + value % 10);
    json->out->used += n;
}

void onv_json_i64(onv_json *json, int64_t value)
{
    if (value >= 0) {
        onv_json_u64(json, (uint64_t)value);
        return;
    }
    begin_item(json);
    onv_write_format(json->out, "%" PRId64, value);
}

void onv_json_put_u64(onv_json *json, const char *key, uint64_t value)
{
    onv_json_key(json, key);
    onv_json_u64(json, value);
}

void onv_json_put_known(onv_json *json, const char *key, bool is_known, uint64_t value)
{
    onv_json_key(json, key);
    if (is_known)
        onv_json_u64(json, value);
    else
        onv_json_null(json);
}

void onv_json_put_bool(onv_json *json, const char *key, bool value)
{
    onv_json_key(json, key);
    onv_json_bool(json, value);
}

void onv_json_put_open(onv_json *json, const char *key, char bracket, onv_json_layout layout)
{
    onv_json_key(json, key);
    onv_json_open(json, bracket, layout);
}

void onv_json_put_string(onv_json *json, const char *key, const char *text)
{
    onv_json_key(json, key);
    onv_json_string(json, text);
}

void onv_json_put_texts(onv_json *json, const char *key, const char *const *texts, size_t n)
{
    onv_json_put_open(json, key, '[', ONV_JSON_INLINE);
    for (size_t i = 0; i < n; i++) onv_json_string(json, texts[i]);
    onv_json_close(json);
}

void onv_json_put_numbers(onv_json *json, const char *key, const uint64_t *numbers, size_t n)
{
    onv_json_put_open(json, key, '[', ONV_JSON_INLINE);
    for (size_t i = 0; i < n; i++) onv_json_u64(json, numbers[i]);
    onv_json_close(json);
}

void onv_json_put_ratio(onv_json *json, const char *key, uint64_t part, uint64_t whole)
{
    const uint64_t million = 1000000;
    unsigned __int128 scaled = (unsigned __int128)part * million;
    uint64_t ratio = whole == 0 ? 0 : (uint64_t)((scaled + whole / 2) / whole);
    onv_json_key(json, key);
    begin_item(json);
    onv_write_format(json->out, "%" PRIu64 ".%06" PRIu64, ratio / million, ratio % million);
}

void onv_json_dim(onv_json *json, const onv_dims *pool, onv_dim d)
{
    if (onv_dim_is_const(d)) {
        onv_json_i64(json, d.raw);
        return;
    }
    if (!onv_dim_is_known(d)) {
        onv_json_null(json);
        return;
    }
    onv_json_string(json, onv_dim_text(pool, json->scratch, d));
}
