#include "load/fields.h"

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

/* Fields that are not listed are dropped. Names and numbers are those of proto/onnx.proto. */
const onv_field onv_fields[ONV_MSG_COUNT][ONV_FIELD_MOST + 1] =
    {
        [ONV_MSG_MODEL] =
            {
                [1] = {"ir_version", ONV_USE_VARINT, 0},
                [2] = {"producer_name", ONV_USE_STRING, 0},
                [3] = {"producer_version", ONV_USE_STRING, 0},
                [7] = {"graph", ONV_USE_ONE, ONV_MSG_GRAPH},
                [8] = {"opset_import", ONV_USE_MANY, ONV_MSG_OPSET},
                [25] = {"functions", ONV_USE_MANY, ONV_MSG_FUNCTION},
            },
        [ONV_MSG_OPSET] =
            {
                [1] = {"domain", ONV_USE_STRING, 0},
                [2] = {"version", ONV_USE_VARINT, 0},
            },
        [ONV_MSG_PAIR] =
            {
                [1] = {"key", ONV_USE_STRING, 0},
                [2] = {"value", ONV_USE_STRING, 0},
            },
        [ONV_MSG_GRAPH] =
            {
                [1] = {"node", ONV_USE_MANY, ONV_MSG_NODE},
                [5] = {"initializer", ONV_USE_MANY, ONV_MSG_TENSOR},
                [11] = {"input", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
                [12] = {"output", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
                [13] = {"value_info", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
                [15] = {"sparse_initializer", ONV_USE_MANY, ONV_MSG_SPARSE_TENSOR},
                [16] = {"metadata_props", ONV_USE_NOTES, 0},
            },
        [ONV_MSG_NODE] =
            {
                [1] = {"input", ONV_USE_NAME, 0},
                [2] = {"output", ONV_USE_NAME, 0},
                [3] = {"name", ONV_USE_NAME, 0},
                [4] = {"op_type", ONV_USE_NAME, 0},
                [5] = {"attribute", ONV_USE_MANY, ONV_MSG_ATTRIBUTE},
                [7] = {"domain", ONV_USE_NAME, 0},
                [8] = {"overload", ONV_USE_NAME, 0},
                [9] = {"metadata_props", ONV_USE_NOTES, 0},
            },
        [ONV_MSG_ATTRIBUTE] =
            {
                [1] = {"name", ONV_USE_NAME, 0},
                [2] = {"f", ONV_USE_FLOAT, 0},
                [3] = {"i", ONV_USE_VARINT, 0},
                [4] = {"s", ONV_USE_BYTES, 0},
                [5] = {"t", ONV_USE_ONE, ONV_MSG_TENSOR},
                [6] = {"g", ONV_USE_ONE, ONV_MSG_GRAPH},
                [7] = {"floats", ONV_USE_FLOATS, 0},
                [8] = {"ints", ONV_USE_VARINTS, 0},
                [9] = {"strings", ONV_USE_BYTES, 0},
                [10] = {"tensors", ONV_USE_MANY, ONV_MSG_TENSOR},
                [11] = {"graphs", ONV_USE_MANY, ONV_MSG_GRAPH},
                [14] = {"tp", ONV_USE_ONE, ONV_MSG_TYPE},
                [15] = {"type_protos", ONV_USE_MANY, ONV_MSG_TYPE},
                [20] = {"type", ONV_USE_VARINT, 0},
                [21] = {"ref_attr_name", ONV_USE_NAME, 0},
                [22] = {"sparse_tensor", ONV_USE_ONE, ONV_MSG_SPARSE_TENSOR},
                [23] = {"sparse_tensors", ONV_USE_MANY, ONV_MSG_SPARSE_TENSOR},
            },
        [ONV_MSG_VALUE_INFO] =
            {
                [1] = {"name", ONV_USE_NAME, 0},
                [2] = {"type", ONV_USE_ONE, ONV_MSG_TYPE},
                [4] = {"metadata_props", ONV_USE_NOTES, 0},
            },
        [ONV_MSG_FUNCTION] =
            {
                [1] = {"name", ONV_USE_NAME, 0},
                [4] = {"input", ONV_USE_NAME, 0},
                [5] = {"output", ONV_USE_NAME, 0},
                [7] = {"node", ONV_USE_MANY, ONV_MSG_NODE},
                [9] = {"opset_import", ONV_USE_MANY, ONV_MSG_OPSET},
                [10] = {"domain", ONV_USE_NAME, 0},
                [11] = {"attribute_proto", ONV_USE_MANY, ONV_MSG_ATTRIBUTE},
                [12] = {"value_info", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
                [13] = {"overload", ONV_USE_NAME, 0},
            },
        [ONV_MSG_TENSOR] =
            {
                [1] = {"dims", ONV_USE_VARINTS, 0},
                [2] = {"data_type", ONV_USE_VARINT, 0},
                [4] = {"float_data", ONV_USE_PAYLOAD32, 0},
                [5] = {"int32_data", ONV_USE_PAYLOAD, 0},
                [7] = {"int64_data", ONV_USE_PAYLOAD, 0},
                [8] = {"name", ONV_USE_STRING, 0},
                [9] = {"raw_data", ONV_USE_RAW, 0},
                [10] = {"double_data", ONV_USE_PAYLOAD64, 0},
                [11] = {"uint64_data", ONV_USE_PAYLOAD, 0},
                [13] = {"external_data", ONV_USE_MANY, ONV_MSG_PAIR},
                [14] = {"data_location", ONV_USE_VARINT, 0},
            },
        [ONV_MSG_SPARSE_TENSOR] =
            {
                [1] = {"values", ONV_USE_ONE, ONV_MSG_TENSOR},
                [2] = {"indices", ONV_USE_ONE, ONV_MSG_TENSOR},
                [3] = {"dims", ONV_USE_VARINTS, 0},
            },
        [ONV_MSG_SHAPE] = {[1] = {"dim", ONV_USE_MANY, ONV_MSG_DIMENSION}},
        [ONV_MSG_DIMENSION] =
            {
                [1] = {"dim_value", ONV_USE_VARINT, 0},
                [2] = {"dim_param", ONV_USE_STRING, 0},
            },
        [ONV_MSG_TYPE] =
            {
                [1] = {"tensor_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_TENSOR},
                [4] = {"sequence_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_SEQUENCE},
                [5] = {"map_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_MAP},
                [7] = {"opaque_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_OPAQUE},
                [8] = {"sparse_tensor_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_TENSOR},
                [9] = {"optional_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_SEQUENCE},
            },
        [ONV_MSG_TYPE_TENSOR] =
            {
                [1] = {"elem_type", ONV_USE_VARINT, 0},
                [2] = {"shape", ONV_USE_ONE, ONV_MSG_SHAPE},
            },
        [ONV_MSG_TYPE_SEQUENCE] = {[1] = {"elem_type", ONV_USE_ONE, ONV_MSG_TYPE}},
        [ONV_MSG_TYPE_MAP] =
            {
                [1] = {"key_type", ONV_USE_VARINT, 0},
                [2] = {"value_type", ONV_USE_ONE, ONV_MSG_TYPE},
            },
        [ONV_MSG_TYPE_OPAQUE] = {{0}},
};

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
