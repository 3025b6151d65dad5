#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "load/build.h"
#include "load/limits.h"

/* The node whose attribute is being built, for its subgraphs. */
typedef struct attr_site {
    onv_builder *b;
    const onv_scope *scope;   /* the node's */
    const onv_scope *closure; /* the attribute's own: another where a call passed it on */
    const char *path;         /* of the node */
    onv_node_id node;
} attr_site;

/* A list of which the scan kept only the beginning (scan.h) has its length and no elements. */
static onv_status take_count(const attr_site *site, const onv_scan_attr *record, onv_attr *attr,
                             bool *cut)
{
    const uint64_t most = site->b->limits->attr_elems;
    attr->count = record->lists[attr->kind - ONV_ATTR_FLOATS];
    *cut = attr->count > onv_limits_list(site->b->limits);
    if (attr->count <= most ||
        strcmp(onv_model_node(site->b->model, site->node)->domain, "ai.onnx.ml") == 0)
        return ONV_OK;
    return onv_fail(site->b->err, ONV_ERR_LIMIT,
                    "attribute '%s' has more than %" PRIu64
                    " elements, the limit" ONV_RAISE("attr-elems"),
                    attr->name, most);
}

/* Follows references to the attributes of the calls around. *attr is NULL where the call leaves an
 * optional attribute out: then the node does not have it either. */
static onv_status resolve(onv_builder *b, const onv_scan_attr **attr, const onv_scope **scope)
{
    while (*attr != NULL && (*attr)->reference[0] != '\0') {
        const onv_bindings *bindings = (*scope)->bindings;
        if (bindings == NULL)
            return onv_fail(b->err, ONV_ERR_MODEL,
                            "attribute '%s' refers to '%s' of a function, but stands in none",
                            (*attr)->name, (*attr)->reference);
        uint32_t index;
        if (!onv_ptr_map_get(&bindings->index, (*attr)->reference, &index)) {
            *attr = NULL;
        } else {
            *attr = bindings->list.at[index].attr;
            *scope = bindings->list.at[index].scope;
        }
    }
    return ONV_OK;
}

/* The fields of AttributeProto that have a value of that kind. */
static const uint8_t value_field[] = {[ONV_ATTR_FLOAT] = 2,          [ONV_ATTR_INT] = 3,
                                      [ONV_ATTR_STRING] = 4,         [ONV_ATTR_TENSOR] = 5,
                                      [ONV_ATTR_GRAPH] = 6,          [ONV_ATTR_FLOATS] = 7,
                                      [ONV_ATTR_INTS] = 8,           [ONV_ATTR_STRINGS] = 9,
                                      [ONV_ATTR_TENSORS] = 10,       [ONV_ATTR_GRAPHS] = 11,
                                      [ONV_ATTR_SPARSE_TENSOR] = 22, [ONV_ATTR_SPARSE_TENSORS] = 23,
                                      [ONV_ATTR_TYPE_PROTO] = 14,    [ONV_ATTR_TYPE_PROTOS] = 15};
enum { ATTR_TYPE = 20 };

static bool has_value(const onv_scan_attr *record, onv_wire_span message, onv_attr_kind kind)
{
    onv_wire_field f;
    switch (kind) {
    case ONV_ATTR_GRAPH: return record->graph.count > 0;
    case ONV_ATTR_GRAPHS: return record->graphs.count > 0;
    case ONV_ATTR_FLOATS:
    case ONV_ATTR_INTS:
    case ONV_ATTR_STRINGS: return record->lists[kind - ONV_ATTR_FLOATS] > 0;
    default: return onv_wire_find(message, value_field[kind], &f);
    }
}

/* Files of IR 1 do not say which field counts: the one that is there. */
static onv_status find_kind(const attr_site *site, const onv_scan_attr *record,
                            onv_wire_span message, onv_attr *attr)
{
    onv_wire_field f;
    const bool says = onv_wire_find(message, ATTR_TYPE, &f);
    const int32_t type = says ? (int32_t)onv_wire_number(&f) : ONV_ATTR_UNDEFINED;
    if (type < 0 || type > ONV_ATTR_TYPE_PROTOS)
        return onv_fail(site->b->err, ONV_ERR_MODEL, "attribute '%s' has the unknown type %d",
                        attr->name, (int)type);
    attr->kind = (uint8_t)type;
    for (int kind = ONV_ATTR_FLOAT;
         attr->kind == ONV_ATTR_UNDEFINED && kind <= ONV_ATTR_TYPE_PROTOS; kind++)
        if (has_value(record, message, (onv_attr_kind)kind)) attr->kind = (uint8_t)kind;
    return ONV_OK;
}

