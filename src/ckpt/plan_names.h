/* Plans as text: what of a plan does not depend on the file that it was made from, so that PyTorch, a file
 * and another version of the network can tell its places.
 *
 *   modules        rows of whole modules, each under one torch.utils.checkpoint, be it selective or reentrant
 *   sequential     torch.utils.checkpoint.checkpoint_sequential with a count
 *   save_on_cpu    torch.autograd.graph.save_on_cpu around the network
 *   compile        torch.compile with a memory budget
 *   operations     segments from place to place (names.h), whose second runs are pruned
 */
#ifndef ONV_CKPT_PLAN_NAMES_H
#define ONV_CKPT_PLAN_NAMES_H

#include "ckpt/ckpt.h"
#include "ckpt/names.h"

typedef enum onv_plan_form {
    ONV_PLAN_NONE,
    ONV_PLAN_MODULES,
    ONV_PLAN_SEQUENTIAL,
    ONV_PLAN_SAVE_ON_CPU,
    ONV_PLAN_COMPILE,
    ONV_PLAN_OPERATIONS,
    ONV_N_PLAN_FORMS
} onv_plan_form;

extern const char *const onv_plan_form_names[ONV_N_PLAN_FORMS];

/* A plan that was read. Of the lists those count that the form has. */
typedef struct onv_plan_text {
    const char *name;
    onv_plan_form form;
    const char *const *modules;       /* rows: names of modules, with spaces between */
    const char *const (*segments)[2]; /* where they begin and end */
    const char *const *kept;          /* operations whose results stay */
    size_t n_modules, n_segments, n_kept;
    const char *save;  /* kinds of operations whose results stay, with "+" between; NULL: none */
    bool is_reentrant; /* use_reentrant=True */
    const char *until; /* up to there what is kept waits on the host; NULL: nothing does */
    uint32_t count;    /* of checkpoint_sequential */
    double memory_budget;
} onv_plan_text;

/* Moves segments to where their names put them. Lives in the model's arena. */
onv_status onv_plan_snap(onv_places *places, onv_ckpt_plan *plan, onv_error *err);

/* The plans on this network, in the model's arena, not measured: those of onv_plan_text but sequential ones, and without the
 * results that `save` keeps. Where the network has no such places `is_missing` is set; NULL: ONV_ERR_USAGE, with the names. */
onv_status onv_plans_resolve(onv_places *places, const onv_plan_text *texts, uint32_t n,
                             onv_ckpt_plan *plans, bool *is_missing, onv_error *err);

/* Sets forms, names and ids of plans. */
struct onv_training;
onv_status onv_plans_name(onv_model *model, const onv_eager *eager, struct onv_training *result,
                          onv_error *err);

#endif
