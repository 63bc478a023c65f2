"""Measures the size of recordings: a table for docs/how-small.md, in bytes per record of complete files.

The programs have about a million events each. The table lists recordings of `hatf record` without options, archives of these traces,
recordings with stacks, and heaptrack recordings. Sizes vary slightly from run to run, because addresses are random and times differ.
"""
import os
import re
import shutil
import subprocess

from .common import FOLDER, INPUTS, PYTHON, folder, head, missing, pages, row, run, write

OPTIONS = FOLDER
CPP = """#include <map>
#include <string>
#include <regex>
bool matches(const std::string &line, std::smatch &found, const std::regex &pattern);
void count(std::map<std::string, int> &words, const std::string &line) {
    static std::regex pattern("([a-z]+)[0-9]*");
    std::smatch found;
    if (matches(line, found, pattern)) words[found[1]]++;
}
"""


def pdf(text):
    """Converts a text to pages.pdf if ghostscript is installed. This conversion is not recorded."""
    with open("pages.ps", "w") as pages_ps:
        run("awk", "-f", f"{INPUTS}/pages.awk", write("long.txt", text), stdout=pages_ps)
    if shutil.which("gs"):
        run("gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", "-sOutputFile=pages.pdf", "pages.ps")


def compiler(driver, name):
    """Returns the path of the compiler that a driver runs, or an empty string if the driver is not installed."""
    return run(driver, f"-print-prog-name={name}").decode().strip() if shutil.which(driver) else ""


def programs():
    """Yields names, titles, commands and environment variables."""
    write("text.txt", pages(3))
    pdf(pages(27))
    with open("program.c", "w") as source:
        run("awk", "-f", f"{INPUTS}/program.awk", stdout=source)
    write("program.cpp", CPP)
    yield "gawk", "gawk: words of a text", ["gawk", "-f", f"{INPUTS}/words.awk", "text.txt"], {}
    yield "perl", "perl: hashes of hashes", ["perl", f"{INPUTS}/hash.pl"], {}
    gs = ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m", "-r50", "-sOutputFile=/dev/null", "pages.pdf"]
    yield "gs", "ghostscript: PDF to PNG", gs, {}
    yield "sqlite", "sqlite3: a table in memory", ["sqlite3", ":memory:", f".read {INPUTS}/table.sql"], {}
    yield "python", "python3: four threads", [PYTHON, f"{INPUTS}/threads.py", "240000"], {}
    malloc = {"PYTHONMALLOC": "malloc"}
    yield "python_malloc", "the same with `PYTHONMALLOC=malloc`, less long", [PYTHON, f"{INPUTS}/threads.py", "6000"], malloc
    machine = ["-quiet", "-imultiarch", "x86_64-linux-gnu"]
    yield "cc1", "gcc's cc1: C, -O2", [compiler("gcc", "cc1"), *machine, "-O2", "program.c", "-o", "/dev/null"], {}
    cc1plus = [compiler("gcc", "cc1plus"), *machine, "-D_GNU_SOURCE", "-O0", "program.cpp", "-o", "/dev/null"]
    yield "cc1plus", "gcc's cc1plus: `<regex>`", cc1plus, {}


def main(options):
    hatf = options.hatf
    with folder(options.folder):
        head("program", *(f"{name}:" for name in ("events", "as recorded", "archive", "archive without times", "with stacks", "heaptrack")))
        for name, title, command, variables in programs():
            if missing(command[0]):
                continue
            environment = {**os.environ, **variables}
            run(hatf, "record", "-q", "--no-follow", "-o", f"{name}.mtf", "--", *command, env=environment)
            archive = [hatf, "convert", "--preset", "archive", "--to", "heap"]
            run(*archive, f"{name}.mtf", f"{name}.archive.mtf")
            run(*archive, "--clock", "off", f"{name}.mtf", f"{name}.timeless.mtf")
            run(hatf, "record", "-q", "--stacks", "--no-follow", "-o", f"{name}.stacks.mtf", "--", *command, env=environment)
            files = [f"{name}{form}.mtf" for form in ("", ".archive", ".timeless", ".stacks")]
            if shutil.which("heaptrack"):
                run("heaptrack", "-o", f"{name}.heaptrack", *command, env=environment, stderr=subprocess.STDOUT)
                files.append(f"{name}.heaptrack.zst")
            report = run(hatf, "report", f"{name}.mtf").decode()
            records = int(re.search(r"^  ([0-9,]*) records: ", report, re.M)[1].replace(",", ""))
            sizes = [f"{os.path.getsize(file) / records:.3f}" for file in files]
            row(title, f"{records:,}", *sizes, *["-"] * (5 - len(sizes)))
