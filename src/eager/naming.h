/* The inside of names.c: statements as they ran. */
#ifndef ONV_EAGER_NAMING_H
#define ONV_EAGER_NAMING_H

#include "eager/names.h"
#include "load/statements.h"

#define ONV_NO_STATEMENT UINT32_MAX

/* Later statements that are looked at for one that binds a name again; behind them the call decides. */
enum { ONV_MAX_LOOKED_AT = 1024 };

/* One execution of it. */
typedef struct onv_statement {
    uint32_t call, last_op;
    uint32_t inner, first; /* the last call that it made, and the first one */
    char kind;             /* of its first line */
    char mark;             /* ':', ONV_STATEMENT_OPEN, ONV_STATEMENT_LEAVES: of any of its lines */
    bool is_whole;         /* it reads nothing but `reads` */
    uint32_t parent;       /* the one of the call around it that made this call */
    uint32_t before, next; /* of the same call */
    onv_words line, targets, reads;
    uint32_t n_bound;
    uint32_t n_leaving,
        leaving;     /* tensors that it makes and something behind it reads, and one of them */
    bool loops;      /* it calls a member of a list, of any of its lines */
    bool has_turn;   /* it is counted as one of `turns` */
    bool has_called; /* what its first line calls, whose arguments later lines may make */
} onv_statement;

typedef struct onv_naming {
    const onv_model *model;
    const onv_calls *calls;
    const onv_eager *eager;
    bool upper_end;
    uint32_t *held;
    ONV_VEC(onv_statement) at;
    uint32_t *current;    /* by call: its last statement */
    uint32_t *of_op;      /* by operation: its innermost statement */
    uint32_t *last_use;   /* by tensor */
    uint32_t *made_in;    /* by tensor: the statement that made it; known at the upper end */
    uint32_t *leaving;    /* by call: named results that are read after it */
    uint32_t *list_until; /* by call: the end of the call that reads the last of these */
    uint32_t *turns;      /* by call: runs of its loops that read another tensor from outside */
} onv_naming;

/* The tensor stays at least until that operation. */
static inline void onv_naming_hold(onv_naming *n, uint32_t tensor, uint32_t op)
{
    uint32_t storage = n->eager->tensors.at[tensor].storage;
    if (n->held[storage] < op) n->held[storage] = op;
}

/* --- Lists of names, "a,b" --- */

static inline bool onv_words_next(onv_words *list, onv_words *name)
{
    if (list->length == 0) return false;
    const char *comma = memchr(list->at, ',', list->length);
    size_t length = comma != NULL ? (size_t)(comma - list->at) : list->length;
    *name = (onv_words){list->at, length};
    size_t passed = length + (comma != NULL);
    *list = (onv_words){list->at + passed, list->length - passed};
    return true;
}

static inline bool onv_words_list(onv_words list, onv_words wanted)
{
    onv_words name;
    while (onv_words_next(&list, &name))
        if (onv_words_same(name, wanted)) return true;
    return false;
}

/* --- Statements --- */

static inline bool onv_statement_binds(const onv_statement *s, onv_words wanted)
{
    return onv_words_list(s->targets, wanted);
}

/* The statement of that call which an operation stands in. */
static inline const onv_statement *onv_naming_statement(const onv_naming *n, uint32_t op,
                                                        uint32_t call)
{
    uint32_t index = n->of_op[op];
    while (index != ONV_NO_STATEMENT && n->at.at[index].call != call)
        index = n->at.at[index].parent;
    return index != ONV_NO_STATEMENT ? &n->at.at[index] : NULL;
}

/* The call of the statement gives so many of its results that they are in a list. */
enum { ONV_MANY_RESULTS = 3 };

static inline bool onv_naming_gives_list(const onv_naming *n, const onv_statement *s)
{
    return n->leaving[s->call] >= ONV_MANY_RESULTS;
}

/* --- aliases.c: names that no statement tells --- */

/* Of a tensor whose name goes with the operation `until`: that, or the one at which another name goes. */
uint32_t onv_naming_alias_until(const onv_naming *n, const onv_statement *s, uint32_t tensor,
                                uint32_t until);
/* The first name that the line binds is another tensor's in other lines. */
bool onv_naming_shares_name(const onv_naming *n, const onv_statement *s);

/* The last operation before all names that the line binds are bound again, or the call returns. */
uint32_t onv_naming_names_until(const onv_naming *n, const onv_statement *s);
/* The line has a name for each of several results, or for all of them together: a later line reads a member of it. */
bool onv_naming_gets_several(const onv_naming *n, const onv_statement *s);
/* Weights of attention, which modules give beside their result, as a rule, whether something reads them or not: where the line around
 * the call gets several results, they have a name there. Other modules may give them on. */
void onv_naming_hold_weights(onv_naming *n, const onv_statement *s, bool is_hidden,
                             uint32_t tensor);

/* --- given.c: what lines are known to give --- */

/* Once all statements are found. */
onv_status onv_naming_count_leaving(onv_naming *n, onv_arena *arena, onv_error *err);
/* Each name that the line binds has a tensor that something reads later: none has another one. */
bool onv_naming_gives_tensors(const onv_naming *n, const onv_statement *s);
/* The value of an ONV_STATEMENT_ONE is known, and it is not that tensor. */
bool onv_naming_gives_another(const onv_naming *n, const onv_statement *s, uint32_t tensor);
/* The last operation before a later statement binds the name, or the call returns. */
uint32_t onv_naming_name_until(const onv_naming *n, const onv_statement *s, onv_words name);
/* Does a later line read the name? By member: one of the list that it is. */
bool onv_naming_is_read_later(const onv_naming *n, const onv_statement *s, onv_words name,
                              bool by_member);
/* How the statement of that level called the operation. */
char onv_naming_kind(const onv_naming *n, uint32_t op, uint32_t level);

#endif
