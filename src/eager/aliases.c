/* Names of tensors that no line of a trace binds. */
#include "base/rules.h"
#include "eager/naming.h"

/* The first statement of a call that binds the name, of those behind the given one or, back, before it: NULL where there is none. */
static const onv_statement *find_binding(const onv_naming *n, uint32_t index, bool back,
                                         onv_words name)
{
    for (uint32_t k = 0; k < ONV_MAX_LOOKED_AT && index != ONV_NO_STATEMENT; k++) {
        const onv_statement *s = &n->at.at[index];
        if (onv_statement_binds(s, name)) return s;
        index = back ? s->before : s->next;
    }
    return NULL;
}

bool onv_naming_shares_name(const onv_naming *n, const onv_statement *s)
{
    onv_words list = s->targets, name;
    return onv_words_next(&list, &name) && (find_binding(n, s->before, true, name) != NULL ||
                                            find_binding(n, s->next, false, name) != NULL);
}

/* Names of modules, and of Python. */
static bool is_no_tensor(onv_words name)
{
    static const char others[] =
        "self,torch,F,nn,functional,if,else,not,is,None,and,or,in,for,return";
    bool is_number = name.length == 0 || (name.at[0] >= '0' && name.at[0] <= '9');
    return is_number || onv_words_list((onv_words){others, sizeof others - 1}, name);
}

bool onv_naming_is_read_later(const onv_naming *n, const onv_statement *s, onv_words name,
                              bool by_member)
{
    uint32_t next = s->next;
    for (uint32_t k = 0; k < ONV_MAX_LOOKED_AT && next != ONV_NO_STATEMENT; k++) {
        onv_words list = n->at.at[next].reads, read;
        while (onv_words_next(&list, &read)) {
            bool is_indexed = read.length > 0 && read.at[read.length - 1] == ONV_STATEMENT_INDEXED;
            if (by_member) read.length -= is_indexed;
            if ((is_indexed || !by_member) && onv_words_same(read, name)) return true;
        }
        next = n->at.at[next].next;
    }
    return false;
}

/* `residual = x` is no operation, so that no trace has it. A tensor that is read when its own name is another one's has such a name:
 * one that the line reads and no line binds. Where no later line reads it, it is not bound again either. */
uint32_t onv_naming_alias_until(const onv_naming *n, const onv_statement *s, uint32_t tensor,
                                uint32_t until)
{
    if (!onv_rule_is_on("eager.aliases")) return until;
    const onv_statement *reader = onv_naming_statement(n, n->last_use[tensor], s->call);
    if (until == 0 || reader == NULL || reader == s || until >= reader->last_op ||
        !reader->is_whole)
        return until;
    onv_words list = reader->reads, name;
    bool has_alias = false;
    while (onv_words_next(&list, &name)) {
        if (is_no_tensor(name) || find_binding(n, n->current[s->call], true, name) != NULL)
            continue;
        if (onv_naming_is_read_later(n, reader, name, false)) return until;
        has_alias = true;
    }
    return has_alias ? n->calls->at.at[s->call].last_op : until;
}

static onv_words last_target(const onv_statement *s)
{
    onv_words list = s->targets, name = {0}, at;
    while (onv_words_next(&list, &at)) name = at;
    return name;
}

uint32_t onv_naming_name_until(const onv_naming *n, const onv_statement *s, onv_words name)
{
    const onv_statement *binds = find_binding(n, s->next, false, name);
    return binds != NULL ? binds->last_op : n->calls->at.at[s->call].last_op;
}

uint32_t onv_naming_names_until(const onv_naming *n, const onv_statement *s)
{
    onv_words list = s->targets, name;
    uint32_t last = s->last_op;
    while (onv_words_next(&list, &name)) {
        uint32_t until = onv_naming_name_until(n, s, name);
        if (until > last) last = until;
    }
    return last;
}

/* `context, weights = attend(x)`; or `found = attend(x)`, of which a later line takes `found[0]`. */
bool onv_naming_gets_several(const onv_naming *n, const onv_statement *s)
{
    onv_words name = last_target(s);
    return name.length > 0 &&
           (name.length < s->targets.length || onv_naming_is_read_later(n, s, name, true));
}

void onv_naming_hold_weights(onv_naming *n, const onv_statement *s, bool is_hidden, uint32_t tensor)
{
    if (!onv_rule_is_on("eager.attention_weights")) return;
    onv_words name = last_target(s);
    if (name.length == 0) return;
    if (is_hidden && !onv_naming_gets_several(n, s)) return;
    uint32_t until = onv_naming_name_until(n, s, name);
    if (is_hidden) onv_naming_hold(n, tensor, until);
    for (bool is_given = true; is_given; is_given = n->upper_end) {
        const onv_call *call = &n->calls->at.at[s->call];
        if (until != call->last_op || s->parent == ONV_NO_STATEMENT)
            return; /* its name is another's */
        s = &n->at.at[s->parent];
        name = last_target(s);
        if (name.length == 0 || (!n->upper_end && !onv_naming_gets_several(n, s))) return;
        until = onv_naming_name_until(n, s, name);
        onv_naming_hold(n, tensor, until);
    }
}
