#include "eager/naming.h"

#include "base/fail.h"
#include "base/quota.h"
#include "fuse/fuse.h"
#include "load/statements.h"

/* --- What is told ------------------------------------------------------------------------------ */

/* "213c:a,b;", "213l:a<b,c,;", "213l:a<b,(;": the line of a statement, of which nothing ran yet. */
static bool next_frame(const char **at, onv_statement *s)
{
    size_t digits = strspn(*at, "0123456789");
    const char *targets = *at + digits + 2;
    if (digits == 0 || (*at)[digits] == '\0' || (*at)[digits + 1] == '\0') return false;
    size_t length = strcspn(targets, ";"),
           bound = strcspn(targets, (char[]){ONV_STATEMENT_READS, ';', 0});
    *s = (onv_statement){.line = {*at, digits},
                         .targets = {targets, bound},
                         .kind = (*at)[digits],
                         .mark = (*at)[digits + 1],
                         .next = ONV_NO_STATEMENT,
                         .inner = ONV_NO_CALL,
                         .first = ONV_NO_CALL};
    if (bound < length) {
        s->is_whole = targets[length - 1] != ONV_STATEMENT_GOES_ON;
        s->reads = (onv_words){targets + bound + 1, length - bound - 1 - !s->is_whole};
    }
    *at = targets + length + (targets[length] == ';');
    return true;
}

uint32_t onv_statements_lines(const onv_node *node, onv_statement_line *lines, uint32_t most)
{
    uint32_t count = 0;
    const char *at = onv_noted(node)->statements;
    for (onv_statement f; count < most && next_frame(&at, &f); count++)
        lines[count] = (onv_statement_line){f.line, f.kind};
    return count;
}

/* The calls around an operation of which the statements are told, outer first. */
static uint32_t calls_around(const onv_naming *n, uint32_t op, uint32_t *around)
{
    uint32_t count = 0;
    for (uint32_t c = n->calls->of_op[op]; c != ONV_NO_CALL; c = n->calls->at.at[c].parent)
        around[count++] = c;
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t swapped = around[i];
        around[i] = around[count - 1 - i];
        around[count - 1 - i] = swapped;
    }
    return count;
}

static const char *statements_of(const onv_naming *n, uint32_t op)
{
    onv_node_id node = n->eager->ops.at[op].node;
    const char *told =
        onv_is_node(node) ? onv_noted(onv_model_node(n->model, node))->statements : NULL;
    return told != NULL ? told : "";
}

/* Of a member of a list: the length of its path up to its number. */
static size_t list_length(const onv_call *call)
{
    size_t length = call->length;
    while (length > 0 && call->path[length - 1] != '.') length--;
    return length;
}

/* Members of two lists that one line calls in turn, `norm(layer(x))`, belong to one run of it; when the list of
 * its first call has its turn again, it runs again. */
static bool goes_on_in_list(const onv_naming *n, const onv_statement *s, uint32_t inner,
                            const onv_statement *f)
{
    if (f->kind != ONV_STATEMENT_LOOPS || s->kind != ONV_STATEMENT_LOOPS) return false;
    const onv_call *a = &n->calls->at.at[s->first], *b = &n->calls->at.at[inner];
    size_t length = list_length(a);
    bool is_list = length > 0 && list_length(b) > 0;
    return is_list && (length != list_length(b) || memcmp(a->path, b->path, length) != 0);
}

/* A line of one call, or a loop over members, runs once for each call; another line may make several. */
static bool runs_on(const onv_naming *n, uint32_t call, uint32_t inner, const onv_statement *f)
{
    if (n->current[call] == ONV_NO_STATEMENT) return false;
    const onv_statement *s = &n->at.at[n->current[call]];
    if (!onv_words_same(s->line, f->line)) return false;
    bool makes_one = f->kind == ONV_STATEMENT_CALLS || f->kind == ONV_STATEMENT_LOOPS ||
                     n->calls->at.at[call].is_chain;
    bool is_argument = f->kind == ONV_STATEMENT_CALLS && !s->has_called;
    return !makes_one || inner == ONV_NO_CALL || s->inner == ONV_NO_CALL || inner == s->inner ||
           is_argument || goes_on_in_list(n, s, inner, f);
}

/* Of two marks of a line the one that tells less. */
static char wider(char a, char b)
{
    static const char marks[] = {
        ':', ONV_STATEMENT_ONE, ONV_STATEMENT_MIXED, ONV_STATEMENT_OPEN, ONV_STATEMENT_LEAVES, 0};
    if (strchr(marks, a) > strchr(marks, b)) return a;
    return b;
}

static bool hides(char kind)
{
    return kind == ONV_STATEMENT_HIDES;
}

