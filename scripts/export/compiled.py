#!/usr/bin/env python3
"""What torch.compile keeps between forward and backward, to judge `--compile` by.

    python scripts/export/compiled.py export DIR [NAME...]             NAME.onnx by the exporter's default options
    python scripts/export/compiled.py measure DIR [NAME...]            NAME.compiled.json: saved bytes at some budgets;
                                                                       NAME.graph: the joint graph, and what is saved
    python scripts/export/compiled.py operators DIR [NAME...]          both, of networks around one operation
    python scripts/export/compiled.py peaks DIR [NAME...]              NAME.peak.json: of training, batch 16, by Inductor;
                                                                       with --budget B: NAME.peak-B.json
    python scripts/export/compiled.py table DIR --exe onnxvram         the tables of docs/accuracy/plans.md

torch.compile traces the network in training mode with Inductor's decompositions, Inductor's passes over the joint graph
run, and AOTAutograd's min-cut partitioner divides it, as for Inductor; no kernels are compiled. Counted are the distinct
storages of what it saves, parameters and buffers left out. The loss is no part of the graph. `eager` is the same count
of what eager autograd saves. `measure` needs the CUDA build of PyTorch and a device.
"""

import argparse
from copy import deepcopy
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from truth.harness import difference, note, read, report, step, write  # noqa: E402
from truth.networks.compiled import NETWORKS  # noqa: E402

BUDGETS = (1.0, 0.8, 0.5, 0.2)
VIEWS = {"view", "_unsafe_view", "reshape", "permute", "squeeze", "unsqueeze", "expand", "slice", "select", "alias", "t",
         "transpose", "as_strided", "diagonal", "unfold", "split", "split_with_sizes", "unbind"}


