//! Nothing is lost silently: lost events are counted, the exit status is not 0, and no spool is removed before its
//! trace is on disk.
#![expect(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::hatf;
use metatf::container::Reader;
use metatf_test::{Disk, Folder, PATIENCE, Run, run, skip};

/// Compiles a C program or library. Returns `None` if there is no compiler.
fn compiled(folder: &Folder, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (code, out) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&code, source).unwrap();
    let built = Command::new("cc").args(flags).arg("-o").arg(&out).arg(code).status();
    if !built.is_ok_and(|status| status.success()) {
        skip("no cc on this machine");
        return None;
    }
    Some(out)
}

/// Compiles a program that waits for a line and then allocates 50,000 blocks.
fn blocks(folder: &Folder) -> Option<PathBuf> {
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(\"ready\"); fflush(stdout); getchar();\n\
        for (int n = 0; n < 50000; n++) { void *volatile block = malloc(77); free(block); }\n\
        puts(\"done\"); fflush(stdout); return 7; }\n";
    compiled(folder, "blocks", source, &["-O1"])
}

/// Runs `hatf` with a preloaded library.
fn hatf_with(library: &Path, arguments: &[&str]) -> Run {
    run(Command::new(env!("CARGO_BIN_EXE_hatf")).args(arguments).env("LD_PRELOAD", library))
}

/// Returns the spools in a directory.
fn spools(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("hatf-spool-")).map(|e| e.path()).collect()
}

