#include "eager/optimizer.h"

#include <string.h>

#include "base/nearest.h"

static uint32_t no_state(const onv_parameter *p, uint64_t bytes[ONV_MAX_STATES])
{
    (void)p;
    (void)bytes;
    return 0;
}

static uint32_t one_state(const onv_parameter *p, uint64_t bytes[ONV_MAX_STATES])
{
    bytes[0] = p->bytes;
    return 1;
}

static uint32_t two_states(const onv_parameter *p, uint64_t bytes[ONV_MAX_STATES])
{
    bytes[0] = bytes[1] = p->bytes;
    return 2;
}

/* torch.optim.Adafactor: a row and a column of the last two dims for matrices, else the whole. */
static uint32_t factored(const onv_parameter *p, uint64_t bytes[ONV_MAX_STATES])
{
    if (p->rank < 2 || p->elems == 0) return one_state(p, bytes);
    bytes[0] = p->bytes / (uint64_t)p->dims[p->rank - 1];
    bytes[1] = p->bytes / (uint64_t)p->dims[p->rank - 2];
    return 2;
}

/* bitsandbytes: two moments of one byte an element, each with a float32 scale for every 256
 * elements; tensors below 4096 elements keep float32 moments. */
static uint32_t eight_bit(const onv_parameter *p, uint64_t bytes[ONV_MAX_STATES])
{
    if (p->elems < 4096) {
        bytes[0] = bytes[1] = p->elems * sizeof(float);
        return 2;
    }
    bytes[0] = bytes[1] = p->elems;
    bytes[2] = bytes[3] = (p->elems + 255) / 256 * sizeof(float);
    return 4;
}

const onv_optimizer onv_optimizers[] = {
#define OPTIMIZER(id, about, kept, ...)                                                            \
    {.name = #id, .summary = (about), .states = (kept), __VA_ARGS__},
#include "eager/optimizers.def"
};
const size_t onv_n_optimizers = sizeof onv_optimizers / sizeof onv_optimizers[0];

const onv_optimizer *onv_optimizer_find(const char *name)
{
    for (size_t i = 0; i < onv_n_optimizers; i++)
        if (onv_is_name(name, strlen(name), onv_optimizers[i].name)) return &onv_optimizers[i];
    return NULL;
}

bool onv_optimizer_temps_of(const onv_optimizer *optimizer, onv_optimizer_impl impl, bool decays,
                            onv_optimizer_temps *temps)
{
    bool is_sgd = optimizer->has_fused && optimizer->temp_lists == 0;
    bool has_lists = is_sgd || optimizer->temp_lists > 0;
    onv_optimizer_temps lists = {.lists = optimizer->temp_lists + (is_sgd && decays)};
    onv_optimizer_temps one_by_one = {.each = optimizer->loop_each + (is_sgd && decays),
                                      .keeps = optimizer->loop_keeps};
    *temps = has_lists ? lists : one_by_one;
    switch (impl) {
    case ONV_IMPL_DEFAULT: return true;
    case ONV_IMPL_FOREACH: return has_lists;
    case ONV_IMPL_FUSED:
        *temps =
            (onv_optimizer_temps){.counter_bytes = optimizer->counts_steps ? sizeof(float) : 0};
        return optimizer->has_fused;
    case ONV_IMPL_FOR_LOOP: *temps = one_by_one; return true;
    }
    return false;
}
