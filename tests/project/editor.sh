#!/usr/bin/env bash
# The problem matchers for VS Code (packaging/vscode) read what the program says. Needs Python.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
python3 - "${ONV_SOURCE_DIR:?}" "${ONV_BUILD_DIR:?}/onnxvram" <<'END'
import json, pathlib, re, subprocess, sys, tempfile

source, program = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
[task] = json.loads((source / "packaging/vscode/tasks.json").read_text())["tasks"]
patterns = [matcher["pattern"] for matcher in task["problemMatcher"]]


def problems(line):
    for pattern in patterns:
        if found := re.match(pattern["regexp"], line):
            yield {part: found[pattern[part]] for part in ("file", "severity", "code", "message") if part in pattern}


def run(*words):
    """What is matched, and the lines that name a file of a model and are not."""
    made = subprocess.run([program, *words], capture_output=True, text=True, check=False, cwd=source)
    lines = (made.stdout + made.stderr).splitlines()
    return [problem for line in lines for problem in problems(line)], [line for line in lines if not list(problems(line))]


def expect(found, file, severity, code, message):
    assert any(p["file"] == file and p.get("severity") == severity and p.get("code") == code and message in p["message"]
               for p in found), (file, severity, code, message, found)


r18, trained = "samples/resnet18.onnx", "samples/resnet18-train.onnx"
assert task["command"] == "onnxvram" and task["args"][-1] == "${relativeFile}"
found, others = run(*task["args"][:-1], r18)  # the task itself: it fits
assert not found and len(others) == 1, (found, others)
found, _ = run("-q", "-b", "8", "--budget", "64MiB", r18)
expect(found, r18, None, None, "does not fit 64.0 MiB")
found, others = run("-q", "-b", "8", "--train", "adamw", trained)
expect(found, trained, "warning", "no-notes", "the file notes none")
assert others == [line for line in others if line.startswith(trained + ": train ")], others
found, _ = run("-q", "absent.onnx")
expect(found, "absent.onnx", None, None, "cannot be opened")
found, _ = run("-q", "-b", "8", "-d", "nothing=3", r18)
expect(found, r18, None, None, "'nothing' is unknown")
with tempfile.TemporaryDirectory() as folder:
    broken, before = pathlib.Path(folder) / "broken.onnx", pathlib.Path(folder) / "before.json"
    broken.write_bytes((source / r18).read_bytes()[:1000])
    found, others = run("-q", str(broken))
    expect(found, str(broken), None, None, "truncated")
    assert not others, others
    run("-q", "-b", "8", f"--json={before}", r18)
    found, _ = run("-q", "-b", "9", "--baseline", str(before), "--max-growth", "5%", r18)
    expect(found, r18, None, None, "grew by more than is allowed")
found, _ = run("-q", "-b", "none", r18)  # wrong usage is of no file
assert not found, found
END
