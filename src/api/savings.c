/* Possible savings of an analysis. */
#include "api/analysis.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"

int64_t onv_bound_batch(const onv_options *options, const char **name)
{
    *name = NULL;
    if (options->batch > 0) return options->batch;
    for (size_t i = 0; i < options->n_dims; i++) {
        const char *word = options->dims[i].name;
        for (; *word != '\0'; word++)
            if (strncasecmp(word, "batch", 5) == 0) {
                *name = options->dims[i].name;
                return options->dims[i].size;
            }
    }
    return 0;
}

/* The model with another batch, and nothing but its lifetimes. */
static onv_status analyse_part(const onv_request *from, const onv_options *options,
                               const char *name, int64_t batch, onv_analysis *of,
                               onv_analysis **part, onv_error *err)
{
    onv_options how = onv_options_again(options);
    how.runtimes = "ideal";
    how.align = 0;
    how.budget = 0;
    how.max_batch = false;
    if (name == NULL) how.batch = batch;
    if (name != NULL) {
        onv_dim_binding *dims = onv_own_dims(&how, 0, of);
        if (dims == NULL) return onv_fail_memory(err);
        for (size_t i = 0; i < how.n_dims; i++)
            if (strcmp(dims[i].name, name) == 0) dims[i].size = batch;
    }
    onv_request request = *from;
    request.lifetimes_alone = true;
    return onv_analysis_create(&request, &how, part, err);
}

static uint64_t difference(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* One part after the other. The inputs of those to come, and the outputs of those before, are on the device
 * all the while: at most all of the larger ones but those of one part. */
static void add_parts(onv_analysis *analysis, const onv_analysis *part, int64_t parts, int64_t size)
{
    const onv_live *whole = &analysis->live, *live = &part->live;
    uint64_t in = difference(whole->input_bytes, live->input_bytes);
    uint64_t out = difference(whole->output_bytes, live->output_bytes);
    onv_saving saving = {.kind = ONV_SAVING_BATCH,
                         .value = ONV_NO_VALUE,
                         .node = ONV_NO_NODE,
                         .peak_bytes = live->peak_bytes +
                                       (in > out ? in : out), /* less than the whole's twice */
                         .more_macs = difference((uint64_t)parts * live->macs, whole->macs),
                         .parts = parts,
                         .part = size,
                         .more_nodes = (uint64_t)(parts - 1) * live->timeline.steps.count};
    onv_savings_add(&analysis->savings, whole, &saving);
}

static onv_status split_batch(const onv_request *from, const onv_options *options,
                              onv_analysis *analysis, onv_error *err)
{
    enum { MOST_PARTS = 8 };
    const char *name;
    int64_t batch = onv_bound_batch(options, &name);
    for (int64_t parts = 2; parts <= MOST_PARTS; parts *= 2) {
        onv_analysis *part;
        onv_error why = {0};
        if (batch == 0 || batch % parts != 0) break;
        onv_status status = analyse_part(from, options, name, batch / parts, analysis, &part, &why);
        if (status == ONV_ERR_MODEL || status == ONV_ERR_USAGE) break; /* it takes no such batch */
        if (status == ONV_ERR_LIMIT && onv_watch_forgive_memory(from->watch)) {
            onv_model_diag(&analysis->model, ONV_NOTE, "no-parts", NULL,
                           "the batch in parts is not computed: %s", why.message);
            break;
        }
        if (status != ONV_OK) {
            if (err != NULL) *err = why;
            return status;
        }
        if (part->live.unknown == 0) add_parts(analysis, part, parts, batch / parts);
        onv_analysis_destroy(part);
    }
    return ONV_OK;
}

onv_status onv_analysis_find_savings(const onv_request *from, const onv_options *options,
                                     onv_analysis *analysis, onv_error *err)
{
    onv_analysis *to = analysis->example != NULL ? analysis->example : analysis;
    if (!options->savings || options->train != NULL || to->live.unknown > 0) return ONV_OK;
    ONV_TRY(onv_savings_find(&to->model, to->order.nodes, &to->live, &to->savings, err));
    return to == analysis ? split_batch(from, options, to, err) : ONV_OK;
}
