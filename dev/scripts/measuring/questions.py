"""Answers ten questions about six programs for docs/results.md, and measures hatf, heaptrack, memray and massif.

Recordings and textual answers remain in --folder. The programs are those of the following that are installed: pdftotext (C++), rg (Rust;
--rg names a build with debug information), a pandas script (--python), a node script, varnishd (which uses jemalloc), and cmake with a
compiler, which starts many processes.
"""
import os
import shutil
import subprocess
import sys

from .common import FOLDER, INPUTS, ROOT, answer, folder, head, missing, row, run, timed, write

OPTIONS = {
    **FOLDER,
    "--python": {"default": "python3", "help": "a Python that has pandas, and memray"},
    "--rg": {"default": "rg", "help": "ripgrep"},
    "--only": {"action": "append", "help": "only this program; may be repeated"},
}

SOURCES = 12
SOURCE = """#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct row { int keys[16]; double value; char name[32]; };
static int compare(const void *a, const void *b) { return ((const struct row *)a)->keys[0] - ((const struct row *)b)->keys[0]; }
int run%(n)d(int count) {
    struct row *rows = calloc(count, sizeof *rows);
    for (int i = 0; i < count; i++) { rows[i].keys[i %% 16] = i * 7919 %% 1000; rows[i].value = sin(i); snprintf(rows[i].name, 32, "n%%d", i); }
    qsort(rows, count, sizeof *rows, compare);
    int result = rows[count / 2].keys[0] + (int)strlen(rows[count - 1].name);
    free(rows);
    return result;
}
"""


def build():
    """Configures a project of several C files and returns its build command, which starts many processes."""
    os.makedirs("project", exist_ok=True)
    for n in range(SOURCES):
        write(f"project/f{n}.c", SOURCE % {"n": n})
    calls = "".join(f"int run{n}(int); " for n in range(SOURCES)) + "int main(void) { return 0"
    write("project/main.c", calls + "".join(f" * run{n}(9)" for n in range(SOURCES)) + "; }\n")
    write("project/CMakeLists.txt", "cmake_minimum_required(VERSION 3.10)\nproject(many C)\nfile(GLOB all *.c)\nadd_executable(many ${all})\n"
          "target_link_libraries(many m)\n")
    run("cmake", "-G", "Ninja", "-S", "project", "-B", "project/build")
    return ["cmake", "--build", "project/build", "--clean-first"]


def programs(options):
    """Yields the selected programs: a name, a command prefix, and the command. The recorder goes between the last two."""
    return (program for program in all_programs(options) if not options.only or program[0] in options.only)


def all_programs(options):
    manual = "/usr/share/doc/valgrind/valgrind_manual.pdf.gz"
    if not missing("pdftotext") and os.path.exists(manual):
        with open("manual.pdf", "wb") as pdf:
            pdf.write(run("gzip", "-dc", manual))
        yield "pdftotext", [], ["pdftotext", "-layout", "manual.pdf", "manual.txt"]
    if not missing(options.rg):
        yield "rg", [], [options.rg, "-j2", "-c", "--sort", "path", "[a-z]+_(of|in) ", os.path.join(ROOT, "heap")]
    if not missing(options.python):
        yield "pandas", [], [options.python, f"{INPUTS}/frame.py"]
    if not missing("node"):
        yield "node", [], ["node", f"{INPUTS}/serve.js"]
    if not missing("varnishd"):
        # The script starts varnishd.
        yield "varnishd", ["sh", f"{INPUTS}/varnish.sh"], []
    if not missing("cmake") and not missing("ninja"):
        yield "cmake", [], build()


def kept(name, *command):
    """Runs a command and saves its output to a file. Returns its CPU time, or its exit status if it failed (124: timeout)."""
    with open(name, "w") as out, open(name + ".errors", "w") as errors:
        try:
            cpu, _ = timed("timeout", "--kill-after=5", "60", *command, stdout=out, stderr=errors)
        except subprocess.CalledProcessError as error:
            return f"exit {error.returncode}"
    return f"{cpu:.2f}"


