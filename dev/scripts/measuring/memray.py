"""Compares `hatf record --python` with memray: bytes and blocks per line of a program, and CPU times, for docs/stacks.md.

    python3 -m venv venv && venv/bin/pip install memray pandas
    cargo build --release -p hatf
    venv/bin/python dev/scripts/measure memray

The Python interpreter that runs this script is the one measured; it must be version 3.11 to 3.13.
"""
import collections
import importlib.util
import os
import sys

from .common import INPUTS, ROUNDS, answer, folder, head, in_turns, median, row, run, timed, write

OPTIONS = {**ROUNDS, "--lines": {"default": "8000", "help": "lines that the program makes (default: 8000)"}}
ENVIRONMENT = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
PROGRAM = '''import sys


def lines(count):
    state = 12345
    for number in range(count):
        words = []
        for each in range(8):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            words.append("w%d" % (state >> 12 & 1023))
        yield " ".join(words)


def split(text):
    return text.split(" ")


class Entry:
    __slots__ = ("word", "count", "places")

    def __init__(self, word):
        self.word = word
        self.count = 0
        self.places = []

    def add(self, place):
        self.count += 1
        self.places.append(place)


def index(count):
    entries = {}
    for number, text in enumerate(lines(count)):
        for word in split(text):
            entry = entries.get(word)
            if entry is None:
                entry = entries[word] = Entry(word)
            entry.add(number * 1000 + 300)
    return entries


def report(entries):
    rows = sorted(entries.values(), key=lambda entry: (-entry.count, entry.word))
    buffer = bytearray(1 << 20)
    return [f"{entry.word} {entry.count} {sum(entry.places)}" for entry in rows]


print(len(report(index(int(sys.argv[1])))))
'''


def by_hatf(hatf, trace, file):
    """Returns bytes and blocks by line, for blocks whose innermost Python frame is in the file, and the total number of events."""
    found, lines = answer(hatf, "sites", trace), collections.defaultdict(lambda: (0, 0))
    for site in found["sites"]:
        python = [frame["functions"][0] for frame in site["stack"] if frame["address"] >> 47 == 1]
        if python and python[0]["file"] == file:
            size, blocks = lines[python[0]["line"]]
            lines[python[0]["line"]] = (size + site["allocated"]["bytes"], blocks + site["allocated"]["blocks"])
    return lines, found["trace"]["events"]


def by_memray(trace, file):
    import memray

    lines, ends = collections.defaultdict(lambda: (0, 0)), ("FREE", "MUNMAP", "MMAP", "PYMALLOC_FREE")
    for record in memray.FileReader(trace).get_allocation_records():
        if memray.AllocatorType(record.allocator).name in ends:
            continue
        stack = record.stack_trace(max_stacks=1)
        if stack and stack[0][1] == file:
            size, blocks = lines[stack[0][2]]
            lines[stack[0][2]] = (size + record.size, blocks + 1)
    return lines


def of_modes(hatf):
    """Returns the commands by program and mode, with Python's own arenas except where `hatf` replaces them."""
    names = ["documents", "recursion", *(["frame"] if importlib.util.find_spec("pandas") else [])]
    commands = {}
    for name in names:
        program = [f"{INPUTS}/{name}.py"]
        by_memray = [sys.executable, "-m", "memray", "run", "-q", "-f", "-o", "mode.bin"]
        by_hatf = lambda option: [hatf, "record", option, "-q", "-o", "mode.mtf", "--", sys.executable, *program]
        commands[name, "alone"] = [sys.executable, *program]
        commands[name, "`memray run`"] = [*by_memray, *program]
        commands[name, "`hatf record --python`"] = by_hatf("--python")
        commands[name, "`memray run --trace-python-allocators`"] = [*by_memray, "--trace-python-allocators", *program]
        commands[name, "`hatf record --python=objects`"] = by_hatf("--python=objects")
    return commands


def print_modes(times):
    names, modes = (list(dict.fromkeys(column)) for column in zip(*times))
    print()
    head("CPU seconds", *(f"`{name}.py`:" for name in names))
    for mode in modes:
        row(mode, *(f"{median(times[name, mode]):.2f}" for name in names))


def main(options):
    with folder():
        file = write("words.py", PROGRAM)
        program = [sys.executable, file, options.lines]
        hatf = lambda *more: [options.hatf, "record", "-q", *more, "-o", "words.mtf", "--", *program]
        by = lambda *more: [sys.executable, "-m", "memray", "run", "-q", "-f", *more, "-o", "words.bin", *program[1:]]
        commands = {
            "the program alone": program,
            "hatf record": hatf(),
            "hatf record --stacks": hatf("--stacks"),
            "memray run": by(),
            "memray run --native": by("--native"),
            "hatf record --python=objects --preset fast": hatf("--python=objects", "--preset", "fast"),
            "hatf record --python=objects": hatf("--python=objects"),
        }
        times = in_turns(options.rounds, commands, lambda name: timed(*commands[name], env=ENVIRONMENT)[0])
        modes = of_modes(options.hatf)
        by_mode = in_turns(options.rounds, modes, lambda case: timed(*modes[case])[0])
        run(*by(), env=ENVIRONMENT)
        (ours, events), theirs = by_hatf(options.hatf, "words.mtf", file), by_memray("words.bin", file)
    source = PROGRAM.splitlines()
    head("line:", "", "hatf, bytes:", "blocks:", "memray, bytes:", "blocks:")
    for line in sorted({*ours, *theirs}, key=lambda line: -max(ours[line][0], theirs[line][0]))[:16]:
        row(line, f"`{source[line - 1].strip()}`", *(f"{number:,}" for number in (*ours[line], *theirs[line])))
    print_modes(by_mode)
    alone = median(times["the program alone"])
    print(f"\n{events:,} events\n")
    head("", "seconds:", "nanoseconds an event:")
    for name, seconds in times.items():
        row(name, f"{median(seconds):.2f}", f"{(median(seconds) - alone) / events * 1e9:.0f}")
