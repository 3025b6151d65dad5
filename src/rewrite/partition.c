/* Which nodes the CPU runs. */
#include "rewrite/rules.h"

void onv_rewrite_assign(onv_edit *e)
{
    for (uint32_t i = 0; i < e->nodes.count; i++)
        if (!e->nodes.at[i].is_removed) e->nodes.at[i].provider = ONV_PROVIDER_CUDA;
}
