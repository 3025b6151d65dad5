#include "rewrite/rules.h"

#include <string.h>

#define ROW(level_, name_, kind_, not_, ops_, form_, apply_, run_)                                 \
    {.name = (name_),                                                                              \
     .level = (level_),                                                                            \
     .kind = (kind_),                                                                              \
     .is_not_modelled = (not_),                                                                    \
     .ops = (ops_),                                                                                \
     .form = (form_),                                                                              \
     .apply = (apply_),                                                                            \
     .run = (run_)},
#define RULE(level, name, ops, apply) ROW(level, name, ONV_RULE, false, ops, NULL, apply, NULL)
#define TRANSFORMER(level, name, ops, apply)                                                       \
    ROW(level, name, ONV_TRANSFORMER, false, ops, NULL, apply, NULL)
#define NOT_MODELLED(level, name, ops, apply)                                                      \
    ROW(level, name, ONV_TRANSFORMER, true, ops, NULL, apply, NULL)
#define WOULD(level, name, ops, form) ROW(level, name, ONV_TRANSFORMER, true, ops, form, NULL, NULL)
#define PASS(level, name, kind, run)  ROW(level, name, kind, false, NULL, NULL, NULL, run)

const onv_rewrite_rule onv_rewrite_rules[] = {
#include "rewrite/rules.def"
};

const size_t onv_n_rewrite_rules = sizeof onv_rewrite_rules / sizeof onv_rewrite_rules[0];

bool onv_rewrite_names(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
    return false;
}
