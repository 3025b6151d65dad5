#include "ort/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/nearest.h"

const onv_ort_settings onv_ort_settings_default = {
    .graph_optimization_level = ONV_REWRITE_ALL,
    .arena_extend_strategy = ONV_BFC_NEXT_POWER_OF_TWO,
    .cudnn_conv_algo_search = ONV_ORT_CONV_EXHAUSTIVE,
    .cudnn_conv_use_max_workspace = 1,
    .use_tf32 = 1,
    .enable_mem_pattern = 1,
    .enable_mem_reuse = 1,
};

/* One way to write a value. Of a value's spellings the first is the one that is shown. */
typedef struct spelling {
    const char *text;
    uint32_t value;
} spelling;

typedef struct setting {
    const char *key;
    size_t offset; /* in onv_ort_settings */
    const char *values;
    const spelling *spellings; /* behind the last one: no text; NULL: a number of bytes */
} setting;

#define FIELD(name) .key = #name, .offset = offsetof(onv_ort_settings, name)
/* What ONNX Runtime does otherwise is not modelled: the default alone is taken. */
#define DEFAULT_ALONE .values = "0 (what another value changes is not modelled)", .spellings = off
#define SWITCH        .values = "0 or 1", .spellings = off_or_on

static const spelling off[] = {{"0", 0}, {"false", 0}, {"False", 0}, {NULL, 0}};
static const spelling off_or_on[] = {{"0", 0},     {"1", 1},    {"false", 0}, {"true", 1},
                                     {"False", 0}, {"True", 1}, {NULL, 0}};

static const setting settings[] = {
    {FIELD(graph_optimization_level),
     .values = "ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_LAYOUT, "
               "ORT_ENABLE_ALL (or off, basic, extended, layout, all; 0, 1, 2, 3, 99)",
     .spellings = (const spelling[]){{"all", ONV_REWRITE_ALL},
                                     {"off", ONV_REWRITE_DISABLED},
                                     {"basic", ONV_REWRITE_BASIC},
                                     {"extended", ONV_REWRITE_EXTENDED},
                                     {"layout", ONV_REWRITE_LAYOUT},
                                     {"ORT_ENABLE_ALL", ONV_REWRITE_ALL},
                                     {"ORT_DISABLE_ALL", ONV_REWRITE_DISABLED},
                                     {"ORT_ENABLE_BASIC", ONV_REWRITE_BASIC},
                                     {"ORT_ENABLE_EXTENDED", ONV_REWRITE_EXTENDED},
                                     {"ORT_ENABLE_LAYOUT", ONV_REWRITE_LAYOUT},
                                     {"99", ONV_REWRITE_ALL},
                                     {"0", ONV_REWRITE_DISABLED},
                                     {"1", ONV_REWRITE_BASIC},
                                     {"2", ONV_REWRITE_EXTENDED},
                                     {"3", ONV_REWRITE_LAYOUT},
                                     {NULL, 0}}},
    {FIELD(arena_extend_strategy), .values = "kNextPowerOfTwo or kSameAsRequested",
     .spellings = (const spelling[]){{"kNextPowerOfTwo", ONV_BFC_NEXT_POWER_OF_TWO},
                                     {"kSameAsRequested", ONV_BFC_SAME_AS_REQUESTED},
                                     {NULL, 0}}},
    {FIELD(gpu_mem_limit), .values = "a number of bytes"},
    {FIELD(cudnn_conv_algo_search), .values = "EXHAUSTIVE, HEURISTIC or DEFAULT",
     .spellings = (const spelling[]){{"EXHAUSTIVE", ONV_ORT_CONV_EXHAUSTIVE},
                                     {"HEURISTIC", ONV_ORT_CONV_HEURISTIC},
                                     {"DEFAULT", ONV_ORT_CONV_DEFAULT},
                                     {NULL, 0}}},
    {FIELD(cudnn_conv_use_max_workspace), SWITCH},
    {FIELD(cudnn_conv1d_pad_to_nc1d), DEFAULT_ALONE},
    {FIELD(fuse_conv_bias), DEFAULT_ALONE},
    {FIELD(prefer_nhwc), DEFAULT_ALONE},
    {FIELD(use_tf32), SWITCH},
    {FIELD(enable_mem_pattern), SWITCH},
    {FIELD(enable_mem_reuse), SWITCH},
    {FIELD(io_binding), SWITCH},
    {.key = "session.use_device_allocator_for_initializers",
     .offset = offsetof(onv_ort_settings, use_device_allocator_for_initializers),
     SWITCH},
    {.key = "session.disable_prepacking",
     .offset = offsetof(onv_ort_settings, disable_prepacking),
     DEFAULT_ALONE},
    {.key = "session.use_deterministic_compute",
     .offset = offsetof(onv_ort_settings, use_deterministic_compute),
     DEFAULT_ALONE},
    {.key = "optimization.enable_gelu_approximation",
     .offset = offsetof(onv_ort_settings, enable_gelu_approximation),
     DEFAULT_ALONE},
};

