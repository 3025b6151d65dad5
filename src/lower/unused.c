/* Parameters that the exporter lists and that have no tensor in the file, as nothing reads what they give: a stage
 * that the forward pass never runs. They lie in memory all the same, without gradient.
 *
 * Their sizes are those of parameters of like names, where all of these agree: of the same place in another layer
 * ("blocks.3.back.weight", "blocks.0.back.weight"), else of at least two whose names end like it, in as many parts as
 * possible ("last.layer.0.output.dense.weight", "first.layer.0.output.dense.weight"; "cross_attn.q_proj.weight",
 * "self_attn.q_proj.weight"), else, for norms, of other norms beside it.
 *
 * Takes the names that no emitted operation read. Gives storages with the sizes of others. Keeps the operations. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/rules.h"
#include "lower/lowering.h"

enum {
    MAX_KEY = 512,
    MOST_PARTS = 6, /* of a name, from its end */
    WAY_OF_TWO = MOST_PARTS - 1,
    WAY_OF_NORMS,
    N_WAYS
};

typedef struct known_name {
    const char *key; /* what is alike: the way, and a part of the name */
    uint32_t storage;
} known_name;

typedef struct likes {
    known_name *at;
    size_t count;
} likes;

static int by_key(const void *left, const void *right)
{
    const known_name *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a->storage > b->storage) - (a->storage < b->storage);
}

/* The part of the name that begins with its last `n` ones. */
static const char *last_parts(const char *name, uint32_t n)
{
    const char *at = name + strlen(name);
    while (at > name && (at[-1] != '.' || --n > 0)) at--;
    return at;
}

/* All but numbers between points, which become "#". */
static size_t put_without_numbers(char *key, size_t used, const char *name, size_t length)
{
    for (size_t i = 0; i < length && used < MAX_KEY - 2;) {
        size_t part = 0, digits = 0;
        for (; i + part < length && name[i + part] != '.'; part++)
            digits += isdigit((unsigned char)name[i + part]) != 0;
        if (digits == part && part > 0)
            key[used++] = '#';
        else
            for (size_t k = 0; k < part && used < MAX_KEY - 2; k++) key[used++] = name[i + k];
        i += part;
        if (i < length) key[used++] = name[i++];
    }
    key[used] = '\0';
    return used;
}

/* "to_out.0." has one, "0." has none: "layers.0.weight" is not like "to_out.0.weight" in that both are the first of something. */
static bool has_word(const char *from, const char *to)
{
    while (from < to && (*from == '.' || isdigit((unsigned char)*from))) from++;
    return from < to;
}

/* "attention.output" of "crossattention.output": layers of attention to others are built like those to themselves. */
static const char *without_kind(const char *path)
{
    static const char *const words[] = {"attention.", "attn."};
    size_t part = strcspn(path, ".") + 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if (part > length && strncmp(path + part - length, words[i], length) == 0)
            return path + part - length;
    }
    return path;
}

/* What a parameter of that name has in common with those like it. False: nothing. */
static bool make_key(const char *name, uint32_t way, char key[MAX_KEY])
{
    const char *attribute = last_parts(name, 1), *both = last_parts(name, 2);
    size_t used = 1, length = strlen(name);
    key[0] = (char)('0' + way);
    if (attribute == name || length >= MAX_KEY - 2) return false;
    if (way == 0) return put_without_numbers(key, used, name, length) > 1;
    if (way <= WAY_OF_TWO) {
        const char *end = last_parts(name, MOST_PARTS + 1 - way);
        if (end == name && way != WAY_OF_TWO) return false;
        if (!has_word(end, attribute)) return false;
        end = without_kind(end);
        return put_without_numbers(key, used, end, strlen(end)) > 1;
    }
    size_t module = (size_t)(attribute - both);
    if (memmem(both, module, "norm", 4) == NULL) return false;
    used = put_without_numbers(key, used, name, (size_t)(both - name));
    snprintf(key + used, MAX_KEY - used, "norm.%s", attribute);
    return true;
}

