"""Creates the conformance vectors for types (sections 2, 3.1 and 3.6) and for `f32` (section 8). Directories x-type* and x-f32* in
tests/vectors.

The bytes and their meaning are written by hand according to the specification. No project code is called."""
import struct

from .common import Trace, clear, line, write


def good(name, about, spec, dtd, parts, lines):
    """`parts` is a list of the section, the content and the number of records of each chunk, and the width of a stream's numbers."""
    trace = Trace(dtd)
    for index, (section, content, records, *width) in enumerate(parts):
        # The first chunk begins the group.
        trace.chunk(content, section, 0, 1 if index else 3, width[0] if width else 0, records)
    records = sum(records for section, _, records, *width in parts if not width)
    files = {"format.dtd": dtd, "trace.mtf": trace.finish(records), "expected.jsonl": lines}
    write(f"good/x-{name}", files | {"case.json": {"about": about, "spec": spec, "mode": "dump"}})


def bad(name, what, fields, *places, block="", before=""):
    """A list of fields in line 2, behind `before` in line 1 and before `block` in line 3."""
    dtd = f"{before}\nsection s 1 {{ r: ({fields}) {{ tag.value = 4;\n{block} }} p: (x: u8); }}\n"
    write(f"bad/dtd/x-{name}", {"format.dtd": dtd, "note.json": {"what": what, "at": [list(at) for at in places], "spec": "2, 3.1"}})


SIZES = range(1, 9)


def numbers():
    fields = [f"u{8 * n}: u{8 * n}, i{8 * n}: i{8 * n}" for n in SIZES]
    # The names of predefined types are ordinary names of fields.
    dtd = f"section s 1 {{ r: (tag, {', '.join(fields)}, f: f32, g: f64) {{ tag.value = 4; }} }}\n"
    content, lines = b"", []
    for pattern in (0x00, 0xFF, 0x80, 0x7F):
        content += b"\4"
        values = {}
        for n in SIZES:
            raw = bytes([1] * (n - 1) + [pattern])
            content += raw + raw
            values[f"u{8 * n}"] = int.from_bytes(raw, "little")
            values[f"i{8 * n}"] = int.from_bytes(raw, "little", signed=True)
        content += struct.pack("<fd", 1.5, -0.25)
        lines.append(line("s", "r", **values, f=1.5, g=-0.25))
    good("type-numbers", "every predefined type of numbers", "3.6", dtd, [(1, content, 4)], lines)


def arrays():
    dtd = """section s 1 {
    r: (tag, n: u8, a: bytes 2, b: bytes n.value * 2 - 1, c: text 3, d: text n.value, e: cstring, f: cstring 4, g: text, h: text) {
        tag.value = 4;
        h.length.width = 2; h.data.format = "bytes";
    }
}
"""
    # The format of a block comes before that of the type only if the type is one of the DTD, so `h` has another type.
    dtd = dtd.replace(' h.data.format = "bytes";', "")
    content = b"\4\2" + b"\1\xff" + b"\1\2\3" + b"abc" + b"de" + b"fg\0" + b"h\0\0\0" + b"\2ij" + b"\2\0kl"
    lines = [line("s", "r", n=2, a="01ff", b="010203", c="abc", d="de", e="fg", f={"text": "h", "tail": "000000"}, g="ij", h="kl")]
    good("type-arrays", "every predefined type of bytes, with and without a length", "3.6", dtd, [(1, content, 1)], lines)


def interpretations():
    dtd = """section s 1 {
    r: (tag, a: u8 delta, b: u16 delta -3, c: i8 delta 5, d: stride 7 -2, e: default 9, f: u8 baseOffset 100, g: u8 baseOffset r.a.value,
        h: u8 sectionOffset 2, i: sectionStride 3 2, j: delta 1, k: u8 default 4) {
        tag.value = 4;
        j.width = 1;
    }
}
section names 2 { name: (text: text); }
section numbers 3 { number: (n: u16); }
"""
    body = lambda *numbers: b"\4" + b"".join(numbers)
    content = body(b"\1", b"\1\0", b"\xff", b"\xff", b"\2", b"\0", b"\1") + body(b"\xff", b"\xff\xff", b"\x80", b"\1", b"\xfe", b"\3", b"\1")
    lines = [
        line("s", "r", a=1, b=2**64 - 2, c=4, d=5, e=9, f=99, g=3, h=0, i=10, j=2, k=4),
        line("s", "r", a=0, b=2**64 - 3, c=-124, d=3, e=9, f=101, g=-2 % 2**64, h=3, i=30, j=3, k=4),
    ]
    parts = [(2, b"\2ab\1c", 2, 0), (3, struct.pack("<3H", 10, 20, 30), 3, 2), (1, content, 2)]
    good("type-interpretations", "an interpretation in a type, with and without a predefined type", "3.1", dtd, parts, lines)


