#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

enum { MOST_LETTERS = 63 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits between two words, a swap of neighbours being one; both are at most MOST_LETTERS long. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned rows[3][MOST_LETTERS + 1];
    for (size_t j = 0; j <= m; j++) rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + !same(a[i - 1], b[j - 1]));
            bool is_swap = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
            if (is_swap) row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *onv_name_in(const void *list, size_t index)
{
    return ((const char *const *)list)[index];
}

static bool is_same(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(word, name, length) == 0;
}

/* What other programs call some names. */
static const char *const others[][2] = {
    {"pytorch", "torch"}, {"onnxruntime", "ort"},   {"cudaMallocAsync", "async"},
    {"float32", "fp32"},  {"float16", "fp16"},      {"half", "fp16"},
    {"bfloat16", "bf16"}, {"adamw_torch", "adamw"}, {"adamw_8bit", "adam8bit"}};

enum { N_OTHERS = sizeof others / sizeof others[0] };

bool onv_is_name(const char *word, size_t length, const char *name)
{
    for (size_t i = 0; i < N_OTHERS; i++)
        if (strcmp(others[i][1], name) == 0 && is_same(word, length, others[i][0])) return true;
    return is_same(word, length, name);
}

/* The fewest edits that make a name of the word, or what others call it. */
static unsigned edits_to(const char *word, size_t length, const char *name)
{
    unsigned edits = distance(word, length, name, strlen(name));
    for (size_t i = 0; i < N_OTHERS; i++)
        if (strcmp(others[i][1], name) == 0)
            edits = least(edits, distance(word, length, others[i][0], strlen(others[i][0])));
    return edits;
}

const char *onv_nearest(const char *word, size_t length, onv_name_fn name, const void *list)
{
    const char *best = NULL, *at;
    unsigned fewest = 1 + (unsigned)length / 5;
    if (length == 0 || length > MOST_LETTERS) return NULL;
    for (size_t i = 0; (at = name(list, i)) != NULL; i++) {
        if (strlen(at) > MOST_LETTERS) continue;
        unsigned edits = edits_to(word, length, at);
        if (edits > fewest || edits >= length || (edits == fewest && best != NULL)) continue;
        fewest = edits;
        best = at;
    }
    return best;
}

onv_status(onv_fail_choice)(onv_error *err, const char *option, const char *word, size_t length,
                            onv_name_fn name, const void *list)
{
    char names[400] = "";
    const char *at, *near = onv_nearest(word, length, name, list);
    size_t used = 0;
    for (size_t i = 0; (at = name(list, i)) != NULL && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", at);
    int shown = length < 64 ? (int)length : 64;
    return onv_fail(err, ONV_ERR_USAGE, "%s: '%.*s' is unknown%s%s%s from %s", option, shown, word,
                    near != NULL ? ", did you mean '" : "; choose", near != NULL ? near : "",
                    near != NULL ? "'? Choose" : "", names);
}
