"""Tests of the examples in docstrings, and of the stubs."""

import doctest
import inspect
import pathlib
import re
import shutil
import subprocess
import sys

import hatf
import pytest
from conftest import ROOT


def documented():
    yield "hatf", hatf.__doc__
    for name, value in vars(hatf).items():
        if name.startswith("_") or not callable(value):
            continue
        yield name, value.__doc__
        if inspect.isclass(value):
            for inner, member in vars(value).items():
                if not inner.startswith("_"):
                    yield f"{name}.{inner}", member.__doc__


def test_all_is_documented():
    assert [name for name, doc in documented() if not doc] == []


@pytest.mark.parametrize("name,doc", [(name, doc) for name, doc in documented() if ">>>" in (doc or "")])
def test_docstring(name, doc, in_folder):
    test = doctest.DocTestParser().get_doctest(doc, {"hatf": hatf}, name, None, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=flags).run(test)
    assert result.failed == 0, name


def test_some_docstrings_have_examples():
    assert sum(">>>" in (doc or "") for _, doc in documented()) >= 6


def test_book(in_folder, perl):
    """The examples in the book run as written."""
    for library in ("polars", "duckdb", "pyarrow"):
        pytest.importorskip(library)
    shutil.copy(perl, in_folder / "perl.raw32.zst")
    page = (ROOT / "docs/python.md").read_text()
    blocks = re.findall(r"```pycon\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 6
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_stubs():
    pytest.importorskip("mypy")
    stubtest = [sys.executable, "-m", "mypy.stubtest", "hatf", "--ignore-missing-stub"]
    folder = pathlib.Path(hatf.__file__).parent
    done = subprocess.run(stubtest, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