static bool find_statements(onv_naming *n)
{
    uint32_t around[ONV_MAX_CALLS];
    for (uint32_t i = 0; i < n->eager->ops.count; i++) {
        const char *at = statements_of(n, i);
        uint32_t count = calls_around(n, i, around), parent = ONV_NO_STATEMENT;
        onv_statement f;
        for (uint32_t level = 0; level < count && next_frame(&at, &f); level++) {
            uint32_t last = n->current[around[level]];
            /* A convolution whose norm is folded has the statement of the norm. Where that has one call alone, its own is one
             * before, which as a rule binds the same name. */
            if (level + 1 == count && n->calls->is_other[i] && f.kind == ONV_STATEMENT_CALLS)
                f.line.length = 0;
            uint32_t inner = level + 1 < count ? around[level + 1] : ONV_NO_CALL;
            if (!runs_on(n, around[level], inner, &f)) {
                f.call = around[level];
                f.parent = parent;
                f.before = last;
                if (!onv_vec_push(&n->at, f)) return false;
                if (last != ONV_NO_STATEMENT) n->at.at[last].next = (uint32_t)n->at.count - 1;
                last = n->current[around[level]] = (uint32_t)n->at.count - 1;
            }
            n->at.at[last].mark = wider(n->at.at[last].mark, f.mark);
            n->at.at[last].last_op = i;
            n->at.at[last].loops |= f.kind == ONV_STATEMENT_LOOPS;
            if (inner != ONV_NO_CALL) n->at.at[last].inner = inner;
            if (n->at.at[last].first == ONV_NO_CALL) n->at.at[last].first = inner;
            n->at.at[last].has_called |= !hides(f.kind);
            parent = last;
        }
        n->of_op[i] = parent;
    }
    return true;
}

/* --- What is held ------------------------------------------------------------------------------ */

static bool adds_to_list(const onv_statement *s)
{
    return s->targets.length > 1 && s->targets.at[0] == ONV_STATEMENT_ADDS;
}

/* The last operation before the name that gets the statement's next result goes or is bound again; 0: it
 * gets none. Of more results than names the last one has the rest, a list of them. A line that reads the
 * tensor, and when it runs again does not, has its name for another one by then: `y = layer(x)`, `x = y[0]`,
 * of which the latter is no operation. */
static uint32_t bound_until(onv_naming *n, onv_statement *s, uint32_t tensor)
{
    onv_words list = s->targets, name = {0}, at;
    for (uint32_t k = 0; k <= s->n_bound && onv_words_next(&list, &at); k++) name = at;
    s->n_bound++;
    if (name.length == 0) return 0;
    if (adds_to_list(s)) name = (onv_words){name.at + 1, name.length - 1};
    bool stays = memcmp(name.at, ONV_STATEMENT_MEMBER, 1) == 0;
    uint32_t next = stays ? ONV_NO_STATEMENT : s->next;
    const onv_statement *reader = onv_naming_statement(n, n->last_use[tensor], s->call);
    bool is_read = false;
    for (uint32_t k = 0; k < ONV_MAX_LOOKED_AT && next != ONV_NO_STATEMENT && onv_work(1); k++) {
        if (!n->upper_end && is_read && reader->kind == ONV_STATEMENT_LOOPS &&
            onv_words_same(n->at.at[next].line, reader->line) &&
            onv_words_list(reader->reads, name))
            return reader->last_op;
        if (onv_statement_binds(&n->at.at[next], name)) return n->at.at[next].last_op;
        is_read |= &n->at.at[next] == reader;
        next = n->at.at[next].next;
    }
    return n->calls->at.at[s->call].last_op;
}

char onv_naming_kind(const onv_naming *n, uint32_t op, uint32_t level)
{
    const char *at = statements_of(n, op);
    onv_statement f;
    for (uint32_t i = 0; i <= level; i++)
        if (!next_frame(&at, &f)) return ONV_STATEMENT_SHOWS;
    return f.kind;
}

/* By call: results that leave it and share a name, so that a list has them, as of members that it goes through, and the end of the
 * call that reads the last of them. No zeros, which exporters make once for all. */
static void count_leaving(onv_naming *n)
{
    for (uint32_t i = 0; i < n->eager->ops.count; i++)
        for (uint32_t k = 0; k < n->eager->ops.at[i].n_out; k++) {
            uint32_t last = n->last_use[n->eager->ops.at[i].out[k]], index = n->of_op[i];
            for (; index != ONV_NO_STATEMENT && last > n->at.at[index].last_op;
                 index = n->at.at[index].parent) {
                const onv_statement *s = &n->at.at[index];
                const onv_call *call = &n->calls->at.at[s->call];
                if (call->is_chain || s->targets.length == 0 || last <= call->last_op) continue;
                bool is_shared = n->eager->ops.at[i].n_in > 0 && onv_naming_shares_name(n, s);
                if (s->kind != ONV_STATEMENT_LOOPS && !is_shared) continue;
                uint32_t reader = call->parent;
                while (reader != ONV_NO_CALL && n->calls->at.at[reader].last_op < last)
                    reader = n->calls->at.at[reader].parent;
                uint32_t until = reader != ONV_NO_CALL ? n->calls->at.at[reader].last_op : last;
                n->leaving[s->call]++;
                if (n->list_until[s->call] < until) n->list_until[s->call] = until;
            }
        }
}

