"""python -m onnxvram: the program that the package brings."""
import importlib.metadata
import os
import sys


def program() -> str:
    try:
        files = importlib.metadata.files("onnxvram") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "onnxvram" and file.parent.name == "bin":
            return os.path.realpath(str(file.locate()))
    sys.exit("python -m onnxvram: expected the program that the package 'onnxvram' installs, found none: install it with pip")


if __name__ == "__main__":
    os.execv(program(), ["onnxvram", *sys.argv[1:]])