def of_hatf(hatf, name, before, command):
    """Yields the command for each question. Records twice, because one question compares two recordings."""
    trace, again = f"{name}.mtf", f"{name}-2.mtf"
    for path in trace, again:
        shutil.rmtree(path.removesuffix(".mtf") + ".processes", ignore_errors=True)
    python = ["--python=objects"] if name == "pandas" else []
    record = lambda path: [*before, hatf, "record", "--stacks", *python, "--usable", "-q", "-o", path, "--", *command]
    yield "record", record(trace)
    yield "(record again)", record(again)
    processes = answer(hatf, "processes", trace)["processes"]
    # Process with the highest peak.
    most = max(processes, key=lambda process: process["peak"]["bytes"])
    worker = trace if most["number"] == 1 else os.path.join(f"{name}.processes", most["trace"])
    again = again if worker == trace else trace
    quarter = answer(hatf, "report", worker)["duration"] // 4000
    yield "1 growth", [hatf, "report", worker]
    yield "2 processes", [hatf, "processes", trace]
    yield "3 peak", [hatf, "sites", "--by", "peak", worker]
    yield "3 peak, inclusive", [hatf, "sites", "--by", "peak", "--inclusive", worker]
    yield "4 between", [hatf, "sites", "--live-between", f"{quarter}us..{3 * quarter}us", worker]
    yield "5 leaks", [hatf, "leaks", worker]
    yield "6 churn", [hatf, "churn", worker]
    yield "7 fragmentation", [hatf, "fragmentation", "--at", "worst", worker]
    yield "8 whatif", [hatf, "whatif", worker]
    yield "9 diff", [hatf, "diff", worker, again]
    yield "10 copied", [hatf, "sites", "--by", "copied", worker]
    yield "10 slack", [hatf, "sites", "--by", "slack", worker]
    yield "page", [hatf, "report", worker, "--html", f"{name}.html"]


def of_heaptrack(name, before, command):
    yield "record", [*before, "heaptrack", "-o", f"{name}.heaptrack", *command]
    data = next((f"{name}.heaptrack.{end}" for end in ["zst", "gz"] if os.path.exists(f"{name}.heaptrack.{end}")), None)
    if data:
        yield "3, 5, 6 print", ["heaptrack_print", data]


def of_massif(name, before, command):
    yield "record", [*before, "valgrind", "--tool=massif", "--detailed-freq=5", f"--massif-out-file={name}.massif", *command]
    yield "1, 3 ms_print", ["ms_print", f"{name}.massif"]


def of_memray(python, name, command):
    memray = [python, "-m", "memray"]
    yield "record", [*memray, "run", "--native", "-q", "-f", "-o", f"{name}.memray", *command[1:]]
    yield "3 tree", [*memray, "stats", "-n", "20", f"{name}.memray"]
    yield "4 temporal", [*memray, "flamegraph", "--temporal", "-f", "-o", f"{name}.temporal.html", f"{name}.memray"]
    yield "5 leaks", [*memray, "flamegraph", "--leaks", "-f", "-o", f"{name}.leaks.html", f"{name}.memray"]
    yield "6 temporary", [*memray, "flamegraph", "--temporary-allocations", "-f", "-o", f"{name}.temporary.html", f"{name}.memray"]


def main(options):
    with folder(options.folder):
        head("program", "tool", "question", "CPU s:", "bytes:")
        for name, before, command in programs(options):
            cpu, _ = timed(*before, *command)
            row(name, "-", "run", f"{cpu:.2f}", "")
            tools = {"hatf": of_hatf(options.hatf, name, before, command), "heaptrack": of_heaptrack(name, before, command),
                     "massif": of_massif(name, before, command)}
            if name == "pandas":
                tools["memray"] = of_memray(options.python, name, command)
            for tool, questions in tools.items():
                if tool in ["heaptrack", "massif"] and missing({"massif": "valgrind"}.get(tool, tool)):
                    continue
                for question, asked in questions:
                    file = f"{name}.{tool}.{question.split(' ')[0].strip(',')}-{question.split(' ')[-1]}.txt"
                    row(name, tool, question, kept(file, *asked), os.path.getsize(file))
                    sys.stdout.flush()