def is_part(node):
    """An item of a split."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem" and \
        "split" in str(node.args[0].target)


def partition(network, budgets):
    """The joint graph, and what is saved at each budget: rows of (name, operator, dtype, shape, storage's bytes)."""
    import torch
    import torch._functorch.config as config
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.compile_fx import _recursive_joint_graph_passes
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.virtualized import V
    from torch._guards import detect_fake_mode

    torch.manual_seed(0)
    model = network.make().train().cuda()
    found = {}

    def divide(gm, joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None, **_):
        if found:
            raise RuntimeError("the network has more than one graph")
        with V.set_fake_mode(detect_fake_mode(joint_inputs)):
            _recursive_joint_graph_passes(gm, skip_invoke_subgraph=True, input_device=torch.device("cuda"))
        primals = [n.name for n in gm.graph.nodes if n.op == "placeholder" and "primals" in n.target]
        left_out = {primals[i] for i in static_lifetime_input_indices}
        for budget in budgets:
            with config.patch(activation_memory_budget=budget):
                fw, bw = min_cut_rematerialization_partition(
                    torch.fx.GraphModule(gm, deepcopy(gm.graph)), joint_inputs, num_fwd_outputs=num_fwd_outputs,
                    static_lifetime_input_indices=static_lifetime_input_indices)
            rows, seen = [], set()
            for node in fw.graph.find_nodes(op="output")[0].args[0][num_fwd_outputs:]:
                value = node.meta.get("val")
                if not isinstance(value, torch.Tensor):
                    continue
                base = node
                while str(base.target).removeprefix("aten.").split(".")[0] in VIEWS or is_part(base):
                    base = base.args[0]
                if base.name in left_out or base.name in seen:
                    continue
                seen.add(base.name)
                whole = base.meta["val"]
                rows.append((node.name, str(node.target), str(value.dtype), tuple(value.shape),
                             whole.numel() * whole.element_size()))
            found[budget] = rows
        found["graph"] = gm.graph
        return fw, bw

    def nothing(gm, _):
        return make_boxed_func(gm.forward)

    backend = aot_autograd(fw_compiler=nothing, bw_compiler=nothing, partition_fn=divide,
                           decompositions=select_decomp_table(), keep_inference_input_mutations=True)
    torch.compile(model, backend=backend, fullgraph=True)(*(x.cuda() for x in network.inputs(network.batch)))
    return found


def measure(network, graph):
    from truth import measure as by
    eager = by.kept(network._replace(loss="none"), network.batch)
    found = partition(network, BUDGETS)
    with open(graph, "w") as out:
        write_graph(found, BUDGETS, out)
    return {"eager": eager, "saved": saved(found)}


def saved(found):
    return {str(b): sum(r[-1] for r in found[b]) for b in BUDGETS}


def write_graph(found, budgets, out):
    for node in found["graph"].nodes:
        value = node.meta.get("val")
        shape = f"{str(value.dtype)[6:]}{list(value.shape)}" if hasattr(value, "shape") else ""
        print(f"{node.name}: {shape} = {node.target}{node.args}", file=out)
    for budget in budgets:
        print(f"saved at {budget}:", file=out)
        for r in found[budget]:
            print(*r, file=out)


PEAK_BATCH = 16


def measure_peak(network, budget):
    """The most that tensors take in an iteration with SGD and momentum, cross-entropy outside of the compiled network."""
    import torch._functorch.config as config
    from truth import measure as by

    def compiled(model):
        model.compile()
        return model

    with config.patch(activation_memory_budget=budget):
        return by.training(network, PEAK_BATCH, "momentum", compiled)


def base_of(folder, name):
    return os.path.join(folder, "".join(c if c.isalnum() else "_" for c in name))


def row(exe, folder, name):
    base = base_of(folder, name)
    measured = read(base + ".compiled.json")
    if not measured or not os.path.exists(base + ".onnx"):
        return f"| {name} | not measured |"
    cells = []
    for budget in BUDGETS:
        found = report(exe, base + ".onnx", ["--train", "sgd", "--loss", "none", f"--compile={budget}"])
        if isinstance(found, str):
            return f"| {name} | {found} |"
        predicted = found["training"]["compile"]["saved_activation_bytes"]
        truth = measured["saved"][str(budget)]
        if not cells:
            cells += [f"{predicted:,}", f"{truth:,}", f"{100 * truth / measured['eager']:.1f} %"]
        cells.append(difference(predicted, truth))
    return f"| {name} | " + " | ".join(cells) + " |"


def measure_operators(folder, names):
    """NAME.onnx without text and contents of weights, and compiled.json: what is saved, by name and budget."""
    import onnx
    import torch
    from truth import exports
    from truth.networks.operators import OPERATORS
    sys.path.append(os.path.join(exports.ROOT, "samples"))
    from export import strip
    for name in names or OPERATORS:
        try:
            torch._dynamo.reset()
            found = partition(OPERATORS[name], BUDGETS)
            model = torch.onnx.export(*exports.made(OPERATORS[name], True), dynamo=True).model_proto
            strip(model)
            onnx.save(model, os.path.join(folder, name + ".onnx"))
        except Exception as error:  # one that cannot be traced or exported does not stop the others
            print(f"{name}: {str(error).strip().splitlines()[0][:200]}", file=sys.stderr)
            continue
        note(os.path.join(folder, "compiled.json"), name, saved(found))
        with open(os.path.join(folder, name + ".graph"), "w") as out:
            write_graph(found, BUDGETS, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("export", "measure", "operators", "peaks", "table"))
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exe", default="onnxvram")
    parser.add_argument("--budget", type=float, default=1, help="of peaks")
    arguments = parser.parse_args()
    if arguments.what == "operators":
        measure_operators(arguments.folder, arguments.names)
        return
    from truth import exports
    if arguments.what == "table":
        print("| network | predicted | AOTAutograd | of eager's | " + " | ".join(f"budget {b:g}" for b in BUDGETS) +
              " |\n|---|--:|--:|" + "--:|" * (len(BUDGETS) + 1))
    peaks = "peak" if arguments.budget == 1 else f"peak-{arguments.budget:g}"
    suffix = {"export": ".onnx", "peaks": f".{peaks}.json"}.get(arguments.what, ".compiled.json")
    for name in arguments.names or NETWORKS:
        base, network = base_of(arguments.folder, name), NETWORKS[name]
        if arguments.what == "table":
            print(row(arguments.exe, arguments.folder, name), flush=True)
        elif not os.path.exists(base + suffix):
            found = step(base, suffix[1:], 1200, {"export": lambda: exports.onnx_file(network, base + suffix, True, True),
                                                  "measure": lambda: measure(network, base + ".graph"),
                                                  "peaks": lambda: measure_peak(network, arguments.budget)}[arguments.what])
            if found:
                write(base + suffix, found)
                print(name, found, flush=True)


if __name__ == "__main__":
    main()
