#!/usr/bin/env python3
"""Checks that the extension's heap tables agree with `hatf report` and with each other.

    python tables/metatf-duckdb/tests/heap.py PATH/TO/metatf.duckdb_extension PATH/TO/hatf
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

GOLDEN = Path(__file__).resolve().parents[3] / "tests/golden/1.0"
TRACES = ["heap.gawk-default.mtf", "heap.perl-default.mtf", "heap.python_threads-default.mtf", "HATF10.gawk-default.mtf"]


def main():
    extension, hatf = sys.argv[1:]
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(extension)
    reports = [same_figures(connection, hatf, GOLDEN / name) for name in TRACES]
    several_traces(connection, reports)
    errors(connection)
    print(f"ok, the figures of {len(reports)} heaps are those of hatf report")


def same_figures(connection, hatf, trace):
    report = json.loads(subprocess.run([hatf, "report", "--format", "json", trace], capture_output=True, check=True).stdout)
    for table in ("objects", "sites", "lifetimes", "timeline", "marks", "processes", "stacks", "traces"):
        connection.execute(f"create or replace view {table} as from heap_{table}('{trace}')")

    def one(query):
        return connection.execute(query).fetchone()

    totals, peak = report["totals"], report["peak"]
    allocations = (totals["allocs"], totals["bytes"])
    assert allocations[0] > 100, trace
    assert one("select count(*), sum(size)::bigint from objects") == allocations, trace
    assert one("select sum(allocations), sum(allocated_bytes) from sites") == allocations, trace
    assert one("select live_bytes, live_objects from timeline where is_peak") == (peak["bytes"], peak["blocks_then"]), trace
    assert one("select sum(peak_bytes) from sites") == (peak["bytes"],), trace
    live = "select count(*), coalesce(sum(size), 0)::bigint from objects where end_kind = 'live' or free_thread is null"
    assert one("select sum(leaked_allocations), sum(leaked_bytes) from sites") == one(live), trace
    assert one("select count(*) from objects where stack_hash not in (select stack_hash from sites)") == (0,), trace
    # A predicate in the call is equivalent to one in the query.
    assert one(f"select count(*) from heap_objects('{trace}', predicate := 'size > 64')") == one("select count(*) from objects where size > 64")
    return report


def several_traces(connection, reports):
    pattern = GOLDEN / "heap.*-default.mtf"
    found = connection.execute(f"select trace, count(*) from heap_objects('{pattern}') group by trace order by trace").fetchall()
    assert [count for _, count in found] == [report["totals"]["allocs"] for report in reports[:3]], found


def errors(connection):
    with tempfile.TemporaryDirectory() as folder:
        broken = Path(folder) / "broken.mtf"
        whole = (GOLDEN / TRACES[0]).read_bytes()
        broken.write_bytes(whole[: len(whole) // 2])
        for query, message in [
            (f"select sum(size) from heap_objects('{broken}')", "broken.mtf: "),
            ("from heap_objects('none.mtf')", "none.mtf: "),
            (f"from heap_sites('{__file__}')", "heap.py: "),
        ]:
            try:
                connection.execute(query).fetchall()
            except duckdb.Error as error:
                assert message in str(error), (query, str(error))
            else:
                raise AssertionError(f"no error: {query}")


if __name__ == "__main__":
    main()
