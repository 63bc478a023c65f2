"""Creates the conformance vectors for annotations (sections 2 and 8): the numbers and names of `values` and `flags`, quoted names,
annotations of tags, and strings that end in a 0. Directories x-names*, x-tag-takes* and x-cstring in tests/vectors.

The bytes are written by hand, each record next to its meaning. No project code is called."""
from .common import clear, line, trace, write

BEFORE = "section s 1 {\n    n.width = 1; n.interpretation = none;\n    a: (tag, n) {\n        tag.value = 4;\n        "
AFTER = "\n    }\n}\n"


def good(name, about, spec, dtd, pieces, **case):
    """Writes a vector of a valid trace. `pieces` pairs the bytes of records with their fields. Constants are printed only with `--all`."""
    content = b"".join(piece for piece, _ in pieces)
    made = trace([(0, (b"", b"")), (1, (b"\x02\x01", content))], len(pieces))
    at = len(made) - len(content)
    shown, everything = [], [line(None, "section") | {"@offset": at - 2, "number": 1}]
    for piece, fields in pieces:
        shown.append(line("s", "a", **fields))
        everything.append(line("s", "a") | {"@offset": at, "tag": 4} | fields)
        at += len(piece)
    case = {"about": about, "spec": spec, "mode": "dump"} | case
    files = {"format.dtd": dtd, "trace.mtf": made, "case.json": case, "expected.jsonl": shown, "expected_all.jsonl": everything}
    write(f"good/x-{name}", files)


def bad(name, what, setting, fault, spec="2"):
    """Writes a vector of an invalid DTD. `fault` is the part of `setting` at which the error is reported, or `None` for its start."""
    column = 9 + (setting.index(fault) if fault else 0)
    note = {"what": what, "at": [[5, column]], "spec": spec}
    write(f"bad/dtd/x-{name}", {"format.dtd": BEFORE + setting + AFTER, "note.json": note})


