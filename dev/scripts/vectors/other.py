"""Creates the conformance vectors for catch-all records (`tag.value = other;`) and for files without a header whose DTD contains a start:
directories x-other* and x-prologue* in tests/vectors.

The bytes are written by hand, each record next to its meaning according to sections 3.2, 4 and 5.4. No project code is called."""
from .common import clear, trace, write
from .common import line as record


def good(name, about, spec, dtd, content, lines, first=0, constants=(), **case):
    """Writes a vector of a valid trace. `lines` describes the record of each piece of `content`. The output of `--all` also contains
    offsets and the keys in `constants`, which lists them by record. A key with a dot belongs to the objects in a list."""
    shown, everything, at, constants = [], [], first, dict(constants)
    for piece, line in zip(content, lines):
        head = {"@section": line["@section"], "@record": line["@record"]}
        fields = {key: value for key, value in line.items() if key not in head}
        everything.append(head | {"@offset": at} | fields)
        at += len(piece)
        if line["@record"] not in ("section", "metadata", "comment"):
            hidden = constants.get(line["@record"], ())
            within = dict(key.split(".") for key in hidden if "." in key)
            fields = {key: value for key, value in fields.items() if key not in hidden}
            for key, constant in within.items():
                fields[key] = [{k: v for k, v in item.items() if k != constant} for item in fields[key]]
            shown.append(head | fields)
    files = {"format.dtd": dtd, "trace.raw" if case.get("mode") == "raw" else "trace.mtf": case.pop("bytes")}
    case = {"about": about, "spec": spec, "mode": "dump"} | case
    files |= {"case.json": case, "expected.jsonl": shown, "expected_all.jsonl": everything}
    write(f"good/x-{name}", files)


DTD = """// A record of all tags that no other record has, the global ones counted.
mark: (tag, n) { tag.value = 5; n.width = 1; n.interpretation = none; }
section s 1 {
    v.width = 1; v.interpretation = delta 0;
    size.width = 1; size.interpretation = none;
    known: (tag, v) { tag.value = 4; }
    other: (tag, size, v, rest) {
        tag.value = other;
        v.previous = own;
        rest.width = size.value - 3; rest.interpretation = none;
    }
}
section t 2 {
    plain: (tag) { tag.value = 4; }
}
"""


def bad_trace(name, what, content, offsets, delivered, **note):
    """Writes a vector of a corrupt trace. `offsets` are relative to the content of section s."""
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", content))], 0)
    start = len(made) - len(content)
    note = {"what": what, "offsets": [start + at for at in offsets], "spec": "3.2"}
    files = {"format.dtd": DTD, "note.json": note, "trace.mtf": made, "expected.jsonl": delivered}
    write(f"bad/trace/x-{name}", files)


def bad_dtd(name, what, dtd, *at):
    note = {"what": what, "at": [list(place) for place in at], "spec": "3.2"}
    write(f"bad/dtd/x-{name}", {"format.dtd": dtd, "note.json": note})


PROLOGUE = """// A file without a header that says how it is read: one of two prologues, records, and what stands behind them.
section header 2 {
    prologue: (magic, size, offset, zone, name, gap) {
        magic.width = 4; magic.interpretation = none; magic.role = "magic";
        magic.values = "0x6c6f6731 seconds, 0x6c6f6732 minutes";
        size.width = 2; size.interpretation = none; size.role = "records_size";
        offset.width = 1; offset.interpretation = none;
        zone.width = 1; zone.interpretation = baseOffset 0; zone.format = "signed";
        name.width = 9; name.interpretation = none;
        gap.width = offset.value - 17; gap.interpretation = none;
    }
}
section short 3 {
    short_prologue: (magic) {
        magic.width = 4; magic.interpretation = none; magic.value = 0x6c6f6733; magic.role = "magic";
    }
}
section records 1 {
    r: (tag, n) { tag.value = 4; n.width = 2; n.interpretation = none; }
    q: (tag, d) { tag.value = 5; d.width = 1; d.interpretation = delta 0; }
}
section behind 4 {
    last: (byte) { byte.width = 1; byte.interpretation = none; byte.role = "trailer"; }
}
"""
FIRST = """// A file whose first record tells it, which has fewer than 4 bytes that are not 0: two records have to be whole.
tag.width = 2;
section records 1 {
    first: (tag, version) { tag.value = 7; tag.role = "magic"; version.width = 2; version.interpretation = none; version.value = 1; version.role = "magic"; }
    r: (tag, n) { tag.value = 8; n.width = 2; n.interpretation = none; }
}
"""


