#include "base/rules.h"

#ifdef ONV_FAULT_INJECTION
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool onv_rule_is_on(const char *name)
{
    const char *without = getenv("ONV_WITHOUT_RULE");
    return without == NULL || strcmp(without, name) != 0;
}
#else
typedef int onv_no_rule_is_off; /* a file has a declaration */
#endif
