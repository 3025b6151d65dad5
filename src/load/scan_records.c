#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "ir/model.h"
#include "load/limits.h"
#include "load/scan.h"
#include "load/text.h"

/* A length in the skeleton is known only when its message is finished, so it gets a varint of fixed
 * width, which readers accept, and is filled in then. */
enum { LENGTH_BYTES = 5 };

/* Fields that decide where a message belongs. */
enum { GRAPH_NODE = 1, GRAPH_INIT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT, GRAPH_DECLARED };
enum { FUNCTION_NODE = 7, FUNCTION_OPSETS = 9 };
enum { NODE_NAME = 3, ATTR_GRAPH = 6, ATTR_GRAPHS = 11 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, SPARSE_DIMS = 3, PAIR_KEY = 1 };
enum { LOCATION_EXTERNAL = 1 };

/* --- Adding records ---------------------------------------------------------------------------- */

static onv_status too_many(onv_walk *w, const char *what)
{
    return onv_fail(w->err, ONV_ERR_LIMIT,
                    "the model has more than %" PRIu32 " %s, which no option raises",
                    ONV_RECORDS_MOST, what);
}

/* Adds an element to a vector of records; *record is its index. */
#define PUSH(w, records, element, record, what)                                                    \
    do {                                                                                           \
        if ((records)->count >= ONV_RECORDS_MOST) return too_many(w, what);                        \
        if (!onv_vec_push(records, element)) return onv_fail_memory((w)->err);                     \
        *(record) = (uint32_t)((records)->count - 1);                                              \
    } while (0)

/* The same, and puts it to the end of a list, which lies in another vector. */
#define ADD(w, records, element, list, record, what)                                               \
    do {                                                                                           \
        PUSH(w, records, element, record, what);                                                   \
        if ((list)->count++ == 0)                                                                  \
            (list)->first = *(record) + 1;                                                         \
        else                                                                                       \
            (records)->at[(list)->last - 1].next = *(record) + 1;                                  \
        (list)->last = *(record) + 1;                                                              \
    } while (0)

static onv_status count_up(onv_walk *w, uint64_t count, uint64_t limit, const char *what)
{
    if (count <= limit) return ONV_OK;
    return onv_fail(w->err, ONV_ERR_LIMIT,
                    "the model has more than %" PRIu64 " %s, the limit; --limit %s=N raises it",
                    limit, what, what);
}

static onv_status count_value(onv_walk *w)
{
    return count_up(w, ++w->scan->n_values, w->limits->values, "values");
}

static onv_status list_attr(onv_walk *w, onv_record attr)
{
    return onv_vec_push(&w->attrs, attr) ? ONV_OK : onv_fail_memory(w->err);
}

/* The list of the record around that a message of this field belongs to. */
static onv_record_list *list_of(onv_scan *scan, const onv_frame *parent, uint32_t number)
{
    if (parent->message == ONV_MSG_ATTRIBUTE) {
        onv_scan_attr *attr = &scan->attrs.at[parent->record];
        return number == ATTR_GRAPH    ? &attr->graph
               : number == ATTR_GRAPHS ? &attr->graphs
                                       : &attr->tensors;
    }
    if (parent->message == ONV_MSG_TENSOR || parent->message == ONV_MSG_SPARSE_TENSOR)
        return &scan->tensors.at[parent->record].parts;
    if (parent->message == ONV_MSG_FUNCTION) {
        onv_scan_function *function = &scan->functions.at[parent->record];
        return number == FUNCTION_NODE     ? &function->nodes
               : number == FUNCTION_OPSETS ? &function->opsets
                                           : &function->declared;
    }
    onv_scan_graph *graph = &scan->graphs.at[parent->record];
    switch (number) {
    case GRAPH_NODE: return &graph->nodes;
    case GRAPH_INIT: return &graph->initializers;
    case GRAPH_INPUT: return &graph->inputs;
    case GRAPH_OUTPUT: return &graph->outputs;
    case GRAPH_DECLARED: return &graph->declared;
    default: return &graph->sparse_initializers;
    }
}

