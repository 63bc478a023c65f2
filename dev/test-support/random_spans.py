#!/usr/bin/env python3
"""Checks on random programs that tables of spans and events agree with `metatfc stat --spans`.

    python3 dev/test-support/random_spans.py METATFC FOLDER [COUNT [SEED]]

writes traces into the folder and compares what `metatfc convert --record spans --record events` makes of them, which needs the feature
`tables`. tables/metatf-duckdb/tests/spans.py compares the tables of DuckDB.
"""
import collections
import csv
import json
import math
import random
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
TRACING = CHECKOUT / "telemetry/metatf-tracing/tracing.dtd"

# Spans without numbers, and two kinds in one thread.
STACKS = """section s 1 {
    time.width = 4; time.interpretation = none; time.unit = "us"; time.role = "time";
    thread.width = 1; thread.interpretation = none; thread.role = "thread";
    n.width = 4; n.interpretation = none; n.format = "signed";
    load: (time, thread, n) { tag.value = 4; tag.span = "begin"; }
    loaded: (time, thread) { tag.value = 5; tag.span = "end load"; }
    step: (time, thread) { tag.value = 6; tag.span = "begin"; }
    stepped: (time, thread) { tag.value = 7; tag.span = "end"; }
    tick: (time, thread, n) { tag.value = 8; }
}"""


def stacks(rng, steps):
    """Yields the records of a program with nested spans. An end may belong to an outer span or to no span."""
    time = 0
    for _ in range(steps):
        time += rng.randint(1, 900)
        record = rng.choice(["load", "load", "loaded", "step", "stepped", "tick"])
        fields = {"time": time, "thread": rng.randint(1, 3)}
        if record in ("load", "tick"):
            fields["n"] = rng.randint(-5, 5)
        yield {"@section": "s", "@record": record, **fields}


def program(rng, steps):
    """Returns the records of a program with `tracing`: spans that are entered and left, values, events, unmatched ends, reused numbers."""

    def record(of, **fields):
        return {"@section": "tracing", "@record": of, **fields}

    def callsite(number, is_span, level, called, fields):
        return record(
            "callsite_is", thread=1, callsite=number, is_span=is_span, level=level, line=36, l1=4, target="shop", l2=len(called), name=called,
            l3=6, file="cart.c", l4=len(fields), fields=fields)

    def text(thread, field, words):
        return record("text", thread=thread, field=field, length=len(words.encode()), words=words)

    kinds = ["request", "query", "render, again"]
    for place, kind in enumerate(kinds):
        yield callsite(10 + place, True, "info", kind, "path,status")
    yield callsite(20, False, "warn", "event cart.c:9", "message,bytes")
    for thread in (1, 2):
        yield record("thread_is", thread=thread, length=2, called=f"t{thread}")
    time, number, inside = 1000, 1, {1: [], 2: [], 3: []}
    for _ in range(steps):
        thread = rng.choice(list(inside))
        time += rng.randint(1, 900)
        mine, what = inside[thread], rng.random()
        if what < 0.35 and len(mine) < 6:
            # Sometimes a span number is reused.
            span = rng.randint(1, number) if rng.random() < 0.05 else number
            parent = rng.choice([0, 0, 0, rng.randint(1, number), 2**64 - 1])
            yield record("span", time=time, thread=thread, callsite=10 + rng.randrange(len(kinds)), id=span, parent=parent)
            yield text(thread, 0, rng.choice(["/", '/a"b', "/ä,\n", "=1"]))
            if rng.random() < 0.5:
                yield record("uint", thread=thread, field=1, number=rng.choice([200, 404, 2**64 - 1]))
            yield record("enter", time=time, thread=thread, id=span)
            mine.append(span)
            number += 1
        elif what < 0.6 and mine:
            span = mine.pop()
            yield record("exit", time=time, thread=thread, id=span)
            yield record("close", time=time + 3, thread=thread, id=span)
        elif what < 0.7 and mine:
            yield record("more", time=time, thread=thread, id=mine[-1])
            yield rng.choice([
                record("uint", thread=thread, field=1, number=7),
                record("int", thread=thread, field=1, signed=-7),
                record("flag", thread=thread, field=5, truth=True),
                record("float", thread=thread, field=1, real=0.5),
            ])
        elif what < 0.73:
            yield record("close", time=time, thread=thread, id=rng.randint(1, number + 2))
        else:
            yield record("event", time=time, thread=thread, callsite=20, parent=0)
            yield text(thread, 0, "sent")
            if rng.random() < 0.5:
                yield record("uint", thread=thread, field=1, number=rng.randint(0, 9999))


def write(metatfc, folder, place, seed):
    """Writes a random trace in one of the formats and returns its path."""
    rng = random.Random(seed * 1_000_003 + place)
    make, dtd = (program, TRACING) if place % 2 else (stacks, folder / "stacks.dtd")
    (folder / "stacks.dtd").write_text(STACKS)
    lines = "".join(json.dumps(record) + "\n" for record in make(rng, rng.choice([3, 50, 800])))
    trace = folder / f"spans-{place}.mtf"
    subprocess.run([metatfc, "convert", "--dtd", dtd, "-", trace], input=lines, text=True, check=True)
    return trace


