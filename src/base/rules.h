/* Rules that tell of an export what PyTorch ran, by name. scripts/gate leaves out one after the other, and prints which stored
 * networks need it: a rule that none needs goes. */
#ifndef ONV_BASE_RULES_H
#define ONV_BASE_RULES_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#ifdef ONV_FAULT_INJECTION
/* False for the one that the environment variable ONV_WITHOUT_RULE names. */
static inline bool onv_rule_is_on(const char *name)
{
    const char *without = getenv("ONV_WITHOUT_RULE");
    return without == NULL || strcmp(without, name) != 0;
}
#else
static inline bool onv_rule_is_on(const char *name)
{
    (void)name;
    return true;
}
#endif

#endif
