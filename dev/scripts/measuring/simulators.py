"""Compares predictions of hatf whatif with replays and programs on the real allocators: tables for docs/whatif.md.

Writes heap/hatf-lab/src/whatif/validation.json, from which the command reads its known errors. The errors of ten programs are the stated ones;
ten other programs show whether these hold.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import time

from .common import ROOT, answer, folder, head, median, missing, row, run, write

OUT = os.path.join(ROOT, "heap", "hatf-lab", "src", "whatif", "validation.json")
FAMILIES = ["glibc", "jemalloc", "mimalloc", "tcmalloc"]
LIBRARIES = {"glibc": "", "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4"}

PERL = """my %h; for my $i (1..60000) { $h{"key$i"} = { name => "n" x ($i % 60), list => [1..($i % 9)] };
delete $h{"key".($i-20000)} if $i > 20000 && $i % 3; } my @s = sort keys %h; print scalar(@s), "\\n" """
GAWK = """BEGIN { for (i = 0; i < 200000; i++) { w = "word" (i * 7919 % 30011); count[w]++; line[i % 5000] = line[i % 5000] w
if (length(line[i % 5000]) > 300) delete line[i % 5000] } n = asorti(count, s); print n }"""
SQL = """create table t(id integer primary key, a text, b real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into t select i, hex(randomblob(i % 40)), i * 1.5 from n;
create index ta on t(a); select count(*), sum(b) from t where a like '%AB%';
create table u as select a, count(*) as c from t group by substr(a, 1, 3);
delete from t where id % 3 = 0; select group_concat(a) from (select a from t order by a limit 3000); vacuum;"""
PYTHON = r"""import ast, json
for n in range(12):
    tree = ast.parse("\n".join(f"def f{i}(a, b=[{i}, 2]): return a + b[{i % 2}] * {{1: \"x{i}\"}}[1]" for i in range(900)))
    d = [json.loads(json.dumps({"k%d" % i: list(range(i % 17)) for i in range(400)})) for _ in range(6)]"""
PS = """%!PS
/Times-Roman findfont 11 scalefont setfont
1 1 24 { /page exch def
  0 1 60 { /line exch def 40 780 line 12 mul sub moveto (Page ) show page 10 string cvs show ( line ) show line 10 string cvs
    show ( of text that is set here, with numbers ) show page line mul 10 string cvs show } for
  0 1 300 { /n exch def n 1.9 mul n 2.4 mul moveto 50 rand 90 mod add rand 800 mod rand 600 mod rand 800 mod rand 500 mod
    rand 700 mod curveto n 255 mod 255 div 0.5 0.2 setrgbcolor stroke } for showpage } for"""
# Four threads insert strings into their own maps and pass some strings to other threads, which delete them.
CPP = r"""#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>
static std::mutex lock;
static std::vector<std::string *> passed;
static void work(unsigned seed, int rounds) {
    std::mt19937 random(seed);
    std::map<unsigned, std::string> own;
    for (int n = 0; n < rounds; n++) {
        own[random() % 20000] = std::string(16 + random() % 400, 'x');
        if (random() % 3 == 0) own.erase(random() % 20000);
        if (n % 4 == 0) {
            auto *text = new std::string(random() % 2000, 'y');
            std::lock_guard<std::mutex> guard(lock);
            passed.push_back(text);
            if (passed.size() > 2000) {
                std::swap(passed[random() % passed.size()], passed.back());
                delete passed.back();
                passed.pop_back();
            }
        }
    }
}
int main() {
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < 4; n++) threads.emplace_back(work, n, 100000);
    for (auto &thread : threads) thread.join();
}"""


# Scripts for other languages: maps of strings and lists, from which some entries are deleted.
RUBY = """h = {}; 120000.times { |i| h["k#{i}"] = { n: "x" * (i % 50), l: (0..(i % 7)).to_a }
h.delete("k#{i - 30000}") if i > 30000 && i % 3 == 0 }; puts h.values.map { |v| v[:n] }.sort.uniq.size"""
LUA = """local h = {} for i = 1, 300000 do h[i] = { name = string.rep("x", i % 40), l = { i, i + 1 } }
if i > 50000 and i % 2 == 0 then h[i - 50000] = nil end end local n = 0 for k in pairs(h) do n = n + 1 end print(n)"""
TCL = "for {set i 0} {$i < 150000} {incr i} { dict set h k$i [list n [string repeat x [expr {$i % 50}]] l [list $i $i]] }; puts [dict size $h]"
NODE = """const m = new Map(); for (let i = 0; i < 60000; i++) { m.set("k" + i, Buffer.alloc(200 + i % 900));
if (i > 20000) m.delete("k" + (i - 20000)); } console.log(m.size)"""
XML = """import xml.etree.ElementTree as E
for _ in range(3): t = E.parse("b.xml"); n = sum(len(e.find("n").text or "") for e in t.getroot())
print(n)"""
# Allocates one block and prints its own anonymous memory.
ONE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char *volatile block = malloc(1), line[200];
    *block = 1;
    for (FILE *status = fopen("/proc/self/status", "r"); fgets(line, sizeof line, status);)
        if (!strncmp(line, "RssAnon", 7)) fputs(line, stdout);
}"""
# Hashes of strings are the same in each run.
SAME = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
# The programs whose requests are also replayed, with all settings. A replay does not show the library's own data.
REPLAYED = ["perl", "gawk", "sqlite3", "gs", "python3", "threads"]
# The programs whose errors are not part of the stated errors.
HELD_OUT = ["lua", "tclsh", "msgfmt", "sort", "node", "xz", "python3-xml", "objdump", "diff", "vim"]