/* The record of a message that stands in another record; *record is its index among those of its kind. */
static onv_status add_record(onv_walk *w, const onv_frame *parent, const onv_item *it,
                             uint32_t *record)
{
    onv_scan *scan = w->scan;
    const onv_scan_node node = {.name = ""};
    const uint32_t number = it->number;
    switch ((onv_message)it->field->message) {
    case ONV_MSG_GRAPH: {
        onv_record_list file = {0};
        const bool is_main = parent->message == ONV_MSG_MODEL;
        onv_record_list *list = is_main ? &file : list_of(scan, parent, number);
        ADD(w, &scan->graphs, (onv_scan_graph){0}, list, record, "graphs");
        if (is_main) scan->main_graph = file.first;
        return ONV_OK;
    }
    case ONV_MSG_NODE:
        ONV_TRY(count_up(w, scan->nodes.count + 1, w->limits->nodes, "nodes"));
        ADD(w, &scan->nodes, node, list_of(scan, parent, number), record, "nodes");
        return ONV_OK;
    case ONV_MSG_ATTRIBUTE: {
        const char *empty = onv_string_at(w->strings, 0);
        const onv_scan_attr attr = {.name = empty, .reference = empty};
        PUSH(w, &scan->attrs, attr, record, "attributes");
        return list_attr(w, *record + 1);
    }
    case ONV_MSG_VALUE_INFO: {
        const onv_scan_value value = {.role = ONV_ROLE_NOT_NOTED};
        bool is_input = parent->message == ONV_MSG_GRAPH && number == GRAPH_INPUT;
        if (is_input) ONV_TRY(count_value(w));
        ADD(w, &scan->values, value, list_of(scan, parent, number), record, "declared values");
        return ONV_OK;
    }
    case ONV_MSG_FUNCTION:
        PUSH(w, &scan->functions, (onv_scan_function){.head = node}, record, "functions");
        return ONV_OK;
    case ONV_MSG_TYPE: *record = parent->record; return ONV_OK; /* of a value */
    case ONV_MSG_TENSOR:
    case ONV_MSG_SPARSE_TENSOR: {
        const onv_scan_tensor tensor = {.field = (uint8_t)number};
        if (parent->message == ONV_MSG_GRAPH) ONV_TRY(count_value(w));
        ADD(w, &scan->tensors, tensor, list_of(scan, parent, number), record, "initializers");
        return ONV_OK;
    }
    case ONV_MSG_PAIR: {
        const onv_scan_pair pair = {.key = "", .value = ""};
        ADD(w, &scan->pairs, pair, list_of(scan, parent, number), record, "external data");
        return ONV_OK;
    }
    default:
        ADD(w, &scan->parts, (onv_scan_part){0}, list_of(scan, parent, number), record, "opsets");
        return ONV_OK;
    }
}

/* --- Filling records --------------------------------------------------------------------------- */

static onv_status push_name(onv_walk *w, onv_names *names, onv_name name)
{
    return onv_vec_push(names, name) ? ONV_OK : onv_fail_memory(w->err);
}

/* The record of the node or function on top. */
static onv_scan_node *node_of(onv_walk *w)
{
    const onv_frame *top = onv_walk_top(w);
    return top->message == ONV_MSG_NODE ? &w->scan->nodes.at[top->record]
                                        : &w->scan->functions.at[top->record].head;
}

/* `number` is that of NodeProto's field. */
static onv_status node_name(onv_walk *w, uint32_t number, const char *name)
{
    onv_scan_node *node = node_of(w);
    if (number == NODE_NAME) {
        node->name = name;
        return ONV_OK;
    }
    const onv_name interned = onv_string_number(name);
    switch (number) {
    case 1: return push_name(w, &w->inputs, interned);
    case 2:
        if (onv_walk_top(w)->message == ONV_MSG_NODE) ONV_TRY(count_value(w));
        return push_name(w, &w->outputs, interned);
    case 4: node->op_type = interned; break;
    case 7: node->domain = strcmp(name, "ai.onnx") == 0 ? 0 : interned; break;
    default: node->overload = interned; break;
    }
    return ONV_OK;
}

