#include "program/program.h"

#include <string.h>

const onv_argument *onv_call_argument(const onv_program_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->n_arguments; i++)
        if (strcmp(call->arguments[i].name, name) == 0) return &call->arguments[i];
    return NULL;
}

bool onv_next_value(onv_values_in *in, uint32_t *value)
{
    for (; in->at < in->count; in->at++, in->within = 0) {
        const onv_argument *a = &in->arguments[in->at];
        bool is_list = a->kind == ONV_ARGUMENT_TENSORS;
        uint32_t n = is_list ? a->count : a->kind == ONV_ARGUMENT_TENSOR;
        while (in->within < n) {
            *value = is_list ? a->values[in->within] : a->value;
            in->within++;
            if (*value != ONV_NO_PROGRAM_VALUE) return true;
        }
    }
    return false;
}
