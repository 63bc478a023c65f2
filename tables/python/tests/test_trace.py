"""Reading traces record by record, DTDs, and writing."""

import array
import random

import hatf
import pytest
from conftest import JOBS, write_jobs


def test_records_are_named_tuples(jobs):
    with hatf.open(jobs) as t:
        records = list(t)
        assert [type(r).__name__ for r in records] == ["submit", "submit", "done", "done"]
        assert records[0] == (5, 1, "resize a.png")
        assert records[3].status == 3 and records[3]._fields == ("time", "job", "status")
        assert list(t) == records  # iterates from the beginning again
        assert set(t.keys()) == {"submit", "done"} and "done" in t and "x" not in t


def test_types_are_matched(jobs):
    with hatf.open(jobs) as t:
        assert t.types["done"].__doc__ == "A job ended."
        found = [r for r in t if type(r).__name__ == "done"]
    assert len(found) == 2


def test_closed(jobs):
    with hatf.open(jobs) as t:
        pass
    with pytest.raises(ValueError, match="closed"):
        iter(t)
    with pytest.raises(ValueError, match="closed"):
        t["done"]


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        hatf.open(tmp_path / "none.mtf")
    assert raised.value.filename == str(tmp_path / "none.mtf")
    with pytest.raises(IsADirectoryError):
        hatf.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        hatf.scan(str(tmp_path / "*.mtf"))
    with pytest.raises(FileNotFoundError):
        hatf.heap(tmp_path / "none.mtf")
    with pytest.raises(FileNotFoundError):
        hatf.Dtd(tmp_path / "none.dtd")


def test_no_trace(tmp_path):
    path = tmp_path / "text.mtf"
    path.write_text("no trace\n" * 10)
    with pytest.raises(hatf.Error, match="text.mtf") as raised:
        hatf.open(path)
    assert raised.value.file == str(path)


def test_dtd_errors_have_places():
    with pytest.raises(hatf.Error, match=r"<text>:1:") as raised:
        hatf.Dtd("section s 1 { x: (tag, n) { tag.value = 4; } }")
    assert isinstance(raised.value, ValueError)
    with pytest.raises(hatf.Error):
        hatf.Dtd("section")


def test_dtd():
    dtd = hatf.Dtd(JOBS)
    assert [r.name for r in dtd.records] == ["submit", "done"]
    assert dtd.doc is None or "job queue" in dtd.doc
    assert dtd["queue.done"].tag == 5 and "done" in dtd and "gone" not in dtd
    with pytest.raises(KeyError, match="submit, done"):
        dtd["gone"]
    assert "<table>" in dtd._repr_html_() and "&lt;" not in dtd._repr_html_()
    assert [s.name for s in hatf.Dtd("heap.dtd").sections][0] == "heap"


KINDS = """
section s 1 {
    all: (tag, a, f, b, level, bits, vfield, id, count, count*n, box, text) {
        tag.value = 4;
        a.width = 8; a.interpretation = none; a.format = "signed";
        f.width = 8; f.interpretation = none; f.format = "f64";
        b.width = 1; b.interpretation = none; b.format = "bool";
        level.width = 1; level.interpretation = none; level.values = "0 low, 1 high";
        bits.width = 1; bits.interpretation = none; bits.flags = "0 read, 1 write";
        id.width = 16; id.interpretation = none; id.format = "uuid";
        count.width = 1; count.interpretation = none;
        n.width = 2; n.interpretation = none;
        text.width = 1; text.interpretation = sectionOffset 2;
    }
    box: (x, y) { x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none; }
}
section texts 2 { string: (vfield) { vfield.data.format = "utf8"; } }
"""


def random_row(draw):
    return dict(
        a=draw.randrange(-(2**63), 2**63),
        f=draw.choice([0.0, -1.5, float("inf"), 1e300]),
        b=draw.random() < 0.5,
        level=draw.choice(["low", "high"]),
        bits=draw.choice([[], ["read"], ["read", "write"]]),
        vfield=draw.randbytes(draw.randrange(5)),
        id="00112233-4455-6677-8899-aabbccddeeff",
        n=[draw.randrange(65536) for _ in range(draw.randrange(4))],
        box={"x": draw.randrange(256), "y": draw.randrange(256)},
        text=draw.choice(["main", "größe", "", "a" * 200]),
    )


