"""What every table here is made with: files of JSON, work in processes of their own, and the program's answers."""
import json
import os
import signal
import subprocess
import sys
import time


def read(path):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def note(path, *keys_and_value):
    """Sets one entry of a JSON file."""
    *keys, last, value = keys_and_value
    whole = read(path)
    at = whole
    for key in keys:
        at = at.setdefault(key, {})
    at[last] = value
    write(path, whole)


def write(path, value):
    with open(path + ".new", "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def apart(limit, work):
    """Runs it in a child: its result, or the reason why there is none."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(limit)
        try:
            result = {"result": work()}
        except BaseException as error:
            result = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
        with os.fdopen(writer, "w") as file:
            json.dump(result, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"failed": f"ended without a result (limit {limit} s)"}


def step(base, what, limit, work):
    """Done once: the result of work, None where it failed now or before."""
    failed = base + ".failed.json"
    if what in read(failed):
        return None
    began = time.monotonic()
    found = apart(limit, work)
    print(f"{os.path.basename(base)}: {what}: {found.get('failed', 'done')} ({time.monotonic() - began:.1f} s)", flush=True)
    if "failed" in found:
        note(failed, what, found["failed"])
        return None
    return found["result"]


def report(exe, path, options):
    """The report, or the reason why there is none."""
    run = subprocess.run([exe, path, *options, "--json"], capture_output=True, text=True, check=False)
    try:
        found = json.loads(run.stdout)
        if found["models"]:
            return found["models"][0]
    except (ValueError, KeyError):
        pass
    lines = run.stderr.strip().splitlines()
    return lines[-1].removeprefix("onnxvram: ").removeprefix(os.path.join(os.path.dirname(path), "")) if lines else f"exit status {run.returncode}"


def difference(predicted, measured):
    if predicted == measured:
        return "exact"
    percent = 100 * (predicted - measured) / measured
    return f"{abs(predicted - measured):,} bytes" if abs(percent) < 0.005 else f"{percent:+.2f} %"
