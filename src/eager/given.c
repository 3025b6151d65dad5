/* What lines of a program are known to give, by the operations that ran in them and behind them. Graphs lack operations. */
#include "base/fail.h"
#include "base/quota.h"
#include "eager/naming.h"

/* The statement of the call that was given the tensor, among those around an operation that reads it. */
static onv_statement *given_to(onv_naming *n, uint32_t op, uint32_t tensor)
{
    uint32_t index = n->of_op[op], given = ONV_NO_STATEMENT;
    for (; index != ONV_NO_STATEMENT && n->made_in[tensor] != ONV_NO_STATEMENT;
         index = n->at.at[index].parent) {
        uint32_t from = n->made_in[tensor], call = n->at.at[index].call;
        while (from != ONV_NO_STATEMENT && n->at.at[from].call != call)
            from = n->at.at[from].parent;
        if (from != ONV_NO_STATEMENT) break;
        given = index;
    }
    return given != ONV_NO_STATEMENT ? &n->at.at[given] : NULL;
}

/* What comes into the loop of a call that gives a list is its first member, as embeddings are of hidden states. */
static void count_turns(onv_naming *n, uint32_t *seen)
{
    for (uint32_t i = 0; i < n->eager->ops.count; i++)
        for (uint32_t k = 0; k < n->eager->ops.at[i].n_in && onv_work(ONV_MAX_CALLS); k++) {
            uint32_t tensor = n->eager->ops.at[i].in[k].tensor;
            onv_statement *s = given_to(n, i, tensor);
            if (s == NULL || seen[tensor] == s->call + 1) continue;
            seen[tensor] = s->call + 1;
            if (s->loops && onv_naming_gives_list(n, s))
                onv_naming_hold(n, tensor, n->list_until[s->call]);
            n->turns[s->call] += s->loops && !s->has_turn;
            s->has_turn = true;
        }
}

onv_status onv_naming_count_leaving(onv_naming *n, onv_arena *arena, onv_error *err)
{
    uint32_t *seen = ONV_ARENA_ARRAY(arena, uint32_t, n->eager->tensors.count);
    n->made_in = ONV_ARENA_ARRAY(arena, uint32_t, n->eager->tensors.count);
    if (arena->failed) return onv_fail_memory(err);
    for (size_t i = 0; i < n->eager->tensors.count; i++) n->made_in[i] = ONV_NO_STATEMENT;
    for (uint32_t i = 0; i < n->eager->ops.count; i++)
        for (uint32_t k = 0; k < n->eager->ops.at[i].n_out; k++) {
            uint32_t tensor = n->eager->ops.at[i].out[k], index = n->of_op[i];
            if (n->made_in[tensor] != ONV_NO_STATEMENT) continue; /* it is another name of it */
            n->made_in[tensor] = index;
            for (; index != ONV_NO_STATEMENT && n->last_use[tensor] > n->at.at[index].last_op;
                 index = n->at.at[index].parent) {
                n->at.at[index].n_leaving++;
                n->at.at[index].leaving = tensor;
            }
        }
    if (n->model->program != NULL) count_turns(n, seen);
    return ONV_OK;
}

/* The line shows the operation, or calls one of PyTorch's layers that does nothing else. */
static bool shows_op(const onv_naming *n, const onv_statement *s, uint32_t op)
{
    uint32_t index = n->of_op[op], level = 0;
    if (index == ONV_NO_STATEMENT) return false;
    const onv_statement *at = &n->at.at[index];
    for (uint32_t i = at->parent; i != ONV_NO_STATEMENT; i = n->at.at[i].parent) level++;
    if (at == s) return onv_naming_kind(n, op, level) != ONV_STATEMENT_HIDES;
    if (!n->calls->at.at[at->call].is_layer || at->parent == ONV_NO_STATEMENT) return false;
    at = &n->at.at[at->parent];
    while (at != s && n->calls->at.at[at->call].is_known && n->calls->at.at[at->call].is_chain &&
           at->parent != ONV_NO_STATEMENT)
        at = &n->at.at[at->parent];
    return at == s;
}

bool onv_naming_gives_another(const onv_naming *n, const onv_statement *s, uint32_t tensor)
{
    const onv_eager_op *last = &n->eager->ops.at[s->last_op];
    const onv_eager_tensor *all = n->eager->tensors.at;
    if (n->model->program == NULL || last->n_out == 0 || !shows_op(n, s, s->last_op)) return false;
    for (uint32_t k = 0; k < last->n_out; k++)
        if (all[last->out[k]].storage == all[tensor].storage) return false;
    return true;
}

/* A list has several tensors, and is read as a whole by what joins them, or by a module of one's own. */
static bool is_read_as_tensor(const onv_naming *n, const onv_statement *s, onv_words name)
{
    uint32_t op = n->last_use[s->leaving];
    const onv_statement *reader = onv_naming_statement(n, op, s->call);
    bool joins =
        n->eager->ops.at[op].aten == ONV_ATEN_cat || n->eager->ops.at[op].aten == ONV_ATEN_stack;
    return reader != NULL && !joins && onv_words_list(reader->reads, name) &&
           onv_naming_name_until(n, s, name) >= reader->last_op && shows_op(n, reader, op);
}

bool onv_naming_gives_tensors(const onv_naming *n, const onv_statement *s)
{
    onv_words list = s->targets, name = {0};
    uint32_t count = 0;
    if (n->model->program == NULL) return false;
    for (; onv_words_next(&list, &name); count++)
        if (name.length == 0 || onv_naming_is_read_later(n, s, name, true)) return false;
    if (count == 1) return s->n_leaving == 1 && is_read_as_tensor(n, s, name);
    return count > 1 && s->n_leaving >= count;
}
