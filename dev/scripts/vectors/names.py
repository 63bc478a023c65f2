"""Creates the conformance vectors for reading by name (section 5.3): earlier names, defaults and versions. Directories x-by-name* in
tests/vectors.

The trace embeds an older DTD than `format.dtd`, so `expected.jsonl` contains the older names. `expected_by_name.jsonl` contains the records
that a reader of `format.dtd` delivers. With `refused` in `case.json`, it delivers them only when asked to read by name. No project code is
called."""
from .common import Trace, clear, line, write

READER = """// The newer version: other names, tags and widths, and another order.
tag.version = "2.1.3";
section game 1 {
    player.width = 2; player.interpretation = none; player.was = "id, who";
    jump: (tag, player, n*(x)) {
        tag.value = 9; tag.was = "leap, hop";
        n.width = 2; n.interpretation = none; n.was = "count";
        x.width = 4; x.interpretation = delta 0; x.was = "at";
    }
    step: (tag, speed, player) { tag.value = 4; speed.interpretation = default 5; }
    swap: (tag, a, b) {
        tag.value = 5;
        a.width = 1; a.interpretation = none;
        b.width = 1; b.interpretation = none; b.was = "a, c";
    }
    // Several fields by one bit, in another order.
    flagged: (tag, m, (m.bit 0)*player, (m.bit 0)*b, (m.bit 1)*z) {
        tag.value = 6;
        m.width = 1; m.interpretation = none; b.width = 1; b.interpretation = none;
        z.width = 1; z.interpretation = none;
    }
}
"""

TRACE = """tag.version = "VERSION";
section game 1 {
    id.width = 1; id.interpretation = none; who.width = 1; who.interpretation = none; a.width = 1; a.interpretation = none;
    hop: (tag, count*(at), who) {
        tag.value = 4;
        count.width = 1; count.interpretation = none; at.width = 1; at.interpretation = none;
    }
    step: (tag, id, who) { tag.value = 6; }
    gone: (tag, who) { tag.value = 7; }
    swap: (tag, a) { tag.value = 8; }
    flagged: (tag, m, (m.bit 0)*b, (m.bit 0)*id, (m.bit 1)*z) {
        tag.value = 9;
        m.width = 1; m.interpretation = none; b.width = 1; b.interpretation = none; z.width = 1; z.interpretation = none;
    }
}
"""

# The bytes of each record, the record by the embedded DTD, and the record by the reader's DTD.
RECORDS = [
    # The record has its second earlier name. A repeated field and its count both have earlier names.
    (b"\x04\x02\x07\x05\x01", line("game", "hop", count=2, count_items=[{"at": 7}, {"at": 5}], who=1), line("game", "jump", player=1, n=2, n_items=[{"x": 7}, {"x": 5}])),
    # If both earlier names occur, the first one counts. A field missing from the trace has its default value.
    (b"\x06\x03\x02", line("game", "step", id=3, who=2), line("game", "step", speed=5, player=3)),
    # The reader's DTD does not contain the record.
    (b"\x07\x04", line("game", "gone", who=4), None),
    # The reader's DTD has a field `a`, so `a` is not an earlier name of `b`, which is 0.
    (b"\x08\x09", line("game", "swap", a=9), line("game", "swap", a=9, b=0)),
    (b"\x09\x01\x02\x03", line("game", "flagged", m=1, b=2, id=3), line("game", "flagged", m=1, player=3, b=2)),
    (b"\x09\x02\x07", line("game", "flagged", m=2, z=7), line("game", "flagged", m=2, z=7)),
]


def good(name, about, version, **case):
    trace = Trace(TRACE.replace("VERSION", version))
    trace.chunk(b"".join(piece for piece, _, _ in RECORDS), 1, 0, 3, 0, len(RECORDS))
    case = {"about": about, "spec": "5.3", "mode": "dump"} | case
    files = {"format.dtd": READER, "trace.mtf": trace.finish(len(RECORDS)), "case.json": case}
    files |= {"expected.jsonl": [old for _, old, _ in RECORDS], "expected_by_name.jsonl": [new for _, _, new in RECORDS if new]}
    write(f"good/x-{name}", files)


def main():
    clear("x-by-name")
    good("by-name", "a trace of another minor version, read by earlier names and defaults", "2.1.0")
    good("by-name-no-version", "a version that is none says nothing", "two")
    good("by-name-median", "a trace of another median version is refused", "2.0.3", refused=True)
    good("by-name-major", "a trace of another major version is refused", "1.1.3", refused=True)
