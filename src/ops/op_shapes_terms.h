/* How lines of --op-shapes are read: words, and the terms that stand for dims. */
#ifndef ONV_OPS_OP_SHAPES_TERMS_H
#define ONV_OPS_OP_SHAPES_TERMS_H

#include "ops/op_shapes.h"

typedef struct onv_shape_parser {
    onv_arena *arena;
    const char *path;
    uint32_t line;
    const char *start, *at, *end; /* of the line */
    const char *inputs[ONV_CUSTOM_OP_MAX_LIST];
    uint32_t n_inputs;
    const char *names[ONV_CUSTOM_OP_MAX_LIST]; /* of dims */
    uint32_t n_names;
    onv_shape_code *code; /* of one expression */
    uint32_t most_code, n_code;
    uint32_t nesting, depth; /* depth: of the stack */
    onv_error *err;
} onv_shape_parser;

/* An error at the parser's place: file, line, column. Short of memory, words are missing that are in the file. */
onv_status onv_shape_refuse(onv_shape_parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define onv_shape_refuse(...)                                                                      \
    (onv_shape_refuse(__VA_ARGS__) == ONV_ERR_MEMORY ? ONV_ERR_MEMORY : ONV_ERR_FORMAT)

void onv_shape_skip_space(onv_shape_parser *p);
bool onv_shape_is_at(onv_shape_parser *p, char sign);
bool onv_shape_take(onv_shape_parser *p, char sign);
onv_status onv_shape_need(onv_shape_parser *p, char sign);

/* A word of letters, digits and the signs in `more`, in the arena; NULL where there is none. */
const char *onv_shape_word(onv_shape_parser *p, const char *more);
/* Whether the next word is this one, which is then taken. */
bool onv_shape_take_word(onv_shape_parser *p, const char *text);

onv_status onv_shape_number(onv_shape_parser *p, int64_t *value);
onv_status onv_shape_integer(onv_shape_parser *p, int64_t *value);

/* The place of a name in a list, -1 where it is not there. */
int32_t onv_shape_find(const char *const *names, uint32_t count, const char *name);
onv_status onv_shape_input(onv_shape_parser *p, int32_t *index);

/* attr.name, attr.name.2 (after "attr") */
onv_status onv_shape_attribute(onv_shape_parser *p, onv_shape_code *code);

/* One expression into `item`, in the arena. */
onv_status onv_shape_term(onv_shape_parser *p, onv_shape_item *item);

#endif