def definitions():
    dtd = """type time: u16 delta { unit = "us" }
type other: time;
type small: u8 delta {};
type type: i16;
count.width = 1; count.interpretation = none;
type short: u16;
section s 1 {
    type short: u8;
    // `time` and `other` have a previous value each, `start` has its own.
    r: (tag, time, other, start: time, type, x: short) { tag.value = 4; }
    q: (tag, time, other, start: time, y: other, short) { tag.value = 5; y.width = 1; }
}
section t 2 {
    p: (x: short, count);
    point: (x: i8, y: i8);
    r: (tag, count, count*p, ps: count*p, points: n*q: point, n*v: small, few: (count.bit 0)*w: text, from: point) {
        tag.value = 4;
        n.width = 1; n.interpretation = none;
        from.x.width = 2;
    }
}
"""
    s = b"\4" + b"\1\0\2\0\3\0\xff\xff\7" + b"\5" + b"\1\0\1\0\1\0\1\7" + b"\4" + b"\1\0\1\0\1\0\1\0\7"
    lines = [
        line("s", "r", time=1, other=2, start=3, type=-1, x=7),
        line("s", "q", time=2, other=3, start=1, y=1, short=7),
        line("s", "r", time=3, other=4, start=4, type=1, x=7),
    ]
    p = lambda x, count: struct.pack("<HB", x, count)
    t = b"\4\1" + p(1, 2) + p(3, 4) + b"\1\xff\1" + b"\5" + b"\2ab" + b"\xfe\xff\2"
    lines.append(line("t", "r", count=1, p=[{"x": 1, "count": 2}], ps=[{"x": 3, "count": 4}], n=1, points=[{"x": -1, "y": 1}], v=[5], few="ab",
                      **{"from": {"x": -2, "y": 2}}))
    return dtd, s, t, lines


def floats():
    dtd = """section s 1 { r: (tag, x, y: f32) { tag.value = 4; x.width = 4; x.interpretation = none; x.format = "f32"; } }
"""
    values = [(0x3DCCCCCD, 0.1), (0x80000000, -0.0), (0x00000001, 1e-45), (0x7F7FFFFF, 3.4028235e38), (0x4B800001, 16777218.0),
              (0x7F800000, {"hex": "7f800000"}), (0xFFC00001, {"hex": "ffc00001"})]
    content = b"".join(b"\4" + struct.pack("<II", bits, bits) for bits, _ in values)
    lines = [line("s", "r", x=shown, y=shown) for _, shown in values]
    good("f32", "f32 with the fewest digits, and without a number in JSON", "8", dtd, [(1, content, len(values))], lines)


def main():
    clear("x-type", "x-f32")
    numbers()
    arrays()
    interpretations()
    dtd, s, t, lines = definitions()
    good("type-definitions", "types that the DTD defines, and records as types", "3.1", dtd, [(1, s, 3), (2, t, 1)], lines)
    floats()
    bad("type-unknown", "a type that does not exist", "tag, a: u17", (2, 27))
    bad("type-of-tag", "a type of the tag", "tag: u8, a: u8", (2, 19), (2, 24))
    bad("type-tagged", "a tagged record as a type", "tag, a: comment", (2, 27))
    bad("type-twice", "two types of one name", "tag, a: u8, b: u8, a: u16", (2, 38), (2, 41))
    bad("type-and-width", "a width in the type and in the block", "tag, a: u8", (3, 1), block="a.width = 1;")
    bad("type-and-interpretation", "an interpretation in the type and in the block", "tag, a: u8 delta", (3, 1), block="a.interpretation = none;")
    bad("type-and-format", "a format in the type and in the block", "tag, a: f32", (3, 1), block='a.format = "hex";')
    bad("type-and-format-of-text", "a format in the type and in the block", "tag, a: text", (3, 1), block='a.data.format = "hex";')
    bad("type-no-length", "bytes without a length", "tag, a: bytes", (2, 27))
    bad("type-length-0", "bytes of length 0", "tag, a: bytes 0", (2, 33))
    bad("type-length-of-number", "a number with a length", "tag, a: u8 4", (2, 27), (2, 30))
    bad("type-length-of-later", "the length is a later field", "tag, a: bytes b.value, b: u8", (2, 33))
    bad("type-interpreted-bytes", "bytes with an interpretation", "tag, a: text none", (2, 27), (2, 32))
    bad("type-interpreted-record", "a record with an interpretation", "tag, a: p delta 0", (2, 27), (2, 29))
    bad("type-itself", "a type that is defined by itself", "tag, a: b", (1, 6), (1, 9), (1, 17), (1, 20), before="type b: c; type c: b;")
    bad("type-defined-twice", "two definitions of a type", "tag, a: b", (1, 18), (1, 21), before="type b: u8; type b: u8;")
    bad("type-predefined", "a definition of a predefined type", "tag, a: u8", (1, 6), before="type u8: u16;")
    bad("type-defined-by-text", "a definition by a nested record", "tag, a: b", (1, 9), before="type b: text;")
    bad("type-defined-by-record", "a definition by a record", "tag, a: b", (1, 21), before="q: (x: u8); type b: q;")
    bad("type-property-twice", "a property in the type and in its block", "tag, a: b", (1, 6), (1, 14), before="type b: u8 { width = 1 }")
    bad("type-nests-itself", "a record that nests itself by a type", "tag, a: q", (1, 8), (1, 5), before="q: (x: q);")
    bad("type-outside-list", "a type of a field outside of a list", "tag, a: u8", (1, 5), (1, 7), before="q: x: u8;")
