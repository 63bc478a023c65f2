"""Creates the conformance vectors for byte arrays and repetitions whose end depends on the content: `rest` and `until` (sections 3.2,
3.3, 5.4). They are the directories x-ends* in tests/vectors.

The bytes are written by hand, each record next to its meaning according to the specification. No project code is called."""
from .common import Trace, clear, trace, write
from .common import line as record
from .other import good

UNTIL = """// Items that end with one that meets a condition.
section s 1 {
    n.width = 1; n.interpretation = none;
    x.width = 1; x.interpretation = delta 0;
    // A leaf, counted by its value; the previous value is that of the last item.
    values: ((until x.value == 0)*x, n) { tag.value = 4; }
    // A length of 0 ends the blocks, as in GIF.
    blocks: (n, blocks: (until vfield.length.value == 0)*vfield, n) { tag.value = 5; }
    // A name of DNS: it ends with an empty label or with a reference of two bytes.
    name: (labels: (until (label.length.value == 0) + (label.length.value >= 0xc0))*label) { tag.value = 6; }
    label: (length, (length.value < 0xc0)*text, (length.value >= 0xc0)*offset) {
        length.width = 1; length.interpretation = none;
        text.width = length.value; text.interpretation = none; text.format = "utf8";
        offset.width = 1; offset.interpretation = none;
    }
    // Rows of values: repetitions within one. The condition of the outer one depends on the record, too.
    rows: (n, (until row.last.value >= n.value)*row) { tag.value = 7; }
    row: (last, (until value.value % 2 == 1)*value) {
        last.width = 1; last.interpretation = none;
        value.width = 2; value.interpretation = none;
    }
    // The entries of a pool, of which those of kind 5 take two numbers, as in a Java class.
    pool: (n, entries: (until slot.value == n.value)*(kind, (kind.value == 5)*slot, slot)) {
        tag.value = 8; kind.width = 1; kind.interpretation = none;
        slot.interpretation = stride 0 1; slot.previous = shared;
    }
    // An optional list.
    maybe: (n, (n.bit 0)*((until vfield.length.value == 0)*vfield)) { tag.value = 9; }
}
"""

REST = """// Parts that extend to the end of the array that contains the record.
n.width = 1; n.interpretation = none;
data.interpretation = none;
section s 1 {
    tagged: (n, data) { tag.value = 4; data.width = n.value; data.section = 2; }
    plain: (n, data) { tag.value = 5; data.width = n.value; data.section = 3; }
}
section t 2 {
    // All bytes but the last five.
    open: (n, data, check, pad) {
        tag.value = 4; data.width = rest; check.width = 2; check.interpretation = none;
        pad.width = bytes 3; pad.interpretation = none;
    }
    // As many items as there are, possibly none, before one byte.
    list: (items: (rest)*(kind, vfield), n) { tag.value = 5; kind.width = 1; kind.interpretation = delta 0; }
    small: (n) { tag.value = 6; }
}
section l 3 {
    element: (n, data) { data.width = rest; }
}
"""

CHUNKS = """// Parts that extend to the end of their chunk.
section s 1 {
    time.width = 1; time.interpretation = delta 0;
    some: (time) { tag.value = 4; }
    all: (time, data, check) {
        tag.value = 5; data.width = rest; data.interpretation = none;
        check.width = 1; check.interpretation = none;
    }
    items: (time, (rest)*n) { tag.value = 6; n.width = 2; n.interpretation = none; }
}
"""

ALONE = """// A file that is a single record, with a weak magic, bytes up to the end, and a checksum.
section file 1 {
    member: (magic, flags, data, check) {
        magic.width = 2; magic.interpretation = none; magic.value = 0x8b1f; magic.role = "magic";
        flags.width = 1; flags.interpretation = none;
        data.width = rest; data.interpretation = none;
        check.width = 4; check.interpretation = none;
    }
}
"""

SEVERAL = """// A file of elements, each of which begins with a magic number. There is no other section.
section file 1 {
    member: (magic, n, data) {
        magic.width = 4; magic.interpretation = none; magic.value = 'part'; magic.role = "magic";
        n.width = 2; n.interpretation = none; data.width = n.value; data.interpretation = none;
    }
}
"""

HEADED = """// A file whose records take values from its header: a version, and the size of an array.
section head 2 {
    header: (magic, version, size) {
        magic.width = 4; magic.interpretation = none; magic.value = 0x6c6f6731; magic.role = "magic";
        version.width = 2; version.interpretation = none;
        size.width = 1; size.interpretation = none;
    }
}
section records 1 {
    a: (version, size, id, (version.value >= 2)*n) {
        tag.value = 4; version.interpretation = default header.version.value; n.width = 1; n.interpretation = none;
        size.interpretation = default header.size.value; id.width = size.value; id.interpretation = none;
    }
    b: (n) { tag.value = 5; n.width = 1; n.interpretation = none; }
}
"""