/* A list that is not cut, with as many elements as the scan counted: of numbers packed or one by one. */
static onv_status build_list_value(const attr_site *site, onv_wire_span message, onv_attr *attr)
{
    onv_arena *arena = &site->b->model->arena;
    const uint32_t count = attr->count;
    float *floats = NULL;
    int64_t *ints = NULL;
    const char **strings = NULL;
    if (attr->kind == ONV_ATTR_FLOATS) attr->floats = floats = ONV_ARENA_ARRAY(arena, float, count);
    if (attr->kind == ONV_ATTR_INTS) attr->ints = ints = ONV_ARENA_ARRAY(arena, int64_t, count);
    if (attr->kind == ONV_ATTR_STRINGS)
        attr->strings = strings = ONV_ARENA_ARRAY(arena, const char *, count);
    uint32_t n = 0;
    for (onv_wire_field f; !arena->failed && onv_wire_next(&message.at, message.end, &f);) {
        if (f.number != value_field[attr->kind]) continue;
        const unsigned char *at = f.value;
        if (strings != NULL && n < count)
            strings[n++] = onv_arena_strndup(arena, (const char *)at, (size_t)(f.end - at));
        for (; floats != NULL && n < count && at < f.end; at += sizeof *floats)
            memcpy(&floats[n++], at, sizeof *floats);
        at = onv_wire_numbers(&f);
        for (uint64_t number; ints != NULL && n < count && onv_varint_read(&at, f.end, &number);)
            ints[n++] = (int64_t)number;
    }
    return arena->failed ? onv_fail_memory(site->b->err) : ONV_OK;
}

/* One or several messages, dense or sparse. */
static onv_status build_tensors(const attr_site *site, onv_wire_span message, bool is_sparse,
                                onv_attr *attr)
{
    onv_tensor *list = ONV_ARENA_ARRAY(&site->b->model->arena, onv_tensor, attr->count);
    if (list == NULL) return onv_fail_memory(site->b->err);
    attr->tensor = list;
    for (onv_wire_field f; onv_wire_next(&message.at, message.end, &f);) {
        if (f.number != value_field[attr->kind]) continue;
        ONV_TRY(is_sparse ? onv_build_sparse(site->b, onv_wire_value(&f), list++)
                          : onv_build_tensor(site->b, onv_wire_value(&f), list++));
    }
    return ONV_OK;
}

static onv_status build_types(const attr_site *site, onv_wire_span message, onv_attr *attr)
{
    onv_type *list = ONV_ARENA_ARRAY(&site->b->model->arena, onv_type, attr->count);
    if (list == NULL) return onv_fail_memory(site->b->err);
    attr->type = list;
    for (onv_wire_field f; onv_wire_next(&message.at, message.end, &f);)
        if (f.number == value_field[attr->kind])
            ONV_TRY(
                onv_build_type(site->b, onv_wire_value(&f), attr->name, ONV_FREE_LOCAL, list++));
    return ONV_OK;
}

static onv_status build_graph(const attr_site *site, const onv_scan_graph *graph,
                              const onv_attr *attr, const char *suffix, onv_graph_id *id)
{
    const char *path;
    char tail[300];
    snprintf(tail, sizeof tail, "/%.255s%s", attr->name, suffix);
    ONV_TRY(onv_build_join(site->b, site->path, tail, &path));
    return onv_build_graph(site->b, graph, site->closure, site->scope, site->node, attr->name, path,
                           id);
}

static onv_status build_graphs(const attr_site *site, onv_record_list graphs, onv_attr *attr)
{
    onv_graph_id *list = ONV_ARENA_ARRAY(&site->b->model->arena, onv_graph_id, graphs.count);
    if (list == NULL) return onv_fail_memory(site->b->err);
    ONV_EACH_RECORD(graph, site->b->scan->graphs, graphs)
    {
        char suffix[24];
        snprintf(suffix, sizeof suffix, "_%" PRIu32, attr->count);
        ONV_TRY(build_graph(site, graph, attr, suffix, &list[attr->count++]));
    }
    attr->graphs = list;
    return ONV_OK;
}

static uint32_t count_fields(onv_wire_span message, uint32_t number)
{
    uint32_t n = 0;
    for (onv_wire_field f; onv_wire_next(&message.at, message.end, &f);) n += f.number == number;
    return n;
}

