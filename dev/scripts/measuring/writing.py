"""Counts the instructions per record of `hatf convert` from 32-byte records to heap.dtd, by part: a table for docs/performance.md.

callgrind counts them on one CPU. An instruction belongs to the part that contains its source: inlined code counts where it was written, and
standard library code where it is called. The rest (process startup, copies of memory) is `other`.
"""
import os
import re

from .common import folder, head, missing, row, run

OPTIONS = {
    "traces": {"nargs": "+", "metavar": "TRACE", "help": "records of 32 bytes (raw32), compressed by zstd or not"},
    "--records": {"type": int, "default": 400_000, "help": "records of each trace (default: 400,000)"},
    "--preset": {"action": "append", "choices": ["fast", "default", "archive"], "help": "only this preset"},
    "--functions": {"action": "store_true", "help": "also the functions that take most, of the last trace"},
}

RECORD = 32
# A line of callgrind_annotate belongs to the first part whose pattern matches.
PARTS = {
    "model": r"metatf/src/predict|metatf::predict",
    "container": r"metatf-container/src|metatf_container|zstd|ZSTD|HUF_|FSE_|HIST_|lz4_flex",
    "parse": r"heap/hatf-trace/src/forms|hatf_trace::forms",
    "encoding": r"metatf/src|heap/hatf-trace/src/heap|metatf::|hatf_trace::heap",
    "other": r"",
}
COUNTED = re.compile(r"^ *([0-9,]+) \([^)]*\)  (.*)$")


def part(place):
    """Returns the part of a `file:function [object]`. The file decides if it belongs to this project, otherwise the function."""
    file, _, function = place.partition(":")
    known = file if re.search("metatf|hatf", file.rpartition("/src/")[0].rpartition("/")[2]) else function
    return next(name for name, pattern in PARTS.items() if re.search(pattern, known))


def counts(hatf, trace, preset):
    """Returns the number of instructions by `file:function [object]`."""
    one = {"preexec_fn": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})}
    run("valgrind", "--tool=callgrind", "--callgrind-out-file=counts", hatf, "convert", "--preset", preset, trace, "trace.mtf", **one)
    lines = run("callgrind_annotate", "--threshold=100", "--auto=no", "counts").decode().splitlines()
    found = [COUNTED.match(line) for line in lines]
    return {match[2]: int(match[1].replace(",", "")) for match in found if match and "PROGRAM TOTALS" not in match[2]}


def main(options):
    if missing("valgrind") or missing("zstd"):
        return
    traces = {os.path.basename(path).split(".")[0]: os.path.abspath(path) for path in options.traces}
    with folder():
        for name, path in traces.items():
            run("sh", "-c", 'zstd -dcf "$0" | head -c "$1" > "$2"', path, str(options.records * RECORD), f"{name}.raw32")
        head("preset", "trace", *(f"{name}:" for name in PARTS), "sum:", "bytes a record:")
        for preset in options.preset or ["default", "fast", "archive"]:
            sums = []
            for name in traces:
                records = os.path.getsize(f"{name}.raw32") / RECORD
                places = counts(options.hatf, f"{name}.raw32", preset)
                by_part = [sum(n for place, n in places.items() if part(place) == of) / records for of in PARTS]
                sums.append([*by_part, sum(by_part), os.path.getsize("trace.mtf") / records])
                line(preset, name, sums[-1])
            line(preset, "mean", [sum(column) / len(sums) for column in zip(*sums)])
        if options.functions:
            head("function", "part", "instructions a record:")
            for place, n in sorted(places.items(), key=lambda item: -item[1])[:60]:
                row(f"`{place}`", part(place), f"{n / records:.1f}")


def line(preset, name, figures):
    row(preset, name, *(f"{figure:.0f}" for figure in figures[:-1]), f"{figures[-1]:.3f}")
