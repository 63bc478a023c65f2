"""Corrupt and hostile traces raise an exception, do not crash, and use limited memory."""

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time

import hatf
import pytest
from conftest import write_jobs

CASES = int(os.environ.get("METATF_TEST_FACTOR", "1")) * 400


def everything(path):
    """Reads a file in every way."""
    with hatf.open(path) as t:
        for _ in t:
            pass
        for name in t.keys():
            t[name].count()
            for _ in t[name].columns(t[name].column_names):
                pass


def damage(draw, data):
    data = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        kind = draw.randrange(4)
        at = draw.randrange(len(data)) if data else 0
        if kind == 0 and data:
            data[at] = draw.randrange(256)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data[at:at] = draw.randbytes(draw.randrange(9))
        else:
            del data[at : at + draw.randrange(9)]
    return bytes(data)


@pytest.mark.parametrize("which", ["jobs", "heap"])
def test_damaged_traces(which, request, tmp_path):
    good = request.getfixturevalue(which).read_bytes()
    draw = random.Random(2000)
    path = tmp_path / "damaged.mtf"
    raised = 0
    for case in range(CASES):
        path.write_bytes(damage(draw, good))
        try:
            everything(path)
            if which == "heap" and case % 4 == 0:
                hatf.heap(path).report()
                hatf.heap(path).objects().count()
                hatf.heap(path).sites().count()
        except hatf.Error as error:
            raised += 1
            assert "damaged.mtf" in str(error), error
        except KeyError as error:
            pytest.fail(f"case {case}: {error}")
    # Checksums detect nearly all changes.
    assert raised > CASES // 2


def test_random_bytes(tmp_path):
    draw = random.Random(2001)
    path = tmp_path / "random.mtf"
    for length in range(0, 300, 3):
        path.write_bytes(b"MTF\0"[: draw.randrange(5)] + draw.randbytes(length))
        with pytest.raises(hatf.Error, match="random.mtf"):
            everything(path)


CUT = """
import hatf, subprocess, sys
path, threads, ways = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def cut():
    subprocess.run(["truncate", "--size=3000000", path], check=True)
try:
    with hatf.open(path) as t:
        rows = iter(t if ways == "records" else t["r"].threads(threads))
        next(rows)
        cut()
        print(sum(1 for _ in rows))
except hatf.Error as error:
    print("error:", error)
"""


@pytest.mark.parametrize("way", ["records", "1", "2"])
def test_cut_while_it_is_read(tmp_path, way):
    """If another process truncates the file, there is an exception and no signal."""
    dtd = hatf.Dtd("section s 1 { r: (tag, n) { tag.value = 4; n.width = 8; n.interpretation = none; } }")
    path = tmp_path / "long.mtf"
    draw = random.Random(2002)
    with hatf.Writer(dtd, path) as w:
        for _ in range(16):
            w.write_batch("r", {"n": [draw.getrandbits(63) for _ in range(100_000)]})
    assert path.stat().st_size > 10_000_000
    threads = "1" if way == "records" else way
    done = subprocess.run([sys.executable, "-c", CUT, str(path), threads, way], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.startswith(f"error: {path}: "), done.stdout


def test_errors_reach_libraries(jobs):
    pa = pytest.importorskip("pyarrow")
    data = bytearray(jobs.read_bytes())
    for at in range(len(data) // 2, len(data)):
        data[at] ^= 0x55
    jobs.write_bytes(data)
    with pytest.raises((hatf.Error, pa.ArrowException, OSError), match="jobs.mtf"):
        with hatf.open(jobs) as t:
            pa.table(t["done"])


def test_memory_is_bounded(tmp_path):
    """A trace with many items is read with at most 1 GiB of data."""
    dtd = hatf.Dtd("section s 1 { r: (tag, count, count*n) { tag.value = 4; count.width = 8; count.interpretation = none; n.interpretation = default 0; n.width = 1; } }")
    path = tmp_path / "many.mtf"
    with hatf.Writer(dtd, path) as w:
        for _ in range(100):
            w.write("r", count=10000, n=[0] * 10000)
    program = (
        "import hatf, sys\n"
        "with hatf.open(sys.argv[1]) as t:\n"
        "    print(sum(len(r.n) for r in t), t['r'].count())\n"
    )
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, preexec_fn=limit, cwd=tmp_path)
    assert done.stdout.split() == ["1000000", "100"], done.stderr


def test_other_threads_run_meanwhile(perl):
    """The interpreter is released while a report is built."""
    counted, ended = 0, threading.Event()

    def work():
        hatf.heap(perl).ask("whatif", now="glibc")
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not ended.is_set():
        counted += 1
        time.sleep(0)
    thread.join()
    assert counted > 3


def test_ctrl_c(perl, tmp_path):
    """Ctrl-C ends a loop over a trace that would never end."""
    program = (
        "import hatf, sys\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    while True:\n"
        "        hatf.heap(sys.argv[1]).report()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    running = subprocess.Popen([sys.executable, "-c", program, str(perl)], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert running.stdout.readline() == "ready\n"
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    assert running.stdout.read() == "interrupted\n"
    assert running.wait() == 0