/* The kinds whose value is a message, or several of one kind. */
static onv_status build_messages(const attr_site *site, const onv_scan_attr *record,
                                 onv_wire_span message, onv_attr *attr)
{
    bool is_sparse = attr->kind == ONV_ATTR_SPARSE_TENSOR || attr->kind == ONV_ATTR_SPARSE_TENSORS;
    const onv_scan_graph *graph = ONV_RECORD(site->b->scan->graphs, record->graph.first);
    bool has = true;
    attr->count = count_fields(message, value_field[attr->kind]); /* the skeleton has no graphs */
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_GRAPH:
        has = graph != NULL;
        if (has) ONV_TRY(build_graph(site, graph, attr, "", &attr->graph));
        break;
    case ONV_ATTR_GRAPHS: return build_graphs(site, record->graphs, attr);
    case ONV_ATTR_TYPE_PROTO: has = attr->count > 0; /* fall through */
    case ONV_ATTR_TYPE_PROTOS: ONV_TRY(build_types(site, message, attr)); break;
    case ONV_ATTR_TENSOR:
    case ONV_ATTR_SPARSE_TENSOR: has = attr->count > 0; /* fall through */
    default: ONV_TRY(build_tensors(site, message, is_sparse, attr));
    }
    if (has) return ONV_OK;
    return onv_fail(site->b->err, ONV_ERR_MODEL, "attribute '%s' says type %d but has no value",
                    attr->name, (int)attr->kind);
}

static onv_status read_attr(const attr_site *site, const onv_scan_attr *record, onv_attr *attr)
{
    onv_wire_span message;
    onv_wire_field f;
    onv_text text;
    bool cut = false;
    ONV_TRY(onv_build_message(site->b, record->value, &message));
    ONV_TRY(find_kind(site, record, message, attr));
    bool has = onv_wire_find(message, value_field[attr->kind], &f);
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_UNDEFINED: return ONV_OK;
    case ONV_ATTR_FLOAT:
        if (has) memcpy(&attr->f, f.value, sizeof attr->f);
        return ONV_OK;
    case ONV_ATTR_INT:
        if (has) attr->i = (int64_t)onv_wire_number(&f);
        return ONV_OK;
    case ONV_ATTR_STRING:
        text = onv_build_text_of(&f);
        attr->s = onv_arena_strndup(&site->b->model->arena, has ? text.at : "", text.length);
        return attr->s != NULL ? ONV_OK : onv_fail_memory(site->b->err);
    case ONV_ATTR_FLOATS:
    case ONV_ATTR_INTS:
    case ONV_ATTR_STRINGS:
        ONV_TRY(take_count(site, record, attr, &cut));
        return cut ? ONV_OK : build_list_value(site, message, attr);
    default: return build_messages(site, record, message, attr);
    }
}

/* --- The list of a node ------------------------------------------------------------------------ */

/* Tensors and graphs are made each time, and how many elements a list may have depends on the node. */
static bool may_be_shared(const onv_builder *b, const onv_attr *attr)
{
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_FLOAT:
    case ONV_ATTR_INT:
    case ONV_ATTR_STRING:
    case ONV_ATTR_FLOATS:
    case ONV_ATTR_INTS:
    case ONV_ATTR_STRINGS: return attr->count <= b->limits->attr_elems;
    default: return false;
    }
}

static onv_status build_list(onv_builder *b, const onv_scope *scope, onv_range attrs,
                             const char *path, onv_node_id id, onv_attr *list, bool *shared)
{
    uint32_t n = 0;
    *shared = true;
    for (uint32_t k = 0; k < attrs.count; k++) {
        const onv_scan_attr *attr = onv_scan_attr_of(b->scan, attrs, k), *value = attr;
        attr_site site = {.b = b, .scope = scope, .closure = scope, .path = path, .node = id};
        ONV_TRY(resolve(b, &value, &site.closure));
        *shared = *shared && value == attr;
        if (value == NULL) continue;
        list[n].name = attr->name;
        ONV_TRY(read_attr(&site, value, &list[n]));
        *shared = *shared && may_be_shared(b, &list[n]);
        n++;
    }
    onv_model_node(b->model, id)->n_attrs = n;
    return ONV_OK;
}

onv_status onv_build_attrs(onv_builder *b, const onv_scope *scope, const onv_scan_node *record,
                           const char *path, onv_node_id id)
{
    const onv_range attrs = record->attrs;
    onv_built_attrs *built = &b->built.attrs[onv_hash_u64(attrs.first) % ONV_BUILT_LATELY];
    if (attrs.count == 0) return ONV_OK;
    if (built->attrs.count == attrs.count && built->attrs.first == attrs.first) {
        onv_model_node(b->model, id)->attrs = built->list;
        onv_model_node(b->model, id)->n_attrs = attrs.count;
        return ONV_OK;
    }
    bool shared;
    onv_attr *list = ONV_ARENA_ARRAY(&b->model->arena, onv_attr, attrs.count);
    if (list == NULL) return onv_fail_memory(b->err);
    ONV_TRY(build_list(b, scope, attrs, path, id, list, &shared));
    onv_model_node(b->model, id)->attrs = list;
    if (shared) *built = (onv_built_attrs){attrs, list};
    return ONV_OK;
}
