"""Measures the total cost of recording: a table for docs/results.md.

The figures are medians of interleaved runs: the CPU time of all processes in excess of an unrecorded run, in nanoseconds per event, and the
run time as a multiple of an unrecorded run. `fast` is hatf record --preset fast, `stacks` is --stacks. `shim` is a minimal recorder. DHAT
runs once, and only its run time is listed. memray records only python3.
"""
import os
import re
import shutil
import subprocess
import sys
import threading
import time

from .common import INPUTS, ROUNDS, folder, head, in_turns, median, missing, row, run, timed, write

OPTIONS = ROUNDS
GAWK = "BEGIN { for (i = 0; i < 300000; i++) h[i % 9973] = h[i % 9973] i; print length(h) }"
CODE = "d = {str(i): [i] * 9 for i in range(200000)}; print(len(d))"
PERL = 'for (1 .. 600000) { $h{$_ % 99991} .= "$_," x 3 } print scalar(%h)'
SQL = ("create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000) "
       "insert into t select i, hex(i * 7919) from n; select count(distinct b) from t order by a;")
CPP = "#include <map>\n#include <regex>\n#include <string>\nstd::map<std::string, std::regex> all;\n"


def programs(python):
    """Yields programs and their commands."""
    for title, arguments in (("one thread", ["1"]), ("two threads", ["2"]), ("twelve deep", ["1", "8"])):
        yield f"malloc loop, {title}", ["./loop", "4000000", *arguments]
    yield "gawk", ["gawk", GAWK]
    yield "python3", [python, "-S", "-c", CODE]
    yield "perl", ["perl", "-e", PERL]
    yield "sqlite3", ["sqlite3", ":memory:", SQL]
    if not missing("g++"):
        said = [run("g++", "-print-prog-name=cc1plus"), run("gcc", "-print-multiarch")]
        cc1plus, machine = (text.decode().strip() for text in said)
        yield "g++'s cc1plus", [cc1plus, "-quiet", "-imultiarch", machine, "-D_GNU_SOURCE", write("program.cpp", CPP), "-o", "/dev/null"]
    yield "redis-server under load", ["redis-server", "--port", "7399", "--save", "", "--appendonly", "no"]


def load():
    """Sends requests to the server and then shuts it down. Only the server is measured."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    client = lambda *command: subprocess.run(["redis-cli", "-p", "7399", *command], **quiet).returncode
    for _ in range(200):
        if client("ping") == 0:
            break
        time.sleep(0.05)
    benchmark = ["timeout", "20", "redis-benchmark", "-p", "7399", "-n", "30000", "-t", "set,get,lpush,lrange_100"]
    subprocess.run(benchmark, **quiet)
    client("shutdown", "nosave")


def main(options):
    # `python3` itself may be a wrapper script of a version manager.
    python = run("python3", "-c", "import sys; print(sys.executable)").decode().strip()
    hatf = lambda *more: [options.hatf, "record", *more, "--quiet", "-o", "trace.mtf", "--"]
    tools = {"nothing": [], "shim": [], "fast": hatf("--preset", "fast"), "hatf": hatf(), "stacks": hatf("--stacks")}
    if shutil.which("heaptrack"):
        tools["heaptrack"] = ["heaptrack", "-o", "heaptrack.out"]
    if subprocess.run([python, "-c", "import memray"], stderr=subprocess.DEVNULL).returncode == 0:
        tools["memray"] = []
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    with folder() as here:
        run("cc", "-O2", "-pthread", "-o", "loop", f"{INPUTS}/loop.c")
        run("cc", "-O2", "-fPIC", "-shared", "-fno-builtin", "-o", "shim.so", f"{INPUTS}/shim.c")

        def measured(title, tool, command):
            """Returns CPU time and run time, or None if the program does not run with this tool."""
            variables = dict(environment)
            if tool == "shim":
                variables["LD_PRELOAD"] = f"{here}/shim.so"
            elif tool == "memray":
                if command[0] != python:
                    return None
                memray = ["run", "--quiet", "--force", "--native", "--trace-python-allocators", "--output", "memray.bin"]
                command = [python, "-m", "memray", *memray, "-c", command[-1]]
            elif tool == "dhat":
                command = ["valgrind", "--tool=dhat", "--dhat-out-file=dhat.out", *command]
            else:
                command = [*tools[tool], *command]
            served = threading.Thread(target=load) if title.startswith("redis") else None
            if served:
                served.start()
            try:
                return timed(*command, env=variables)
            except subprocess.CalledProcessError:
                # A program with another allocator may not run with the shim.
                print(f"{title} does not run in {tool}", file=sys.stderr)
                return None
            finally:
                if served:
                    served.join()

        others = list(tools)[1:]
        figures = [f"{tool}, {figure}:" for tool in others for figure in ("ns an event", "run time")]
        head("program", "events:", *figures, "DHAT, run time:")
        for title, command in programs(python):
            if missing(command[0]):
                continue
            served = threading.Thread(target=load) if title.startswith("redis") else None
            if served:
                served.start()
            said = run(options.hatf, "record", "-o", "trace.mtf", "--", *command, env=environment, stderr=subprocess.STDOUT)
            if served:
                served.join()
            events = int(re.search(rb"hatf: ([0-9,]+) records", said)[1].replace(b",", b""))
            times = in_turns(options.rounds, tools, lambda tool: measured(title, tool, command))
            cells = []
            times = {tool: [time for time in all if time] for tool, all in times.items()}
            middle = lambda tool, which: median(time[which] for time in times[tool])
            for tool in others:
                if times[tool]:
                    cells.append(f"{(middle(tool, 0) - middle('nothing', 0)) * 1e9 / events:.0f}")
                    cells.append(f"{middle(tool, 1) / middle('nothing', 1):.2f}")
                else:
                    cells += ["-", "-"]
            dhat = measured(title, "dhat", command) if shutil.which("valgrind") else None
            row(title, events, *cells, f"{dhat[1] / middle('nothing', 1):.0f}" if dhat else "-")
