"""Creates conformance vectors for bounds: the last allowed value of a rule and the first one outside, for rules that a reader can break
without failing any other vector.

The bytes and their meaning are written by hand according to the specification. No project code is called."""
from .columns import FEATURE, column, payload, repeat, shape
from .common import Trace, clear, crc32c, line, trace
from .predicted import HEAP, a, f, fold, heap, leb, phrased, values
from .rules import ONE, RECORD, bad, chunks, extents, good, place, spoilt


def dtd_error(name, what, spec, dtd, at):
    """Writes a vector of a DTD with an error; `at` is the part of a line at the position of the error."""
    lines = dtd.splitlines()
    number = next(i for i, text in enumerate(lines) if "@" in text)
    column = lines[number].index("@")
    assert at == lines[number][column + 1:][:len(at)], name
    place("bad/dtd", name, {"format.dtd": dtd.replace("@", "", 1), "note.json": {"what": what, "at": [[number + 1, column + 1]], "spec": spec}})


def numbers(*names):
    """Returns the properties of one-byte leaves."""
    return " ".join(f"{name}.width = 1; {name}.interpretation = none;" for name in names)


def language():
    dtd = f"section s 1 {{\n    r: (tag, n, (n.value % 2)*x, (n.value % 3)*y) {{ tag.value = 4; {numbers('n', 'x', 'y')} }}\n}}\n"
    good("x-optional-remainder", "the bound of `%` is the right operand minus 1", "3.3, 8", dtd,
         extents((1, bytes([4, 5, 1, 2, 3, 4, 6, 4, 1, 9, 8]))),
         [line("s", "r", n=5, x=1, y=[2, 3]), line("s", "r", n=6, y=[]), line("s", "r", n=1, x=9, y=[8])])
    dtd = f"section s 1 {{\n    r: (tag, f, (f.bit 0 * f.bit 1)*x, (f.bit 0 + f.bit 1)*y, (f.bit 0 - f.bit 1)*z, (f.bit 0 / 1)*q, (f.bit 0 % 9)*p) " \
          f"{{ tag.value = 4; {numbers('f', 'x', 'y', 'z', 'q', 'p')} }}\n}}\n"
    good("x-optional-bounds", "bounds of a product, a sum, a difference, a quotient and a remainder of bits", "3.3, 8", dtd,
         extents((1, bytes([4, 3, 1, 2, 3, 5, 6, 4, 1, 7, 8, 5, 6, 4, 0]))),
         [line("s", "r", f=3, x=1, y=[2, 3], q=5, p=6), line("s", "r", f=1, y=[7], z=8, q=5, p=6), line("s", "r", f=0, y=[])])
    dtd = f"section s 1 {{\n    r: (tag, n, ((n.value)*x, y), ((n.value) * 1)*z) {{ tag.value = 4; {numbers('n', 'x', 'y', 'z')} }}\n" \
          f"    q: ((1)*x, y) {{ tag.value = 5; {numbers('x', 'y')} }}\n" \
          f"    p: (('(' - 39)*x, (n) , (((1))) * y) {{ tag.value = 6; {numbers('n', 'x', 'y')} }}\n}}\n"
    good("x-count-in-group", "a group that begins with a count, and counts that begin with parentheses", "2, 3.3", dtd,
         extents((1, bytes([4, 1, 2, 3, 4, 5, 6, 7, 6, 8, 9, 10]))),
         [line("s", "r", n=1, x=[2], y=3, z=[4]), line("s", "q", x=6, y=7), line("s", "p", x=8, n=9, y=10)])
    dtd = f"section s 1 {{\n    r: (tag, f, (f.bit 0)*(m), (f.bit 1)*(m, (f.bit 2)*x)) {{ tag.value = 4; m.value = 9; {numbers('f', 'm', 'x')} }}\n}}\n"
    good("x-optional-empty", "optional groups without a field to print", "8", dtd,
         extents((1, bytes([4, 1, 9, 4, 3, 9, 9, 4, 7, 9, 9, 5]))),
         [line("s", "r", f=1, items={}), line("s", "r", f=3, items={}, items_2={}), line("s", "r", f=7, items={}, items_2={"x": 5})])
    dtd = "section s 1 {\n    r: (tag, a) { tag.value = 4; a.width = until 1; a.interpretation = none; }\n}\n"
    good("x-until-longest", "an array of 65,535 bytes and its end, and an empty array", "3.2", dtd,
         extents((1, b"\4" + bytes(65535) + b"\1" + b"\4\1")), [line("s", "r", a="00" * 65535), line("s", "r", a="")])
    most = ", ".join(f"{n} v{n}" for n in range(4096))
    dtd = f"section s 1 {{\n    r: (tag, n) {{\n        tag.value = 4; n.width = 2; n.interpretation = none;\n        n.values = \"{most}\";\n    }}\n}}\n"
    good("x-values-most", "4,096 names of values", "2, 7.2", dtd, extents((1, b"\4\xff\x0f")), [line("s", "r", n=4095)])
    dtd_error("x-values-many", "4,097 names of values", "2, 7.2", dtd.replace('v4095"', 'v4095, @4096 v4096"'), "4096")
    sums = " + ".join(["n.value"] + ["0"] * 499)
    dtd = f"section s 1 {{\n    r: (tag, n, a) {{ tag.value = 4; n.width = 1; n.interpretation = none; a.interpretation = none;\n        a.width = {sums};\n    }}\n}}\n"
    good("x-expression-longest", "an expression of 500 operands and 499 operators", "7.2", dtd, extents((1, b"\4\2ab")), [line("s", "r", n=2, a="6162")])

    one = "section s 1 {\n    r: (tag, n, x) { tag.value = 4; n.width = 1; n.interpretation = none;\n        x.interpretation = none; "
    dtd_error("x-nested-number", "records in a number", "3.7", one + "x.width = 1; @x.section = 1;\n    }\n}\n", "x.section")
    dtd_error("x-number-of-nine-characters", "nine characters", "2", one + "x.width = 8; x.value = @'123456789';\n    }\n}\n", "'1")
    dtd_error("x-flags-range-of-one", "a bit range that ends at its first bit", "2", one + "x.width = 1; x.flags = \"@4-4 a\";\n    }\n}\n", "4-4")
    dtd_error("x-values-direction", "a name that changes the direction of text", "2", one + "x.width = 1; x.values = \"@1 a\u202eb\";\n    }\n}\n", "1 a")
    dtd_error("x-values-control", "a name with a control character", "2", one + "x.width = 1; x.values = \"@1 a\u0085b\";\n    }\n}\n", "1 a")
    dtd_error("x-flags-before-values", "`values` after `flags`", "3.5", one + "x.width = 1; x.flags = \"0 a\"; @x.values = \"0 a\";\n    }\n}\n", "x.values")
    dtd_error("x-until-value", "a number that ends a byte array, as a constant", "3.5", one + "x.width = 1; x.value = @until 0;\n    }\n}\n", "until")
    dtd_error("x-width-own", "a width that refers to itself", "3.2, 3.5", one + "x.width = @x.width;\n    }\n}\n", "x.width")
    dtd_error("x-width-later", "a width that refers to the width of a later leaf", "3.2, 3.5",
              one.replace("n.width = 1;", "n.width = @x.width;") + "x.width = 1;\n    }\n}\n", "x.width")
    dtd_error("x-count-of-later-width", "a count that refers to the width of a later leaf", "3.2, 3.5",
              one.replace("n, x", "(@x.width)*n, x") + "x.width = 1;\n    }\n}\n", "x.width")
    dtd_error("x-count-of-no-width", "a count that refers to a width that the DTD does not set", "3.2",
              one.replace("n, x", "x, (@x.width)*n").replace("x.interpretation = none", "x.interpretation = default 1") + "\n    }\n}\n", "x.width")
    dtd_error("x-nested-stride-elsewhere", "records in a byte array that depend on a stream section", "3.7",
              "section u 2 { e: x; x.width = 1; x.interpretation = none; }\nsection s 1 { r: (tag, a) { tag.value = 4; a.width = 9; a.interpretation = none; a.section = @3; } }\n"
              "section v 3 { q: (tag, y) { tag.value = 4; y.interpretation = sectionStride 2 1; } }\n", "3")


