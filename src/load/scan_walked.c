/* Messages that were walked lately. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "load/scan_walk.h"

/* A place is no more than a guess, so no key is needed: what collides is walked again. */
static size_t place_of(onv_message message, const unsigned char *data, size_t bytes)
{
    uint64_t mixed = message, word;
    for (; bytes > 0; data += sizeof word, bytes -= sizeof word) {
        const size_t part = bytes < sizeof word ? bytes : sizeof word;
        word = 0;
        memcpy(&word, data, part);
        mixed = (mixed ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        mixed ^= mixed >> 32;
        if (part < sizeof word) break;
    }
    return (size_t)(mixed % ONV_WALKED_LATELY);
}

static onv_status find(onv_walk *w, onv_message message, uint64_t at, uint64_t bytes,
                       const unsigned char **data, onv_walked **walked)
{
    if (w->walked == NULL) w->walked = onv_heap_calloc(ONV_WALKED_LATELY, sizeof *w->walked);
    if (w->walked == NULL) return onv_fail_memory(w->err);
    ONV_TRY(onv_source_view(w->source, at, bytes, data, w->err));
    *walked = &w->walked[place_of(message, *data, (size_t)bytes)];
    return ONV_OK;
}

onv_status onv_walk_recall(onv_walk *w, onv_message message, uint64_t bytes, bool *known)
{
    onv_walked *walked;
    const unsigned char *data;
    *known = false;
    if (message != ONV_MSG_ATTRIBUTE && message != ONV_MSG_TYPE) return ONV_OK;
    ONV_TRY(find(w, message, w->at, bytes, &data, &walked));
    *known = walked->message == message && walked->count == bytes &&
             memcmp(walked->bytes, data, walked->count) == 0;
    if (!*known) return ONV_OK;
    if (message == ONV_MSG_ATTRIBUTE) return onv_walk_list_attr(w, walked->attr);
    w->scan->values.at[onv_walk_top(w)->record].type = walked->type;
    return ONV_OK;
}

/* Each owner of an attribute with graphs has graphs of its own, and payloads are found where they lie. */
static bool is_own(const onv_walk *w, const onv_frame *top)
{
    const onv_scan_attr *attr = &w->scan->attrs.at[top->record];
    return top->n_chunks < w->scan->chunks.count || attr->graph.count > 0 || attr->graphs.count > 0;
}

onv_status onv_walk_remember(onv_walk *w)
{
    const onv_frame *top = onv_walk_top(w);
    const onv_message message = (onv_message)top->message;
    const uint64_t bytes = top->end - top->begin;
    const unsigned char *data;
    onv_walked *walked;
    if (bytes == 0 || bytes > ONV_WALKED_BYTES || top->has_length) return ONV_OK;
    if (message == ONV_MSG_ATTRIBUTE && is_own(w, top)) return ONV_OK;
    ONV_TRY(find(w, message, top->begin, bytes, &data, &walked));
    walked->message = (uint8_t)message;
    walked->count = (uint8_t)bytes;
    memcpy(walked->bytes, data, (size_t)bytes);
    if (message == ONV_MSG_ATTRIBUTE)
        walked->attr = (onv_record)(top->record + 1);
    else
        walked->type = w->scan->values.at[top->record].type;
    return ONV_OK;
}
