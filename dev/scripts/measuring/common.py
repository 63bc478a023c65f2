"""What measurements share: inputs, programs that may be missing, runs in turns, tables."""
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
    """Whether a program is not on this machine, which is said."""
    if program and shutil.which(program):
        return False
    print(f"SKIPPED: {program or 'a program'} is not there", file=sys.stderr)
    return True


@contextlib.contextmanager
def folder(path=None):
    """Works in a folder: a temporary one, if none is named."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as temporary:
        os.makedirs(path or temporary, exist_ok=True)
        os.chdir(path or temporary)
        try:
            yield os.getcwd()
        finally:
            os.chdir(before)


def write(name, text):
    """Writes a file of this folder; returns its path."""
    with open(name, "w") as file:
        file.write(text)
    return os.path.abspath(name)


def pages(times):
    """The text of the book's pages, several times."""
    return "".join(open(path).read() for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))) * times


def run(*command, **options):
    """Runs a command to its end, which has to be a good one; returns what it prints."""
    return subprocess.run(command, **{"check": True, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **options}).stdout


def answer(*command):
    """What a command prints as JSON."""
    return json.loads(run(*command, "--format", "json"))


def used(*command, **options):
    """Runs a command; returns its exit status, what the kernel says that it and all its processes used, and seconds of run time."""
    begin = time.monotonic()
    child = subprocess.Popen(command, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage, time.monotonic() - begin


def timed(*command, **options):
    """Runs a command; returns seconds of processor time, of it and of all its processes, and of run time."""
    status, usage, seconds = used(*command, **options)
    if status:
        raise subprocess.CalledProcessError(status, command)
    return usage.ru_utime + usage.ru_stime, seconds


def in_turns(rounds, cases, measure):
    """Measures each case once a round; returns the results of each."""
    results = {case: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            results[case].append(measure(case))
    return results


def head(*columns):
    """Prints the head of a table; columns whose names end in a colon are numbers."""
    row(*(column.removesuffix(":") for column in columns))
    row(*("---:" if column.endswith(":") else "---" for column in columns))


def row(*cells):
    """Prints a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
