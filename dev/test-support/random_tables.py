"""Checks that a table reader agrees with `metatfc dump` on random traces and survives corrupt ones; dev/scripts/random-traces writes both.

A door is a function that takes a path and returns the tables of the trace: a dict from names to functions that return the column names
and the rows. Times in rows are numbers, structures are dicts.
"""

import functools
import json
import resource
import struct
from pathlib import Path

# Maximum memory of the process in bytes for any corrupt trace.
MOST = 512 << 20


def compare(folder, door):
    """Compares all traces. Returns the number of equal values, and the number of tables that end with the expected error."""
    values = refused = 0
    for line in (Path(folder) / "tables.jsonl").read_text().splitlines():
        expected = json.loads(line)
        trace = Path(expected["trace"])
        tables = door(trace)
        assert list(tables) == list(expected["tables"]), (trace, list(tables))
        texts = elements(trace.with_suffix(".all.jsonl"))
        lines = [dumped(trace.with_suffix(suffix), tables) for suffix in (".jsonl", ".names.jsonl")]
        for name, rows in expected["tables"].items():
            try:
                columns, found = tables[name]()
            except Exception as error:
                # If several records are refused, the first one reported depends on the groups being read in parallel.
                assert isinstance(rows, str) and f"{trace}: record " in str(error), (trace, name, rows, error)
                refused += 1
                continue
            assert len(found) == rows, (trace, name, rows, len(found))
            # Elements of stream sections are not records. Only the dump with offsets contains them.
            if "@offset" in columns:
                continue
            plain, named = (records.get(name, []) for records in lines)
            assert len(found) == len(plain) == len(named), (trace, name, len(found), len(plain))
            for row, *records in zip(found, plain, named):
                values += same_row(dict(zip(columns, row, strict=True)), records, texts, (trace, name, row))
    return values, refused


def dumped(path, tables):
    """Returns the records of a dump by table."""
    records = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if "@record" not in record:
            continue
        longer = f"{record['@section']}_{record['@record']}"
        records.setdefault(longer if longer in tables else record["@record"], []).append(record)
    return records


def elements(path):
    """Returns the strings in a trace by section and offset."""
    texts = {}
    for line in path.read_text().splitlines():
        element = json.loads(line)
        texts.setdefault(element.get("@offset"), []).extend(value for key, value in element.items() if key[0] != "@")
    return texts


def same_row(row, records, texts, about):
    compared = 0
    for column, value in row.items():
        if column in ("@number", "@file", "file"):
            continue
        if column == "@section":
            # The global section has no name.
            assert value == (records[0][column] or ""), about
            continue
        compared += same(value, *(field(record, column) for record in records), texts, (about, column))
    return compared


def field(record, column):
    """Returns a column's part of a record. Dots separate nested names."""
    if column in record:
        return record[column]
    for at, letter in enumerate(column):
        if letter == "." and isinstance(record.get(column[:at]), dict):
            return field(record[column[:at]], column[at + 1 :])
    return None


def same(value, plain, named, texts, about):
    """Compares a value with its printed forms, without and with names. Returns the number of single values."""
    if isinstance(value, dict):
        return sum(same(inner, field(plain, key), field(named, key), texts, (about, key)) for key, inner in value.items())
    if isinstance(value, list) and isinstance(plain, list):
        assert len(value) == len(plain) == len(named), (about, value, plain)
        return sum(same(*items, texts, about) for items in zip(value, plain, named))
    assert is_same(value, plain, named, texts), (about, value, plain, named)
    return 1


def is_same(value, plain, named, texts):
    if isinstance(plain, list) and len(plain) <= 1 and not isinstance(value, bytes):
        # A field whose count is 0 or 1 is optional.
        plain, named = (plain[0], named[0]) if plain else (None, None)
    match value, plain:
        case None, None:
            return True
        case bool(), _:
            return value is named
        case int(), int():
            # Dates are signed.
            return (value - plain) % 2**64 == 0 and (value >= 0 or plain >= 2**63 or value == plain)
        case float(), {"hex": bits}:
            return struct.pack(">d", value).hex() == bits
        case float(), int() | float():
            return struct.pack(">d", value) == struct.pack(">d", plain)
        case list(), int():
            # Flag names. If no bit is named, the dump prints the number in the field's format.
            return value == (named.split("|") if isinstance(named, str) else []) or value == ([hex(plain)] if plain else [])
        case str(), int():
            # The name of the number, the number itself if it has no name, or the string to which it refers.
            return value in (named, str(plain), f"0x{plain:016x}") or value in texts.get(plain, [])
        case str(), {"text": text}:
            return value == text
        case str(), str():
            return value in (plain, named)
        case bytes(), str():
            return value.hex() == plain
        case bytes(), list():
            # The dump contains the records in the array, a table its bytes.
            return bool(value) == bool(plain)
    return False


def bear_damage(folder, door, errors):
    """Checks that corrupt traces yield rows, or an error of these types with the file's name, in bounded memory. Returns the number of errors."""
    raised = 0

    def read(path, part):
        nonlocal raised
        try:
            return part()
        except errors as error:
            assert path.name in str(error), (path, error)
            raised += 1
            return {}

    for path in sorted(Path(folder).glob("damaged-*.mtf")):
        # Print the trace, so that the last line of output names it after a crash.
        print(path, flush=True)
        for table in read(path, functools.partial(door, path)).values():
            read(path, table)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        assert most < MOST, (path, most)
    return raised
