/* Calls that lines of the network make inside torch.utils.checkpoint: `x = checkpoint(block, x, use_reentrant=False)`. What is between
 * keeps nothing in forward and runs again in backward. Each run of such a line is a segment. The lines of an archive and of a
 * recording tell; where they do not tell one run from the next, there are none, and a warning says so. */
#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "tape/state.h"

enum { CHARS_BY_WORK = 64 };

static const char word[] = "checkpoint(";

/* Where the trace calls it, or NULL. */
static const char *find_word(const char *trace)
{
    for (const char *at = trace; at != NULL && (at = strstr(at, word)) != NULL;
         at += sizeof word - 1)
        if (at == trace || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) return at;
    return NULL;
}

/* A line as it runs: the trace up to it, and the module that the checkpoint calls there; of a function the one around it. */
typedef struct run {
    const char *trace;
    size_t length;
    uint32_t module;
    bool is_function;
} run;

uint32_t onv_tape_module_of(const onv_tape *t, const onv_program_call *call, const char *line,
                            bool below)
{
    static const char frame[] = ", in forward\n";
    uint32_t depth = 0, module = call->module, nth = below;
    for (const char *f = call->trace; (f = strstr(f, frame)) != NULL && f < line; f++) nth++;
    if (nth-- == 0) return UINT32_MAX;
    for (uint32_t m = module; m < t->program->modules.count; m = t->program->modules.at[m].parent)
        depth++;
    if (depth <= nth) return UINT32_MAX;
    for (; depth > nth + 1; depth--) module = t->program->modules.at[module].parent;
    return module;
}

/* The function that is checkpointed is that module: `checkpoint(self.body, x)`, or a member of a list by any name. */
static bool calls_module(const onv_tape *t, uint32_t module, const char *argument)
{
    if (module == UINT32_MAX) return false;
    const char *path = t->program->modules.at[module].path, *dot = strrchr(path, '.');
    const char *name = dot != NULL ? dot + 1 : path;
    size_t length = strcspn(argument, ",)\n"), n = strlen(name);
    bool is_self = strncmp(argument, "self.", 5) == 0;
    if (isdigit((unsigned char)name[0])) return !is_self || memchr(argument, '[', length) != NULL;
    return length >= n && memcmp(argument + length - n, name, n) == 0;
}

static run run_of(const onv_tape *t, const onv_program_call *call)
{
    const char *at = find_word(call->trace);
    run r = {.module = UINT32_MAX};
    /* In a recording the function has lines of its own: what the line itself makes of its results is not inside. */
    if (at == NULL || (onv_program_is_recorded(t->program) && strstr(at, "\n  File ") == NULL))
        return r;
    r.trace = call->trace;
    r.length = (size_t)(at - call->trace) + strcspn(at, "\n");
    r.module = onv_tape_module_of(t, call, at, true);
    r.is_function = !calls_module(t, r.module, at + sizeof word - 1);
    if (r.is_function) r.module = onv_tape_module_of(t, call, at, false);
    return r;
}

static bool is_same(const run *a, const run *b)
{
    return a->module == b->module && a->length == b->length &&
           memcmp(a->trace, b->trace, a->length) == 0;
}

/* Its first call is made again by the same lines: a loop may call the function several times. */
static bool begins_again(const onv_tape *t, uint32_t first, uint32_t call)
{
    const onv_program_call *calls = t->program->calls.at;
    return first != ONV_NO_CALL_INDEX && calls[first].trace == calls[call].trace &&
           calls[first].op_name == calls[call].op_name;
}

onv_status onv_tape_find_checkpoints(onv_tape *t)
{
    const onv_program_graph *graph = &t->program->graphs.at[0];
    run before = {.module = UINT32_MAX};
    uint32_t first = 0;
    t->segment_of = ONV_EMIT_ARRAY(&t->emit, uint32_t, t->program->calls.count);
    if (t->segment_of == NULL) return t->emit.status;
    for (uint32_t i = graph->first_call; i < graph->first_call + graph->n_calls; i++) {
        const onv_program_call *call = &t->program->calls.at[i];
        size_t chars = call->trace != NULL ? strlen(call->trace) : 0;
        if (!onv_work(1 + chars / CHARS_BY_WORK)) return ONV_ERR_CANCELLED;
        run now = run_of(t, call);
        bool goes_on = now.trace != NULL && before.trace != NULL && is_same(&now, &before);
        before = now;
        if (now.trace == NULL) continue;
        if (!goes_on) first = i;
        if (now.is_function && goes_on && begins_again(t, first, i)) {
            memset(&t->segment_of[first], 0, (i - first) * sizeof *t->segment_of);
            first = ONV_NO_CALL_INDEX;
        }
        t->n_segments += !goes_on;
        if (first != ONV_NO_CALL_INDEX) t->segment_of[i] = t->n_segments;
    }
    return ONV_OK;
}

/* Of the operations, once all are there. */
void onv_tape_add_checkpoints(onv_tape *t)
{
    onv_eager *eager = t->emit.eager;
    uint32_t last = 0;
    for (uint32_t i = 0; i < eager->first_loss_op && t->n_segments > 0; i++) {
        uint32_t call = eager->ops.at[i].node.index;
        uint32_t segment = call < t->program->calls.count ? t->segment_of[call] : 0;
        if (segment != 0 && segment == last) {
            eager->checkpoints.at[eager->checkpoints.count - 1].last_op = i;
        } else if (segment != 0 && !onv_vec_push(&eager->checkpoints, ((onv_tape_segment){i, i}))) {
            t->emit.status = onv_fail_memory(t->emit.err);
            return;
        }
        last = segment;
    }
}

/* Of an archive: operations that are in no segment, and what they keep, each storage once. */
void onv_tape_report_checkpoints(onv_tape *t)
{
    onv_tally *rest = &t->emit.said[ONV_SAID_checkpointed_calls].of;
    bool *seen = ONV_EMIT_ARRAY(&t->emit, bool, t->emit.eager->storages.count);
    for (size_t i = 0; seen != NULL && i < t->emit.eager->ops.count && onv_work(1); i++) {
        const onv_eager_op *op = &t->emit.eager->ops.at[i];
        if (op->node.index >= t->program->calls.count) continue;
        const onv_program_call *call = &t->program->calls.at[op->node.index];
        if (call->trace == NULL || !onv_work(1 + strlen(call->trace) / CHARS_BY_WORK) ||
            t->segment_of[op->node.index] != 0 || find_word(call->trace) == NULL)
            continue;
        onv_tally_add(rest, call->name, 0);
        for (uint32_t k = 0; k < op->n_saved; k++) {
            const onv_eager_storage *storage = &t->emit.eager->storages.at[op->saved[k]];
            bool is_own =
                storage->kind == ONV_STORAGE_ACTIVATION || storage->kind == ONV_STORAGE_EXTRA;
            if (is_own && !seen[op->saved[k]])
                rest->bytes = onv_u64_plus(rest->bytes, storage->bytes);
            seen[op->saved[k]] |= is_own;
        }
    }
    if (rest->bytes == 0) rest->count = 0;
}
