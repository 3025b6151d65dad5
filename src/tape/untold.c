/* What an archive does not tell, as torch.export traces through it: torch.utils.checkpoint, and the backward of an autograd.Function.
 * Lines of the network show that there is one. */
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "tape/state.h"

enum { CHARS_BY_WORK = 64 };

typedef bool (*inside_fn)(const onv_tape *t, const onv_program_call *call);

static bool is_checkpointed(const onv_tape *t, const onv_program_call *call)
{
    return t->segment_of[call - t->program->calls.at] == 0 && onv_tape_is_checkpointed(call);
}

/* One more forward() than modules around the call, and none that is called by its name. */
static bool is_in_function(const onv_tape *t, const onv_program_call *call)
{
    static const char frame[] = ", in forward\n";
    uint32_t frames = 0, modules = 0;
    for (const char *at = call->trace; (at = strstr(at, frame)) != NULL; at += sizeof frame - 1)
        frames++;
    for (uint32_t m = call->module; m < t->program->modules.count;
         m = t->program->modules.at[m].parent)
        modules++;
    return modules > 0 && frames > modules && strstr(call->trace, ".forward(") == NULL;
}

/* Operations inside, and what they keep, each storage once. One that keeps nothing counts, too: an autograd.Function may keep what
 * it is given. */
static onv_tally find(onv_tape *t, inside_fn is_inside)
{
    onv_tally found = {0};
    bool *seen = ONV_ARENA_ARRAY(&t->emit.model->arena, bool, t->emit.eager->storages.count);
    if (seen == NULL) t->emit.status = onv_fail_memory(t->emit.err);
    for (size_t i = 0; seen != NULL && i < t->emit.eager->ops.count && onv_work(1); i++) {
        const onv_eager_op *op = &t->emit.eager->ops.at[i];
        if (op->node.index >= t->program->calls.count) continue;
        const onv_program_call *call = &t->program->calls.at[op->node.index];
        if (call->trace == NULL || !onv_work(1 + strlen(call->trace) / CHARS_BY_WORK) ||
            !is_inside(t, call))
            continue;
        if (found.count++ == 0) found.first = call->name;
        for (uint32_t k = 0; k < op->n_saved; k++) {
            const onv_eager_storage *storage = &t->emit.eager->storages.at[op->saved[k]];
            bool is_own =
                storage->kind == ONV_STORAGE_ACTIVATION || storage->kind == ONV_STORAGE_EXTRA;
            if (!is_own || seen[op->saved[k]]) continue;
            seen[op->saved[k]] = true;
            found.bytes = onv_u64_plus(found.bytes, storage->bytes);
        }
    }
    return found;
}

void onv_tape_untold(onv_tape *t)
{
    onv_tally again = find(t, is_checkpointed), own = find(t, is_in_function);
    if (again.bytes > 0)
        onv_model_diag(t->emit.model, ONV_WARNING, "checkpointed-calls", NULL,
                       "%u operations run inside torch.utils.checkpoint, as lines of the network "
                       "tell, and are counted as if it kept what they do, %llu bytes, which is "
                       "too much: it keeps what it is given, and runs them again in backward; a "
                       "recording knows what it keeps",
                       again.count, (unsigned long long)again.bytes);
    if (own.count > 0)
        onv_model_diag(t->emit.model, ONV_WARNING, "custom-function", NULL,
                       "%u operations, as '%.100s', run inside a forward() of no module, as "
                       "that of an autograd.Function, which keeps what its own backward reads, "
                       "%s: they are counted as if PyTorch derived them, and keep %llu bytes; a "
                       "recording knows what is kept",
                       own.count, own.first, own.bytes > 0 ? "less or more" : "as a rule more",
                       (unsigned long long)own.bytes);
}