/* What a session takes, too: without effect on memory, measured with three networks of convolutions, recurrent layers and
 * attention, or with one that is not modelled: then the default alone is taken. */
static const struct {
    const char *key, *value, *reason;
} others[] = {
    {"execution_mode", "ORT_SEQUENTIAL", "nodes run as threads are free, without a memory pattern"},
    {"session.use_env_allocators", NULL,
     NULL}, /* unless the environment has an arena: --together */
    {"enable_cuda_graph", "0", "what a captured graph keeps is not in the file"},
    {"initial_chunk_size_bytes", "-1", "it belongs to an arena that the application registers"},
    {"max_dead_bytes_per_chunk", "-1", "it belongs to an arena that the application registers"},
    {"sdpa_kernel", "0", "which kernels of attention run decides their workspace"},
    {"memory.enable_memory_arena_shrinkage", "",
     "it is a setting of each run; --shape-trace has it"},
};

enum { N_SETTINGS = sizeof settings / sizeof settings[0] };

static onv_status set_bytes(void *field, const char *key, const char *value, onv_error *err)
{
    char *end;
    errno = 0;
    unsigned long long bytes = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end != '\0' || errno != 0 || bytes == 0)
        return onv_fail(err, ONV_ERR_USAGE, "--ort: %s takes a number of bytes, not '%s'", key,
                        value);
    uint64_t stored = bytes;
    memcpy(field, &stored, sizeof stored);
    return ONV_OK;
}

static const char *spelling_at(const void *row, size_t index)
{
    return ((const setting *)row)->spellings[index].text;
}

static onv_status set_field(onv_ort_settings *to, const setting *row, const char *value,
                            onv_error *err)
{
    char *field = (char *)to + row->offset;
    if (row->spellings == NULL) return set_bytes(field, row->key, value, err);
    for (const spelling *s = row->spellings; s->text != NULL; s++) {
        if (strcmp(s->text, value) != 0) continue;
        memcpy(field, &s->value, sizeof s->value);
        return ONV_OK;
    }
    const char *near = onv_nearest(value, strlen(value), spelling_at, row);
    return onv_fail(err, ONV_ERR_USAGE, "--ort: %s takes %s, not '%s'%s%s%s", row->key, row->values,
                    value, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                    near != NULL ? "'?" : "");
}

/* Session configuration entries are found without "session." too. */
static bool is_key(const setting *row, const char *key, size_t length)
{
    const char *dot = strrchr(row->key, '.');
    return (strlen(row->key) == length && strncmp(row->key, key, length) == 0) ||
           (dot != NULL && strlen(dot + 1) == length && strncmp(dot + 1, key, length) == 0);
}

static const char *key_at(const void *unused, size_t index)
{
    (void)unused;
    return index < N_SETTINGS ? settings[index].key : NULL;
}

onv_status onv_ort_settings_set(onv_ort_settings *to, const char *assignment, onv_error *err)
{
    const char *equals = strchr(assignment, '=');
    if (equals == NULL)
        return onv_fail(err, ONV_ERR_USAGE,
                        "--ort takes KEY=VALUE, as in enable_mem_pattern=0, not '%s'", assignment);
    size_t length = (size_t)(equals - assignment);
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (is_key(&settings[i], assignment, length))
            return set_field(to, &settings[i], equals + 1, err);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const setting named = {.key = others[i].key};
        if (!is_key(&named, assignment, length)) continue;
        if (others[i].value == NULL || strcmp(others[i].value, equals + 1) == 0) return ONV_OK;
        return onv_fail(err, ONV_ERR_USAGE, "--ort: %s is not modelled: %s", others[i].key,
                        others[i].reason);
    }
    return onv_fail_choice(err, "--ort", assignment, length, key_at, NULL);
}

void onv_ort_settings_arena(const onv_ort_settings *of, onv_bfc_options *arena)
{
    arena->extend = (onv_bfc_extend)of->arena_extend_strategy;
    arena->limit_bytes = of->gpu_mem_limit;
}

const char *onv_ort_setting_name(size_t index, const char **values)
{
    if (index >= N_SETTINGS) return NULL;
    if (values != NULL) *values = settings[index].values;
    return settings[index].key;
}

const char *onv_ort_setting_value(const onv_ort_settings *of, size_t index, char *text, size_t size)
{
    const setting *row = &settings[index];
    const char *field = (const char *)of + row->offset;
    uint32_t value = 0;
    uint64_t bytes;
    if (row->spellings == NULL) {
        memcpy(&bytes, field, sizeof bytes);
        snprintf(text, size, "%llu", (unsigned long long)(bytes > 0 ? bytes : UINT64_MAX));
        return text;
    }
    memcpy(&value, field, sizeof value);
    for (const spelling *s = row->spellings; s->text != NULL; s++)
        if (s->value == value) return s->text;
    return "";
}
