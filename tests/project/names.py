"""names.py PROGRAM FOLDER: hostile names in every report. What is written has no byte that a terminal, a browser, a
spreadsheet or a parser takes for something else than text."""
import csv
import html.parser
import io
import json
import pathlib
import pickletools
import re
import subprocess
import sys
import unicodedata
import xml.etree.ElementTree

sys.path.insert(0, "tests/web")
import onnx_bytes as ox  # noqa: E402

MARK = "taken"  # every name has it, so that a reader that looks at nothing fails
NAMES = [
    b"\x1b[31mtaken", b"\x1b]8;;http://taken/\x1b\\x\x1b]8;;\x1b\\", b"\x1b]0;taken\x07", b"\xc2\x9b2Jtaken",
    "\u202etaken\u2066x\u2069".encode(), "taken\u2028a\u2029b\u0085".encode(), "\u200btaken\ufeff".encode(),
    b"</script><script>taken()</script>", b"<!--<script>taken", b"]]><svg onload=taken()>", b"&lt;taken&#x3c;",
    b"=cmd|' /C calc'!taken", b"@SUM(taken)", b"+1-taken", b"\t=taken", b"\n=taken", "\uff1dtaken".encode(),
    b"`taken`", b"``` taken", b"|taken|a||", b"[taken](javascript:1)", b"![x](http://taken)", b"a\r\nTAKEN: taken",
    b"\"taken\"", b"'''taken", b"\\taken\\", b"taken\"}],\"x\":[{", b"${taken} $(taken) %s%n {taken}", b"taken,taken;taken", b"taken\x7f\x01",
]
# What is no text at all: refused, with a line that does not repeat it.
REFUSED = [b"taken\xff\xfe\x80", b"\xc0\xaftaken", b"\xed\xa0\x80taken", b"taken\x00hidden"]


def model(names, dims_too):
    """Every name is a tensor's, a node's, a module's and, if wanted, a dim's."""
    dims = ["batch", 4, 8]
    graph, last = [ox.value(11, "input", dims)], b"input"
    for i, name in enumerate(names):
        weight = name + b".%d.weight" % i
        graph.append(ox.weight(weight, [8, 8]))
        out = name + b"%d" % i
        graph.append(ox.node("MatMul", [last, weight], [out], b"/" + name.replace(b"/", b"") + b"/m.%d/MatMul" % i))
        last = out
    graph.append(ox.value(12, last, dims))
    for i, name in enumerate(names if dims_too else []):  # inputs that nothing reads
        graph.append(ox.value(11, b"free%d" % i, [name, 2]))
    return ox.model(graph)


def is_hidden(c, kept):
    return c not in kept and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))


def plain(data, kept="\n"):
    """UTF-8 without a character that is not seen, but those kept."""
    text = data.decode("utf-8")
    bad = [c for c in text if is_hidden(c, kept)]
    assert not bad, "characters " + ascii(bad[:5])
    assert MARK in text, "no name"
    return text


def distinct(pairs):
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), "a key twice"
    return dict(pairs)


def refuse(text):
    raise AssertionError("not JSON: " + text)


def read_json(data):
    text = plain(data)
    assert text.isascii()
    return json.loads(text, parse_constant=refuse, object_pairs_hook=distinct)


def read_csv(data):
    """Cells keep the line ends and tabs of names, inside quotes."""
    text = plain(data, "\n\r\t")
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len(rows) > len(NAMES)
    for row in rows:
        assert len(row) == len(rows[0]), row
        for cell in row:
            first = cell.lstrip()[:1] if cell[:1] != "'" else "'"
            assert unicodedata.normalize("NFKC", first) not in tuple("=+-@"), ascii(cell)
            assert cell[:1] not in ("\t", "\r", "\n"), ascii(cell)


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.data, self.inside = [], {}, None

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for key, value in attributes:
            assert not key.startswith("on") and MARK not in (key + str(value)), (tag, key, value)
        self.inside = (tag, dict(attributes).get("type")) if tag == "script" else None

    def handle_endtag(self, tag):
        if tag == "script":
            self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.data[self.inside] = self.data.get(self.inside, "") + data


def read_html(data):
    text = data.decode("utf-8")
    page = Page()
    page.feed(text)
    assert "img" not in page.tags
    blocks = [block for (_, kind), block in page.data.items() if kind == "application/json"]
    assert len(blocks) == 1 and MARK in blocks[0], len(blocks)
    assert not set("<>&\u2028\u2029") & set(blocks[0])
    json.loads(blocks[0], parse_constant=refuse, object_pairs_hook=distinct)
    rest = text.replace(blocks[0], "")
    plain_text = re.findall("<pre>(.*?)</pre>", rest, re.S)
    assert plain_text and not any("<" in part for part in plain_text)
    rest = re.sub("<pre>.*?</pre>", "", rest, flags=re.S)
    assert "taken()" not in rest and "\x1b" not in rest