MAGIC = "section p 1 { h: (%s) { magic.width = 4; magic.interpretation = none; magic.role = \"magic\"; %s } }\n"
RECORDS = "section s 2 { r: (tag, x) { tag.value = 4; x.width = 1; x.interpretation = none; } }\n"


def starts():
    whole = [line("s", "r", x=7)]
    sure, weak = (MAGIC % ("magic", f"magic.value = {value};") + RECORDS for value in ("0x01020304", "0x01020300"))
    good("x-magic-four-bytes", "four nonzero bytes identify a file without records", "5.4", sure, b"\4\3\2\1", [], raw=True)
    good("x-magic-three-bytes", "three nonzero bytes and one record that ends the file", "5.4", weak, b"\0\3\2\1\4\7", whole, raw=True)
    bad("x-magic-three-bytes-alone", "three nonzero bytes and no record", "5.4", weak, b"\0\3\2\1", [0], [], raw=True)
    bad("x-magic-one-record", "three nonzero bytes and one record that does not end the file", "5.4", weak, b"\0\3\2\1\4\7\4", [0], [], raw=True)
    bad("x-magic-least", "the smallest number of nonzero bytes of several values counts", "5.4",
        MAGIC % ("magic", 'magic.values = "0x01020304 a, 0x01 b";') + RECORDS, b"\4\3\2\1", [0], [], raw=True)
    two = MAGIC % ("magic, more", 'magic.value = 0x0102; more.width = 2; more.interpretation = none; more.value = 0x0304; more.role = "magic";') + RECORDS
    good("x-magic-two-fields", "two fields with two nonzero bytes each", "5.4", two, b"\2\1\0\0\4\3", [], raw=True)

    start = MAGIC % ("magic, size", "magic.value = 0x01020304; size.width = 2; size.interpretation = none;")
    dtd_error("x-magic-no-value", "a magic without a value", "3.5, 5.4", (start + RECORDS).replace("magic.value = 0x01020304;", "").replace('"magic"', '@"magic"'), '"magic"')
    dtd_error("x-magic-delta", "a magic with the interpretation `delta`", "3.5, 5.4", (start + RECORDS).replace("interpretation = none", "interpretation = delta 0", 1).replace('"magic"', '@"magic"'), '"magic"')
    dtd_error("x-magic-repeated", "a repeated magic", "3.5, 5.4", (start + RECORDS).replace("(magic, size)", "(size, (2)*magic)").replace('"magic"', '@"magic"'), '"magic"')
    dtd_error("x-magic-optional", "an optional magic", "3.5, 5.4", (start + RECORDS).replace("(magic, size)", "(size, (size.bit 0)*magic)").replace('"magic"', '@"magic"'), '"magic"')
    dtd_error("x-magic-array", "a magic of nine bytes", "3.5, 5.4", (start + RECORDS).replace("width = 4", "width = 9", 1).replace("magic.value = 0x01020304; ", "").replace('"magic"', '@"magic"'), '"magic"')
    dtd_error("x-size-in-records", "the size of the records in a record", "3.5, 5.4", start + RECORDS.replace("} }", 'x.role = @"records_size"; } }'), '"records_size"')
    trailer = 'section t 3 { e: (sum, more); sum.width = 1; sum.interpretation = none; more.width = 1; more.interpretation = none; sum.role = @"trailer"; }\n'
    dtd_error("x-trailer-two-leaves", "a trailer with a second leaf", "3.5, 5.4", start + RECORDS + trailer, '"trailer"')
    dtd_error("x-start-two-sections", "two sections of records", "5.4", start.replace('"magic"', '@"magic"') + RECORDS + RECORDS.replace("s 2", "t 3"), '"magic"')


