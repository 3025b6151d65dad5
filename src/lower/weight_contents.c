/* What weights contain, where that tells what they are: few of their bytes are ever read. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "load/load.h"
#include "lower/lowering.h"

static bool is_uniform(const unsigned char *data, uint64_t elems, size_t each)
{
    for (uint64_t i = 1; i < elems; i++)
        if (memcmp(data, data + i * each, each) != 0) return false;
    return true;
}

const unsigned char *onv_weight_head(onv_emitter *e, const onv_tensor *tensor, size_t bytes,
                                     unsigned char **buffer)
{
    const unsigned char *data = NULL;
    onv_error ignored = {
        0}; /* a file of weights that is cut off, say: its contents are not known */
    *buffer = NULL;
    if (e->status != ONV_OK) return NULL;
    onv_status status = onv_load_head(e->model, tensor, bytes, &data, buffer, &ignored);
    if (status == ONV_ERR_MEMORY) e->status = onv_fail_memory(e->err);
    return status == ONV_OK ? data : NULL;
}

bool onv_weight_may_be_uniform(onv_emitter *e, const onv_tensor *tensor, size_t most_elsewhere)
{
    bool is_elsewhere = tensor->payload.kind == ONV_PAYLOAD_EXTERNAL;
    unsigned char *buffer;
    if (tensor->elems < 2 || tensor->bytes % tensor->elems != 0 ||
        (is_elsewhere && tensor->bytes > most_elsewhere))
        return true;
    const unsigned char *data = onv_weight_head(e, tensor, (size_t)tensor->bytes, &buffer);
    bool may =
        data == NULL || is_uniform(data, tensor->elems, (size_t)(tensor->bytes / tensor->elems));
    onv_heap_free(buffer);
    return may;
}

/* Does the tensor's first block along the dim come again? */
static bool comes_again(const unsigned char *data, size_t known, uint64_t block)
{
    return block <= known / 2 && memcmp(data, data + block, (size_t)block) == 0;
}

uint32_t onv_weight_repeated_dims(onv_emitter *e, const onv_tensor *tensor)
{
    enum { MOST = 4 << 20, PER_WORK = 256 };
    unsigned char *buffer;
    uint32_t repeated = 0;
    size_t known = tensor->bytes < MOST ? (size_t)tensor->bytes : MOST;
    if (tensor->elems == 0 || tensor->bytes < tensor->elems || tensor->type.rank < 2 ||
        tensor->type.rank > ONV_MAX_RANK || !onv_work(1 + known / PER_WORK))
        return 0;
    const unsigned char *data = onv_weight_head(e, tensor, known, &buffer);
    size_t each = (size_t)(tensor->bytes / tensor->elems);
    bool may = data != NULL && !is_uniform(data, known / each, each);
    uint64_t block = tensor->bytes;
    for (int i = 0; i < tensor->type.rank && may; i++) {
        uint64_t count = (uint64_t)tensor->type.dims[i].raw;
        block /= count;
        if (count > 1 && comes_again(data, known, block)) repeated |= UINT32_C(1) << i;
    }
    onv_heap_free(buffer);
    return repeated;
}