/// Records the program and kills `hatf` before the blocks are allocated. Returns the spool, which contains all of them.
fn left_behind(folder: &Folder) -> Option<PathBuf> {
    let program = blocks(folder)?;
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--stacks", "-o", &folder.path("trace.mtf"), "--spool"])
        .arg(&**folder)
        .arg("--")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = recorder.stdout.take().unwrap();
    output.read_exact(&mut [0; 6]).unwrap();
    let mut input = recorder.stdin.take().unwrap();
    let begun = Instant::now();
    while !folder.join("trace.mtf").exists() {
        assert!(begun.elapsed() < PATIENCE, "there is no trace");
        std::thread::sleep(Duration::from_millis(1));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    input.write_all(b"\n").unwrap();
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    assert_eq!(said, "done\n");
    let spools = spools(folder);
    assert_eq!(spools.len(), 1);
    spools.into_iter().next()
}

/// Copies a spool under a new name.
fn copied(spool: &Path, to: &Path) -> PathBuf {
    let copy = to.join("hatf-spool-copy");
    assert!(Command::new("cp").args(["-a", "--sparse=always"]).arg(spool).arg(&copy).status().unwrap().success());
    copy
}

fn recover(spool: &Path, trace: &Path) -> Run {
    hatf(["recover".as_ref(), spool.as_os_str(), "-o".as_ref(), trace.as_os_str()])
}

/// Returns the first number in the message, and the number before "lost".
fn counts(run: &Run) -> (u64, u64) {
    let line = run.err.lines().find(|line| line.contains(" records in ")).unwrap_or_else(|| panic!("{}", run.err));
    let number = |text: &str| text.rsplit(' ').next().unwrap().parse().unwrap();
    let (records, _) = line.split_once(" records").unwrap();
    let (lost, _) = line.split_once(" lost").unwrap();
    (number(records), number(lost))
}

#[test]
fn a_truncated_spool_is_kept_and_its_loss_counted() {
    let folder = Folder::new();
    let Some(spool) = left_behind(&folder) else { return };
    let other = Folder::new();
    let whole = copied(&spool, &other);
    let (all, lost) = counts(&recover(&whole, &other.join("whole.mtf")).exits(0));
    assert!(all > 100_000 && lost == 0 && !whole.exists(), "{all}, {lost}");
    for bytes in [200_000, 500_000, 1_000_000] {
        let cut = copied(&spool, &other);
        fs::File::options().write(true).open(cut.join("events")).unwrap().set_len(bytes).unwrap();
        let part = recover(&cut, &other.join("part.mtf")).exits(1).says("part of the spool cannot be read");
        let (records, lost) = counts(&part);
        assert!(records < all && records + lost >= all, "{records} and {lost} of {all}");
        assert!(cut.join("events").exists());
        // A second recovery has the same result.
        assert_eq!(counts(&recover(&cut, &other.join("again.mtf")).exits(1)), (records, lost));
        hatf(["report".as_ref(), other.join("part.mtf").as_os_str()]).exits(0).prints("lost");
        fs::remove_dir_all(&cut).unwrap();
    }
    // Missing stacks are not treated as empty stacks.
    let cut = copied(&spool, &other);
    fs::File::options().write(true).open(cut.join("stacks")).unwrap().set_len(4096).unwrap();
    recover(&cut, &other.join("stackless.mtf")).exits(1).says("part of the stacks in the spool cannot be read");
    assert!(cut.join("stacks").exists());
}

/// On a full memory file system, a hole in a file can be read but not touched in a mapping.
#[test]
fn a_spool_with_holes_on_a_full_disk() {
    let folder = Folder::new();
    let Some(spool) = left_behind(&folder) else { return };
    let other = Folder::new();
    let Some(disk) = Disk::new("16m") else { return skip("this user cannot make a disk") };
    let copy = copied(&spool, &disk);
    let mut filler = fs::File::create(disk.join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    let recovered = recover(&copy, &other.join("trace.mtf"));
    drop(filler);
    let (records, lost) = counts(&recovered.exits(0));
    assert!(records > 100_000 && lost == 0, "{records}, {lost}");
}

/// Recovery fails if the unfinished trace exists but cannot be read, because it may contain events that the spool no
/// longer has.
#[test]
fn an_unfinished_trace_that_cannot_be_read_is_an_error() {
    let folder = Folder::new();
    let Some(spool) = left_behind(&folder) else { return };
    let trace = folder.join("trace.mtf");
    fs::remove_file(&trace).unwrap();
    fs::create_dir(&trace).unwrap();
    hatf(["recover".as_ref(), spool.as_os_str(), "-o".as_ref(), folder.join("o.mtf").as_os_str()])
        .exits(1)
        .says("trace.mtf");
    assert!(spool.join("events").exists() && !folder.join("o.mtf").exists());
    // If another trace has taken its place, that trace stays, and the recovered one gets another name.
    fs::remove_dir(&trace).unwrap();
    hatf(["record".as_ref(), "-q".as_ref(), "-o".as_ref(), trace.as_os_str(), "--".as_ref(), "true".as_ref()]).exits(0);
    let before = fs::read(&trace).unwrap();
    hatf(["recover".as_ref(), spool.as_os_str()]).exits(0).says("trace.1.mtf");
    assert_eq!(fs::read(&trace).unwrap(), before);
    assert!(folder.join("trace.1.mtf").exists() && !spool.exists());
}

#[test]
fn a_spool_is_removed_after_its_trace_is_on_the_disk() {
    let folder = Folder::new();
    let source = "#include <errno.h>\nint fsync(int file) { errno = EIO; return -1; }\n";
    let Some(library) = compiled(&folder, "shim.so", source, &["-shared", "-fPIC"]) else { return };
    let (trace, place) = (folder.path("trace.mtf"), folder.path(""));
    let run = hatf_with(&library, &["record", "-o", &trace, "--spool", &place, "--", "true"]);
    run.exits(125).says("trace.mtf: Input/output error").says("hatf recover");
    let spools = spools(&folder);
    assert_eq!(spools.len(), 1);
    recover(&spools[0], &folder.join("trace.mtf")).exits(0).says(", 0 lost");
    assert!(!spools[0].exists());
}

/// A transient write error, as from a quota or a network, leaves a hole in the trace, which does not claim to be
/// complete. The failing write is the first one with events and the second to a file that begins like a trace, so the
/// program has started by then, however slow it is.
#[test]
fn no_footer_after_an_error() {
    let folder = Folder::new();
    let Some(program) = blocks(&folder) else { return };
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <string.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        ssize_t write(int file, const void *bytes, size_t length) { static int count;\n\
        char head[4] = \"\"; pread(file, head, 4, 0);\n\
        if (file > 2 && !memcmp(head, \"\\x7fMTF\", 4) && ++count == 2) { errno = EIO; return -1; }\n\
        return syscall(SYS_write, file, bytes, length); }\n";
    let Some(library) = compiled(&folder, "shim.so", source, &["-shared", "-fPIC"]) else { return };
    let (trace, place) = (folder.path("trace.mtf"), folder.path(""));
    let program = program.to_str().unwrap().to_owned();
    let arguments = ["record", "--group", "1000", "--profile", "fast", "-o", &trace, "--spool", &place, "--", &program];
    let run = hatf_with(&library, &arguments).exits(7);
    let run = run.says("trace.mtf: Input/output error").says("recording ended early").says("are not counted");
    assert!(!run.err.contains(", 0 lost\n"), "{}", run.err);
    assert_eq!(Reader::open(&trace).unwrap().header().nrecords, 0);
    // The spool contains all events recorded by then.
    let spools = spools(&folder);
    assert_eq!(spools.len(), 1);
    recover(&spools[0], &folder.join("trace.mtf")).exits(0).says(", 0 lost");
    assert!(Reader::open(&trace).unwrap().header().nrecords > 0);
}

#[test]
fn a_program_that_cannot_open_the_spool() {
    let folder = Folder::new();
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <fcntl.h>\n#include <stdarg.h>\n#include <string.h>\n\
        #include <sys/syscall.h>\n#include <unistd.h>\n\
        int open(const char *path, int flags, ...) { va_list rest; va_start(rest, flags); int mode = va_arg(rest, int);\n\
        va_end(rest); size_t length = strlen(path); static int interrupted;\n\
        if (length > 7 && !strcmp(path + length - 7, \"/events\")) {\n\
        if (INTERRUPTED && interrupted++ < 3) { errno = EINTR; return -1; }\n\
        if (!INTERRUPTED) { errno = EMFILE; return -1; } }\n\
        return syscall(SYS_openat, AT_FDCWD, path, flags, mode); }\n";
    let shared = ["-shared", "-fPIC", "-DINTERRUPTED=0"];
    let Some(library) = compiled(&folder, "shim.so", source, &shared) else { return };
    let trace = folder.path("trace.mtf");
    let run = hatf_with(&library, &["record", "-o", &trace, "--", "true"]).exits(125);
    let run = run.says("could not open the spool").says("Too many open files");
    assert!(!run.err.contains("statically linked"), "{}", run.err);
    let shared = ["-shared", "-fPIC", "-DINTERRUPTED=1"];
    let Some(library) = compiled(&folder, "again.so", source, &shared) else { return };
    let run = hatf_with(&library, &["record", "-o", &trace, "--", "true"]).exits(0);
    assert!(!run.err.contains("could not"), "{}", run.err);
}

/// A file size limit is not reported as a full disk.
#[test]
fn a_limit_of_files_is_named() {
    let folder = Folder::new();
    let script = "ulimit -f 1000; exec \"$0\" record -o \"$1\" -- true";
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_hatf"), &folder.path("trace.mtf")]);
    let run = run(&mut shell).exits(125).says("File too large").says("ulimit -f");
    assert!(!run.err.contains("free some space"), "{}", run.err);
}

/// After `hatf` was killed, the program fills only a part of the spool. The lost events are counted.
#[test]
fn a_killed_recorder_leaves_a_small_spool() {
    const PAIRS: u64 = 5_000_000;
    let folder = Folder::new();
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(\"ready\"); fflush(stdout); getchar();\n\
        for (long n = 0; n < PAIRS; n++) { void *volatile block = malloc(24); free(block); }\n\
        puts(\"done\"); return 0; }\n";
    let flag = format!("-DPAIRS={PAIRS}");
    let Some(program) = compiled(&folder, "pairs", source, &["-O1", &flag]) else { return };
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "-o", &folder.path("trace.mtf"), "--spool-size", "256MiB", "--spool"])
        .arg(&*folder)
        .arg("--")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (recorder.stdin.take().unwrap(), recorder.stdout.take().unwrap());
    output.read_exact(&mut [0; 6]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    input.write_all(b"\n").unwrap();
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    assert_eq!(said, "done\n");
    let spool = spools(&folder).pop().unwrap();
    let used = fs::metadata(spool.join("events")).unwrap().blocks() * 512;
    // Up to 32 MiB were ready in advance.
    assert!((60 << 20..100 << 20).contains(&used), "{used} bytes");
    let (records, lost) = counts(&recover(&spool, &folder.join("whole.mtf")).exits(0));
    assert!((2 * PAIRS..2 * PAIRS + 100).contains(&(records + lost)) && lost > PAIRS / 2, "{records}, {lost}");
}