def files():
    data, _ = chunks()
    good("x-v1-header-nrecords", "a wrong number of records in the header of a closed file", "5.1", ONE, data[:32] + b"\7" + data[33:], [line("s", "r", n=7)])
    good("x-v0-header-nrecords", "a wrong number of records in a header of version 0", "5.1", ONE, spoilt(extents((1, RECORD)), 24, 7), [line("s", "r", n=7)])
    place("good", "x-salvage-class-9", {
        "format.dtd": ONE, "trace.mtf": spoilt(data, 4, 9), "expected.jsonl": [line("s", "r", n=7)],
        "case.json": {"about": "a header with class 9; the first chunk has the class", "spec": "5.2", "mode": "salvage"}})
    for name, what, fields in [
        ("class", "a chunk of kind 200 of another class", (10, 1)),
        ("order", "a chunk of kind 200 of another byte order", (11, 2)),
        ("sequence", "a chunk of kind 200 with another sequence number", (28, 9)),
    ]:
        trace = Trace(ONE)
        trace.chunk(RECORD, 1, flags=3, records=1)
        at = trace.chunk(b"xyz", kind=200)
        head = bytearray(trace.out[at:])
        head[fields[0]] = fields[1]
        trace.out = trace.out[:at] + resealed(bytes(head))
        bad(f"x-v1-other-kind-{name}", what, "5.2", ONE, trace.finish(1), [at + fields[0]], [line("s", "r", n=7)])


def resealed(chunk):
    """Returns a chunk with the CRC of its bytes."""
    return chunk[:44] + crc32c(chunk[:44] + chunk[48:]).to_bytes(4, "little") + chunk[48:]


