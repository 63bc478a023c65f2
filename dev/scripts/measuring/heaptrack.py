"""Compares the calls that `hatf record --stacks` and heaptrack (1.4) count in deterministic programs: a table for docs/results.md.

The calls are read one by one from heaptrack's file, so no number is rounded: the number of allocations, blocks freed by the next call
(temporary), bytes never freed (leaked), and the peak. `hatf sites` and `hatf convert` provide the same numbers. Then allocations are compared by the calling
function.

heaptrack preloads a C++ library, whose runtime allocates a pool of 72,704 bytes; heaptrack counts the pool and frees it at the end. Perl
copies its environment, in which each tool sets its own variables. So the two lists of sizes are aligned, and sizes in only one of them are
printed. The exit status is 1 if more than 2% of the allocations differ, or if the numbers of temporary allocations differ.
"""
import collections
import json
import os
import re

from . import questions
from .common import answer, folder, head, missing, row, run, write

OPTIONS = {
    "--more": {"action": "store_true", "help": "pdftotext, pandas and rg, too, as docs/results.md has them"},
    **{name: settings for name, settings in questions.OPTIONS.items() if name in ["--python", "--rg"]},
}

LEAKER = r"""
#include <map>
#include <string>
#include <thread>
#include <vector>
struct Order { int id; std::string name; std::vector<double> prices; };
static Order *make(int i) { return new Order{i, std::string(20 + i % 50, 'x'), std::vector<double>(i % 13)}; }
static void forget(int i) { if (i % 10 == 0) make(i); }
static size_t format(int i) { std::string text(100, 'a'); text += std::to_string(i); return text.size(); }
int main() {
    std::map<int, Order *> orders;
    size_t bytes = 0;
    for (int i = 0; i < 20000; i++) {
        orders[i % 3000 * 7919 % 3000] = make(i);
        forget(i);
        bytes += format(i);
        if (i % 3 == 0 && !orders.empty()) { delete orders.begin()->second; orders.erase(orders.begin()); }
    }
    return bytes == 0;
}
"""

PERL = "my %h; for my $i (1..20000) { push @{$h{$i % 997}}, 'x' x ($i % 80); delete $h{$i % 31} if $i % 5 == 0 }"
SQL = """create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t select i, 'row ' || i, i*0.5 from n;
create index x on t(b); select count(*), sum(c) from t where b like 'row 1%'; delete from t where a % 3 = 0; select count(*) from t;"""


def plain(function):
    """Returns a function's name without its parameters and types, which the tools spell differently."""
    while (shorter := re.sub("<[^<>]*>", "", function)) not in ("", function):
        function = shorter
    for mark in ("(", "@"):
        if not function.startswith(mark):
            function = function.split(mark)[0]
    return function.split("::")[-1].split(" ")[-1].removesuffix(".part.0").removesuffix(".constprop.0")


def is_new(function):
    return function.startswith(("operator new", "_Znw", "_Zna"))


class Calls:
    """The counts of a recording."""

    def __init__(self):
        self.sizes, self.by = [], collections.Counter()
        self.temporary = self.leaked = self.peak = 0


