#!/usr/bin/env python3
"""Checks that the extension returns the same values of random traces as `metatfc dump`, and survives damaged traces; dev/scripts/random-traces writes the traces.

    python tables/metatf-duckdb/tests/random_traces.py PATH/TO/metatf.duckdb_extension FOLDER
"""
import functools
import sys
from pathlib import Path

import duckdb
import pyarrow

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "dev/test-support"))
import random_tables


def main():
    extension, folder = sys.argv[1:]
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(extension)
    door = functools.partial(tables, connection)
    values, refused = random_tables.compare(folder, door)
    # If a damaged trace kills the process, the last line of output is the trace.
    raised = random_tables.bear_damage(folder, door, (duckdb.Error,))
    print(f"{values} values of random traces are the same, {refused} tables are refused as they have to be, {raised} tables of damaged ones are errors")
    assert values > 5_000 and refused > 20 and raised > 50


def tables(connection, path):
    listed = connection.execute('select "table" from metatf_tables(?, dtd := ?)', [str(path), str(path.with_suffix(".dtd"))]).fetchall()
    return {name: functools.partial(rows, connection, path, name) for (name,) in dict.fromkeys(listed)}


def rows(connection, path, table):
    # Go through Arrow, because Python's times have no nanoseconds.
    found = connection.execute("from metatf_records(?, ?, dtd := ?)", [str(path), table, str(path.with_suffix(".dtd"))]).to_arrow_table()
    columns = [[plain(value) for value in column] for column in found.columns]
    return found.column_names, list(zip(*columns))


def plain(value):
    """Returns an Arrow value as a Python value, with times as numbers."""
    if not value.is_valid:
        return None
    match value:
        case pyarrow.TimestampScalar():
            return value.value
        case pyarrow.ListScalar():
            return [plain(item) for item in value.values]
        case pyarrow.StructScalar():
            return {name: plain(item) for name, item in value.items()}
    return value.as_py()


if __name__ == "__main__":
    main()