def prologues():
    """Writes vectors of files without a header. Stream elements are printed after the records. `dump` finds the DTD on METATF_PATH."""

    def file(name, about, dtd, pieces, **more):
        # Pieces are in file order; records are printed first.
        places, at = [], 0
        for piece, line in pieces:
            places.append((at, line))
            at += len(piece)
        streams = {"header": 2, "short": 3, "behind": 4}
        places.sort(key=lambda place: (streams.get(place[1]["@section"], 0), place[0]))
        everything = []
        for at, line in places:
            head = {"@section": line["@section"], "@record": line["@record"]}
            everything.append(head | {"@offset": at} | {k: v for k, v in line.items() if k not in head})
        hidden = more.get("hidden", ("tag",))
        shown = [
            {k: v for k, v in line.items() if k not in hidden} for _, line in places if line["@section"] not in streams
        ]
        case = {"about": about, "spec": "5.4", "mode": "dump"}
        write(
            f"good/x-{name}",
            {
                "format.dtd": dtd,
                "trace.raw": b"".join(piece for piece, _ in pieces),
                "case.json": case,
                "expected.jsonl": shown,
                "expected_all.jsonl": everything,
            },
        )

    r, q = (lambda n: record("records", "r", tag=4, n=n)), (lambda d: record("records", "q", tag=5, d=d))
    file(
        "prologue-little",
        "a prologue with the second of its magic numbers, bytes before the records, bytes behind them; little-endian",
        PROLOGUE,
        [
            (b"2gol" + b"\x05\x00" + b"\x13" + b"\xff" + b"a name: 1" + b"ab", record("header", "prologue", magic=0x6C6F6732, size=5, offset=19, zone=-1, name=b"a name: 1".hex(), gap="6162")),
            (b"\x04\x01\x02", r(0x201)),
            (b"\x05\xff", q(2**64 - 1)),
            (b"\x04", record("behind", "last", byte=4)),
            (b"\x00", record("behind", "last", byte=0)),
        ],
    )
    file(
        "prologue-big",
        "the same in the other byte order, with nothing between, and nothing behind",
        PROLOGUE,
        [
            (b"log1" + b"\x00\x05" + b"\x11" + b"\x02" + bytes(9), record("header", "prologue", magic=0x6C6F6731, size=5, offset=17, zone=2, name="00" * 9, gap="")),
            (b"\x05\x03", q(3)),
            (b"\x04\x01\x02", r(0x102)),
        ],
    )
    file(
        "prologue-second",
        "the second prologue of a DTD, which leaves all that follows to the records",
        PROLOGUE,
        [(b"log3", record("short", "short_prologue", magic=0x6C6F6733)), (b"\x04\x01\x02", r(0x102)), (b"\x05\x03", q(3)), (b"\x05\xff", q(2))],
    )
    file(
        "prologue-first",
        "the first of the records tells a file; its magic is weak, so that a second one has to be whole",
        FIRST,
        [(b"\x07\x00\x01\x00", record("records", "first", tag=7, version=1)), (b"\x08\x00\x05\x06", record("records", "r", tag=8, n=0x605))],
        hidden=("tag", "version"),
    )



