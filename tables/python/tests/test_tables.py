"""Tables, and the libraries that accept them."""

import hatf
import pytest


def test_columns_and_conditions(jobs):
    with hatf.open(jobs) as t:
        done = t["done"]
        assert done.count() == 2 and done.name == "done"
        assert [r.status for r in done.where("job == 2")] == [3]
        assert [tuple(r) for r in done.columns(["status", "time"]).where("job > 1")] == [(3, 31)]
        assert [tuple(r) for r in done.where("time >= 30").where("time != 30").columns(["job"])] == [(2,)]
        assert len(list(done.head(1))) == 1 and len(list(done.where("job <= 2").head(1))) == 1
        assert [r.vfield for r in t["submit"].where('vfield == "resize b.png"')] == ["resize b.png"]
        with pytest.raises(KeyError, match="time, job, status"):
            done.columns(["x"])
        with pytest.raises(ValueError, match="unknown field `x`; available fields: @number, time, job, status"):
            done.where("x == 1")
        with pytest.raises(ValueError, match="expected `and`, `or` or the end of the condition"):
            done.where("job ~ 1")
        with pytest.raises(ValueError, match="cannot compare `job`"):
            done.where('job == "text"')
        with pytest.raises(KeyError, match="submit"):
            t["gone"]
        assert "<th>status</th>" in done._repr_html_()


def test_spans(in_folder):
    with hatf.open("server.mtf") as t:
        assert t.keys() == ["request", "answered", "odd", "spans", "events"]
        assert t["spans"].column_names == t.spans().column_names
        first, second = t.spans()
        assert (first.name, first.duration_ns, first.span, first.fields) == ("request", 30_000, 1, {"vfield": "/index.html"})
        assert (second.end_time, second.self_ns, second.fields) == (None, None, {"vfield": "/big.zip"})
        assert [tuple(r) for r in t.spans().where("duration_ns >= 1").columns(["span", "begin_time"])] == [(1, 5000)]
        (event,) = t.events().columns(["name", "time", "fields"])
        assert tuple(event) == ("odd", 8000, {"code": "3"})
        with pytest.raises(ValueError, match="unknown field `fields`"):
            t.spans().where('fields == "x"')
    with hatf.open("jobs.mtf") as t, pytest.raises(KeyError, match="does not define spans"):
        t.spans()
    both = hatf.scan(["server.mtf", "server.mtf"])
    assert [r.file for r in both.spans()] == ["server.mtf"] * 4 and both.events().count() == 2
    with pytest.raises(KeyError):
        hatf.scan("jobs.mtf").events()


def test_spans_in_libraries(in_folder):
    pl, pa, duckdb = (pytest.importorskip(name) for name in ("polars", "pyarrow", "duckdb"))
    with hatf.open("server.mtf") as t:
        spans = t.spans()
    assert pa.table(spans).column("fields").to_pylist() == [[("vfield", "/index.html")], [("vfield", "/big.zip")]]
    assert pl.DataFrame(spans)["duration_ns"].to_list() == [30_000, None]
    assert duckdb.sql("select fields['vfield'] from spans order by span").fetchall() == [("/index.html",), ("/big.zip",)]
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame.from_arrow(spans)["span"].to_list() == [1, 2]


def test_pyarrow(jobs):
    pa = pytest.importorskip("pyarrow")
    with hatf.open(jobs) as t:
        table = pa.table(t["done"])
        assert table.column("status").to_pylist() == [0, 3]
        field = pa.schema(t["done"]).field("time")
        assert field.metadata[b"unit"] == b"ms"
        assert pa.RecordBatchReader.from_stream(t["done"]).read_all() == table


def test_polars(jobs):
    pl = pytest.importorskip("polars")
    with hatf.open(jobs) as t:
        frame = pl.DataFrame(t["submit"])
    assert frame["vfield"].to_list() == ["resize a.png", "resize b.png"]


def test_polars_takes_dictionaries(jobs):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(hatf.scan([jobs, jobs])["done"])
    assert frame.height == 4 and frame["file"].n_unique() == 1


def test_pandas(jobs):
    pd = pytest.importorskip("pandas")
    with hatf.open(jobs) as t:
        frame = pd.DataFrame.from_arrow(t["done"])
    assert frame["status"].tolist() == [0, 3]


def test_duckdb(jobs):
    duckdb = pytest.importorskip("duckdb")
    with hatf.open(jobs) as t:
        done = t["done"]
        assert duckdb.sql("select sum(status)::int from done where job > 0").fetchall() == [(3,)]
        files = hatf.scan([jobs, jobs])["done"]
        assert duckdb.sql("select count(*), count(distinct file) from files").fetchall() == [(4, 1)]


def test_the_stream_outlives_the_trace(jobs):
    pa = pytest.importorskip("pyarrow")
    with hatf.open(jobs) as t:
        reader = pa.RecordBatchReader.from_stream(t["done"])
    del t
    assert reader.read_all().num_rows == 2
