"""Reading what a C program wrote with the emitter that `metatfc gen --lang c` generates."""

import os
import pathlib
import shutil
import subprocess

import hatf
import pytest
from conftest import ROOT

C = ROOT / "metatfc/tests/c"


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Compiles and runs the C program that writes every record of access.dtd."""
    metatfc = pathlib.Path(os.environ.get("HATF", "hatf")).with_name("metatfc")
    compiler = shutil.which("cc")
    if compiler is None or not metatfc.exists():
        pytest.skip("there is no C compiler, or HATF does not name a directory with metatfc")
    folder = tmp_path_factory.mktemp("c")
    subprocess.run([metatfc, "gen", "--lang", "c", C / "access.dtd", "-o", folder / "access.h"], check=True)
    subprocess.run([compiler, "-std=c11", "-DACCESS_POSIX", "-I", folder, C / "access.c", "-pthread", "-o", folder / "program"], check=True)
    subprocess.run([folder / "program", "every", "trace.mtf"], cwd=folder, check=True)
    return folder / "trace.mtf"


def test_python_reads_what_c_wrote(trace):
    with hatf.open(trace) as t:
        records = list(t)
    first, *requests, last = records
    assert first[:2] == (1_700_000_000_000_000, 258) and first[-1] == '2.1 "beta"'
    assert last[:2] == (1_800_000_000_000_000, 65_535) and last[-1] == ""
    assert len(requests) == 200
    for i, found in enumerate(requests, start=1):
        spans = [(("db", "cache", "render")[k], i + k, 1000 * k) for k in range(i % 4)]
        flags = [name for bit, name in enumerate(["has_user", "cached", "tls"]) if i % 8 >> bit & 1]
        assert (found.time, found.request_id) == (1_700_000_000_000_000 + 250 * i, i)
        assert (found.method, found.flags) == (("GET", "POST", "PUT", "DELETE")[i % 4], flags)
        assert found.path == ["/", "/index.html", "/caf\u00e9"][i % 3]
        assert found.status == ("not_found" if i % 5 == 0 else "ok")
        assert (found.took_us, found.bytes_out) == (3 * i, i * i)
        assert found.user == (70 * i if i % 2 else None)
        assert found.score == i / 4
        assert [tuple(span) for span in found[-1]] == spans
