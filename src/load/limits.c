#include "load/limits.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"

typedef struct limit_row {
    const char *name, *summary;
    uint64_t fallback;
    size_t offset; /* in onv_limits */
    bool is_wide;  /* uint64_t, else uint32_t */
} limit_row;

#define WIDE(name, field, fallback, summary)                                                       \
    {                                                                                              \
        name, summary, fallback, offsetof(onv_limits, field), true                                 \
    }
#define NARROW(name, field, fallback, summary)                                                     \
    {                                                                                              \
        name, summary, fallback, offsetof(onv_limits, field), false                                \
    }

static const limit_row rows[] = {
    WIDE("nodes", nodes, ONV_DEFAULT_NODES, "nodes once functions are expanded"),
    WIDE("values", values, ONV_DEFAULT_VALUES, "tensors, weights among them"),
    NARROW("nesting", nesting, ONV_DEFAULT_NESTING, "depth of messages in the file, at most 1000"),
    NARROW("function-depth", function_depth, ONV_DEFAULT_FUNCTION_DEPTH,
           "functions that call each other, at most 500"),
    WIDE("attr-elems", attr_elems, ONV_DEFAULT_ATTR_ELEMS, "elements of one attribute"),
    WIDE("name-bytes", name_bytes, ONV_DEFAULT_NAME_BYTES, "length of a name"),
    WIDE("memory", arena_bytes, ONV_DEFAULT_ARENA_BYTES,
         "bytes that the analysis itself takes, or 8 for each byte of a larger file, up to 2 GiB"),
    WIDE("work", work, 0, "units of work of an analysis, which do not depend on the clock; 0: any"),
    WIDE("file-bytes", file_bytes, ONV_DEFAULT_FILE_BYTES, "bytes of the model's file"),
    WIDE("output", output_bytes, ONV_DEFAULT_OUTPUT_BYTES,
         "bytes of one report, plus 200 for each byte of the file"),
    NARROW("known-elems", known_elems, ONV_DEFAULT_KNOWN_ELEMS,
           "elements of a tensor whose contents decide shapes, at most 1048576"),
    NARROW("expression", expression, ONV_DEFAULT_EXPRESSION,
           "parts of the expression of a size, at most 1048576"),
    WIDE("node-runs", node_runs, ONV_DEFAULT_NODE_RUNS,
         "nodes inferred, those of loops again, plus 64 for each node"),
    WIDE("seconds", seconds, ONV_DEFAULT_SECONDS, "time of an analysis"),
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

bool onv_limits_set(onv_limits *limits, const char *name, uint64_t value)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        uint32_t narrow = (uint32_t)value;
        size_t size = rows[i].is_wide ? sizeof value : sizeof narrow;
        if ((!rows[i].is_wide && narrow != value) || rows[i].offset + size > limits->struct_size)
            return false;
        memcpy((char *)limits + rows[i].offset,
               rows[i].is_wide ? (const void *)&value : (const void *)&narrow, size);
        return true;
    }
    return false;
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
