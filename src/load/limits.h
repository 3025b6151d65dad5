/* The limits that hostile input meets while it is loaded, with their defaults and their names: a
 * failure of kind ONV_ERR_LIMIT names the limit and how it is raised, unless nothing can. */
#ifndef ONV_LOAD_LIMITS_H
#define ONV_LOAD_LIMITS_H

#include "base/arena.h"
#include "base/status.h"
#include "ir/type.h"
#include "onnxvram/options.h"

enum { ONV_DEFAULT_NODES = 4 << 20, ONV_DEFAULT_NAME_BYTES = 64 << 10 };

#define ONV_DEFAULT_ARENA_BYTES ((uint64_t)480 << 20)
#define ONV_DEFAULT_FILE_BYTES  ((uint64_t)1 << 40)

/* The limit at that place of onv_limit_name(); 0: it is not given. */
uint64_t onv_limits_get(const onv_limits *limits, size_t index);

/* An analysis with plans: 2 seconds. Of 218 networks none takes half of it. */
#define ONV_DEFAULT_PLANS_WORK ((uint64_t)1 << 27)
/* What repeats an analysis, such as a search for the largest batch: some seconds. */
#define ONV_DEFAULT_SEARCH_WORK ((uint64_t)1 << 30)
/* Of that, the search for a largest batch or dim on one budget: 2 seconds (DenseNet-201 with all runtimes and
 * training takes most of it). With plans,
 * which are searched for at several sizes, half of it: ordinary networks take up to 8 seconds. */
#define ONV_DEFAULT_SIZES_WORK      ((uint64_t)100 << 20)
#define ONV_DEFAULT_PLAN_SIZES_WORK (ONV_DEFAULT_SEARCH_WORK / 2)

/* Beside so many bytes of a report, and so many for each byte of the file; beside so many nodes of
 * functions, and one for each byte; memory by the size of the file, up to the most: unless a limit is given. */
#define ONV_DEFAULT_OUTPUT_BYTES ((uint64_t)1 << 20)
enum { ONV_OUTPUT_PER_BYTE = 200, ONV_EXPANDED_NODES = 64 << 10, ONV_ARENA_PER_BYTE = 8 };
#define ONV_MOST_DEFAULT_ARENA_BYTES ((uint64_t)2 << 30)

/* Ids are 32 bits. */
#define ONV_MOST_IDS ((uint64_t)UINT32_MAX - 1)

/* A path (the prefix of names inside subgraphs and functions) beyond this is replaced by a number,
 * so that deep nesting cannot multiply long names. */
enum { ONV_MOST_PATH_BYTES = 512 };

/* The end of a message about a limit: the option of the program, the name in onv_limits_set(). */
#define ONV_RAISE(name) "; --limit " name "=N raises it"

/* The error where an analysis has spent its limit on memory. */
onv_status onv_limits_spent(uint64_t limit, onv_error *err);

/* What became of an allocation that an arena refused: ONV_ERR_LIMIT where the arena has all but
 * reached its limit, which is limits.arena_bytes, else ONV_ERR_MEMORY. */
onv_status onv_limits_refused(const onv_arena *arena, onv_error *err);

/* Bytes of one report. */
static inline uint64_t onv_limits_output(const onv_limits *given, uint64_t file_bytes)
{
    uint64_t most;
    if (given != NULL && given->output_bytes != 0) return given->output_bytes;
    if (__builtin_mul_overflow(file_bytes, (uint64_t)ONV_OUTPUT_PER_BYTE, &most) ||
        __builtin_add_overflow(most, ONV_DEFAULT_OUTPUT_BYTES, &most))
        return UINT64_MAX;
    return most;
}

/* Memory of an analysis: a file of a million nodes needs more than a small one. */
static inline uint64_t onv_limits_memory(const onv_limits *given, uint64_t file_bytes)
{
    if (given != NULL && given->arena_bytes != 0) return given->arena_bytes;
    if (file_bytes <= ONV_DEFAULT_ARENA_BYTES / ONV_ARENA_PER_BYTE) return ONV_DEFAULT_ARENA_BYTES;
    if (file_bytes >= ONV_MOST_DEFAULT_ARENA_BYTES / ONV_ARENA_PER_BYTE)
        return ONV_MOST_DEFAULT_ARENA_BYTES;
    return file_bytes * ONV_ARENA_PER_BYTE;
}

/* Nodes that functions may become. */
static inline uint64_t onv_limits_expanded(const onv_limits *given, uint64_t file_bytes)
{
    if (given != NULL && given->nodes != 0) return given->nodes;
    uint64_t most = (uint64_t)ONV_DEFAULT_NODES;
    return file_bytes < most - ONV_EXPANDED_NODES ? file_bytes + ONV_EXPANDED_NODES : most;
}

/* Elements that are kept of a list in an attribute: as many as contents that decide shapes may have, and what
 * rules read of each dimension. */
static inline uint32_t onv_limits_list(const onv_limits *resolved)
{
    enum { LEAST = 256 };
    return resolved->known_elems > LEAST ? resolved->known_elems : LEAST;
}

/* Zeros become defaults, and values that cannot be served are lowered. NULL: all defaults. */
onv_limits onv_limits_resolve(const onv_limits *given);

#endif
