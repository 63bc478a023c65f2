"""Measures programs that write and read the same events in six formats: two tables for docs/performance.md.

The first table compares file sizes and the CPU time of writing, of reading, and of reading one of 14 fields, after checking that all programs
read the same values. The
second one compares the CPU time of building these programs. Each program is built from dev/benches/access as a separate crate, with cargo's
default profiles. All figures are medians over rounds in which the formats take turns.
"""
import datetime
import os
import platform
import shutil

from .common import ROOT, folder, head, in_turns, median, row, run, used

FORMATS = {
    "metatf": "Meta-TF",
    "postcard": "postcard, zstd 3",
    "prost": "Protocol Buffers (prost), zstd 3",
    "bincode": "bincode 2, zstd 3",
    "rkyv": "rkyv, checked, zstd 3",
    "parquet": "Parquet, zstd 3",
}

# The program that writes and reads each file. Other files are named after their format.
FILES = {"metatf.columns": ("metatf", "Meta-TF, filter `columns`")}

OPTIONS = {
    "--rounds": {"type": int, "default": 3, "help": "how often each run is measured (default: 3)"},
    "--builds": {"type": int, "default": 3, "help": "how often each build is measured (default: 3)"},
    "--events": {"type": int, "default": 1_000_000, "help": "how many events are written (default: 1,000,000)"},
    "--formats": {"nargs": "+", "choices": FORMATS, "default": list(FORMATS), "help": "only these formats, and not hatf-trace"},
    "--folder": {"metavar": "DIR", "help": "where the programs are built, which takes 3 GB (default: a temporary directory)"},
}

# Appends the user time of rustc, the name of the crate and its type to a file.
WRAPPER = """#!/usr/bin/env python3
import os, resource, subprocess, sys
status = subprocess.call(sys.argv[1:], close_fds=False)
crate = [sys.argv[sys.argv.index(option) + 1] for option in ("--crate-name", "--crate-type") if option in sys.argv]
with open(os.environ["RUSTC_TIMES"], "a") as times:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, *crate, file=times)
sys.exit(status)
"""


def user(*command, **options):
    """Runs a command, which must succeed, and returns the user time of all its processes in seconds."""
    status, usage, _ = used(*command, **{"stderr": None, **options})
    if status:
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    return usage.ru_utime


class Build:
    """Builds of one package in a target directory."""

    def __init__(self, directory, package, target, *options):
        self.directory, self.package, self.options = directory, package, options
        self.target = os.path.abspath(target)

    def cargo(self, command, *options, **variables):
        """Runs cargo and returns the user time of all its processes."""
        environment = {**os.environ, "CARGO_TARGET_DIR": self.target, "CARGO_INCREMENTAL": "0", **variables}
        return user("cargo", command, "--quiet", *options, cwd=self.directory, env=environment)

    def rustc(self, crate, *profile):
        """Returns the user time of the compiler for a crate whose dependencies are built."""
        self.cargo("build", "--locked", *profile, *self.options)
        self.cargo("clean", "--package", self.package, *profile)
        times = os.path.abspath("times")
        open(times, "w").close()
        self.cargo("build", "--locked", *profile, *self.options, RUSTC_WRAPPER=os.path.abspath("wrapper"), RUSTC_TIMES=times)
        lines = [line.split() for line in open(times)]
        return next(float(seconds) for seconds, *of in lines if of == crate)

    def whole(self):
        """Returns the user time of a release build without any built dependency."""
        shutil.rmtree(self.target, ignore_errors=True)
        return self.cargo("build", "--locked", "--release", *self.options)

    def check(self, source):
        """Returns the user time of `cargo check` after a change of a source file."""
        self.cargo("check", "--locked", *self.options)
        with open(os.path.join(self.directory, source), "a") as file:
            file.write("// Changed.\n")
        return self.cargo("check", "--locked", *self.options)


def crate():
    """Copies the crate of the programs into the working directory, and returns its path."""
    shutil.rmtree("access", ignore_errors=True)
    shutil.copytree(os.path.join(ROOT, "dev/benches/access"), "access", ignore=shutil.ignore_patterns("target"))
    with open("access/Cargo.toml") as file:
        manifest = file.read()
    with open("access/Cargo.toml", "w") as file:
        file.write(manifest.replace("../../..", os.path.realpath(ROOT)))
    return os.path.abspath("access")


