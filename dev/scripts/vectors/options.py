"""Creates the cases in tests/cases: the output of `dump` with names, with resolved references, when salvaging a raw stream or a trace that
needs an unknown feature, and for invalid files without a header (sections 5.2, 5.4 and 8). tests/vectors/run.py has no mode for these.

A case is a directory. `case.json` contains the arguments after `metatfc dump`, the exit status, and strings that standard error contains in
this order. `expected.jsonl` is standard output. No project code is called."""
import os
import shutil

from .common import ROOT, Trace, line, trace, write
from .other import FIRST, PROLOGUE

CASES = os.path.join(ROOT, "..", "cases")

EVENTS = """section s 1 {
    n.width = 1; n.interpretation = none; n.value = 170;
    len.width = 1; len.interpretation = none;
    a: (tag, n) { tag.value = 4; }
    b: (tag, len, data) { tag.value = 5; data.width = len.value; data.interpretation = none; }
}
"""
# The same DTD with a catch-all record.
OPEN = EVENTS.replace("}\n}", "}\n    o: (tag, m, n) { tag.value = other; m.width = 1; m.interpretation = none; n.value = 170; }\n}", 1)
A, B = b"\x04\xaa", b"\x05\x02hi"
RAW = ["--raw", "--class", "1", "--byteorder", "little", "--section", "s", "--dtd", "format.dtd"]


def case(name, about, spec, args, files, lines, errors=(), status=0):
    note = {"about": about, "spec": spec, "args": args, "status": status, "stderr": list(errors)}
    write(f"../cases/{name}", files | {"case.json": note, "expected.jsonl": lines})


def raw(name, about, pieces, dtd=EVENTS, lost=()):
    """Writes a case of a raw stream. `pieces` pairs bytes with their record, or with `None` if no record is printed."""
    content = b"".join(piece for piece, _ in pieces)
    lines = [record for _, record in pieces if record]
    texts = [f"bytes {first} to {last}: damaged" for first, last in lost] or ["nothing was lost"]
    args = ["--salvage", "--format", "jsonl", *RAW, "trace.raw"]
    case(f"raw-{name}", about, "5.4", args, {"format.dtd": dtd, "trace.raw": content}, lines, texts)


def raws():
    a, b = line("s", "a"), line("s", "b", len=2, data="6869")
    bad = (b"\x07", None)
    raw("whole", "a raw stream without damage", [(A, a), (B, b)])
    raw("two", "read on from two whole records", [(A, a), bad, (A, a), (B, b), bad], lost=[(2, 2), (9, 9)])
    raw("one", "one whole record before damage does not count", [(A, a), bad, (A, None), bad, (A, a), (A, a)], lost=[(2, 5)])
    raw("end", "one whole record up to the end does", [(A, a), bad, (B, b)], lost=[(2, 2)])
    raw("constant", "a constant that does not hold is damage", [(A, a), (b"\x04\xab", None), (A, a), (A, a)], lost=[(2, 3)])
    raw("past-the-end", "a field past the end", [(A, a), (b"\x05\xf0ab", None)], lost=[(2, 5)])
    comment, metadata = b"\x01\x01x", b"\x03\x05\x01\x10\x01"
    raw("comment", "a comment is one of the two", [(A, a), bad, (comment, None), (A, a), bad], lost=[(2, 2), (8, 8)])
    raw("metadata", "metadata is one of the two", [(A, a), bad, (metadata, None), (A, a), bad], lost=[(2, 2), (10, 10)])
    raw("section", "a section record is none", [(A, a), (b"\x02\x01", None), (A, a), (A, a)], lost=[(2, 3)])
    other = (b"\x63\x01\xaa", None)
    raw("other", "a catch-all record is none of the two", [(A, a), (b"\x05\xf0", None), other, (A, None), (b"\x63\x01", None)], OPEN, [(2, 10)])
    last = [(A, a), (A, a), other, (b"\x05\xf0", None)]
    raw("other-last", "a catch-all record right before damage does not count as whole", last, OPEN, [(4, 8)])


def files():
    """Writes cases of files without a header: unknown and invalid starts, a single record, and an invalid record."""
    refused = "its first bytes do not match format.dtd"
    begins = "it begins like a file of format.dtd, but "
    for name, about, dtd, content, errors in [
        ("unknown", "another magic", PROLOGUE, b"log4" + bytes(9), [refused]),
        ("short", "a magic that is not all there", PROLOGUE, b"log", [refused]),
        ("cut", "a prologue that is not all there", PROLOGUE, b"log1\x00\x05", [begins + "offset 6"]),
        ("gap", "an offset into the prologue", PROLOGUE, b"log1\x00\x05\x10" + bytes(10) + b"\x04\x01\x02", [begins + "offset 17"]),
        ("gap-long", "an offset past the end", PROLOGUE, b"log1\x00\x05\xff" + bytes(10) + b"\x04\x01\x02", [begins + "offset 17"]),
        ("size", "records past the end", PROLOGUE, b"log1\x00\x06\x11" + bytes(10) + b"\x05\x03\x04\x01\x02", [begins + "offset 17", "is 6"]),
        ("weak-one", "one record behind nothing", FIRST, b"\x07\x00\x01\x00\x08", [refused]),
        ("weak-bad", "a second record that is none", FIRST, b"\x07\x00\x01\x00\x09\x00\x05\x06", [refused]),
    ]:
        args = ["--format", "jsonl", "--dtd", "format.dtd", "trace.raw"]
        case(f"file-{name}", about, "5.4", args, {"format.dtd": dtd, "trace.raw": content}, [], errors, 1)
    # A single record is enough if it is the complete file.
    args = ["--format", "jsonl", "--dtd", "format.dtd", "trace.raw"]
    first = {"format.dtd": FIRST, "trace.raw": b"\x07\x00\x01\x00"}
    case("file-weak-all", "one record that is all of the file", "5.4", args, first, [line("records", "first")])
    # An invalid record is reported when it is read.
    wrong = {"format.dtd": PROLOGUE, "trace.raw": b"log3\x04\x01\x02\x09"}
    lines = [line("records", "r", n=0x102)]
    case("file-record", "a record that is wrong", "5.4", args, wrong, lines, ["offset 7: tag 9"], 1)


