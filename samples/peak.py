"""The peak of a model and what stands in memory at that moment.

    pip install onnxvram
    python peak.py resnet50.onnx 256
"""
import sys
from typing import List

import onnxvram


def main(arguments: List[str]) -> None:
    if not arguments:
        sys.exit(f"usage: {sys.argv[0]} MODEL.onnx [BATCH]")
    batch = int(arguments[1]) if len(arguments) > 1 else None
    try:
        analysis = onnxvram.analyze(arguments[0], batch=batch)
    except onnxvram.OnnxvramError as error:
        sys.exit(str(error))
    print(f"weights {analysis.weights} bytes")
    print(f"peak    {analysis.peak} bytes at step {analysis.peak_step} of {len(analysis.nodes)}")
    for tensor in analysis.peak_tensors[:3]:
        print(f"        {tensor.bytes} bytes: {tensor.name} {tensor.dtype}{list(tensor.shape or ())}")


if __name__ == "__main__":
    main(sys.argv[1:])