def programs():
    """Returns programs and their commands."""
    if not missing("g++"):
        run("g++", "-O2", "-pthread", "-o", "threads", write("threads.cpp", CPP))
    gs = ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=pdfwrite", "-sOutputFile=out.pdf"]
    # Not a script that starts the interpreter.
    python = os.path.realpath(sys.executable)
    numbers = range(40000)
    write("j.json", json.dumps([{"name": "n" * (i % 40), "tags": [f"t{j}" for j in range(i % 12)], "v": i * 1.5} for i in numbers]))
    classes = "".join(f"struct S{i} {{ std::map<std::string, std::vector<int>> m; int f(std::string s) {{ return m[s].size() + {i}; }} }};\n" for i in range(120))
    uses = "".join(f'S{i} s{i}; s{i}.f("x");' for i in range(120))
    write("big.cc", f"#include <map>\n#include <regex>\n#include <string>\n#include <vector>\n{classes}int main() {{ std::regex r(\"a.*b\"); {uses} }}\n")
    entries = "".join(f'msgid "message {i} of this catalog"\nmsgstr "Nachricht {i} {"x" * (i % 60)}"\n\n' for i in range(60000))
    write("big.po", 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + entries)
    rand = random.Random(1)
    words = [f"{rand.getrandbits(60):x} {'y' * rand.randrange(60)}\n" for _ in range(250000)]
    write("words.txt", "".join(words))
    write("others.txt", "".join(word for n, word in enumerate(words) if n % 50))
    write("b.xml", "<r>" + "".join(f'<e id="{i}"><n>{"z" * (i % 30)}</n></e>' for i in range(60000)) + "</r>")
    compiler = shutil.which("g++") and run("g++", "-print-prog-name=cc1plus").decode().strip()
    machine = compiler and run("g++", "-print-multiarch").decode().strip()
    return {
        "perl": ["perl", "-e", PERL],
        "gawk": ["gawk", GAWK],
        "sqlite3": ["sqlite3", ":memory:", ".read " + write("q.sql", SQL)],
        "gs": gs + [write("page.ps", PS)],
        "python3": [python, "-c", PYTHON],
        "threads": ["./threads"],
        "jq": ["jq", "-c", "[.[] | {n: .name, t: (.tags | length), v: (.v * 2)}] | group_by(.t) | map(length)", "j.json"],
        "ruby": ["ruby", write("a.rb", RUBY)],
        "cc1plus": [compiler or "cc1plus", "-quiet", "-imultiarch", machine or "", "-D_GNU_SOURCE", "-O1", "big.cc", "-o", "big.s"],
        "git": ["git", "-C", ROOT, "log", "--stat", "-n", "400", "--oneline"],
        "lua": ["lua5.4", write("a.lua", LUA)],
        "tclsh": ["tclsh", write("a.tcl", TCL)],
        "msgfmt": ["msgfmt", "-o", "big.mo", "big.po"],
        "sort": ["sort", "--parallel=1", "-S", "30M", "words.txt"],
        "node": ["node", write("n.js", NODE)],
        "xz": ["xz", "-6", "-k", "-c", "words.txt"],
        "python3-xml": [python, write("x.py", XML)],
        "objdump": ["objdump", "-d", "-l", shutil.which("git") or "git"],
        "diff": ["diff", "-u", "words.txt", "others.txt"],
        "vim": ["vim", "-es", "-u", "NONE", "-c", "g/a/s/y/z/g", "-c", "sort", "-c", "q!", "words.txt"],
    }