def test_values_of_all_kinds(tmp_path):
    draw = random.Random(7)
    try:
        dtd = hatf.Dtd(KINDS)
    except hatf.Error as error:
        pytest.fail(str(error))
    rows = [random_row(draw) for _ in range(300)]
    path = tmp_path / "kinds.mtf"
    with hatf.Writer(dtd, path) as w:
        for row in rows:
            w.write("all", **(row | {"bits": "|".join(row["bits"]) or 0}))
    with hatf.open(path) as t:
        records = list(t)
        table = list(t["all"].columns(["a", "f", "b", "level", "bits", "vfield", "id", "n", "text"]))
        boxes = list(t["all"].columns(["box.x", "box.y"]))
    assert len(records) == len(rows)
    for row, record, cells, box in zip(rows, records, table, boxes, strict=True):
        for name, value in row.items():
            got = getattr(record, name)
            assert (got._asdict() if name == "box" else got) == value, name
        for name in cells._fields:
            assert getattr(cells, name) == row[name], name
        assert tuple(box) == tuple(row["box"].values())


def test_a_write_that_does_not_fit(tmp_path):
    path = tmp_path / "jobs.mtf"
    with pytest.raises(hatf.Error, match="record done: .*status"):
        with hatf.Writer(hatf.Dtd(JOBS), path) as w:
            w.write("done", time=1, job=1)
    assert not path.exists() and not list(tmp_path.iterdir())
    with hatf.Writer(hatf.Dtd(JOBS), path) as w:
        with pytest.raises(hatf.Error, match="no field `x`"):
            w.write("done", time=1, job=1, status=1, x=2)
        with pytest.raises(KeyError, match="submit, done"):
            w.write("gone")
        with pytest.raises(TypeError):
            w.write("done", time=object(), job=1, status=1)
        with pytest.raises(hatf.Error, match="64 bits"):
            w.write("done", time=2**64, job=1, status=1)
        w.write("done", time=1, job=1, status=1)
    assert len(list(hatf.open(path))) == 1
    with pytest.raises(ValueError, match="closed"):
        w.write("done", time=1, job=1, status=1)


def test_an_existing_file_stays_where_writing_fails(jobs):
    before = jobs.read_bytes()
    with pytest.raises(RuntimeError):
        with hatf.Writer(hatf.Dtd(JOBS), jobs) as w:
            w.write("done", time=1, job=1, status=1)
            raise RuntimeError("stop")
    assert jobs.read_bytes() == before


def test_batches(tmp_path, jobs):
    with hatf.open(jobs) as t:
        done = t["done"].columns(["time", "job", "status"])
        path = tmp_path / "copy.mtf"
        with hatf.Writer(t.schema, path) as w:
            w.write_batch("done", done)
            w.write_batch("done", {"time": [40, 41], "job": [1, 2], "status": [0, 0]})
            with pytest.raises(ValueError, match="2 values|1 values"):
                w.write_batch("done", {"time": [40, 41], "job": [1], "status": [0, 0]})
    with hatf.open(path) as t:
        assert [tuple(r) for r in t] == [(30, 1, 0), (31, 2, 3), (40, 1, 0), (41, 2, 0)]


def test_scan(tmp_path):
    for name in ("a.mtf", "b.mtf"):
        write_jobs(tmp_path / name)
    files = hatf.scan(str(tmp_path / "*.mtf"))
    assert len(files) == 2
    rows = list(files["done"].columns(["file", "status"]))
    assert [(r.file[-5:], r.status) for r in rows] == [("a.mtf", 0), ("a.mtf", 3), ("b.mtf", 0), ("b.mtf", 3)]
    assert files["done"].count() == 4
    assert [r.file[-5:] for r in files["done"].columns(["file"]).where("status == 3")] == ["a.mtf", "b.mtf"]
    with hatf.Writer(hatf.Dtd("section s 1 { done: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }"), tmp_path / "c.mtf") as w:
        w.write("done", n=1)
    with pytest.raises(hatf.Error, match="c.mtf.*columns of table"):
        list(hatf.scan(str(tmp_path / "*.mtf"))["done"])


