"""python -m onnxvram: the program that the package brings."""
import importlib.metadata
import os
import shutil
import sys
from typing import Optional


def program() -> str:
    try:
        files = importlib.metadata.files("onnxvram") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "onnxvram" and file.parent.name == "bin":
            return os.path.realpath(str(file.locate()))
    sys.exit("python -m onnxvram: expected the program that the package 'onnxvram' installs, found none: install it with pip")


def find_program(given: Optional[str] = None) -> str:
    """The one that started this one, that of the PATH, or the package's."""
    return given or shutil.which("onnxvram") or program()


if __name__ == "__main__":
    os.execv(program(), ["onnxvram", *sys.argv[1:]])