def program(build, name):
    """Returns the path of a program built with optimization."""
    return os.path.join(build.target, "release", f"access-{name}")


def built(builds, name):
    """Measures the builds of a program."""
    source = "access.dtd" if name == "metatf" else f"src/bin/{name}.rs"
    build = builds[name]
    figures = {
        "whole": build.whole(),
        "release": build.rustc([f"access_{name}", "bin"], "--release"),
        "debug": build.rustc([f"access_{name}", "bin"]),
        "check": build.check(source),
    }
    return {**figures, "size": os.path.getsize(program(build, name))}


def ran(builds, name, events, checksums):
    """Measures a program that writes and then reads events."""
    of = FILES.get(name, (name,))[0]
    command, file = program(builds[of], of), os.path.abspath(name)
    figures = {"write": user(command, "write", file, str(events)), "size": os.path.getsize(file)}
    for what in ["read", "sum"] if of in ("metatf", "parquet") else ["read"]:
        checksums[what].add(run(command, what, file).decode().strip())
        if len(checksums[what]) != 1:
            raise SystemExit(f"{name} reads other events: {', '.join(sorted(checksums[what]))}")
        figures[what] = user(command, what, file)
    return figures


def trace_crate(rounds):
    """Returns the user time of the compiler for the crate `hatf-trace`, whose DTDs are the largest of this project."""
    build = Build(os.path.realpath(ROOT), "hatf-trace", "target-workspace", "--package", "hatf-trace")
    seconds = median([build.rustc(["hatf_trace", "lib"], "--release") for _ in range(rounds)])
    shutil.rmtree(build.target)
    return seconds


def medians(results):
    """Returns the median of each figure."""
    return {figure: median([result[figure] for result in results]) for figure in results[0]}


def main(options):
    with folder(options.folder):
        with open("wrapper", "w") as file:
            file.write(WRAPPER)
        os.chmod("wrapper", 0o755)
        directory = crate()
        builds = {name: Build(directory, "access-bench", f"target-{name}", "--features", name, "--bin", f"access-{name}") for name in options.formats}
        builds_of = in_turns(options.builds, builds, lambda name: built(builds, name))
        load = os.getloadavg()[0]
        checksums = {"read": set(), "sum": set()}
        files = [*builds, *(file for file, (of, _) in FILES.items() if of in builds)]
        runs_of = in_turns(options.rounds, files, lambda name: ran(builds, name, options.events, checksums))
        for build in builds.values():
            shutil.rmtree(build.target)
        trace_seconds = trace_crate(options.rounds) if len(builds) == len(FORMATS) else None
        rustc = " ".join(run("rustc", "--version").decode().split()[:2])
        print(f"{options.events:,} events, {os.cpu_count()} cores ({platform.machine()}), {rustc}, {datetime.date.today()}, "
              f"rounds: {options.rounds}, of builds {options.builds}, load average {load:.2f} after building and {os.getloadavg()[0]:.2f} at the end.\n")
        head("format", "MB:", "bytes per event:", "write, user s:", "read, user s:", "read one field, user s:")
        for name, results in runs_of.items():
            figures = medians(results)
            row(FORMATS.get(name) or FILES[name][1], f"{figures['size'] / 1e6:.1f}", f"{figures['size'] / options.events:.1f}",
                f"{figures['write']:.2f}", f"{figures['read']:.2f}", f"{figures['sum']:.2f}" if "sum" in figures else "")
        print()
        head("program", "rustc, release, user s:", "rustc, debug, user s:", "check after a change, user s:", "whole build, user s:", "program, MB:")
        for name, results in builds_of.items():
            figures = medians(results)
            row(FORMATS[name].split(",")[0], *(f"{figures[figure]:.1f}" for figure in ("release", "debug", "check", "whole")),
                f"{figures['size'] / 1e6:.2f}")
        if trace_seconds:
            row("`hatf-trace` (library)", f"{trace_seconds:.1f}", "", "", "", "")
