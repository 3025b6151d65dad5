"""Small ONNX files without the onnx package: the few messages that the tests of the page need."""


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    data = value if isinstance(value, bytes) else value.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def node(op_type, inputs, outputs, name="", notes=()):
    parts = [text(1, i) for i in inputs] + [text(2, o) for o in outputs]
    noted = [text(9, text(1, key) + text(2, notes[key])) for key in notes]
    return text(1, b"".join(parts) + text(3, name) + text(4, op_type) + b"".join(noted))


def value(field, name, dims):
    shape = b"".join(text(1, number(1, d) if isinstance(d, int) else text(2, d)) for d in dims)
    return text(field, text(1, name) + text(2, text(1, number(1, 1) + text(2, shape))))


def weight(name, dims):
    count = 1
    for d in dims:
        count *= d
    return text(5, b"".join(number(1, d) for d in dims) + number(2, 1) + text(8, name) + text(9, bytes(4 * count)))


def model(graph):
    """`graph`: nodes, weights, value(11, ...) of inputs and value(12, ...) of outputs."""
    return number(1, 8) + text(8, text(1, "") + number(2, 17)) + text(7, text(2, "main") + b"".join(graph))


def large(n_nodes):
    """A residual network of elementwise layers, each with a weight of its own: twice as many tensors as nodes."""
    graph, last, kept = [value(11, "input", ["batch", 64])], "input", "input"
    for i in range(n_nodes):
        scope = f"/model/layers.{i // 20}/block.{i % 20 // 5}"
        bias, out = f"model.layers.{i // 20}.block.{i % 20}.bias", f"{scope}/Add_{i}_output_0"
        graph.append(weight(bias, [64]))
        second = kept if i % 20 == 19 else bias
        graph.append(node("Add", [last, second], [out], f"{scope}/Add_{i}"))
        if i % 20 == 19:
            kept = out
        last = out
    graph.append(value(12, last, ["batch", 64]))
    return model(graph)


HOSTILE = [
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "\u202eevil\u202c\u2066x\u2069 \u200b name",
    "&lt;b&gt; '\" ` ${1} {{data}} {{scripts}}",
    "a\u2028b\u2029c\x1b[31m",
    "__proto__", "constructor", "toString",
    "<!--" + "<script>" * 3,
    "x" * 64900 + "<svg onload=alert(1)>",
]


def hostile():
    """Each name is a tensor's, a node's and, as its scope, a module's."""
    graph, last = [value(11, "input", ["batch", "<b>width</b>", 8])], "input"
    for i, name in enumerate(HOSTILE):
        out = f"{name}{i}" if i in (5, 6, 7) else name
        graph.append(node("Relu", [last], [out], "/" + name.replace("/", "") + f"/layer{i}/Relu"))
        last = out
    graph.append(value(12, last, ["batch", "<b>width</b>", 8]))
    return model(graph)
