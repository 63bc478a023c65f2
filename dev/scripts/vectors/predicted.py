"""Creates the conformance vectors for predicted leaves and for the filters "phrases" and "tails": directories x-* in tests/vectors.

Codes, elements and phrases are written by hand according to sections 4.2 and 5.2, each next to the value that it represents. Headers,
checksums and the index are computed. No project code is called."""

from .common import Trace, clear, write
from .common import line as line_of


def good(name, about, dtd, trace, lines, spec="4.2"):
    case = {"about": about, "spec": spec, "mode": "dump"}
    write(f"good/{name}", {"format.dtd": dtd, "trace.mtf": trace, "case.json": case, "expected.jsonl": lines})


def bad(name, what, dtd, trace, offsets, lines=None, spec="4.2"):
    note = {"what": what, "offsets": offsets, "spec": spec}
    files = {"format.dtd": dtd, "trace.mtf": trace, "note.json": note}
    write(f"bad/trace/{name}", files if lines is None else files | {"expected.jsonl": lines})


def line(record, /, **fields):
    return line_of("s", record, **fields)


def fold(n):
    return 2 * n if n >= 0 else -2 * n - 1


# ---- Value models: records consist of a tag (4), k, and the code of n.

def values_dtd(model, k=False):
    by = " k.width = 1; k.interpretation = none;" if k else ""
    fields = "(tag, k, n)" if k else "(tag, n)"
    return (f"section m 2 {{ miss: (v) {{ v.width = 8; v.interpretation = none; }} }}\n"
            f"section s 1 {{ t: {fields} {{ tag.value = 4;{by} n.interpretation = predicted 1 {model} 2; }} }}\n")


def values(name, about, model, steps, big=False, k=False):
    """Writes a vector of a value model. A step is a value, a code, and True for a miss. With `k`, the value of k comes first."""
    dtd = values_dtd(model, k)
    trace = Trace(dtd, big)
    steps = [s if k else (None, *s) for s in steps]
    misses = [s[1] for s in steps if len(s) > 3]
    if misses:
        trace.stream(2, misses)
    raw = b"".join(bytes([4] + ([s[0]] if k else []) + [s[2]]) for s in steps)
    trace.chunk(raw, 1, 0, 1 if misses else 3, records=len(steps))
    lines = [line("t", **({"k": s[0]} if k else {}), n=s[1]) for s in steps]
    good(name, about, dtd, trace.finish(len(steps)), lines)


MASK = 2**64 - 1


def mix(h, v):
    h = (h ^ v) * 0x9E3779B97F4A7C15 & MASK
    return h ^ h >> 29


def coded(predictors, numbers):
    """Yields the lowest codes of numbers, for sequences too long to write by hand. `predictors` are (kind, n) pairs."""
    vs, ds, seen = [0] * 3, [0] * 3, 0
    tables = [[[0] * (n if kind == "last" else 2) for _ in range(1 if kind in ("last", "stride") else 64)] for kind, n in predictors]
    for v in numbers:
        used, candidates = [], []
        for (kind, n), table in zip(predictors, tables):
            h = mix(0, 0)
            for x in {"fcm": vs, "dfcm": ds}.get(kind, [])[:n]:
                h = mix(h, x)
            row = table[(h >> 32) % len(table)]
            used.append(row)
            if kind == "stride":
                candidates.append((row[0] + row[1]) & MASK)
            else:
                candidates += [(x + (vs[0] if kind == "dfcm" else 0)) & MASK for x in row]
        yield (v, candidates.index(v)) if v in candidates else (v, len(candidates), True)
        d = v - vs[0] & MASK
        seen += 1
        for i, ((kind, n), row) in enumerate(zip(predictors, used)):
            new = d if kind == "dfcm" else v
            if kind == "stride":
                row[:] = [v, v - row[0] & MASK]
            else:
                if new in row:
                    row.remove(new)
                row[:] = ([new] + row)[:n if kind == "last" else 2]
            if len(tables[i]) > 1 and seen >= len(tables[i]) and len(tables[i]) < 65536:
                tables[i] = tables[i] + [list(r) for r in tables[i]]
        vs, ds = [v] + vs[:2], [d] + ds[:2]


