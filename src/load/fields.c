#include "load/scan.h"

#include <string.h>

static const char *const names[ONV_MSG_COUNT] = {
    [ONV_MSG_MODEL] = "ModelProto",
    [ONV_MSG_OPSET] = "OperatorSetIdProto",
    [ONV_MSG_PAIR] = "StringStringEntryProto",
    [ONV_MSG_GRAPH] = "GraphProto",
    [ONV_MSG_NODE] = "NodeProto",
    [ONV_MSG_ATTRIBUTE] = "AttributeProto",
    [ONV_MSG_VALUE_INFO] = "ValueInfoProto",
    [ONV_MSG_FUNCTION] = "FunctionProto",
    [ONV_MSG_TENSOR] = "TensorProto",
    [ONV_MSG_SPARSE_TENSOR] = "SparseTensorProto",
    [ONV_MSG_SHAPE] = "TensorShapeProto",
    [ONV_MSG_DIMENSION] = "TensorShapeProto.Dimension",
    [ONV_MSG_TYPE] = "TypeProto",
    [ONV_MSG_TYPE_TENSOR] = "TypeProto.Tensor",
    [ONV_MSG_TYPE_SEQUENCE] = "TypeProto.Sequence",
    [ONV_MSG_TYPE_MAP] = "TypeProto.Map",
    [ONV_MSG_TYPE_OPAQUE] = "TypeProto.Opaque",
};

const onv_field onv_fields[ONV_MSG_COUNT][ONV_FIELD_MOST + 1] = {
#define FIELD(message, number, name, use, submessage)                                              \
    [ONV_MSG_##message][number] = {ONV_USE_##use, submessage},
#include "load/fields.def"
};

/* For messages alone, so these have no pointers, which take 16 bytes for each number of each message. */
static const struct {
    uint16_t place; /* in onv_fields */
    char name[20];
} field_names[] = {
#define FIELD(message, number, name, use, submessage)                                              \
    {ONV_MSG_##message * (ONV_FIELD_MOST + 1) + (number), #name},
#include "load/fields.def"
};

const char *onv_walk_field_name(const onv_item *it)
{
    for (size_t i = 0; i < sizeof field_names / sizeof field_names[0]; i++)
        if (it->field == onv_fields[0] + field_names[i].place) return field_names[i].name;
    return "an unknown field";
}

const char *onv_message_name(onv_message message)
{
    return names[message];
}

/* --- Notes ------------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    onv_message owner;
} notes[ONV_NOTED_COUNT] = {
    [ONV_NOTED_SCOPES] = {"pkg.torch.onnx.name_scopes", ONV_MSG_NODE},
    [ONV_NOTED_CLASSES] = {"pkg.torch.onnx.class_hierarchy", ONV_MSG_NODE},
    [ONV_NOTED_TRACE] = {"pkg.torch.onnx.stack_trace", ONV_MSG_NODE},
    [ONV_NOTED_CALL] = {"pkg.torch.onnx.fx_node", ONV_MSG_NODE},
    [ONV_NOTED_RULES] = {"pkg.onnxscript.rewriter.rule_name", ONV_MSG_NODE},
    [ONV_NOTED_ROLE] = {"pkg.torch.export.graph_signature.InputSpec.kind", ONV_MSG_VALUE_INFO},
    [ONV_NOTED_FOLDED] = {"pkg.onnxscript.optimizer.folded_from", ONV_MSG_VALUE_INFO},
    [ONV_NOTED_SIGNATURE] = {"pkg.torch.export.ExportedProgram.graph_signature", ONV_MSG_GRAPH},
};

const char *onv_note_key(onv_note note)
{
    return notes[note].key;
}

onv_message onv_note_owner(onv_note note)
{
    return notes[note].owner;
}
