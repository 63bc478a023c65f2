"""Runs all analyses of hatf on seven programs: the table and the pictures for docs/results.md. Takes about ten minutes.

`--small` uses two of the programs with smaller inputs, to test the analyses and this script.
"""
import ctypes.util
import json
import os
import shutil
import sys

from . import recordings
from .common import FOLDER, INPUTS, PYTHON, folder, head, missing, pages, row, run, write

OPTIONS = {**FOLDER, "--small": {"action": "store_true", "help": "two programs, with less to do"}}


def compiled():
    """Yields names, commands and environment variables of programs that read long.txt."""
    # Answers refer to the sources, so copy them next to the answers.
    for source in ["threads.cpp", "index.rs"]:
        shutil.copy(f"{INPUTS}/{source}", source)
    if not missing("g++"):
        run("g++", "-O1", "-g", "-pthread", "-o", "words", "threads.cpp")
        yield "words", ["./words", "long.txt"], {}
    run("rustc", "--edition", "2021", "-C", "opt-level=1", "-C", "debuginfo=1", "-o", "index", "index.rs")
    yield "index", ["./index", "long.txt"], {}


def small():
    """Yields only the compiled programs, with a short input."""
    write("long.txt", pages(1)[:200_000])
    yield from compiled()


def programs():
    """Yields all programs."""
    write("text.txt", pages(3))
    recordings.pdf(pages(27))
    gs = ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m", "-r50", "-sOutputFile=/dev/null", "pages.pdf"]
    yield "gawk", ["gawk", "-f", f"{INPUTS}/words.awk", "text.txt"], {}
    yield "perl", ["perl", f"{INPUTS}/hash.pl", "92000"], {}
    yield "gs", gs, {}
    yield "sqlite3", ["sqlite3", ":memory:", f".read {INPUTS}/table.sql"], {}
    yield "python3", [PYTHON, f"{INPUTS}/threads.py", "6200"], {"PYTHONMALLOC": "malloc"}
    yield from compiled()


# Names of the answers, and the commands that produce them.
QUESTIONS = {
    "report": ["report"],
    "sites": ["sites"],
    "processes": ["processes"],
    "leaks": ["leaks"],
    "churn": ["churn"],
    "fragmentation": ["fragmentation"],
    "simulate": ["simulate"],
    "whatif": ["whatif"],
    "regions": ["regions", "infer"],
}


def ask(hatf, name, command, environment, allocators):
    """Records a program with stacks and writes the answers to the working directory as text, JSON and pictures."""
    def to(file, *arguments):
        with open(f"{name}.{file}", "w") as out, open(f"{name}.{file}.errors", "w") as errors:
            run(hatf, *arguments, stdout=out, stderr=errors)

    trace = f"{name}.mtf"
    run(hatf, "record", "-q", "--symbolize", "--no-follow", "-o", trace, "--", *command, env=environment)
    to("flame.txt", "sites", "--format", "svg", "-o", f"{name}.svg", trace)
    to("live.txt", "report", "--svg", f"{name}.live.svg", trace)
    to("page.txt", "report", "--html", f"{name}.html", trace)
    replay = ["replay", "--with", ",".join(["system", *allocators]), "--runs", "3"]
    for question, arguments in [*QUESTIONS.items(), ("replay", replay)]:
        to(f"{question}.txt", *arguments, trace)
        to(f"{question}.json", *arguments, "--format", "json", trace)
    to("profile.txt", "profile", "-o", f"{name}.prof.mtf", trace)
    to("profile.json", "profile", "show", "--format", "json", f"{name}.prof.mtf")
    to("fit.txt", "model", "fit", "--model", "outline", "-o", f"{name}.outline.json", trace)
    to("generate.txt", "model", "generate", "-o", f"{name}.synthetic.mtf", f"{name}.outline.json")
    models = ["--models", "cdf,size,time,trans,outline", "--trials", "3"]
    to("evaluate.json", "model", "evaluate", *models, "--format", "json", trace)


def answer(program, of):
    with open(f"{program}.{of}.json") as file:
        return json.load(file)


def size(count):
    for unit in ["B", "KiB", "MiB"]:
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def largest(sites, measure):
    group = max(sites["groups"], key=lambda group: group["own"][measure]["bytes"])
    whole = sum(site[measure]["bytes"] for site in sites["sites"])
    return f"{group['name'][:40]} {100 * group['own'][measure]['bytes'] / max(1, whole):.0f} %"


def rows(program):
    report, sites = answer(program, "report"), answer(program, "sites")
    held = answer(program, "fragmentation")["moments"][0]
    whatif, replay = answer(program, "whatif"), answer(program, "replay")
    regions, profile = answer(program, "regions"), answer(program, "profile")
    evaluate = answer(program, "evaluate")["programs"][0]
    page = held["pages"][0]
    best = max(whatif["predictions"], key=lambda prediction: prediction["saves"])
    outcomes = {outcome["name"]: outcome["peak_resident"] for outcome in replay["outcomes"]}
    least = min(outcomes, key=outcomes.get)
    system = next(name for name in outcomes if name.startswith("system"))
    models = {model["model"]: model["tracking"][0]["mean"] for model in evaluate["models"]}
    paper = min((error, name) for name, error in models.items() if name != "outline")
    arena = regions["arenas"][0] if regions["arenas"] else None
    saved = 100 * regions["together"]["frees_saved"] / max(1, regions["trace"]["objects"])
    return {
        "events": f"{report['totals']['records']:,}",
        "bytes an event, with stacks and functions": f"{os.path.getsize(program + '.mtf') / report['totals']['records']:.2f}",
        "most bytes live": size(report["peak"]["bytes"]),
        "of them most by": largest(sites, "peak"),
        "allocated most by": largest(sites, "allocated"),
        "pages held at the peak, to live bytes": f"{page['held'] * page['page'] / held['live']:.2f}",
        "wasted most by": held["sizes_of_functions"][0]["name"].split(", ", 1)[-1].split(" at ")[0][:40],
        "predicted best": f"{best['allocator']} {100 * best['saves']:.0f} %",
        "replayed, system's peak": size(outcomes[system]),
        "replayed best": f"{least} {size(outcomes[least])}",
        "frees that arenas save": f"{saved:.0f} %",
        "most of them in": "-" if arena is None else arena["context"][0],
        "contexts of the profile": f"{len(profile['contexts']):,}",
        "outline, bytes": f"{os.path.getsize(program + '.outline.json'):,}",
        "its error of MaxBytes": f"{100 * models['outline']:.1f} %",
        "best of the paper's models": f"{paper[1]} {100 * paper[0]:.0f} %",
    }


def is_there(allocator):
    """Returns whether `hatf replay` can find an allocator, and reports it if not."""
    found = any(ctypes.util.find_library(name) for name in [allocator, f"{allocator}_minimal"])
    if not found:
        print(f"SKIPPED: {allocator} is not there", file=sys.stderr)
    return found


def main(options):
    with folder(options.folder):
        columns = {}
        allocators = [] if options.small else list(filter(is_there, ["jemalloc", "mimalloc", "tcmalloc"]))
        for name, command, variables in small() if options.small else programs():
            if missing(command[0]):
                continue
            ask(options.hatf, name, command, {**os.environ, **variables}, allocators)
            columns[name] = rows(name)
        head("", *(f"{name}:" for name in columns))
        for title in next(iter(columns.values())):
            row(title, *(of[title] for of in columns.values()))