def all_values():
    values("x-predicted-last-value", "lastValue 2: what is in the line moves to its front, what is not pushes the last out",
           "lastValue 2", [(0, 0), (5, 2, True), (5, 0), (7, 2, True), (5, 1), (7, 1), (9, 2, True), (5, 2, True)])
    values("x-predicted-stride", "stride, big-endian: a step is the last difference, wrap-around",
           "stride", [(3, 1, True), (6, 0), (9, 0), (12, 0), (13, 1, True), (14, 0), (0, 1, True), (2**64 - 14, 0), (2**64 - 28, 0)], big=True)
    values("x-predicted-by", "stride by k: a line for each k (1 and 2 are in different lines of 64)", "stride by k",
           [(1, 10, 1, True), (2, 100, 1, True), (1, 20, 0), (2, 200, 0), (1, 30, 0), (2, 300, 0), (1, 41, 1, True), (1, 52, 0)], k=True)
    values("x-predicted-several", "candidates of all predictors are numbered one after the other; the line of each learns every value",
           "(lastValue 1, stride, lastValue 2)", [(8, 4, True), (16, 1), (16, 0), (8, 3), (0, 1), (77, 4, True), (77, 0), (0, 3)])
    for name, kind, n in (("fcm", "fcm", 1), ("fcm-3", "fcm", 3), ("dfcm", "dfcm", 1), ("dfcm-2", "dfcm", 2)):
        numbers = [1, 2, 3, 1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2, 4] if kind == "fcm" else [100, 101, 111, 112, 122, 123, 133, 134, 136, 137, 147]
        values(f"x-predicted-{name}", f"{kind} {n}: what followed the last values (differences) before", f"{kind} {n}",
               list(coded([(kind, n)], numbers * 2)))
    long = [i * i % 61 + (i % 7 == 0) * 1000 for i in range(300)]
    values("x-predicted-tables-grow", "300 values: tables double at 64, 128 and 256 of them",
           "(fcm 2, dfcm 3, lastValue 4)", list(coded([("fcm", 2), ("dfcm", 3), ("last", 4)], long)))


# ---- Heaps.

HEAP = """address.previous = shared;
section m 2 { miss: (v) { v.width = 8; v.interpretation = none; } }
section s 1 {
  thread.width = 1; thread.interpretation = none; size.width = 2; size.interpretation = none;
  alloc: (tag, thread, size, address) { tag.value = 4; address.interpretation = predicted 1 heap allocated size by thread 2; }
  free: (tag, thread, address) { tag.value = 5; address.interpretation = predicted 1 heap freed by thread 2; }
  use: (tag, thread, address) { tag.value = 6; address.interpretation = predicted 1 heap used by thread 2; }
}
"""
NAMES = {4: "alloc", 5: "free", 6: "use"}


def heap_records(events):
    raw, lines, elements = b"", [], []
    for tag, thread, *size, address, code, misses in events:
        raw += bytes([tag, thread]) + b"".join(s.to_bytes(2, "little") for s in size) + bytes([code])
        fields = {"thread": thread, **({"size": size[0]} if size else {}), "address": address}
        lines.append(line(NAMES[tag], **fields))
        elements += misses
    return raw, lines, elements


def heap(name, about, *groups):
    """Writes a vector of a heap model. Each group is the initial elements of the heap and its events."""
    trace, all_lines = Trace(HEAP), []
    for group, (opening, events) in enumerate(groups):
        raw, lines, elements = heap_records(events)
        trace.stream(2, opening + elements, group)
        trace.chunk(raw, 1, 0, 1, records=len(lines), group=group)
        all_lines += lines
    good(name, about, HEAP, trace.finish(len(all_lines)), all_lines)


def a(size, address, code, *misses, by=0):
    return (4, by, size, address, code, list(misses))


def f(address, code, *misses, by=0):
    return (5, by, address, code, list(misses))


def u(address, code, *misses, by=0):
    return (6, by, address, code, list(misses))


