#!/usr/bin/env python3
"""Checks that the extension, built with the feature `test-tables`, passes values of every type to DuckDB and survives tables that violate the interface.

    python tables/metatf-duckdb/tests/values.py PATH/TO/metatf.duckdb_extension
"""
import sys
import threading

import duckdb

ROWS = 10_000


def main():
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(sys.argv[1])
    values_of_every_type(connection)
    projection(connection)
    predicates(connection)
    errors(connection)
    interrupt(connection)
    print("ok")


def expected(n):
    """Returns row n as src/test_tables.rs builds it, with times in nanoseconds since 1970."""
    if n % 11 == 3:
        return {}
    small, text = n % 100, "é" * (n % 19) + str(n)
    kind = ["malloc", "a kind with a long name", ""][n % 3]
    return {
        "boolean": n % 2 == 0,
        "int8": small, "int16": small, "int32": small, "int64": n - 2**63,
        "uint8": small, "uint16": small, "uint32": small, "uint64": 2**64 - 1 - n,
        "float32": n / 4, "float64": n / 4,
        "seconds": n * 10**9, "milliseconds": n * 10**6, "microseconds": n * 10**3, "nanoseconds": n, "duration": n,
        "utf8": text, "large_utf8": text, "utf8_view": text,
        "binary": text.encode(), "large_binary": text.encode(), "binary_view": text.encode(), "fixed_binary": bytes([n % 256] * 3),
        "dictionary": kind, "large_dictionary": text + "*",
        "list": [None if i == 2 else f"{n}/{i}" for i in range(n % 4)],
        "nested_list": [[n + j for j in range(i + 1)] for i in range(n % 3)],
        "fixed_list": [n, -n],
        "struct": {"size": 8 * n, "name": ["short", "longer than twelve bytes"][n % 2]},
        "map": {f"a key of more than twelve bytes {i}": None if i == 1 else n for i in range(n % 3)},
    }  # fmt: skip


def values_of_every_type(connection):
    times = ["seconds", "milliseconds", "microseconds", "nanoseconds"]
    names = [row[0] for row in connection.sql("describe from metatf_test('values')").fetchall()]
    assert names == ["row", *expected(0)], names
    columns = ", ".join(f"epoch_ns({name}) as {name}" if name in times else f'"{name}"' for name in names)
    for threads in (1, 4):
        connection.sql(f"set threads = {threads}")
        rows = connection.sql(f"select {columns} from metatf_test('values')").fetchall()
        # Without `order by`, rows come in the order of the table.
        assert [row[0] for row in rows] == list(range(ROWS))
        for row in rows:
            found = dict(zip(names[1:], row[1:]))
            value = expected(row[0]) or dict.fromkeys(names[1:])
            assert found == value, (row[0], found, value)


def projection(connection):
    """Selects columns in any order, twice, or not at all."""
    assert connection.sql("select count(*) from metatf_test('values')").fetchall() == [(ROWS,)]
    assert connection.sql("select count(*) from metatf_test('values') where true").fetchall() == [(ROWS,)]
    some = """select "struct".size, row, row + 1, int8 from metatf_test('values') where row = 7"""
    assert connection.sql(some).fetchall() == [(56, 7, 8, 7)]
    valid = [n for n in range(ROWS) if n % 11 != 3]
    total = sum(n % 100 for n in valid)
    assert connection.sql("select sum(int8) from metatf_test('values')").fetchall() == [(total,)]
    both = "select count(*) from metatf_test('values') a join metatf_test('values') b on a.row = b.uint16"
    assert connection.sql("""select count("struct"), count("struct".size) from metatf_test('values')""").fetchall() == [(len(valid), len(valid))]
    assert connection.sql(both).fetchall() == [(len(valid),)]
    lists = connection.sql("""select count(*), count(v) from metatf_test('values'), unnest("list") as u(v)""").fetchall()
    elements = [element for n in range(ROWS) for element in expected(n).get("list", [])]
    assert lists == [(len(elements), len([element for element in elements if element is not None]))]


def predicates(connection):
    def rows(predicate):
        return connection.execute("select count(*), min(row), max(row) from metatf_test('values', predicate := ?)", [predicate]).fetchall()[0]

    assert rows("row >= 4990 and row < 5010") == (20, 4990, 5009)
    assert rows("dictionary = 'malloc' and row < 10")[0] == 3
    assert rows("uint64 > 0xfffffffffffffffe") == (1, 0, 0)
    assert rows("duration >= 9999") == (1, 9999, 9999)
    assert rows("utf8 = '0'") == (1, 0, 0)
    assert rows("row > 1000000") == (0, None, None)
    # Compare a column that is not selected, and select one that is not compared.
    assert connection.sql("select int8 from metatf_test('values', predicate := 'row = 42')").fetchall() == [(42,)]


def errors(connection):
    for query, message in [
        ("from metatf_test('types')", "expected a column of type Int64 in a batch, found Some(UInt8)"),
        ("from metatf_test('fails')", "T.mtf: byte 17: nothing more is read"),
        ("from metatf_test('panics')", "internal error in the extension"),
        ("from metatf_test('unknown')", "column month of test: DuckDB has no type for Decimal256(10, 2)"),
        ("from metatf_test('none')", "no such table"),
        ("from metatf_test(NULL)", "parameter 1 is NULL"),
        ("from metatf_test('values', predicate := 'x = 1')", "unknown field `x`"),
        ("from metatf_test('values', predicate := 'struct = 1')", "unknown field `struct`"),
    ]:
        for threads in (1, 4):
            connection.sql(f"set threads = {threads}")
            try:
                connection.execute(query).fetchall()
            except duckdb.Error as error:
                assert message in str(error), (query, str(error))
            else:
                raise AssertionError(f"no error: {query}")
    # The connection remains usable.
    assert connection.sql("select 1").fetchall() == [(1,)]


def interrupt(connection):
    """Checks that interrupting an infinite query ends it."""
    timer = threading.Timer(0.5, connection.interrupt)
    timer.start()
    try:
        connection.execute("select sum(n) from metatf_test('endless')").fetchall()
    except duckdb.InterruptException:
        pass
    else:
        raise AssertionError("it has not been interrupted")
    timer.join()
    # A limit ends it, too.
    assert len(connection.execute("select n from metatf_test('endless') limit 3").fetchall()) == 3


if __name__ == "__main__":
    main()
