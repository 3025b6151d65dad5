"""Programs as files: JSON in the schema of the archive that torch.export.save writes (torch/_export/serde/schema.py)."""
import gzip
import json
import os
from typing import Any, Dict, Union
from unittest import mock

import torch

from ._errors import UsageError

Json = Dict[str, Any]
Path = Union[str, "os.PathLike[str]"]

DTYPES = {name: number for number, name in enumerate(
    ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool",
     "bfloat16"), 1)}
# The schema has no unsigned types of 32 and 64 bits: those of that size.
DTYPES.update({"uint32": 4, "uint64": 5, "uint16": 28, "float8_e4m3fn": 29, "float8_e5m2": 30, "float8_e4m3fnuz": 31, "float8_e5m2fnuz": 32})
LAYOUTS = {torch.sparse_coo: 1, torch.sparse_csr: 2, torch.sparse_csc: 3, torch.sparse_bsr: 4, torch.sparse_bsc: 5,
           torch.strided: 7}
FORMATS = {torch.contiguous_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3, torch.preserve_format: 4}


def dtype_number(dtype: Any) -> int:
    """0 is a dtype that the schema does not know."""
    return DTYPES.get(str(dtype).split(".")[-1], 0)


def text_of(program: Any) -> bytes:
    return json.dumps(program, separators=(",", ":")).encode()


def write(program: Any, path: Path) -> None:
    """As JSON; compressed where the name ends in .gz, without the time, so that equal programs are equal files."""
    name = os.fspath(path)
    text = text_of(program)
    if name.endswith(".gz"):
        text = gzip.compress(text, 9, mtime=0)
    with open(name, "wb") as file:
        file.write(text)


def weights_config(program: Any) -> Json:
    """Which file would have the data of each parameter and buffer, as the archive's model_weights_config.json says it: tensors that
    share memory have one."""
    numbers: Dict[int, int] = {}
    tensors = {name: t for name, t in program.state_dict.items() if isinstance(t, torch.Tensor)}
    return {"config": {name: {"path_name": f"weight_{numbers.setdefault(t.untyped_storage()._cdata, len(numbers))}"}
                       for name, t in tensors.items()}}


def save_program(program: Any, path: Path) -> None:
    """The program of an exported network: what torch.export.save writes, without weights. `program` is of torch.export.export,
    or what torch.onnx.export(dynamo=True) returned. The file is compressed where the name ends in .gz."""
    program = getattr(program, "exported_program", program)
    if not isinstance(program, torch.export.ExportedProgram):
        raise UsageError(f"save_program: expected a torch.export.ExportedProgram or a torch.onnx.ONNXProgram, found "
                         f"{type(program).__name__}: export the network with torch.export.export(model, args)")
    from torch._export.serde import serialize
    # Weights and sample inputs would be copied into memory, to be thrown away.
    with mock.patch.object(serialize, "serialize_torch_artifact", lambda *_, **__: b""):
        text = serialize.serialize(program).exported_program
    write({**json.loads(text), "weights_config": weights_config(program)}, path)
