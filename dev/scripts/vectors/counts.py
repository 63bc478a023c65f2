"""Creates the conformance vectors for counts with expressions (section 3.3), bits, `/` and `%`: directories x-count* in tests/vectors.

The bytes are written by hand, each record next to its meaning according to the specification. No project code is called."""
from .common import clear, trace, write
from .common import line as record
from .other import good

DTD = """// What is there if a bit is set, and what an expression counts.
section s 1 {
    flags.width = 1; flags.interpretation = none;
    time.width = 1; time.interpretation = delta 0;
    name.width = 1; name.interpretation = none;
    x.width = 1; x.interpretation = none;
    y.width = 1; y.interpretation = none;
    z.width = 1; z.interpretation = none;
    a: (tag, flags, (flags.bit 0)*time, (1 - flags.bit 0)*name, (flags.bit 1)*point, (flags.bit 2)*(x, y),
        (flags.bit 3 * flags.bit 7)*vfield) { tag.value = 4; }
    b: (tag, n, (n.value / 2 - 1)*x, m*(flags, (flags.bit 0)*y), pad, (2)*z, (n.value % 4)*point) {
        tag.value = 5;
        n.width = 1; n.interpretation = none; m.width = 1; m.interpretation = none;
        pad.width = (4 - n.value % 4) % 4; pad.interpretation = none;
    }
    // The path of a count begins at the record that lists the repetition, else at one that nests it.
    point: (x, y, (y.bit 0)*z);
}
"""

COMPARED = """// A value is as wide as its type says, and there if its type has one.
section s 1 {
    type.width = 1; type.interpretation = none;
    magic.width = 4; magic.interpretation = none; magic.value = 'IHDR';
    n.width = 8; n.interpretation = none;
    m.width = 8; m.interpretation = none;
    x.width = 1; x.interpretation = none;
    byte.width = 1; byte.interpretation = none;
    short.width = 2; short.interpretation = none;
    value: (tag, magic, type, data, (type.value == 4)*byte, (type.value != 4)*short, (type.value == '/')*x) {
        tag.value = 4;
        data.width = (type.value == 1) * 4 + (type.value == 2) * 8 + (type.value >= 0x10) * (type.value - type.value % 16) / 16;
        data.interpretation = none;
    }
    several: (tag, x, x*(type, part)) { tag.value = 6; part.width = (type.value < 3) * type.value; part.interpretation = none; }
    order: (tag, n, m, (n.value < m.value)*x, (n.value <= m.value)*byte, (n.value > m.value)*short, (n.value >= m.value)*(x, byte),
        (n.value + 1 == m.value * 2)*vfield, ((n.value == m.value) == 0)*type) { tag.value = 5; }
}
"""

CONSTANTS = """// A constant that is an item by itself says that it is there; one beside other fields of an item says nothing.
section s 1 {
    flags.width = 1; flags.interpretation = none;
    mark.width = 1; mark.interpretation = none; mark.value = 9;
    n.width = 1; n.interpretation = none;
    m.width = 1; m.interpretation = none;
    x.width = 1; x.interpretation = none;
    a: (tag, flags, mark, (flags.bit 0)*mark, x) { tag.value = 4; }
    b: (tag, n*mark, (2)*mark, m*(mark, x)) { tag.value = 5; }
}
"""

NAMED = """// What a repetition is called: like what it repeats, or as the list says.
section s 1 {
    x.width = 1; x.interpretation = none;
    y.width = 1; y.interpretation = none;
    n.width = 1; n.interpretation = none;
    flags.width = 1; flags.interpretation = none;
    a: (tag, n, n*point, point, n*(x, y), n*(x), n*x) { tag.value = 4; }
    b: (tag, points: n*point, flags, first: (flags.bit 0)*point, (pairs: n*(x, names: (2)*vfield), xs: n*x), last: (flags.bit 1)*(y),
        x) { tag.value = 5; point.y.interpretation = delta 0; }
    point: (x, y);
}
"""

BAD = """section s 1 {
    n.width = 2; n.interpretation = none; x.width = 1; x.interpretation = none;
    a: (tag, n, (8 / n.value - 1)*x) { tag.value = 4; }
    b: (tag, n, (n.value * n.value)*x) { tag.value = 5; x.interpretation = default 1; }
}
"""


def bad_trace(name, what, content, offsets, *delivered):
    """Writes a vector of a corrupt trace. `offsets` are relative to the content of section s."""
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", content))], 0)
    start = len(made) - len(content)
    note = {"what": what, "offsets": [start + at for at in offsets], "spec": "3.3"}
    files = {"format.dtd": BAD, "note.json": note, "trace.mtf": made, "expected.jsonl": list(delivered)}
    write(f"bad/trace/x-{name}", files)


