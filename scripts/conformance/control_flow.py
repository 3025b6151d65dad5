#!/usr/bin/env python3
"""Models with branches and loops: what is live in them by definition, and what ONNX Runtime allocates.

    cc -shared -fPIC -D_GNU_SOURCE -o interpose.so tests/ort/recorded/interpose.c -ldl
    control_flow.py --interpose interpose.so [--write FOLDER]

Each model runs in a process of its own under the CPU provider, without arena and with graph optimisations off, with
and without the memory pattern; `interpose.so` writes down every allocation and free.  The most that is allocated at a
time, in the second run, is `ort_peak_bytes` (`ort_pattern_peak_bytes` with the pattern); what the caller feeds is not in
it.  Values, sizes and the ideal peak by the definitions are those of scripts/export/ort_truth.py.  --write keeps models and
truth files: tests/conformance holds them, and a test compares.
"""
import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "export"))
import nested  # noqa: E402
import ort_truth as truth  # noqa: E402

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

MODELS = {
    "if-temporaries": """g (bool c, float[512,1024] x) => (float[512,1024] z) {
        y = If (c) <then_branch = t () => (float[512,1024] t3) { t1 = Neg (x) t2 = Abs (t1) t3 = Add (t1, t2) },
                    else_branch = e () => (float[512,1024] e1) { e1 = Exp (x) }>
        z = Add (x, y) }""",
    "if-outer": """g (bool c, float[512,1024] x) => (float[512,1024] z) {
        a = Abs (x)
        y = If (c) <then_branch = t () => (float[512,1024] t1) { t1 = Identity (a) },
                    else_branch = e () => (float[512,1024] e1) { e1 = Neg (a) }>
        z = Exp (y) }""",
    "if-nested": """g (bool c, bool d, float[512,1024] x) => (float[512,1024] y) {
        y = If (c) <then_branch = t () => (float[512,1024] t2) {
                t1 = Neg (x)
                t2 = If (d) <then_branch = tt () => (float[512,1024] p) { o = Exp (t1) p = Mul (o, t1) },
                             else_branch = te () => (float[512,1024] q) { q = Abs (t1) }> },
                    else_branch = e () => (float[512,1024] e1) { e1 = Exp (x) }> }""",
    "if-decided": """g (float[256,1024] x) => (float[256,1024] y) <bool c = {1}, int64[2] r = {16, 1}> {
        y = If (c) <then_branch = t () => (float[256,1024] t1) { t1 = Neg (x) },
                    else_branch = e () => (float[256,1024] e3) {
                        e1 = Tile (x, r) e2 = ReduceMax (e1) e3 = Mul (x, e2) }> }""",
    "loop-state": """g (float[512,1024] x) => (float[512,1024] y) <int64 m = {5}, bool true = {1}> {
        y = Loop (m, true, x) <body = b (int64 i, bool c, float[512,1024] s) => (bool co, float[512,1024] t) {
                co = Identity (c) u = Neg (s) t = Add (u, s) }> }""",
    "loop-stack": """g (float[256,1024] x) => (float[] s) <int64 m = {16}, bool true = {1}> {
        y = Loop (m, true) <body = b (int64 i, bool c) => (bool co, float[256,1024] o) {
                co = Identity (c) o = Mul (x, x) }>
        s = ReduceSum <keepdims = 0> (y) }""",
    "loop-state-and-stack": """g (float[256,1024] x) => (float[256,1024] y, float[] s) <int64 m = {8}, bool true = {1}> {
        y, z = Loop (m, true, x) <body = b (int64 i, bool c, float[256,1024] s_in)
                => (bool co, float[256,1024] s_out, float[256,1024] o) {
                co = Identity (c) s_out = Neg (s_in) o = Add (s_in, s_out) }>
        s = ReduceSum <keepdims = 0> (z) }""",
    "loop-once": """g (float[512,1024] x) => (float[512,1024] y) <int64 m = {1}, bool true = {1}> {
        a = Neg (x)
        y = Loop (m, true, a) <body = b (int64 i, bool c, float[512,1024] s) => (bool co, float[512,1024] t) {
                co = Identity (c) t = Exp (s) }> }""",
    "loop-none": """g (float[512,1024] x) => (float[512,1024] y) <int64 m = {0}, bool true = {1}> {
        y = Loop (m, true, x) <body = b (int64 i, bool c, float[512,1024] s) => (bool co, float[512,1024] t) {
                co = Identity (c) u = Concat <axis = 0> (s, s, s, s) v = ReduceMax (u) t = Mul (s, v) }> }""",
    "if-in-loop": """g (bool d, float[512,1024] x) => (float[512,1024] y) <int64 m = {3}, bool true = {1}> {
        y = Loop (m, true, x) <body = b (int64 i, bool c, float[512,1024] s) => (bool co, float[512,1024] t) {
                co = Identity (c)
                t = If (d) <then_branch = p () => (float[512,1024] p2) { p1 = Neg (s) p2 = Mul (p1, s) },
                            else_branch = q () => (float[512,1024] q1) { q1 = Exp (s) }> }> }""",
    "loop-in-if": """g (bool d, float[256,1024] x) => (float[] y) <int64 m = {6}, bool true = {1}> {
        y = If (d) <then_branch = p () => (float[] p2) {
                p1 = Loop (m, true) <body = b (int64 i, bool c) => (bool co, float[256,1024] o) {
                        co = Identity (c) o = Exp (x) }>
                p2 = ReduceSum <keepdims = 0> (p1) },
                    else_branch = q () => (float[] q2) { q1 = Abs (x) q2 = ReduceSum <keepdims = 0> (q1) }> }""",
    "loop-in-loop": """g (float[256,1024] x) => (float[256,1024] y) <int64 m = {2}, int64 n = {3}, bool true = {1}> {
        y = Loop (m, true, x) <body = b (int64 i, bool c, float[256,1024] s) => (bool co, float[256,1024] t) {
                co = Identity (c)
                u, v = Loop (n, true, s) <body = b2 (int64 j, bool d, float[256,1024] p)
                        => (bool do, float[256,1024] q, float[256,1024] r) {
                        do = Identity (d) q = Exp (p) r = Neg (q) }>
                w = ReduceMax <keepdims = 0> (v)
                t = Mul (u, w) }> }""",
    "scan-two": """g (float[1024] a, float[256] b, float[16,256,1024] x, float[16,256,1024] y)
            => (float[1024] a2, float[256] b2, float[16,256,1024] p, float[16,1024] q) {
        a2, b2, p, q = Scan <num_scan_inputs = 2, body = body (float[1024] s, float[256] t, float[256,1024] u,
                float[256,1024] v) => (float[1024] s2, float[256] t2, float[256,1024] o, float[1024] r) {
                w = Mul (u, v) r = ReduceSum <keepdims = 0> (w, zero) s2 = Add (s, r)
                k = ReduceMax <axes = [1], keepdims = 0> (w) t2 = Add (t, k) o = Exp (w) }> (a, b, x, y) }""",
    "if-in-scan": """g (bool c, float[1024] a, float[16,256,1024] x) => (float[1024] z, float[16,256,1024] y) {
        z, y = Scan <num_scan_inputs = 1, body = body (float[1024] s, float[256,1024] u)
                => (float[1024] s2, float[256,1024] o) {
                s2 = Neg (s)
                o = If (c) <then_branch = p () => (float[256,1024] p1) { p1 = Add (u, s) },
                            else_branch = q () => (float[256,1024] q2) { q1 = Exp (u) q2 = Neg (q1) }> }> (a, x) }""",
    "scan-in-loop": """g (float[8,256,1024] x) => (float[8,256,1024] y) <int64 m = {2}, float zero = {0}, bool true = {1}> {
        y = Loop (m, true, x) <body = b (int64 i, bool c, float[8,256,1024] s) => (bool co, float[8,256,1024] t) {
                co = Identity (c)
                n, t = Scan <num_scan_inputs = 1, body = b2 (float n_in, float[256,1024] u)
                        => (float n_out, float[256,1024] o) {
                        n_out = Identity (n_in) o = Neg (u) }> (zero, s) }> }""",
}