onv_status onv_walk_name(onv_walk *w, const onv_item *it, const char *name)
{
    static const uint8_t of_function[] = {[1] = 4, [4] = 1, [5] = 2, [10] = 7, [13] = 8};
    const onv_frame *top = onv_walk_top(w);
    onv_scan *scan = w->scan;
    switch ((onv_message)top->message) {
    case ONV_MSG_NODE: return node_name(w, it->number, name);
    case ONV_MSG_FUNCTION: return node_name(w, of_function[it->number], name);
    case ONV_MSG_VALUE_INFO: scan->values.at[top->record].name = onv_string_number(name); break;
    case ONV_MSG_TENSOR: scan->tensors.at[top->record].name = onv_string_number(name); break;
    case ONV_MSG_PAIR: {
        onv_scan_pair *pair = &scan->pairs.at[top->record];
        *(it->number == PAIR_KEY ? &pair->key : &pair->value) = name;
        break;
    }
    default:
        if (it->number == 1)
            scan->attrs.at[top->record].name = name;
        else
            scan->attrs.at[top->record].reference = name;
    }
    return ONV_OK;
}

/* Dims follow each other. What stands between two of a sparse tensor, a part of it, has dims of its own. */
static onv_status add_dim(onv_walk *w, onv_scan_tensor *tensor, int64_t dim)
{
    onv_scan *scan = w->scan;
    const uint32_t n = tensor->rank;
    tensor->rank += n < UINT32_MAX;
    if (n >= ONV_MAX_RANK) return ONV_OK;
    if (n + 1 > ONV_RECORDS_MOST - scan->dims.count) return too_many(w, "dims");
    if (!onv_vec_reserve(&scan->dims, (size_t)n + 1)) return onv_fail_memory(w->err);
    if (tensor->first_dim + n != scan->dims.count) {
        memcpy(scan->dims.at + scan->dims.count, scan->dims.at + tensor->first_dim, n * sizeof dim);
        tensor->first_dim = (uint32_t)scan->dims.count;
        scan->dims.count += n;
    }
    scan->dims.at[scan->dims.count++] = dim;
    return ONV_OK;
}

onv_status onv_walk_number(onv_walk *w, const onv_item *it, uint64_t number)
{
    const onv_frame *top = onv_walk_top(w);
    onv_scan_tensor *tensor = &w->scan->tensors.at[top->record];
    if (it->number == (top->message == ONV_MSG_TENSOR ? TENSOR_DIMS : SPARSE_DIMS))
        return add_dim(w, tensor, (int64_t)number);
    if (it->number == TENSOR_TYPE)
        tensor->dtype = (int32_t)number;
    else
        tensor->is_external = (int32_t)number == LOCATION_EXTERNAL;
    return ONV_OK;
}

/* Its payload is what was found since it began. Dims like those of the tensor before are that one's. */
static onv_status close_tensor(onv_walk *w, const onv_frame *top)
{
    onv_scan *scan = w->scan;
    if (scan->chunks.count > ONV_RECORDS_MOST) return too_many(w, "stretches of payload");
    onv_scan_tensor *tensor = &scan->tensors.at[top->record];
    tensor->chunks =
        (onv_range){(uint32_t)top->n_chunks, (uint32_t)(scan->chunks.count - top->n_chunks)};
    if (top->record == 0 || tensor->rank != tensor[-1].rank || tensor->rank > ONV_MAX_RANK)
        return ONV_OK;
    const int64_t *dims = scan->dims.at;
    const size_t bytes = tensor->rank * sizeof *dims;
    if (bytes == 0 || memcmp(dims + tensor->first_dim, dims + tensor[-1].first_dim, bytes) != 0)
        return ONV_OK;
    scan->dims.count = tensor->first_dim;
    tensor->first_dim = tensor[-1].first_dim;
    return ONV_OK;
}

