#include "report/identifier.h"

#include <string.h>

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
