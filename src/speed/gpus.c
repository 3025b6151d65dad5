/* The rows of the table of GPUs and the search by name. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "speed/gpu.h"

/* Where the usable bytes are from. */
#define QUOTED(where) "nvidia-smi total, as quoted in " where
#define MODAL         QUOTED("modal-labs/modal-client pull request 2797")
#define LOGS          "nvidia-smi total, as printed in several public logs"
#define ONE_LOG       "nvidia-smi total, as printed in a public log"
#define NOMINAL       "nominal: NVIDIA's specification; the driver keeps a part"
#define SHARED        "; shared with the CPU"

/* Where speeds are from. */
#define P100_SHEET    "Tesla P100 datasheet"
#define V100_SHEET    "V100 datasheet"
#define T4_SHEET      "T4 datasheet"
#define A10_SHEET     "A10 datasheet"
#define A30_SHEET     "A30 datasheet"
#define A100_SHEET    "A100 datasheet"
#define L4_SHEET      "L4 datasheet"
#define L40_SHEET     "L40 datasheet"
#define L40S_SHEET    "L40S datasheet"
#define H100_SHEET    "H100 datasheet"
#define H200_SHEET    "H200 datasheet"
#define TRTLLM        "NVIDIA/TensorRT-LLM, cluster_info.py"
#define TU102         "Turing whitepaper"
#define GA102         "Ampere GA102 whitepaper"
#define ADA           "Ada whitepaper"
#define RTX_BLACKWELL "RTX Blackwell whitepaper"

// clang-format off
#define RATES(fp32, tf32, half, bandwidth) {fp32, tf32, half, bandwidth}
#define TWO(fastest, slowest, pcie, source) &(const onv_gpu_speed){RATES fastest, RATES slowest, pcie, source}
#define ONE(card, pcie, source) TWO(card, card, pcie, source)
#define UNKNOWN &unknown
#define ALSO(alias) "\0" alias
#define GPU(name, model, nominal, usable, major, minor, source, speed) \
    {name "\0", model, source, speed, usable, nominal, major, minor},
// clang-format on

static const onv_gpu_speed unknown;

const onv_gpu onv_gpus[] = {
#include "speed/gpus.def"
};

const size_t onv_n_gpus = sizeof onv_gpus / sizeof onv_gpus[0];

enum { KEY_BYTES = 80 }; /* no name in the table is near it */

static char lower(char c)
{
    if (c < 'A' || c > 'Z') return c;
    return (char)(c - 'A' + 'a');
}

static bool drop_front(char *key, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(key, word, length) != 0) return false;
    memmove(key, key + length, strlen(key + length) + 1);
    return true;
}

static bool drop_end(char *key, const char *word)
{
    size_t length = strlen(word), whole = strlen(key);
    if (whole < length || strcmp(key + whole - length, word) != 0) return false;
    key[whole - length] = '\0';
    return true;
}

/* What is left of a name once everything that people spell differently is gone. False if that is
 * nothing, or more than any name has. A final "g" stays: it is part of A10G. */
static bool make_key(const char *name, char key[KEY_BYTES])
{
    static const char *const front[] = {"nvidia", "geforce", "tesla", "jetson", "rtx", "gtx"};
    size_t length = 0;
    for (const char *c = name; *c; c++) {
        if (*c == ' ' || *c == '\t' || *c == '-' || *c == '_') continue;
        if (length == KEY_BYTES - 1) return false;
        key[length++] = lower(*c);
    }
    key[length] = '\0';
    for (size_t i = 0; i < sizeof front / sizeof front[0]; i++) drop_front(key, front[i]);
    drop_end(key, "generation");
    if (!drop_end(key, "gib")) drop_end(key, "gb");
    return key[0] != '\0';
}

/* Is `query` this name, alone or with the capacity behind it? */
static bool spells(const char *query, const char *name, unsigned nominal_gib)
{
    char key[KEY_BYTES], size[24];
    if (!name || !make_key(name, key)) return false;
    size_t length = strlen(key);
    if (strncmp(query, key, length) != 0) return false;
    const char *rest = query + length;
    if (!*rest) return true;
    size_t digits = (size_t)snprintf(size, sizeof size, "%u", nominal_gib);
    if (strncmp(rest, size, digits) != 0) return false;
    return strcmp(rest + digits, "") == 0 || strcmp(rest + digits, "g") == 0;
}

/* Is `query` some of the words of this name, one behind the other? "5" is no word of "Thor T5000". */
static bool contains(const char *query, const char *name, unsigned nominal_gib)
{
    (void)nominal_gib;
    for (const char *word = name; word != NULL; word = strpbrk(word, " -")) {
        word += strspn(word, " -");
        char key[KEY_BYTES];
        size_t length = 0;
        for (const char *c = word; *c != '\0' && length < KEY_BYTES - 1; c++) {
            if (*c != ' ' && *c != '-') key[length++] = lower(*c);
            key[length] = '\0';
            bool is_end = c[1] == '\0' || c[1] == ' ' || c[1] == '-';
            if (is_end && strcmp(key, query) == 0) return true;
        }
    }
    return false;
}

typedef bool (*match_fn)(const char *query, const char *name, unsigned nominal_gib);

static bool row_matches(const onv_gpu *gpu, const char *query, match_fn match)
{
    if (match(query, gpu->model, gpu->nominal_gib)) return true;
    for (const char *name = gpu->name; *name != '\0'; name += strlen(name) + 1)
        if (match(query, name, gpu->nominal_gib)) return true;
    return false;
}

static size_t search(const char *query, match_fn match, const onv_gpu **found, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < onv_n_gpus; i++) {
        if (!row_matches(&onv_gpus[i], query, match)) continue;
        if (count < capacity) found[count] = &onv_gpus[i];
        count++;
    }
    return count;
}

const onv_gpu *onv_gpu_find(const char *name)
{
    char query[KEY_BYTES];
    const onv_gpu *found = NULL;
    if (!make_key(name, query)) return NULL;
    return search(query, spells, &found, 1) == 1 ? found : NULL;
}

size_t onv_gpu_candidates(const char *name, const onv_gpu **found, size_t capacity)
{
    char query[KEY_BYTES];
    if (!make_key(name, query)) return 0;
    size_t count = search(query, spells, found, capacity);
    return count > 0 ? count : search(query, contains, found, capacity);
}
