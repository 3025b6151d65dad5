/* The figures of one training program. */
#ifndef ONV_CKPT_FIGURES_H
#define ONV_CKPT_FIGURES_H

#include "ckpt/training.h"

/* What is trained: eager, or compiled with a memory budget. */
typedef struct onv_network {
    onv_model *model;
    const onv_eager *eager;
    onv_compiling *compiling; /* NULL: eager */
    double budget;
    const onv_tape_segment *units; /* FSDP's, by operations of `eager`; NULL: none */
    uint32_t n_units;
    onv_pricing *pricing; /* of plans, with the options that all have; NULL: there are none */
    onv_op_runs *runs;    /* of what was built last, by operation; NULL: nobody asks for seconds */
} onv_network;

/* Room for `runs`, which goes with the tape, where the options ask for seconds. */
onv_status onv_figures_count_runs(onv_network *n, onv_eager *eager,
                                  const onv_training_options *options, onv_error *err);

/* `most`: the upper end, where options->train.notes_holds is set; else as the figures. NULL: not asked for. `timeline`,
 * where it is not NULL, is to be cleaned up if this succeeds. `plan`: its name, for options->take. */
onv_status onv_figures_of_program(const onv_network *n, const onv_training_options *options,
                                  const char *plan, onv_training_figures *figures,
                                  onv_training_figures *most, onv_timeline *timeline,
                                  onv_error *err);

/* What is compared of plans, without the program where nothing needs it: then not what stands where at the peak.
 * `with_ends`: as below, without names. */
onv_status onv_figures_measure(const onv_network *n, const onv_training_options *options,
                               const char *plan, bool with_ends, onv_training_figures *figures,
                               onv_error *err);

/* Adds the ends by what cuDNN takes for convolutions to figures of the same options. `with_locals`: names of Python hold what
 * they can at the upper one. */
onv_status onv_figures_find_ends(const onv_network *n, const onv_training_options *options,
                                 bool with_locals, onv_training_figures *figures, onv_error *err);

/* Next to the handles, within options->room_bytes; what the cache could return is not. */
bool onv_figures_fit(const onv_training_options *options, const onv_training_figures *f);

#endif
