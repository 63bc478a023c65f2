"""Records programs with stacks and counts the complete stacks: a table for docs/results.md.

A stack is complete if its outermost frame is in a function that never returns, such as `_start` or `clone` according to their unwind
information. If a program does not end as it does without the recorder, the exit status is 1.
"""
import re
import subprocess

from . import programs
from .common import PYTHON, answer, folder, head, missing, row, write

OPTIONS = programs.OPTIONS
# Maximum number of frames that hatf records by default.
DEPTH = 64

PANDAS = """
import pandas as pd
words = [f"name{n % 97}" for n in range(20000)]
orders = pd.DataFrame({"name": words, "amount": range(20000), "price": [n % 13 / 4 for n in range(20000)]})
people = pd.DataFrame({"name": [f"name{n}" for n in range(97)], "city": [f"city{n % 7}" for n in range(97)]})
joined = orders.merge(people, on="name")
joined["total"] = joined.amount * joined.price
by_city = joined.groupby("city").total.agg(["sum", "mean", "count"])
joined["initial"] = joined.name.str.slice(0, 5).str.upper()
print(by_city.round(2).to_csv())
print(joined.initial.value_counts().head(3).to_csv())
"""

LUA = """
local t = {}
for i = 1, 200000 do t[i % 997] = (t[i % 997] or "") .. string.char(65 + i % 26); if i % 50 == 0 then t[i % 997] = nil end end
print(#t)
"""

JAVA = """
import java.util.*;
public class Words {
    public static void main(String[] a) {
        Map<String, Integer> counts = new HashMap<>();
        for (int i = 0; i < 400000; i++) counts.merge("word" + i % 5000, 1, Integer::sum);
        System.out.println(counts.size());
    }
}
"""

CHOSEN = {"perl", "gawk", "python3, four threads", "sqlite3", "g++, one file", "node", "a C++ program, four threads", "a Rust program, four threads"}


def prepare():
    """Creates inputs in the working directory. Yields names, commands and recording options."""
    for name, text in (("orders.py", PANDAS), ("words.lua", LUA), ("Words.java", JAVA)):
        write(name, text)
    for name, command, _ in programs.prepare():
        if name in CHOSEN:
            yield name, command, []
    flags = ["-O2", "-pthread", "-Wl,-z,max-page-size=0x200000", "-Wl,-z,separate-code"]
    if not missing("g++") and subprocess.run(["g++", *flags, "-o", "huge", "threads.cc"]).returncode == 0:
        yield "the C++ program, linked for pages of 2 MiB", ["./huge"], []
    if subprocess.run([PYTHON, "-c", "import pandas"], capture_output=True).returncode == 0:
        yield "pandas", [PYTHON, "orders.py"], []
        yield "pandas, --python=objects", [PYTHON, "orders.py"], ["--python=objects"]
    else:
        missing("pandas")
    yield "luajit", ["luajit", "words.lua"], []
    yield "java", ["java", "Words.java"], []


def ends(module, known={}):
    """Returns the address ranges of the functions in a file that never return."""
    if module not in known:
        said = subprocess.run(["readelf", "--debug-dump=frames", module], capture_output=True, text=True, errors="replace").stdout
        known[module], function, entry, endless = [], None, None, set()
        for line in said.splitlines():
            match = re.match(r"([0-9a-f]+) \S+ \S+ (?:CIE|FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))", line)
            if match:
                entry, function = match[1], (int(match[3], 16), int(match[4], 16)) if match[2] else None
                if match[2] in endless:
                    known[module].append(function)
            elif re.search(r"DW_CFA_undefined: r(16|30)\b", line):
                # The rule is in the FDE of one function, or in a CIE shared by several functions.
                known[module].append(function) if function else endless.add(entry)
    return known[module]


def main(options):
    head("program", *(f"{column}:" for column in ("allocations", "stacks", "whole", f"cut at {DEPTH} frames", "of one frame", "not known")))
    failed = False
    with folder():
        for name, command, more in prepare():
            if not programs.chosen(name, options) or missing(command[0]):
                continue
            alone, _ = programs.run(*command)
            recorded, _ = programs.run(options.hatf, "record", "--stacks", *more, "-o", "trace.mtf", "--", *command)
            failed |= not programs.same(name, alone, recorded)
            sites = answer(options.hatf, "sites", "trace.mtf")["sites"]
            count = whole = cut = single = unknown = 0
            for site in sites:
                blocks, frames = site["allocated"]["blocks"], site["stack"]
                count += blocks
                if not frames:
                    unknown += blocks
                    continue
                # Frames of Python code have no module, so use the outermost native frame.
                last = next((frame for frame in reversed(frames) if frame["module"]), frames[-1])
                if any(first <= last["offset"] <= end for first, end in ends(last["module"])):
                    whole += blocks
                elif len(frames) >= DEPTH:
                    cut += blocks
                single += blocks if len(frames) == 1 else 0
            shares = (f"{100 * blocks / max(count, 1):.1f} %" for blocks in (whole, cut, single, unknown))
            row(name, f"{count:,}", f"{len(sites):,}", *shares)
    return int(failed)
