"""Creates conformance vectors for filter 4, columns, and the feature that it needs (specification, 5.2).

The bytes and their meaning are written by hand according to the specification. No project code is called."""
import struct
import zlib

from .common import Trace, clear, line
from .rules import ONE, RECORD, bad, chunks, good, leb128

FEATURE = {0: b"columns"}


def column(width, label=None):
    """Returns the bytes that describe a column. `label` pairs a tag with a leaf."""
    return bytes([width]) + (b"\0" if label is None else leb128(label[1] + 1) + leb128(label[0]))


def repeat(count, *columns):
    return leb128(2 * count + 1) + leb128(len(columns)) + b"".join(map(leb128, columns))


def shape(constant, *pieces):
    """Returns the bytes that describe a shape. A piece is the number of a column, or the bytes of a repetition."""
    pieces = [leb128(2 * piece) if isinstance(piece, int) else piece for piece in pieces]
    return leb128(len(constant)) + constant + leb128(len(pieces)) + b"".join(pieces)


def payload(columns, shapes, rows, streams, stored=None, counts=None):
    """Returns a payload. `rows` has the shape of each row, and `streams` the number of elements and the streams of each column as they are
    stored. `stored` is the stored shape stream if it differs from `rows`, and `counts` the number of rows if it does."""
    out = leb128(len(columns)) + b"".join(columns) + leb128(len(shapes)) + b"".join(shapes)
    out += leb128(len(rows) if counts is None else counts)
    order = b"" if len(shapes) < 2 else bytes(rows) if stored is None else stored
    out += leb128(len(order)) if len(shapes) > 1 else b""
    out += b"".join(leb128(n) + b"".join(leb128(len(stream)) for stream in of) for n, of in streams)
    return out + order + b"".join(stream for _, of in streams for stream in of)


