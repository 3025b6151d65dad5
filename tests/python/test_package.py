"""The Python package over the shared library. Run by tests/project/python.sh; what needs pandas, NumPy, tqdm, onnx or
PyTorch is skipped where these are not installed."""
import contextlib
import copy
import gc
import importlib.util
import inspect
import io
import json
import os
import pathlib
import pickle
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import onnxvram
from onnxvram import _library, _options

ROOT = pathlib.Path(os.environ["ONV_SOURCE_DIR"])
SAMPLES = ROOT / "samples"
PROGRAM = pathlib.Path(os.environ["ONV_BUILD_DIR"]) / "onnxvram"


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def analyze(sample, **options):
    return onnxvram.analyze(SAMPLES / f"{sample}.onnx", **options)


def report_of_program(*arguments):
    made = subprocess.run([PROGRAM, *map(str, arguments), "--json"], check=True, stdout=subprocess.PIPE, cwd=ROOT)
    return json.loads(made.stdout)


class Answers(unittest.TestCase):
    def test_same_as_the_program(self):
        theirs = report_of_program("samples/resnet50.onnx", "--batch", 8)["models"][0]
        ours = analyze("resnet50", batch=8, name="samples/resnet50.onnx", savings=True)
        self.assertEqual({**ours.json, "path": ""}, {**theirs, "path": ""})

    def test_attributes_are_those_of_the_report(self):
        a = analyze("resnet50", batch=8)
        self.assertEqual(a.peak, a.json["peak"]["bytes"])
        self.assertEqual(a.weights, a.json["parameters"]["bytes"])
        self.assertGreater(a.parameters, 25_000_000)
        self.assertGreater(a.macs, 8 * 4_000_000_000)
        self.assertEqual(sum(t.bytes for t in a.peak_tensors), a.peak)
        self.assertEqual([t.bytes for t in a.peak_tensors], sorted((t.bytes for t in a.peak_tensors), reverse=True))
        self.assertEqual(max(a.live_bytes()), a.peak)
        self.assertEqual(list(a.live_bytes())[a.peak_step], a.peak)
        self.assertEqual(set(a.runtimes), {"ideal", "arena", "torch", "ort", "async"})
        self.assertIsNone(a.training)
        self.assertIsNone(a.fits)
        self.assertIsNone(a.max_batch)
        self.assertEqual(a.plans, [])
        weight = next(t for t in a.tensors if t.kind == "initializer")
        self.assertIsNone(weight.first_step)

    def test_free_dims(self):
        a = analyze("resnet50")
        self.assertIsNone(a.peak)
        self.assertEqual([d["option"] for d in a.free_dims], ["--batch N"])
        self.assertEqual(a.runtimes, {})
        self.assertIn("batch", next(t for t in a.tensors if t.kind == "input").shape)
        self.assertIn(str(list(a.live_bytes())[0]), ("None", "nan"))

    def test_a_path_bytes_and_a_proto_are_the_same(self):
        path = SAMPLES / "lstm.onnx"
        raw = path.read_bytes()

        class Proto:
            def SerializeToString(self):
                return raw

        dims = {"batch": 2, "sequence": 9}
        first = onnxvram.analyze(str(path), dims=dims)
        for given in (path, raw, bytearray(raw), memoryview(raw), Proto()):
            with self.subTest(type(given).__name__):
                self.assertEqual(onnxvram.analyze(given, dims=dims).peak, first.peak)

    def test_options_that_are_more_than_a_field(self):
        self.assertTrue(analyze("resnet18", batch=1, budget="T4").fits)
        self.assertFalse(analyze("resnet18", batch=1, budget=10**6).fits)
        self.assertTrue(analyze("resnet18", batch=1, budget=["1MB", "16GiB"]).fits)
        self.assertEqual(analyze("resnet18", batch=1, budget=["1MB", "16GiB"]).json["fits"][1]["budget_bytes"], 2**34)
        self.assertGreater(analyze("resnet18", batch=1, budget="16GiB", max_batch=True, runtimes=["ideal", "arena"]).max_batch, 100)
        settings = analyze("resnet18", batch=1, ort={"arena_extend_strategy": "kSameAsRequested"}).runtimes["ort"]["options"]
        self.assertEqual(settings["arena_extend_strategy"], "kSameAsRequested")
        first = next(t for t in analyze("resnet18", shapes={"input": (3, 3, 64, 64)}).tensors if t.kind == "input")
        self.assertEqual(first.shape, (3, 3, 64, 64))
        half, full = analyze("resnet18", batch=1, precision="fp16"), analyze("resnet18", batch=1)
        self.assertLess(half.weights, 0.6 * full.weights)
        trained = analyze("resnet18-train", batch=2, train="adam", compile=0.5, freeze="conv1*")
        self.assertEqual(trained.training["compile"]["memory_budget"], 0.5)
        cache = analyze("llama", dims={"batch": 1, "sequence": 1, "total": 32, "past": 31}, kv_cache="shared")
        self.assertGreater(cache.kv_cache["layers"], 0)
        self.assertTrue(analyze("resnet18", batch=4, savings=True).savings)
        self.assertIn("example", analyze("resnet18", example=True).json)
        self.assertLess(analyze("llama", batch=1, weights="int4", dims={"sequence": 7, "total": 7, "past": 0}).weights,
                        analyze("llama", batch=1, dims={"sequence": 7, "total": 7, "past": 0}).weights)

    def test_contents_of_inputs(self):
        with tempfile.TemporaryDirectory() as folder:
            requests = pathlib.Path(folder) / "requests.csv"
            requests.write_text("batch\n1\n4\n")
            self.assertEqual(len(analyze("resnet18", shape_trace=requests).json["shape_trace"]["requests"]), 2)
        with self.assertRaisesRegex(onnxvram.UsageError, "'nothing' is unknown; choose from input"):
            analyze("resnet18", batch=1, input_values={"nothing": [1, 2]})

    def test_growth(self):
        before = analyze("resnet18", batch=2)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "before.json"
            file.write_text(before.report("json"))
            for baseline in (before, before.json, file):
                growth = analyze("resnet18", batch=3, baseline=baseline, max_growth=5).json["growth"]
                self.assertTrue(growth["exceeds"])
        self.assertFalse(analyze("resnet18", batch=2, baseline=before, max_growth=0).json["growth"]["exceeds"])
        for wrong in ({}, 3, {"models": []}):
            with self.assertRaises(onnxvram.UsageError):
                analyze("resnet18", batch=2, baseline=wrong)

    def test_two_models(self):
        one, other = analyze("resnet18", batch=1), analyze("resnet18", batch=2)
        self.assertIn("resnet18.onnx", onnxvram.diff(one, other))
        changed = json.loads(onnxvram.diff(one, other, "json"))
        self.assertEqual(changed["totals_after"]["peak_bytes"], other.peak)
        self.assertEqual(onnxvram.together([one, other], [2, 1])["sessions"], 3)
        self.assertEqual(onnxvram.together([one, other])["sessions"], 2)
        with self.assertRaises(onnxvram.UsageError):
            onnxvram.together([one, other], [1])

    def test_every_format(self):
        a = analyze("resnet18-train", batch=2, train="adam", checkpoint="sqrt", runtimes="ort,arena,torch", onnx_out=True,
                    ort_partition=True, timelines=True)
        for format in ("text", "json", "csv", "layers", "markdown", "checkpoints", "formula", "formula-python", "formula-c",
                       "graph", "intervals", "plan", "trace", "header", "ort-partition", "html", "svg"):
            with self.subTest(format):
                self.assertTrue(a.report(format))
        with self.assertRaisesRegex(onnxvram.UsageError, "expected one of text"):
            a.report("pdf")
        with tempfile.TemporaryDirectory() as folder:
            a.write(pathlib.Path(folder) / "made.onnx", "onnx")
            again = onnxvram.analyze(pathlib.Path(folder) / "made.onnx", batch=2)
            self.assertEqual(again.peak, analyze("resnet18-train", batch=2).peak)

    def test_notebooks(self):
        a = analyze("resnet18", batch=1)
        self.assertRegex(repr(a), r"peak \d+, weights \d+ bytes")
        page = a._repr_html_()
        self.assertIn("<td>torch</td>", page)
        self.assertIn('src="data:image/svg+xml;base64,', page)
        self.assertTrue(analyze("resnet18")._repr_html_().startswith("<pre>"), "sizes that are not known are named")
        hostile = onnxvram.analyze((SAMPLES / "resnet18.onnx").read_bytes(), name="<script>a</script>", batch=1)._repr_html_()
        self.assertNotIn("<script>", hostile)

    def test_largest_batches(self):
        a = analyze("resnet18", budget="T4,L4", max_batch=True, runtime="torch,ort")
        self.assertEqual([(row.gpu, row.runtime) for row in a.max_batches],
                         [("T4", "torch"), ("T4", "ort"), ("L4", "torch"), ("L4", "ort")])
        self.assertEqual(a.max_batch, a.json["fit"]["max_batch"])
        self.assertEqual(a.max_batch, min(a.max_batches[:2]))
        self.assertRegex(repr(a.max_batch), r"^\d+ \((torch|ort), T4\)$")
        with self.assertRaisesRegex(onnxvram.UsageError, "runtime and runtimes are one option"):
            analyze("resnet18", runtime="torch", runtimes="ort")

    def test_messages_name_keywords(self):
        with self.assertRaisesRegex(onnxvram.LimitError, r"limits=\{'memory': N\}"):
            analyze("resnet50", batch=1, limits={"memory": 100000})

    @needs("pandas")
    def test_pandas(self):
        a = analyze("resnet50", batch=8)
        table = a.to_pandas()
        self.assertEqual(len(table), len(a.tensors))
        live = table[(table.first_step <= a.peak_step) & (table.last_step >= a.peak_step)]
        self.assertEqual(int(live.bytes.sum()), a.peak)
        self.assertEqual(len(analyze("resnet50").to_pandas()), len(a.tensors))

    @unittest.skipIf(importlib.util.find_spec("pandas"), "pandas is installed")
    def test_without_pandas(self):
        with self.assertRaisesRegex(onnxvram.OnnxvramError, "onnxvram\\[tables\\]"):
            analyze("resnet50", batch=8).to_pandas()

    @needs("numpy")
    def test_numpy(self):
        import numpy
        a = analyze("resnet50", batch=8)
        self.assertEqual(a.live_bytes().dtype, numpy.uint64)
        self.assertEqual(int(a.live_bytes().max()), a.peak)
        self.assertTrue(numpy.isnan(analyze("resnet50").live_bytes()).any())
        self.assertEqual(analyze("resnet50", batch=numpy.int64(8)).peak, a.peak)

    @needs("onnx")
    def test_a_proto_of_onnx(self):
        import onnx
        model = onnx.load(SAMPLES / "lstm.onnx", load_external_data=False)
        dims = {"batch": 2, "sequence": 9}
        self.assertEqual(onnxvram.analyze(model, dims=dims).peak, analyze("lstm", dims=dims).peak)


