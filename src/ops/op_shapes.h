/* User-defined shape rules: the file of --op-shapes (see docs/op-shapes.md).
 *
 *     com.acme::Fancy(x, w): [x.0, x.1 * 2, (x.2 + 3) / 2] f16, like w
 *
 * A line becomes a row of an operator table of its own, whose rule interprets what the line says.
 * Expressions are kept in postfix form: what takes operands finds them on a stack.
 *
 * Everything lives in the model's arena; a table without file is all zero.
 */
#ifndef ONV_OPS_OP_SHAPES_H
#define ONV_OPS_OP_SHAPES_H

#include "ops/op.h"

enum {
    ONV_CUSTOM_OP_MAX_BYTES = 1 << 20, /* of a file */
    ONV_CUSTOM_OP_MAX_ROWS = 4096,
    ONV_CUSTOM_OP_MAX_LINE = 4096,  /* bytes of a line */
    ONV_CUSTOM_OP_MAX_LIST = 64,    /* inputs, outputs */
    ONV_SHAPE_MAX_FORMS = 4,        /* of an input */
    ONV_CUSTOM_OP_MAX_NESTING = 32, /* of an expression */
    ONV_CUSTOM_OP_MAX_STACK = 3 * ONV_CUSTOM_OP_MAX_NESTING,
    ONV_CUSTOM_OP_MAX_CODE = ONV_CUSTOM_OP_MAX_LINE,
};

typedef enum onv_shape_op {
    ONV_SHAPE_NUMBER, /* a */
    ONV_SHAPE_DIM,    /* of input a, axis b */
    ONV_SHAPE_RANK,   /* of input a */
    ONV_SHAPE_ELEMS,  /* of input a */
    ONV_SHAPE_VALUE,  /* of input a, element b */
    ONV_SHAPE_ATTR,   /* name, element b of a list (-1: no list) */
    ONV_SHAPE_NAMED,  /* dim a of those that have names */
    ONV_SHAPE_GIVEN,  /* 1 where input a is present */
    ONV_SHAPE_WORD,   /* which of `words` attribute `name` is; absent: the first */
    ONV_SHAPE_NEG,    /* from here on one operand */
    ONV_SHAPE_KNOWN,  /* 1 where it is known */
    ONV_SHAPE_UP_TO, /* a size that the data decides, at most the operand; `name` or the operator's */
    ONV_SHAPE_ELSE, /* on to code a where the operand is 0 */
    ONV_SHAPE_END,  /* on to code a where the operand before this one is a number but 0 */
    ONV_SHAPE_ADD,  /* from here on two operands */
    ONV_SHAPE_SUB,
    ONV_SHAPE_MUL,
    ONV_SHAPE_DIV,
    ONV_SHAPE_CEIL,  /* quotient rounded up */
    ONV_SHAPE_EXACT, /* quotient without a rest */
    ONV_SHAPE_MOD,
    ONV_SHAPE_MIN,
    ONV_SHAPE_MAX,
    ONV_SHAPE_OR, /* the first one where input a, or for -1 attribute `name`, is present */
    ONV_SHAPE_IF, /* of three: the second where the first is not 0, else the third */
} onv_shape_op;

typedef struct onv_shape_code {
    uint8_t op;    /* onv_shape_op */
    bool may_lack; /* its input or attribute, without an error */
    int64_t a, b;
    const char *name;
    const char *const *words; /* NULL behind the last */
} onv_shape_code;

/* One dim, or those of input `input` from axis `first` to before `end`. */
typedef struct onv_shape_item {
    const onv_shape_code *code; /* NULL: a slice */
    uint32_t n_code;
    bool optional; /* no dim where it is 0 */
    int32_t input;
    int64_t first, end; /* negative: from the back; end INT64_MAX: through the last */
} onv_shape_item;

/* What a dim of an input is: a number, an attribute, or a name that stands for equal sizes; perhaps so many times that. */
typedef struct onv_shape_axis {
    bool is_product;
    onv_shape_code times, is; /* NUMBER, ATTR or NAMED (a -1: any size) */
} onv_shape_axis;

/* The dims of an input. */
typedef struct onv_shape_form {
    int32_t rest; /* the axis before which any number of others may stand; -1: none do */
    const onv_shape_axis *axis;
    uint32_t n_axes;
} onv_shape_form;

/* Its rank says which of several forms an input has. */
typedef struct onv_shape_in {
    const onv_shape_form *form; /* NULL: it may have any shape */
    uint32_t n_forms;
} onv_shape_in;

/* A name of a dim, and what it is or must agree with. */
typedef struct onv_shape_where {
    int64_t name;
    onv_shape_item is;
    const char *text; /* of what it is, for messages */
} onv_shape_where;

typedef struct onv_shape_list {
    const onv_shape_item *item;
    uint32_t n_items;
} onv_shape_list;

typedef struct onv_shape_out {
    bool known;                 /* false: the line says nothing of this output */
    int32_t like;               /* the input whose shape it has, where it is not listed */
    const onv_shape_list *list; /* NULL: not listed; one for each form of input 0 */
    uint32_t n_lists;
    const char *dtype_attr; /* NULL, or the attribute that says another one than `dtype` */
    uint8_t dtype;          /* ONV_UNDEFINED: that of input dtype_like */
    int32_t dtype_like;     /* -1: there is no input to take one from */
    int32_t dtype_else;     /* the input that counts where that one is absent */
} onv_shape_out;

typedef struct onv_custom_op {
    onv_op row; /* first, so that the rule finds the rest */
    const char *domain;
    bool overrides;   /* the built-in row of that name */
    const char *file; /* NULL: a row of onnxvram's own */
    uint32_t line;
    const char *const *inputs; /* their names */
    const onv_shape_in *ins;
    uint32_t n_inputs;
    const char *const *names; /* of dims */
    uint32_t n_names;
    const onv_shape_where *wheres;
    uint32_t n_wheres;
    onv_shape_item macs;
    const onv_shape_out *outs;
    uint32_t n_outs;
    const struct onv_custom_op *next; /* in the file */
} onv_custom_op;

typedef struct onv_op_shapes {
    const onv_custom_op *first;
    uint32_t count;
} onv_op_shapes;

/* Reads a file. Errors: ONV_ERR_IO, or ONV_ERR_FORMAT with "file:line:column: ...". */
onv_status onv_op_shapes_load(onv_op_shapes *table, onv_arena *arena, const char *path,
                              onv_error *err);

/* The same from text; `path` is for messages. */
onv_status onv_op_shapes_parse(onv_op_shapes *table, onv_arena *arena, const char *path,
                               const char *text, size_t bytes, onv_error *err);

/* The row for an operator, of those that override built-in ones or of the others; NULL if none. */
const onv_op *onv_op_shapes_find(const onv_op_shapes *table, const char *domain, const char *name,
                                 int32_t version, bool overrides);

/* A row of onnxvram's own that says its shapes as such a line does, from the inputs on (`says`): as one that
 * onv_op_shapes_infer can follow, in the arena. */
onv_status onv_op_shapes_compile(const onv_op *row, onv_arena *arena, const onv_op **compiled,
                                 onv_error *err);

/* Multiply-accumulates of the rows that say them; onv_op_shapes_infer (op.h) is the rule of all these rows. */
onv_dim onv_op_shapes_macs(onv_op_ctx *c);

/* How lines of --op-shapes are read: words, and the terms that stand for dims. */

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
