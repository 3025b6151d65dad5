/* config.pbtxt: protobuf as text. Fields are `name: value`, `name { ... }` and lists of both; what does not concern memory is
 * read and left out. Fields by triton-inference-server/common (model_config.proto), parameters and levels by
 * triton-inference-server/onnxruntime_backend (README.md). */
#include "cli/triton.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/read_text.h"

enum { DEEPEST = 16, WORD = 256 };

typedef struct reader {
    const char *at, *end;
    int line;
    onv_triton *to;
    char path[DEEPEST][WORD]; /* fields around the one that is read */
    int depth;
    /* Of an instance group, and of a parameter, until its end. */
    int64_t count;
    bool is_cpu;
    char key[WORD];
    onv_error *error;
} reader;

static bool fail(reader *r, const char *expected)
{
    return onv_cli_fail(r->error, ONV_ERR_FORMAT, "line %d: %s is expected", r->line, expected);
}

/* --- Words ------------------------------------------------------------------------------------- */

static void skip(reader *r)
{
    while (r->at < r->end) {
        char c = *r->at;
        if (c == '#')
            while (r->at < r->end && *r->at != '\n') r->at++;
        else if (c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == ',' || c == ';')
            r->line += *r->at++ == '\n';
        else
            return;
    }
}

static bool take(reader *r, char c)
{
    skip(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

/* A string, a number, or a name. */
static bool take_word(reader *r, char word[WORD])
{
    size_t n = 0;
    skip(r);
    char quote = '\0';
    if (r->at < r->end && (*r->at == '"' || *r->at == '\'')) quote = *r->at++;
    for (; r->at < r->end; r->at++) {
        unsigned char c = (unsigned char)*r->at;
        if (quote != '\0' ? c == (unsigned char)quote : !isalnum(c) && strchr("_.+-", c) == NULL)
            break;
        if (n == WORD - 1 || c == '\n' || c == '\0' || c == '\\')
            return fail(r, "a word of less than 256 characters");
        word[n++] = (char)c;
    }
    word[n] = '\0';
    if (quote == '\0') return n > 0 || fail(r, "a name, a value or '}'");
    if (r->at == r->end) return fail(r, "the end of the string");
    r->at++;
    return true;
}

/* --- Fields ------------------------------------------------------------------------------------ */

static bool read_number(reader *r, const char *word, int64_t *to)
{
    char *end;
    errno = 0;
    long long number = strtoll(word, &end, 10);
    if (*end != '\0' || errno != 0 || number < -1 || number > (1 << 20))
        return fail(r, "a number up to 1,048,576");
    *to = number;
    return true;
}

/* The names of all fields around, with dots between: "instance_group.count". */
static bool is_at(const reader *r, const char *path)
{
    for (int i = 0; i < r->depth; i++) {
        size_t length = strlen(r->path[i]);
        if (strncmp(path, r->path[i], length) != 0) return false;
        path += length;
        if (i + 1 < r->depth && *path++ != '.') return false;
    }
    return *path == '\0';
}

static void add_setting(onv_triton *t, const char *key, const char *value)
{
    if (t->n_ort < ONV_TRITON_ORT)
        snprintf(t->ort[t->n_ort++], sizeof t->ort[0], "%s=%s", key, value);
}

/* Triton's numbers are ONNX Runtime's words. */
static void take_setting(reader *r, const char *value)
{
    static const struct {
        const char *key, *from, *to;
    } rows[] = {
        {"arena_extend_strategy", "0", "kNextPowerOfTwo"},
        {"arena_extend_strategy", "1", "kSameAsRequested"},
        {"cudnn_conv_algo_search", "0", "EXHAUSTIVE"},
        {"cudnn_conv_algo_search", "1", "HEURISTIC"},
        {"cudnn_conv_algo_search", "2", "DEFAULT"},
        {"gpu_mem_limit", NULL, NULL},
        {"enable_mem_pattern", NULL, NULL},
        {"cudnn_conv_use_max_workspace", NULL, NULL},
        {"session.use_device_allocator_for_initializers", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].key, r->key) == 0 &&
            (rows[i].from == NULL || strcmp(rows[i].from, value) == 0)) {
            add_setting(r->to, r->key, rows[i].to != NULL ? rows[i].to : value);
            return;
        }
}

static bool take_level(reader *r, const char *value)
{
    const char *level = strcmp(value, "-1") == 0  ? "basic"
                        : strcmp(value, "1") == 0 ? "extended"
                        : strcmp(value, "2") == 0 ? "off"
                                                  : "all";
    add_setting(r->to, "graph_optimization_level", level);
    return true;
}

static bool take_value(reader *r, const char *value)
{
    onv_triton *t = r->to;
    if (is_at(r, "max_batch_size")) return read_number(r, value, &t->max_batch);
    if (is_at(r, "instance_group.count")) return read_number(r, value, &r->count);
    if (is_at(r, "version_policy.latest.num_versions")) return read_number(r, value, &t->newest);
    if (is_at(r, "optimization.graph.level")) return take_level(r, value);
    if (is_at(r, "version_policy.specific.versions")) {
        t->newest = 0;
        if (t->n_versions == ONV_TRITON_VERSIONS) return fail(r, "no more than 8 versions");
        return read_number(r, value, &t->versions[t->n_versions++]);
    }
    if (is_at(r, "instance_group.kind"))
        r->is_cpu = strcmp(value, "KIND_CPU") == 0;
    else if (is_at(r, "default_model_filename"))
        snprintf(t->file, sizeof t->file, "%s", value);
    else if (is_at(r, "platform") || is_at(r, "backend"))
        t->is_onnx = strncmp(value, "onnxruntime", strlen("onnxruntime")) == 0;
    else if (is_at(r, "optimization.execution_accelerators.gpu_execution_accelerator.name"))
        t->uses_tensorrt |= strcmp(value, "tensorrt") == 0;
    else if (strcmp(r->path[r->depth - 1], "key") == 0)
        snprintf(r->key, sizeof r->key, "%s", value);
    else if (is_at(r, "parameters.value.string_value") ||
             is_at(r, "optimization.execution_accelerators.gpu_execution_accelerator.parameters."
                      "value"))
        take_setting(r, value);
    return true;
}

/* A group without a count has one instance; one that is for both is on the GPU. */
static void begin_message(reader *r)
{
    if (is_at(r, "instance_group")) {
        r->count = 1;
        r->is_cpu = false;
    }
    if (is_at(r, "version_policy.all")) r->to->newest = -1;
}

static bool end_message(reader *r)
{
    if (!is_at(r, "instance_group")) return true;
    if (r->count < 1) return fail(r, "a count of instances of 1 or more");
    *(r->is_cpu ? &r->to->on_cpu : &r->to->instances) += r->count;
    return true;
}

/* --- Messages ---------------------------------------------------------------------------------- */

static bool read_field(reader *r);

static bool read_message(reader *r)
{
    begin_message(r);
    for (;;) {
        if (take(r, '}')) return end_message(r);
        if (r->at == r->end) return fail(r, "'}'");
        if (!read_field(r)) return false;
    }
}

/* `name: value`, `name { ... }`, `name: [ ... ]`; one level of lists. */
static bool read_field(reader *r)
{
    char word[WORD];
    if (r->depth == DEEPEST) return fail(r, "no more than 16 messages in one another, so that '}'");
    if (!take_word(r, r->path[r->depth])) return false;
    r->depth++;
    bool has_value = take(r, ':'), is_list = take(r, '[');
    do {
        if (is_list && take(r, ']')) break;
        if (take(r, '{')) {
            if (!read_message(r)) return false;
        } else if (!has_value) {
            return fail(r, "':' or '{' behind a name");
        } else if (!take_word(r, word) || !take_value(r, word)) {
            return false;
        }
    } while (is_list);
    r->depth--;
    return true;
}

bool onv_triton_parse(const char *text, size_t bytes, onv_triton *t, onv_error *error)
{
    reader r = {.at = text, .end = text + bytes, .line = 1, .to = t, .error = error};
    *t = (onv_triton){.is_onnx = true, .newest = 1, .file = "model.onnx"};
    for (skip(&r); r.at < r.end; skip(&r))
        if (!read_field(&r)) return false;
    if (t->instances + t->on_cpu == 0) t->instances = 1;
    if (t->max_batch < 0) return fail(&r, "a max_batch_size of 0 or more");
    if (strchr(t->file, '/') != NULL || t->file[0] == '.' || t->file[0] == '\0')
        return fail(&r, "a default_model_filename without folders");
    return true;
}