BAD = """section s 1 {
    n.width = 1; n.interpretation = none;
    a: (n, (until x.value == 0)*x) { tag.value = 4; x.width = 1; x.interpretation = none; }
    b: ((rest)*pair, n) { tag.value = 5; pair.width = 2; pair.interpretation = none; }
    c: (n, data, check) { tag.value = 6; data.width = rest; data.interpretation = none; check.width = 4; check.interpretation = none; }
    // An item without bytes never ends.
    d: (n, (until none.value > n.value)*none) { tag.value = 7; none.interpretation = default 0; }
    e: (n, (until x.value - 5 == 0)*x) { tag.value = 8; x.width = 1; x.interpretation = none; }
}
""".replace("none.value", "zero.value").replace("*none)", "*zero)").replace("none.interpretation", "zero.interpretation")


def bad_trace(name, what, content, offsets, delivered, spec="3.3"):
    """Writes a vector of a corrupt trace. `offsets` are relative to the content of section s."""
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", content))], 0)
    start = len(made) - len(content)
    note = {"what": what, "offsets": [start + at for at in offsets], "spec": spec}
    write(f"bad/trace/x-{name}", {"format.dtd": BAD, "note.json": note, "trace.mtf": made, "expected.jsonl": delivered})


def bad_dtd(name, what, body, fault, spec="3.3"):
    """Writes a vector of an invalid DTD. `fault` is the part of `body` at which the error is reported."""
    dtd = "section s 1 {\n    n.width = 1; n.interpretation = none; data.interpretation = none;\n" + f"    {body}\n}}\n"
    write(f"bad/dtd/x-{name}", {"format.dtd": dtd, "note.json": {"what": what, "at": [[3, 5 + body.index(fault)]], "spec": spec}})


def file(name, about, dtd, pieces, hidden):
    """Writes a vector of a file without a header. A prologue, in the section `head`, is printed after the records."""
    everything, shown, last, at = [], [], [], 0
    for piece, line in pieces:
        head = {"@section": line["@section"], "@record": line["@record"]}
        is_prologue = line["@section"] == "head"
        (last if is_prologue else everything).append(head | {"@offset": at} | {k: v for k, v in line.items() if k not in head})
        if not is_prologue:
            shown.append({k: v for k, v in line.items() if k not in hidden})
        at += len(piece)
    everything += last
    files = {"format.dtd": dtd, "trace.raw": b"".join(piece for piece, _ in pieces)}
    files["case.json"] = {"about": about, "spec": "3.2, 5.4", "mode": "dump"}
    write(f"good/x-{name}", files | {"expected.jsonl": shown, "expected_all.jsonl": everything})


def until():
    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04\x03\xfe\xff\x09", record("s", "values", tag=4, x=[3, 1, 0], n=9)),
        (b"\x04\x00\x08", record("s", "values", tag=4, x=[0], n=8)),
        (b"\x05\x07\x02hi\x01!\x00\x06", record("s", "blocks", tag=5, n=7, blocks=[b"hi".hex(), b"!".hex(), ""], n_2=6)),
        (b"\x05\x07\x00\x06", record("s", "blocks", tag=5, n=7, blocks=[""], n_2=6)),
        (
            b"\x06\x03www\x02de\x00",
            record("s", "name", tag=6, labels=[{"length": 3, "text": "www"}, {"length": 2, "text": "de"}, {"length": 0, "text": ""}]),
        ),
        (
            b"\x06\x01a\xc0\x0c",
            record("s", "name", tag=6, labels=[{"length": 1, "text": "a"}, {"length": 0xC0, "offset": 12}]),
        ),
        (
            b"\x07\x05\x01\x02\x00\x04\x00\x03\x00\x05\x07\x00",
            record("s", "rows", tag=7, n=5, row=[{"last": 1, "value": [2, 4, 3]}, {"last": 5, "value": [7]}]),
        ),
        (
            b"\x08\x05\x01\x05\x02\x03",
            record("s", "pool", tag=8, n=5, entries=[{"kind": 1, "slot": 1}, {"kind": 5, "slot": 2, "slot_2": 3}, {"kind": 2, "slot": 4}, {"kind": 3, "slot": 5}]),
        ),
        (b"\x09\x01\x01a\x00", record("s", "maybe", tag=9, n=1, items={"vfield": ["61", ""]})),
        (b"\x09\x02", record("s", "maybe", tag=9, n=2)),
        # The previous value of x is that of the last item, 0.
        (b"\x04\x05\xfb\x07", record("s", "values", tag=4, x=[5, 0], n=7)),
        # Metadata can change the leaf of an item: its width is 2 from here on.
        (b"\x03\x04\x02\x10\x02", record("s", "metadata", record=4, field=2, property=16, value=2)),
        (b"\x04\x2c\x01\xd4\xfe\x07", record("s", "values", tag=4, x=[300, 0], n=7)),
    ]
    for i, (piece, line) in enumerate(pieces):
        # In an entry of kind 5, the optional number is listed first.
        for entry in line.get("entries", []):
            if entry["kind"] != 5:
                entry["slot_2"] = entry.pop("slot")
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents))], 12)
    hidden = {name: ["tag"] for name in ("values", "blocks", "name", "rows", "pool", "maybe")}
    good(
        "ends-until",
        "items that end with one that meets a condition: leaves, records and groups, nested, optional and changed by metadata",
        "3.3, 4.1, 8",
        UNTIL,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        len(made) - len(contents) - 2,
        bytes=made,
        constants=hidden,
        encode=True,
    )