def heaps():
    begin = [0, 0]
    heap("x-predicted-heap", "an allocator's day: fresh memory, the free list of a class, recent frees, NULL, what is not known",
         (begin, [a(24, 0x1000, 36, fold(0x1000)), a(100, 0x1020, 4), a(24, 0x1090, 4), u(0x1020, 1), f(0x1090, 0), a(20, 0x1090, 0),
                  f(0x1020, 1), f(0x1000, 1), a(40, 0x1020, 39), a(24, 0x1000, 0), a(0, 0, 37), f(0, 51), u(0, 51),
                  # Block 0x5000 is unknown. It is 0x4000 after the last miss.
                  f(0x5000, 50, fold(0x4000)), u(0x800, 50, fold(-0x800)),
                  # An object is allocated at the address of a live object; then there is a miss far away.
                  a(8, 0x1000, 36, 0), f(0x1000, 0), a(8, 0x7F00_0000_0000, 36, fold(0x7F00_0000_0000 - 0x1000)), f(0x7F00_0000_0000, 0)]))
    heap("x-predicted-heap-order", "frees by the order of allocation: next and previous neighbours of the object freed last, a distance",
         (begin, [a(24, 0x1000, 36, fold(0x1000))] + [a(24, 0x1000 + 0x20 * i, 4) for i in range(1, 80)]
          + [f(0x1000 + 0x20 * 40, 48, fold(40)), f(0x1000 + 0x20 * 41, 32), f(0x1000 + 0x20 * 43, 33), f(0x1000 + 0x20 * 42, 40),
             f(0x1000 + 0x20 * 39, 40), f(0x1000 + 0x20 * 30, 48, fold(-9)), f(0x1000 + 0x20 * 79, 0), f(0x1000 + 0x20 * 47, 31)]))
    lists = [a(24, 0x1000, 36, fold(0x1000))] + [a(24, 0x1000 + 0x20 * i, 4) for i in range(1, 6)]
    heap("x-predicted-heap-lists", "allocations by the free list: k-th newest, the neighbours of what was taken last, fresh memory of a class",
         (begin, lists + [f(0x1000, 5), f(0x1020, 4), f(0x1040, 3), f(0x1060, 2), f(0x1080, 1), f(0x10A0, 0),
                          # The list is 1000 1020 1040 1060 1080 10a0. The third from the top is taken, then its older and newer neighbors.
                          a(24, 0x1060, 14), a(24, 0x1040, 1), a(24, 0x1080, 2), a(24, 0x1000, 14), a(24, 0x10A0, 0), a(24, 0x1020, 0),
                          # Fresh memory of a class does not move the bump pointer, at which there is an object by now.
                          a(56, 0x9000, 36, fold(0x9000 - 0x1000)), a(56, 0x9040, 3), a(56, 0x9080, 3), a(24, 0x9040, 4),
                          a(24, 0x10C0, 5), f(0x9000, 3), f(0x9040, 1),
                          # The last bump is 0, and so is the fresh memory of a class that has none.
                          a(24, 0, 11), a(40, 0x10E0, 4), a(40, 0, 3)]))
    heap("x-predicted-heap-contexts", "by thread: orders, lists and bumps of their own; a free in another thread, and what it does to the list",
         (begin, [a(24, 0x1000, 36, fold(0x1000), by=7), a(24, 0x9000, 36, fold(0x9000), by=3), a(24, 0x1020, 4, by=7), a(24, 0x9020, 4, by=3),
                  # Thread 7 is context 0. Its object 0x1000 has one slot after it.
                  f(0x1000, 49, 0, 1, by=3), a(24, 0x1000, 0, by=3), u(0x1000, 0, by=3), u(0x1000, 49, 1, 0, by=7), f(0x1000, 0, by=3),
                  a(24, 0x1000, 36, 0, by=7), f(0x9020, 49, 1, 0, by=1), a(24, 0x9020, 0, by=1), f(0x1020, 1, by=7)]))
    heap("x-predicted-heap-classes", "size rule 1: classes of 16 bytes up to 128, then four to a power of two",
         ([1, 0], [a(129, 0x1000, 36, fold(0x1000)), a(160, 0x10A0, 4), a(1025, 0x1140, 4), a(1, 0x1640, 4), a(0, 0x1650, 4), a(128, 0x1660, 4), a(5, 0x16E0, 4),
                   f(0x1000, 6), a(150, 0x1000, 0), f(0x1140, 5), a(1280, 0x1140, 0)]))
    heap("x-predicted-heap-carried", "objects that live on are carried into the second group, in the contexts of threads 2 and 0",
         (begin, [a(24, 0x1000, 36, fold(0x1000), by=2), a(24, 0x1020, 4, by=2), a(24, 0x3000, 36, fold(0x3000))]),
         ([0, 2, 2, 2, fold(0x1000), 24, 0, 24, 0, 1, fold(0x3000), 24],
          [f(0x1000, 1, by=2), f(0x3000, 0), a(20, 0x1000, 0, by=2), u(0x1020, 1, by=2), f(0x1020, 49, 0, 1)]),
         (begin, [f(0x1000, 50, fold(0x1000), by=2)]))
    reset = Trace(HEAP)
    first, lines, elements = heap_records([a(24, 0x1000, 36, fold(0x1000)), f(0x1000, 0), a(24, 0x1000, 0)])
    second, more, others = heap_records([f(0x1000, 50, fold(0x1000)), a(24, 0x2000, 36, fold(0x2000))])
    reset.stream(2, begin + elements + begin + others)
    reset.chunk(first, 1, 0, 1, records=3)
    reset.chunk(second, 1, 0, 1, records=2)
    good("x-predicted-reset", "a reset inside a group empties the heap; its next beginning is at the cursor, which goes on", HEAP,
         reset.finish(5), lines + more)