def peak_private(command, library):
    """Returns the peak anonymous memory of a program with a preloaded library, sampled every millisecond, or None without the library."""
    environment = {**os.environ, **SAME, "LD_PRELOAD": library}
    child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    most = 0
    while child.poll() is None:
        try:
            with open(f"/proc/{child.pid}/status") as status:
                of = {name: value for name, value in (line.split(":", 1) for line in status)}
        except OSError:
            break
        most = max(most, int(of.get("RssAnon", "0 kB").split()[0]) << 10)
        time.sleep(0.001)
    said = child.stderr.read()
    # `diff` returns 1 for different files.
    if child.wait() > 1:
        raise subprocess.CalledProcessError(child.returncode, command)
    return None if b"cannot be preloaded" in said else most


def themselves(name, command, simulated):
    """Returns rows that compare predictions with the whole memory of a program. Its memory outside of the heap counts as the same with each
    allocator. Each peak is the median of three runs, as jemalloc's depends on time."""
    def peak(family):
        return median([peak_private(command, LIBRARIES[family]) or 0 for _ in range(3)])
    measured = {family: peak(family) for family in FAMILIES if family in simulated}
    others = measured["glibc"] - simulated["glibc"]
    against = "held-out" if name in HELD_OUT else "program"
    return [{"program": name, "allocator": family, "against": against, "simulated_peak": int(simulated[family] + others), "measured_peak": int(peak)}
            for family, peak in measured.items() if family != "glibc" and peak]


def own_data():
    """Returns the bytes of each library's own data in a program that allocates one block, in excess of the C library's."""
    run("cc", "-o", "one", write("one.c", ONE))
    used = {family: int(run("./one", env={**os.environ, "LD_PRELOAD": library}).split()[1]) << 10 for family, library in LIBRARIES.items()}
    return {family: of - used["glibc"] for family, of in used.items()}


def ranks(values):
    """Returns ranks from 1. Equal values share their mean rank."""
    order = sorted(values)
    return [(order.index(value) + 1 + len(order) - order[::-1].index(value)) / 2 for value in values]


def correlation(one, other):
    """Returns Spearman's rank correlation coefficient."""
    one, other = ranks(one), ranks(other)
    mean = (len(one) + 1) / 2
    cov = sum((a - mean) * (b - mean) for a, b in zip(one, other))
    var = sum((a - mean) ** 2 for a in one) * sum((b - mean) ** 2 for b in other)
    return cov / var ** 0.5 if var else float("nan")


