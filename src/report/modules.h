/* The modules of a model, found again from names.
 *
 * Exporters write the module that a node came from into names and metadata (ir/origin.h). These make
 * a tree; every step belongs to one module: the one that its node tells of, or else the closest one
 * around both the step before and the one behind that have one.
 *
 * Names with slashes write the third layer of "encoder" as encoder.2, and leave a list out that is
 * never called itself; names with dots write encoder, 2. Both find the same module here: parts that
 * are numbers join the one before them.
 * Where no name has a scope the operators stand in for modules.
 * Cost: linear in the length of all names.
 */
#ifndef ONV_REPORT_MODULES_H
#define ONV_REPORT_MODULES_H

#include "base/strings.h"
#include "report/footprint.h"

#define ONV_NO_MODULE UINT32_MAX

enum { ONV_MODULE_MAX_DEPTH = 64 }; /* deeper scopes count to their ancestor */

typedef struct onv_module {
    const char *name;
    uint32_t parent, first_child, last_child, next; /* ONV_NO_MODULE: none */
    uint32_t depth;                                 /* 0: the model itself */
    uint32_t last_step;                             /* its last node in execution order */
    uint64_t own_steps; /* nodes that belong to it and to no module inside */
    /* With everything inside: */
    uint64_t params, macs;
    bool macs_known;
    onv_amount activation;
} onv_module;

/* modules.at[0] is the model; a module stands behind its parent. */
typedef struct onv_modules {
    ONV_VEC(onv_module) list;
    onv_strings keys; /* "PARENT/NAME" of each but the model, in the order of the list */
    ONV_VEC(char) key;
    onv_arena *arena;
    onv_footprint footprint;
    uint32_t *of_step;      /* which module each step belongs to */
    uint64_t unused_params; /* of weights that no node reads */
} onv_modules;

/* `max_depth` 0: ONV_MODULE_MAX_DEPTH. Activations are counted as the footprint measures them, weights
 * in the module that uses them first. In the page's arena. False without memory; cleanup in either case. */
bool onv_modules_init(onv_modules *modules, const onv_view *view, const onv_page *page,
                      unsigned max_depth);

/* In place of activations: what training keeps from a forward to a backward pass, in the module that makes it;
 * the batch and what the loss keeps in the model itself. * Requires the program of training (onv_training.timeline). False without memory. */
bool onv_modules_take_saved(onv_modules *modules, const onv_view *view);

void onv_modules_cleanup(onv_modules *modules);

#endif
