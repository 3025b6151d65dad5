"""Makes the page of its parts, one file: the program (WebAssembly, packed) and the source of its worker stand in it, and a
policy that names the scripts which may run, those of the report among them, and lets nothing be asked for.

usage: assemble.py ONNXVRAM.JS ONNXVRAM.WASM OUT.html
"""
import base64
import gzip
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent


def source(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy(scripts, styles):
    return "; ".join(["default-src 'none'", "script-src 'wasm-unsafe-eval' " + " ".join(map(source, scripts)), "worker-src blob:",
                      "style-src " + " ".join(map(source, styles)), "base-uri 'none'", "form-action 'none'"])


def main():
    glue, program, out = map(pathlib.Path, sys.argv[1:])
    script, style = (HERE / "page.js").read_text(), (HERE / "page.css").read_text()
    worker = glue.read_text() + "\n" + (HERE / "worker.js").read_text()
    assert "</script" not in worker.lower() and "<!--" not in worker, "the worker's source would end its element"
    marks = {
        "policy": policy([script] + [of.read_text() for of in sorted(HERE.parent.glob("*.js"))], [style, (HERE.parent / "report.css").read_text()]),
        "style": style,
        "script": script,
        "worker": worker,
        "sample": base64.b64encode((HERE.parent.parent / "samples/resnet18.onnx").read_bytes()).decode(),
        "program": base64.b64encode(gzip.compress(program.read_bytes(), 9, mtime=0)).decode(),
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda mark: marks[mark[1]], (HERE / "index.html").read_text())
    out.write_text(page)
    print(f"{out}: {len(page.encode()):,} bytes")


main()
