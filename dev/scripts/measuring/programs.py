"""Records common programs with all their child processes: a table for docs/results.md.

Each program runs twice without the recorder and twice with it, alternating; the shorter times count. A third run of each kind measures the
peak resident memory of the largest process. Valgrind also counts the calls of some single-process programs. A program must end with the
same exit status and the same output as without the recorder, and its traces must satisfy the invariants of the recorder
(tests/examples/invariants.rs). Otherwise the exit status is 1.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

from .common import INPUTS, PYTHON, answer, folder, head, missing, pages, row, write

OPTIONS = {"wanted": {"nargs": "*", "metavar": "WORD", "help": "only programs whose names have one of these words"}}
ENVIRONMENT = {**os.environ, "PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0"}

THREADS_CC = r"""
#include <map>
#include <string>
#include <thread>
#include <vector>
static void work(int seed, size_t *sum) {
    std::map<int, std::string> map;
    for (int i = 0; i < 60000; i++) {
        map[(i * 7919 + seed) % 4000] = std::string(16 + i % 100, 'x');
        if (i % 3 == 0) map.erase((i * 31) % 4000);
    }
    for (auto &entry : map) *sum += entry.second.size();
}
int main() {
    size_t sums[4] = {};
    std::vector<std::thread> threads;
    for (int n = 0; n < 4; n++) threads.emplace_back(work, n, &sums[n]);
    for (auto &thread : threads) thread.join();
    return sums[0] + sums[1] + sums[2] + sums[3] == 0;
}
"""

THREADS_RS = r"""
use std::collections::BTreeMap;
fn work(seed: usize) -> usize {
    let mut map = BTreeMap::new();
    for i in 0..60_000 {
        map.insert((i * 7919 + seed) % 4000, vec![i; 4 + i % 30]);
        if i % 3 == 0 { map.remove(&((i * 31) % 4000)); }
    }
    map.values().map(Vec::len).sum()
}
fn main() {
    let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(move || work(n))).collect();
    let sum: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("{sum}");
}
"""

PARTS_CC = '#include <map>\n#include <string>\n#include <vector>\nint part%d() { std::map<std::string, std::vector<int>> m; m["a"].push_back(%d); return m.size(); }\n'

POOL = """
import multiprocessing, sys
def work(n): return sum(len(str(i)) for i in range(n))
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(3) as pool: print(sum(pool.map(work, [3000] * 30)))
"""

REDIS = """
redis-server --save '' --appendonly no --unixsocket $PWD/socket --port 0 --daemonize yes --logfile $PWD/log > /dev/null
until redis-cli -s $PWD/socket ping > /dev/null 2>&1; do sleep 0.05; done
redis-benchmark -s $PWD/socket -q -n 20000 -t set,get,lpush,sadd -r 10000 > /dev/null
redis-cli -s $PWD/socket shutdown nosave > /dev/null 2>&1
true
"""

GIT = """
git init -q repository; cd repository
git config user.email a@b.c; git config user.name a
for n in $(seq 40); do seq $n 9 20000 > file$((n % 7)); git add .; git commit -q -m $n --date 2020-01-01T00:00:00; done
git gc -q --aggressive --prune=now
"""


def prepare():
    """Creates inputs in the working directory. Yields names, commands, and whether valgrind can count the same calls."""
    def built(*command):
        return shutil.which(command[0]) and subprocess.run(command, capture_output=True).returncode == 0

    write("text.txt", pages(2))
    pages_ps()
    write("pool.py", POOL)
    for n in range(6):
        write(f"part{n}.cc", PARTS_CC % (n, n))
    write("main.cc", "int main() { return 0; }\n")
    write("Makefile", "OBJ=" + " ".join(f"part{n}.o" for n in range(6)) + " main.o\nall: $(OBJ)\n\tg++ -o a.out $(OBJ)\n%.o: %.cc\n\tg++ -O1 -c $<\n")
    write("threads.cc", THREADS_CC)
    write("threads.rs", THREADS_RS)
    os.makedirs("crate/src")
    write("crate/Cargo.toml", '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n')
    write("crate/src/main.rs", THREADS_RS)
    yield "perl", ["perl", f"{INPUTS}/hash.pl"], True
    yield "gawk", ["gawk", "-f", f"{INPUTS}/words.awk", "text.txt"], True
    yield "python3, four threads", [PYTHON, f"{INPUTS}/threads.py", "60000"], False
    yield "python3, a pool of processes (fork)", [PYTHON, "pool.py", "fork"], False
    yield "python3, a pool of processes (spawn)", [PYTHON, "pool.py", "spawn"], False
    yield "git: commits and gc", ["sh", "-c", "rm -rf repository;" + GIT], False
    yield "sqlite3", ["sqlite3", ":memory:", f".read {INPUTS}/table.sql"], True
    yield "g++, one file", ["g++", "-O1", "-c", "part0.cc"], False
    yield "make -j2", ["make", "-s", "-B", "-j2"], False
    yield "cargo build of a small crate", ["sh", "-c", "rm -rf crate/target; cargo build -q --offline --manifest-path crate/Cargo.toml"], False
    yield "node", ["node", "-e", "let s=0; for (let i=0;i<3000;i++) s+=JSON.stringify({a:[i,'x'.repeat(i%50)]}).length; console.log(s)"], False
    yield "redis-server under load", ["sh", "-c", REDIS], False
    yield "initdb of PostgreSQL", ["sh", "-c", "rm -rf data; initdb -D data > /dev/null"], False
    yield "ghostscript", ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m", "-r40", "-sOutputFile=/dev/null", "pages.ps"], False
    yield "ffmpeg", ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=d=3", "-c:v", "mpeg4", "-f", "null", "-"], False
    if built("g++", "-O1", "-pthread", "-o", "threads", "threads.cc"):
        yield "a C++ program, four threads", ["./threads"], False
    if built("rustc", "--edition=2021", "-O", "-o", "threads-rust", "threads.rs"):
        yield "a Rust program, four threads", ["./threads-rust"], False
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        if built("g++", "-O1", "-pthread", "-o", f"threads-{name}", "threads.cc", "-Wl,--no-as-needed", f"-l{name}"):
            yield f"the C++ program with {name}", [f"./threads-{name}"], False
        else:
            print(f"SKIPPED: {name} cannot be linked with", file=sys.stderr)


def pages_ps():
    """Writes text.txt as PostScript pages, which a previous program may have changed."""
    with open("pages.ps", "w") as out:
        subprocess.run(["awk", "-f", f"{INPUTS}/pages.awk", "text.txt"], stdout=out)


def run(*command):
    """Runs a command, which may fail. Returns the completed process and the run time."""
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT)
    return done, time.monotonic() - begin


def resident(*command, around=()):
    """Returns the peak resident memory of a command's largest process in MiB, measured by GNU time, excluding `hatf` itself."""
    if missing("/usr/bin/time"):
        return "-"
    write("resident.txt", "")
    os.chmod("resident.txt", 0o666)
    run(*around, "/usr/bin/time", "-q", "-f", "%M", "-o", os.path.abspath("resident.txt"), *command)
    with open("resident.txt") as file:
        return f"{int(file.read()) / 1024:.1f}"