def printed(metatfc, trace, form):
    run = subprocess.run([metatfc, *(["dump"] if form == "chrome" else ["stat", "--spans"]), "--format", form, trace], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def compare(metatfc, trace, spans, events):
    """Compares rows, as dicts of numbers, strings and None with `fields` as a dict, with the command's output. Returns their number."""
    ended = [row for row in spans if row["end_time"] is not None]
    report = printed(metatfc, trace, "json")
    assert len(spans) - len(ended) == report["open"] + report["without_end"], trace
    by_name = collections.defaultdict(list)
    for row in ended:
        by_name[row["name"]].append(row)
        assert row["duration_ns"] == row["end_time"] - row["begin_time"], row
    assert {kind["name"] for kind in report["kinds"]} == set(by_name), trace
    for kind in report["kinds"]:
        rows = by_name[kind["name"]]
        durations = sorted(row["duration_ns"] for row in rows)
        busy = [row["busy_ns"] for row in rows if row["busy_ns"] is not None]
        found = [len(rows), sum(durations), sum(row["self_ns"] for row in rows), sum(busy) if busy else None, durations[0], durations[-1]]
        assert found == [kind[key] for key in ("count", "total_ns", "self_ns", "busy_ns", "min_ns", "max_ns")], (trace, kind, found)
        for share, key in [(0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")]:
            exact = durations[max(math.ceil(share * len(durations)), 1) - 1]
            assert exact <= kind[key] <= exact * 1.01 + 1, (trace, kind, key, exact)
    chrome(printed(metatfc, trace, "chrome")["traceEvents"], spans, ended, events)
    # Parents refer to the enclosing spans.
    by_record = {row["@number"]: row for row in spans}
    assert len(by_record) == len(spans), trace
    for row in spans + events:
        if row["@parent"] is not None:
            above = by_record[row["@parent"]]
            assert (above["name"], above["span"]) == (row["parent_name"], row["parent"]), row
    return len(spans) + len(events)


def chrome(shown, spans, ended, events):
    """Checks that the events of a Chrome trace match the rows, in order."""

    def of(phase):
        return [event for event in shown if event["ph"] == phase]

    def values(event):
        text = lambda value: value if isinstance(value, str) else json.dumps(value)
        values = {name: text(value) for name, value in event.get("args", {}).items()}
        return {name: value for name, value in values.items() if name not in ("@level", "@target", "@file")}

    numbered = [row for row in ended if row["span"] is not None]
    begins = [(event["name"], event["id"], event["ts"], event["tid"], values(event)) for event in of("b")]
    assert begins == [(row["name"], hex(row["span"]), row["begin_time"] / 1e3, row["thread"], row["fields"]) for row in numbered]
    assert [event["ts"] for event in of("e")] == [row["end_time"] / 1e3 for row in numbered]
    if numbered:
        # The busy times of spans.
        parts = collections.Counter()
        for event in of("X"):
            parts[event["name"]] += round(event["dur"] * 1e3)
        busy = collections.Counter()
        for row in spans:
            busy[row["name"]] += row["busy_ns"] or 0
        assert +parts == +busy, (parts, busy)
    else:
        slices = [(event["name"], event["ts"], event["dur"], event["tid"], values(event)) for event in of("X")]
        wanted = [(row["name"], row["begin_time"] / 1e3, row["duration_ns"] / 1e3, row["thread"], row["fields"]) for row in ended]
        assert not ended or slices == wanted
    instants = [(event["ts"], event["tid"], values(event)) for event in of("i")]
    assert instants == [(row["time"] / 1e3, row["thread"], row["fields"]) for row in events]


def of_csv(path):
    """Returns the rows of a CSV file. There is no file for a table without rows."""
    texts = {"name", "thread_name", "parent_name", "level", "target", "file", "message"}
    if not path.exists():
        return []
    value = lambda name, cell: None if cell == "" else json.loads(cell) if name == "fields" else cell if name in texts else int(cell)
    with path.open(newline="") as file:
        return [{name: value(name, cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def main():
    metatfc, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    count, seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20, int(sys.argv[4]) if len(sys.argv) > 4 else 2026
    folder.mkdir(exist_ok=True)
    rows = 0
    for place in range(count):
        trace, tables = write(metatfc, folder, place, seed), folder / f"tables-{place}"
        subprocess.run([metatfc, "convert", trace, "--record", "spans", "--record", "events", "--to", "csv", tables], capture_output=True, check=True)
        rows += compare(metatfc, trace, of_csv(tables / "spans.csv"), of_csv(tables / "events.csv"))
    print(f"{rows} spans and events")


if __name__ == "__main__":
    main()
