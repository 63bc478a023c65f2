"""Shared code of the measurements: inputs, missing programs, interleaved runs and tables."""
import contextlib
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
INPUTS = os.path.join(ROOT, "dev", "scripts", "recordings")
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")

ROUNDS = {"--rounds": {"type": int, "default": 5, "help": "how often each is run (default: 5)"}}
FOLDER = {"--folder": {"metavar": "DIR", "help": "where inputs, traces and answers go, and stay"}}

median = statistics.median_low


def missing(program):
    """Returns whether a program is not installed, and reports it if so."""
    if program and shutil.which(program):
        return False
    print(f"SKIPPED: {program or 'a program'} is not there", file=sys.stderr)
    return True


@contextlib.contextmanager
def folder(path=None):
    """Changes to a directory, or to a temporary one if `path` is not given."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as temporary:
        os.makedirs(path or temporary, exist_ok=True)
        os.chdir(path or temporary)
        try:
            yield os.getcwd()
        finally:
            os.chdir(before)


def write(name, text):
    """Writes a file in the working directory and returns its path."""
    with open(name, "w") as file:
        file.write(text)
    return os.path.abspath(name)


def pages(times):
    """Returns the text of the book's pages, repeated `times` times."""
    return "".join(open(path).read() for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))) * times


def run(*command, **options):
    """Runs a command, which must succeed, and returns its output."""
    return subprocess.run(command, **{"check": True, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **options}).stdout


def answer(*command):
    """Returns the parsed JSON output of a command."""
    return json.loads(run(*command, "--format", "json"))


def used(*command, **options):
    """Runs a command. Returns its exit status, the resource usage of all its processes, and the run time in seconds."""
    begin = time.monotonic()
    child = subprocess.Popen(command, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage, time.monotonic() - begin


def timed(*command, **options):
    """Runs a command. Returns the CPU time of all its processes and the run time, in seconds."""
    status, usage, seconds = used(*command, **options)
    if status:
        raise subprocess.CalledProcessError(status, command)
    return usage.ru_utime + usage.ru_stime, seconds


def in_turns(rounds, cases, measure):
    """Measures each case once per round and returns the results by case."""
    results = {case: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            results[case].append(measure(case))
    return results


def head(*columns):
    """Prints the header of a table. Columns whose names end in a colon are numeric."""
    row(*(column.removesuffix(":") for column in columns))
    row(*("---:" if column.endswith(":") else "---" for column in columns))


def row(*cells):
    """Prints a table row."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
