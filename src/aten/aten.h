/* The table of ATen operators: what PyTorch's operators keep for backward and make on the way, which are views, which
 * are cast by autocast, what torch.compile makes of them.
 *
 * Rows are facts of PyTorch's source: gradients and what they read are those of
 * tools/autograd/derivatives.yaml, views and writes those of aten/src/ATen/native/native_functions.yaml,
 * casts those of aten/src/ATen/autocast_mode.h. An operator is one row in the file of its family (*.def); a row has a number,
 * ONV_ATEN_silu, by which operators are compared. Rows are data: they know neither a program nor a tape.
 *
 * Tensor arguments are letters in the order of the schema, a, b, c ...; results are o, p, q ... A
 * gradient formula is "ab:ao": it gives the gradients of a and b, and reads a and the first result. A formula
 * without letters behind the colon reads the incoming gradient alone; "=" hands it on as it is, "[" a
 * part of it, or a view. Formulas stand in the order in which autograd evaluates them, that of the arguments'
 * names. What is not the first of a colon has no gradient.
 */
#ifndef ONV_ATEN_ATEN_H
#define ONV_ATEN_ATEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum onv_aten_form {
    ONV_ATEN_KERNEL = 0, /* gives new tensors, or overwrites its first argument */
    ONV_ATEN_POINTWISE,  /* the same, in the dtype that its operands are promoted to */
    ONV_ATEN_VIEW,       /* gives views of its first argument */
    ONV_ATEN_MAKES,      /* gives a new tensor that no other one is read for */
    ONV_ATEN_NOTHING,    /* gives no tensor that counts, and changes none */
    ONV_ATEN_SHARED,     /* no operator of PyTorch's: what several of them are on the tape */
} onv_aten_form;

/* What autocast does with an operator's float arguments. */
typedef enum onv_aten_cast {
    ONV_CAST_AS_IS = 0,
    ONV_CAST_LOW,     /* lower_precision_fp: to its dtype */
    ONV_CAST_FLOAT32, /* fp32 */
    ONV_CAST_RESULT,  /* fp32_set_opt_dtype: as they are, but the result is float32 */
    ONV_CAST_WIDEST,  /* promote: to the widest among them */
} onv_aten_cast;

/* What backward wants of the result's gradient, and in which order of memory it gives that of an input. */
typedef enum onv_aten_order {
    ONV_ORDER_UNKNOWN = 0, /* of functions of each element: SAME */
    ONV_ORDER_ROWS,        /* a dense one, in the order of its dims; the same */
    ONV_ORDER_DENSE,       /* any; a dense one */
    ONV_ORDER_IMAGES,      /* both in the order of the input: dense, or with channels last */
    ONV_ORDER_SAME,        /* any; dense, in the order of the result's */
    ONV_ORDER_FACTORS,     /* of matrices */
    ONV_ORDER_ATTENTION,   /* rows of all heads follow each other */
} onv_aten_order;

/* Operators that a row does not describe. */
typedef enum onv_aten_rule {
    ONV_RULE_NONE = 0,
#define ATEN_RULE(name, function) ONV_RULE_##name,
#include "aten/rules.def"
    ONV_N_RULES
} onv_aten_rule;

enum { ONV_PART_LIKE_INPUT = UINT8_MAX };

enum { ONV_ATEN_MOST_TENSORS = 8 }; /* letters of arguments, and of results */

/* What TEMPS are written in (emit/derivative.c): a letter for each tensor; how many at once, and how deep brackets are. */
#define ONV_ATEN_TENSORS "xXIwnNcCRyYfmis"
enum { ONV_ATEN_MOST_TEMPS = 16, ONV_ATEN_MOST_NESTED = 4 };

/* Numbers of rows. ONV_ATEN_NONE: an operation without a row. */
typedef enum onv_aten_id {
    ONV_ATEN_NONE = 0,
#define OP(id, ...)                 ONV_ATEN_##id,
#define OVERLOAD(id, overload, ...) ONV_ATEN_##id##__##overload,
#define SHARED(id, ...)             ONV_ATEN_##id,
/* The next number is that of the last row plus 1, as without these. */
#define FAMILY(name) ONV_ATEN_END_##name, ONV_ATEN_LAST_##name = ONV_ATEN_END_##name - 1,
#include "aten/families.def"
    ONV_ATEN_N_IDS
} onv_aten_id;