def rest():
    inner = lambda name, **fields: {"@record": name} | fields
    hide = lambda value: [{k: v for k, v in item.items() if k != "tag"} for item in value]
    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04\x09\x04\x07hi\x01\x02abc", record("s", "tagged", tag=4, n=9, data=[inner("open", tag=4, n=7, data=b"hi".hex(), check=0x201, pad=b"abc".hex())])),
        (b"\x04\x09\x06\x05\x04\x07\x01\x02abc", record("s", "tagged", tag=4, n=9, data=[inner("small", tag=6, n=5), inner("open", tag=4, n=7, data="", check=0x201, pad=b"abc".hex())])),
        (
            b"\x04\x08\x05\x01\x02hi\x01\x00\x09",
            record("s", "tagged", tag=4, n=8, data=[inner("list", tag=5, items=[{"kind": 1, "vfield": b"hi".hex()}, {"kind": 2, "vfield": ""}], n=9)]),
        ),
        (b"\x04\x02\x05\x09", record("s", "tagged", tag=4, n=2, data=[inner("list", tag=5, items=[], n=9)])),
        # The second item extends into the byte after the items: these bytes are no records.
        (b"\x04\x06\x05\x01\x00\x01\x01\x09", record("s", "tagged", tag=4, n=6, data="050100010109")),
        # Too few bytes for the fields after the array.
        (b"\x04\x06\x04\x07\x01\x02ab", record("s", "tagged", tag=4, n=6, data="040701026162")),
        (b"\x05\x03\x07hi", record("s", "plain", tag=5, n=3, data=[inner("element", n=7, data=b"hi".hex())])),
        (b"\x05\x01\x07", record("s", "plain", tag=5, n=1, data=[inner("element", n=7, data="")])),
        (b"\x05\x00", record("s", "plain", tag=5, n=0, data=[])),
    ]
    contents = b"".join(piece for piece, _ in pieces[1:])
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", contents))], 9)
    first = len(made) - len(contents) - 2
    everything, shown, at = [], [], first
    for piece, line in pieces:
        head = {"@section": line["@section"], "@record": line["@record"]}
        everything.append(head | {"@offset": at} | {k: v for k, v in line.items() if k not in head})
        at += len(piece)
        if line["@record"] != "section":
            fields = {k: v for k, v in line.items() if k != "tag"}
            if isinstance(fields["data"], list):
                fields["data"] = hide(fields["data"])
            shown.append(fields)
    case = {"about": "records in byte arrays that extend to the end of the array, before fields of a fixed width", "spec": "3.2, 3.3, 3.7, 8", "mode": "dump", "encode": True}
    files = {"format.dtd": REST, "trace.mtf": made, "case.json": case, "expected.jsonl": shown, "expected_all.jsonl": everything}
    write("good/x-ends-rest", files)


def chunks():
    """In version 1, the content is that of a chunk; in version 0, that of an extent."""
    some = lambda piece, time: (piece, record("s", "some", tag=4, time=time))
    parts = [
        [some(b"\x04\x05", 5), (b"\x05\x01hello\x09", record("s", "all", tag=5, time=6, data=b"hello".hex(), check=9))],
        # The state continues, as there is no reset.
        [some(b"\x04\x01", 7), (b"\x06\x01\x02\x01\x04\x03", record("s", "items", tag=6, time=8, n=[0x102, 0x304]))],
        [(b"\x06\x01", record("s", "items", tag=6, time=9, n=[]))],
        [(b"\x05\x01\x08", record("s", "all", tag=5, time=10, data="", check=8))],
        [some(b"\x04\xff", 9)],
    ]
    made = Trace(CHUNKS)
    for i, part in enumerate(parts):
        made.chunk(b"".join(piece for piece, _ in part), 1, 0, 3 if i == 0 else 0, records=len(part), zipped=i == 1)
    pieces = [both for part in parts for both in part]
    good(
        "ends-chunks",
        "records that extend to the end of their chunk",
        "3.2, 3.3, 5.2",
        CHUNKS,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        0,
        bytes=made.finish(len(pieces)),
        constants={"some": ["tag"], "all": ["tag"], "items": ["tag"]},
        encode=True,
    )