static onv_status list_known(const onv_emitter *e, likes *known)
{
    onv_arena *arena = &e->model->arena;
    size_t n = e->eager->storages.count;
    known->at = ONV_ARENA_ARRAY(arena, known_name, n * N_WAYS);
    if (known->at == NULL) return onv_fail_memory(e->err);
    for (uint32_t i = 0; i < n; i++) {
        const onv_eager_storage *storage = &e->eager->storages.at[i];
        char key[MAX_KEY];
        if (storage->kind != ONV_STORAGE_PARAMETER || storage->label == NULL) continue;
        for (uint32_t way = 0; way < N_WAYS; way++) {
            if (!make_key(storage->label, way, key)) continue;
            const char *copy = onv_arena_copy(arena, key, strlen(key) + 1);
            if (copy == NULL) return onv_fail_memory(e->err);
            known->at[known->count++] = (known_name){copy, i};
        }
    }
    if (known->count > 0) qsort(known->at, known->count, sizeof *known->at, by_key);
    return ONV_OK;
}

static size_t first_like(const likes *known, const char *key)
{
    size_t low = 0, high = known->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(known->at[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sizes alone count: a weight may stand in the file the other way round. */
static const onv_eager_storage *find_like(const onv_emitter *e, const likes *known,
                                          const char *name)
{
    enum { MAX_LIKE = 1000 };
    char key[MAX_KEY];
    for (uint32_t way = 0; way < N_WAYS; way++) {
        if (!make_key(name, way, key)) continue;
        const onv_eager_storage *found = NULL;
        bool agree = true;
        uint32_t n = 0;
        for (size_t i = first_like(known, key); i < known->count && agree && n < MAX_LIKE; i++) {
            if (strcmp(known->at[i].key, key) != 0) break;
            const onv_eager_storage *other = &e->eager->storages.at[known->at[i].storage];
            agree = found == NULL || found->bytes == other->bytes;
            found = other;
            n++;
        }
        if (!agree || (way == WAY_OF_TWO && n == 1)) return NULL;
        bool is_close = way == 0 || way == WAY_OF_NORMS; /* one is enough */
        if (n > (is_close ? 0 : 1)) return found;
    }
    return NULL;
}

static bool hold(onv_emitter *e, const char *name, const onv_eager_storage *like)
{
    onv_eager_storage copy = *like;
    uint32_t storage = onv_storage_new(e, copy.bytes, ONV_STORAGE_PARAMETER, name);
    if (storage == UINT32_MAX) return false;
    onv_eager_storage *held = &e->eager->storages.at[storage];
    held->elems = copy.elems;
    held->dims = copy.dims;
    held->rank = copy.rank;
    return true;
}

static void hold_like_names(onv_lowering *l)
{
    likes known = {0};
    l->emit.status = list_known(&l->emit, &known);
    for (size_t i = 0; i < l->signature.count && l->emit.status == ONV_OK; i++) {
        if (l->signature.explained[i]) continue;
        const char *name = l->signature.names[i];
        const onv_eager_storage *like = find_like(&l->emit, &known, name);
        if (like == NULL || !hold(&l->emit, name, like)) continue;
        const onv_eager_storage held =
            l->emit.eager->storages.at[l->emit.eager->storages.count - 1];
        l->signature.explained[i] = true;
        onv_say(l->said, ONV_SAID_unused, name, held.bytes, NULL);
    }
}

/* Batch norms that wrote their running statistics, and whose weight nothing in the file reads: the exporter removed what
 * has no reader, of stages that ran all the same. */
static void say_unread(onv_lowering *l)
{
    static const char statistic[] = ".running_mean";
    for (size_t i = 0; i < l->emit.model->listed.n_updated && l->signature.count > 0; i++) {
        char weight[MAX_KEY];
        const char *name = l->emit.model->listed.updated[i];
        size_t length = strlen(name), n = sizeof statistic - 1;
        if (length <= n || length >= sizeof weight || strcmp(name + length - n, statistic) != 0)
            continue;
        snprintf(weight, sizeof weight, "%.*s.weight", (int)(length - n), name);
        size_t at = onv_listed_find(l, weight);
        if (at != SIZE_MAX && !l->signature.explained[at])
            onv_say(l->said, ONV_SAID_unread_norms, name, 0, NULL);
    }
}

void onv_unused_parameters(onv_lowering *l)
{
    if (!onv_rule_is_on("lower.unused")) return;
    if (l->signature.count == 0 || l->emit.status != ONV_OK) return;
    bool all = true;
    for (size_t i = 0; i < l->signature.count && all; i++) all = l->signature.explained[i];
    if (all) return;
    say_unread(l);
    hold_like_names(l);
}
