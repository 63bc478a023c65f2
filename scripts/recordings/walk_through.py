"""Prints the table of docs/walk-through.md, from the answers that scripts/walk-through left in this folder."""

import json
import os
import sys


def answer(program, of):
    with open(f"{program}.{of}.json") as file:
        return json.load(file)


def size(count):
    for unit in ["B", "KiB", "MiB"]:
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def own(names):
    """The innermost function that is no helper of an allocator or of a language's library; without one the innermost."""
    helpers = ("operator new", "std::", "__gnu", "alloc::", "<alloc::", "core::", "<core::", "hashbrown::", "__rust", "..")
    mine = (name for name in names if not name.startswith(helpers) and "alloc" not in name.lower())
    return next(mine, names[0] if names else "-")[:40]


def name(frame):
    functions = [function["name"] for function in frame["functions"]]
    return functions or [f"{os.path.basename(frame['module'])}+{frame['offset']:#x}"]


def largest(sites, measure):
    site = max(sites, key=lambda site: site[measure]["bytes"])
    names = [function for frame in site["stack"] for function in name(frame)]
    whole = sum(site[measure]["bytes"] for site in sites)
    share = 100 * site[measure]["bytes"] / whole if whole else 0
    return f"{own(names)} {share:.0f} %"


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
        "of them most by": largest(sites["sites"], "peak"),
        "allocated most by": largest(sites["sites"], "allocated"),
        "pages held at the peak, to live bytes": f"{page['held'] * page['page'] / held['live']:.2f}",
        "wasted most by": own(held["sites"][0]["name"].split(" <- ")),
        "predicted best": f"{best['allocator']} {100 * best['saves']:.0f} %",
        "replayed, system's peak": size(outcomes[system]),
        "replayed best": f"{least} {size(outcomes[least])}",
        "frees that arenas save": f"{saved:.0f} %",
        "most of them in": "-" if arena is None else own(arena["context"]),
        "contexts of the profile": f"{len(profile['contexts']):,}",
        "outline, bytes": f"{os.path.getsize(program + '.outline.json'):,}",
        "its error of MaxBytes": f"{100 * models['outline']:.1f} %",
        "best of the paper's models": f"{paper[1]} {100 * paper[0]:.0f} %",
    }


programs = sys.argv[1:]
columns = [rows(program) for program in programs]
print("| | " + " | ".join(programs) + " |")
print("| --- |" + " ---: |" * len(programs))
for row in columns[0]:
    print(f"| {row} | " + " | ".join(column[row] for column in columns) + " |")
