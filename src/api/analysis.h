/* An analysis: what the passes made of one model, and what made it. */
#ifndef ONV_API_ANALYSIS_H
#define ONV_API_ANALYSIS_H

#include "api/eager_views.h"
#include "api/watch.h"
#include "base/heap.h"
#include "base/strings.h"
#include "report/report.h"

/* What an analysis is made of, and with; reports do not look at it. */
typedef struct onv_making {
    onv_analysis analysis;
    onv_watch watch;   /* what all of this took; reports go on from there */
    onv_model *loaded; /* as it was before inference, while more analyses of it are made; or NULL */
    onv_eager_views views;        /* what eager PyTorch runs instead; none: the model */
    onv_eager_views loaded_views; /* as they were before sizes, likewise, */
    bool keeps_views;             /* once they were looked for */
    bool *contradicts;   /* inference failed: by node, whether it is wrong without sizes, too */
    onv_model wide;      /* of an engine of 16 bits: the model with floats of 32 */
    bool eager_reported; /* what the export hides from eager PyTorch is among the diagnostics */
    /* Text that was answered, once each; and where it is made (query.c). */
    onv_arena arena, scratch;
    onv_strings text;
} onv_making;

/* A model, and how long it may be looked at. Options stand apart: the search for the largest batch
 * asks for the same model with others. */
typedef struct onv_request {
    const char *path;
    const void *data; /* NULL: read the path */
    size_t bytes;
    const onv_model *loaded;      /* before inference; outlives what is made; NULL: it is read */
    const onv_eager_views *views; /* likewise; NULL: they are looked for */
    const bool *contradicts;      /* by node: its operator's definition; NULL: not known */
    bool lifetimes_alone;         /* of the graph's own terms, and nothing else */
    bool figures_alone;           /* for a verdict or a search: nothing that only reports show */
    bool judged_alone;            /* of runtimes that are not judged there are no figures */
    bool training_alone;          /* and no other runtime */
    const onv_known_plans *known; /* then: as onv_training_options */
    onv_watch *watch;
} onv_request;

/* Loads the model and runs the passes (passes.c). Budgets, the largest batch and replays come on
 * top. */
onv_status onv_analysis_create(const onv_request *from, const onv_options *options,
                               onv_analysis **result, onv_error *err);

/* The options of a further analysis for its figures: what the first one alone keeps, shows or replays is left out. */
onv_options onv_options_again(const onv_options *options);

/* Gives options dims of their own, with room for so many more, as long as the analysis is; NULL: no memory. */
onv_dim_binding *onv_own_dims(onv_options *options, size_t more, onv_analysis *of);

/* One that the model may not take: then `*made` is NULL, and that is no failure. */
onv_status onv_analysis_try(const onv_request *from, const onv_options *options,
                            onv_analysis **made, onv_error *err);

/* The model before inference, and a copy of it where further analyses of it follow. */
onv_status onv_analysis_load(const onv_request *from, const onv_options *options,
                             onv_analysis *analysis, onv_error *err);

/* What further analyses of the model are made of is not needed any more. */
void onv_analysis_forget_loaded(onv_analysis *analysis);

/* The libraries and the speed of a budget that is a GPU. */
void onv_take_gpu(onv_options *options, const onv_budget *budget);

/* Judges the analysis by its budget, and the model by further ones (judge.c). Nothing without. */
onv_status onv_analysis_judge(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err);

/* Judges usual GPUs, each with its own libraries, where no budget was given and the analysis is to be drawn. Plans are
 * chosen by a budget, so with them there are none. */
onv_status onv_analysis_judge_usual(const onv_request *from, const onv_options *options,
                                    onv_analysis *analysis, onv_error *err);

/* The largest batch that fits the analysis' budget: of each runtime, each checkpointing plan, and
 * all of them (batch.c). */
onv_status onv_analysis_find_batch(const onv_request *from, const onv_options *options,
                                   onv_analysis *analysis, onv_error *err);

/* Whether the options' objective is one that can be reached. */
onv_status onv_objective_check(const onv_options *options, onv_error *err);

