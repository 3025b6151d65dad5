#include "load/limits.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"

typedef struct limit_row {
    const char *name, *summary;
    uint64_t fallback;
    uint64_t most; /* that can be served */
    size_t offset; /* in onv_limits */
    bool is_wide;  /* uint64_t, else uint32_t */
} limit_row;

#define WIDE(name, field, fallback, most, summary)                                                 \
    {                                                                                              \
        name, summary, fallback, most, offsetof(onv_limits, field), true                           \
    }
#define NARROW(name, field, fallback, most, summary)                                               \
    {                                                                                              \
        name, summary, fallback, most, offsetof(onv_limits, field), false                          \
    }

/* What no option can raise: each level of nesting and each call takes stack, here and in
 * protobuf-c; contents and expressions are walked as a whole. */
#define ANY UINT64_MAX

static const limit_row rows[] = {
    WIDE("nodes", nodes, ONV_DEFAULT_NODES, ONV_MOST_IDS, "nodes once functions are expanded"),
    WIDE("values", values, 16 << 20, ONV_MOST_IDS, "tensors, weights among them"),
    NARROW("nesting", nesting, 200, 1000, "depth of messages in the file, at most 1000"),
    NARROW("function-depth", function_depth, 64, 500,
           "functions that call each other, at most 500"),
    WIDE("attr-elems", attr_elems, 1 << 20, UINT32_MAX, "elements of one attribute"),
    WIDE("name-bytes", name_bytes, ONV_DEFAULT_NAME_BYTES, ANY, "length of a name"),
    WIDE("memory", arena_bytes, ONV_DEFAULT_ARENA_BYTES, SIZE_MAX,
         "bytes that the analysis itself takes, or 8 for each byte of a larger file, up to 2 GiB"),
    WIDE("work", work, 0, ANY,
         "units of work of an analysis, which do not depend on the clock; 0: any, with plans 2^27"),
    WIDE("file-bytes", file_bytes, ONV_DEFAULT_FILE_BYTES, ANY, "bytes of the model's file"),
    WIDE("output", output_bytes, ONV_DEFAULT_OUTPUT_BYTES, ANY,
         "bytes of one report, plus 200 for each byte of the file"),
    NARROW("known-elems", known_elems, ONV_KNOWN_MAX_ELEMS, 1 << 20,
           "elements of a tensor whose contents decide shapes, at most 1048576"),
    NARROW("expression", expression, ONV_DIM_MAX_TREE, 1 << 20,
           "parts of the expression of a size, at most 1048576"),
    WIDE("node-runs", node_runs, 1 << 20, ANY,
         "nodes inferred, those of loops again, plus 64 for each node"),
    WIDE("seconds", seconds, 600, ANY, "time of an analysis"),
};

const char *onv_limit_name(size_t index, const char **summary, uint64_t *fallback)
{
    if (index >= sizeof rows / sizeof rows[0]) return NULL;
    if (summary != NULL) *summary = rows[index].summary;
    if (fallback != NULL) *fallback = rows[index].fallback;
    return rows[index].name;
}

void onv_limits_init(onv_limits *limits, size_t size)
{
    memset(limits, 0, size);
    limits->struct_size = size;
}

uint64_t onv_limits_get(const onv_limits *limits, size_t index)
{
    uint64_t wide;
    uint32_t narrow;
    const char *field = (const char *)limits + rows[index].offset;
    if (rows[index].is_wide) {
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
    memcpy(&narrow, field, sizeof narrow);
    return narrow;
}

static void set(onv_limits *limits, const limit_row *row, uint64_t value)
{
    uint32_t narrow = (uint32_t)value;
    const void *from = row->is_wide ? (const void *)&value : (const void *)&narrow;
    memcpy((char *)limits + row->offset, from, row->is_wide ? sizeof value : sizeof narrow);
}

bool onv_limits_set(onv_limits *limits, const char *name, uint64_t value)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        size_t size = rows[i].is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
        if ((!rows[i].is_wide && value > UINT32_MAX) || rows[i].offset + size > limits->struct_size)
            return false;
        set(limits, &rows[i], value);
        return true;
    }
    return false;
}

onv_limits onv_limits_resolve(const onv_limits *given)
{
    onv_limits limits = {0};
    if (given != NULL) limits = *given;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t value = onv_limits_get(&limits, i);
        if (value == 0 && rows[i].offset != offsetof(onv_limits, output_bytes)) /* by the file */
            value = rows[i].fallback;
        set(&limits, &rows[i], value < rows[i].most ? value : rows[i].most);
    }
    return limits;
}

onv_status onv_limits_spent(uint64_t limit, onv_error *err)
{
    if (err != NULL) *err = (onv_error){0};
    return onv_fail(err, ONV_ERR_LIMIT,
                    "the analysis takes more memory than %" PRIu64
                    " bytes, the limit" ONV_RAISE("memory"),
                    limit);
}

onv_status onv_limits_refused(const onv_arena *arena, onv_error *err)
{
    if (!arena->failed || arena->held_bytes < arena->limit_bytes / 2) return ONV_ERR_MEMORY;
    return onv_limits_spent(arena->limit_bytes, err);
}
