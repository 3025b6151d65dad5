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

/* Fields that are not listed are dropped. Names and numbers are those of proto/onnx.proto. */
const onv_field onv_fields[ONV_MSG_COUNT][ONV_FIELD_MOST + 1] = {
    [ONV_MSG_MODEL][1] = {"ir_version", ONV_USE_VARINT, 0},
    [ONV_MSG_MODEL][2] = {"producer_name", ONV_USE_STRING, 0},
    [ONV_MSG_MODEL][3] = {"producer_version", ONV_USE_STRING, 0},
    [ONV_MSG_MODEL][7] = {"graph", ONV_USE_ONE, ONV_MSG_GRAPH},
    [ONV_MSG_MODEL][8] = {"opset_import", ONV_USE_MANY, ONV_MSG_OPSET},
    [ONV_MSG_MODEL][25] = {"functions", ONV_USE_MANY, ONV_MSG_FUNCTION},
    [ONV_MSG_OPSET][1] = {"domain", ONV_USE_STRING, 0},
    [ONV_MSG_OPSET][2] = {"version", ONV_USE_VARINT, 0},
    [ONV_MSG_PAIR][1] = {"key", ONV_USE_NAME, 0},
    [ONV_MSG_PAIR][2] = {"value", ONV_USE_NAME, 0},
    [ONV_MSG_GRAPH][1] = {"node", ONV_USE_MANY, ONV_MSG_NODE},
    [ONV_MSG_GRAPH][5] = {"initializer", ONV_USE_MANY, ONV_MSG_TENSOR},
    [ONV_MSG_GRAPH][11] = {"input", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
    [ONV_MSG_GRAPH][12] = {"output", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
    [ONV_MSG_GRAPH][13] = {"value_info", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
    [ONV_MSG_GRAPH][15] = {"sparse_initializer", ONV_USE_MANY, ONV_MSG_SPARSE_TENSOR},
    [ONV_MSG_GRAPH][16] = {"metadata_props", ONV_USE_NOTES, 0},
    [ONV_MSG_NODE][1] = {"input", ONV_USE_NAME, 0},
    [ONV_MSG_NODE][2] = {"output", ONV_USE_NAME, 0},
    [ONV_MSG_NODE][3] = {"name", ONV_USE_NAME, 0},
    [ONV_MSG_NODE][4] = {"op_type", ONV_USE_NAME, 0},
    [ONV_MSG_NODE][5] = {"attribute", ONV_USE_MANY, ONV_MSG_ATTRIBUTE},
    [ONV_MSG_NODE][7] = {"domain", ONV_USE_NAME, 0},
    [ONV_MSG_NODE][8] = {"overload", ONV_USE_NAME, 0},
    [ONV_MSG_NODE][9] = {"metadata_props", ONV_USE_NOTES, 0},
    [ONV_MSG_ATTRIBUTE][1] = {"name", ONV_USE_NAME, 0},
    [ONV_MSG_ATTRIBUTE][2] = {"f", ONV_USE_FLOAT, 0},
    [ONV_MSG_ATTRIBUTE][3] = {"i", ONV_USE_VARINT, 0},
    [ONV_MSG_ATTRIBUTE][4] = {"s", ONV_USE_BYTES, 0},
    [ONV_MSG_ATTRIBUTE][5] = {"t", ONV_USE_ONE, ONV_MSG_TENSOR},
    [ONV_MSG_ATTRIBUTE][6] = {"g", ONV_USE_ONE, ONV_MSG_GRAPH},
    [ONV_MSG_ATTRIBUTE][7] = {"floats", ONV_USE_FLOATS, 0},
    [ONV_MSG_ATTRIBUTE][8] = {"ints", ONV_USE_VARINTS, 0},
    [ONV_MSG_ATTRIBUTE][9] = {"strings", ONV_USE_BYTES, 0},
    [ONV_MSG_ATTRIBUTE][10] = {"tensors", ONV_USE_MANY, ONV_MSG_TENSOR},
    [ONV_MSG_ATTRIBUTE][11] = {"graphs", ONV_USE_MANY, ONV_MSG_GRAPH},
    [ONV_MSG_ATTRIBUTE][14] = {"tp", ONV_USE_ONE, ONV_MSG_TYPE},
    [ONV_MSG_ATTRIBUTE][15] = {"type_protos", ONV_USE_MANY, ONV_MSG_TYPE},
    [ONV_MSG_ATTRIBUTE][20] = {"type", ONV_USE_VARINT, 0},
    [ONV_MSG_ATTRIBUTE][21] = {"ref_attr_name", ONV_USE_NAME, 0},
    [ONV_MSG_ATTRIBUTE][22] = {"sparse_tensor", ONV_USE_ONE, ONV_MSG_SPARSE_TENSOR},
    [ONV_MSG_ATTRIBUTE][23] = {"sparse_tensors", ONV_USE_MANY, ONV_MSG_SPARSE_TENSOR},
    [ONV_MSG_VALUE_INFO][1] = {"name", ONV_USE_NAME, 0},
    [ONV_MSG_VALUE_INFO][2] = {"type", ONV_USE_ONE, ONV_MSG_TYPE},
    [ONV_MSG_VALUE_INFO][4] = {"metadata_props", ONV_USE_NOTES, 0},
    [ONV_MSG_FUNCTION][1] = {"name", ONV_USE_NAME, 0},
    [ONV_MSG_FUNCTION][4] = {"input", ONV_USE_NAME, 0},
    [ONV_MSG_FUNCTION][5] = {"output", ONV_USE_NAME, 0},
    [ONV_MSG_FUNCTION][7] = {"node", ONV_USE_MANY, ONV_MSG_NODE},
    [ONV_MSG_FUNCTION][9] = {"opset_import", ONV_USE_MANY, ONV_MSG_OPSET},
    [ONV_MSG_FUNCTION][10] = {"domain", ONV_USE_NAME, 0},
    [ONV_MSG_FUNCTION][11] = {"attribute_proto", ONV_USE_MANY, ONV_MSG_ATTRIBUTE},
    [ONV_MSG_FUNCTION][12] = {"value_info", ONV_USE_MANY, ONV_MSG_VALUE_INFO},
    [ONV_MSG_FUNCTION][13] = {"overload", ONV_USE_NAME, 0},
    [ONV_MSG_TENSOR][1] = {"dims", ONV_USE_VARINTS, 0},
    [ONV_MSG_TENSOR][2] = {"data_type", ONV_USE_VARINT, 0},
    [ONV_MSG_TENSOR][4] = {"float_data", ONV_USE_PAYLOAD32, 0},
    [ONV_MSG_TENSOR][5] = {"int32_data", ONV_USE_PAYLOAD, 0},
    [ONV_MSG_TENSOR][7] = {"int64_data", ONV_USE_PAYLOAD, 0},
    [ONV_MSG_TENSOR][8] = {"name", ONV_USE_NAME, 0},
    [ONV_MSG_TENSOR][9] = {"raw_data", ONV_USE_RAW, 0},
    [ONV_MSG_TENSOR][10] = {"double_data", ONV_USE_PAYLOAD64, 0},
    [ONV_MSG_TENSOR][11] = {"uint64_data", ONV_USE_PAYLOAD, 0},
    [ONV_MSG_TENSOR][13] = {"external_data", ONV_USE_MANY, ONV_MSG_PAIR},
    [ONV_MSG_TENSOR][14] = {"data_location", ONV_USE_VARINT, 0},
    [ONV_MSG_SPARSE_TENSOR][1] = {"values", ONV_USE_ONE, ONV_MSG_TENSOR},
    [ONV_MSG_SPARSE_TENSOR][2] = {"indices", ONV_USE_ONE, ONV_MSG_TENSOR},
    [ONV_MSG_SPARSE_TENSOR][3] = {"dims", ONV_USE_VARINTS, 0},
    [ONV_MSG_SHAPE][1] = {"dim", ONV_USE_MANY, ONV_MSG_DIMENSION},
    [ONV_MSG_DIMENSION][1] = {"dim_value", ONV_USE_VARINT, 0},
    [ONV_MSG_DIMENSION][2] = {"dim_param", ONV_USE_STRING, 0},
    [ONV_MSG_TYPE][1] = {"tensor_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_TENSOR},
    [ONV_MSG_TYPE][4] = {"sequence_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_SEQUENCE},
    [ONV_MSG_TYPE][5] = {"map_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_MAP},
    [ONV_MSG_TYPE][7] = {"opaque_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_OPAQUE},
    [ONV_MSG_TYPE][8] = {"sparse_tensor_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_TENSOR},
    [ONV_MSG_TYPE][9] = {"optional_type", ONV_USE_ONE_OF, ONV_MSG_TYPE_SEQUENCE},
    [ONV_MSG_TYPE_TENSOR][1] = {"elem_type", ONV_USE_VARINT, 0},
    [ONV_MSG_TYPE_TENSOR][2] = {"shape", ONV_USE_ONE, ONV_MSG_SHAPE},
    [ONV_MSG_TYPE_SEQUENCE][1] = {"elem_type", ONV_USE_ONE, ONV_MSG_TYPE},
    [ONV_MSG_TYPE_MAP][1] = {"key_type", ONV_USE_VARINT, 0},
    [ONV_MSG_TYPE_MAP][2] = {"value_type", ONV_USE_ONE, ONV_MSG_TYPE},
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
