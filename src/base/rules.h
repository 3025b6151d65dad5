/* Rules that tell of an export what PyTorch ran, by name. scripts/gate leaves out one after the other, and prints which stored
 * networks need it: a rule that none needs goes. */
#ifndef ONV_BASE_RULES_H
#define ONV_BASE_RULES_H

#include <stdbool.h>

#ifdef ONV_FAULT_INJECTION
/* False for the one that the environment variable ONV_WITHOUT_RULE names. */
bool onv_rule_is_on(const char *name);
#else
static inline bool onv_rule_is_on(const char *name)
{
    (void)name;
    return true;
}
#endif

#endif