def language_edges():
    # A base of a global record, of another section's record of the same name, of a nested leaf, and of the first leaf of a name.
    dtd = """g: (tag, v) { tag.value = 9; v.width = 1; v.interpretation = none; }
d.width = 1; v.width = 1; v.interpretation = none; w.width = 1; w.interpretation = none; x.width = 1; x.interpretation = none;
section s 1 {
    p: (x, y) { y.width = 1; y.interpretation = none; }
    r: (tag, v) { tag.value = 4; }
    q: (tag, d) { tag.value = 5; d.interpretation = baseOffset g.v.value; }
    o: (tag, d) { tag.value = 6; d.interpretation = baseOffset r.v.value; }
    n: (tag, x, p) { tag.value = 7; }
    m: (tag, d) { tag.value = 8; d.interpretation = baseOffset n.p.x.value; }
    l: (tag, d) { tag.value = 10; d.interpretation = baseOffset n.y.value; }
}
section t 2 {
    r: (tag, w, v) { tag.value = 4; }
    o: (tag, d) { tag.value = 6; d.interpretation = baseOffset r.v.value; }
}
"""
    good("x-base-names", "bases in global records, in records of the same name, and in nested records", "4", dtd,
         extents((1, bytes([9, 100, 5, 1, 4, 50, 6, 2, 7, 10, 20, 30, 8, 3, 10, 4])), (2, bytes([4, 7, 70, 6, 5]))),
         [line("s", "g", v=100), line("s", "q", d=101), line("s", "r", v=50), line("s", "o", d=52), line("s", "n", x=10, p={"x": 20, "y": 30}),
          line("s", "m", d=23), line("s", "l", d=34), line("t", "r", w=7, v=70), line("t", "o", d=75)])
    dtd = f"section s 1 {{\n    p: (n, k) {{ {numbers('n', 'k')} }}\n    r: (tag, p, d, p.k*x, z) {{\n".replace("p.k*x", "(p.k.value)*x")
    dtd += f"        tag.value = 4; d.width = p.n.value; d.interpretation = none; {numbers('x', 'z')}\n    }}\n}}\n"
    good("x-paths-inwards", "a width and a count of leaves in a nested record", "3.2, 3.3", dtd, extents((1, bytes([4, 2, 1, 97, 98, 5, 6, 4, 0, 0, 7]))),
         [line("s", "r", p={"n": 2, "k": 1}, d="6162", x=[5], z=6), line("s", "r", p={"n": 0, "k": 0}, d="", x=[], z=7)])
    dtd = "section s 1 { r: (tag, n) { tag.value = 4; n.interpretation = stride 5 3; } }\n"
    good("x-stride-initial", "the previous value of a stride is first the initial value", "4", dtd, extents((1, b"\4\4")), [line("s", "r", n=8), line("s", "r", n=11)])
    dtd = "metadata.tag.value = 0x21; section.tag.value = 3;\n" + ONE
    good("x-metadata-tag-moved", "metadata with another tag", "3.2, 4.1", dtd,
         trace([(0, (b"", b"")), (1, (b"\3\1", b"\4\7\x21\4\1\x10\2\4\7\1"))], 2),
         [line("s", "r", n=7), line("s", "r", n=0x107)])
    # Records of an array: the first record of the DTD is one; `comment`, `section` and `metadata` are none.
    dtd = f"section in 2 {{ first: (tag, n) {{ tag.value = 4; {numbers('n')} }} }}\nsection s 1 {{\n    r: (tag, len, a) {{ tag.value = 5; {numbers('len')}\n" \
          "        a.width = len.value; a.interpretation = none; a.section = 2; }\n}\n"
    arrays = [b"\4\7", b"\1\1x", b"\2\2", b"\3\4\1\0\2\0\0\0"]
    good("x-nested-predefined", "records in a byte array, of which predefined records are none", "3.7", dtd,
         extents((1, b"".join(bytes([5, len(array)]) + array for array in arrays))),
         [line("s", "r", len=2, a=[{"@record": "first", "n": 7}])] + [line("s", "r", len=len(array), a=array.hex()) for array in arrays[1:]])
    # Items that store nothing.
    dtd = "section s 1 { r: (tag, n, n*z) { tag.value = 4; n.width = 4; n.interpretation = none; z.interpretation = default 0; } }\n"
    content = lambda n: b"\4" + n.to_bytes(4, "little")
    bad("x-items-over", "65,536 items more than the bytes of the record, and one more", "3.3", dtd, extents((1, content(65_542) + content(0))), [57, 53, 52], [])
    dtd = "section e 2 { item: (n, n*z) { n.width = 3; n.interpretation = none; z.width = 0; z.interpretation = none; } }\n" + ONE
    good("x-items-of-elements", "the limit of items counts for each element of a stream section", "3.3, 3.4", dtd,
         extents((1, RECORD), (2, b"\3\0\1" * 3)), [line("s", "r", n=7)])


