/* The shapes of parameters of which the file has only what was computed from them. */
#include <string.h>

#include "base/checked.h"
#include "lower/lowering.h"

/* 0: it is no square. */
static int64_t square_root(int64_t n)
{
    int64_t root = 0;
    while (root < 4096 && (root + 1) * (root + 1) <= n) root++;
    return root * root == n ? root : 0;
}

/* The table of which [..., heads, queries, keys] was looked up: windows of w by w have (2 w - 1)^2 distances and,
 * with a token for the class, three more; distances of text are put into 32 buckets, as T5's. */
static void make_table_shape(const char *name, const onv_shape *whole, onv_shape *table)
{
    enum { BUCKETS = 32, CLASS_TOKEN = 3 };
    bool is_row = whole->rank == 2; /* of all pairs, before it was divided into queries and keys */
    int64_t keys = is_row ? square_root(whole->dims[0]) : whole->dims[whole->rank - 1];
    int64_t rows = BUCKETS;
    int64_t window = square_root(keys), with_class = square_root(keys - 1);
    if (strstr(name, "table") != NULL && window > 0)
        rows = (2 * window - 1) * (2 * window - 1);
    else if (strstr(name, "table") != NULL && with_class > 0)
        rows = (2 * with_class - 1) * (2 * with_class - 1) + CLASS_TOKEN;
    *table = (onv_shape){2, {rows, whole->dims[is_row ? 1 : whole->rank - 3]}};
}

/* Of one dim it is that of the parameter. */
static void note_expanded(onv_emitter *e, const char *name, const onv_shape *shape,
                          const onv_tensor *tensor)
{
    uint64_t bytes = onv_dtype_bits((onv_dtype)tensor->type.dtype) / 8;
    uint32_t sides = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        sides += shape->dims[i] != 1;
        bytes = onv_u64_times(bytes, (uint64_t)shape->dims[i]);
    }
    if (sides > 1) onv_say(e, ONV_SAID_expanded, name, bytes, NULL);
}

bool onv_weight_shape(onv_lowering *l, onv_weight_use use, const onv_weight_read *read,
                      const onv_shape *whole, onv_shape *shape)
{
    const char *name = read != NULL && read->parameter != NULL ? read->parameter : "";
    *shape = *whole;
    switch (use) {
    case ONV_WEIGHT_EXPANDED: {
        const onv_tensor *tensor =
            read != NULL ? l->emit.model->values.at[read->value].tensor : NULL;
        /* Nothing tells along which dims: the samples are the first one. */
        uint32_t n = strstr(name, "bias") != NULL ? shape->rank - 1 : 1;
        for (uint32_t i = 0; i < n && i < shape->rank; i++) shape->dims[i] = 1;
        if (tensor != NULL) note_expanded(&l->emit, name, shape, tensor);
        return true;
    }
    case ONV_WEIGHT_LOOKED_UP_FOR_ALL:
    case ONV_WEIGHT_LOOKED_UP: /* positions repeat along the batch; all tokens are of one type */
        for (uint32_t i = 0; i + 2 < shape->rank; i++) shape->dims[i] = 1;
        if (shape->rank > 1 && strstr(name, "token_type") != NULL) shape->dims[shape->rank - 2] = 1;
        return true;
    case ONV_WEIGHT_BIASES: make_table_shape(name, whole, shape); return true;
    default: return true;
    }
}

bool onv_weight_is_for_all(const onv_value *value, const onv_weight_read *named)
{
    const char *table = named != NULL && named->parameter != NULL ? named->parameter : "";
    const char *embedding = strstr(table, "embed");
    return onv_is_call_of(value->name, "expand") && value->type.rank > 2 && embedding != NULL &&
           strlen(table) > strlen(named->scope) && strchr(embedding, '.') != NULL &&
           strcmp(strrchr(embedding, '.'), ".weight") == 0;
}