def settings():
    """Writes vectors with width 0, and with metadata for field 1 of the record with tag 4."""
    dtd = values_dtd("lastValue 1").replace("tag.value = 4;", "tag.value = 4; n.width = 0;")
    trace = Trace(dtd)
    trace.stream(2, [9, 6])
    md = lambda prop, *v: bytes([3, 4, 1, prop, *v])
    raw = bytes([4, 4]) + md(0x10, 1) + bytes([4, 1, 4, 0])  # 0, 0; with width 1, 9 as a miss, then 9
    raw += md(1) + bytes([4, 200]) + md(0x10, 2) + bytes([4, 1, 2])  # `none`: 200, then 0x201 with two bytes. The model learns nothing.
    trace.chunk(raw, 1, 0, 1, records=6)
    trace.chunk(bytes([4]) + md(0x10, 2) + bytes([4, 1, 0, 4, 0, 0]), 1, 0, 1, records=3)  # After the reset: 0, then 6 as a miss, then 6
    numbers = [0, 0, 9, 9, 200, 0x201, 0, 6, 6]
    good("x-predicted-width-0", "width 0 is code 0; metadata give it a width, and another interpretation until the reset", dtd,
         trace.finish(9), [line("t", n=n) for n in numbers], "4, 4.1, 4.2")
    # A striding leaf and a predicted leaf share a stream; each has its own cursor.
    dtd = dtd.replace("n.width = 0; ", "").replace("(tag, n) {", "(tag, x, n) { x.interpretation = sectionStride 2 1;")
    trace = Trace(dtd)
    trace.stream(2, [5, 6, 7])
    trace.chunk(bytes([4, 1, 4, 1, 4, 0]), 1, 0, 1, records=3)
    good("x-predicted-two-cursors", "a stride and a model take the same elements, each by its own cursor", dtd, trace.finish(3),
         [line("t", x=5, n=5), line("t", x=6, n=6), line("t", x=7, n=6)])