def build(name):
    model = onnx.parser.parse_model(HEAD + MODELS[name])
    if name == "scan-two":
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "zero"))
    model.producer_name = "scripts/conformance/control_flow.py"
    return model


def measure(library, path, pattern):
    """In a process of its own: the most bytes that the second run holds at a time."""
    library = ctypes.CDLL(library)
    session = nested.session(path, enable_cpu_mem_arena=False, enable_mem_pattern=pattern)
    feeds = truth.feeds_for(onnx.load(path).graph, {})
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(2):
            library.record_open(file.name.encode())
            session.run(None, feeds)
            library.record_close()
        held, now, most = {}, 0, 0
        for line in open(file.name):
            what, number, *size = line.strip().split(",")
            if what == "alloc":
                held[number] = int(size[0])
                now += held[number]
                most = max(most, now)
            else:
                now -= held.pop(number)
    return most


def in_its_own_process(library, path, pattern):
    command = [sys.executable, __file__, "--interpose", library, "--measure", path] + (["--pattern"] if pattern else [])
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": library}, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr.strip().splitlines()[-1]}")
    return int(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--interpose", required=True)
    parser.add_argument("--measure")
    parser.add_argument("--pattern", action="store_true")
    parser.add_argument("--write")
    args = parser.parse_args()
    library = os.path.abspath(args.interpose)
    if args.measure:
        print(measure(library, args.measure, args.pattern))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.write or scratch
        for name in MODELS:
            path = os.path.join(folder, name + ".onnx")
            onnx.save(build(name), path)
            recorded = truth.record(path, {})
            for key, pattern in (("ort_peak_bytes", False), ("ort_pattern_peak_bytes", True)):
                recorded[key] = in_its_own_process(library, path, pattern)
            if args.write:
                truth.write(recorded, os.path.join(folder, name + ".fixed.truth.json"))
            print(f"{name:22} ideal {recorded['peak']['bytes']:>10}  ort {recorded['ort_peak_bytes']:>10} "
                  f"{recorded['ort_pattern_peak_bytes']:>10}", flush=True)


if __name__ == "__main__":
    main()