class Columns:
    """Content in columns: `columns` pairs widths with labels, and `shapes` pairs constant bytes with pieces. A piece is the number of a
    column, or the number of the count's column and a list of columns."""

    def __init__(self, columns, shapes, pack=None):
        self.columns, self.shapes, self.pack = columns, shapes, pack or (lambda stream: stream)
        self.elements, self.rows, self.raw = [[] for _ in columns], [], b""

    def row(self, number, *values):
        """Adds a row: for each piece an element, or the list of the elements of a repetition."""
        constant, pieces = self.shapes[number]
        self.rows.append(number)
        self.raw += constant
        earlier = set()
        for piece, value in zip(pieces, values, strict=True):
            if isinstance(piece, int):
                earlier.add(piece)
                self.elements[piece].append(value)
                self.raw += value
                continue
            count, repeated = piece
            if count not in earlier:
                self.elements[count].append((len(value) // len(repeated)).to_bytes(self.columns[count][0], "little"))
            for at, element in enumerate(value):
                self.elements[repeated[at % len(repeated)]].append(element)
                self.raw += element

    def stored(self, stream):
        if len(stream) > 1 and len(set(stream)) == 1:
            return stream[:1]
        packed = self.pack(stream)
        return packed if len(packed) < len(stream) else stream

    def payload(self):
        streams = []
        for (width, _), elements in zip(self.columns, self.elements):
            assert all(len(element) == width for element in elements)
            whole = b"".join(elements)
            of = [whole[byte::width] for byte in range(width)] if 2 <= width <= 8 else [whole]
            streams.append((len(elements), [self.stored(stream) for stream in of]))
        shapes = [shape(constant, *(p if isinstance(p, int) else repeat(p[0], *p[1]) for p in pieces)) for constant, pieces in self.shapes]
        return payload([column(*c) for c in self.columns], shapes, self.rows, streams, self.stored(bytes(self.rows)))

    def chunk(self, made, section, flags, records, group=0, **header):
        """Adds the content to a trace."""
        return made.chunk(self.raw, section, 0, flags, records=records, group=group, filtered=self.payload(), **{"filter": 4, "filtered_len": 0} | header)


def bytes_of(text):
    return [bytes([byte]) for byte in text]


MIXED = """tag.width = 2;
section s 1 {
    n.width = 1; n.interpretation = none; x.width = 2; x.interpretation = none; time.width = 4; time.interpretation = delta 0;
    // Present if bit 0 is set.
    opt: (tag, n, (n.bit 0)*time) { tag.value = 4; }
    items: (tag, n, n*x) { tag.value = 5; }
    pairs: (tag, time, n*(x, y)) { tag.value = 6; y.width = 1; y.interpretation = none; }
    text: (tag, vfield) { tag.value = 7; vfield.data.format = "utf8"; }
    more: (tag, n, d) { tag.value = 8; d.width = n.value * 2; d.interpretation = none; }
    fixed: (tag, d, n) { tag.value = 0x109; d.width = 12; d.interpretation = none; }
    line: (tag, d) { tag.value = 10; d.width = until 0; d.interpretation = none; d.format = "utf8"; }
}
"""


def mixed():
    """Every kind of piece, in both byte orders, with metadata and a comment."""
    for big in (False, True):
        number = lambda n, width: n.to_bytes(width, "big" if big else "little")
        one = lambda n: bytes([n])
        tag = lambda n: number(n, 2)
        made = Trace(MIXED, big=big, features=FEATURE)
        columns = [
            (1, (4, 1)), (4, (4, 3)),  # opt: n, time
            (1, (5, 1)), (2, (5, 2)), (8, (5, 2)),  # items: n, x, x after metadata
            (4, (6, 1)), (1, (6, 2)), (2, (6, 3)), (1, (6, 4)),  # pairs: time, n, x, y
            (1, (7, 1)), (1, (7, 2)),  # text: length, data
            (1, (8, 1)), (1, (8, 2)), (2, None),  # more: n, d, its count
            (12, (0x109, 1)), (1, (0x109, 2)),  # fixed: d, n
            (1, (10, 1)), (1, None),  # line: d with its end, its count
            (1, (1, 1)), (1, (1, 2)),  # comment: length, data
        ]
        # Metadata: x of items has 8 bytes, and time of opt counts from 1000.
        wide = tag(3) + tag(5) + b"\x02\x10\x08"
        initial = tag(3) + tag(4) + b"\x03\x23" + number(1000, 2)
        shapes = [
            (tag(4), [0, 1]), (tag(4), [0]), (tag(5), [2, (2, [3])]), (tag(5), [2, (2, [4])]), (tag(6), [5, 6, (6, [7, 8])]),
            (tag(7), [9, (9, [10])]), (tag(8), [11, (13, [12])]), (tag(0x109), [14, 15]), (tag(10), [(17, [16])]), (tag(1), [18, (18, [19])]),
            (wide, []), (initial, []),
        ]
        rows = Columns(columns, shapes)
        rows.row(11)
        rows.row(0, one(1), number(5, 4))
        rows.row(1, one(2))
        rows.row(2, one(3), [number(n, 2) for n in (1, 0x203, 0xffff)])
        rows.row(4, number(7, 4), one(2), [number(1, 2), one(2), number(0x304, 2), one(5)])
        rows.row(5, one(4), bytes_of(b"heap"))
        rows.row(9, one(2), bytes_of(b"hi"))
        rows.row(10)
        rows.row(3, one(1), [number(2**40, 8)])
        rows.row(6, one(150), bytes_of(bytes(range(200)) + bytes(100)))
        rows.row(7, b"twelve bytes", one(9))
        rows.row(8, bytes_of(b"end\0"))
        rows.row(2, one(0), [])
        rows.row(4, number(2**32 - 1, 4), one(0), [])
        rows.row(5, one(0), [])
        rows.row(0, one(255), number(2**32 - 2, 4))
        rows.row(7, b"\0" * 12, one(8))
        rows.row(8, bytes_of(b"\0"))
        lines = [
            line("s", "opt", n=1, time=1005), line("s", "opt", n=2), line("s", "items", n=3, x=[1, 0x203, 0xffff]),
            line("s", "pairs", time=1012, n=2, n_items=[{"x": 1, "y": 2}, {"x": 0x304, "y": 5}]), line("s", "text", vfield="heap"),
            line("s", "items", n=1, x=[2**40]), line("s", "more", n=150, d=(bytes(range(200)) + bytes(100)).hex()),
            line("s", "fixed", d=b"twelve bytes".hex(), n=9), line("s", "line", d="end"), line("s", "items", n=0, x=[]),
            line("s", "pairs", time=1011, n=0, n_items=[]), line("s", "text", vfield=""), line("s", "opt", n=255, time=1009),
            line("s", "fixed", d="00" * 12, n=8), line("s", "line", d=""),
        ]
        rows.chunk(made, 1, 3, len(lines))
        yield big, made, lines


def codecs():
    # The upper bytes are all 0, and the lower bytes change once.
    dtd = "section s 1 { r: (tag, n) { tag.value = 4; n.width = 2; n.interpretation = none; } }\n"
    frame = lambda s: b"\x28\xb5\x2f\xfd\x20" + bytes([len(s)]) + struct.pack("<I", 2 | 20 << 3)[:3] + s[:1] + struct.pack("<I", 3 | 20 << 3)[:3] + s[-1:]
    # Twice a literal and a match of 19 and 14 bytes, and then five literals.
    block = lambda s: b"\x1f" + s[:1] + b"\1\0\0" + b"\x1a" + s[20:21] + b"\1\0" + b"\x50" + s[-5:]
    for name, codec, pack in [("stored", 0, None), ("zstd", 1, frame), ("lz4", 2, block), ("zlib", 3, zlib.compress)]:
        rows = Columns([(2, (4, 1))], [(b"\4", [0])], pack)
        for n in [7] * 20 + [9] * 20:
            rows.row(0, struct.pack("<H", n))
        made = Trace(dtd, features=FEATURE)
        rows.chunk(made, 1, 3, 40, codec=codec)
        lines = [line("s", "r", n=n) for n in [7] * 20 + [9] * 20]
        good(f"x-columns-{name}", f"columns whose streams are constant or packed by codec {codec}", "5.2", dtd, made.finish(40), lines)


def groups():
    dtd = """section e 2 { item: (v) { v.width = 1; v.interpretation = none; } }
section p 3 { point: (x, y) { x.width = 1; x.interpretation = delta 0; y.width = 3; y.interpretation = none; } }
section s 1 { r: (tag, a, t) { tag.value = 4; a.interpretation = sectionStride 2 1; t.width = 1; t.interpretation = delta 0; } }
"""
    made, lines, elements = Trace(dtd, features=FEATURE), [], []
    for group in (0, 1):
        numbers = Columns([(2, None)], [(b"", [0])])
        for n in (300, 301, 302):
            numbers.row(0, struct.pack("<H", n + group))
        numbers.chunk(made, 2, 3, 3, group, width=2)
        points = Columns([(1, None), (3, None)], [(b"", [0, 1])])
        for n in (1, 2):
            points.row(0, bytes([n]), bytes([n, 0, 1]))
        points.chunk(made, 3, 1, 2, group)
        for flags, steps in ((1, (5, 6)), (0, (7,))):
            # The second chunk of a group continues the state of the first.
            records = Columns([(1, (4, 2))], [(b"\4", [0])])
            for step in steps:
                records.row(0, bytes([step]))
            records.chunk(made, 1, flags, len(steps), group)
        lines += [line("s", "r", a=300 + group + i, t=t) for i, t in enumerate((5, 11, 18))]
    # A chunk without the filter.
    made.chunk(b"\1", 2, 0, 3, 1, 1, 2)
    made.chunk(b"\4\3", 1, 0, 1, records=1, group=2)
    lines.append(line("s", "r", a=1, t=3))
    good("x-columns-groups", "columns in stream sections, in several groups, and next to other filters", "5.2", dtd, made.finish(7), lines)


def shapes():
    two = [line("s", "r", n=7)] * 2
    rows = Columns([(1, (4, 1))], [(b"\4", [0])])
    rows.row(0, b"\7")
    rows.row(0, b"\7")
    for name, about, features in [
        ("x-columns-no-feature", "columns without the feature, which readers accept", None),
        ("x-columns-feature", "columns with the feature", FEATURE),
    ]:
        made = Trace(ONE, features=features)
        rows.chunk(made, 1, 3, 2)
        good(name, about, "5.2", ONE, made.finish(2), two)
    made = Trace(ONE, features=FEATURE)
    made.chunk(RECORD * 2, 1, 0, 3, records=2)
    good("x-columns-unused", "the feature in a trace without columns", "5.2", ONE, made.finish(2), two)
    made = Trace(ONE, features=FEATURE)
    Columns([], []).chunk(made, 1, 3, 0)
    Columns([(4, None)], [(b"\4", [0]), (b"\5", [])]).chunk(made, 1, 0, 0)
    good("x-columns-empty", "columns without rows", "5.2", ONE, made.finish(0), [])
    # Rows that are not records: two records, half a record, and a record without columns.
    made = Trace(ONE, features=FEATURE)
    rows = Columns([(4, None), (1, None)], [(b"", [0]), (b"", [1]), (b"\4\7", [])])
    for row in [(0, b"\4\1\4\2"), (1, b"\4"), (1, b"\3"), (2,), (0, b"\4\4\4\5")]:
        rows.row(*row)
    rows.chunk(made, 1, 3, 6)
    good("x-columns-other-rows", "rows that are not records, without labels", "5.2", ONE, made.finish(6), [line("s", "r", n=n) for n in (1, 2, 3, 7, 4, 5)])
    # The count is the second element of the column, not the first, and not the element of the repetition.
    dtd = "section s 1 { r: (tag, a, n, n*x) { tag.value = 4; a.width = 1; a.interpretation = none; n.width = 1; n.interpretation = none; x.width = 1; x.interpretation = none; } }\n"
    made = Trace(dtd, features=FEATURE)
    rows = Columns([(1, None), (1, None)], [(b"\4", [0, 0, (0, [0])]), (b"\4", [0, 0, (0, [1])]), (b"\4", [0, (0, [0]), (0, [1])])])
    rows.row(0, b"\1", b"\2", [b"\7", b"\x08"])
    rows.row(1, b"\3", b"\1", [b"\x09"])
    # The repetition consists of the count of the next repetition.
    rows.row(2, b"\1", [b"\2"], [b"\5", b"\6"])
    rows.chunk(made, 1, 3, 3)
    lines = [line("s", "r", a=1, n=2, x=[7, 8]), line("s", "r", a=3, n=1, x=[9]), line("s", "r", a=1, n=2, x=[5, 6])]
    good("x-columns-last-count", "the last of several elements is the count, and may be of a column that is repeated", "5.2", dtd, made.finish(3), lines)
    # Wrong labels: of another leaf, of an element's tag, of a record that does not exist, and of half a row.
    dtd = "section s 1 { r: (tag, n, m) { tag.value = 4; n.width = 1; n.interpretation = none; m.width = 1; m.interpretation = none; } }\n"
    for name, columns, about in [
        ("leaf", [(1, (4, 2)), (1, (4, 1))], "the labels of two columns are interchanged"),
        ("tag", [(1, (5, 1)), (1, None)], "the label has another tag"),
        ("part", [(1, (4, 1)), (1, (4, 1))], "a column of another leaf has the label, too"),
        ("number", [(1, (2**32 - 1, 255)), (1, None)], "the label names no leaf"),
    ]:
        made = Trace(dtd, features=FEATURE)
        rows = Columns(columns, [(b"\4", [0, 1])])
        rows.row(0, b"\1", b"\2")
        rows.chunk(made, 1, 3, 1)
        good(f"x-columns-label-{name}", f"{about}, which only verification reports", "5.2", dtd, made.finish(1), [line("s", "r", n=1, m=2)])


def wrong():
    """One trace per error of the chunk. The content is two records, unless the error needs more."""
    two = RECORD * 2
    one, r = column(1, (4, 1)), shape(b"\4", 0)
    n = (2, [b"\7\x08"])
    cases = [
        ("columns", "4,097 columns", payload([one] * 4097, [r], [0, 0], [n] + [(0, [b""])] * 4096), {}),
        ("width-0", "a column of width 0", payload([one, column(0)], [r], [0, 0], [n, (0, [b""])]), {}),
        ("shapes", "257 shapes", payload([one], [r] * 257, [0, 0], [n]), {}),
        ("label-leaf", "the label of leaf 256", payload([column(1, (4, 256))], [r], [0, 0], [n]), {}),
        ("label-tag", "a label with a tag of 33 bits", payload([column(1, (2**32, 1))], [r], [0, 0], [n]), {}),
        ("pieces", "257 pieces", payload([one, column(1)], [shape(b"", *[1] * 257)], [0], [(0, [b""]), (257, [b"\4"])]), {"raw": b"\4" * 257, "records": 128}),
        ("unknown", "a piece of a column that does not exist", payload([one], [shape(b"\4", 1)], [0, 0], [n]), {}),
        ("unknown-repeated", "a repetition of a column that does not exist", payload([one, one], [shape(b"\4", repeat(1, 2))], [0, 0], [n, (2, [b"\1"])]), {}),
        ("unknown-count", "a count that does not exist", payload([one, one], [shape(b"\4", repeat(2, 0))], [0, 0], [n, (2, [b"\1"])]), {}),
        ("unknown-shape", "a row of a shape that does not exist", payload([one], [r, r], [0, 2], [n]), {}),
        ("no-shape", "rows without any shape", payload([one], [], [0, 0], [n]), {}),
        ("shape-nothing", "a shape of nothing", payload([one], [r, shape(b"")], [0, 0], [n]), {}),
        ("shape-repeats", "a shape of repetitions alone", payload([one, column(2)], [shape(b"", repeat(0, 1))], [0], [(1, [b"\2"]), (2, [b"\4", b"\7\x08"])]), {}),
        ("repeats-nothing", "a repetition of no column", payload([one, one], [shape(b"\4", 0, repeat(1))], [0, 0], [n, (2, [b"\1"])]), {}),
        ("count-9", "a count of nine bytes", payload([one, column(9)], [shape(RECORD * 9 + b"\4", repeat(1, 0))], [0, 0], [(2, [b"\7"]), (2, [(b"\1" + bytes(8)) * 2])]), {"raw": RECORD * 20}),
        ("count-repeated", "a column of counts that is also repeated", payload([one], [shape(b"\4", repeat(0, 0))], [0, 0], [(4, [b"\1\7\1\x08"])]), {}),
        ("count-other-shape", "a column of counts that is an element of another shape", payload([one, one], [shape(b"\4", repeat(0, 1)), shape(b"\4", 0)], [0, 1], [(2, [b"\1\x08"]), (1, [b"\7"])]), {}),
        ("count-later", "a column of counts that is an element later in the row", payload([one, one], [shape(b"", 1, repeat(0, 1), 0)], [0] * 2, [(4, [b"\0\7\0\x08"]), (2, [b"\4"])]), {}),
        ("rows", "five rows of four bytes", payload([one], [shape(b"", 0)], [0] * 5, [(4, [b"\4\7\4\7"])]), {}),
        ("many", "columns of 18 bytes for 4 bytes", payload([one, column(8)], [shape(b"\4", repeat(1, 0))], [0, 0], [n, (2, [b"\1"] + [b"\0"] * 7)]), {}),
        ("few-elements", "an element too few", payload([one], [r], [0, 0], [(1, [b"\7"])]), {}),
        ("elements", "an element too many", payload([one], [r], [0, 0], [(3, [b"\7\x08\x09"])]), {}),
        ("few-counts", "a count too few", payload([one, one], [shape(b"\4", repeat(1, 0))], [0, 0], [n, (1, [b"\1"])]), {}),
        ("count-large", "a count of more elements than there are", payload([one, one], [shape(b"\4", repeat(1, 0))], [0, 0], [n, (2, [b"\1\2"])]), {}),
        ("stream-long", "a stream of more bytes than its column", payload([one], [r], [0, 0], [(2, [b"\7\x08\x09"])]), {}),
        ("stream-of-nothing", "a byte that is repeated 0 times", payload([one, one], [r], [0, 0], [n, (0, [b"\7"])]), {}),
        ("stream-none", "a stream without bytes", payload([one], [r], [0, 0], [(2, [b""])]), {}),
        ("stream-stored", "a stream of another length, which cannot be packed with codec 0", payload([one], [r], [0] * 3, [(3, [b"\7\x08"])]), {"raw": RECORD * 3}),
        ("stream-short", "a packed stream of too few bytes", payload([one], [r], [0] * 40, [(40, [zlib.compress(b"\7" * 39)])]), {"raw": RECORD * 40, "codec": 3}),
        ("stream-excess", "a packed stream of too many bytes", payload([one], [r], [0] * 40, [(40, [zlib.compress(b"\7" * 41)])]), {"raw": RECORD * 40, "codec": 3}),
        ("stream-behind", "bytes after a packed stream", payload([one], [r], [0] * 40, [(40, [zlib.compress(b"\7" * 40) + b"more"])]), {"raw": RECORD * 40, "codec": 3}),
        ("stream-packed-long", "a packed stream that is longer than its bytes", payload([one], [r], [0, 0], [(2, [zlib.compress(b"\7\x08")])]), {"codec": 3}),
        ("shape-stream", "a shape stream of more bytes than rows", payload([one], [r, r], [0, 0], [n], b"\0\1\0"), {}),
        ("cut", "a payload without its last byte", payload([one], [r], [0, 0], [n])[:-1], {}),
        ("cut-shape", "a payload that ends in a shape", payload([one], [r], [0, 0], [n])[:7], {}),
        ("nothing", "a payload of nothing", b"", {}),
        ("left-over", "a byte after the payload", payload([one], [r], [0, 0], [n]) + b"\0", {}),
        ("short", "content of fewer bytes than raw_len", payload([one], [r], [0, 0], [n]), {"raw_len": 6}),
        ("long", "content of more bytes than raw_len", payload([one], [r], [0, 0], [n]), {"raw_len": 3}),
        ("number-long", "a number of six bytes", b"\x81\x80\x80\x80\x80\0" + payload([one], [r], [0, 0], [n])[1:], {}),
    ]
    for name, what, packed, how in cases:
        raw = how.pop("raw", two)
        made = Trace(ONE, features=FEATURE)
        records = how.pop("records", len(raw) // 2)
        start = made.chunk(raw, 1, 0, 3, records=records, filtered=packed, **{"filter": 4, "filtered_len": 0} | how)
        bad(f"x-columns-{name}", what, "5.2", ONE, made.finish(len(raw) // 2), [start, start + 16, start + 48], [])
    whole = payload([one], [r], [0, 0], [n])
    made = Trace(ONE, features=FEATURE)
    start = made.chunk(two, 1, 0, 3, records=2, filtered=whole, filter=4, filtered_len=len(whole))
    bad("x-columns-filtered-length", "filtered_len, which filter 4 does not use", "5.2", ONE, made.finish(2), [start + 40, start], [])
    # 3,000,001 bytes from less than 45.
    dtd = "section s 1 { r: (tag, d) { tag.value = 4; d.width = 3000000; d.interpretation = none; } }\n"
    packed = payload([column(200, (4, 1)), column(2)], [shape(b"\4", repeat(1, 0))], [0], [(15000, [b"\0"]), (1, [b"\x98", b"\x3a"])])
    made = Trace(dtd, features=FEATURE)
    start = made.chunk(b"", 1, 0, 3, records=1, filtered=packed, filter=4, filtered_len=0, raw_len=3_000_001)
    bad("x-columns-ratio", "raw_len is more than 65,536 times stored_len", "5.2", dtd, made.finish(1), [start + 16, start], [])
    made = Trace(ONE, features=FEATURE)
    start = made.chunk(b"{}", kind=3, filtered=payload([one], [shape(b"", 0)], [0, 0], [(2, [b"{}"])]), filter=4, filtered_len=0)
    made.chunk(RECORD, 1, 0, 3, records=1)
    bad("x-columns-user-metadata", "columns in a chunk that is not data", "5.2", ONE, made.finish(1), [start + 7, start], [])
    data, start = chunks(filter=5)
    bad("x-v1-filter-5", "filter 5", "5.2", ONE, data, [start + 7, start])
    # The header: the bit without the name, and other names.
    made = Trace(ONE, behind=b"")
    made.out = made.out[:8] + b"\1" + made.out[9:]
    made.chunk(RECORD, 1, 0, 3, records=1)
    bad("x-columns-feature-nameless", "bit 0 without a name", "5.2", ONE, made.finish(1), [40, 8, 24])
    for name, features, what in [
        ("other", {0: b"column"}, "number 0 has another name"),
        ("number", {1: b"columns"}, "the name has another number"),
        ("two", {0: b"columns", 1: b"pages"}, "a second feature, which no reader knows"),
    ]:
        made = Trace(ONE, features=features)
        made.chunk(RECORD, 1, 0, 3, records=1)
        bad(f"x-columns-feature-{name}", what, "5.2", ONE, made.finish(1), [8], [])


def main():
    clear("x-columns")
    for big, made, lines in mixed():
        order = "big" if big else "little"
        good(f"x-columns-mixed-{order}", "every kind of piece, with metadata and a comment", "5.2", MIXED, made.finish(len(lines)), lines)
    codecs()
    groups()
    shapes()
    wrong()
