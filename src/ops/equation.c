#include "ops/equation.h"

#include <ctype.h>
#include <string.h>

static bool is_end(char c)
{
    return c == '\0' || c == ',' || c == '-';
}

/* Its ellipsis stands for `hidden` axes, of at most `widest`. */
static bool read_term(const char *at, uint32_t hidden, uint32_t widest, char *term)
{
    uint32_t n = 0;
    for (; !is_end(*at); at++) {
        bool is_ellipsis = strncmp(at, "...", 3) == 0;
        if (*at == ' ') continue;
        if (n + (is_ellipsis ? hidden : 1) > ONV_MAX_RANK) return false;
        for (uint32_t i = 0; is_ellipsis && i < hidden; i++)
            term[n++] = (char)(1 + widest - hidden + i);
        if (is_ellipsis)
            at += 2;
        else if (!isalpha((unsigned char)*at) || strchr(term, *at) != NULL)
            return false;
        else
            term[n++] = *at;
    }
    return true;
}

/* The ellipsis, then letters that one operand alone has. */
static bool imply_result(onv_equation *e, uint32_t n)
{
    uint32_t count = 0;
    for (int c = 1; c <= 'z'; c++) {
        uint32_t times = 0;
        for (uint32_t k = 0; k < n; k++) times += strchr(e->terms[k], c) != NULL;
        if (times == 0 || (times > 1 && isalpha(c))) continue;
        if (count == ONV_MAX_RANK) return false;
        e->result[count++] = (char)c;
    }
    return true;
}

bool onv_equation_read(const char *text, const uint32_t *ranks, uint32_t n, onv_equation *e)
{
    uint32_t hidden[ONV_MOST_TERMS], widest = 0;
    const char *at = text, *start[ONV_MOST_TERMS];
    *e = (onv_equation){0};
    if (n > ONV_MOST_TERMS) return false;
    for (uint32_t k = 0; k < n; k++, at += *at == ',') {
        uint32_t letters = 0;
        if (k > 0 && at[-1] != ',') return false;
        start[k] = at;
        for (; !is_end(*at); at++) letters += isalpha((unsigned char)*at) != 0;
        hidden[k] = ranks[k] > letters ? ranks[k] - letters : 0;
        if (hidden[k] > widest) widest = hidden[k];
    }
    for (uint32_t k = 0; k < n; k++)
        if (!read_term(start[k], hidden[k], widest, e->terms[k]) || strlen(e->terms[k]) != ranks[k])
            return false;
    if (strncmp(at, "->", 2) == 0) return read_term(at + 2, widest, widest, e->result);
    return *at == '\0' && imply_result(e, n);
}
