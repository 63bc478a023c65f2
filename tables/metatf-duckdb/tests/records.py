#!/usr/bin/env python3
"""Checks that the extension returns the same records as `metatfc dump`, and that errors of damaged traces name the file.

    python tables/metatf-duckdb/tests/records.py PATH/TO/metatf.duckdb_extension PATH/TO/metatfc
"""
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

CHECKOUT = Path(__file__).resolve().parents[3]
GOLDEN = CHECKOUT / "tests/golden/1.0"
TRACES = ["every.zstd-auto-64-little.mtf", "every.stored-split-suffix-64-big.mtf", "heap.gawk-default.mtf", "HATF10.gawk-default.mtf", "pcap.packets.pcap"]


def main():
    extension, metatfc = sys.argv[1:]
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(extension)
    compared = sum(same_records(connection, metatfc, GOLDEN / name) for name in TRACES)
    assert compared > 20_000, compared
    several_files(connection)
    errors(connection)
    print(f"ok, {compared} values are the same; {broken(connection)} broken traces are errors with their names, or tables")


def same_records(connection, metatfc, trace):
    """Checks that each table has one row per record with the same integers. Returns the number of compared values."""
    printed = subprocess.run([metatfc, "dump", "--format", "jsonl", trace], capture_output=True, text=True, check=True)
    records = collections.defaultdict(list)
    for line in printed.stdout.splitlines():
        record = json.loads(line)
        records[record["@record"]].append(record)
    compared = 0
    for (table,) in connection.execute('select distinct "table" from metatf_tables(?)', [str(trace)]).fetchall():
        query = connection.execute("from metatf_records(?, ?)", [str(trace), table])
        names = [column[0] for column in query.description]
        rows = query.fetchall()
        expected = records.get(table, [])
        if not expected:
            continue
        assert len(rows) == len(expected), (trace, table, len(rows), len(expected))
        for row, record in zip(rows, expected):
            for name, value in zip(names, row):
                if isinstance(record.get(name), int) and isinstance(value, int):
                    assert value == record[name], (trace, table, name, value, record[name])
                    compared += 1
    return compared


def several_files(connection):
    pattern = str(GOLDEN / "heap.gawk-*.mtf")
    both = connection.execute("""select "@file", count(*), sum(size) from metatf_records(?, 'malloc') group by "@file" order by 1""", [pattern]).fetchall()
    assert len(both) > 1 and len({row[1:] for row in both}) == 1, both
    rows = connection.execute("""select count(*) from metatf_records(?, 'malloc', predicate := 'size >= 4096')""", [pattern]).fetchall()
    assert rows == connection.execute("select count(*) from metatf_records(?, 'malloc') where size >= 4096", [pattern]).fetchall()
    # A trace without an embedded DTD.
    without, dtd = str(GOLDEN / "every.no-dtd.mtf"), str(GOLDEN / "every.dtd")
    assert connection.execute("select count(*) > 20 from metatf_tables(?, dtd := ?)", [without, dtd]).fetchall() == [(True,)]


def errors(connection):
    for query, message in [
        ("from metatf_records('none.mtf', 'malloc')", "none.mtf: "),
        ("from metatf_records('none-*.mtf', 'malloc')", "none-*.mtf: no file matches"),
        ("from metatf_tables('[')", "[: "),
        (f"from metatf_tables('{GOLDEN}')", "found a directory"),
        (f"from metatf_tables('{__file__}')", "records.py: offset 0: not a Meta-TF trace"),
        (f"from metatf_tables('{GOLDEN}/every.no-dtd.mtf')", "every.no-dtd.mtf: "),
        (f"from metatf_tables('{GOLDEN}/every.no-dtd.mtf', dtd := '{__file__}')", "records.py"),
        (f"from metatf_records('{GOLDEN}/heap.gawk-default.mtf', 'mallok')", "there is no table mallok; available tables: malloc, calloc"),
        (f"from metatf_records('{GOLDEN}/*.gawk-default.mtf', 'thread')", "thread"),
    ]:
        try:
            connection.execute(query).fetchall()
        except duckdb.Error as error:
            assert message in str(error), (query, str(error))
        else:
            raise AssertionError(f"no error: {query}")


def broken(connection):
    """Reads traces with changed bytes and truncated traces. Returns their number."""
    whole = (GOLDEN / "heap.gawk-default.mtf").read_bytes()
    traces = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "broken.mtf"
        for at in range(0, len(whole), max(1, len(whole) // 150)):
            for bytes_ in (whole[:at], whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]):
                path.write_bytes(bytes_)
                traces += 1
                for table in ("malloc", "free", "name_item"):
                    try:
                        connection.execute("select count(*), max(columns(*)) from metatf_records(?, ?)", [str(path), table]).fetchall()
                    except duckdb.Error as error:
                        assert "broken.mtf: " in str(error), str(error)
    return traces


if __name__ == "__main__":
    main()