def test_keywords_are_names(tmp_path):
    dtd = hatf.Dtd("section s 1 { class: (tag, import) { tag.value = 4; import.width = 1; import.interpretation = none; } }")
    with hatf.Writer(dtd, tmp_path / "k.mtf") as w:
        w.write("class", **{"import": 3})
    (record,) = hatf.open(tmp_path / "k.mtf")
    assert record.import_ == 3 and type(record).__name__ == "class_"


COLUMNS = """
section s 1 {
    sample: (tag, time, change, real, flag, color, name, vfield, data) {
        tag.value = 4;
        time.width = 8; time.interpretation = delta 0;
        change.width = 4; change.interpretation = none; change.format = "signed";
        real.width = 8; real.interpretation = none; real.format = "f64";
        flag.width = 1; flag.interpretation = none; flag.format = "bool";
        color.width = 1; color.interpretation = none; color.values = "0 red, 1 green";
        name.width = 4; name.interpretation = sectionOffset 2;
        vfield.length.width = 1; vfield.data.format = "utf8";
        data.width = bytes 3; data.interpretation = none;
    }
} section names 2 { entry: vfield { vfield.data.format = "utf8"; } }
"""


def test_batches_by_columns_are_rows(tmp_path):
    """Columns of a single type, single rows, and columns with mixed types all produce the same trace."""
    columns = {
        "time": [5, 2**63, 2**64 - 1, 7],
        "change": [-1, 0, 2**31 - 1, -(2**31)],
        "real": [0.5, float("inf"), float("nan"), -0.0],
        "flag": [True, False, True, True],
        "color": ["red", "green", "red", "green"],
        "name": ["one", "two", "one", ""],
        "vfield": ["a", "", "ä", "d"],
        "data": [b"abc", b"\0\0\0", b"xyz", b"\xff\xfe\xfd"],
    }

    def write(path, put):
        with hatf.Writer(hatf.Dtd(COLUMNS), path) as w:
            put(w)
        return path.read_bytes()

    def rows(w):
        for values in zip(*columns.values()):
            w.write("sample", **dict(zip(columns, values)))

    expected = write(tmp_path / "rows.mtf", rows)
    assert write(tmp_path / "lists.mtf", lambda w: w.write_batch("sample", columns)) == expected
    tuples = {name: tuple(values) for name, values in columns.items()}
    assert write(tmp_path / "tuples.mtf", lambda w: w.write_batch("sample", tuples)) == expected
    # Columns with mixed booleans and numbers are not converted as columns; rows accept the values.
    mixed = columns | {"flag": [1, 0, True, True]}
    assert write(tmp_path / "mixed.mtf", lambda w: w.write_batch("sample", mixed)) == expected
    buffers = columns | {"time": array.array("Q", columns["time"]), "change": array.array("i", columns["change"]), "real": array.array("d", columns["real"])}
    assert write(tmp_path / "buffers.mtf", lambda w: w.write_batch("sample", buffers)) == expected
    with hatf.open(tmp_path / "rows.mtf") as t:
        table = t["sample"].columns(list(columns))
        assert write(tmp_path / "arrow.mtf", lambda w: w.write_batch("sample", table)) == expected
        for library in ("pyarrow", "polars"):
            try:
                module = pytest.importorskip(library)
            except pytest.skip.Exception:
                continue
            copy = module.table(table) if library == "pyarrow" else module.DataFrame(table)
            assert write(tmp_path / f"{library}.mtf", lambda w: w.write_batch("sample", copy)) == expected


def test_batches_that_do_not_fit(tmp_path):
    good = {"time": [1, 2], "job": [1, 2], "status": [0, 0]}
    with hatf.Writer(hatf.Dtd(JOBS), tmp_path / "jobs.mtf") as w:
        for wrong, error in [
            ({"time": [1, -2]}, "time"),
            ({"time": [1, 2**64]}, "64 bits"),
            ({"time": [1, 2.5]}, "time"),
            ({"time": [1.0, 2.0]}, "time"),
            ({"time": ["a", "b"]}, "time"),
            ({"status": [0, None]}, "status"),
            ({"x": [1, 2]}, "x"),
        ]:
            with pytest.raises(hatf.Error, match=error):
                w.write_batch("done", good | wrong)
        with pytest.raises(hatf.Error, match="status"):
            w.write_batch("done", {"time": [1, 2], "job": [1, 2]})
        with pytest.raises(KeyError, match="submit, done"):
            w.write_batch("gone", good)