/* Tensors that calls make on their way, in the letters of emit/derivative.c; NULL: none. */
typedef struct onv_aten_temps {
    const char *backward;
    const char *of_second; /* backward, for the second argument, where that differs */
    const char *forward;
    const char *
        hidden; /* one letter: a result of the kernel that the call does not give, and autograd keeps */
} onv_aten_temps;

typedef struct onv_aten_op {
    const char *name; /* without "aten." and "_"; with an overload where overloads differ */
    /* Names of tensor arguments, those of lists too, separated by spaces; behind their end the formulas of gradients. */
    const char *in;
    const onv_aten_temps *temps; /* NULL: it makes none */
    /* torch.compile's operations (recipes.h): forward, behind its end backward. NULL: see `is_fused`. */
    const char *recipe;
    uint16_t as; /* onv_aten_id: the row of what it is on the tape; ONV_ATEN_NONE: its own */
    uint16_t
        counted_as; /* onv_aten_id: with which operations it counts as equal work; NONE: it does not count */
    uint8_t form : 4; /* onv_aten_form */
    uint8_t cast : 4; /* onv_aten_cast */
    uint8_t rule;     /* onv_aten_rule */
    uint8_t
        part; /* of a reduction: the bytes of what a block of threads leaves of it; ONV_PART_LIKE_INPUT; 0: it is none */
    bool
        is_fused : 1; /* torch.compile fuses it, though it is not POINTWISE, and makes nothing on its way */
    bool
        multiplies : 1; /* matrices: as many multiply-accumulates as the result has elements, times the inner dim */
    bool runs_in_place : 1; /* networks often call it so */
    bool is_apart : 1;      /* exporters write it as several nodes, or as one that says less */
    uint8_t order : 4;      /* onv_aten_order */
} onv_aten_op;

/* By number; that of ONV_ATEN_NONE has an empty name. */
extern const onv_aten_op onv_aten_ops[ONV_ATEN_N_IDS];

/* The row of "aten.mul_.Tensor", and whether it overwrites its first argument; NULL: there is none. */
const onv_aten_op *onv_aten_find(const char *op_name, bool *in_place);

/* The row with that name, of a form in place too ("add_"); ONV_ATEN_NONE: there is none. */
onv_aten_id onv_aten_named(const char *name);

static inline onv_aten_id onv_aten_id_of(const onv_aten_op *op)
{
    return (onv_aten_id)(op - onv_aten_ops);
}

/* Whether it is known what torch.compile makes of it: a recipe, or one operation that is fused. */
static inline bool onv_aten_is_compiled(const onv_aten_op *op)
{
    return op->recipe != NULL || op->is_fused || op->form == ONV_ATEN_POINTWISE;
}

/* The text behind the end of one that has two. */
static inline const char *onv_aten_next_text(const char *text)
{
    return text + strlen(text) + 1;
}

/* The formulas of its gradients; "": none. */
static inline const char *onv_aten_grads(const onv_aten_op *op)
{
    return onv_aten_next_text(op->in);
}

/* What the operator is on the tape. */
static inline onv_aten_id onv_aten_as(const onv_aten_op *op)
{
    return op->as != ONV_ATEN_NONE ? (onv_aten_id)op->as : onv_aten_id_of(op);
}

/* A formula of the row: which arguments have their gradients of it, as bits, and what it reads. */
typedef struct onv_aten_grad {
    uint32_t of;
    uint32_t reads_in, reads_out;
    bool hands_on, hands_part;
} onv_aten_grad;

/* The next formula of `text`, which moves on; false: there is none. */
bool onv_aten_next_grad(const char **text, onv_aten_grad *grad);

/* What autograd keeps of arguments and results, as bits, where `wants` have gradients: an argument that one formula of one
 * argument reads is kept if that one wants its gradient, others in any case, as are results. */
void onv_aten_saved(const onv_aten_op *op, uint32_t wants, uint32_t *in, uint32_t *out);

#endif
