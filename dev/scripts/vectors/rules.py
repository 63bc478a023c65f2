"""Creates conformance vectors for rules that no other vector covers: headers, chunks, expressions, and files without a header.

The bytes and their meaning are written by hand according to the specification. No project code is called."""
import os
import shutil
import struct
import zlib

from .common import ROOT, Trace, line, trace, write

ONE = "section s 1 { r: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }\n"
TABLE = """section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = sectionOffset 2; } }
section t 2 { name: vfield; }
"""
RECORD = b"\x04\x07"


def place(kind, name, files):
    folder = f"{kind}/{name}"
    shutil.rmtree(os.path.join(ROOT, folder), ignore_errors=True)
    write(folder, files)


def good(name, about, spec, dtd, trace, lines, everything=None, raw=False):
    files = {"format.dtd": dtd, "trace.raw" if raw else "trace.mtf": trace, "expected.jsonl": lines}
    if everything:
        files["expected_all.jsonl"] = everything
    place("good", name, files | {"case.json": {"about": about, "spec": spec, "mode": "dump"}})


def bad(name, what, spec, dtd, trace, offsets, lines=None, raw=False):
    files = {"format.dtd": dtd, "trace.raw" if raw else "trace.mtf": trace}
    files["note.json"] = {"what": what, "offsets": offsets, "spec": spec}
    place("bad/trace", name, files if lines is None else files | {"expected.jsonl": lines})


def extents(*contents, word=4):
    """Returns a version 0 trace with these sections."""
    return trace([(0, (b"", b""))] + [(n, (bytes([2, n]), content)) for n, content in contents], 0, word)


def spoilt(data, at, byte):
    return data[:at] + bytes([byte]) + data[at + 1:]


def chunks(dtd=ONE, content=RECORD, **how):
    """Returns a version 1 trace with a single chunk of one record, and the offset of the chunk header."""
    header = {key: how.pop(key) for key in list(how) if key in ("version", "table", "behind", "first")}
    made = Trace(dtd, **header)
    at = made.chunk(content, 1, flags=3, records=1, **how)
    return made.finish(1), at


def headers():
    old = extents((1, RECORD))
    bad("x-class-3", "class 3", "5.1", ONE, spoilt(extents((1, RECORD), word=8), 4, 3), [4])
    bad("x-order-3", "byte order 3", "5.1", ONE, spoilt(old, 5, 3), [5])
    bad("x-version-2", "version 2, which no reader knows", "5.2", ONE, chunks(version=2)[0], [7])
    bad("x-v1-table", "a table in version 1", "5.2", ONE, chunks(table=1)[0], [16])
    bad("x-v1-start-behind", "the data begin behind the end of the header", "5.2", ONE, chunks(behind=b"junk")[0], [24])
    # The data begin at the last letter of the DTD name, and one byte after the end of the file.
    mark = "mark: (tag) { tag.value = 0x64; }\n"
    none = trace([(0, (b"", b""))], 0)
    bad("x-start-in-header", "the data begin in the header", "5.1", mark, spoilt(none, 20, len(none) - 1), [20])
    bad("x-start-behind-end", "the data begin behind the end of the file", "5.1", mark, spoilt(none, 20, len(none) + 1), [20])
    bad("x-table-unknown-section", "an extent of section 9, which the DTD does not have", "5.1", ONE, extents((1, RECORD), (9, b"")), [68, 67, 66])
    head = b"\x7fMTF" + bytes([1, 1, 10]) + bytes(9) + struct.pack("<III", 2, 62, 0) + b"format.dtd"
    table = struct.pack("<IIIIII", 0, 63, 1, 1, 66, 2)
    mark = "mark: (tag) { tag.value = 9; }\n" + ONE
    bad("x-table-global-elsewhere", "the global section does not begin at start", "5.1", mark, head + table + b"\t\t\2\1" + RECORD, [42, 38])


