"""python -m onnxvram: the program that the package brings."""
import importlib.metadata
import os
import sys


def program() -> str:
    for file in importlib.metadata.files("onnxvram") or ():
        if file.name == "onnxvram" and file.parent.name == "bin":
            return os.path.realpath(str(file.locate()))
    raise FileNotFoundError("the package onnxvram was installed without its program: reinstall it")


if __name__ == "__main__":
    os.execv(program(), ["onnxvram", *sys.argv[1:]])