class Errors(unittest.TestCase):
    def expect(self, kind, text, model, **options):
        with self.assertRaisesRegex(kind, text) as raised:
            onnxvram.analyze(model, **options)
        self.assertIsInstance(raised.exception, onnxvram.OnnxvramError)
        return raised.exception

    def test_each_class(self):
        resnet = SAMPLES / "resnet18.onnx"
        self.expect(onnxvram.FileError, "nowhere.onnx: cannot be opened", "nowhere.onnx")
        self.expect(OSError, "nowhere.onnx", "nowhere.onnx")
        self.expect(onnxvram.FormatError, "README.md: not an ONNX", ROOT / "README.md")
        self.expect(onnxvram.FormatError, "model: is empty", b"")
        self.expect(onnxvram.LimitError, r"limits=\{'nodes': N\}", resnet, limits={"nodes": 3})
        self.expect(onnxvram.LimitError, "memory", resnet, limits={"memory": "64KiB"})
        error = self.expect(onnxvram.SizeOverflow, "Conv", resnet, batch=1 << 59)
        self.assertIsInstance(error, OverflowError)
        self.assertEqual(error.op_type, "Conv")
        self.assertTrue(error.node)
        self.expect(onnxvram.ModelError, "", resnet, shapes={"input": (1, 4, 64, 64)})
        error = self.expect(onnxvram.UsageError, "unknown", resnet, order="nope")
        self.assertIsInstance(error, ValueError)
        self.assertTrue(issubclass(onnxvram.OutOfMemory, MemoryError))

    def test_every_status_has_a_class(self):
        for code, kind in _library.KINDS.items():
            error = _library.ffi.new("onv_error *")
            error.code, error.message, error.node = getattr(_library.lib, "ONV_ERR_" + code), b"why", b"here"
            with self.assertRaisesRegex(kind, "^m: node 'here': why$"):
                _library.fail(error.code, error, "m")
        header = (ROOT / "include/onnxvram/status.h").read_text()
        self.assertEqual(set(re.findall(r"\bONV_ERR_(\w+)", header.split("onv_status;")[0])), set(_library.KINDS))

    def test_options(self):
        resnet = SAMPLES / "resnet18.onnx"
        for options in ({"batch": "3"}, {"batch": 1.5}, {"batch": 0}, {"batch": -1}, {"train": "adamw", "accumulate": 0},
                        {"budget": "8"}, {"budget": "T4,8"}, {"batch": 1 << 70}, {"margin_percent": -1}, {"limits": {"nods": 1}},
                        {"limits": {"nodes": 1 << 64}}, {"budget": "A100"}, {"budget": "no such"}, {"budget": 0},
                        {"precision": "fp8"}, {"gpu": "nothing"}, {"dims": {"batch": "x"}}, {"dims": ["batch"]},
                        {"order": "a\0b"}, {"align": "12 cubits"}, {"shapes": {"input": 3}}):
            with self.subTest(options):
                self.expect(onnxvram.UsageError, "", resnet, **options)
        self.expect(onnxvram.UsageError, "train=True: expected text, as in train='...'", resnet, train=True)
        self.expect(onnxvram.UsageError, "expected a path, bytes or an onnx.ModelProto, found int", 3)
        with self.assertRaises(TypeError):
            onnxvram.analyze(resnet, bach=3)

    def test_messages_are_safe_to_show(self):
        error = self.expect(onnxvram.FileError, "cannot be opened", "a\x1b[31mb")
        self.assertNotIn("\x1b", str(error))

    def test_closed(self):
        with analyze("resnet18", batch=1) as a:
            peak = a.peak
        self.assertEqual(a.peak, peak)
        self.assertIn(str(peak), repr(a))
        a.close()
        with self.assertRaisesRegex(onnxvram.UsageError, "closed"):
            a.report()
        b = analyze("resnet18", batch=1)
        b.close()
        self.assertIn("closed", repr(b))