def raw_edges():
    # Metadata without the size of its values, in class 1 and 2.
    dtd = ONE
    for name, number, size in (("1", 1, 4), ("2", 2, 8)):
        content = b"\4\7" + b"\3\4\1\4" + (9).to_bytes(size, "little") + b"\4" + b"\3\4\1\1" + b"\4\x08"
        lines = [line("s", "r", n=7), line("s", "r", n=9), line("s", "r", n=8)]
        case = {"about": f"metadata with values of the default size in a raw stream of class {name}", "spec": "4.1, 5.4", "mode": "raw", "class": number,
                "byteorder": "little", "section": "s"}
        place("good", f"x-raw-class-{name}", {"format.dtd": dtd, "trace.raw": content, "expected.jsonl": lines, "case.json": case})
        # The class of a damaged header is that of the first chunk.
        trace = Trace(ONE, big=True)
        content = b"\4\7" + b"\3\4\1\4" + (9).to_bytes(size, "big") + b"\4" + b"\3\4\1\1" + b"\4\x08"
        trace.chunk(content, 1, flags=3, records=3)
        data = trace.finish(3)
        first = data.index(b"MTFC")
        second = data.index(b"MTFC", first + 1)
        third = data.index(b"MTFC", second + 1)
        chunks = [data[first:second], data[second:third]]
        chunks = [resealed(chunk[:10] + bytes([number]) + chunk[11:]) for chunk in chunks]
        for about, head in (("damaged", spoilt(data[:first], 4, 9) + chunks[0]), ("lost", b"")):
            case = {"about": f"a {about} header; the chunks have class {name} and big-endian records", "spec": "5.2", "mode": "salvage"}
            place("good", f"x-salvage-header-{about}-{name}", {"format.dtd": ONE, "trace.mtf": head + chunks[1], "expected.jsonl": lines, "case.json": case})
    sure, weak = (MAGIC % ("magic", f"magic.value = {value};") + RECORDS for value in ("0x01020304", "0x01020300"))
    good("x-magic-default-class", "metadata with values of the default size in a file without a header", "4.1, 5.4", sure,
         b"\4\3\2\1" + b"\3\4\1\4" + (9).to_bytes(8, "little") + b"\4\4", [line("s", "r", x=9), line("s", "r", x=9)], raw=True)
    bad("x-magic-metadata", "a metadata record is not one of the two records", "5.4", weak, b"\0\3\2\1" + b"\3\4\1\x10\1" + b"\4\7", [0], [], raw=True)
    bad("x-magic-comment", "a comment is not one of the two records", "5.4", weak, b"\0\3\2\1" + b"\1\1x" + b"\4\7", [0], [], raw=True)
    good("x-magic-two-records", "two complete records before an incomplete one that reading ends with", "5.4", weak, b"\0\3\2\1\4\7\4\x08", [line("s", "r", x=7), line("s", "r", x=8)], raw=True)


