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

/* The fields of AttributeProto with tensors. */
enum { TENSOR = 5, TENSORS = 10, SPARSE_TENSOR = 22, SPARSE_TENSORS = 23 };

static size_t count_tensors(const attr_site *site, const onv_scan_attr *record, uint8_t field)
{
    size_t n = 0;
    ONV_EACH_RECORD(tensor, site->b->scan->tensors, record->tensors) n += tensor->field == field;
    return n;
}

/* Files of IR 1 do not say which field counts: the one that is there. */
static onv_attr_kind kind_of(const attr_site *site, const onv_scan_attr *record,
                             const Onnx__AttributeProto *pb)
{
    if (pb->has_type && pb->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return (onv_attr_kind)pb->type;
    if (pb->has_f) return ONV_ATTR_FLOAT;
    if (pb->has_i) return ONV_ATTR_INT;
    if (pb->has_s) return ONV_ATTR_STRING;
    if (count_tensors(site, record, TENSOR) > 0) return ONV_ATTR_TENSOR;
    if (record->graph.count > 0) return ONV_ATTR_GRAPH;
    if (pb->n_floats > 0) return ONV_ATTR_FLOATS;
    if (pb->n_ints > 0) return ONV_ATTR_INTS;
    if (pb->n_strings > 0) return ONV_ATTR_STRINGS;
    if (count_tensors(site, record, TENSORS) > 0) return ONV_ATTR_TENSORS;
    if (record->graphs.count > 0) return ONV_ATTR_GRAPHS;
    if (count_tensors(site, record, SPARSE_TENSOR) > 0) return ONV_ATTR_SPARSE_TENSOR;
    if (count_tensors(site, record, SPARSE_TENSORS) > 0) return ONV_ATTR_SPARSE_TENSORS;
    if (pb->tp != NULL) return ONV_ATTR_TYPE_PROTO;
    if (pb->n_type_protos > 0) return ONV_ATTR_TYPE_PROTOS;
    return ONV_ATTR_UNDEFINED;
}

static onv_status build_strings(const attr_site *site, const ProtobufCBinaryData *strings, size_t n,
                                onv_attr *attr)
{
    onv_arena *arena = &site->b->model->arena;
    const char **list = ONV_ARENA_ARRAY(arena, const char *, n);
    if (list == NULL) return onv_fail_memory(site->b->err);
    for (size_t i = 0; i < n; i++) {
        list[i] = onv_arena_strndup(arena, (const char *)strings[i].data, strings[i].len);
        if (list[i] == NULL) return onv_fail_memory(site->b->err);
    }
    attr->strings = list;
    return ONV_OK;
}

static onv_status build_tensors(const attr_site *site, const onv_scan_attr *record, uint8_t field,
                                onv_attr *attr)
{
    const size_t n = count_tensors(site, record, field);
    onv_tensor *list = ONV_ARENA_ARRAY(&site->b->model->arena, onv_tensor, n);
    if (list == NULL) return onv_fail_memory(site->b->err);
    ONV_EACH_RECORD(tensor, site->b->scan->tensors, record->tensors)
    {
        if (tensor->field != field) continue;
        ONV_TRY((field >= SPARSE_TENSOR ? onv_build_sparse
                                        : onv_build_tensor)(site->b, tensor, &list[attr->count++]));
    }
    attr->tensor = list;
    return ONV_OK;
}

static onv_status build_types(const attr_site *site, Onnx__TypeProto *const *types, size_t n,
                              onv_attr *attr)
{
    onv_type *list = ONV_ARENA_ARRAY(&site->b->model->arena, onv_type, n);
    if (list == NULL) return onv_fail_memory(site->b->err);
    for (size_t i = 0; i < n; i++)
        ONV_TRY(onv_build_type(site->b, types[i], attr->name, ONV_FREE_LOCAL, &list[i]));
    attr->type = list;
    attr->count = (uint32_t)n;
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

/* The kinds whose value is a message, a list or a string. */
static onv_status build_value(const attr_site *site, const onv_scan_attr *record,
                              const Onnx__AttributeProto *pb, onv_attr *attr)
{
    onv_arena *arena = &site->b->model->arena;
    size_t n = 1; /* values, of the kinds that have one */
    bool cut = false;
    if (attr->kind >= ONV_ATTR_FLOATS && attr->kind <= ONV_ATTR_STRINGS)
        ONV_TRY(take_count(site, record, attr, &cut));
    if (cut) return ONV_OK;
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_STRING:
        attr->s = onv_arena_strndup(arena, pb->has_s ? (const char *)pb->s.data : "",
                                    pb->has_s ? pb->s.len : 0);
        break;
    case ONV_ATTR_FLOATS:
        attr->floats = onv_arena_copy(arena, pb->floats, pb->n_floats * sizeof *pb->floats);
        break;
    case ONV_ATTR_INTS:
        attr->ints = onv_arena_copy(arena, pb->ints, pb->n_ints * sizeof *pb->ints);
        break;
    case ONV_ATTR_STRINGS: return build_strings(site, pb->strings, pb->n_strings, attr);
    case ONV_ATTR_TENSOR:
    case ONV_ATTR_SPARSE_TENSOR:
        ONV_TRY(build_tensors(site, record, attr->kind == ONV_ATTR_TENSOR ? TENSOR : SPARSE_TENSOR,
                              attr));
        n = attr->count;
        break;
    case ONV_ATTR_GRAPH: {
        const onv_scan_graph *graph = ONV_RECORD(site->b->scan->graphs, record->graph.first);
        n = graph != NULL;
        if (n > 0) ONV_TRY(build_graph(site, graph, attr, "", &attr->graph));
        break;
    }
    case ONV_ATTR_TYPE_PROTO:
        n = pb->tp != NULL;
        ONV_TRY(build_types(site, &pb->tp, n, attr));
        break;
    case ONV_ATTR_TENSORS: return build_tensors(site, record, TENSORS, attr);
    case ONV_ATTR_SPARSE_TENSORS: return build_tensors(site, record, SPARSE_TENSORS, attr);
    case ONV_ATTR_GRAPHS: return build_graphs(site, record->graphs, attr);
    case ONV_ATTR_TYPE_PROTOS: return build_types(site, pb->type_protos, pb->n_type_protos, attr);
    default: break;
    }
    if (arena->failed) return onv_fail_memory(site->b->err);
    if (n > 0) return ONV_OK;
    return onv_fail(site->b->err, ONV_ERR_MODEL, "attribute '%s' says type %d but has no value",
                    attr->name, (int)attr->kind);
}

static onv_status unpack_attr(const attr_site *site, const onv_scan_attr *record, onv_attr *attr)
{
    const ProtobufCMessage *message;
    ONV_TRY(onv_build_unpack(site->b, record->value, &onnx__attribute_proto__descriptor, &message));
    const Onnx__AttributeProto *pb = (const Onnx__AttributeProto *)message;
    attr->kind = (uint8_t)kind_of(site, record, pb);
    if (pb->has_type &&
        (pb->type < 0 || pb->type > ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTOS))
        return onv_fail(site->b->err, ONV_ERR_MODEL, "attribute '%s' has the unknown type %d",
                        attr->name, (int)pb->type);
    if (attr->kind == ONV_ATTR_FLOAT) attr->f = pb->f;
    if (attr->kind == ONV_ATTR_INT) attr->i = pb->i;
    return build_value(site, record, pb, attr);
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
        ONV_TRY(unpack_attr(&site, value, &list[n]));
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
    onv_built_attrs *built = &b->built[onv_hash_u64(attrs.first) % ONV_BUILT_LATELY];
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