/* A call that gives many of its results has them in a list, as encoders do, and what nobody reads of them may be there, too. One that
 * goes through a list of what others made, a member at each turn, may give such a list, of which one alone is read. */
static void hold_in_list(onv_naming *n, const onv_statement *s, uint32_t tensor)
{
    bool maps = s->loops && n->turns[s->call] >= ONV_MANY_RESULTS;
    if (n->upper_end && s->targets.length > 0 && (maps || onv_naming_gives_list(n, s)))
        onv_naming_hold(n, tensor, n->list_until[s->call]);
}

/* What a softmax gives to a product. */
static bool is_weights_of_attention(const onv_naming *n, uint32_t op, uint32_t tensor)
{
    enum { MOST_VIEWS = 8 };
    const onv_eager_tensor *all = n->eager->tensors.at;
    const onv_eager_op *at = &n->eager->ops.at[n->last_use[tensor]];
    if (n->eager->ops.at[op].aten != ONV_ATEN_softmax) return false;
    for (uint32_t k = 0; k < MOST_VIEWS && at->n_out > 0 && at->out[0] != tensor &&
                         all[at->out[0]].storage == all[tensor].storage;
         k++) {
        tensor = at->out[0];
        at = &n->eager->ops.at[n->last_use[tensor]];
    }
    return at->aten == ONV_ATEN_mm || at->aten == ONV_ATEN_bmm;
}

/* The upper end: what a line does not tell the end of has a name until its call is over, or something outside
 * has it. In graphs, which lack calls, values of lines that hide a call are not known to be others. */
static void hold_open(onv_naming *n, const onv_statement *s, uint32_t tensor)
{
    const onv_call *call = &n->calls->at.at[s->call];
    bool has_names = s->targets.length > 0 && n->model->program != NULL;
    bool is_one = s->mark == ONV_STATEMENT_ONE && n->model->program != NULL;
    uint32_t until = call->last_op;
    if (!n->upper_end || s->mark == ':') return;
    if (is_one && onv_naming_gives_another(n, s, tensor))
        until = s->last_op;
    else if (has_names && (is_one || s->mark == ONV_STATEMENT_MIXED))
        until = onv_naming_gives_tensors(n, s) ? s->last_op : onv_naming_names_until(n, s);
    for (; s->mark == ONV_STATEMENT_LEAVES && call->parent != ONV_NO_CALL; until = call->last_op)
        call = &n->calls->at.at[call->parent];
    onv_naming_hold(n, tensor, until);
}

/* What a program's call gives beside its first result, and nothing reads: `largest, _ = torch.max(x, 1)`, `y, _ = self.lstm(x)`. */
static void hold_unread(onv_naming *n, uint32_t op, uint32_t tensor)
{
    const onv_statement *s = &n->at.at[n->of_op[op]];
    bool is_beside = n->model->program != NULL && n->eager->ops.at[op].out[0] != tensor &&
                     n->last_use[tensor] == op;
    if (is_beside) onv_naming_hold_weights(n, s, onv_naming_gets_several(n, s), tensor);
}

/* What nothing reads is the value of the line of a program that binds it: `x = x + shift`, the last time that a loop runs. */
static bool is_unread_value(const onv_naming *n, const onv_statement *s, uint32_t op,
                            uint32_t tensor)
{
    return n->model->program != NULL && s == &n->at.at[n->of_op[op]] && s->mark == ':' &&
           s->targets.length > 0 && op == s->last_op && n->last_use[tensor] == op &&
           n->eager->ops.at[op].out[0] == tensor;
}

/* The upper end of a program: what has a name when its call returns may be among the several results that the line around the
 * call has names for, whether something reads it or not. */
static void hold_returned(onv_naming *n, const onv_statement *s, uint32_t tensor, uint32_t until)
{
    if (!n->upper_end || n->model->program == NULL) return;
    while (s->parent != ONV_NO_STATEMENT && until >= n->calls->at.at[s->call].last_op) {
        s = &n->at.at[s->parent];
        if (!onv_naming_gets_several(n, s) || onv_naming_gives_tensors(n, s)) return;
        until = n->calls->at.at[s->call].last_op;
        onv_naming_hold(n, tensor, until);
    }
}

