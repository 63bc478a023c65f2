"""Measures the cost of recording in the program itself: two tables, by recorder and by option, for docs/results.md.

The figures are medians of the program's CPU time in excess of an unrecorded run, in nanoseconds per event. Runs are interleaved.
"""
import os
import shutil

from .common import INPUTS, ROUNDS, folder, head, in_turns, median, row, run

OPTIONS = ROUNDS
PAIRS = 4_000_000
# The loop's thread and its module are both named after its file.
SETTINGS = {
    "none": [],
    "`--sample 512KiB`": ["--sample", "512KiB"],
    "`--only-threads`, of another thread": ["--only-threads", "other"],
    "`--only-threads`, of this thread": ["--only-threads", "loop"],
    "`--only-modules`, of another module": ["--only-modules", "other"],
    "`--only-modules`, of this module": ["--only-modules", "loop"],
    "`--sizes-only`": ["--sizes-only"],
}


def own(*command):
    """Returns the CPU time that the loop measures itself, in nanoseconds."""
    run(*command, env={**os.environ, "LOOP_TIME": "time"})
    return int(open("time").read())


def main(options):
    recorders = {
        "nothing": [],
        "no stacks": [options.hatf, "record", "--quiet", "-o", "trace.mtf", "--"],
        "stacks": [options.hatf, "record", "--stacks", "--quiet", "-o", "trace.mtf", "--"],
    }
    if shutil.which("heaptrack"):
        recorders["heaptrack"] = ["heaptrack", "-o", "heaptrack.out"]
    with folder():
        run("cc", "-O2", "-pthread", "-o", "loop", f"{INPUTS}/loop.c")
        head("program", *(f"{name}:" for name in list(recorders)[1:]))
        for title, arguments in (("one thread", ["1"]), ("two threads", ["2"]), ("twelve deep", ["1", "8"])):
            loop = ["./loop", str(PAIRS), *arguments]
            times = in_turns(options.rounds, recorders, lambda name: own(*recorders[name], *loop))
            alone = median(times.pop("nothing"))
            row(f"malloc loop, {title}", *(f"{(median(all) - alone) / (2 * PAIRS):.1f}" for all in times.values()))

        def recorded(name):
            record = [options.hatf, "record", "--quiet", "--preset", "fast", *(SETTINGS.get(name) or []), "-o", f"{name}.mtf", "--"]
            return own(*(record if name else []), "./loop", str(PAIRS))

        print()
        head("options", "ns an event:", f"bytes of trace for {2 * PAIRS // 1_000_000} million events:")
        times = in_turns(options.rounds, [None, *SETTINGS], recorded)
        alone = median(times.pop(None))
        for name, all in times.items():
            row(name, f"{(median(all) - alone) / (2 * PAIRS):.0f}", os.path.getsize(f"{name}.mtf"))
