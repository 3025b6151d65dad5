/* One forward pass of a model, for tests. */
#ifndef ONV_TESTS_PASS_H
#define ONV_TESTS_PASS_H

#include "eager/inference.h"
#include "support/flow.h"

typedef struct pass {
    model *m;
    flow f;
    onv_timeline t;
    onv_peak peak;
    bool differs_least; /* as the tape said */
    onv_timeline
        new_relus; /* where its untold Relus make tensors of their own; no steps: it has none */
} pass;

/* Takes the model over; fails the test where it cannot be lowered. options NULL: as by default. */
void pass_run(pass *p, model *m, const onv_lower_options *options);
void pass_drop(pass *p);
/* Dropped at the end of its block. */
#define OWNED_PASS __attribute__((cleanup(pass_drop))) pass
/* The buffer of a value; NULL: it has no memory of its own. */
const onv_buffer *pass_find(const pass *p, const char *name);

#endif
