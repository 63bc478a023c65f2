"""Creates the conformance vectors for byte arrays with the widths `bytes N` and `until N` (section 3.2): directories x-width* in
tests/vectors.

The bytes are written by hand, each record next to its meaning according to the specification. No project code is called."""
from .common import clear, trace, write
from .common import line as record
from .other import good

DTD = """// Bytes of a short length, and bytes that end at a byte.
section s 1 {
    id.width = bytes 4; id.interpretation = none; id.format = "utf8";
    one.width = bytes 1; one.interpretation = none;
    text.width = until 0; text.interpretation = none; text.format = "utf8";
    line.width = until 10; line.interpretation = none; line.format = "utf8";
    raw.width = until 0xff; raw.interpretation = none;
    n.width = 1; n.interpretation = none;
    a: (tag, id, one, text, n) { tag.value = 4; }
    b: (tag, n, n*line, (n.value == 2)*raw, pair) { tag.value = 5; }
    // A block wins: this line ends at a 0, too.
    c: (tag, line, data) { tag.value = 6; line.width = until 0; data.width = id_bytes.value; data.interpretation = none;
        id_bytes.interpretation = default 2; }
    pair: (text, id);
}
section lines 2 {
    entry: (line) { line.width = until 10; line.interpretation = none; line.format = "utf8"; }
}
""".replace("c: (tag, line, data)", "c: (tag, id_bytes, line, data)")

BAD = """section s 1 {
    n.width = 1; n.interpretation = none;
    a: (tag, n, text) { tag.value = 4; text.width = until 0; text.interpretation = none; }
    b: (tag, id) { tag.value = 5; id.width = bytes 3; id.interpretation = none; }
}
"""


def bad_trace(name, what, content, offsets, *delivered):
    """Writes a vector of a corrupt trace. `offsets` are relative to the content of section s."""
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", content))], 0)
    start = len(made) - len(content)
    note = {"what": what, "offsets": [start + at for at in offsets], "spec": "3.2"}
    write(f"bad/trace/x-{name}", {"format.dtd": BAD, "note.json": note, "trace.mtf": made, "expected.jsonl": list(delivered)})


def bad_dtd(name, what, setting, fault, spec="3.2"):
    """Writes a vector of an invalid DTD. `fault` is the part of `setting` at which the error is reported."""
    dtd = "section s 1 {\n    n.width = 1; n.interpretation = none;\n    r: (tag, n, x, m) {\n        tag.value = 4; m.width = 1; m.interpretation = none;\n"
    dtd += f"        {setting}\n    }}\n}}\n"
    note = {"what": what, "at": [[5, 9 + setting.index(fault)]], "spec": spec}
    write(f"bad/dtd/x-{name}", {"format.dtd": dtd, "note.json": note})


def main():
    clear("x-width")
    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04IHDR\x00text\x00\x07", record("s", "a", tag=4, id="IHDR", one="00", text="text", n=7)),
        # A byte 10 does not end an array that ends at a 0; an empty array ends immediately.
        (b"\x04\xff\x00\x00\x00\x01\x00\x09", record("s", "a", tag=4, id={"hex": "ff000000"}, one="01", text="", n=9)),
        (b"\x04abcd\x00a\nb\x00\x09", record("s", "a", tag=4, id="abcd", one="00", text="a\nb", n=9)),
        (
            b"\x05\x02one\n\n\x01\x00\x02\xffp\x00four",
            record("s", "b", tag=5, n=2, line=["one", ""], raw="010002", pair={"text": "p", "id": "four"}),
        ),
        (b"\x05\x00\x00four", record("s", "b", tag=5, n=0, line=[], pair={"text": "", "id": "four"})),
        (b"\x05\x01\xff\x00\n\x00four", record("s", "b", tag=5, n=1, line=[{"hex": "ff00"}], pair={"text": "", "id": "four"})),
        (b"\x06a\nb\x00hi", record("s", "c", tag=6, id_bytes=2, line="a\nb", data="6869")),
    ]
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents))], 7)
    good(
        "width-arrays",
        "byte arrays of up to 8 bytes, and bytes that end at a byte: alone, repeated, optional and nested",
        "3.2, 8",
        DTD,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        len(made) - len(contents) - 2,
        bytes=made,
        constants={"a": ["tag"], "b": ["tag"], "c": ["tag"]},
        encode=True,
    )

    whole = b"\x04\x07hi\x00"
    known = record("s", "a", n=7, text="6869")
    bad_trace("width-no-end", "bytes whose end is not there", whole + b"\x04\x01hi", [7, 9, 5], known)
    bad_trace("width-long", "the byte at the end comes after 65,536 bytes", whole + b"\x04\x01" + bytes([1]) * 65536 + b"\0", [7], known)
    bad_trace("width-cut", "two of three bytes", whole + b"\x05hi", [6, 8, 5], known)

    for name, what, setting, fault in [
        ("until-256", "no byte", "x.width = until 256; x.interpretation = none;", "256"),
        ("until-negative", "no byte", "x.width = until -1; x.interpretation = none;", "-1"),
        ("until-nothing", "a byte has to be said", "x.width = until; x.interpretation = none;", "until"),
        ("bytes-0", "an array of no bytes", "x.width = bytes 0; x.interpretation = none;", "0"),
        ("bytes-many", "2^32 bytes", "x.width = bytes 0x1_0000_0000; x.interpretation = none;", "0x1"),
        ("until-delta", "bytes have no interpretation but `none`", "x.width = until 0; x.interpretation = delta 0;", "delta"),
        ("bytes-delta", "bytes have no interpretation but `none`", "x.width = bytes 4; x.interpretation = delta 0;", "delta"),
        ("until-value", "bytes are no constant", "x.width = until 0; x.interpretation = none; x.value = 4;", "4;"),
        ("until-unit", "a width alone ends at a byte", "x.width = 1; x.interpretation = none; x.value = until 0;", "until"),
        ("until-of", "the width of such bytes is no integer", "x.width = until 0; x.interpretation = none; m.value = x.width;", "x.width;"),
    ]:
        bad_dtd(f"width-{name}", what, setting, fault)