def search_long(**options):
    """Many seconds: the largest batch for which some plan fits."""
    return analyze("densenet201", batch=4, train="adam", checkpoint="all", budget="80GiB", max_batch=True, **options)


class Interruption(unittest.TestCase):
    def test_keyboard_interrupt(self):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            search_long()
        timer.join()

    def test_what_progress_raises(self):
        class Enough(Exception):
            pass

        def tell(stage):
            raise Enough(stage)

        with self.assertRaises(Enough):
            search_long(progress=tell)

    def test_time_limit(self):
        with self.assertRaisesRegex(onnxvram.LimitError, "seconds"):
            search_long(limits={"seconds": 1})

    def test_progress(self):
        stages = []
        analyze("resnet18", batch=1, progress=stages.append)
        self.assertTrue(stages)
        self.assertTrue(all(isinstance(stage, str) and stage for stage in stages))
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            analyze("resnet18", batch=1, progress=True)
        self.assertIn("resnet18.onnx", shown.getvalue())
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            analyze("resnet18", batch=1)
        self.assertEqual(shown.getvalue(), "")

    def test_threads(self):
        peaks = {}

        def one(batch):
            peaks[batch] = analyze("resnet18", batch=batch).peak

        threads = [threading.Thread(target=one, args=(batch,)) for batch in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(peaks, {batch: analyze("resnet18", batch=batch).peak for batch in range(1, 9)})


class Memory(unittest.TestCase):
    def test_it_is_given_back(self):
        def most():
            gc.collect()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        def work(n):
            for _ in range(n):
                analyze("densenet201", batch=1, runtimes="ideal")  # collected
                analyze("densenet201", batch=1, runtimes="ideal").close()
                with contextlib.suppress(onnxvram.UsageError):
                    analyze("densenet201", batch=1, order="nope")

        work(5)
        before = most()
        work(30)
        self.assertLess(most() - before, 8 * 1024, "KiB")

    def test_bytes_stay_while_they_are_read(self):
        path = SAMPLES / "lstm.onnx"
        options = {"dims": {"batch": 2, "sequence": 9}, "onnx_out": True, "name": "x"}
        kept = path.read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            files = pathlib.Path(folder) / "1", pathlib.Path(folder) / "2"
            onnxvram.analyze(kept, **options).write(files[0], "onnx")
            dropped = onnxvram.analyze(bytearray(kept), **options)
            gc.collect()
            filler = [bytes([255]) * len(kept) for _ in range(50)]
            dropped.write(files[1], "onnx")
            del filler
            self.assertEqual(files[0].read_bytes(), files[1].read_bytes())


class Options(unittest.TestCase):
    def test_every_field_has_a_keyword(self):
        fields = {name for name, _ in _library.ffi.typeof("onv_options").fields}
        keywords = set(inspect.signature(onnxvram.analyze).parameters)
        for name in fields:
            keyword = _options.OTHERWISE.get(name, name)
            self.assertTrue(keyword == "" or keyword in keywords, f"the field {name} has no keyword")
        self.assertEqual(keywords - fields, {"model", "name", "max_growth", "runtime"})
        self.assertEqual(set(_options.OTHERWISE) - fields, set(), "no such fields")
        tables = [*_options.TEXTS, *_options.PATHS, *_options.COUNTS, *_options.SIZES, *_options.FLAGS, *_options.LISTS]
        self.assertEqual(len(tables), len(set(tables)))
        for name in keywords - set(tables) - {"model", "name", "precision", "amp", "attention_dropout", "runtime"}:
            self.assertTrue(hasattr(_options.Options, "_set_" + name), name)

    def test_sizes(self):
        for given, expected in ((5, 5), ("16GiB", 2**34), ("80 GB", 80 * 10**9), ("1.5KiB", 1536), ("4k", 4096), ("7B", 7), ("16", 16)):
            self.assertEqual(_options.size(given), expected)
        for wrong in ("", "GiB", "1..5GiB", "-1GiB", "1e3B"):
            with self.assertRaises(onnxvram.UsageError):
                _options.size(wrong)

    def test_every_field_of_limits_has_a_name(self):
        fields = [name for name, _ in _library.ffi.typeof("onv_limits").fields]
        self.assertEqual(len(_options.limit_names()), len(fields) - 1)


class Planner(unittest.TestCase):
    def test_offsets(self):
        rows = [(0, 2, 64), (1, 3, 32), (2, 4, 64)]
        made = onnxvram.plan(rows)
        self.assertEqual((made.height, made.lower_bound, made.optimal, made.fits), (96, 96, True, True))
        self.assertEqual(made.offsets[0], made.offsets[2])
        self.assertTrue(all(offset % 64 == 0 for offset in onnxvram.plan(rows, alignment="64B").offsets))
        self.assertFalse(onnxvram.plan(iter(rows), capacity=95, effort=1000).fits)
        self.assertEqual(onnxvram.plan([]).offsets, ())
        for wrong in ([(3, 3, 1)], [(0, 1)], [("a", 1, 2)], [(0, 1, -1)], [3]):
            with self.subTest(wrong), self.assertRaises(onnxvram.UsageError):
                onnxvram.plan(wrong)
        with self.assertRaisesRegex(onnxvram.UsageError, "not 12"):
            onnxvram.plan(rows, alignment=12)
        with self.assertRaises(onnxvram.LimitError):
            onnxvram.plan(rows * 1000, limits={"memory": 4096})

    def test_placements_are_the_plan_of_the_intervals(self):
        a = analyze("resnet18", batch=2, runtimes="arena")
        placed = a.placements
        self.assertEqual(max(row.offset + row.bytes for row in placed), a.runtimes["arena"]["activation_peak_bytes"])
        made = onnxvram.plan((row.first_step, row.last_step + 1, row.bytes) for row in placed)
        self.assertEqual(made.height, a.runtimes["arena"]["activation_peak_bytes"])
        self.assertEqual(analyze("resnet18", batch=2, runtimes="ideal").placements, [])

    def test_allocators(self):
        events = [("a", 1000), ("b", 2 << 20), ("a", None), ("a", 5 << 20), ("b", None)]
        held = onnxvram.simulate(events)
        self.assertEqual((held.requested_peak, held.reserved_end), ((2 << 20) + (5 << 20), held.reserved_peak))
        self.assertGreaterEqual(held.reserved_peak, held.allocated_peak)
        for name in onnxvram.allocators():
            self.assertGreaterEqual(onnxvram.simulate(events, name).reserved_peak, 7 << 20, name)
        self.assertTrue(onnxvram.simulate(events, capacity="4MiB").out_of_memory)
        for wrong in ([("a", None)], [("a", 1), ("a", 1)], [("a", "x")], [("a", -1)], [3]):
            with self.subTest(wrong), self.assertRaises(onnxvram.UsageError):
                onnxvram.simulate(wrong)
        with self.assertRaisesRegex(onnxvram.UsageError, "did you mean 'torch'"):
            onnxvram.simulate(events, "trch")

    def test_orders(self):
        # Two branches whose beginnings are large: one after the other.
        nodes = [(["x"], {"a": 100}), (["x"], {"b": 100}), (["a"], {"c": 1}), (["b"], {"d": 1}), (["c", "d"], {"y": 1})]
        found = onnxvram.order(nodes, inputs={"x": 1}, outputs=["y"])
        self.assertEqual((found.peak, found.proven, sorted(found.nodes)), (102, True, [0, 1, 2, 3, 4]))
        self.assertEqual(abs(found.nodes.index(0) - found.nodes.index(2)), 1)
        self.assertGreaterEqual(onnxvram.order(nodes, inputs={"x": 1}, outputs=["y"], strategy="greedy").peak, 102)
        self.assertEqual(onnxvram.order(nodes, inputs={"x": 1}, extra_bytes=[0, 0, 0, 0, 500]).peak, 503)
        self.assertEqual(onnxvram.order([]).nodes, ())
        for wrong in ({"outputs": ["z"]}, {"extra_bytes": [1]}, {"strategy": "model"}, {"inputs": {}}, {"inputs": {"x": 1, "a": 1}}):
            with self.subTest(wrong), self.assertRaises(onnxvram.UsageError):
                onnxvram.order(nodes, **{"inputs": {"x": 1}, **wrong})
        with self.assertRaisesRegex(onnxvram.UsageError, "waits for itself"):
            onnxvram.order([(["b"], {"a": 1}), (["a"], {"b": 1})])

    def test_modules(self):
        a = analyze("resnet18-dynamo", batch=2)
        rows = a.modules()
        self.assertIsNone(rows[0].parent)
        self.assertEqual(rows[0].parameters, a.parameters)
        self.assertEqual(rows[0].macs, a.macs)
        self.assertTrue(all(row.parent < i for i, row in enumerate(rows) if i))
        self.assertIn("layer1", [row.name for row in rows])
        self.assertLess(max(row.depth for row in a.modules(1)), 2)
        a.close()
        with self.assertRaises(onnxvram.UsageError):
            a.modules()


class Plans(unittest.TestCase):
    def test_they_are_those_of_the_report(self):
        a = analyze("resnet18-train", batch=4, train="adam", checkpoint="all")
        rows = a.training["plans"]
        self.assertEqual([p.name for p in a.plans], [row["name"] for row in rows])
        for plan, row in zip(a.plans, rows):
            self.assertEqual((plan.peak_bytes, plan.id, plan.data), (row["peak_bytes"], row["id"], row["apply"]))
        self.assertEqual(sum(plan.knee for plan in a.plans), 1)
        self.assertEqual(pickle.loads(pickle.dumps(a.plans)), a.plans)

    def test_a_plan_is_written_and_read_back(self):
        a = analyze("resnet18-train", batch=4, train="adam", checkpoint="optimal@1%")
        compile(a.report("checkpoints-python"), "plan.py", "exec")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "plan.json"
            file.write_text(a.report("checkpoints"))
            again = analyze("resnet18-train", batch=8, train="adam", plan=file)
        self.assertEqual([p.data for p in again.plans], [p.data for p in a.plans])
        self.assertEqual(again.plans[0].peak_bytes, again.training["peak_bytes"])
        self.assertGreater(again.plans[0].peak_bytes, a.plans[0].peak_bytes)

    @needs("torch")
    def test_a_plan_of_another_network_is_refused(self):
        import torch
        plan = analyze("resnet18-train", batch=4, train="adam", checkpoint="blocks").plans[0]
        with self.assertRaisesRegex(onnxvram.UsageError, f"blocks@{plan.id} cannot be applied: .* no module layer1.0, layer1.1"):
            plan.apply(torch.nn.Linear(2, 2))

    @needs("torch")
    def test_pytorch_runs_as_planned(self):
        """What autograd keeps falls, and gradients stay the same."""
        sys.path.insert(0, str(SAMPLES))
        import nets
        import torch
        plan = next(p for p in analyze("unet-train", batch=2, dims={"height": 64, "width": 64}, train="sgd",
                                       checkpoint="sqrt").plans)
        torch.manual_seed(0)
        plain = nets.UNet()
        planned = copy.deepcopy(plain)
        self.assertIs(plan.apply(planned), planned)
        x, kept = torch.randn(2, 3, 64, 64), []
        for model in (plain, planned):
            storages = {}  # that autograd keeps beside the parameters; their owners stay, so that no address is used twice

            def pack(tensor, storages=storages):
                storages[tensor.untyped_storage().data_ptr()] = tensor
                return tensor

            own = {p.untyped_storage().data_ptr() for p in model.parameters()}
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                loss = model(x).square().mean()
            kept.append(sum(t.untyped_storage().nbytes() for at, t in storages.items() if at not in own))
            loss.backward()
        self.assertLess(kept[1], 0.8 * kept[0])
        for before, after in zip(plain.parameters(), planned.parameters()):
            self.assertTrue(torch.allclose(before.grad, after.grad, rtol=1e-4, atol=1e-6))


if __name__ == "__main__":
    unittest.main()