def container_edges():
    data, at = chunks()
    for name, what, fields, place_of in [
        ("kind-127", "kind 127", {"kind": 127}, 5), ("codec-4", "codec 4", {"codec": 4}, 6),
        ("base-top", "a base of 2^56", {}, 32), ("width-9", "nine bytes for a leaf", {}, 9),
        ("transpose-0", "elements of no size without content", {}, 9),
    ]:
        trace = Trace(ONE)
        if name == "kind-127":
            trace.chunk(RECORD, 1, flags=3, records=1)
            start = trace.chunk(b"", **fields)
        elif name == "codec-4":
            start = trace.chunk(RECORD, 1, flags=3, records=1, **fields)
        elif name == "base-top":
            start = trace.chunk(RECORD, 1, flags=3, records=1)
            trace.out = trace.out[:start] + resealed(trace.out[start:start + 39] + b"\1" + trace.out[start + 40:])
        elif name == "transpose-0":
            start = trace.chunk(b"", 1, flags=3, filter=1)
        else:
            trace = Trace("section t 2 { v: (n) { n.width = 8; n.interpretation = none; } }\n" + ONE)
            start = trace.chunk(bytes(9), 2, flags=3, width=9, records=1)
        bad(f"x-v1-{name}", what, "5.2", "section t 2 { v: (n) { n.width = 8; n.interpretation = none; } }\n" + ONE if name == "width-9" else ONE,
            trace.finish(0 if name == "width-9" else 1), [start + place_of, start], [line("s", "r", n=7)] if name == "kind-127" else [])
    data, at = chunks(filter=1, width=1)
    good("x-v1-transpose-1", "elements of one byte", "5.2", ONE, data, [line("s", "r", n=7)])
    trace = Trace(ONE)
    trace.chunk(RECORD, 1, flags=3, records=1)
    trace.chunk(b"", 1)
    good("x-v1-empty-last", "a file that ends with a chunk without content", "5.2", ONE, trace.out, [line("s", "r", n=7)])
    # A DTD chunk that cannot be decompressed.
    trace = Trace(ONE)
    start = trace.out.index(b"MTFC")
    trace.out = trace.out[:start] + resealed(trace.out[start:start + 6] + b"\3" + trace.out[start + 7:])
    trace.chunk(RECORD, 1, flags=3, records=1)
    bad("x-v1-dtd-damaged", "a DTD that cannot be decompressed", "5.2", ONE, trace.finish(1), [start, start + 48], [])
    # The embedded DTD comes before the caller's when salvaging, too.
    trace = Trace(ONE.replace("(tag, n)", "(tag, m)").replace("n.width", "m.width").replace("n.interpretation", "m.interpretation"))
    trace.chunk(RECORD, 1, flags=3, records=1)
    place("good", "x-salvage-embedded-first", {
        "format.dtd": ONE, "trace.mtf": trace.finish(1), "expected.jsonl": [line("s", "r", m=7)],
        "case.json": {"about": "the embedded DTD comes first when salvaging", "spec": "5.2, 5.3", "mode": "salvage"}})
    # Times of groups that consist of several chunks, in LEB128 numbers of one and two bytes.
    dtd = 'section s 1 {\n    r: (tag, t) { tag.value = 4; t.width = 1; t.interpretation = none; t.role = "time"; }\n}\n'
    trace = Trace(dtd)
    for group, flags, times in ((0, 3, [64]), (0, 0, [189]), (0, 1, [100]), (1, 3, [189, 127])):
        trace.chunk(b"".join(bytes([4, t]) for t in times), 1, flags=flags, records=len(times), group=group)
    trace.chunk(b"\1\1\4\1" + b"\2" + b"\x7f\x80\1" + b"\x40\x7e", kind=129)
    good("x-v1-times-chunks", "times of groups of several chunks", "5.2", dtd, trace.finish(5), [line("s", "r", t=t) for t in (64, 189, 100, 189, 127)])


