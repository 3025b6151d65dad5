"""Models with functions and subgraphs, run node by node: what every value in them measures, and the ideal peak.

Nothing is inferred: every node runs in a session of ONNX Runtime of its own, on the values that the nodes before it
made; If, Loop and Scan are carried out here, by the words of their definitions, both branches of an If where each can
run.  A value's size is the largest of all its iterations.  Names are paths: the owner's name (or its operator and place),
the attribute, the value.

The definitions of the peak:

  * nodes of subgraphs are steps before the step of their owner, branches in the order of the attributes; graphs that
    never run have none
  * an input of a body is live from the body's first step through its last use, where the body runs once a carried one is
    the initial value itself; what a loop stacks is live from the first step of its body
  * what a subgraph gives is live through its last step, and is the output of the owner from the owner's step on; what
    a subgraph reads from outside is live through the step of the owner in the value's graph
  * of two branches one runs: neither is live in the steps of the other; a branch that constants and shapes rule out
    has no steps
"""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import AttributeProto, helper, numpy_helper


def session(model, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL, **settings):
    """A session on the CPU, of a model or its file, by one thread."""
    options = ort.SessionOptions()
    for name, value in {"graph_optimization_level": level, "intra_op_num_threads": 1, "log_severity_level": 3, **settings}.items():
        setattr(options, name, value)
    return ort.InferenceSession(model if isinstance(model, str) else model.SerializeToString(), options,
                                providers=["CPUExecutionProvider"])


class Value:
    def __init__(self, path, graph, weight=False):
        self.path, self.graph, self.weight = path, graph, weight
        self.dtype, self.shape, self.size = None, None, 0
        self.differs = False  # not the same shape in every iteration or branch
        self.first = self.last = None
        # Whether the numbers in inputs, or in which iteration it is, can change its numbers; its shape.
        self.numbers_vary, self.shape_varies = not weight, False


class Graph:
    def __init__(self, owner=None):
        self.owner = owner  # a Node
        self.inputs, self.outputs, self.nodes = [], [], []
        self.weights = {}  # Value -> array
        self.ran = False
        self.trips = 0
        self.first = self.end = 0


class Node:
    def __init__(self, proto, graph):
        self.proto, self.graph = proto, graph
        self.inputs, self.outputs = [], []
        self.bodies = {}  # attribute -> Graph, in the order of the file
        self.step = None


# --- building ---------------------------------------------------------------------------------------------------------

def bound_attributes(proto, given):
    """The node with the attributes of the function that it stands in put in."""
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    del copy.attribute[:]
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.append(attribute)
        elif attribute.ref_attr_name in given:
            filled = copy.attribute.add()
            filled.CopyFrom(given[attribute.ref_attr_name])
            filled.name = attribute.name
    return copy


class Builder:
    def __init__(self, model):
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.given_by_caller = {}  # (scope, name) -> Value

    def graph(self, proto, owner, prefix, outer, given):
        graph = Graph(owner)
        scope = dict(outer)
        for tensor in proto.initializer:
            value = scope[tensor.name] = Value(prefix + tensor.name, graph, True)
            graph.weights[value] = numpy_helper.to_array(tensor)
            value.shape, value.size = list(tensor.dims), graph.weights[value].nbytes
        for declared in proto.input:
            if declared.name not in {t.name for t in proto.initializer}:
                scope[declared.name] = Value(prefix + declared.name, graph)
                graph.inputs.append(scope[declared.name])
        self.nodes(proto.node, graph, prefix, scope, given)
        graph.outputs = [scope[o.name] for o in proto.output]
        return graph

    def nodes(self, protos, graph, prefix, scope, given):
        for place, proto in enumerate(protos):
            proto = bound_attributes(proto, given)
            path = prefix + (proto.name or f"{proto.op_type}_{place}")
            function = self.functions.get((proto.domain, proto.op_type))
            if function is not None:
                self.call(function, proto, graph, prefix, path + "/", scope)
                continue
            node = Node(proto, graph)
            node.inputs = [scope[name] if name else None for name in proto.input]
            for attribute in proto.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    node.bodies[attribute.name] = self.graph(
                        attribute.g, node, f"{path}/{attribute.name}/", scope, given)
            node.outputs = [self.output(name, scope, prefix, graph) for name in proto.output]
            for value in node.outputs:
                if value is not None:
                    value.weight = proto.op_type == "Constant"
            graph.nodes.append(node)

    def output(self, name, scope, prefix, graph):
        """A new value, or the caller's where a function gives it."""
        if name:
            scope[name] = self.given_by_caller.pop((id(scope), name), None) or Value(prefix + name, graph)
        return scope[name] if name else None

    def call(self, function, proto, graph, prefix, inner_prefix, scope):
        """The function's nodes in place of the call; what it takes and gives are the caller's values."""
        inner = {formal: scope[name] for formal, name in zip(function.input, proto.input) if name}
        given = {a.name: a for a in list(function.attribute_proto) + list(proto.attribute)}
        for formal, name in zip(function.output, proto.output):
            if name:
                self.given_by_caller[id(inner), formal] = self.output(name, scope, prefix, graph)
        self.nodes(function.node, graph, inner_prefix, inner, given)