def main(options):
    rows, order, whole = [], [], []
    with folder():
        own = own_data()
        for name, command in programs().items():
            if missing(command[0]):
                continue
            trace = name + ".mtf"
            recorded = subprocess.run([options.hatf, "record", "-q", "-o", trace, "--", *command], env={**os.environ, **SAME},
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
            if recorded.returncode > 1:
                raise subprocess.CalledProcessError(recorded.returncode, command)
            predictions = answer(options.hatf, "whatif", trace)["predictions"]
            whole += themselves(name, command, {of["allocator"]: of["peak"] for of in predictions if of["allocator"] in FAMILIES})
            if name not in REPLAYED:
                continue
            tried = [of for of in predictions if of["replay"]]
            measured = {}
            for of in tried:
                replay = [options.hatf, "replay", trace, "--runs", "1", "--with", of["replay"].strip()]
                try:
                    measured[of["allocator"]] = answer(*replay)["outcomes"][0]
                except subprocess.CalledProcessError:
                    print(f"{of['replay']} is left out: it is not on this machine", file=sys.stderr)
            compared = [(of, measured[of["allocator"]]) for of in tried if of["allocator"] in measured]
            for of, real in compared:
                data = own[of["allocator"].split(":")[0]]
                rows.append({"program": name, "allocator": of["allocator"], "against": "replay", "simulated_peak": of["peak"] - data,
                             "measured_peak": real["peak_resident"], "simulated_mean": of["mean"] - data,
                             "measured_mean": real["mean_resident"]})
            plain = [(of, real) for of, real in compared if of["allocator"] in FAMILIES]
            order.append((name, *(correlation([of[key] for of, _ in some], [real[field] for _, real in some])
                                  for some in (plain, compared)
                                  for key, field in (("peak", "peak_resident"), ("mean", "mean_resident")))))
    rows.sort(key=lambda row: (FAMILIES.index(row["allocator"].split(":")[0]), row["allocator"], row["program"]))
    write(OUT, "[\n" + ",\n".join("  " + json.dumps(row) for row in rows + whole) + "\n]\n")

    def off(of, which):
        return of["simulated_" + which] / of["measured_" + which] - 1

    mib = 1 << 20
    head("library", "own data, bytes:")
    for family in FAMILIES[1:]:
        row(family, f"{own[family]:,}")
    print()
    head("program", "", *(f"{family}:" for family in FAMILIES))
    for name, *_ in order:
        for which in ("peak", "mean"):
            cells = []
            for family in FAMILIES:
                of = next((of for of in rows if (of["program"], of["allocator"]) == (name, family)), None)
                cells.append("-" if of is None else f"{of['simulated_' + which] / mib:.1f} / "
                             f"{of['measured_' + which] / mib:.1f} ({100 * off(of, which):+.1f}%)")
            row(name if which == "peak" else "", which, *cells)
    print()
    head("program", *(f"{family}:" for family in FAMILIES[1:]))
    for name in dict.fromkeys(of["program"] for of in whole):
        cells = {of["allocator"]: f"{of['simulated_peak'] / mib:.1f} / {of['measured_peak'] / mib:.1f} ({100 * off(of, 'peak'):+.1f}%)"
                 for of in whole if of["program"] == name}
        row(name, *(cells.get(family, "-") for family in FAMILIES[1:]))
    print()
    head("simulator and settings", "mean error of the peak:", "of the mean:", "greatest of the peak:", "with")
    for family in FAMILIES[1:]:
        for against in ("program", "held-out"):
            errors = [abs(off(of, "peak")) for of in whole if (of["allocator"], of["against"]) == (family, against)]
            if errors:
                row(f"{family}, {against}", f"{100 * sum(errors) / len(errors):.1f}%", "-", f"{100 * max(errors):.1f}%", f"{len(errors)} programs")
    for allocator in sorted({of["allocator"] for of in rows}):
        of = [of for of in rows if of["allocator"] == allocator]
        worst = max(of, key=lambda one: abs(off(one, "peak")))
        means = [100 * sum(abs(off(one, which)) for one in of) / len(of) for which in ("peak", "mean")]
        row(f"`{allocator}`", *(f"{mean:.1f}%" for mean in means), f"{100 * off(worst, 'peak'):+.1f}%", worst["program"])
    print()
    head("program", "four allocators: peak:", "mean:", "with settings: peak:", "mean:")
    for name, *values in order:
        row(name, *(f"{value:.2f}" for value in values))
