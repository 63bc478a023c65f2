#!/usr/bin/env python3
"""Checks that the extension returns the same spans and events as `metatfc stat --spans`, and runs the queries of docs/tables.md.

    python tables/metatf-duckdb/tests/spans.py PATH/TO/metatf.duckdb_extension PATH/TO/metatfc
"""
import re
import sys
import tempfile
from pathlib import Path

import duckdb

CHECKOUT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(CHECKOUT / "dev/test-support"))
import random_spans


def main():
    extension, metatfc = sys.argv[1], Path(sys.argv[2]).resolve()
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(extension)
    with tempfile.TemporaryDirectory() as folder:
        traces = [random_spans.write(metatfc, Path(folder), place, 7) for place in range(12)]
        rows = sum(same_rows(connection, metatfc, trace) for trace in traces)
        several_files(connection, folder, traces)
        program = max(traces[1::2], key=lambda trace: trace.stat().st_size)
        questions(connection, program)
        damage(connection, program)
    without(connection)
    print(f"ok, {rows} spans and events")


def table(connection, function, trace):
    """Returns the rows of a table as dicts."""
    query = connection.execute(f"from {function}(?)", [str(trace)])
    names = [column[0] for column in query.description]
    return [dict(zip(names, row)) for row in query.fetchall()]


def same_rows(connection, metatfc, trace):
    spans, events = (table(connection, function, trace) for function in ("metatf_spans", "metatf_events"))
    for row in spans + events:
        assert row.pop("@file") == str(trace)
    # Read the tables by name.
    by_name = connection.execute("select * exclude (\"@file\") from metatf_records(?, 'spans')", [str(trace)]).fetchall()
    assert by_name == [tuple(row.values()) for row in spans], trace
    # Pass a condition in the call.
    slow = connection.execute("select count(*) from metatf_spans(?, predicate := 'duration_ns >= 2000')", [str(trace)]).fetchall()
    assert slow == [(sum((row["duration_ns"] or 0) >= 2000 for row in spans),)]
    return random_spans.compare(metatfc, trace, spans, events)


def several_files(connection, folder, traces):
    count = "select count(*) from metatf_spans(?)"
    alone = [connection.execute(count, [str(trace)]).fetchone()[0] for trace in traces]
    assert connection.execute(count, [f"{folder}/spans-*.mtf"]).fetchone()[0] == sum(alone)


def questions(connection, trace):
    """Checks that the queries of the book return rows."""
    for name in ("spans", "events"):
        connection.execute(f"create view {name} as from metatf_{name}('{trace}')")
    page = (CHECKOUT / "docs/tables.md").read_text()
    queries = [query for query in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if re.search("(from|join) (spans|events)\\b", query)]
    assert len(queries) == 3
    for query in queries:
        assert connection.execute(query).fetchall(), query
    longest = connection.execute(queries[1]).fetchall()
    assert longest[0][1] == max(row["duration_ns"] or 0 for row in table(connection, "metatf_spans", trace))


def damage(connection, trace):
    whole = trace.read_bytes()
    broken = trace.with_name("broken.mtf")
    broken.write_bytes(whole[: len(whole) * 2 // 3])
    fails(connection, f"from metatf_spans('{broken}')", "broken.mtf: ")


def without(connection):
    golden = CHECKOUT / "tests/golden/1.0/heap.gawk-default.mtf"
    fails(connection, f"from metatf_spans('{golden}')", "its DTD does not define spans")
    fails(connection, f"from metatf_events('{golden}')", "its DTD does not define events")


def fails(connection, query, message):
    try:
        connection.execute(query).fetchall()
    except duckdb.Error as error:
        assert message in str(error), str(error)
    else:
        raise AssertionError(f"no error: {query}")


if __name__ == "__main__":
    main()