/* Fills analysis->fit.best by the options' objective, once the largest batches are known (objective.c). */
onv_status onv_analysis_find_best(const onv_request *from, const onv_options *options,
                                  onv_analysis *analysis, onv_error *err);

/* The largest batch, or size of the dim at that place of the options (SIZE_MAX: the batch), with which all that is judged
 * fits; 0: none does. */
onv_status onv_analysis_search_size(const onv_request *from, const onv_options *options, size_t dim,
                                    onv_analysis *analysis, int64_t *largest, onv_error *err);

/* ONV_ERR_USAGE: "cannot WHAT", as tensors have no size; with the options that bind their dims. */
onv_status onv_fail_unsized(const onv_analysis *analysis, const char *what, onv_error *err);

/* The longest context of a key-value cache that fits the analysis' budget (batch.c). */
onv_status onv_analysis_find_context(const onv_request *from, const onv_options *options,
                                     onv_analysis *analysis, onv_error *err);

/* --- On top of the passes, each in a file of its name: example.c, baseline.c, savings.c, sessions.c, load_model.c, remedies.c --- */

/* Formulas of what the runtimes that are named hold, where that was asked for and dims are free. Needs the example. */
onv_status onv_analysis_find_formulas(const onv_request *from, const onv_options *options,
                                      onv_analysis *analysis, onv_error *err);

/* The answer, once all that it is made of is there. */
onv_status onv_analysis_conclude(const onv_options *options, onv_analysis *analysis,
                                 onv_error *err);

/* Computes the formula of the peak where no report or example needed it so far. */
onv_status onv_analysis_formula(const onv_analysis *analysis, onv_error *err);

/* Where dims are free and an example is asked for: analyses the model once more with usual sizes (batch
 * 1, sequences of 128, images of 224 x 224), as `analysis->example`. Where none fits, a note says why. */
onv_status onv_analysis_add_example(const onv_request *from, const onv_options *options,
                                    onv_analysis *analysis, onv_error *err);

/* Fills `analysis->gate` where the options have a baseline. */
onv_status onv_analysis_compare(const onv_options *options, onv_analysis *analysis, onv_error *err);

/* Where they are asked for, and every tensor has a size: changes of single nodes (runtime/savings.h), and the
 * batch in 2, 4 and 8 parts, each an analysis of its own. Of the example where there is one. */
onv_status onv_analysis_find_savings(const onv_request *from, const onv_options *options,
                                     onv_analysis *analysis, onv_error *err);

/* The batch that was bound: by its option (`name` is then NULL), or by a dim of that name. 0: none was. */
int64_t onv_bound_batch(const onv_options *options, const char **name);

/* Statistics by node, advice and the trace of shapes, where they were asked for. */
onv_status onv_session_extras(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err);

/* Fills analysis->in_force (option_rows.c). `options` are complete, and as the caller gave them. Requires the answer. */
onv_status onv_in_force_note(const onv_options *options, onv_analysis *analysis, onv_error *err);

/* Infers the model; where that fails, analysis->making->contradicts says which nodes do not fit without any size, either. */
onv_status onv_analysis_infer(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err);

/* Fills analysis->unbound where the options ask for a file and bind something. Values have the same ids. */
onv_status onv_analysis_infer_unbound(const onv_options *options, onv_analysis *analysis,
                                      onv_error *err);

/* Where they are asked for and no budget fits: settings of ONNX Runtime, 16 bits, a checkpointing plan, the largest
 * batch that fits, the smallest GPU of the table that does. Each is confirmed by an analysis with that option, of the
 * runtimes that are judged; those that fit come first. Requires the answer. A note says so where the limits of the
 * analysis leave no room for further ones. */
onv_status onv_analysis_find_remedies(const onv_request *from, const onv_options *options,
                                      onv_analysis *analysis, onv_error *err);

/* What only a recording tells, and graphs tell less of than archives: how long Python holds tensors, what works in place, and
 * which equal parameters are one. The figure lies between two ends. */
onv_status onv_analysis_find_ends(onv_analysis *analysis, onv_model *model, const onv_live *live,
                                  onv_runtime_options how, onv_runtime_result *result,
                                  onv_error *err);

#endif