static void hold_result(onv_naming *n, uint32_t op, uint32_t tensor)
{
    uint32_t index = n->of_op[op], level = 0;
    for (uint32_t i = index; i != ONV_NO_STATEMENT; i = n->at.at[i].parent) level++;
    for (; index != ONV_NO_STATEMENT; index = n->at.at[index].parent) {
        onv_statement *s = &n->at.at[index];
        level--;
        hold_open(n, s, tensor);
        if (n->last_use[tensor] <= s->last_op) {
            bool is_chain = n->calls->at.at[s->call].is_chain;
            bool is_hidden = hides(onv_naming_kind(n, op, level));
            if (n->upper_end && !is_chain && is_hidden) onv_naming_hold(n, tensor, s->last_op);
            if (is_hidden && is_weights_of_attention(n, op, tensor))
                onv_naming_hold_weights(n, s, true, tensor);
            if ((adds_to_list(s) && op == s->last_op) || is_unread_value(n, s, op, tensor))
                onv_naming_hold(n, tensor, bound_until(n, s, tensor));
            break;
        }
        uint32_t until = onv_naming_alias_until(n, s, tensor, bound_until(n, s, tensor));
        onv_naming_hold(n, tensor, until);
        hold_returned(n, s, tensor, until);
        hold_in_list(n, s, tensor);
        if (n->last_use[tensor] > n->calls->at.at[s->call].last_op) continue;
        if (is_weights_of_attention(n, op, tensor)) onv_naming_hold_weights(n, s, false, tensor);
        break; /* it never leaves */
    }
}

/* The upper end: a list that has a name holds what an operation joins, and no line need tell of it. One that the line makes itself,
 * and whose value is another, has none. */
static void hold_joined(onv_naming *n, uint32_t op)
{
    const onv_eager_op *at = &n->eager->ops.at[op];
    bool is_list = at->aten == ONV_ATEN_cat || at->aten == ONV_ATEN_stack;
    const onv_statement *s = &n->at.at[n->of_op[op]];
    for (uint32_t k = 0; k < at->n_in && n->upper_end && is_list; k++) {
        uint32_t tensor = at->in[k].tensor;
        bool is_own = n->made_in[tensor] == n->of_op[op];
        if (!is_own || !onv_naming_gives_another(n, s, tensor))
            onv_naming_hold(n, tensor, n->calls->at.at[s->call].last_op);
    }
}

static void find_uses(onv_naming *n)
{
    for (uint32_t i = 0; i < n->eager->ops.count; i++) {
        const onv_eager_op *op = &n->eager->ops.at[i];
        for (uint32_t k = 0; k < op->n_in; k++) n->last_use[op->in[k].tensor] = i;
        for (uint32_t k = 0; k < op->n_out; k++) n->last_use[op->out[k]] = i;
    }
}

onv_status onv_names_hold(onv_holding *h, bool upper_end, onv_arena *arena, bool *told,
                          onv_error *err)
{
    const onv_calls *calls = h->calls;
    const onv_eager *eager = h->eager;
    size_t n_ops = eager->ops.count;
    onv_naming n = {.model = h->model,
                    .calls = calls,
                    .eager = eager,
                    .upper_end = upper_end,
                    .held = h->held,
                    .current = ONV_ARENA_ARRAY(arena, uint32_t, calls->at.count),
                    .of_op = ONV_ARENA_ARRAY(arena, uint32_t, n_ops),
                    .last_use = ONV_ARENA_ARRAY(arena, uint32_t, eager->tensors.count),
                    .leaving = ONV_ARENA_ARRAY(arena, uint32_t, calls->at.count),
                    .turns = ONV_ARENA_ARRAY(arena, uint32_t, calls->at.count),
                    .list_until = ONV_ARENA_ARRAY(arena, uint32_t, calls->at.count)};
    if (arena->failed) return onv_fail_memory(err);
    for (size_t i = 0; i < calls->at.count; i++) n.current[i] = ONV_NO_STATEMENT;
    find_uses(&n);
    bool found = find_statements(&n);
    if (found && upper_end) {
        count_leaving(&n);
        found = onv_naming_count_leaving(&n, arena, err) == ONV_OK;
    }
    for (uint32_t i = 0; i < n_ops && found; i++) {
        told[i] = n.of_op[i] != ONV_NO_STATEMENT;
        for (uint32_t k = 0; k < eager->ops.at[i].n_out && told[i]; k++)
            hold_result(&n, i, eager->ops.at[i].out[k]);
        for (uint32_t k = 1; k < eager->ops.at[i].n_out && told[i]; k++)
            hold_unread(&n, i, eager->ops.at[i].out[k]);
        if (told[i]) hold_joined(&n, i);
    }
    onv_vec_cleanup(&n.at);
    return found ? ONV_OK : onv_fail_memory(err);
}
