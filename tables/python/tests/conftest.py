"""Creates the traces for tests, each in its own directory."""

import os
import pathlib

import hatf
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]

JOBS = """
// What a job queue did.
time.width = 4; time.interpretation = delta 0; time.unit = "ms";
section queue 1 {
    // A job was put into the queue.
    submit: (time, job, vfield) {
        tag.value = 4;
        job.interpretation = stride 0 1;
        vfield.data.format = "utf8";
    }
    // A job ended.
    done: (time, job, status) {
        tag.value = 5;
        job.width = 1; job.interpretation = none;
        status.width = 1; status.interpretation = none;
    }
}
"""


def write_jobs(path):
    """Writes a trace with four records."""
    with hatf.Writer(hatf.Dtd(JOBS), path) as w:
        w.write("submit", time=5, job=1, vfield="resize a.png")
        w.write("submit", time=9, job=2, vfield="resize b.png")
        w.write("done", time=30, job=1, status=0)
        w.write("done", time=31, job=2, status=3)


SERVER = """
time.width = 4; time.interpretation = none; time.unit = "us"; time.role = "time";
thread.width = 1; thread.interpretation = none; thread.role = "thread";
id.width = 1; id.interpretation = none; id.role = "span";
section server 1 {
    // A request came in.
    request: (time, thread, id, vfield) {
        tag.value = 4; tag.span = "begin";
        vfield.data.format = "utf8";
    }
    // It was answered.
    answered: (time, id) { tag.value = 5; tag.span = "end"; }
    // Something is odd.
    odd: (time, thread, code) {
        tag.value = 6;
        code.width = 1; code.interpretation = none;
    }
}
"""


def write_server(path):
    """Writes two requests, only one of which is answered, and an event."""
    with hatf.Writer(hatf.Dtd(SERVER), path) as w:
        w.write("request", time=5, thread=1, id=1, vfield="/index.html")
        w.write("request", time=7, thread=2, id=2, vfield="/big.zip")
        w.write("odd", time=8, thread=2, code=3)
        w.write("answered", time=35, id=1)


# Two blocks, one of which is freed.
HEAP = [
    ("malloc", {"size": 100, "address": 0x10000}),
    ("malloc", {"size": 28, "address": 0x10080}),
    ("free", {"address": 0x10000}),
]


def write_heap(path):
    """Writes a heap trace without times and stacks."""
    with hatf.Writer("heap.dtd", path) as w:
        dtd = hatf.Dtd("heap.dtd")
        for name, given in HEAP:
            fields = {f.name: 0 for f in dtd[name].fields}
            w.write(name, **(fields | given))


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.mtf"
    write_jobs(path)
    return path


@pytest.fixture
def heap(tmp_path):
    path = tmp_path / "heap.mtf"
    write_heap(path)
    return path


@pytest.fixture(scope="session")
def perl():
    """Returns a heap trace of a real program."""
    return ROOT / "heap/hatf/tests/data/perl_hash.raw32.zst"


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Creates a directory with these traces and makes it the working directory."""
    write_jobs(tmp_path / "jobs.mtf")
    write_heap(tmp_path / "heap.mtf")
    write_server(tmp_path / "server.mtf")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_configure(config):
    # The repository contains a directory with the module's name.
    assert pathlib.Path(hatf.__file__).suffix == ".so" or "site-packages" in hatf.__file__, hatf.__file__
    assert os.path.isdir(ROOT / "tables/python")