# --- running ----------------------------------------------------------------------------------------------------------

# The first input whose numbers decide the shape of the output.
SHAPED = {"NonZero": 0, "NonMaxSuppression": 0, "Unique": 0, "Compress": 1, "Range": 0, "ConstantOfShape": 0,
          "Reshape": 1, "Expand": 1, "Slice": 1, "Tile": 1, "TopK": 1, "Resize": 1, "Pad": 1, "OneHot": 1, "Split": 1,
          "Squeeze": 1, "Unsqueeze": 1}


class Runner:
    def __init__(self, model):
        self.imports = [helper.make_opsetid(o.domain, o.version) for o in model.opset_import]
        for function in model.functions:
            have = {o.domain for o in self.imports}
            self.imports += [helper.make_opsetid(o.domain, o.version) for o in function.opset_import
                             if o.domain not in have]
        self.sessions = {}

    def session(self, node, arrays):
        kinds = tuple("seq" if isinstance(a, list) else str(a.dtype) for a in arrays if a is not None)
        key = (id(node), kinds)
        if key in self.sessions:
            return self.sessions[key]
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        del proto.input[:], proto.output[:]
        infos = []
        for k, array in enumerate(arrays):
            proto.input.append("" if array is None else f"i{k}")
            if array is None:
                continue
            one = array[0] if isinstance(array, list) and array else np.float32(0) if isinstance(array, list) else array
            kind = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(one.dtype), None)
            if isinstance(array, list):
                kind = helper.make_sequence_type_proto(kind)
            infos.append(helper.make_value_info(f"i{k}", kind))
        proto.output.extend("" if o is None else f"o{k}" for k, o in enumerate(node.outputs))
        graph = helper.make_graph([proto], "one", infos, [onnx.ValueInfoProto(name=o) for o in proto.output if o])
        model = helper.make_model(graph, opset_imports=self.imports, ir_version=10)
        self.sessions[key] = session(model, log_severity_level=4)
        return self.sessions[key]

    def one(self, node, env):
        arrays = [None if v is None else env[v] for v in node.inputs]
        session = self.session(node, arrays)
        results = session.run(None, {f"i{k}": a for k, a in enumerate(arrays) if a is not None})
        outputs = [o for o in node.outputs if o is not None]
        self.trace(node, outputs)
        for value, result in zip(outputs, results):
            self.keep(value, result, env)

    def trace(self, node, outputs):
        """What the numbers and shapes of the outputs hang on."""
        inputs = [v for v in node.inputs if v is not None]
        kind = node.proto.op_type
        shape_varies = any(v.shape_varies for v in inputs)
        if kind in SHAPED:
            shape_varies |= any(v is not None and v.numbers_vary for v in node.inputs[SHAPED[kind]:])
        numbers_vary = any(v.numbers_vary or v.shape_varies for v in inputs)
        if kind in ("Shape", "Size"):
            numbers_vary = inputs[0].shape_varies
        for value in outputs:
            value.numbers_vary, value.shape_varies = numbers_vary, shape_varies

    def keep(self, value, result, env):
        env[value] = result
        if isinstance(result, list):
            value.size = max(value.size, sum(r.nbytes for r in result))
            return
        result = np.asarray(result)
        shape = list(result.shape)
        value.differs |= value.shape is not None and value.shape != shape
        size = 0 if result.dtype.kind in "OUS" else result.nbytes
        if value.shape is None or size >= value.size:
            value.dtype, value.shape, value.size = str(result.dtype), shape, size

    def graph(self, graph, env):
        graph.ran = True
        for value in graph.weights:
            env[value] = graph.weights[value]
        for node in graph.nodes:
            run = {"If": self.branches, "Loop": self.loop, "Scan": self.scan}.get(
                node.proto.op_type if not node.proto.domain else "", self.one)
            run(node, env)
        return [env[o] for o in graph.outputs]

    def give(self, node, results, env):
        for value, result in zip(node.outputs, results):
            if value is not None:
                self.keep(value, result, env)

    def branches(self, node, env):
        """Both run, the one that is taken last; but not where constants decide, nor what cannot run."""
        taken = "then_branch" if bool(np.asarray(env[node.inputs[0]]).reshape(())) else "else_branch"
        other = next(name for name in node.bodies if name != taken)
        try:
            if node.inputs[0].numbers_vary:
                self.give(node, self.graph(node.bodies[other], dict(env)), dict(env))
        except Exception:  # whatever a kernel says of shapes that do not fit
            node.bodies[other].ran = False
        self.give(node, self.graph(node.bodies[taken], env), env)

    def loop(self, node, env):
        body = node.bodies["body"]
        most = None if node.inputs[0] is None else int(np.asarray(env[node.inputs[0]]).reshape(()))
        given = len(node.inputs) > 1 and node.inputs[1] is not None
        goes_on = bool(np.asarray(env[node.inputs[1]]).reshape(())) if given else True
        states = [env[v] for v in node.inputs[2:]]
        stacks = [[] for _ in body.outputs[1 + len(states):]]
        trips = 0
        while goes_on and (most is None or trips < most):
            inner = dict(env)
            for value, array in zip(body.inputs, [np.int64(trips), np.bool_(goes_on), *states]):
                self.keep(value, np.asarray(array) if not isinstance(array, list) else array, inner)
            results = self.graph(body, inner)
            goes_on = bool(np.asarray(results[0]).reshape(())) if given else True
            states = results[1:1 + len(states)]
            for stack, slice_ in zip(stacks, results[1 + len(states):]):
                stack.append(slice_)
            trips += 1
        body.trips = max(body.trips, trips)
        self.give(node, states + [np.stack(s) for s in stacks if s], env)

    def scan(self, node, env):
        body = node.bodies["body"]
        attributes = {a.name: helper.get_attribute_value(a) for a in node.proto.attribute if a.name != "body"}
        n = attributes["num_scan_inputs"]
        n_states = len(node.inputs) - n
        states, inputs = [env[v] for v in node.inputs[:n_states]], [env[v] for v in node.inputs[n_states:]]
        axes = attributes.get("scan_input_axes", [0] * n)
        backward = attributes.get("scan_input_directions", [0] * n)
        n_out = len(body.outputs) - n_states
        trips = inputs[0].shape[axes[0]]
        stacks = [[] for _ in range(n_out)]
        for t in range(trips):
            inner = dict(env)
            slices = [np.take(a, trips - 1 - t if back else t, axis) for a, axis, back in zip(inputs, axes, backward)]
            for value, array in zip(body.inputs, states + slices):
                self.keep(value, array, inner)
            results = self.graph(body, inner)
            states = results[:n_states]
            for stack, slice_ in zip(stacks, results[n_states:]):
                stack.append(slice_)
        body.trips = max(body.trips, trips)
        directions = attributes.get("scan_output_directions", [0] * n_out)
        out_axes = attributes.get("scan_output_axes", [0] * n_out)
        self.give(node, states + [np.stack(s[::-1] if back else s, axis)
                                  for s, axis, back in zip(stacks, out_axes, directions)], env)


