/* What weights contain, where that tells what they are: few of their bytes are ever read. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "load/load.h"
#include "lower/lowering.h"

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
    size_t bytes = (size_t)tensor->bytes, each = bytes / (size_t)tensor->elems;
    /* Each is as the one behind it. */
    bool may = data == NULL || memcmp(data, data + each, bytes - each) == 0;
    onv_heap_free(buffer);
    return may;
}