/* The attributes gathered from `first` on: a list that an owner of lately has, too, or one of its own. */
static onv_status list_attrs(onv_walk *w, size_t first, onv_range *list)
{
    onv_records *lists = &w->scan->attr_lists;
    const onv_record *attrs = w->attrs.at + first;
    const size_t n = w->attrs.count - first;
    uint64_t mixed = 0;
    w->attrs.count = first;
    if (n == 0) return ONV_OK;
    for (size_t k = 0; k < n; k++) mixed = onv_hash_u64(mixed + attrs[k]);
    onv_range *lately = &w->attr_lists[mixed % ONV_WALKED_LATELY];
    if (lately->count != n || memcmp(lists->at + lately->first, attrs, n * sizeof *attrs) != 0) {
        if (n > ONV_RECORDS_MOST - lists->count) return too_many(w, "attributes");
        if (!onv_vec_reserve(lists, n)) return onv_fail_memory(w->err);
        memcpy(lists->at + lists->count, attrs, n * sizeof *attrs);
        *lately = (onv_range){(uint32_t)lists->count, (uint32_t)n};
        lists->count += n;
    }
    *list = *lately;
    return ONV_OK;
}

/* The names and attributes of a node or function from where they were gathered to where its record finds them. */
static onv_status close_node(onv_walk *w, const onv_frame *top)
{
    onv_scan_node *node = node_of(w);
    onv_names *inputs = &w->inputs, *outputs = &w->outputs, *names = &w->scan->names;
    const size_t n_in = inputs->count - top->n_inputs, n_out = outputs->count - top->n_outputs;
    if (n_in + n_out > ONV_RECORDS_MOST - names->count) return too_many(w, "inputs and outputs");
    if (!onv_vec_reserve(names, n_in + n_out)) return onv_fail_memory(w->err);
    node->names = (uint32_t)names->count;
    node->n_inputs = (uint32_t)n_in;
    node->n_outputs = (uint32_t)n_out;
    for (size_t i = 0; i < n_in; i++) names->at[names->count++] = inputs->at[top->n_inputs + i];
    for (size_t i = 0; i < n_out; i++) names->at[names->count++] = outputs->at[top->n_outputs + i];
    inputs->count = top->n_inputs;
    outputs->count = top->n_outputs;
    return list_attrs(w, top->n_attrs, &node->attrs);
}

onv_status onv_walk_add_note(onv_walk *w, onv_note note, uint64_t offset, const unsigned char *text,
                             uint64_t bytes)
{
    onv_scan *scan = w->scan;
    const onv_frame *top = onv_walk_top(w);
    if (note == ONV_NOTED_ROLE) {
        uint8_t *role = &scan->values.at[top->record].role;
        const onv_text kind = {(const char *)text, (size_t)bytes};
        if (onv_text_is(kind, "PARAMETER")) *role = ONV_ROLE_PARAMETER;
        if (onv_text_is(kind, "BUFFER")) *role = ONV_ROLE_BUFFER;
        return ONV_OK;
    }
    if (bytes > UINT32_MAX) return ONV_OK;
    if (note == ONV_NOTED_FOLDED) {
        onv_scan_value *value = &scan->values.at[top->record];
        value->folded_offset = offset;
        value->folded_bytes = (uint32_t)bytes;
        return ONV_OK;
    }
    onv_record *first = top->message == ONV_MSG_GRAPH ? &scan->graphs.at[top->record].notes
                                                      : &scan->nodes.at[top->record].notes;
    /* Of several of a kind the last one: an owner has one note of each at most. */
    for (onv_record r = *first; r != 0; r = scan->notes.at[r - 1].next) {
        onv_scan_note *other = &scan->notes.at[r - 1];
        if (other->note != note) continue;
        other->offset = offset;
        other->bytes = (uint32_t)bytes;
        return ONV_OK;
    }
    const onv_scan_note element = {
        .offset = offset, .bytes = (uint32_t)bytes, .note = (uint8_t)note, .next = *first};
    uint32_t record;
    PUSH(w, &scan->notes, element, &record, "notes");
    *first = record + 1;
    return ONV_OK;
}

/* --- Messages that were walked lately ---------------------------------------------------------- */

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

static onv_status find_walked(onv_walk *w, onv_message message, uint64_t at, uint64_t bytes,
                              const unsigned char **data, onv_walked **walked)
{
    if (w->walked == NULL) w->walked = onv_heap_alloc(ONV_WALKED_LATELY * sizeof *w->walked);
    if (w->walked == NULL) return onv_fail_memory(w->err);
    ONV_TRY(onv_source_view(w->source, at, bytes, data, w->err));
    *walked = &w->walked[place_of(message, *data, (size_t)bytes)];
    return ONV_OK;
}

