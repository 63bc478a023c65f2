"""Runs a command with a fault and checks the result."""
import errno
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import threading

from . import inputs

CLASSES = ["write", "stdout", "fsync", "rename", "open", "mmap", "truncate", "allocate", "close", "read", "link", "unlink", "mkdir", "copy"]

# Faults for each class of calls. With `+`, all later calls fail, too, as on a full disk.
FAULTS = {
    "write": ["ENOSPC+", "EIO", "EDQUOT+", "EINTR", "SHORT", "KILL", "CUT"],
    "stdout": ["ENOSPC+", "EIO", "EINTR", "SHORT", "CUT"],
    "fsync": ["EIO", "ENOSPC", "KILL"],
    "rename": ["EIO", "ENOSPC", "EACCES", "KILL"],
    "open": ["EMFILE", "EIO", "EINTR", "EACCES", "KILL", "CUT"],
    "mmap": ["ENOMEM", "KILL", "CUT"],
    "truncate": ["ENOSPC", "EIO", "KILL"],
    "allocate": ["ENOSPC+", "EIO", "KILL"],
    "close": ["EIO", "KILL"],
    "read": ["EIO", "EINTR", "SHORT", "KILL", "CUT"],
    "link": ["EIO", "KILL"],
    "unlink": ["EIO", "EACCES", "KILL"],
    "mkdir": ["ENOSPC", "EACCES", "KILL"],
    "copy": ["ENOSPC", "EIO", "KILL"],
}

# File size limits in bytes, under which a command runs without an injected fault.
LIMITS = ["0", "4096", "16384"]

# Maximum difference between the record counts of two recordings.
NOISE = 8

SECONDS = 60


class Run:
    """The result of a run."""

    def __init__(self, status, message, counts, fired, path, late, temporary, files):
        self.status, self.message, self.counts, self.fired, self.path = status, message, counts, fired, path
        self.late, self.temporary, self.files = late, temporary, files