# --- the peak ---------------------------------------------------------------------------------------------------------

class Lives:
    def __init__(self, main):
        self.steps, self.values = [], []
        self.list_graph(main)
        for value in main.inputs:
            self.live(value, 0, 0)
        self.graph_values(main)
        self.uses(main)
        for value in main.outputs:
            self.use(value, main, len(self.steps) - 1)

    def list_graph(self, graph):
        graph.first = len(self.steps)
        for node in graph.nodes:
            for body in node.bodies.values():
                if body.ran:
                    self.list_graph(body)
            node.step = len(self.steps)
            self.steps.append(node)
        graph.end = len(self.steps)

    def live(self, value, first, last):
        if value is None or value.weight:
            return
        value.first, value.last = first, last
        self.values.append(value)

    def graph_values(self, graph):
        for node in graph.nodes:
            for name, body in node.bodies.items():
                if not body.ran:
                    continue
                self.body_inputs(node, body)
                self.graph_values(body)
            loop = node.bodies.get("body")
            stacked_from = len(node.outputs)
            if loop is not None and node.proto.op_type == "Loop":
                stacked_from = len(node.inputs) - 2
            elif loop is not None:
                stacked_from = len(node.inputs) - next(
                    a.i for a in node.proto.attribute if a.name == "num_scan_inputs")
            for k, value in enumerate(node.outputs):
                early = k >= stacked_from and loop is not None and loop.ran
                self.live(value, loop.first if early else node.step, node.step)

    def body_inputs(self, node, body):
        if not body.nodes:
            return
        for k, value in enumerate(body.inputs):
            carried = k >= 2 if node.proto.op_type == "Loop" else k < len(node.inputs) - next(
                a.i for a in node.proto.attribute if a.name == "num_scan_inputs")
            value.is_initial = carried and body.trips == 1 and not node.inputs[k].weight
            self.live(value, body.first, body.first)

    def use(self, value, graph, step):
        if value is None or value.first is None:
            return
        while graph is not value.graph and graph.owner is not None:
            step, graph = graph.owner.step, graph.owner.graph
        value.last = max(value.last, step)

    def uses(self, graph):
        for node in graph.nodes:
            for value in node.inputs:
                self.use(value, graph, node.step)
            for body in node.bodies.values():
                if body.ran:
                    self.uses(body)
                    for value in body.outputs:
                        self.use(value, body, max(body.first, body.end - 1) if body.nodes else node.step)

    def peak(self):
        own = [v for v in self.values if not getattr(v, "is_initial", False)]
        change = [0] * (len(self.steps) + 1)
        for value in own:
            change[value.first] += value.size
            change[value.last + 1] -= value.size
        live = best = step = 0
        for s in range(len(self.steps)):
            live += change[s]
            if live > best:
                best, step = live, s
        alive = sorted(v.path for v in self.values if v.first <= step <= v.last)
        return {"bytes": best, "step": step, "tensors": alive}


