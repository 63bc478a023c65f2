"""Measures every command on traces of about ten million events with stacks: a table for docs/performance.md.

The traces are from the compiler (cc1plus, many stacks) and from perl (few stacks). The table lists the CPU time, run time and peak memory
of each command. Commands run one at a time, so run times apply to an otherwise idle machine.
"""
import os

from . import recordings
from .common import FOLDER, INPUTS, answer, folder, head, row, run, used, write

OPTIONS = {**FOLDER, "--only": {"action": "append", "help": "only this trace: cc1plus or perl"}}

CPP = "".join(f"#include <{name}>\n" for name in ["algorithm", "map", "regex", "string", "unordered_map", "vector", "iostream"]) + """
template <int N> struct Part { std::map<std::string, std::vector<int>> of; std::regex pattern{"([a-z]+)[0-9]*" };
    bool add(const std::string &line) { std::smatch found; if (!std::regex_match(line, found, pattern)) return false; of[found[1]].push_back(N);
        std::sort(of[found[1]].begin(), of[found[1]].end(), [](int a, int b) { return (a ^ N) < b; }); return true; } };
template <int N> struct All { static int run(const std::string &line) { Part<N> part; return part.add(line) + All<N - 1>::run(line); } };
template <> struct All<0> { static int run(const std::string &) { return 0; } };
int main(int, char **argv) { return All<PARTS>::run(argv[0]); }
"""


def programs():
    cc1plus = recordings.compiler("g++", "cc1plus")
    machine = ["-quiet", "-imultiarch", run("gcc", "-print-multiarch").decode().strip(), "-D_GNU_SOURCE"]
    yield "cc1plus", [cc1plus, *machine, "-O2", "-DPARTS=32", write("all.cpp", CPP), "-o", "/dev/null"]
    yield "perl", ["perl", f"{INPUTS}/hash.pl", "950000"]


def commands(hatf, trace):
    """Yields command lines as a user would type them."""
    yield from ([hatf, *words, trace] for words in [
        ["report"], ["sites"], ["sites", "--format", "svg", "-o", "flame.svg"], ["leaks"], ["churn"], ["fragmentation"], ["whatif"], ["simulate"],
        ["dump", "--head", "1000"], ["regions", "infer"], ["profile", "-o", "profile.mtf"], ["processes"],
        ["model", "fit", "-m", "outline", "-o", "outline.json"], ["model", "evaluate", "--trials", "1"],
    ])
    yield [hatf, "report", "--html", "page.html", trace]
    yield [hatf, "diff", trace, trace]
    yield [hatf, "sites", "--live-between", "1s..peak", trace]
    yield [hatf, "cut", "--between", "1s..peak", "-o", "cut.mtf", trace]
    yield [hatf, "cut", "--sample", "64KiB", "-o", "sample.mtf", trace]
    yield [hatf, "anonymize", "-o", "nameless.mtf", trace]
    yield [hatf, "convert", trace, "trace.raw32"]
    yield [os.path.join(os.path.dirname(hatf), "metatfc"), "dump", "--tail", "10", trace]


def main(options):
    with folder(options.folder):
        head("trace", "command", "CPU s:", "run s:", "MiB:")
        for name, command in programs():
            if options.only and name not in options.only:
                continue
            trace = f"{name}.mtf"
            run(options.hatf, "record", "--stacks", "--no-follow", "-q", "-o", trace, "--", *command)
            events = answer(options.hatf, "report", trace)["totals"]["records"]
            row(f"{name}, {events:,} records, {os.path.getsize(trace):,} bytes", "", "", "", "")
            for words in commands(options.hatf, trace):
                status, usage, seconds = used(*words)
                failed = f" (exit {status})" if status else ""
                shown = " ".join([os.path.basename(words[0]), *words[1:]]).replace(trace, "T")
                cpu = f"{usage.ru_utime + usage.ru_stime:.2f}"
                row("", f"`{shown}`{failed}", cpu, f"{seconds:.2f}", f"{usage.ru_maxrss / 1024:.0f}")