def main():
    clear("x-other")
    pieces = [
        (b"\x02\x01", record(None, "section", number=1)),
        (b"\x04\x05", record("s", "known", tag=4, v=5)),
        # Both records use the section's `delta`, but this record has its own previous value.
        (b"\x00\x03\x01", record("s", "other", tag=0, size=3, v=1, rest="")),
        (b"\x05\x09", record("s", "mark", tag=5, n=9)),
        (b"\xff\x05\x02\xaa\xbb", record("s", "other", tag=255, size=5, v=3, rest="aabb")),
        # Sets the width of `v`, field 2 of the catch-all record (here with tag 200), to 2.
        (b"\x03\xc8\x02\x10\x02", record("s", "metadata", record=200, field=2, property=16, value=2)),
        (b"\x06\x04\xfe\xff\x77", record("s", "other", tag=6, size=4, v=1, rest="77")),
        # Sets the interpretation of the same field, by another tag, to `none`.
        (b"\x03\x07\x02\x01", record("s", "metadata", record=7, field=2, property=1)),
        (b"\xc8\x03\x01\x02", record("s", "other", tag=200, size=3, v=513, rest="")),
        (b"\x04\xff", record("s", "known", tag=4, v=4)),
    ]
    tail = (b"\x02\x02", b"\x04")
    contents = b"".join(piece for piece, _ in pieces[1:])
    parts = [(0, (b"", b"")), (1, (b"\x02\x01", contents)), (2, tail)]
    made = trace(parts, 8)
    first = len(made) - len(contents) - 5
    lines = [line for _, line in pieces] + [record("s", "section", number=2), record("t", "plain", tag=4)]
    good(
        "other",
        "a record of all tags that no other record has; metadata names it by any of them; in another section there is none",
        "3.2, 4.1, 8",
        DTD,
        [piece for piece, _ in pieces] + [b"\x02\x02", b"\x04"],
        lines,
        first,
        bytes=made,
        constants={"known": ["tag"], "mark": ["tag"], "plain": ["tag"]},
        encode=True,
    )

    GLOBAL = """// A global one is in every section; tags of two bytes, big-endian, with the predefined ones moved.
tag.width = 2;
comment.tag.value = 0xfffd; section.tag.value = 0xfffe; metadata.tag.value = 0xffff;
x.width = 2; x.interpretation = none;
rest: (tag, x) { tag.value = other; tag.format = "hex"; }
section s 1 {
    one: (tag, x) { tag.value = 1; }
}
"""
    pieces = [
        (b"\x00\x01\x00\x02", record(None, "rest", tag=1, x=2)),
        (b"\xff\xfe\x01", record(None, "section", number=1)),
        (b"\x00\x01\x00\x02", record("s", "one", tag=1, x=2)),
        (b"\x01\x00\x00\x03", record("s", "rest", tag=256, x=3)),
        (b"\xff\xfc\x00\x04", record("s", "rest", tag=0xFFFC, x=4)),
        (b"\xff\xfd\x01a", {"@section": "s", "@record": "comment", "text": "a"}),
    ]
    contents = b"".join(piece for piece, _ in pieces[2:])
    made = trace([(0, (b"", pieces[0][0])), (1, (b"\xff\xfe\x01", contents))], 4, 8, "big")
    good(
        "other-global",
        "a global record of all other tags: in each section of those that its records do not have; predefined tags moved",
        "3.2",
        GLOBAL,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        len(made) - len(contents) - 7,
        bytes=made,
        constants={"one": ["tag"]},
        encode=True,
    )

    RAW = """// The log of a program of which a newer version has more events.
tag.width = 2;
comment.tag.value = 0xfffd; section.tag.value = 0xfffe; metadata.tag.value = 0xffff;
section events 1 {
    size.width = 2; size.interpretation = none;
    start: (tag, size, pid) { tag.value = 1; size.value = 8; pid.width = 4; pid.interpretation = none; }
    other: (tag, size, rest) { tag.value = other; rest.width = size.value - 4; rest.interpretation = none; }
}
"""
    pieces = [
        (b"\x01\x00\x08\x00\x07\x00\x00\x00", record("events", "start", tag=1, size=8, pid=7)),
        (b"\x02\x00\x06\x00hi", record("events", "other", tag=2, size=6, rest="6869")),
        (b"\x03\x01\x04\x00", record("events", "other", tag=259, size=4, rest="")),
        (b"\x01\x00\x08\x00\x08\x00\x00\x00", record("events", "start", tag=1, size=8, pid=8)),
    ]
    good(
        "other-raw",
        "a raw stream: what a newer version of a program has is stepped over by its size",
        "3.2, 5.4",
        RAW,
        [piece for piece, _ in pieces],
        [line for _, line in pieces],
        mode="raw",
        bytes=b"".join(piece for piece, _ in pieces),
        constants={"start": ["tag", "size"]},
        **{"class": 1, "byteorder": "little", "section": "events"},
    )

    prologues()

    known = record("s", "known", v=5)
    bad_trace("other-short", "a size under that of the fields before the rest", b"\x04\x05\x63\x02\x00", [5, 2, 3], [known])
    bad_trace("other-cut", "a size past the end", b"\x04\x05\x63\x09\x00\x01", [5, 2, 3], [known])
    bad_trace("other-tag-set", "metadata for the tag of a catch-all record", b"\x04\x05\x03\x63\x00\x10\x02", [4, 2, 3], [known])

    bad_dtd(
        "other-twice",
        "two records of all other tags in a section",
        "section s 1 {\n    a: (tag) { tag.value = other; }\n    b: (tag) { tag.value = other; }\n}\n",
        (3, 28),
    )
    bad_dtd(
        "other-global-twice",
        "a global record of all other tags, and one in a section",
        "a: (tag) { tag.value = other; }\nsection s 1 {\n    b: (tag) { tag.value = other; }\n}\n",
        (3, 28),
    )
    bad_dtd("other-word", "another word", "section s 1 {\n    a: (tag) { tag.value = rest; }\n}\n", (2, 28))
    bad_dtd(
        "other-field",
        "a field that is no tag",
        "section s 1 {\n    a: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; n.value = other; }\n}\n",
        (2, 82),
    )
    bad_dtd("other-predefined", "a predefined record", "comment.tag.value = other;\nr: (tag) { tag.value = 4; }\n", (1, 21))
    full = "".join(f"r{tag}: (tag) {{ tag.value = {tag}; }}\n" for tag in [0, *range(4, 256)])
    bad_dtd("other-full", "other records have all tags", full + "other: (tag) { tag.value = other; }\n", (254, 28))