/* Whether a message of such bytes, at w->at, was walked lately; then its owner has what was kept of that. */
static onv_status recall(onv_walk *w, onv_message message, uint64_t bytes, bool *known)
{
    onv_walked *walked;
    const unsigned char *data;
    *known = false;
    if (message != ONV_MSG_ATTRIBUTE && message != ONV_MSG_TYPE) return ONV_OK;
    ONV_TRY(find_walked(w, message, w->at, bytes, &data, &walked));
    *known = bytes > 0 && w->n_walked[walked - w->walked] == bytes && walked->message == message &&
             memcmp(walked->bytes, data, (size_t)bytes) == 0;
    if (!*known) return ONV_OK;
    if (message == ONV_MSG_ATTRIBUTE) return list_attr(w, walked->attr);
    w->scan->values.at[onv_walk_top(w)->record].type = walked->type;
    return ONV_OK;
}

/* Each owner of an attribute with graphs has graphs of its own, and payloads are found where they lie. */
static bool is_own(const onv_walk *w, const onv_frame *top)
{
    const onv_scan_attr *attr = &w->scan->attrs.at[top->record];
    return top->n_chunks < w->scan->chunks.count || attr->graph.count > 0 || attr->graphs.count > 0;
}

/* The message on top is walked. */
static onv_status remember(onv_walk *w)
{
    const onv_frame *top = onv_walk_top(w);
    const onv_message message = (onv_message)top->message;
    const uint64_t bytes = top->end - top->begin;
    const unsigned char *data;
    onv_walked *walked;
    if (bytes == 0 || bytes > ONV_WALKED_BYTES || top->has_length) return ONV_OK;
    if (message == ONV_MSG_ATTRIBUTE && is_own(w, top)) return ONV_OK;
    ONV_TRY(find_walked(w, message, top->begin, bytes, &data, &walked));
    walked->message = (uint8_t)message;
    w->n_walked[walked - w->walked] = (uint8_t)bytes;
    memcpy(walked->bytes, data, (size_t)bytes);
    if (message == ONV_MSG_ATTRIBUTE)
        walked->attr = (onv_record)(top->record + 1);
    else
        walked->type = w->scan->values.at[top->record].type;
    return ONV_OK;
}

/* --- Messages ---------------------------------------------------------------------------------- */

static bool is_record(onv_message message)
{
    return message == ONV_MSG_GRAPH || message == ONV_MSG_NODE || message == ONV_MSG_FUNCTION ||
           message == ONV_MSG_VALUE_INFO || message == ONV_MSG_TENSOR ||
           message == ONV_MSG_SPARSE_TENSOR || message == ONV_MSG_PAIR;
}

static onv_status step_into(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    onv_frame *parent = onv_walk_top(w);
    onv_message message = (onv_message)it->field->message;
    onv_frame *frame = &w->stack[w->depth];
    *frame = (onv_frame){
        .message = it->field->message,
        .begin = w->at,
        .end = w->at + bytes,
        .first = w->put_off.count,
        .graph = w->put_off.count,
        .n_inputs = w->inputs.count,
        .n_outputs = w->outputs.count,
        .n_attrs = w->attrs.count,
        .n_chunks = w->scan->chunks.count,
    };
    if (!is_record(message)) {
        frame->out = parent->out != NULL ? parent->out : &w->scan->skeleton;
        frame->has_length = parent->out != NULL;
        if (frame->has_length) {
            unsigned char head[ONV_VARINT_MOST_BYTES + LENGTH_BYTES] = {0};
            size_t n = onv_varint_write((uint64_t)it->number << 3 | ONV_WIRE_BYTES, head);
            ONV_TRY(onv_walk_put(w, frame->out, head, n + LENGTH_BYTES));
        }
        frame->start = frame->out->count;
    }
    if (!frame->has_length) ONV_TRY(add_record(w, parent, it, &frame->record));
    w->depth++;
    return ONV_OK;
}

