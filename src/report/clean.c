#include "report/clean.h"

#include <stdio.h>
#include <string.h>

#include "load/text.h"

typedef struct range {
    uint32_t first, last;
} range;

/* Characters that reorder, hide or break text: soft hyphen, Arabic letter mark, Mongolian vowel
 * separator, zero-width and bidirectional controls, line and paragraph separators, word joiner to
 * deprecated formats, byte order mark, interlinear annotation, tags. Sorted. */
static const range hidden[] = {
    {0x00ad, 0x00ad}, {0x061c, 0x061c}, {0x180e, 0x180e}, {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

/* The common blocks of combining marks and variation selectors: no columns. Sorted. */
static const range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
    {0x064b, 0x065f}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

/* Blocks whose characters take two columns: Hangul, CJK, kana, full-width forms, emoji. Sorted. */
static const range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
    {0xa960, 0xa97c},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18cff}, {0x1b000, 0x1b2ff},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
};

static bool in_ranges(uint32_t code, const range *ranges, size_t count)
{
    for (size_t i = 0; i < count && ranges[i].first <= code; i++)
        if (code <= ranges[i].last) return true;
    return false;
}

#define IN(code, ranges) in_ranges((code), (ranges), sizeof(ranges) / sizeof(ranges)[0])

static bool is_shown(uint32_t code, onv_clean_mode mode)
{
    if (code < 0x20)
        return mode == ONV_CLEAN_CELL && (code == '\t' || code == '\n' || code == '\r');
    if (code < 0x7f) return true;
    return mode != ONV_CLEAN_ASCII && code >= 0xa0 && !IN(code, hidden);
}

static bool acts_in_markdown(uint32_t code)
{
    return code < 0x7f && code > 0 && strchr("\\`*_{}[]<>#!|&~@\"'$", (int)code) != NULL;
}

onv_unit onv_clean_next(const char **text, onv_clean_mode mode)
{
    onv_unit unit;
    uint32_t code;
    size_t length = onv_utf8_decode(*text, ONV_UTF8_MOST, &code);
    if (mode == ONV_CLEAN_MARKDOWN && length == 1 && acts_in_markdown(code)) {
        unit.bytes = (uint8_t)snprintf(unit.text, sizeof unit.text, "&#%u;", (unsigned)code);
        unit.columns = 1;
        *text += length;
        return unit;
    }
    if (length > 0 && is_shown(code, mode)) {
        memcpy(unit.text, *text, length);
        unit.text[length] = '\0';
        unit.bytes = (uint8_t)length;
        unit.columns = code < 0x300 ? 1 : IN(code, combining) ? 0 : IN(code, wide) ? 2 : 1;
        *text += length;
        return unit;
    }
    if (length == 0) {
        code = (unsigned char)**text;
        length = 1;
    }
    unsigned c = code;
    int written = c <= 0xff     ? snprintf(unit.text, sizeof unit.text, "\\x%02x", c)
                  : c <= 0xffff ? snprintf(unit.text, sizeof unit.text, "\\u%04x", c)
                                : snprintf(unit.text, sizeof unit.text, "\\U%08x", c);
    unit.bytes = (uint8_t)written;
    unit.columns = unit.bytes;
    *text += length;
    return unit;
}

size_t onv_clean_columns(const char *text, onv_clean_mode mode)
{
    size_t columns = 0;
    while (*text != '\0') columns += onv_clean_next(&text, mode).columns;
    return columns;
}

void onv_write_clean(onv_writer *writer, const char *text, onv_clean_mode mode)
{
    for (;;) {
        const char *plain = text; /* nearly all of a text */
        while (*text >= ' ' && *text < 0x7f && mode != ONV_CLEAN_MARKDOWN) text++;
        onv_write_bytes(writer, plain, (size_t)(text - plain));
        if (*text == '\0') return;
        onv_unit unit = onv_clean_next(&text, mode);
        onv_write_bytes(writer, unit.text, unit.bytes);
    }
}

/* Units while they fit in `columns`; returns the columns written. */
static size_t write_head(onv_writer *writer, const char *text, size_t columns, onv_clean_mode mode)
{
    size_t used = 0;
    while (*text != '\0') {
        onv_unit unit = onv_clean_next(&text, mode);
        if (used + unit.columns > columns) break;
        onv_write_bytes(writer, unit.text, unit.bytes);
        used += unit.columns;
    }
    return used;
}

static size_t dots_of(onv_clean_mode mode)
{
    return mode == ONV_CLEAN_ASCII ? 3 : 1;
}

static const char *ellipsis_of(onv_clean_mode mode)
{
    return mode == ONV_CLEAN_ASCII ? "..." : "\u2026";
}

/* The last `tail` of the text's columns. */
static const char *find_tail(const char *text, size_t total, size_t tail, onv_clean_mode mode)
{
    size_t skipped = 0;
    onv_unit unit = {.columns = 0};
    while (total - skipped > tail) {
        unit = onv_clean_next(&text, mode);
        skipped += unit.columns;
    }
    /* Marks that combine with a character that was left out go with it. */
    const char *rest = text;
    while (*rest != '\0') {
        text = rest;
        unit = onv_clean_next(&rest, mode);
        if (unit.columns > 0) return text;
    }
    return rest;
}

size_t onv_write_fitted(onv_writer *writer, const char *text, size_t columns, onv_clean_mode mode,
                        onv_cut cut)
{
    size_t total = onv_clean_columns(text, mode), dots = dots_of(mode);
    if (total <= columns) {
        onv_write_clean(writer, text, mode);
        return total;
    }
    if (columns < dots + 2) return write_head(writer, text, columns, mode);
    /* The end of a name tells more than its front, which it shares with its neighbours. */
    size_t head = cut == ONV_CUT_FRONT ? 0 : (columns - dots) / 3, tail = columns - dots - head;
    size_t used = write_head(writer, text, head, mode);
    onv_write_text(writer, ellipsis_of(mode));
    return used + dots + write_head(writer, find_tail(text, total, tail, mode), tail, mode);
}

const char *onv_clean_end(const char *text, size_t columns, onv_clean_mode mode)
{
    size_t total = onv_clean_columns(text, mode), dots = dots_of(mode);
    if (total <= columns || columns < dots + 2) return text;
    return find_tail(text, total, columns - dots, mode);
}