def dictionary_edges():
    dtd = "section s 1 { r: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }\n"
    record = lambda n: bytes([4, n])
    for m in (127, 256, 510, 511, 65_280):
        # Most entries are empty. The last entries are records, and so is the first.
        entries = [b""] * m
        named = sorted({0, 1, m - 2, m - 1} | ({254, 255} if m > 255 else set()) | ({512} if m > 512 else set()))
        for i, at in enumerate(named):
            entries[at] = record(i)
        ones = m if m <= 255 else (65_280 - m) // 255
        tokens = [at if at < ones else ones + (at - ones) // 256 for at in named]
        seconds = [(at - ones) % 256 for at in named if at >= ones]
        # Tokens of the empty entry 2, so that there are 127 tokens or more.
        tokens, seconds = tokens + [2 if 2 < ones else ones + (2 - ones) // 256] * (127 - len(tokens)), seconds + ([] if 2 < ones else [2 - ones] * (127 - len(tokens)))
        trace = Trace(dtd)
        trace.chunk(b"".join(record(i) for i in range(len(named))), 1, flags=3, records=len(named), filtered=phrased(entries, [], tokens, seconds), zipped=True)
        good(f"x-dictionary-{m}", f"{m} numbered entries, of which {ones} have tokens of one byte", "5.2", dtd, trace.finish(len(named)), [line("s", "r", n=i) for i in range(len(named))])
    for name, what, filtered in [
        ("after-last", "a token with the number after the last entry", phrased([RECORD], [], [0, 1], [0])),
        ("other-again", "a token for an other entry after the last, which is empty", phrased([RECORD, RECORD], [b""], [0, 1, 255, 255])),
    ]:
        trace = Trace(dtd)
        start = trace.chunk(RECORD * 2, 1, flags=3, records=2, filtered=filtered)
        bad(f"x-dictionary-{name}", what, "5.2", dtd, trace.finish(2), [start, start + 48], [])
    trace = Trace(dtd)
    start = trace.chunk(RECORD, 1, flags=3, records=1, filtered=phrased([], [b"\4"], [255]) + b"\7", filtered_len=9, filter=3, zipped=True)
    bad("x-dictionary-suffix-length", "decompressed bytes of another length, with filter 3", "5.2", dtd, trace.finish(1), [start, start + 48, start + 16], [])
    trace = Trace(dtd)
    start = trace.chunk(b"", 1, flags=3, filtered=b"", filtered_len=0)
    bad("x-dictionary-no-bytes", "filter 2 without bytes and content", "5.2", dtd, trace.finish(0), [start + 7], [])


def column_edges():
    one, r = column(1, (4, 1)), shape(b"\4", 0)
    seven = (1, [b"\7"])

    def made(name, about, packed, raw=RECORD, dtd=ONE, lines=None, section=1, records=1, **how):
        trace = Trace(dtd, features=FEATURE)
        trace.chunk(raw, section, 0, 3, records=records, filtered=packed, filter=4, filtered_len=0, **how)
        good(f"x-columns-edge-{name}", about, "5.2", dtd, trace.finish(records if section == 1 else 0), [line("s", "r", n=7)] if lines is None else lines)

    made("columns", "4,096 columns", payload([one] * 4096, [r], [0], [seven] + [(0, [b""])] * 4095))
    made("shapes", "256 shapes", payload([one], [shape(b"\5")] * 255 + [r], [255], [seven]))
    made("two-shapes", "two shapes", payload([one], [shape(b"\4\x08"), r], [1, 0], [seven]), RECORD + b"\4\x08", lines=[line("s", "r", n=7), line("s", "r", n=8)], records=2)
    made("pieces", "256 pieces", payload([column(1)], [shape(b"", *[0] * 256)], [0], [(256, [b"\4\7" * 128])]), RECORD * 128, lines=[line("s", "r", n=7)] * 128, records=128)
    made("twice", "a count of eight bytes, and columns of exactly twice as many bytes as the content",
         payload([column(8), column(4)], [shape(b"\4\7", repeat(0, 1))], [0], [(1, [b"\1"] + [b"\0"] * 7), (1, [b"\4", b"\7", b"\4", b"\7"])]), RECORD * 3,
         lines=[line("s", "r", n=7)] * 3, records=3)
    made("width-9", "a column of nine bytes", payload([column(9)], [shape(b"\4\7\4\7\4", 0)], [0], [(1, [b"\7\4\7\4\7\4\7\4\x08"])]), RECORD * 6 + b"\4\x08",
         lines=[line("s", "r", n=7)] * 6 + [line("s", "r", n=8)], records=7)
    trace = Trace(ONE, features=FEATURE)
    start = trace.chunk(RECORD * 3, 1, 0, 3, records=3, filter=4, filtered_len=0, filtered=payload(
        [column(8), column(5)], [shape(b"\4", repeat(0, 1))], [0], [(1, [b"\1"] + [b"\0"] * 7), (1, [b"\7", b"\4", b"\7", b"\4", b"\7"])]))
    bad("x-columns-edge-over-twice", "columns of one byte more than twice the content", "5.2", ONE, trace.finish(3), [start, start + 48], [])
    # 65,536 bytes for each byte of the payload, and one more.
    dtd = "section t 2 { e: (d) { d.width = bytes 8; d.interpretation = none; } }\n" + ONE
    packed = lambda rows: payload([column(8)], [shape(b"", 0)], [], [(rows, [b"\0"] * 8)], counts=rows)
    rows = next(8192 * n for n in range(20, 60) if len(packed(8192 * n)) == n)
    for name, about, more in (("ratio", "content of 65,536 times its payload", 0), ("over-ratio", "content of eight bytes more than 65,536 times its payload", 1)):
        trace = Trace(dtd, features=FEATURE)
        start = trace.chunk(b"", 2, 0, 3, records=rows + more, filtered=packed(rows + more), filter=4, filtered_len=0, raw_len=8 * (rows + more))
        trace.bases[2] = 8 * (rows + more)
        trace.chunk(RECORD, 1, flags=1, records=1)
        if more:
            bad(f"x-columns-edge-{name}", about, "5.2", dtd, trace.finish(1), [start + 16], [])
        else:
            good(f"x-columns-edge-{name}", about, "5.2", dtd, trace.finish(1), [line("s", "r", n=7)])


def model_edges():
    clear("x-predicted-edge-")
    begin = [0, 0]
    steps = [(5, 2, True), (5, 2, True), (10, 0)]
    values("x-predicted-edge-first-difference", "the differences before the first value are 0", "dfcm 1", steps)
    sizes = [a(24, 0x1000, 36, fold(0x1000)), a(25, 0x1020, 4), a(24, 0x1050, 4), a(40, 0x1070, 4), a(41, 0x10A0, 4), a(24, 0x10E0, 4)]
    heap("x-predicted-edge-rule-0", "sizes at the bounds of size rule 0", (begin, sizes))
    sizes = [a(16, 0x1000, 36, fold(0x1000)), a(17, 0x1010, 4), a(16, 0x1030, 4), a(128, 0x1040, 4), a(129, 0x10C0, 4), a(160, 0x1160, 4), a(161, 0x1200, 4), a(1, 0x12C0, 4)]
    heap("x-predicted-edge-rule-1", "sizes at the bounds of size rule 1", ([1, 0], sizes))
    # The order of 65 slots and more: the object in the last slot of each window, with empty slots in between.
    objects = lambda n: [a(24, 0x1000, 36, fold(0x1000))] + [a(24, 0x1000 + 0x20 * i, 4) for i in range(1, n)]
    free = lambda slot, mark: f(0x1000 + 0x20 * slot, 48, fold(slot - mark))
    frees = [free(1, 0)] + [free(slot, slot - 1) for slot in range(2, 63)]
    heap("x-predicted-edge-window-newest", "the 64th slot from the end", (begin, objects(64) + frees + [f(0x1000, 1)]))
    # The mark is slot 0, and only slots 64 and 65 are live.
    frees = [free(1, 0)] + [free(slot, slot - 1) for slot in range(2, 64)] + [free(0, 63)]
    heap("x-predicted-edge-window-after", "the 64th slot after the mark", (begin, objects(66) + frees + [f(0x1000 + 0x20 * 64, 32)]))
    # 1,100 slots, one of them empty: the empty slot stays.
    order = objects(1100) + [free(10, 0), a(24, 0x1000 + 0x20 * 10, 0), f(0x1000 + 0x20 * 5, 49, 0, 1100 - 5)]
    heap("x-predicted-edge-order-kept", "an order of more than 1,024 slots with one empty slot", (begin, order))
    # 2 used + 1 slots, of which the last is new.
    # Of 1,026 objects, 511 and the last are left, and the new one has slot 1,026: 1,027 slots, 513 in use.
    frees = [free(511, 0)] + [free(slot, slot - 1) for slot in range(512, 1025)]
    new = [a(56, 0x100000, 36, fold(0x100000 - 0x1000))]
    order = objects(1026) + frees + new + [f(0x1000 + 0x20 * 5, 49, 0, 512 - 5)]
    heap("x-predicted-edge-order-closed", "an order of 2 used + 1 slots is closed up", (begin, order))
    # The last code of *recent* makes a bump, and sets *fresh*.
    frees = [f(0x1000 + 0x20 * (127 - n), 0) for n in range(128)]
    order = objects(128) + frees + [a(56, 0x1000 + 0x20 * 127, 165), a(8, 0x1000 + 0x20 * 127 + 0x40, 4), a(56, 0x1000 + 0x20 * 127 + 0x40, 3)]
    heap("x-predicted-edge-recent-last", "the 128th of the most recently freed addresses", (begin, order))
    # 3,000 contexts with an object each are fewer than 2^21.
    dtd = HEAP.replace("thread.width = 1", "thread.width = 2")
    raw, lines, elements, miss = b"", [], [], 0
    for thread in range(3000):
        address = 0x1000 + 0x20 * thread
        raw += b"\4" + thread.to_bytes(2, "little") + b"\x18\0" + b"\x24"
        # Each context has its own last miss.
        elements.append(fold(address))
        lines.append(line("s", "alloc", thread=thread, size=24, address=address))
    raw += b"\4\0\0\x18\0\4"
    lines.append(line("s", "alloc", thread=0, size=24, address=0x1020))
    trace = Trace(dtd)
    trace.stream(2, begin + elements)
    trace.chunk(raw, 1, 0, 1, records=len(lines), zipped=True)
    place("good", "x-predicted-edge-contexts", {"format.dtd": dtd, "trace.mtf": trace.finish(len(lines)), "expected.jsonl": lines,
                                      "case.json": {"about": "3,000 contexts, whose heap is not cleared", "spec": "4.2.2", "mode": "dump"}})


def main():
    language()
    starts()
    files()
    language_edges()
    raw_edges()
    container_edges()
    dictionary_edges()
    column_edges()
    model_edges()
