#include "program/program.h"

#include <string.h>

const onv_argument *onv_call_argument(const onv_program_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->n_arguments; i++)
        if (strcmp(call->arguments[i].name, name) == 0) return &call->arguments[i];
    return NULL;
}
