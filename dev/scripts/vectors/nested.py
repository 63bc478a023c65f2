"""Creates the conformance vectors for byte arrays that contain records of a section (section 3.7): directories x-nested* in tests/vectors.

The bytes are written by hand, each record next to its meaning according to the specification. No project code is called."""
import json
import os

from .common import ROOT, clear, trace, write
from .common import line as record
from .other import good

DTD = """// Blocks with options, as capture files have them, and with records that have tags of their own.
section blocks 1 {
    length.width = 2; length.interpretation = none;
    block: (tag, length, options, vfield) {
        tag.value = 4;
        options.width = length.value; options.interpretation = none; options.section = 2;
        vfield.data.section = 3;
    }
}
section options 2 {
    option: (code, size, value, padding) {
        code.width = 2; code.interpretation = none; size.width = 2; size.interpretation = none;
        value.width = size.value; value.interpretation = none; value.format = "utf8";
        padding.width = (size.value + 3) / 4 * 4 - size.value; padding.interpretation = none;
    }
}
section parts 3 {
    t.width = 1; t.interpretation = delta 0;
    step: (tag, t) { tag.value = 4; }
    magic: (tag, m) { tag.value = 5; m.width = 1; m.interpretation = none; m.value = 7; }
    rest: (tag, n, inner) {
        tag.value = other;
        n.width = 1; n.interpretation = none;
        inner.width = n.value; inner.interpretation = none; inner.section = 2;
    }
}
"""


def option(code, value, padding, **fields):
    return record("", "option", code=code, size=len(value), value=value, padding=padding, **fields)


def array(*records):
    return [{key: value for key, value in record.items() if key != "@section"} for record in records]


def plain(value):
    """Removes tags and constants from the records in a record's arrays."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    hidden = {"step": ["tag"], "magic": ["tag", "m"]}.get(value["@record"], [])
    return {key: plain(one) for key, one in value.items() if key not in hidden}


def main():
    clear("x-nested")
    hi = b"\x01\x00\x02\x00hi\x00\x00"
    end = b"\x00\x00\x00\x00"
    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        # Each array begins with fresh state: the delta yields 5, then 5 + 2.
        (
            b"\x04\x0c\x00" + hi + end + b"\x06\x04\x05\x05\x07\x04\x02",
            record("blocks", "block", tag=4, length=12, options=array(option(1, "hi", "0000"), option(0, "", "")),
                   vfield=array(record("", "step", tag=4, t=5), record("", "magic", tag=5, m=7), record("", "step", tag=4, t=7))),
        ),
        (
            b"\x04\x00\x00\x0e\x04\x01\xff\x08" + hi + b"\x63\x00",
            record("blocks", "block", tag=4, length=0, options=[],
                   vfield=array(record("", "step", tag=4, t=1), record("", "rest", tag=255, n=8, inner=array(option(1, "hi", "0000"))),
                                record("", "rest", tag=99, n=0, inner=[]))),
        ),
        # The first array has a byte after the last option; the second begins with the tag of `comment`.
        (
            b"\x04\x05\x00" + end + b"\x01\x02\x01\x00",
            record("blocks", "block", tag=4, length=5, options="0000000001", vfield="0100"),
        ),
        # Invalid arrays are printed as bytes: one with a wrong constant, and one with a truncated record inside of a valid array.
        (b"\x04\x00\x00\x02\x05\x08", record("blocks", "block", tag=4, length=0, options=[], vfield="0508")),
        (
            b"\x04\x00\x00\x03\xff\x01\x09",
            record("blocks", "block", tag=4, length=0, options=[], vfield=array(record("", "rest", tag=255, n=1, inner="09"))),
        ),
    ]
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents)), (2, (b"\x02\x02", b"")), (3, (b"\x02\x03", b""))], 5, 8)
    tail = [(b"\x02\x02", record("blocks", "section", number=2)), (b"\x02\x03", record("options", "section", number=3))]
    good(
        "nested",
        "byte arrays that are records of a stream section, and of one with tags; arrays in arrays; bytes that are no whole records",
        "3.7, 8",
        DTD,
        [piece for piece, _ in pieces + tail],
        [line for _, line in pieces + tail],
        len(made) - len(contents) - 6,
        bytes=made,
        constants={"block": ["tag"]},
        encode=True,
    )
    # Tags and constants in arrays are also printed only with `--all`.
    path = os.path.join(ROOT, "good/x-nested/expected.jsonl")
    with open(path) as file:
        lines = [plain(json.loads(line)) for line in file]
    with open(path, "w") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def bad(name, what, properties, rest, *at):
        dtd = f"section s 1 {{\n    r: (tag, a) {{ tag.value = 4; a.width = 9; a.interpretation = none; {properties} }}\n}}\n{rest}"
        note = {"what": what, "at": [list(place) for place in at], "spec": "3.7"}
        write(f"bad/dtd/x-nested-{name}", {"format.dtd": dtd, "note.json": note})

    bad("none", "a section that is not there", "a.section = 2;", "", (2, 72), (2, 84))
    bad("empty", "a section without records", "a.section = 2;", "section t 2 { }\n", (2, 72), (2, 84))
    bad("itself", "a section that nests itself", "a.section = 1;", "", (2, 72), (2, 84))
    streams = "section t 2 { q: (tag, x) { tag.value = 4; x.interpretation = sectionStride 3 1; } }\nsection u 3 { e: (v) { v.width = 1; v.interpretation = none; } }\n"
    bad("stride", "records that take values from a stream section", "a.section = 2;", streams, (2, 72), (2, 84))
    chain = "".join(f"section t{n} {n} {{ q: (tag, x) {{ tag.value = 4; x.width = 9; x.interpretation = none; x.section = {n + 1}; }} }}\n" for n in range(2, 10))
    bad("deep", "nine sections, one in the other", "a.section = 2;", chain + "section t10 10 { e: vfield; }\n", (2, 72), (2, 84))