def read_svg(data):
    tree = xml.etree.ElementTree.fromstring(plain(data))
    for element in tree.iter():
        tag = element.tag.rsplit("}", 1)[-1]
        assert tag in ("svg", "g", "path", "rect", "line", "text", "title", "desc", "tspan", "style", "polyline",
                       "polygon", "circle"), tag
        assert not any(k.startswith("on") or "href" in k for k in element.attrib), element.attrib


def read_markdown(data):
    """No tag, link, image or code span that a name made, and no cell more or less than its table has."""
    text = plain(data)
    for raw in ("<script", "<svg", "<!--", "](", "`taken", "``` taken", "|taken", "@SUM", "&lt;taken"):
        assert raw not in text, raw
    columns = None
    for line in text.split("\n"):
        cells = line.count("|") if line.startswith("|") else None
        assert None in (columns, cells) or cells == columns, line
        columns = cells


def read_pickle(data):
    # MemoryViz reads a pickle: it makes no object, which is what would run something.
    text = data
    ops = [op.name for op, _, _ in pickletools.genops(text)]
    assert not {"GLOBAL", "STACK_GLOBAL", "REDUCE", "INST", "OBJ", "NEWOBJ", "BUILD"} & set(ops)
    assert MARK.encode() in text


def strings_of(data, depth=0):
    """What of a protobuf message may be text."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            _, at = varint(data, at)
        elif key & 7 == 1:
            at += 8
        elif key & 7 == 5:
            at += 4
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            assert at + size <= len(data)
            yield data[at:at + size]
            at += size


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def read_protobuf(data):
    assert list(strings_of(data)) and MARK.encode() in data


def read_python(data):
    compile(plain(data), "formula", "exec")


READERS = {
    "text": ([], plain),
    "text-verbose": (["-v", "-b", "2"], plain),
    "text-ascii": (["-b", "2", "--color", "always"], lambda d: plain(re.sub(rb"\x1b\[[0-9;]*m", b"", d))),
    "json": (["--json", "-b", "2", "--timelines"], read_json),
    "csv": (["--csv"], read_csv),
    "layers": (["--layers"], plain),
    "markdown": (["--format", "markdown", "-v"], read_markdown),
    "formula": (["--formula"], plain),
    "formula-python": (["--formula=python"], read_python),
    "formula-c": (["--formula=c"], plain),
    "html": (["-q", "-b", "2", "--html={out}"], read_html),
    "svg": (["-q", "-b", "2", "--svg", "{out}"], read_svg),
    "memory-viz": (["-q", "-b", "2", "--runtime", "torch", "--memory-viz", "{out}"], read_pickle),
    "perfetto": (["-q", "-b", "2", "--perfetto", "{out}"], read_json),
    "model-explorer": (["-q", "-b", "2", "--model-explorer", "{out}"], read_json),
    "onnx-out": (["-q", "-b", "2", "--onnx-out", "{out}"], read_protobuf),
    "plan.json": (["-q", "-b", "2", "--train", "adam", "--checkpoint", "sqrt", "--plan-out", "{out}"], read_json),
    "dump-graph": (["--dump", "graph", "-b", "2"], plain),
    "dump-header": (["--dump", "header", "-b", "2", "--runtime", "arena"], plain),
    "dump-trace": (["--dump", "trace", "-b", "2", "--runtime", "torch"], lambda d: plain(d, "\n\r\t")),
}


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    free, bound = folder / "free.onnx", folder / "bound.onnx"
    free.write_bytes(model(NAMES, True))
    bound.write_bytes(model(NAMES, False))
    wrong = []
    for name, (options, read) in READERS.items():
        out = folder / name
        asked = [program, *(o.replace("{out}", str(out)) for o in options), str(bound if "-b" in options else free)]
        run = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        (folder / (name + ".out")).write_bytes(run.stdout)
        try:
            assert run.returncode == 0, run.stderr.decode("utf-8", "replace")
            data = out.read_bytes() if "{out}" in " ".join(options) else run.stdout
            read(data)
        except Exception as error:  # pylint: disable=broad-except
            wrong.append(f"{name}: {type(error).__name__}: {error!a}")
    for name in REFUSED:
        bound.write_bytes(model([name], False))
        run = subprocess.run([program, str(bound)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if (run.returncode, run.stdout, run.stderr.count(b"\n"), b"taken" in run.stderr) != (1, b"", 1, False):
            wrong.append(f"{name!a}: status {run.returncode}: {run.stderr!a}")
    print("\n".join(wrong) or f"{len(READERS)} formats, {len(NAMES)} names")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