def held_weights(main):
    """Weights but for those of branches that cannot run, and what only such branches read."""
    read, unread, held = set(), set(), []

    def walk(graph, runs):
        for node in graph.nodes:
            (read if runs else unread).update(v for v in node.inputs if v is not None)
            for body in node.bodies.values():
                # A loop without trips is no branch: its weights are in the file for more trips.
                walk(body, runs and (body.ran or node.proto.op_type != "If"))
        (read if runs else unread).update(graph.outputs)
        if runs:
            held.extend(graph.weights)
            held.extend(o for node in graph.nodes if node.proto.op_type == "Constant" for o in node.outputs)

    walk(main, True)
    return [v for v in held if v in read or v not in unread]


def measure(model, feeds):
    """Every value (by path), the peak, how many steps there are, and elements and bytes of the weights."""
    builder = Builder(model)
    main = builder.graph(model.graph, None, "", {}, {})
    env = {}
    runner = Runner(model)
    for value in main.inputs:
        runner.keep(value, feeds[value.path], env)
    runner.graph(main, env)
    lives = Lives(main)

    def every(graph):
        yield from graph.inputs
        for node in graph.nodes:
            yield from (o for o in node.outputs if o is not None)
            for body in node.bodies.values():
                if body.ran:
                    yield from every(body)

    values = {v.path: v for v in every(main) if v.shape is not None}
    weights = held_weights(main)
    elems = sum(int(np.prod(v.shape, dtype=object)) for v in weights)
    return values, lives.peak(), len(lives.steps), (elems, sum(v.size for v in weights))