class Bench:
    """A directory in which commands run repeatedly."""

    def __init__(self, folder, commands, sources, shim):
        self.folder, self.commands, self.sources, self.shim = folder, commands, sources, shim
        self.work, self.temporary, self.inputs = (os.path.join(folder, name) for name in ("work", "tmp", "in"))
        # Each bench has its own copy of the inputs, because a fault may truncate one.
        shutil.copytree(sources, self.inputs, symlinks=True)

    def prepare(self, command):
        """Recreates the work directory with old outputs. Returns its files."""
        for folder in (self.work, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
        for name in command.changed:
            shutil.copy(os.path.join(self.sources, name), self.work)
        if command.takes_spool:
            inputs.copy_spool(self.sources, self.work)
        for name in [] if command.needs_none else command.outputs:
            shutil.copy(os.path.join(self.sources, "packed.mtf" if name.endswith(".mtf") else "jobs.dtd"), os.path.join(self.work, name))
        return self.files()

    def files(self):
        """Returns the digest of each file in the work directory, except for the spool."""
        found = {}
        for folder, _, names in os.walk(os.fsencode(self.work)):
            for name in names:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, os.fsencode(self.work))
                if not relative.startswith(b"spool/"):
                    found[os.fsdecode(relative)] = digest(path)
        return found

    def run(self, command, place="", number=0, fault=""):
        """Runs a command in which call `number` of the class `place` fails."""
        counts = os.path.join(self.folder, "counts")
        with open(counts, "wb") as file:
            file.write(bytes(4096))
        words = [self.word(word) for word in command.words]
        environment = {"PATH": self.commands + ":/usr/bin:/bin", "HOME": self.folder, "LANG": "C.UTF-8", "TMPDIR": self.temporary, "LD_PRELOAD": self.shim, "FAULT_COUNTS": counts}
        limit, name = None, fault.rstrip("+")
        if place == "limit":
            limit = int(fault)
            del environment["LD_PRELOAD"]
        elif place:
            environment.update(FAULT_CLASS=place, FAULT_CALL=str(number), FAULT=str(getattr(errno, name, name)))
            if fault.endswith("+"):
                environment["FAULT_STICKY"] = "1"
        cut = self.input(words) if name == "CUT" else None
        if cut:
            environment["FAULT_INPUT"] = os.path.join(self.work, cut)
        if command.is_program:
            environment.update(METATF_TELEMETRY_CONTROL="Pool Object", METATF_TELEMETRY_FILENAME="out.mtf")
        late = False
        process = subprocess.Popen(
            words, cwd=self.work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        killer = threading.Timer(SECONDS, kill_group, [process.pid])
        killer.start()
        outputs, messages = [], []
        readers = [threading.Thread(target=lambda: outputs.append(process.stdout.read())), threading.Thread(target=lambda: messages.append(process.stderr.read()))]
        for reader in readers:
            reader.start()
        if fault == "KILL":
            # Children of the killed command keep its pipes open.
            process.wait()
            kill_group(process.pid)
        for reader in readers:
            reader.join()
        process.wait()
        late = not killer.is_alive()
        killer.cancel()
        process.stdout.close()
        process.stderr.close()
        kill_group(process.pid)
        # A failed or killed recording leaves its spool.
        for spool in glob.glob("/dev/shm/hatf-spool-%d-*" % process.pid):
            shutil.rmtree(spool, ignore_errors=True)
        if cut:
            shutil.copy(os.path.join(self.sources, os.path.relpath(cut, "../in")), os.path.join(self.work, cut))
        with open(os.path.join(self.folder, "stdout"), "wb") as file:
            file.write(outputs[0])
        message = messages[0].decode("utf-8", "replace")
        with open(counts, "rb") as file:
            *numbers, fired = struct.unpack("33i", file.read(132))
            path = file.read(1024).split(b"\0")[0].decode("utf-8", "replace")
        calls = dict(zip(CLASSES, numbers))
        files = self.files()
        files["-"] = digest(os.path.join(self.folder, "stdout"))
        return Run(process.returncode, message, calls, bool(fired) or place == "limit", path, late, os.listdir(self.temporary), files)

    def word(self, word):
        if word in ("hatf", "metatfc"):
            return os.path.join(self.commands, word)
        return word.replace("IN/", "../in/")

    def input(self, words):
        """Returns the first input that is neither a program nor a DTD."""
        return next((word for word in words[2:] if word.startswith("../in/") and not word.endswith(("/program", ".dtd"))), None)

    def says_killed(self, name):
        """Returns whether a trace records the signal that killed its program."""
        dumped = subprocess.run([os.path.join(self.commands, "metatfc"), "dump", "--record", "killed", os.path.join(self.work, name)], capture_output=True)
        return b"killed" in dumped.stdout

    def meaning(self, name):
        """Returns the properties of a file that do not vary from run to run."""
        path = os.path.join(self.folder, "stdout") if name == "-" else os.path.join(self.work, name)
        with open(path, "rb") as file:
            content = file.read()
        if content.startswith(b"\x7fMTF"):
            verified = subprocess.run([os.path.join(self.commands, "metatfc"), "verify", path], capture_output=True, text=True)
            records = re.search(r"(\d[\d,]*) records?", verified.stdout + verified.stderr)
            return "trace", verified.returncode, int(records[1].replace(",", "")) if records else -1
        if name.endswith((".db", ".sqlite")):
            try:
                with sqlite3.connect("file:%s?mode=ro" % path, uri=True) as database:
                    tables = [table for (table,) in database.execute("select name from sqlite_master where type = 'table' order by 1")]
                    return ("database", *[(table, database.execute('select count(*) from "%s"' % table).fetchone()) for table in tables])
            except sqlite3.Error as error:
                return "database", str(error)
        # Times differ between runs, but the number of lines does not.
        return "text", content.count(b"\n") if name.endswith(".txt") else content[-8:]


def kill_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        return str(error)


def same(one, other):
    """Returns whether two files have the same properties, apart from recording noise."""
    if one[0] == other[0] == "trace":
        return one[1] == other[1] and abs(one[2] - other[2]) <= NOISE
    return one == other


class Clean:
    """The reference run of a command, without a fault."""

    def __init__(self, bench, command):
        self.before = bench.prepare(command)
        self.run = bench.run(command)
        if self.run.status != command.status:
            raise SystemExit("%s: status %d without a fault: %s" % (command.line, self.run.status, self.run.message))
        self.after = self.run.files
        # If the input is already corrupt, an incomplete result is not an error.
        self.may_cut = bool(bench.input([bench.word(word) for word in command.words])) and command.status == 0
        self.meanings = {name: bench.meaning(name) for name in self.after}


def states(bench, command, clean, before, run):
    """Returns the state of each file: new, old, absent, temporary, lost or torn."""
    found, after = {}, run.files
    # If symbolization fails, the command reports that, and its output is complete except for the names.
    without_names = re.search("(have no names|has no name):", run.message) is not None
    for name in set(before) | set(after) | set(clean.after):
        now, old, new = after.get(name), before.get(name), clean.after.get(name)
        if now == new:
            found[name] = "new"
        elif now == old:
            found[name] = "old" if old else "absent"
        elif name in after and name not in before and name not in clean.after:
            found[name] = "temporary"
        elif name not in after:
            found[name] = "lost"
        elif name in clean.meanings and (command.varies or without_names) and same(bench.meaning(name), clean.meanings[name]):
            found[name] = "new"
        elif without_names and run.status == 1 and command.line.startswith("hatf symbolize") and bench.meaning(name)[:2] == ("trace", 0):
            # The trace is complete, but its frames lack the unresolved names.
            found[name] = "new"
        elif name in clean.meanings and (without_names or run.status == 1 and command.goes_to_damage) and clean.meanings[name][0] == "text":
            found[name] = "new"
        else:
            found[name] = "torn"
    return found


def wrongs(bench, command, clean, place, number, fault):
    """Runs a command with a fault. Returns the errors, or `None` if the call that should fail was not made."""
    before = bench.prepare(command)
    run = bench.run(command, place, number, fault)
    if not run.fired:
        return None
    fault = fault.rstrip("+")
    killed = fault == "KILL"
    found = states(bench, command, clean, before, run)
    stdout = found.pop("-")
    wrong = []
    if run.late:
        wrong.append("it did not end")
    if run.status == 101 or "panicked at" in run.message:
        wrong.append("panic")
    if run.status < 0 and not killed and not run.late:
        wrong.append("signal %d" % -run.status)
    by_state = {state: sorted(name for name, of in found.items() if of == state) for state in set(found.values())}
    if "lost" in by_state:
        wrong.append("lost: the old " + ", ".join(by_state["lost"]))
    if run.temporary and not killed:
        wrong.append("left in TMPDIR: " + ", ".join(run.temporary))
    # If `hatf recover` builds a trace from a part of the spool, next to the unfinished trace, it prints the name of that trace.
    left = [name for name in by_state.get("temporary", []) if not re.search(r" records in \S*/%s," % re.escape(name), run.message)]
    # If `unlink` fails, the file remains and the command fails.
    if left and not killed and not (place == "unlink" and run.status):
        wrong.append("left: " + ", ".join(left))
    if not killed and not run.late and not wrong:
        wrong += judge(command, run, stdout, found, bench.temporary, place, fault, [name for name, state in found.items() if state not in ("new", "temporary")])
    for name in by_state.get("torn", []):
        wrong += torn(bench, command, clean, name, run, killed)
    if command.takes_spool and any(state != "new" for state in found.values()):
        wrong += recovered(bench, command, clean)
    return [text + details(run) for text in wrong]


def judge(command, run, stdout, found, temporary, place, fault, others):
    """Returns the errors in the status and the message of a run that was not killed."""
    done = run.status == command.status
    if done and command.status == 0:
        lost = others or (stdout != "new" and not command.varies)
        # A message without a failure status does not count as reporting the failure.
        return ["status 0, and not written: " + ", ".join(others or ["standard output"])] if lost else []
    if fault in ("EINTR", "SHORT") and not done:
        return ["not tried again"]
    if done and not others:
        return []
    if not run.message.strip():
        return ["no message"]
    # A pipe between the command's own processes fails only if one of them has died. The message reports that.
    if run.path.startswith("pipe:") and "failed in its child process" in run.message:
        return []
    # The spool remains for another attempt.
    if command.takes_spool and "cannot be read" in run.message:
        return []
    # SQLite has its own error messages.
    if "sqlite" in command.line and re.search("disk I/O error|disk image is malformed|readonly database|unable to open database|disk is full", run.message):
        return []
    if fault.startswith("E") and os.strerror(getattr(errno, fault)) not in run.message:
        return ["the message lacks the system's words"]
    words = [os.path.basename(word) for word in [run.path.removesuffix(".new"), *command.words[1:], *found]] + [temporary]
    if place != "stdout" and not command.is_program and not any(word and word in run.message for word in words):
        return ["the message names no file"]
    return []


def torn(bench, command, clean, name, run, killed):
    """Returns the errors of an output that is neither old nor new."""
    meaning, failed = bench.meaning(name), killed or run.status != command.status
    # The fault killed the recorded program, and `hatf` returned that status. The trace is complete, but shorter.
    if killed and run.status == 128 + signal.SIGKILL and command.line.startswith(("hatf record", "hatf run")):
        return [] if bench.says_killed(name) or "before it loaded the recorder" in run.message else ["no record of the kill: " + name]
    if command.is_program and failed and meaning[0] != "trace":
        return []
    # A part of the buffers cannot be read: the trace contains everything else.
    if failed and command.line.startswith("metatfc telemetry") and re.search(r"cannot read \S*/buffers:", run.message) and meaning[0] == "trace":
        return []
    # The recorder could not open the spool, so it could not count the lost events.
    if failed and "nothing was recorded:" in run.message:
        return []
    if meaning[0] == "trace" and (command.is_program or command.line.startswith(("hatf record", "hatf run"))):
        # A trace written while the program runs must itself report that it is incomplete.
        counted = re.search(r"(\d[\d,]*) events were (?:dropped|lost)", run.message)
        lost = int(counted[1].replace(",", "")) if counted else 0
        whole = meaning[1] == 0 and meaning[2] + lost < clean.meanings[name][2] - NOISE
        return ["torn, and reads as whole: " + name] if whole or not failed else []
    return ["torn: " + name]


def recovered(bench, command, clean):
    """Returns the outputs that a second `hatf recover` does not produce."""
    bench.run(command)
    wanted = clean.meanings
    lost = [name for name in bench.files() if name in wanted and not same(bench.meaning(name), wanted[name])]
    missing = [name for name in wanted if name != "-" and not os.path.exists(os.path.join(bench.work, name))]
    return ["a second recover does not give " + ", ".join(lost + missing)] if lost + missing else []


def details(run):
    return " | status %d, %s, %s" % (run.status, run.path or "-", json.dumps(run.message[-300:]))
