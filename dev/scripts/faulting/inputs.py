"""Creates the inputs of the commands: traces, tables, and the spool left by a killed `hatf record`."""
import json
import os
import random
import re
import shutil
import signal
import subprocess

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *blocks[512];
__attribute__((noinline)) static void take(int i) { blocks[i % 512] = i & 1 ? malloc(16 + i % 300) : calloc(3, i % 90 + 1); }
__attribute__((noinline)) static void give(int i) { free(blocks[i]); blocks[i] = NULL; }
int main(int count, char **words) {
    unsigned random = 1;
    for (int i = 0; i < atoi(words[1]); i++) {
        int place = (random = random * 1103515245 + 12345) >> 16 & 511;
        if (blocks[place]) give(place); else take(place);
    }
    if (count > 2) { puts("ready"); fflush(stdout); sleep(60); }
    return 0;
}
"""

DTD = """\
time.width = 4; time.interpretation = delta 0; time.format = "time_ns"; time.role = "time";
section queue 1 {
    submit: (time, job, vfield) { tag.value = 4; tag.span = "begin"; job.role = "span"; job.interpretation = stride 0 1; vfield.data.format = "utf8"; }
    done: (time, job, status) { tag.value = 5; tag.span = "end"; job.role = "span"; job.width = 1; job.interpretation = baseOffset submit.job.value; status.width = 1; status.interpretation = none; }
}
"""


def lines(jobs):
    """Yields records of the DTD as dicts."""
    numbers, time = random.Random(1), 1000
    for job in range(1, jobs + 1):
        time += numbers.randrange(1, 90000)
        yield {"@section": "queue", "@record": "submit", "time": time, "job": job, "vfield": "job %d %s" % (job, "x" * numbers.randrange(30))}
        time += numbers.randrange(1, 90000)
        yield {"@section": "queue", "@record": "done", "time": time, "job": job, "status": numbers.randrange(4)}


def make(folder, commands, repository, events, tables):
    """Creates all inputs. `events` is the number of steps of the recorded program; `tables` is whether the commands have this feature."""
    def run(*words, **how):
        return subprocess.run([os.path.join(commands, words[0]) if words[0] in ("hatf", "metatfc") else words[0], *words[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)

    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    write("program.c", PROGRAM)
    run("cc", "-O1", "-g", "-o", "program", "program.c")
    run("hatf", "record", "-q", "--stacks", "--group", "500", "-o", "heap.mtf", "./program", str(events))
    run("hatf", "record", "-q", "--stacks", "-o", "other.mtf", "./program", str(events // 2))
    run("hatf", "profile", "heap.mtf", "-o", "heap.prof.mtf")
    run("hatf", "convert", "heap.prof.mtf", "heap.pb.gz")
    run("hatf", "model", "fit", "heap.mtf", "-m", "cdf", "-o", "model.json")
    run("hatf", "convert", "--to", "jsonl", "heap.mtf", "heap.jsonl")
    write("jobs.dtd", DTD)
    write("jobs.jsonl", "".join(json.dumps(line) + "\n" for line in lines(events // 8)))
    run("metatfc", "convert", "--dtd", "jobs.dtd", "--chunk", "4K", "jobs.jsonl", "jobs.mtf")
    run("metatfc", "convert", "jobs.mtf", "packed.mtf")
    run("metatfc", "convert", "--dtd", "jobs.dtd", "--version", "0", "jobs.jsonl", "plain.mtf")
    run("metatfc", "convert", "--to", "raw", "jobs.mtf", "jobs.raw")
    with open(os.path.join(folder, "jobs.mtf"), "rb") as file:
        half = file.read()[: os.path.getsize(os.path.join(folder, "jobs.mtf")) * 2 // 3]
    with open(os.path.join(folder, "torn.mtf"), "wb") as file:
        file.write(half)
    for form in ("csv", "parquet") if tables else ():
        run("metatfc", "convert", "jobs.mtf", "--to", form, form)
    write("misspelt.dtd", "section s 1 {\n  a: (tag, x) { tag.value = 4; x.width=4; x.interpretation = nonee; }\n}\n")
    write("ugly.dtd", "section s 1 {\n  a: (tag,    x) { tag.value=4; x.width=4;x.interpretation = none; }\n}\n")
    telemetry(folder, run, repository)
    spool(folder, commands, events)


def telemetry(folder, run, repository):
    """Compiles the telemetry program from the book, and creates the buffers and the unfinished trace that it leaves when it is killed."""
    for name in ("pools.dtd", "pools.c"):
        shutil.copy(os.path.join(repository, "examples", "telemetry", name), folder)
    run("metatfc", "gen", "--lang", "c", "pools.dtd", "-o", "pools.h")
    compiler = ("cc", "-std=c99", "-O2", "-w", "-DPOOLS_POSIX", "-pthread")
    run(*compiler, "pools.c", "-o", "pools")
    with open(os.path.join(folder, "pools.c"), encoding="utf-8") as file:
        program = file.read()
    changes = {
        "pools_emitter_begin(&emitter, &file.trace, buffer, sizeof buffer);": "pools_share(&file, 2, 64 << 10), pools_emitter_begin_shared(&emitter, &file);",
        "failed = pools_emitter_end": "raise(9);\n    failed = pools_emitter_end",
        "#include <stdio.h>": "#include <signal.h>\n#include <stdio.h>",
    }
    for before, after in changes.items():
        assert before in program
        program = program.replace(before, after)
    with open(os.path.join(folder, "killed.c"), "w", encoding="utf-8") as file:
        file.write(program)
    run(*compiler, "killed.c", "-o", "killed")
    environment = {**os.environ, "METATF_TELEMETRY_FOLDER": folder, "METATF_TELEMETRY_FILENAME": os.path.join(folder, "killed.mtf"), "METATF_TELEMETRY_CONTROL": "all"}
    subprocess.run(["./killed"], cwd=folder, env=environment)
    (name,) = (name for name in os.listdir(folder) if name.startswith("metatf."))
    os.rename(os.path.join(folder, name), os.path.join(folder, "buffers"))


def spool(folder, commands, events):
    """Creates `spool` and `unfinished.mtf` by killing `hatf record`, and then the recorded program."""
    os.mkdir(os.path.join(folder, "spools"))
    recording = subprocess.Popen(
        [os.path.join(commands, "hatf"), "record", "-q", "--stacks", "--spool", os.path.join(folder, "spools"), "-o", "unfinished.mtf", "./program", str(events), "wait"],
        cwd=folder, stdout=subprocess.PIPE, start_new_session=True)
    recording.stdout.readline()
    os.kill(recording.pid, signal.SIGKILL)
    recording.wait()
    os.killpg(recording.pid, signal.SIGKILL)
    recording.stdout.close()
    (name,) = os.listdir(os.path.join(folder, "spools"))
    os.rename(os.path.join(folder, "spools", name), os.path.join(folder, "spool"))


def copy_spool(inputs, folder):
    """Copies the spool and its trace to a directory where a command may consume them."""
    shutil.copytree(os.path.join(inputs, "spool"), os.path.join(folder, "spool"))
    shutil.copy(os.path.join(inputs, "unfinished.mtf"), folder)
    path = os.path.join(folder, "spool", "recording.json")
    with open(path, encoding="utf-8") as file:
        text = file.read().replace(os.path.join(inputs, "unfinished.mtf"), os.path.join(folder, "unfinished.mtf"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r'"spool": "[^"]*"', '"spool": %s' % json.dumps(os.path.join(folder, "spool")), text))
