/* What is said of a tape: one row of said.def a warning or a note. Whoever makes the tape counts what it meets, and prints the rows that
 * were counted once it is there. */
#ifndef ONV_EMIT_SAID_H
#define ONV_EMIT_SAID_H

#include "ir/model.h"

/* What a diagnostic says of some operations. */
typedef struct onv_tally {
    uint32_t count;
    uint64_t bytes;
    const char *first; /* the name of the first; may be NULL */
} onv_tally;

/* One more of them; bytes that do not fit 64 bits stay the most that do. */
void onv_tally_add(onv_tally *tally, const char *name, uint64_t bytes);

typedef enum onv_said {
#define SAID(name, code, severity, text) ONV_SAID_##name,
#include "emit/said.def"
    ONV_N_SAID
} onv_said;

/* Of one row; none is said where the count is 0. */
typedef struct onv_saying {
    onv_tally of;
    uint64_t more, rest;  /* two numbers for its text */
    const onv_node *node; /* that it names; or NULL */
    bool warns;           /* it is a warning, although its row is a note */
} onv_saying;

#endif