def names():
    dtd = """section s 1 {
    n.width = 1; n.interpretation = none;
    a: (tag, n) { tag.value = 4; n.values = "0 none, 0x1f many words,"; }
    b: (tag, n) { tag.value = 5; n.flags = "0 read, 7 top, 1 write, 2-4 level"; }
    c: (tag, n) { tag.value = 6; n.format = "bool"; }
    d: (tag, n) { tag.value = 7; n.format = "char"; }
    e: (tag, n) { tag.value = 8; n.width = 4; n.format = "date_s"; }
    f: (tag, n) { tag.value = 9; n.width = 8; n.interpretation = baseOffset 0; n.format = "date_ms"; }
    g: (tag, n) { tag.value = 'g'; n.width = 4; n.format = "chars"; }
    h: (tag, n) { tag.value = 'h'; n.width = 4; n.format = "chars_le"; }
}
"""
    records = [
        (b"\x04\x00", "a", "none"),
        (b"\x04\x1f", "a", "many words"),
        (b"\x04\x02", "a", 2),
        (b"\x05\x83", "b", "read|top|write"),
        (b"\x05\x45", "b", "read|level=1|0x40"),
        (b"\x05\x9e", "b", "top|write|level=7"),
        (b"\x05\x40", "b", 0x40),
        (b"\x05\x00", "b", 0),
        (b"\x06\x00", "c", False),
        (b"\x06\x01", "c", True),
        (b"\x06\x02", "c", 2),
        (b"\x07a", "d", "a"),
        (b"\x08\x00\xca\x9a\x3b", "e", "2001-09-09T01:46:40Z"),
        (b"\x09" + b"\xff" * 8, "f", "1969-12-31T23:59:59.999Z"),
        # This time is after the year 9999.
        (b"\x09" + bytes(7) + b"\x7f", "f", 0x7f << 56),
        (b"gRDHI", "g", "IHDR"),
        (b"gKO\x00\x00", "g", "OK"),
        (b"g\x00\x00KO", "g", 0x4f4b0000),
        (b"g\x00\x00\x00\x00", "g", 0),
        (b"hRIFF", "h", "RIFF"),
        (b"hOK\x00\x00", "h", "OK"),
    ]
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", b"".join(r[0] for r in records)))], len(records))
    for name, args, lines in [
        ("names", ["--names"], [line("s", record, n=shown) for _, record, shown in records]),
        ("names-not-asked", [], [line("s", record, n=int.from_bytes(piece[1:], "little")) for piece, record, _ in records]),
    ]:
        files = {"format.dtd": dtd, "trace.mtf": made}
        case(name, "names of values, of bits and of formats", "2, 8", ["--format", "jsonl", *args, "trace.mtf"], files, lines)


def resolve():
    dtd = """section s 1 {
    id.width = 1; id.interpretation = none; at.width = 1; at.interpretation = none;
    string: (tag, id, vfield) { tag.value = 4; id.role = "string_id"; vfield.data.role = "string"; vfield.data.format = "utf8"; }
    label: (tag, at, id) { tag.value = 5; at.role = "labelled"; id.role = "string_id"; }
    use: (tag, at, id) { tag.value = 6; at.role = "address"; id.role = "string_id"; }
}
"""
    records = [
        (b"\x06\x10\x06", line("s", "use", at=16, id=6)),
        (b"\x04\x06\x05arena", line("s", "string", id=6, vfield="arena")),
        (b"\x05\x10\x06", line("s", "label", at={"value": 16, "label": "arena"}, id={"value": 6, "string": "arena"})),
        (b"\x06\x10\x06", line("s", "use", at={"value": 16, "label": "arena"}, id={"value": 6, "string": "arena"})),
        (b"\x06\x11\x07", line("s", "use", at=17, id=7)),
    ]
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", b"".join(r[0] for r in records)))], len(records))
    files = {"format.dtd": dtd, "trace.mtf": made}
    args = ["--format", "jsonl", "--resolve", "trace.mtf"]
    case("resolve", "strings and labels count from the record that gives them", "8", args, files, [r[1] for r in records])


def features():
    def made(features):
        trace = Trace(EVENTS, features=features)
        trace.chunk(A + B, 1, 0, 3, 0, 2)
        return trace.finish(2)

    lines = [line("s", "a"), line("s", "b", len=2, data="6869")]
    args = ["--format", "jsonl", "trace.mtf"]
    case("features-none", "no feature", "5.2", args, {"trace.mtf": made({})}, lines)
    needs = made({9: b"pages", 63: b"trial-2"})
    error = 'offset 9: the trace needs the features "pages" (9) and "trial-2" (63)'
    case("features", "features that no reader has", "5.2", args, {"trace.mtf": needs}, [], [error], 1)
    errors = ["bytes 0 to 53: damaged", error]
    case("features-salvage", "the same, salvaged", "5.2", ["--salvage", *args], {"trace.mtf": needs}, lines, errors)


def main():
    shutil.rmtree(CASES, ignore_errors=True)
    raws()
    files()
    names()
    resolve()
    features()
