#include "load/text.h"

#include <string.h>

onv_text onv_text_of(const char *text)
{
    return (onv_text){text, strlen(text)};
}

bool onv_text_same(onv_text a, onv_text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

bool onv_text_is(onv_text t, const char *text)
{
    return onv_text_same(t, onv_text_of(text));
}

bool onv_text_begins(onv_text t, const char *with)
{
    size_t n = strlen(with);
    return t.length >= n && memcmp(t.at, with, n) == 0;
}

bool onv_text_ends(onv_text t, const char *with)
{
    size_t n = strlen(with);
    return t.length >= n && memcmp(t.at + t.length - n, with, n) == 0;
}

bool onv_text_is_number(onv_text t)
{
    while (t.length > 0 && onv_is_digit(t.at[0])) t = onv_text_skip(t, 1);
    return t.length == 0;
}

onv_text onv_text_from(onv_text t, const char *part)
{
    const char *found = t.length > 0 ? memmem(t.at, t.length, part, strlen(part)) : NULL;
    return onv_text_skip(t, found != NULL ? (size_t)(found - t.at) : t.length);
}

onv_text onv_text_behind(onv_text t, const char *part)
{
    onv_text found = onv_text_from(t, part);
    return onv_text_skip(found, found.length > 0 ? strlen(part) : 0);
}

bool onv_text_has(onv_text t, const char *part)
{
    return onv_text_from(t, part).length > 0;
}

onv_text onv_text_until(onv_text t, const char *bytes)
{
    size_t n = 0;
    while (n < t.length && (t.at[n] == '\0' || strchr(bytes, t.at[n]) == NULL)) n++;
    return (onv_text){t.at, n};
}

onv_text onv_text_word(onv_text t)
{
    size_t n = 0;
    while (n < t.length && onv_is_word(t.at[n])) n++;
    return (onv_text){t.at, n};
}

onv_text onv_text_last_word(onv_text t)
{
    size_t n = 0;
    while (n < t.length && onv_is_word(t.at[t.length - n - 1])) n++;
    return onv_text_skip(t, t.length - n);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

onv_text onv_text_trim(onv_text t)
{
    while (t.length > 0 && (t.at[0] == ' ' || t.at[0] == '\t')) t = onv_text_skip(t, 1);
    while (t.length > 0 && is_blank(t.at[t.length - 1])) t.length--;
    return t;
}

bool onv_next_part(onv_text *rest, char byte, onv_text *part)
{
    if (rest->length == 0) return false;
    const char *end = memchr(rest->at, byte, rest->length);
    *part = (onv_text){rest->at, end != NULL ? (size_t)(end - rest->at) : rest->length};
    *rest = onv_text_skip(*rest, part->length + (end != NULL));
    return true;
}

bool onv_next_quoted(onv_text *rest, onv_text *element)
{
    onv_text open = onv_text_skip(*rest, onv_text_until(*rest, "'\"").length);
    if (open.length == 0) return false;
    const char *end = memchr(open.at + 1, open.at[0], open.length - 1);
    if (end == NULL) return false;
    *element = (onv_text){open.at + 1, (size_t)(end - open.at - 1)};
    *rest = onv_text_skip(open, element->length + 2);
    return true;
}

bool onv_next_token(onv_text *rest, onv_text *token)
{
    if (rest->length == 0) return false;
    *token = onv_text_word(*rest);
    if (token->length == 0) token->length = 1;
    *rest = onv_text_skip(*rest, token->length);
    return true;
}

uint32_t onv_text_count_calls(onv_text code, onv_text callee, const char *behind)
{
    uint32_t n = 0;
    size_t length = callee.length + strlen(behind);
    for (onv_text word; onv_next_token(&code, &word);)
        n += onv_text_first(code) == '(' && word.length == length && onv_text_ends(word, behind) &&
             onv_text_same((onv_text){word.at, callee.length}, callee);
    return n;
}

bool onv_next_tensor(onv_text *rest, onv_text *name)
{
    onv_text found = onv_text_from(*rest, "%");
    if (found.length == 0) return false;
    *name = onv_text_word(onv_text_skip(found, 1));
    *rest = onv_text_skip(found, 1 + name->length);
    return true;
}

bool onv_next_frame(onv_text *rest, onv_trace_frame *frame)
{
    static const char file[] = "File \"", number[] = "\", line ", in[] = ", in ";
    onv_text head, code = {NULL, 0};
    while (onv_next_part(rest, '\n', &head)) {
        const char *begin = head.at;
        head = onv_text_trim(head);
        if (!onv_text_begins(head, file)) continue;
        frame->path = onv_text_skip(head, sizeof file - 1);
        onv_text behind = onv_text_from(frame->path, number);
        frame->path.length -= behind.length;
        behind = onv_text_behind(behind, number);
        frame->line = onv_text_until(behind, ",");
        frame->function = onv_text_skip(behind, frame->line.length);
        if (frame->line.length == 0 || !onv_text_is_number(frame->line) ||
            !onv_text_begins(frame->function, in))
            continue;
        frame->function = onv_text_skip(frame->function, sizeof in - 1);
        frame->rest = (onv_text){begin, (size_t)(rest->at - begin) + rest->length};
        onv_text next = *rest;
        if (onv_next_part(&next, '\n', &code)) code = onv_text_trim(code);
        frame->code = onv_text_begins(code, file) ? (onv_text){code.at, 0} : code;
        return true;
    }
    return false;
}

size_t onv_utf8_decode(const void *text, size_t room, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = text;
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length == 0 || s[0] > 0xf4 || room < length) return 0;
    uint32_t c = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return 0;
    *code = c;
    return length;
}