def files():
    member = lambda data, check: record("file", "member", magic=0x8B1F, flags=8, data=data.hex(), check=check)
    file("ends-alone-little", "a file that is a single record, little-endian", ALONE, [(b"\x1f\x8b\x08some bytes\x01\x02\x03\x04", member(b"some bytes", 0x4030201))], ("magic",))
    file("ends-alone-big", "the same, big-endian and without bytes", ALONE, [(b"\x8b\x1f\x08\x01\x02\x03\x04", member(b"", 0x1020304))], ("magic",))
    part = lambda n, data: record("file", "member", magic=int.from_bytes(b"part", "big"), n=n, data=data.hex())
    head = lambda version, size: record("head", "header", magic=0x6C6F6731, version=version, size=size)
    a = lambda version, size, id, **n: record("records", "a", tag=4, version=version, size=size, id=id.hex(), **n)
    for name, about, pieces in [
        ("old", "values from a header", [(b"1gol\x01\x00\x03", head(1, 3)), (b"\x04abc", a(1, 3, b"abc")), (b"\x05\x07", record("records", "b", tag=5, n=7))]),
        ("new", "the same of a later version, big-endian", [(b"log1\x00\x02\x00", head(2, 0)), (b"\x04\x07", a(2, 0, b"", n=7)), (b"\x04\x08", a(2, 0, b"", n=8))]),
    ]:
        file(f"ends-header-{name}", about, HEADED, pieces, ("tag",))
    file("ends-several", "a file of elements with a magic number", SEVERAL, [(b"part\0\2hi", part(2, b"hi")), (b"part\0\0", part(0, b""))], ("magic",))


def main():
    clear("x-ends")
    until()
    rest()
    chunks()
    files()
    whole = b"\x04\x07\x02\x00"
    known = record("s", "a", n=7, x=[2, 0])
    bad_trace("ends-no-last", "no item meets the condition", whole + b"\x04\x01\x02\x03", [8, 6, 4], [known])
    bad_trace("ends-past", "half an item before the fields after the items", whole + b"\x05\x01\x02\x03\x09", [7, 5, 4], [known])
    bad_trace("ends-tail", "too few bytes for the fields after the array", whole + b"\x06\x01\x02\x03", [6, 4], [known], "3.2")
    bad_trace("ends-no-bytes", "items without bytes that never end", whole + b"\x07\x01", [6, 4], [known])
    bad_trace("ends-negative", "a condition below 0", whole + b"\x08\x01\x09\x04", [8, 7, 6, 4], [known])
    for name, what, body, fault, spec in [
        ("rest-optional", "an optional array up to the end", "a: (n, (n.bit 0)*data) { tag.value = 4; data.width = rest; }", "data)", "3.2"),
        ("rest-repeated", "a repeated array up to the end", "a: (n*data) { tag.value = 4; data.width = rest; }", "data)", "3.2"),
        ("rest-before", "a field of variable width after it", "a: (data, vfield) { tag.value = 4; data.width = rest; }", "vfield", "3.2"),
        ("rest-twice", "two of them", "a: (data, (rest)*n) { tag.value = 4; data.width = rest; }", "n)", "3.2"),
        ("rest-within", "items up to the end within items", "a: (n*((rest)*m)) { tag.value = 4; m.width = 1; m.interpretation = none; }", "(rest)", "3.3"),
        ("rest-number", "only bytes extend to the end", "a: (data) { tag.value = 4; data.width = rest; data.interpretation = delta 0; }", "delta", "3.2"),
        ("until-outside", "a condition on another field", "a: (n, (until n.value == 0)*m) { tag.value = 4; m.width = 1; m.interpretation = none; }", "(until", "3.3"),
        ("until-constant", "a condition on no field", "a: ((until 1)*n) { tag.value = 4; }", "(until", "3.3"),
        ("until-later", "a condition on a later field", "a: ((until m.value == 0)*n, m) { tag.value = 4; m.width = 1; m.interpretation = none; }", "m.value", "3.3"),
        ("until-bytes", "a condition on bytes", "a: ((until data.value == 0)*data) { tag.value = 4; data.width = until 0; }", "data.value", "3.2"),
    ]:
        bad_dtd(f"ends-{name}", what, body, fault, spec)