onv_status onv_walk_enter(onv_walk *w, const onv_item *it, uint64_t bytes)
{
    onv_frame *top = onv_walk_top(w);
    if (it->field->use == ONV_USE_ONE) {
        if (top->seen & (uint32_t)1 << it->number) return onv_walk_damaged(w, it, "occurs twice");
        top->seen |= (uint32_t)1 << it->number;
    }
    if (w->depth == w->limits->nesting)
        return onv_fail(w->err, ONV_ERR_LIMIT,
                        "messages nested more than %" PRIu32
                        " deep, the limit (%s.%s at byte %" PRIu64 ")" ONV_RAISE("nesting"),
                        w->limits->nesting, onv_message_name(top->message), onv_walk_field_name(it),
                        it->tag);
    if (top->out == NULL && bytes <= ONV_WALKED_BYTES) {
        bool known;
        ONV_TRY(recall(w, (onv_message)it->field->message, bytes, &known));
        if (known) return ONV_OK;
    }
    if (top->message != ONV_MSG_ATTRIBUTE || it->field->message != ONV_MSG_GRAPH)
        return step_into(w, it, bytes);
    onv_put_off graph = {.offset = w->at, .bytes = bytes, .number = it->number};
    return onv_vec_push(&w->put_off, graph) ? ONV_OK : onv_fail_memory(w->err);
}

static void write_length(const onv_frame *top)
{
    size_t length = top->out->count - top->start;
    unsigned char *to = top->out->at + top->start - LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++) {
        to[i] = (unsigned char)((length & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
        length >>= 7;
    }
}

/* Where the record of a finished message finds it. */
static void set_span(onv_walk *w, const onv_frame *top)
{
    onv_scan *scan = w->scan;
    onv_span span = {(uint32_t)top->start, (uint32_t)(top->out->count - top->start)};
    if (top->message == ONV_MSG_ATTRIBUTE)
        scan->attrs.at[top->record].value = span;
    else if (top->message == ONV_MSG_TYPE)
        scan->values.at[top->record].type = span;
    else
        scan->parts.at[top->record].span = span;
}

/* The end of a message that goes to the skeleton. */
static void finish(onv_walk *w, const onv_frame *top)
{
    if (top->has_length)
        write_length(top);
    else if (w->depth > 1) /* the root has neither length nor record */
        set_span(w, top);
}

/* The next graph of the attribute on top, whose fields are done; *entered is false behind the last one. */
static onv_status enter_graph(onv_walk *w, bool *entered)
{
    onv_frame *top = onv_walk_top(w);
    *entered = top->graph < w->put_off.count;
    if (!*entered) {
        w->put_off.count = top->first;
        return ONV_OK;
    }
    onv_put_off graph = w->put_off.at[top->graph++];
    onv_item it = {.number = graph.number,
                   .field = onv_message_field(ONV_MSG_ATTRIBUTE, graph.number)};
    w->at = graph.offset;
    return step_into(w, &it, graph.bytes);
}

onv_status onv_walk_leave(onv_walk *w)
{
    onv_frame *top = onv_walk_top(w);
    bool entered = false;
    switch ((onv_message)top->message) {
    case ONV_MSG_NODE:
    case ONV_MSG_FUNCTION: ONV_TRY(close_node(w, top)); break;
    case ONV_MSG_TENSOR: ONV_TRY(close_tensor(w, top)); break;
    case ONV_MSG_GRAPH:
    case ONV_MSG_VALUE_INFO:
    case ONV_MSG_SPARSE_TENSOR:
    case ONV_MSG_PAIR: break;
    case ONV_MSG_ATTRIBUTE:
        if (top->graph == top->first) finish(w, top); /* before the first graph */
        ONV_TRY(enter_graph(w, &entered));
        if (entered) return ONV_OK;
        if (top->graph == top->first) ONV_TRY(remember(w));
        break;
    case ONV_MSG_TYPE:
        finish(w, top);
        ONV_TRY(remember(w));
        break;
    default: finish(w, top);
    }
    w->at = top->end;
    w->depth--;
    /* A graph that was put off: the attribute's own fields are behind us. */
    if (w->depth > 0 && onv_walk_top(w)->message == ONV_MSG_ATTRIBUTE &&
        top->message == ONV_MSG_GRAPH)
        w->at = onv_walk_top(w)->end;
    return ONV_OK;
}
