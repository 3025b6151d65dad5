"""The public headers as a module of cffi: interface.py include/onnxvram/onnxvram.h OUTPUT.

cffi reads declarations alone, so comments, lines of the preprocessor, and functions with a body are left out."""
import pathlib
import re
import sys

import cffi


def read(header, seen):
    """Its text with that of the headers beside it that it includes, each once."""
    if header in seen:
        return ""
    seen.add(header)
    return re.sub(r'^#include "(.*)"$', lambda line: read(header.parent / line[1], seen), header.read_text(), flags=re.M)


def declarations(header):
    text = re.sub(r"/\*.*?\*/", "", header.replace("\\\n", " "), flags=re.S)  # lines that go on
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    text = re.sub(r"^static inline .*?^}\n", "", text, flags=re.S | re.M)
    return text.replace("ONV_API ", "")


def main():
    header, output = map(pathlib.Path, sys.argv[1:3])
    ffi = cffi.FFI()
    ffi.cdef(declarations(read(header, set())))
    ffi.set_source(output.stem, None)
    ffi.emit_python_code(str(output))


if __name__ == "__main__":
    main()
