/* Workspaces of convolutions that were asked for lately. */
#include <stddef.h>
#include <string.h>

#include "kernels/cudnn.h"

static bool is_same(const onv_conv_problem *a, const onv_conv_problem *b)
{
    return memcmp(a, b, offsetof(onv_conv_problem, transposed)) == 0 &&
           a->transposed == b->transposed;
}

onv_conv_workspace onv_cudnn_conv_workspace_range(const onv_conv_problem *p, onv_conv_pass pass,
                                                  onv_cudnn_heuristics heuristics,
                                                  const onv_cuda_library_settings *settings)
{
    onv_conv_answers *answers = settings->answers;
    if (answers == NULL) return onv_cudnn_conv_ask(p, pass, heuristics, settings);
    uint32_t how = (uint32_t)pass << 3 | (uint32_t)heuristics << 2 |
                   (uint32_t)settings->channels_last << 1 | (uint32_t)settings->first;
    for (uint32_t n = answers->count; n > 0 && answers->count - n < ONV_CONV_ANSWERS; n--) {
        uint32_t i = (n - 1) % ONV_CONV_ANSWERS;
        if (answers->at[i].how == how && is_same(&answers->at[i].problem, p))
            return answers->at[i].workspace;
    }
    uint32_t i = answers->count++ % ONV_CONV_ANSWERS;
    answers->at[i].problem = *p;
    answers->at[i].how = how;
    answers->at[i].workspace = onv_cudnn_conv_ask(p, pass, heuristics, settings);
    return answers->at[i].workspace;
}