def names():
    """Writes a vector for paths after `by`: n, p and o depend on different leaves, whose values 1 and 2 select different lines."""
    dtd = """section m 2 { miss: (v) { v.width = 8; v.interpretation = none; } }
section s 1 {
  k.width = 1; k.interpretation = none; b.width = 1; b.interpretation = none;
  q: (k)
  z: (b)
  t: (tag, k, q, n, p, o) {
    tag.value = 4;
    n.interpretation = predicted 1 lastValue 1 by k 2;
    p.interpretation = predicted 1 lastValue 1 by q.k 2;
    o.interpretation = predicted 1 lastValue 1 by u.b 2;
  }
  u: (tag, z) { tag.value = 5; }
}
"""
    t = lambda k, qk, n, p, o: line("t", k=k, q={"k": qk}, n=n, p=p, o=o)
    u = lambda b: line("u", z={"b": b})
    trace = Trace(dtd)
    trace.stream(2, [10, 20, 30])
    raw = bytes([5, 1] + [4, 1, 1, 1, 1, 1] + [4, 1, 2, 0, 0, 0] + [5, 2] + [4, 2, 1, 0, 0, 0])
    trace.chunk(raw, 1, 0, 1, records=5)
    good("x-predicted-names", "by k is the own k, though that of q is nearer; by q.k that of q; by u.b the only b in u", dtd, trace.finish(5),
         [u(1), t(1, 1, 10, 20, 30), t(1, 2, 10, 0, 30), u(2), t(2, 1, 0, 20, 0)], "3.5, 4.2.1")


def wrong():
    dtd = values_dtd("lastValue 2")
    for name, what, codes, offset in (("x-predicted-no-candidate", "code 3 of a model with two candidates", [2, 3], 3),
                                      ("x-predicted-no-element", "the second miss, and the stream has one element", [2, 2], 3)):
        trace = Trace(dtd)
        trace.stream(2, [5])
        start = trace.chunk(bytes([4, codes[0], 4, codes[1]]), 1, 0, 1, records=2)
        bad(name, what, dtd, trace.finish(2), [start + 48 + offset, start + 48 + offset - 1], [line("t", n=5)])
    for name, what, opening, event in (
            ("x-predicted-heap-rule", "a heap that begins with size rule 2", [2, 0], a(24, 0x1000, 36, 0x2000)),
            ("x-predicted-heap-torn-beginning", "a heap with three objects, and elements for one", [0, 1, 0, 3, fold(0x1000)], a(24, 0, 37)),
            ("x-predicted-heap-empty-list", "the newest of a list that is empty", [0, 1, 0, 1, fold(0x1000), 24], a(24, 0, 0)),
            ("x-predicted-heap-no-context", "a bump of a context that is not there", [0, 1, 0, 1, fold(0x1000), 24], a(24, 0, 4, by=1)),
            ("x-predicted-heap-code", "code 166 of an allocation", [0, 1, 0, 1, fold(0x1000), 24], a(24, 0, 166)),
            ("x-predicted-heap-free-code", "code 52 of a free", [0, 1, 0, 1, fold(0x1000), 24], f(0, 52)),
            ("x-predicted-heap-slot", "a slot beyond the order", [0, 1, 0, 1, fold(0x1000), 24], f(0, 48, fold(1))),
            ("x-predicted-heap-foreign", "a context of another number than there are", [0, 1, 0, 1, fold(0x1000), 24], f(0, 49, 1, 0)),
            ("x-predicted-heap-never-freed", "one object freed, not two", [0, 1, 0, 1, fold(0x1000), 24], f(0, 1))):
        trace = Trace(HEAP)
        raw, _, elements = heap_records([event])
        trace.stream(2, opening + elements)
        start = trace.chunk(raw, 1, 0, 1, records=1)
        bad(name, what, HEAP, trace.finish(1), [start + 48 + len(raw) - 1, start + 48], [])


def revisions():
    """Writes vectors with a missing or unknown model revision: DTDs, and traces that embed such DTDs. Old traces have no revision."""
    for name, what, said in (("none", "a model without a revision", ""), ("2", "a revision that is not known", "2 "), ("0", "revision 0", "0 ")):
        dtd = values_dtd("stride").replace("predicted 1 ", f"predicted {said}")
        row, text = next((n, t) for n, t in enumerate(dtd.split("\n"), 1) if "predicted" in t)
        column = text.index("predicted") + len("predicted ") + 1
        write(f"bad/dtd/x-revision-{name}", {"format.dtd": dtd, "note.json": {"what": what, "at": [[row, column]], "spec": "3.5"}})
    for name, said in (("none", ""), ("2", "2 ")):
        dtd = HEAP.replace("predicted 1 ", f"predicted {said}")
        trace = Trace(dtd)
        raw, _, elements = heap_records([a(24, 0x1000, 36, 0x1000)])
        trace.stream(2, [0, 0] + elements)
        trace.chunk(raw, 1, 0, 1, records=1)
        bad(f"x-predicted-revision-{name}", "the DTD that the trace carries has models of rules that are not known", dtd, trace.finish(1), [], [], "4.2")


