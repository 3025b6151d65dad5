/* Parts that a loop takes of one result: `softmax(a)[i]`, `weight[i][k]`. The exporter made a constant of each, and their notes
 * differ in the names of indices and of the calls that select. How many parts there are tells what was indexed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "lower/lowering.h"
#include "lower/weight_place.h"

/* Longer notes are of more than a part. */
enum { MOST_KEY = 2048 };

typedef struct text {
    char at[MOST_KEY];
    size_t length;
    bool is_whole;
} text;

static void append(text *t, const char *name, size_t length)
{
    if (length + 2 > sizeof t->at - t->length) t->is_whole = false;
    if (!t->is_whole) return;
    memcpy(t->at + t->length, name, length);
    t->length += length;
    t->at[t->length++] = '\n';
}

/* Of names in the note: what was indexed, how often in a row; and by what. False: more was computed of it. */
static bool read_note(const onv_value *value, text *of, text *indices)
{
    const char *at = value->folded_from, *name;
    char copy[MOST_KEY];
    *of = *indices = (text){.is_whole = true};
    for (size_t length; (name = onv_folded_next(&at, &length)) != NULL && of->is_whole;) {
        if (length >= sizeof copy) return false;
        memcpy(copy, name, length);
        copy[length] = '\0';
        if (onv_has_made_up_name(copy))
            append(indices, name, length);
        else if (onv_is_call_of(copy, "select"))
            append(of, "[]", 2);
        else
            append(of, name, length);
    }
    for (int32_t i = 0; i < value->type.rank; i++) {
        char dim[24];
        int n = snprintf(dim, sizeof dim, "%" PRId64, (int64_t)value->type.dims[i].raw);
        append(of, dim, (size_t)n);
    }
    return of->is_whole && indices->is_whole;
}

/* Equal parts are one, unless all their elements are: those of what a network fills with a number. */
static bool is_new(onv_lowering *l, uint32_t value, const text *of, const text *indices,
                   onv_ptr_map *seen)
{
    const onv_tensor *tensor = l->emit.model->values.at[value].tensor;
    uint64_t contents = onv_weight_contents(l, (onv_value_id){value});
    bool by_contents = contents != 0 && !onv_weight_may_be_uniform(l, tensor, ONV_MOST_HEAD);
    char hash[24];
    text key = *of;
    int n = snprintf(hash, sizeof hash, "%" PRIu64, contents);
    if (by_contents)
        append(&key, hash, (size_t)n);
    else
        append(&key, indices->at, indices->length);
    const char *name = onv_intern_n(&l->emit.model->strings, key.at, key.length);
    if (name == NULL) l->emit.status = onv_fail_memory(l->emit.err);
    if (name == NULL || !key.is_whole || onv_ptr_map_get(seen, name, NULL)) return false;
    if (!onv_ptr_map_set(seen, name, 1)) l->emit.status = onv_fail_memory(l->emit.err);
    return true;
}

static void count_part(onv_lowering *l, uint32_t value, onv_ptr_map *seen)
{
    text of, indices;
    uint32_t n = 0;
    if (!read_note(&l->emit.model->values.at[value], &of, &indices)) return;
    const char *key = onv_intern_n(&l->emit.model->strings, of.at, of.length);
    if (key == NULL) l->emit.status = onv_fail_memory(l->emit.err);
    if (key == NULL) return;
    l->values[value].part_of = key;
    onv_ptr_map_get(&l->folded.parts, key, &n);
    n += is_new(l, value, &of, &indices, seen);
    if (!onv_ptr_map_set(&l->folded.parts, key, n)) l->emit.status = onv_fail_memory(l->emit.err);
}

void onv_folded_count_parts(onv_lowering *l)
{
    enum { PER_WORK = 16, BYTES_PER_WORK = 256 };
    onv_ptr_map seen = {0};
    for (uint32_t i = 0; i < l->emit.model->values.count && l->emit.status == ONV_OK; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        if (value->folded_from == NULL || value->tensor == NULL ||
            value->role != ONV_ROLE_NOT_NOTED || l->values[i].first_read == 0 ||
            !onv_is_call_of(value->name, "select") ||
            !onv_dtype_is_float((onv_dtype)value->tensor->type.dtype))
            continue;
        if (onv_work(1 + strlen(value->folded_from) / PER_WORK + ONV_MOST_HEAD / BYTES_PER_WORK))
            count_part(l, i, &seen);
        else
            l->emit.status = ONV_ERR_CANCELLED;
    }
    onv_ptr_map_cleanup(&seen);
}

uint32_t onv_folded_parts(const onv_lowering *l, uint32_t value)
{
    uint32_t n = 0;
    if (l->values[value].part_of != NULL)
        onv_ptr_map_get(&l->folded.parts, l->values[value].part_of, &n);
    return n;
}