def chosen(name, options):
    """Returns whether a program's name contains one of the words on the command line."""
    return not options.wanted or any(word in name for word in options.wanted)


def same(name, alone, recorded):
    """Returns whether a program ended as it does without the recorder."""
    if (alone.returncode, alone.stdout) == (recorded.returncode, recorded.stdout):
        return True
    print(f"{name}: status {alone.returncode} and {recorded.returncode}; {recorded.stderr.decode()[-300:]}", file=sys.stderr)
    return False


def as_user(program):
    """Returns a command prefix for a program that refuses to run as root."""
    if program != "initdb" or os.getuid() != 0:
        return []
    os.chmod(".", 0o777)
    return ["runuser", "-u", "nobody", "--"]


def counted_by_valgrind(command, allocs):
    """Returns the number of allocations counted by valgrind, and the difference from ours."""
    said = run("valgrind", "--run-libc-freeres=no", "--run-cxx-freeres=no", *command)[0].stderr.decode()
    match = re.search(r"total heap usage: ([\d,]+) allocs", said)
    if not match:
        return "-"
    apart = allocs - int(match[1].replace(",", ""))
    return f"{match[1]} allocs, we {apart:+}" if apart else f"{match[1]} allocs, as we"


def unbroken(name, traces, checker):
    """Returns whether the traces satisfy the invariants of the recorder."""
    done = subprocess.run([checker, *traces], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: {done.stdout}{done.stderr}", file=sys.stderr)
    return done.returncode == 0


def main(options):
    checker = os.path.join(os.path.dirname(options.hatf), "examples", "invariants")
    if missing(checker):
        print("cargo build --release -p metatf-tests --example invariants makes it", file=sys.stderr)
        return 1
    columns = ["processes", "events", "threads", "lost", "frees of unknown blocks", "inherited", "bytes an event", "run time", "resident MiB, alone", "recorded"]
    head("program", *(f"{column}:" for column in columns), "valgrind")
    failed = False
    with folder():
        for name, command, counted in prepare():
            needs = {"redis-server under load": "redis-server", "initdb of PostgreSQL": "initdb"}.get(name, command[0])
            if not chosen(name, options) or missing(needs):
                continue
            user = as_user(needs)
            pages_ps()
            bare, recorded = [], []
            for _ in range(2):
                alone, seconds = run(*user, *command)
                bare.append(seconds)
                for left in (*glob.glob("trace.*"), *glob.glob("memory.*")):
                    shutil.rmtree(left) if os.path.isdir(left) else os.remove(left)
                with_it, seconds = run(*user, options.hatf, "record", "-o", "trace.mtf", "--", *command)
                recorded.append(seconds)
            failed |= not same(name, alone, with_it)
            traces = ["trace.mtf"]
            if os.path.isdir("trace.processes"):
                traces += [f"trace.processes/{file}" for file in sorted(os.listdir("trace.processes")) if file.endswith(".mtf")]
            failed |= not unbroken(name, traces, checker)
            records = threads = lost = unknown = inherited = size = allocs = 0
            for trace in traces:
                report = answer(options.hatf, "report", trace)
                totals = report["totals"]
                records += totals["records"]
                threads += len(report["threads"])
                lost += totals["lost"]
                allocs += totals["allocs"]
                size += os.path.getsize(trace)
                # A forked process that has not executed another program may free inherited blocks.
                images = sum("image" in comment for comment in report["comments"])
                if trace != traces[0] and images == 1:
                    inherited += totals["unmatched_frees"]
                else:
                    unknown += totals["unmatched_frees"]
            memory = [resident(*command, around=around) for around in (user, [*user, options.hatf, "record", "-o", "memory.mtf", "--"])]
            alone = counted and shutil.which("valgrind") and len(traces) == 1
            theirs = counted_by_valgrind(command, allocs) if alone else "-"
            times = f"{min(recorded) / min(bare):.2f}"
            row(name, len(traces), f"{records:,}", threads, lost, unknown, inherited, f"{size / records:.2f}", times, *memory, theirs)
    return int(failed)
