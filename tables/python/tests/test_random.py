"""Random traces of random formats; dev/scripts/random-traces writes them."""

import functools
import os
import subprocess
import sys

import hatf
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "dev/test-support"))
import random_tables  # noqa: E402


@pytest.fixture(scope="module")
def folder():
    """Returns the directory of the traces, which dev/scripts/python-wheel creates."""
    if "METATF_RANDOM_TRACES" not in os.environ:
        pytest.skip("METATF_RANDOM_TRACES names no folder that dev/scripts/random-traces has made")
    return os.environ["METATF_RANDOM_TRACES"]


def door(path):
    trace = hatf.open(path, dtd=path.with_suffix(".dtd"))
    return {name: functools.partial(rows, trace, name) for name in trace.keys()}


def rows(trace, name):
    return trace[name].column_names, [tuple(row) for row in trace[name]]


def test_values_are_those_of_the_dump(folder):
    values, refused = random_tables.compare(folder, door)
    assert values > 5_000 and refused > 20


def test_damaged_traces(folder):
    """Reads damaged traces in a separate process. If one kills it, the last line of output is the trace."""
    program = "import sys; sys.path[:0] = sys.argv[2:]; import hatf, random_tables, test_random; print(random_tables.bear_damage(sys.argv[1], test_random.door, (hatf.Error,)))"
    command = [sys.executable, "-c", program, folder, str(ROOT / "dev/test-support"), str(ROOT / "tables/python/tests")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr)
    assert int(done.stdout.splitlines()[-1]) > 50
