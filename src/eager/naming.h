/* The inside of names.c: statements as they ran, which messages.c reads, too. */
#ifndef ONV_EAGER_NAMING_H
#define ONV_EAGER_NAMING_H

#include "eager/names.h"

#define ONV_NO_STATEMENT UINT32_MAX

typedef struct onv_words {
    const char *at;
    size_t length;
} onv_words;

/* One execution of it. */
typedef struct onv_statement {
    uint32_t call, last_op;
    uint32_t inner, first; /* the last call that it made, and the first one */
    char kind;             /* of its first line */
    bool is_whole;         /* it reads nothing but `reads` */
    uint32_t parent;       /* the one of the call around it that made this call */
    uint32_t before, next; /* of the same call */
    onv_words line, targets, reads;
    uint32_t n_bound;
    bool has_called;   /* what its first line calls, whose arguments later lines may make */
    bool has_sent;     /* propagate() has computed messages */
    uint32_t collects; /* 1 + the first operation that selects rows for messages, 0: none */
    uint32_t joins;    /* 1 + the first operation that joins them, 0: none */
    uint32_t list;     /* 1 + the operation that joins the tensors of a list, 0: none */
} onv_statement;

typedef struct onv_naming {
    const onv_model *model;
    const onv_calls *calls;
    const onv_eager *eager;
    bool upper_end;
    uint32_t *held;
    ONV_VEC(onv_statement) at;
    uint32_t *current;  /* by call: its last statement */
    uint32_t *of_op;    /* by operation: its innermost statement */
    uint32_t *last_use; /* by tensor */
    uint32_t *made_by;  /* by tensor: 1 + its operation, 0: none */
    uint32_t *leaving;  /* by call: named results that are read after it */
    bool *is_collected; /* by operation */
} onv_naming;

/* The tensor stays at least until that operation. */
static inline void onv_naming_hold(onv_naming *n, uint32_t tensor, uint32_t op)
{
    uint32_t storage = n->eager->tensors.at[tensor].storage;
    if (n->held[storage] < op) n->held[storage] = op;
}

/* --- messages.c -------------------------------------------------------------------------------- */

/* The operation is a part of the statement, which sends messages, or does not. */
void onv_messages_note(onv_naming *n, onv_statement *s, uint32_t op);
/* Does the operation, of the call itself, begin to send messages again? */
bool onv_messages_begin_again(const onv_naming *n, uint32_t call, uint32_t op);
/* Holds what the operation made and nothing reads after the statement. */
void onv_messages_hold(onv_naming *n, const onv_statement *s, uint32_t op, uint32_t tensor);

#endif