def bad_dtd(name, what, fields, *at):
    """Writes a vector of an invalid DTD. The record's fields begin in column 9 of line 2."""
    numbers = "".join(f"    {n}.width = 1; {n}.interpretation = none;\n" for n in "abn")
    dtd = f"section s 1 {{\n    r: ({fields}) {{ tag.value = 4; data.width = 9; data.interpretation = none; }}\n{numbers}}}\n"
    note = {"what": what, "at": [list(place) for place in at], "spec": "3.3, 3.5"}
    write(f"bad/dtd/x-{name}", {"format.dtd": dtd, "note.json": note})


def main():
    clear("x-count")
    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04\x01\x05", record("s", "a", tag=4, flags=1, time=5)),
        (b"\x04\x00\x09", record("s", "a", tag=4, flags=0, name=9)),
        # Sets the width of `time` to 2. It is field 3, because the count before it is field 2.
        (b"\x03\x04\x03\x10\x02", record("s", "metadata", record=4, field=3, property=16, value=2)),
        # A field that a record omits does not change the previous value.
        (
            b"\x04\xff\x2c\x01\x01\x03\x07\x08\x09\x02hi",
            record("s", "a", tag=4, flags=255, time=305, point={"x": 1, "y": 3, "z": 7}, items={"x": 8, "y": 9}, vfield="6869"),
        ),
        (b"\x04\x0a\x06\x01\x02", record("s", "a", tag=4, flags=10, name=6, point={"x": 1, "y": 2})),
        (
            b"\x05\x06\x01\x02\x02\x01\x03\x02\xaa\xbb\x0a\x0b\x01\x01\x05\x02\x02",
            record("s", "b", tag=5, n=6, x=[1, 2], m=2, m_items=[{"flags": 1, "y": 3}, {"flags": 2}], pad="aabb", z=[10, 11],
                   point=[{"x": 1, "y": 1, "z": 5}, {"x": 2, "y": 2}]),
        ),
        (
            b"\x05\x05\x09\x00\xaa\xbb\xcc\x01\x02\x01\x00",
            record("s", "b", tag=5, n=5, x=[9], m=0, m_items=[], pad="aabbcc", z=[1, 2], point=[{"x": 1, "y": 0}]),
        ),
        (b"\x05\x04\x07\x00\x0c\x0d", record("s", "b", tag=5, n=4, x=[7], m=0, m_items=[], pad="", z=[12, 13], point=[])),
    ]
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents))], 7)
    good(
        "counts",
        "leaves, groups and records that are there if a bit is set; counts that are expressions; metadata for a leaf behind one",
        "3.2, 3.3, 4.1, 8",
        DTD,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        len(made) - len(contents) - 2,
        bytes=made,
        constants={"a": ["tag"], "b": ["tag"]},
        encode=True,
    )

    high = bytes(7) + b"\x80"
    one, two = b"\x01" + bytes(7), b"\x02" + bytes(7)
    number = 1 << 63
    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04RDHI\x01\x0a\x0b\x0c\x0d\x05\x00", record("s", "value", tag=4, magic=0x49484452, type=1, data="0a0b0c0d", short=5)),
        (b"\x04RDHI\x02\x01\x02\x03\x04\x05\x06\x07\x08\x00\x01", record("s", "value", tag=4, magic=0x49484452, type=2, data="0102030405060708", short=256)),
        (b"\x04RDHI\x04\x09", record("s", "value", tag=4, magic=0x49484452, type=4, data="", byte=9)),
        (b"\x04RDHI/\xaa\xbb\x01\x00\x63", record("s", "value", tag=4, magic=0x49484452, type=47, data="aabb", short=1, x=99)),
        (b"\x05" + one + two + b"\x07\x08\x09", record("s", "order", tag=5, n=1, m=2, x=7, byte=8, type=9)),
        (b"\x05" + two + one + b"\x06\x00\x01\x02\x03",
         record("s", "order", tag=5, n=2, m=1, short=6, items={"x": 1, "byte": 2}, type=3)),
        (b"\x05" + one + one + b"\x08\x01\x02\x02hi", record("s", "order", tag=5, n=1, m=1, byte=8, items={"x": 1, "byte": 2}, vfield="6869")),
        (b"\x06\x03\x02hi\x03\x01!", record("s", "several", tag=6, x=3, x_items=[{"type": 2, "part": "6869"}, {"type": 3, "part": ""}, {"type": 1, "part": "21"}])),
        # Numbers are unsigned, so 2^63 is greater than 1.
        (b"\x05" + high + one + b"\x06\x00\x01\x02\x03",
         record("s", "order", tag=5, n=number, m=1, short=6, items={"x": 1, "byte": 2}, type=3)),
    ]
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents))], 9)
    good(
        "count-comparisons",
        "numbers compared: a width that goes by a type, fields that are there by their type or by the order of two numbers",
        "3.2, 3.3, 8",
        COMPARED,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        len(made) - len(contents) - 2,
        bytes=made,
        constants={"value": ["tag", "magic"], "order": ["tag"], "several": ["tag"]},
        encode=True,
    )

    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04\x01\x09\x09\x07", record("s", "a", tag=4, flags=1, mark=9, mark_2=9, x=7)),
        (b"\x04\x00\x09\x08", record("s", "a", tag=4, flags=0, mark=9, x=8)),
        (b"\x05\x02\x09\x09\x09\x09\x01\x09\x03", record("s", "b", tag=5, n=2, mark=[9, 9], mark_2=[9, 9], m=1, m_items=[{"mark": 9, "x": 3}])),
        (b"\x05\x00\x09\x09\x00", record("s", "b", tag=5, n=0, mark=[], mark_2=[9, 9], m=0, m_items=[])),
    ]
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents))], 4)
    good(
        "count-constants",
        "constants that are there or not, that repeat, and that stand beside other fields of an item",
        "3.3, 8",
        CONSTANTS,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        len(made) - len(contents) - 2,
        bytes=made,
        constants={"a": ["tag", "mark"], "b": ["tag", "m_items.mark"]},
        encode=True,
    )

    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04\x01\x07\x08\x05\x06\x03\x04\x02\x01",
         record("s", "a", tag=4, n=1, point=[{"x": 7, "y": 8}], point_2={"x": 5, "y": 6}, n_items=[{"x": 3, "y": 4}], n_items_2=[{"x": 2}], x=[1])),
        (b"\x05\x02\x01\x05\x02\x01\x01\x03\x02\x04\x01a\x00\x05\x00\x01b\x06\x07\x09",
         record("s", "b", tag=5, n=2, points=[{"x": 1, "y": 5}, {"x": 2, "y": 6}], flags=1, first={"x": 3, "y": 2},
                pairs=[{"x": 4, "names": ["61", ""]}, {"x": 5, "names": ["", "62"]}], xs=[6, 7], x=9)),
        (b"\x05\x00\x02\x08\x09", record("s", "b", tag=5, n=0, points=[], flags=2, pairs=[], xs=[], last={"y": 8}, x=9)),
    ]
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents))], 3)
    good(
        "count-named",
        "repetitions called like what they repeat, or as the list says",
        "3.3, 8",
        NAMED,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        len(made) - len(contents) - 2,
        bytes=made,
        constants={"a": ["tag"], "b": ["tag"]},
        encode=True,
    )

    whole = b"\x04\x04\x00\x07"
    known = record("s", "a", n=4, x=[7])
    bad_trace("count-zero", "a division by 0", whole + b"\x04\x00\x00", [7, 5, 4], known)
    bad_trace("count-below", "a count below 0", whole + b"\x04\x09\x00", [7, 5, 4], known)
    bad_trace("count-many", "more items than a record may have", whole + b"\x05\x00\x02", [7, 5, 4], known)
    bad_trace("count-cut", "the trace ends before the last item", whole + b"\x04\x02\x00\x01\x02", [9, 8, 4], known)
    bad_trace("count-set", "metadata for a count that is computed", whole + b"\x03\x04\x02\x14\x01", [6, 4, 5], known)

    bad_dtd("count-later", "a bit of a field that is listed later", "tag, (a.bit 0)*b, a", (2, 15))
    bad_dtd("count-bit-64", "a number has 64 bits", "tag, a, (a.bit 64)*b", (2, 18), (2, 20), (2, 24))
    bad_dtd("count-no-bit", "which bit is not said", "tag, a, (a.bit)*b", (2, 18), (2, 20))
    bad_dtd("count-bit-of-bytes", "a byte array has no bits", "tag, data, (data.bit 1)*b", (2, 21))
    bad_dtd("count-over", "a field of a repetition that is over", "tag, n*a, (a.bit 0)*b", (2, 20))
    bad_dtd("count-division", "a division by 0", "tag, a, (a.value + 1 / 0)*b", (2, 17), (2, 18))
    bad_dtd("count-two-comparisons", "one of two comparisons is in parentheses", "tag, a, b, (a.value < 1 < 2)*n", (2, 33))
    bad_dtd("count-compared-bytes", "a byte array is not compared", "tag, data, (data.value == 1)*b", (2, 21))
    bad_dtd("count-one-equals", "a comparison has two signs", "tag, a, (a.value = 1)*b", (2, 26))
    bad_dtd("count-named-twice", "two repetitions of one name", "tag, as: n*a, as: n*b", (2, 23))
    bad_dtd("count-named-field", "a repetition with the name of a field", "tag, a, a: n*b", (2, 17))
    bad_dtd("count-named-tag", "a repetition that is called like the tag", "tag, tag: n*a", (2, 14))
    bad_dtd("count-name-alone", "a name of what is no repetition", "tag, as: (a)", (2, 22), (2, 18), (2, 14), (2, 16))
    bad_dtd("count-name", "no expression", "tag, a, (a)*b", (2, 20))