def times():
    """Times of groups: chunks of kind 129 after three groups, of which the second has no time."""
    dtd = """section s 1 {
    r: (tag, t) { tag.value = 4; t.width = 1; t.interpretation = none; t.role = "time"; }
    q: (tag, n) { tag.value = 5; n.width = 1; n.interpretation = none; }
}
"""
    lines = [line("s", "r", t=30), line("s", "r", t=10), line("s", "q", n=99), line("s", "r", t=20)]
    # One leaf: section 1, tag 4, leaf 1.
    head = b"\1\1\4\1"
    # A length of 20 from 10 on (a change of 10), no time, and a length of 0 from 20 on.
    right = b"\3" + b"\x16\x14" + b"\0" + b"\2\x14"

    def made(content, more=False, **fields):
        trace = Trace(dtd)
        for group, records in enumerate([b"\4\x1e\4\x0a", b"\5\x63", b"\4\x14"]):
            trace.chunk(records, 1, flags=3, records=len(records) // 2, group=group)
        trace.chunk(content, kind=129, **fields)
        if more:
            trace.chunk(b"\4\x0a", 1, flags=3, records=1, group=3)
        return trace.finish(5 if more else 4)

    good("x-v1-times", "the times of three groups", "5.2", dtd, made(head + right), lines)
    good("x-v1-times-packed", "the times of three groups, compressed", "5.2", dtd, made(head + right, zipped=True), lines)
    good("x-v1-times-more", "a group after the times, whose times are not known", "5.2", dtd, made(head + right, more=True),
         lines + [line("s", "r", t=10)])
    # The first change is -1, so the lowest time is 2^64 - 1. The second group is not known, and the third has the length 2^64 - 3.
    most = b"\3" + b"\2\1" + b"\1" + b"\xff" * 9 + b"\1" + b"\4"
    good("x-v1-times-most", "times that are neither those of the records nor known", "5.2", dtd, made(head + most), lines)
    good("x-v1-times-no-leaf", "times of a leaf that the DTD does not have", "5.2", dtd,
         made(b"\2\xff\1\xff\xff\xff\xff\x0f\xff\1\1\4\1" + right), lines)
    for name, what, content in [
        ("empty", "no number of leaves", b""),
        ("cut", "the last time is cut", head + right[:-1]),
        ("behind", "a byte behind the times", head + right + b"\0"),
        ("fewer", "times of two groups of three", head + b"\2\0\0"),
        ("more-groups", "times of four groups of three", head + b"\4\0\0\0\0"),
        ("number", "a number of more than 64 bits", head + b"\3" + b"\xff" * 9 + b"\2" + b"\0\0\0"),
        ("long", "a number of more than ten bytes", head + b"\3" + b"\x80" * 10 + b"\0" + b"\0\0"),
        ("beyond", "a highest time of 2^64", head + b"\3" + b"\3\1" + b"\0\0"),
        ("section", "a leaf of section 256", b"\1\x80\2\4\1" + right),
        ("tag", "a leaf of the tag 2^32", b"\1\1\x80\x80\x80\x80\x10\1" + right),
        ("leaf", "a leaf over 255", b"\1\1\4\x80\2" + right),
        ("leaves", "more leaves than bytes", b"\xff\xff\3" + right),
    ]:
        good(f"x-v1-times-bad-{name}", f"invalid times, which are skipped: {what}", "5.2", dtd, made(content), lines)
    for name, what, fields in [("of-section", "times of section 1", {"section": 1}), ("flags", "times with a flag", {"flags": 8})]:
        good(f"x-v1-times-bad-{name}", f"invalid times, which are skipped: {what}", "5.2", dtd, made(head + right, **fields), lines)


def groups():
    bad("x-v1-sequence-1", "the first chunk has number 1", "5.2", ONE, chunks(first=1)[0], [68, 40])
    for name, what, fields, at in [
        ("x-v1-kind-4", "chunk kind 4", {"kind": 4}, 5),
        ("x-v1-kind-of-section", "user metadata of section 7", {"kind": 3, "section": 7}, 4),
        ("x-v1-kind-of-group", "user metadata of group 2", {"kind": 3, "group": 2}, 24),
    ]:
        made = Trace(ONE)
        start = made.chunk(b"{}", **fields)
        made.chunk(RECORD, 1, flags=3, records=1)
        bad(name, what, "5.2", ONE, made.finish(1), [start + at, start])
    made = Trace(ONE)
    made.chunk(RECORD, 1, flags=3, records=1)
    made.chunk(b"anything", 9, kind=128, flags=255, width=99, records=7, group=5, codec=77, filter=200, raw_len=1 << 30, filtered_len=9)
    made.chunk(RECORD, 1, flags=0, records=1)
    about = "readers do not check the fields of chunks of kinds 128 to 255 whose meaning the kind decides"
    good("x-v1-other-kind-fields", about, "5.2", ONE, made.finish(2), [line("s", "r", n=7)] * 2)
    times()
    strides = """section s 1 { r: (tag, a) { tag.value = 4; a.interpretation = sectionStride 2 1; } }
section e 2 { item: (v) { v.width = 2; v.interpretation = none; } }
"""
    made = Trace(strides)
    start = made.chunk(b"\1\2", 2, flags=3, records=1)
    made.chunk(b"\4", 1, flags=1, records=1)
    bad("x-v1-width-0", "no width for a numeric leaf", "5.2", strides, made.finish(1), [start + 9, start])
    data, start = chunks(width=2)
    bad("x-v1-width-elsewhere", "a width in a section of tagged records", "5.2", ONE, data, [start + 9, start])
    # A Zstandard frame with a single raw block.
    frame = b"\x28\xb5\x2f\xfd\x20\x02\x11\0\0" + RECORD
    for name, codec, payload in [("x-v1-zstd-behind", 1, frame), ("x-v1-zlib-behind", 3, zlib.compress(RECORD))]:
        data, start = chunks(filtered=payload + b"more", filter=0, filtered_len=0, codec=codec)
        bad(name, "bytes behind the frame or stream", "5.2", ONE, data, [start + 16, start, start + 48])
    data, start = chunks(filter=4)
    bad("x-v1-filter-4", "filter 4 without its payload", "5.2", ONE, data, [start, start + 48])
    for name, flags, what in [
        ("x-v1-shared-no-reset", 4, "a chunk of a shared table without bit 0"),
        ("x-v1-shared-starts", 7, "a chunk of a shared table with bit 1"),
    ]:
        made = Trace(TABLE)
        start = made.chunk(b"\1a", 2, flags=flags, records=1)
        made.chunk(b"\4\0", 1, flags=3, records=1)
        bad(name, what, "5.2", TABLE, made.finish(1), [start + 8, start])
    made = Trace(TABLE)
    start = made.chunk(b"\4\0", 1, flags=5, records=1)
    bad("x-v1-shared-records", "a shared table in a section of records", "5.2", TABLE, made.finish(1), [start + 8, start])
    made = Trace(TABLE)
    made.chunk(b"\1a", 2, flags=5, records=1)
    start = made.chunk(b"\1b", 2, flags=3, records=1)
    made.chunk(b"\4\0", 1, flags=1, records=1)
    bad("x-v1-shared-partly", "a section that is a shared table has a chunk of a group", "5.2", TABLE, made.finish(1), [start + 8, start])


def leb128(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def dictionaries():
    data, start = chunks(filtered=b"\x81\x80\x80\x80\x80\0\0\1\2" + RECORD + b"\0")
    bad("x-phrases-number-long", "a number of six bytes", "5.2", ONE, data, [start, start + 48, start + 53])
    entries = leb128(65_281) + leb128(0) + leb128(1) + bytes([2]) + bytes(65_280) + RECORD + b"\0\0"
    data, start = chunks(filtered=entries, zipped=True)
    bad("x-phrases-entries", "65,281 numbered entries", "5.2", ONE, data, [start, start + 48])
    one = b"\1\0\1\2" + RECORD + b"\0"
    data, start = chunks(filtered=one, zipped=True, filtered_len=len(one) - 1)
    offsets = [start + 40, start + 16, start, start + 48]
    bad("x-phrases-decompressed", "decompressed bytes are one more than filtered_len", "5.2", ONE, data, offsets)


def prologue(section, number, record, magic, width=4, more="", fields=""):
    return (f"section {section} {number} {{ {record}: (magic{fields}) {{ magic.width = {width}; magic.interpretation = none; "
            f"magic.value = {magic}; magic.role = \"magic\";{more} }} }}\n")


def prologues():
    gap = {"fields": ", gap", "more": " gap.width = 1; gap.interpretation = none;"}
    records = "section records 1 { r: (tag, n) { tag.value = 4; n.width = WIDTH; n.interpretation = none; } }\n"
    of = lambda n: line("records", "r", n=n)
    of_all = lambda offset, n: {"@section": "records", "@record": "r", "@offset": offset, "tag": 4, "n": n}
    first = lambda section, record, **fields: {"@section": section, "@record": record, "@offset": 0} | fields

    dtd = "// A magic that is the same in both byte orders.\n" + prologue("header", 2, "prologue", "0x01020201") + records.replace("WIDTH", "2")
    good("x-prologue-symmetric", "a start that fits in both byte orders is little-endian", "5.4", dtd, b"\1\2\2\1\4\1\2", [of(513)],
         [of_all(4, 513), first("header", "prologue", magic=0x01020201)], raw=True)
    records = records.replace("WIDTH", "1")
    magic = "0x64636261"
    dtd = prologue("long", 2, "long_prologue", magic, **gap) + prologue("short", 3, "short_prologue", magic) + records
    good("x-prologue-two", "of two starts that fit the first in the DTD counts", "5.4", dtd, b"abcd\4\4\5", [of(5)],
         [of_all(5, 5), first("long", "long_prologue", magic=0x64636261, gap=4)], raw=True)
    dtd = prologue("long", 2, "long_prologue", "0x6261", 2, **gap) + prologue("short", 3, "short_prologue", "0x6261", 2) + records
    good("x-prologue-weak", "a weak magic counts only where two whole records follow", "5.4", dtd, b"ab\4\7\4\5", [of(7), of(5)],
         [of_all(2, 7), of_all(4, 5), first("short", "short_prologue", magic=0x6261)], raw=True)
    size = {"fields": ", size", "more": " size.width = 1; size.interpretation = none; size.role = \"records_size\";"}
    dtd = prologue("header", 2, "prologue", magic, **size) + records
    bad("x-prologue-size", "more bytes of records than the file has", "5.4", dtd, b"abcd\3\4\5", [4, 5, 0], raw=True)
    version = {"fields": ", version", "more": " version.width = 1; version.interpretation = none; version.value = 1;"}
    dtd = prologue("first", 2, "first_prologue", magic, **version) + prologue("second", 3, "second_prologue", magic)
    dtd += "section records 1 { r: (tag) { tag.value = 4; } }\n"
    bad("x-prologue-constant", "a start that fits has a constant of another value", "5.4", dtd, b"abcd\4", [4, 0], raw=True)


def expressions():
    for name, width, content, what in [
        ("x-width-sum", "n.value + 18446744073709551615", b"\4\1", "a sum over 2^64-1"),
        ("x-width-product", "n.value * 0x8000000000000000", b"\4\2", "a product over 2^64-1"),
        ("x-width-division", "4 / n.value", b"\4\0", "a division by 0"),
        ("x-width-remainder", "4 % n.value", b"\4\0abcd", "the remainder of a division by 0"),
    ]:
        dtd = (f"section s 1 {{ r: (tag, n, d) {{ tag.value = 4; n.width = 1; n.interpretation = none; "
               f"d.width = {width}; d.interpretation = none; }} }}\n")
        bad(name, what, "3.2", dtd, extents((1, content)), [54, 53, 52])


def language():
    dtd = """// What a section says of `data` is not said of that of `vfield`.
section s 1 {
    data.width = 9; data.interpretation = none; data.format = "utf8";
    r: (tag, data, vfield) { tag.value = 4; }
}
"""
    good("x-vfield-blocks", "the leaves of vfield look no further than blocks", "3.1", dtd, extents((1, b"\x04123456789\2hi")),
         [line("s", "r", data="123456789", vfield="6869")])
    dtd = """section s 1 {
    n.width = 1; n.interpretation = none; x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none;
    d.interpretation = none; e.interpretation = none;
    // From the record that lists the field outwards.
    d.width = n.value;
    box: (x, (n.bit 0)*y);
    inner: (x, d, e);
    // From the record of the block.
    r: (tag, n, (n.value)*box, inner) { tag.value = 4; inner.e.width = n.value; }
}
"""
    lines = [line("s", "r", n=1, box=[{"x": 7, "y": 9}], inner={"x": 8, "d": "61", "e": "62"}),
             line("s", "r", n=2, box=[{"x": 5}, {"x": 6}], inner={"x": 8, "d": "6161", "e": "6262"})]
    content = b"\4\1\7\x09\x08ab" + b"\4\2\5\6\x08aabb"
    good("x-paths", "where the paths of widths and counts start", "3.2, 3.3", dtd, extents((1, content)), lines)


def values():
    dtd = """section s 1 {
    r: (tag, a, b) { tag.value = 4; a.width = 1; a.interpretation = none; b.width = 1; b.interpretation = baseOffset r.a.value; }
}
"""
    good("x-base-in-progress", "a base that is an earlier leaf of the same record", "4", dtd, extents((1, b"\4\x64\1\4\xc8\xff")),
         [line("s", "r", a=100, b=101), line("s", "r", a=200, b=199)])
    dtd = """section e 2 { item: (v) { v.width = 1; v.interpretation = none; } }
section s 1 { r: (tag, a, b) { tag.value = 4; a.interpretation = sectionStride 2 1; b.interpretation = sectionStride 2 2; } }
"""
    good("x-stride-two-leaves", "two leaves of a record take turns in one stream section, each with its stride", "4", dtd,
         extents((2, b"\1\2\3\4\5\6"), (1, b"\4\4")), [line("s", "r", a=1, b=2), line("s", "r", a=4, b=5)])
    dtd = """section e 2 { item: (v, w) { v.width = 1; v.interpretation = none; w.width = 1; w.interpretation = none; } }
section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = none; } }
"""
    bad("x-md-stride-two-leaves", "sectionStride through a stream section of two leaves", "4.1", dtd,
        extents((2, b"\1\2"), (1, b"\4\7\3\4\1\x17\2\1")), [74, 73, 70], [line("s", "r", a=7)])
    dtd = "section s 1 { r: (tag, x) { tag.value = 4; x.width = 8; x.interpretation = none; x.format = \"f64\"; } }\n"
    bits = [0x7FF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0xFFF8000000000001, 0x8000000000000000]
    content = b"".join(b"\4" + struct.pack("<Q", n) for n in bits)
    lines = [line("s", "r", x={"hex": f"{n:016x}"}) for n in bits[:4]] + [line("s", "r", x=-0.0)]
    good("x-f64-no-number", "f64 that JSON has no number for, and -0", "8", dtd, extents((1, content)), lines)


def main():
    headers()
    groups()
    dictionaries()
    prologues()
    expressions()
    language()
    values()