def main():
    clear("x-names", "x-tag-takes", "x-cstring", "x-base-tag", "x-was")
    number = [(b"\x04\x07", {"n": 7})]
    accepted = 'n.values = "0 a b,0x0A c , -1 d,0xff 0X1,18446744073709551614 e,-9223372036854775808 f,";'
    good("names", "numbers of values in all their forms; names with spaces; a comma behind the last", "2", BEFORE + accepted + AFTER, number)
    good("names-bits", "the first and the last bit", "2", BEFORE + 'n.flags = "0 a, 0x3f b";' + AFTER, number, warnings=1)
    good("names-bits-several", "bits that are a number", "2", BEFORE + 'n.flags = "0-3 a, 0x4-7 b, 8-63 c";' + AFTER, number, warnings=1)
    accepted = 'n."format" = "f64"; n.format = "hex"; n."values" = "no list"; n."width" = 9;'
    good("names-quoted", "quoted names are never those of the table, and stand beside them", "2", BEFORE + accepted + AFTER, number)
    accepted = 'tag.doc = "a"; tag.unit = "b"; tag.format = "hex"; tag.was = "c, d"; tag.kind = "e";'
    beside = 'tag.doc = "f"; tag.unit = "g"; tag.format = "dec";\ncomment.tag.kind = "h";\n'
    good("tag-takes", "annotations that a tag takes, and those of a predefined record", "2", beside + BEFORE + accepted + AFTER, number)

    for name, what, text, fault in [
        ("underscore", "a number with an underscore", "1_0 a", "1_0"),
        ("upper-x", "0X", "0X1 a", "0X"),
        ("plus", "a plus sign", "+1 a", "+1"),
        ("plus-hex", "a plus sign behind 0x", "0x+1 a", "0x+"),
        ("large", "2^64", "0 a, 18446744073709551616 b", "18446744073709551616"),
        ("small", "under -2^63", "-9223372036854775809 a", "-9"),
        ("empty", "a list without items", "", '";'),
        ("empty-item", "an empty item", "0 a,,1 b", ",1 b"),
        ("comma-twice", "two commas behind the last", "0 a,,", '";'),
        ("no-name", "a number without a name", "0 a, 1", "1"),
        ("number", "a name that is a number", "0 a, 1 0x2", "1 0x2"),
        ("number-twice", "a number in two forms", "10 a, 0xa b", "0xa"),
        ("name-twice", "a name of two numbers", "0 a, 1 a", "1 a"),
    ]:
        setting = f'n.values = "{text}";'
        if name == "comma-twice":
            setting, fault = 'n.values = "0 a,,";', ',";'
        bad(f"names-{name}", f"`values`: {what}", setting, fault)
    bad("names-bit-64", "`flags`: bit 64", 'n.flags = "63 a, 64 b";', "64 b")
    bad("names-bit-negative", "`flags`: a negative bit", 'n.flags = "-1 a";', "-1")
    bad("names-bit-bar", "`flags`: a name with a bar", 'n.flags = "0 a|b";', "0 a")
    bad("names-bits-overlap", "`flags`: a bit with two names", 'n.flags = "3 a, 0-4 b";', "0-4")
    bad("names-bits-reversed", "`flags`: the last bit before the first", 'n.flags = "4-3 a";', "4-3")
    bad("names-bits-64", "`flags`: up to bit 64", 'n.flags = "0-64 a";', "0-64")
    bad("names-bits-equals", "`flags`: a name with an equals sign", 'n.flags = "0-3 a=b";', "0-3")
    bad("names-both", "`values` and `flags` in one scope", 'n.values = "0 a"; n.flags = "0 b";', None, "2, 3.1")
    bad("names-quoted-twice", "a quoted name twice in one scope", 'n."format" = "hex"; n."format" = "dec";', 'n."format" = "dec"', "2, 3.1")
    bad("was-empty", "`was` without a name", 'n.was = "";', '""')
    bad("was-number", "`was` with what is no name", 'n.was = "m, 1";', '"m')
    for name, setting in [("values", 'tag.values = "4 a";'), ("flags", 'tag.flags = "2 a";'), ("previous", "tag.previous = own;")]:
        bad(f"tag-takes-{name}", f"`{name}` of a tag", setting, None)
    for name, setting in [("doc", 'comment.tag.doc = "a";'), ("format", 'section.tag.format = "hex";'), ("was", 'metadata.tag.was = "a";')]:
        note = {"what": f"`{name}` of a predefined record's tag", "at": [[1, 1]], "spec": "2"}
        write(f"bad/dtd/x-tag-takes-predefined-{name}", {"format.dtd": setting + "\n" + BEFORE + AFTER, "note.json": note})
    note = {"what": "`was` of all tags", "at": [[1, 1]], "spec": "2"}
    write("bad/dtd/x-tag-takes-was", {"format.dtd": 'tag.was = "b";\n' + BEFORE + AFTER, "note.json": note})
    dtd = "section s 1 {\n    o: (tag) { tag.value = other; }\n    a: (tag, n) { tag.value = 4; n.width = 1;\n"
    dtd += "        n.interpretation = baseOffset o.tag.value; }\n}\n"
    note = {"what": "the tag of a catch-all record as a base", "at": [[4, 39]], "spec": "4"}
    write("bad/dtd/x-base-tag", {"format.dtd": dtd, "note.json": note})

    dtd = BEFORE.replace("a: (tag, n)", "a: (tag, n, text)") + 'text.width = n.value; text.interpretation = none; text.format = "cstring";' + AFTER
    pieces = []
    for stored, text in [
        (b"a\0", "a"),
        (b"\0", ""),
        (b"", {"text": "", "tail": ""}),
        (b"b", {"text": "b", "tail": ""}),
        (b"a\0\0", {"text": "a", "tail": "0000"}),
        (b"a\0c", {"text": "a", "tail": "0063"}),
        (b"a\0\xff", {"text": "a", "tail": "00ff"}),
        (b"\0a", {"text": "", "tail": "0061"}),
        (b"\xff\0", {"hex": "ff00"}),
        (b"\xff", {"hex": "ff"}),
    ]:
        pieces.append((bytes([4, len(stored)]) + stored, {"n": len(stored), "text": text}))
    good("cstring", "text up to the first 0, and the tail from it on", "8", dtd, pieces, encode=True)