# ---- Phrases.

def leb(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + leb(n >> 7)


def phrased(repeated, single, tokens, seconds=b"", counts=None):
    all_ = repeated + single
    columns = b"".join(p[i:i + 1] for i in range(max(map(len, all_), default=0)) for p in all_)
    counts = counts or (len(repeated), len(single), len(tokens))
    return b"".join(map(leb, counts)) + bytes(map(len, all_)) + columns + bytes(tokens) + bytes(seconds)


def phrases():
    dtd = 'section s 1 { t: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } b: (tag, vfield) { tag.value = 5; vfield.data.format = "utf8"; } }\n'
    t = lambda n: bytes([4, n])
    b = lambda text: bytes([5, len(text)]) + text.encode()
    ts, bs = (lambda n: line("t", n=n)), (lambda text: line("b", vfield=text))
    for name, zipped in (("x-phrases", False), ("x-phrases-zlib", True)):
        trace = Trace(dtd)
        raw = t(1) + b("heap") + t(1) + t(9) + b("heap") + t(1) + b("once")
        filtered = phrased([t(1), b("heap")], [t(9), b("once")], [0, 1, 0, 255, 1, 0, 255])
        trace.chunk(raw, 1, 0, 3, records=7, filtered=filtered, zipped=zipped)
        lines = [ts(1), bs("heap"), ts(1), ts(9), bs("heap"), ts(1), bs("once")]
        good(name, "repeated phrases, single ones, " + ("under zlib" if zipped else "stored"), dtd, trace.finish(7), lines, "5.2")
    # Of 300 repeated phrases, (65280 - 300) / 255 = 254 have a one-byte token. The tokens of the other 46 are 254 and a second byte.
    words = [f"w{i}" for i in range(300)]
    order = list(range(300)) + list(range(299, -1, -1))
    seconds = [i - 254 for i in order if i >= 254]
    trace = Trace(dtd)
    raw = b"".join(b(words[i]) for i in order)
    trace.chunk(raw, 1, 0, 3, records=600, filtered=phrased([b(w) for w in words], [], [min(i, 254) for i in order], seconds))
    good("x-phrases-two-bytes", "300 repeated phrases: the last have tokens of two bytes", dtd, trace.finish(600), [bs(words[i]) for i in order], "5.2")
    # A writer may cut phrases anywhere. Here they are two records, 255 bytes, or a part of a record.
    trace = Trace(dtd)
    raw = (t(1) + t(2)) * 2 + b("x" * 253) + b("y")
    filtered = phrased([t(1) + t(2)], [b("x" * 253), b("y")[:1], b("y")[1:]], [0, 0, 255, 255, 255])
    trace.chunk(raw, 1, 0, 3, records=6, filtered=filtered)
    good("x-phrases-any-cut", "phrases that are no records", dtd, trace.finish(6), [ts(1), ts(2)] * 2 + [bs("x" * 253), bs("y")], "5.2")
    raw = t(1) + t(1) + t(2)
    # Entry 1 is empty, and the number of entries takes three bytes.
    filtered = b"\x82\x80\x00" + phrased([t(1), b""], [t(2)], [0, 1, 0, 255])[1:]
    trace = Trace(dtd)
    trace.chunk(raw, 1, 0, 3, records=3, filtered=filtered)
    good("x-phrases-empty", "an entry without a byte, and a number of more bytes than it needs", dtd, trace.finish(3), [ts(1), ts(1), ts(2)], "5.2")
    right = phrased([t(1)], [t(2)], [0, 0, 255])
    cases = (
        ("x-phrases-cut", "a column that ends too early", right[:7], {}, []),
        ("x-phrases-tokens", "fewer tokens than there should be", right[:-1], {}, []),
        ("x-phrases-left-over", "a byte left over", right + b"\0", {}, []),
        ("x-phrases-unknown", "a token that names no phrase", phrased([t(1)], [t(2)], [0, 1, 255], [7]), {}, []),
        ("x-phrases-singles", "a single phrase more than there are", phrased([t(1)], [t(2)], [255, 0, 255]), {}, []),
        ("x-phrases-single-unused", "a single phrase that no token takes", phrased([t(1)], [t(2)], [0, 0, 0]), {}, []),
        ("x-phrases-short", "less content than raw_len", right, {"raw_len": 8}, []),
        ("x-phrases-long", "more content than raw_len", right, {"raw_len": 4}, []),
        ("x-phrases-number", "a number of six bytes", b"\x81\x80\x80\x80\x80\x00" + right[1:], {}, []),
        ("x-phrases-many", "more repeated phrases than tokens can name", phrased([t(1)], [t(2)], [0, 0, 255], counts=(65281, 1, 3)), {}, []),
        ("x-phrases-no-length", "filter 2 without filtered_len", right, {"filtered_len": 0}, [7]),
        ("x-phrases-other-length", "filtered_len is not stored_len, and the codec is 0", right, {"filtered_len": 3}, [40]),
        ("x-phrases-bomb", "raw_len over 255 times filtered_len", right, {"raw_len": 255 * len(right) + 1}, [40, 16]),
    )
    for name, what, filtered, header, fields in cases:
        trace = Trace(dtd)
        start = trace.chunk(raw, 1, 0, 3, records=3, filtered=filtered, **header)
        places = [start + field for field in fields] or [start, start + 48, start + 16]
        bad(name, what, dtd, trace.finish(3), places, [], "5.2")
    trace = Trace(dtd)
    start = trace.chunk(raw, 1, 0, 3, records=3, filtered_len=6)
    bad("x-phrases-length-without", "filtered_len, and no filter", dtd, trace.finish(3), [start + 40], [], "5.2")


# ---- Tails.

def tailed(runs, repeated):
    """Returns the runs after filter 3. `repeated` are the numbered phrases, fewer than 256, so that each token is one byte."""
    heads = [run[:-1] for run in runs]
    single = [head for head in heads if head not in repeated]
    tokens = [repeated.index(head) if head in repeated else 255 for head in heads]
    tails = [run[-1] for phrase in repeated for run in runs if run[:-1] == phrase]
    tails += [run[-1] for run in runs if run[:-1] not in repeated]
    return phrased(repeated, single, tokens) + bytes(tails)


def all_tails():
    dtd = """section s 1 {
    u: (tag) { tag.value = 6; }
    t: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; }
    b: (tag, vfield) { tag.value = 5; vfield.data.format = "utf8"; }
}
"""
    u, t = bytes([6]), lambda n: bytes([4, n])
    b = lambda text: bytes([5, len(text)]) + text.encode()
    us, ts, bs = line("u"), (lambda n: line("t", n=n)), (lambda text: line("b", vfield=text))
    # The phrase of u is empty.
    runs = [t(1), u, t(2), b("heap"), u, t(3), b("once"), t(2), b("heal")]
    lines = [ts(1), us, ts(2), bs("heap"), us, ts(3), bs("once"), ts(2), bs("heal")]
    filtered = tailed(runs, [b"\4", b"", b("heap")[:-1]])
    for name, zipped in (("x-tails", False), ("x-tails-zlib", True)):
        trace = Trace(dtd)
        trace.chunk(b"".join(runs), 1, 0, 3, records=9, filtered=filtered, zipped=zipped, filter=3)
        good(name, "tails of repeated phrases, of one without bytes, of a single one, " + ("under zlib" if zipped else "stored"), dtd, trace.finish(9), lines, "5.2")
    # 300 phrases, as in x-phrases-two-bytes, each with two tails. The tail of a two-byte token is stored with its phrase.
    words = [f"w{i}" for i in range(300)]
    order = list(range(300)) + list(range(299, -1, -1))
    ends = ["a"] * 300 + ["b"] * 300
    heads = [bytes([5, len(w) + 1]) + w.encode() for w in words]
    trace = Trace(dtd)
    raw = b"".join(b(words[i] + end) for i, end in zip(order, ends))
    filtered = phrased(heads, [], [min(i, 254) for i in order], [i - 254 for i in order if i >= 254]) + b"ab" * 300
    trace.chunk(raw, 1, 0, 3, records=600, filtered=filtered, filter=3)
    good("x-tails-two-bytes", "300 phrases with two tails each: the last have tokens of two bytes", dtd, trace.finish(600), [bs(words[i] + end) for i, end in zip(order, ends)], "5.2")
    # A writer may cut runs anywhere. Here they are parts of a record, and 256 bytes.
    runs = [t(1) + t(2)[:1], t(2)[1:], b("x" * 254), t(1) + t(3)[:1], t(3)[1:]]
    trace = Trace(dtd)
    trace.chunk(b"".join(runs), 1, 0, 3, records=5, filtered=tailed(runs, [t(1), b""]), filter=3)
    good("x-tails-any-cut", "runs that are no records", dtd, trace.finish(5), [ts(1), ts(2), bs("x" * 254), ts(1), ts(3)], "5.2")
    raw = t(1) + t(1) + t(2)
    right = tailed([t(1), t(1), t(2)], [b"\4"])
    cases = (
        ("x-tails-cut", "fewer tails than tokens", phrased([b"\4"], [], [0, 0, 0])[:-2] + b"\1\1", {}, []),
        ("x-tails-left-over", "a byte left over", right + b"\0", {}, []),
        ("x-tails-unknown", "a token that names no phrase", phrased([b"\4"], [b"\4"], [0, 1, 255], [7]) + b"\1\1\2", {}, []),
        ("x-tails-singles", "a single phrase more than there are", phrased([b"\4"], [b"\4"], [255, 0, 255]) + b"\1\1\2", {}, []),
        ("x-tails-single-unused", "a single phrase that no token takes", phrased([b"\4"], [b"\4"], [0, 0, 0]) + b"\1\1\2", {}, []),
        ("x-tails-short", "less content than raw_len", right, {"raw_len": 8}, []),
        ("x-tails-long", "more content than raw_len", right, {"raw_len": 4}, []),
        ("x-tails-no-length", "filter 3 without filtered_len", right, {"filtered_len": 0}, [7]),
        ("x-tails-other-length", "filtered_len is not stored_len, and the codec is 0", right, {"filtered_len": 3}, [40]),
        ("x-tails-bomb", "raw_len over 255 times filtered_len", right, {"raw_len": 255 * len(right) + 1}, [40, 16]),
    )
    for name, what, filtered, header, fields in cases:
        trace = Trace(dtd)
        start = trace.chunk(raw, 1, 0, 3, records=3, filtered=filtered, filter=3, **header)
        places = [start + field for field in fields] or [start, start + 48, start + 16]
        bad(name, what, dtd, trace.finish(3), places, [], "5.2")


def features():
    dtd = values_dtd("lastValue 1")

    def vector(name, what, place, features, start=None):
        trace = Trace(dtd, features=features, start=start)
        trace.chunk(bytes([4, 0]), 1, 0, 3, records=1)
        bad(f"x-feature-{name}", what, dtd, trace.finish(1), [place], [], "5.2")

    for number in (0, 9, 63):
        vector(number, f"the trace needs feature {number}, which no reader knows", 8 + number // 8, {number: b"x-y-9"})
    vector("two", "two features, the second with the longest name", 8, {7: b"a", 8: b"b" * 31})
    vector("name-empty", "a feature without a name", 40, {1: b""})
    vector("name-long", "a feature's name has 32 bytes", 40, {1: b"a" * 32})
    vector("name-byte", "a byte of a feature's name is none of `a` to `z`, `0` to `9` and `-`", 42, {1: b"a\x1b"})
    vector("start", "`start` is not the end of the features' names", 24, {1: b"pages"}, 40)


def main():
    clear("x-p", "x-revision", "x-tails", "x-feature")
    all_values()
    heaps()
    settings()
    names()
    wrong()
    revisions()
    phrases()
    all_tails()
    features()
