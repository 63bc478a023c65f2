"""Heap traces."""

import json
import os
import shutil
import sys

import hatf
import pytest


def test_report(heap):
    page = hatf.heap(heap).report()
    found = page.to_dict()
    assert found["totals"]["allocs"] == 2 and found["totals"]["bytes"] == 128
    assert json.loads(page.to_json()) == found
    assert "PEAK" in str(page) and "<h2>" in page._repr_html_() and "PEAK" in page._repr_markdown_()


def test_real_program(perl):
    heap = hatf.heap(perl)
    report = heap.report().to_dict()
    assert report["totals"]["allocs"] > 1000
    assert heap.report().title == str(perl)
    assert heap.flame("allocated").to_svg().startswith("<svg") and "<svg" in heap.fragmentation()._repr_html_()
    fragmentation = heap.fragmentation("end").to_dict()
    assert [m["title"] for m in fragmentation["moments"]] == ["END"]
    assert heap.fragmentation(["peak", 5], page=65536).to_dict()["moments"][1]["tick"] == 5
    with pytest.raises(ValueError, match="peak, worst"):
        heap.fragmentation("never")
    with pytest.raises(ValueError, match="pages of 5"):
        heap.fragmentation(page=5)
    whatif = heap.ask("whatif", now="glibc").to_dict()
    assert len(whatif["predictions"]) > 3
    with pytest.raises(ValueError, match="jemalloc"):
        heap.ask("whatif", now="none")
    assert heap.flame("allocated").to_dict()["total"] == report["totals"]["bytes"]
    with pytest.raises(ValueError, match="measure"):
        heap.flame("x")
    assert heap.functions(project="main").to_dict()


def test_reports_are_of_one_trace(heap):
    with pytest.raises(ValueError, match="one trace"):
        hatf.heap(heap, heap).report()


def test_a_damaged_heap_trace(heap):
    heap.write_bytes(heap.read_bytes()[:-30])
    with pytest.raises(hatf.Error, match="heap.mtf"):
        hatf.heap(heap).report()


def test_no_recorder(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("HATF", raising=False)
    with pytest.raises(FileNotFoundError, match="cargo install"):
        hatf.record(["true"])
    with pytest.raises(ValueError):
        hatf.record([])


needs_hatf = pytest.mark.skipif(
    not os.environ.get("HATF") and not shutil.which("hatf"), reason="the command hatf is not there"
)


@needs_hatf
def test_record(tmp_path):
    heap = hatf.record([sys.executable, "-c", "x = [bytes(5000) for _ in range(100)]"], output=tmp_path / "t.mtf", stacks=True)
    assert heap.status == 0 and heap.report().to_dict()["totals"]["allocs"] > 1000
    assert "malloc" in hatf.open(tmp_path / "t.mtf")
    with pytest.raises(hatf.Error, match="no_such_program"):
        hatf.record([str(tmp_path / "no_such_program")], output=tmp_path / "u.mtf")
    failed = hatf.record([sys.executable, "-c", "raise SystemExit(3)"], output=tmp_path / "v.mtf")
    assert failed.status == 3


TABLES = ["objects", "sites", "stacks", "lifetimes", "timeline", "marks", "processes", "traces"]


def test_tables_have_the_figures_of_the_report(perl):
    heap = hatf.heap(perl)
    totals, peak = (heap.report().to_dict()[name] for name in ("totals", "peak"))
    objects = list(heap.objects().columns(["size", "end_kind"]))
    assert len(objects) == totals["allocs"] and sum(o.size for o in objects) == totals["bytes"]
    assert heap.objects().where("size >= 1000").count() == sum(o.size >= 1000 for o in objects)
    (site,) = heap.sites().columns(["allocations", "allocated_bytes"])
    assert site == (totals["allocs"], totals["bytes"])
    assert max(t.live_bytes for t in heap.timeline().columns(["live_bytes"])) == peak["bytes"]
    (trace,) = heap.traces()
    assert trace.trace == str(perl) and trace.peak_bytes == peak["bytes"]


def test_tables_of_several_traces(perl, heap):
    both = hatf.heap(perl, heap)
    counts = {name: getattr(both, name)().count() for name in TABLES}
    assert counts["traces"] == 2 and counts["objects"] > 1000
    assert hatf.scan([perl, heap]).heap().traces().count() == 2
    for name in TABLES:
        assert f"<th>{'trace'}</th>" in getattr(both, name)()._repr_html_()


@pytest.mark.parametrize("library", ["pyarrow", "polars", "duckdb", "pandas"])
def test_libraries_take_objects(library, perl):
    module = pytest.importorskip(library)
    objects = hatf.heap(perl).objects()
    total = hatf.heap(perl).report().to_dict()["totals"]["bytes"]
    if library == "pyarrow":
        got = sum(module.table(objects).column("size").to_pylist())
    elif library == "polars":
        got = module.DataFrame(objects)["size"].sum()
    elif library == "duckdb":
        got = module.sql("select sum(size)::bigint from objects").fetchall()[0][0]
    else:
        got = module.DataFrame.from_arrow(objects)["size"].sum()
    assert got == total