def of_heaptrack(path):
    calls, strings, frames, traces, kinds = Calls(), [""], [""], [(0, 0)], []
    live, last, current = collections.Counter(), None, 0
    text = run("zstd", "-dc", path).decode(errors="replace")

    def function(trace):
        while trace:
            ip, trace = traces[trace]
            if not is_new(frames[ip]):
                return plain(frames[ip])
        return "?"

    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "s":
            strings.append(rest.partition(" ")[2])
        elif kind == "i":
            fields = [int(field, 16) for field in rest.split()]
            # Inlined functions are listed innermost first; take the last, which contains the code.
            frames.append(strings[fields[2 + 3 * ((len(fields) - 3) // 3)]] if len(fields) > 2 else "")
        elif kind == "t":
            traces.append(tuple(int(field, 16) for field in rest.split()))
        elif kind == "a":
            size, trace = (int(field, 16) for field in rest.split())
            kinds.append((size, trace))
        elif kind == "+":
            number = int(rest, 16)
            size, trace = kinds[number]
            calls.sizes.append(size)
            calls.by[function(trace)] += 1
            current += size
            calls.peak = max(calls.peak, current)
            live[number] += 1
            last = number
        elif kind == "-":
            number = int(rest, 16)
            current -= kinds[number][0]
            live[number] -= 1
            calls.temporary += number == last
            last = None
    calls.leaked = sum(kinds[number][0] * blocks for number, blocks in live.items())
    return calls


def of_hatf(hatf, trace):
    calls = Calls()
    run(hatf, "symbolize", trace, "-o", trace)
    sites = answer(hatf, "sites", trace, "--rows", "1000000")
    calls.peak = sites["trace"]["max_bytes"]
    for site in sites["sites"]:
        calls.temporary += site["temporary"]["blocks"]
        calls.leaked += site["leaked"]["bytes"]
        # A frame lists the functions inlined there; the last one contains the code.
        names = [place["functions"][-1]["name"] if place["functions"] else "" for place in site["stack"]]
        names = [name for name in names if not is_new(name)]
        calls.by[plain(names[0]) if names else "?"] += site["allocated"]["blocks"]
    for line in run(hatf, "convert", "--to", "jsonl", trace, "-").decode().splitlines():
        record = json.loads(line)
        if record.get("address", 0) and "size" in record:
            calls.sizes.append(record["size"])
    return calls


def difference(ours, theirs):
    """Aligns two lists and returns the sizes that are only in the first, and only in the second."""
    only = [[], []]
    a = b = 0
    while a < len(ours) or b < len(theirs):
        if a < len(ours) and b < len(theirs) and ours[a] == theirs[b]:
            a, b = a + 1, b + 1
            continue
        # Find the shortest part to skip in either list, so that the next eight sizes are equal.
        for skip in range(1, 400):
            ways = [(x, skip - x) for x in range(skip + 1)]
            found = next(((x, y) for x, y in ways if ours[a + x : a + x + 8] == theirs[b + y : b + y + 8]), None)
            if found:
                break
        x, y = found or (len(ours) - a, len(theirs) - b)
        only[0] += ours[a : a + x]
        only[1] += theirs[b : b + y]
        a, b = a + x, b + y
    return only


def main(options):
    if missing("heaptrack") or missing("zstd"):
        return 0
    failed, rows = False, []
    with folder():
        programs = [("perl", ["perl", "-e", PERL]), ("sqlite3", ["sqlite3", ":memory:", SQL])]
        if not missing("g++"):
            run("g++", "-O1", "-g", "-o", "orders", write("orders.cc", LEAKER))
            programs.append(("a C++ program", ["./orders"]))
        if options.more:
            options.only = ["pdftotext", "pandas", "rg"]
            # Use one thread, so that both tools see the same order.
            programs += [(name, ["-j1" if word == "-j2" else word for word in command]) for name, _, command in questions.programs(options)]
        environment = {**os.environ, "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0", "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        for name, command in programs:
            if missing(command[0]):
                continue
            run(options.hatf, "record", "-q", "--stacks", "-o", "ours.mtf", "--", *command, env=environment)
            run("heaptrack", "-o", "theirs", *command, env=environment)
            ours, theirs = of_hatf(options.hatf, "ours.mtf"), of_heaptrack("theirs.zst")
            mine, others = difference(ours.sizes, theirs.sizes)
            rows.append((name, ours, theirs))
            same = len(ours.sizes) - len(mine)
            by = {f: (ours.by[f], theirs.by[f]) for f in ours.by.keys() | theirs.by.keys()}
            unequal = {f: counts for f, counts in by.items() if counts[0] != counts[1]}
            print(f"{name}: {same} allocations in one order; only ours {len(mine)}: {sum(mine)} bytes; only heaptrack's {len(others)}: {sum(others)} bytes")
            print(f"  functions: {len(by) - len(unequal)} of {len(by)} with the same number of allocations")
            for function, counts in sorted(unequal.items(), key=lambda item: -abs(item[1][0] - item[1][1])):
                print(f"    {counts[0]:8} {counts[1]:8}  {function or '(no name)'}")
            failed |= same < 0.98 * len(ours.sizes) or ours.temporary != theirs.temporary
    print()
    head("program", "", "hatf:", "heaptrack:", "difference:")
    for name, ours, theirs in rows:
        for what in ("allocations", "temporary", "leaked", "peak"):
            a, b = (len(side.sizes) if what == "allocations" else getattr(side, what) for side in (ours, theirs))
            row(name, what, f"{a:,}", f"{b:,}", f"{a - b:,}")
            name = ""
    return int(failed)
