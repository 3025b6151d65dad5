/* A JSON writer: values go out as they come, so a report of any length holds none of it.
 *
 *     ONV_JSON_ROWS(json, "buffers", i, n, INLINE) onv_json_put_u64(json, "bytes", buffers[i].bytes);
 *
 * What it writes is always valid JSON in plain ASCII. Names of a model need not be UTF-8: a byte that is none is written as the four characters \xNN (the
 * backslash escaped as JSON asks), everything well-formed as it is.
 */
#ifndef ONV_REPORT_JSON_H
#define ONV_REPORT_JSON_H

#include <string.h>

#include "ir/dim.h"
#include "report/writer.h"

enum { ONV_JSON_MAX_DEPTH = 16 };

typedef enum onv_json_layout {
    ONV_JSON_INLINE, /* all on one line */
    ONV_JSON_LINES,  /* one line per member or element */
    ONV_JSON_DENSE,  /* on one line, without spaces: for long lists of numbers */
} onv_json_layout;

typedef struct onv_json {
    onv_writer *out;
    onv_arena *
        scratch; /* for texts of an element, which are missing once it failed; NULL: there are none */
    bool is_embedded; /* in a page: nothing that HTML acts on, and no spaces at all */
    bool after_key;
    unsigned depth;
    struct {
        char close;
        bool lines, dense;
        bool has_items;
    } open[ONV_JSON_MAX_DEPTH];
} onv_json;

void onv_json_init(onv_json *json, onv_writer *out, onv_arena *scratch);

/* '{' or '['. Nested deeper than ONV_JSON_MAX_DEPTH is a mistake of the caller. */
void onv_json_open(onv_json *json, char bracket, onv_json_layout layout);
void onv_json_close(onv_json *json);

/* What is written in the block that follows stands in a list or an object, as a member or as an element. A block is left at
 * its end, or by `continue`. */
#define ONV_JSON_LIST(json, key, layout)                                                           \
    ONV_JSON_BLOCK(json, onv_json_put_open((json), (key), '[', ONV_JSON_##layout), __COUNTER__)
#define ONV_JSON_PART(json, key, layout)                                                           \
    ONV_JSON_BLOCK(json, onv_json_put_open((json), (key), '{', ONV_JSON_##layout), __COUNTER__)
#define ONV_JSON_ROW(json, layout)                                                                 \
    ONV_JSON_BLOCK(json, onv_json_open((json), '{', ONV_JSON_##layout), __COUNTER__)
/* A list with `n` objects, a line each; what follows is written in object `i`. */
#define ONV_JSON_ROWS(json, key, i, n, layout)                                                     \
    ONV_JSON_LIST(json, key, LINES)                                                                \
        for (uint32_t i = 0; i < (n) && !(json)->out->failed; i++)                                 \
            ONV_JSON_ROW(json, layout)
#define ONV_JSON_BLOCK(json, open, id) ONV_JSON_BLOCK_NAMED(json, open, id)
#define ONV_JSON_BLOCK_NAMED(json, open, id)                                                       \
    for (bool is_in_##id = (open, true); is_in_##id; is_in_##id = (onv_json_close(json), false))

/* Whether the open object or array has items already, so that the next one follows a comma: for who writes some of them
 * by other means. */
void onv_json_separate(onv_json *json, bool has_items);

void onv_json_key(onv_json *json, const char *key); /* any text */

void onv_json_null(onv_json *json);
void onv_json_bool(onv_json *json, bool value);
void onv_json_u64(onv_json *json, uint64_t value);
void onv_json_i64(onv_json *json, int64_t value);
void onv_json_value(onv_json *json, const char *text);  /* one that was written as JSON before */
void onv_json_string(onv_json *json, const char *text); /* any text; NULL: null */

/* Members: a key and its value. */
void onv_json_put_u64(onv_json *json, const char *key, uint64_t value);
void onv_json_put_bool(onv_json *json, const char *key, bool value);
void onv_json_put_open(onv_json *json, const char *key, char bracket, onv_json_layout layout);
void onv_json_put_string(onv_json *json, const char *key, const char *text);

/* Members that are called as those of the struct that `of` points to, of up to 8: texts, numbers, bools. An object of
 * nothing else stands on one line. */
#define ONV_JSON_FIELDS(json, of, ...)                                                             \
    (ONV_JSON_NTH(__VA_ARGS__, ONV_JSON_8, ONV_JSON_7, ONV_JSON_6, ONV_JSON_5, ONV_JSON_4,         \
                  ONV_JSON_3, ONV_JSON_2, ONV_JSON_1, 0)((json), (of), __VA_ARGS__))
#define ONV_JSON_OBJECT(json, of, ...)                                                             \
    (onv_json_open((json), '{', ONV_JSON_INLINE), ONV_JSON_FIELDS(json, of, __VA_ARGS__),          \
     onv_json_close(json))
#define ONV_JSON_NTH(a, b, c, d, e, f, g, h, nth, ...) nth
#define ONV_JSON_1(json, of, field)                                                                \
    onv_json_key(json, #field), _Generic((of)->field, bool                                         \
                                         : onv_json_bool, char *                                   \
                                         : onv_json_string, const char *                           \
                                         : onv_json_string, int64_t                                \
                                         : onv_json_i64, default                                   \
                                         : onv_json_u64)(json, (of)->field)
#define ONV_JSON_2(json, of, a, ...) ONV_JSON_1(json, of, a), ONV_JSON_1(json, of, __VA_ARGS__)
#define ONV_JSON_3(json, of, a, ...) ONV_JSON_1(json, of, a), ONV_JSON_2(json, of, __VA_ARGS__)
#define ONV_JSON_4(json, of, a, ...) ONV_JSON_1(json, of, a), ONV_JSON_3(json, of, __VA_ARGS__)
#define ONV_JSON_5(json, of, a, ...) ONV_JSON_1(json, of, a), ONV_JSON_4(json, of, __VA_ARGS__)
#define ONV_JSON_6(json, of, a, ...) ONV_JSON_1(json, of, a), ONV_JSON_5(json, of, __VA_ARGS__)
#define ONV_JSON_7(json, of, a, ...) ONV_JSON_1(json, of, a), ONV_JSON_6(json, of, __VA_ARGS__)
#define ONV_JSON_8(json, of, a, ...) ONV_JSON_1(json, of, a), ONV_JSON_7(json, of, __VA_ARGS__)

/* A list of them on one line. */
void onv_json_put_texts(onv_json *json, const char *key, const char *const *texts, size_t n);
void onv_json_put_numbers(onv_json *json, const char *key, const uint64_t *numbers, size_t n);

/* part / whole as a fraction with six digits; 0 of nothing. */
void onv_json_put_ratio(onv_json *json, const char *key, uint64_t part, uint64_t whole);

/* The number, or null where it is not known. */
void onv_json_put_known(onv_json *json, const char *key, bool is_known, uint64_t value);

/* A number, an expression as a string (through `scratch`), or null if unknown. */
void onv_json_dim(onv_json *json, const onv_dims *pool, onv_dim d);

#endif
