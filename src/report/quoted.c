#include "report/quoted.h"

#include <ctype.h>
#include <string.h>

#include "load/text.h"
#include "report/clean.h"

/* --- CSV --------------------------------------------------------------------------------------- */

static bool is_blank(uint32_t c)
{
    return c <= ' ' || (c >= 0x7f && c <= 0xa0) || c == 0x1680 || (c >= 0x2000 && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000 ||
           c == 0xfeff;
}

/* Spreadsheets skip blanks and may take full-width signs, small ones and the minus for what they look
 * like. */
static bool is_formula(const char *text)
{
    static const uint32_t signs[] = {'=',    '+',    '-',    '@',    0xff1d, 0xff0b, 0xff0d,
                                     0xff20, 0xfe66, 0xfe62, 0xfe63, 0xfe6b, 0x2212};
    if (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') return true;
    for (size_t length; *text != '\0'; text += length) {
        uint32_t code;
        length = onv_utf8_decode(text, ONV_UTF8_MOST, &code);
        if (length == 0) return false;
        if (is_blank(code)) continue;
        for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
            if (code == signs[i]) return true;
        return false;
    }
    return false;
}

void onv_csv_field(onv_writer *out, const char *text)
{
    bool formula = is_formula(text);
    /* A semicolon parts cells where a comma marks decimals. */
    bool quoted = strpbrk(text, ",;\"\r\n\t") != NULL;
    if (quoted) onv_write_char(out, '"');
    if (formula) onv_write_char(out, '\'');
    while (*text != '\0') {
        onv_unit unit = onv_clean_next(&text, ONV_CLEAN_CELL);
        if (unit.text[0] == '"') onv_write_char(out, '"');
        onv_write_bytes(out, unit.text, unit.bytes);
    }
    if (quoted) onv_write_char(out, '"');
}

/* --- Identifiers ------------------------------------------------------------------------------- */

bool onv_is_identifier_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const char *onv_identifier(onv_strings *taken, onv_arena *arena, const char *prefix,
                           const char *text, size_t most, uint32_t row)
{
    char *id = onv_arena_printf(arena, "%s%.*s", prefix, (int)strnlen(text, most), text);
    for (char *c = id; c != NULL && *c != '\0'; c++)
        if (!onv_is_identifier_char(*c)) *c = '_';
    while (id != NULL && onv_interned(taken, id) != NULL)
        id = onv_arena_printf(arena, "%s_%lu", id, (unsigned long)row);
    return id != NULL ? onv_intern(taken, id) : NULL;
}

/* --- Shells ------------------------------------------------------------------------------------ */

const char *onv_shell_word(const onv_page *page, const char *text)
{
    size_t n = 2, length = strlen(text);
    bool is_plain = text[0] != '\0' && (text[0] != '-' || length == 1);
    for (size_t i = 0; i < length; i++) {
        is_plain =
            is_plain && (isalnum((unsigned char)text[i]) || strchr("_-.:/=,+@%", text[i]) != NULL);
        n += text[i] == '\'' ? 4 : 1;
    }
    if (is_plain) return text;
    char *quoted = onv_arena_alloc(page->arena, n + 1), *to = quoted;
    if (quoted == NULL) return "";
    *to++ = '\'';
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = text[i];
    }
    *to++ = '\'';
    *to = '\0';
    return quoted;
}
