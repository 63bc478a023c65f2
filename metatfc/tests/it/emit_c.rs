//! `gen --lang c`: C and C++ programs that emit events with the generated header, and their traces.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::metatfc;
use metatf_derive::metatf;
use metatf_test::{Disk, Folder, Run, root, run, skip, vectors};

#[metatf(dtd = "../telemetry/metatf-telemetry/tests/events.dtd", emitters = "crate::emit_c::events")]
mod events {}

/// Compiler flags for all programs.
const FLAGS: &[&str] =
    &["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-O1", "-pthread", "-DEVENTS_POSIX", "-I."];
pub(crate) const SANITIZED: &[&str] = &["-std=c99", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Creates a directory with the header and compiles the program there. Returns `None` if the compiler is missing or
/// does not support the flags.
fn compile(compiler: &str, flags: &[&str]) -> Option<Folder> {
    compile_for("telemetry/metatf-telemetry/tests/events.dtd", compiler, flags)
}

/// Compiles the program named after a DTD.
pub(crate) fn compile_for(dtd: &str, compiler: &str, flags: &[&str]) -> Option<Folder> {
    let folder = Folder::new();
    let dtd = root().join(dtd);
    let name = dtd.file_stem().unwrap().to_str().unwrap();
    let header = format!("{name}.h");
    metatfc(folder.as_ref(), &["gen", "--lang", "c", dtd.to_str().unwrap(), "-o", &header]).exits(0);
    let posix = format!("-D{}_POSIX", name.to_uppercase());
    folder.write("empty.c", "int main(void) { return 0; }\n");
    let compile = |source: &Path| {
        let mut command = Command::new(compiler);
        command
            .current_dir(folder.as_ref())
            .args(FLAGS)
            .arg(&posix)
            .args(flags)
            .arg(source)
            .args(["-o", "program"])
            .output()
    };
    // A compiler without the sanitizer libraries cannot link even an empty program.
    if !compile(Path::new("empty.c")).is_ok_and(|output| output.status.success()) {
        skip(&format!("there is no {compiler} that takes {}", flags.join(" ")));
        return None;
    }
    let output = compile(&root().join(format!("metatfc/tests/c/{name}.c"))).unwrap();
    assert!(output.status.success(), "{compiler} {flags:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(folder)
}

fn program(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(folder.path("program"));
    command.current_dir(folder.as_ref()).args(arguments);
    command.env("METATF_TELEMETRY_CONTROL", "Arena Pool object").env("METATF_TELEMETRY_FILENAME", "%n.mtf");
    command
}

fn dump(folder: &Folder, trace: &str) -> String {
    metatfc(folder.as_ref(), &["dump", "--format", "jsonl", trace]).exits(0).text()
}

/// Runs every scenario that terminates by itself, and returns the trace of the program that writes to memory.
fn run_all(folder: &Folder) -> Vec<u8> {
    run(&mut program(folder, &["bare", "bare.mtf"])).exits(0);
    metatfc(folder.as_ref(), &["verify", "bare.mtf"]).exits(0);
    run(&mut program(folder, &["threads"])).exits(0);
    let steps = dump(folder, "events.mtf");
    for thread in [1, 2] {
        let of_thread = |line: &&str| line.contains(&format!("\"thread\":{thread},"));
        let numbers = steps.lines().filter(of_thread).map(|line| line.rsplit_once("\"number\":").unwrap().1);
        let expected: Vec<_> = (0..2000).map(|n| format!("{n}}}")).collect();
        assert_eq!(numbers.collect::<Vec<_>>(), expected, "thread {thread}");
    }
    run(&mut program(folder, &["full"])).exits(0).says("events.mtf: ").says(" events were lost: File too large");
    let steps = dump(folder, "events.mtf");
    let whole = steps.matches("\"step\"").count();
    let lost = steps.lines().find(|line| line.contains("\"lost\"")).unwrap();
    let count: usize = lost.rsplit_once("\"count\":").unwrap().1.trim_end_matches('}').parse().unwrap();
    assert!(count > 1000 && whole + count == 2001, "{whole} and {lost}");
    assert!(steps.lines().last().unwrap().ends_with("\"number\":2000}"), "it goes on when there is room");
    folder.read("bare.mtf")
}

#[test]
fn programs_in_c_and_cpp_leave_the_same_trace() {
    let Some(c) = compile("cc", &["-std=c99"]) else { return };
    let trace = run_all(&c);
    insta::assert_snapshot!(dump(&c, "bare.mtf"));
    for (compiler, flags) in [("cc", SANITIZED), ("c++", &["-std=c++17", "-x", "c++"]), ("clang", &["-std=c99"])] {
        if let Some(folder) = compile(compiler, flags) {
            assert!(run_all(&folder) == trace, "{compiler} {flags:?}");
        }
    }
}

/// Kinds that are not compiled in cannot be enabled.
#[test]
fn kinds_that_are_not_compiled() {
    for (compiled, steps) in [("-DEVENTS_COMPILED=2", 0), ("-DEVENTS_COMPILED=1u", 4000)] {
        let Some(folder) = compile("cc", &["-std=c99", compiled]) else { return };
        run(&mut program(&folder, &["threads"])).exits(0);
        assert_eq!(dump(&folder, "events.mtf").matches("\"step\"").count(), steps, "{compiled}");
    }
}

/// The header causes no warnings in C++ programs that warn about C casts.
#[test]
fn casts_of_the_header_are_its_own() {
    let Some(folder) = compile("c++", &["-std=c++11", "-x", "c++"]) else { return };
    let source = "#define EVENTS_IMPLEMENTATION\n#include \"events.h\"\nvoid emit(events_emitter *emitter) { EVENTS_EMIT_STEP(emitter, 7); }\n";
    for (end, failed) in [("", false), ("int cast(double number) { return (int)number; }\n", true)] {
        folder.write("casts.cc", format!("{source}{end}"));
        let mut command = Command::new("c++");
        command.current_dir(folder.as_ref()).args(FLAGS).args(["-std=c++11", "-Wold-style-cast", "-c", "casts.cc"]);
        let output = command.output().unwrap();
        assert_eq!(!output.status.success(), failed, "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A program overwrites neither files of other types nor a trace that another process is writing.
#[test]
fn a_file_that_is_there() {
    let Some(folder) = compile("cc", &["-std=c99"]) else { return };
    folder.write("events.mtf", "notes of somebody");
    assert_ne!(program(&folder, &["threads"]).output().unwrap().status.code(), Some(0));
    assert_eq!(folder.read("events.mtf"), b"notes of somebody");
    std::fs::remove_file(folder.join("events.mtf")).unwrap();
    let mut child = Killed(program(&folder, &["until-killed"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(child.0.stdout.take().unwrap()).lines();
    output.by_ref().take(2).last().unwrap().unwrap();
    let other = program(&folder, &["threads"]).spawn().unwrap();
    let numbered = format!("events.{}.mtf", other.id());
    assert_eq!(other.wait_with_output().unwrap().status.code(), Some(0));
    assert!(dump(&folder, &numbered).contains("\"number\":1999}"));
    drop(child);
    // The trace of a killed program is replaced.
    let killed = metatfc(folder.as_ref(), &["dump", "--format", "jsonl", "--salvage", "events.mtf"]).text();
    assert!(!killed.contains("\"thread\":2,"), "{killed}");
    run(&mut program(&folder, &["threads"])).exits(0);
    assert!(dump(&folder, "events.mtf").contains("\"thread\":2,"));
}

/// Returns the lines without times and without the records that the telemetry library itself writes.
fn plain(lines: &str) -> Vec<String> {
    let values = |line: &str| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        let object = value.as_object_mut().unwrap();
        for field in ["time", "thread", "process"] {
            object.remove(field);
        }
        value.to_string()
    };
    lines.lines().filter(|line| !line.contains("\"clocks\"") && !line.contains("\"lost\"")).map(values).collect()
}

#[test]
fn emitters_in_rust_write_the_same_records() {
    let Some(c) = compile("cc", &["-std=c99"]) else { return };
    run(&mut program(&c, &["bare", "bare.mtf"])).exits(0);
    let settings = metatf_telemetry::Settings {
        control: "all".to_owned(),
        filename: Some(c.path("rust.mtf").into()),
        ..Default::default()
    };
    let telemetry = events::TELEMETRY.start_with(settings).unwrap();
    let id: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
    let text = format!("{}\u{e9}{}", "x".repeat(251), "x".repeat(47));
    let with_end = [text.as_bytes(), &[0]].concat();
    let y = "y".repeat(300);
    let number = events::intern("pool caf\u{e9}");
    for text in ["", &y, &y[..252]] {
        events::intern(text);
    }
    events::label(4096, number);
    events::touch(4096, events::intern(&y[..252]));
    for byte in [5, 6] {
        events::intern(&format!("{}{}", char::from(byte), &y[..251]));
    }
    events::intern("short");
    events::step(4_000_000_000);
    let (least, half, whole) = ((i8::MIN, i16::MIN, i32::MIN, i64::MIN), 0.5, -0.25);
    events::types(255, 65_535, u32::MAX, u64::MAX, least.0, least.1, least.2, least.3, true, half, whole, &id);
    events::types(0, 0, 0, 0, i8::MAX, i16::MAX, i32::MAX, i64::MAX, false, -1.5, 1e300, &id);
    events::said("caf\u{e9}", &id[..3]);
    events::said(&text, &with_end);
    events::said("", &[]);
    events::tick();
    for number in [2, 5, 6, 7] {
        events::step(number);
    }
    telemetry.finish().unwrap();
    assert_eq!(plain(&dump(&c, "rust.mtf")), plain(&dump(&c, "bare.mtf")));
}

/// A child process that is killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_kill_leaves_what_was_flushed() {
    let Some(folder) = compile("cc", &["-std=c99"]) else { return };
    for lines in [1, 7, 40] {
        let mut child = Killed(program(&folder, &["until-killed"]).stdout(Stdio::piped()).spawn().unwrap());
        let mut output = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let said = output.by_ref().take(lines).last().unwrap().unwrap();
        drop(child);
        // An interrupted write corrupts only data after the flushed part.
        let dumped = metatfc(folder.as_ref(), &["dump", "--format", "jsonl", "--salvage", "events.mtf"]).text();
        let numbers = dumped.lines().filter_map(|line| line.split_once("\"number\":")).map(|(_, number)| number);
        let numbers: Vec<_> = numbers.collect();
        assert!(numbers.len() >= said.parse().unwrap(), "{} of {said}", numbers.len());
        assert!(numbers.iter().enumerate().all(|(n, number)| *number == format!("{n}}}")), "after {lines} lines");
    }
}

/// Returns the number of steps of each thread after checking that they are numbered from 0 without gaps.
fn steps(lines: &str) -> Vec<u64> {
    let mut counts = std::collections::BTreeMap::<u64, u64>::new();
    for line in lines.lines().filter(|line| line.contains("\"number\":")) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let next = counts.entry(value["thread"].as_u64().unwrap()).or_default();
        assert_eq!(value["number"].as_u64().unwrap(), *next, "{line}");
        *next += 1;
    }
    counts.into_values().collect()
}

/// Shared buffers survive a kill at any time: all events of each thread are present exactly once. Meanwhile, another
/// process enables and disables kinds.
#[test]
fn shared_buffers_are_controlled_and_survive_kills() {
    let Some(folder) = compile("cc", &["-std=c99"]) else { return };
    for round in 0..6 {
        let mut command = program(&folder, &["shared"]);
        command.env("METATF_TELEMETRY_CONTROL", "none").env("METATF_TELEMETRY_FOLDER", folder.as_ref());
        let mut child = Killed(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut output = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(output.next().unwrap(), "0 0");
        let process = child.0.id().to_string();
        let metatfc = |arguments: &[&str]| {
            let mut command = crate::common::command(folder.as_ref(), arguments);
            run(command.env("METATF_TELEMETRY_FOLDER", folder.as_ref())).exits(0).text()
        };
        assert!(metatfc(&["telemetry", &process, "--kinds"]).contains("on: none"));
        metatfc(&["telemetry", &process, "--set-kinds", "Object"]);
        let last = output.find(|line| line.split(' ').all(|count| count.parse::<u64>().unwrap() > 300 + 977 * round));
        assert!(metatfc(&["telemetry", "events.mtf", "--kinds"]).contains("on: Object"), "the trace names the buffers");
        if round == 0 {
            metatfc(&["telemetry", &process, "--set-kinds", "-Object"]);
            let mut before = String::new();
            output.find(|line| std::mem::replace(&mut before, line.clone()) == *line).unwrap();
            assert!(metatfc(&["telemetry", &process, "--last", "1"]).contains("\"step\""), "while it runs");
        }
        let printed = output.next().or(last).unwrap();
        drop(child);
        let left: Vec<_> = output.collect();
        let printed = left.last().unwrap_or(&printed).clone();
        metatfc(&["telemetry", &process, "-o", "whole.mtf"]);
        let counts = steps(&dump(&folder, "whole.mtf"));
        let emitted = printed.split(' ').map(|count| count.parse::<u64>().unwrap());
        assert!(counts.iter().zip(emitted).all(|(count, emitted)| *count >= emitted), "{counts:?} of {printed}");
        assert_eq!(counts.len(), 2, "the child's event is nobody's");
    }
    // Each start removes old buffers, except for the newest four.
    assert_eq!(buffers(&folder), 5);
    run(program(&folder, &["shared-ends"]).env("METATF_TELEMETRY_FOLDER", folder.as_ref())).exits(0);
    assert_eq!(buffers(&folder), 4);
}

/// Returns the number of buffer files in a directory.
fn buffers(folder: &Folder) -> usize {
    let names = std::fs::read_dir(folder.as_ref()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("metatf.")).count()
}

#[test]
fn shared_buffers_go_with_a_program_that_ends() {
    for (compiler, flags) in [("cc", SANITIZED), ("c++", &["-std=c++11", "-x", "c++"])] {
        let Some(folder) = compile(compiler, flags) else { continue };
        run(program(&folder, &["shared-ends"]).env("METATF_TELEMETRY_FOLDER", folder.as_ref())).exits(0);
        assert_eq!(steps(&dump(&folder, "events.mtf")), [2000]);
        assert_eq!(buffers(&folder), 0, "{compiler}");
    }
}

/// Compiles and runs the example of the book as the book describes.
#[test]
fn the_example_of_the_book_leaves_a_trace() {
    let folder = Folder::new();
    let example = root().join("examples/telemetry");
    metatfc(folder.as_ref(), &["gen", "--lang", "c", example.join("pools.dtd").to_str().unwrap(), "-o", "pools.h"])
        .exits(0);
    let mut command = Command::new("cc");
    command.current_dir(folder.as_ref()).args(FLAGS).args(["-std=c99", "-DPOOLS_POSIX"]).arg(example.join("pools.c"));
    let Ok(output) = command.args(["-o", "program"]).output() else { return skip("no cc on this machine") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let pools = |kinds: &str| {
        let mut command = program(&folder, &[]);
        run(command.env("METATF_TELEMETRY_CONTROL", kinds).env("METATF_TELEMETRY_FILENAME", "%n.mtf"))
    };
    pools("Pool Object").exits(0);
    let lines = dump(&folder, "pools.mtf");
    assert_eq!((lines.matches("\"create\"").count(), lines.matches("\"alloc\"").count()), (1, 1000));
    assert_eq!(metatfc(folder.as_ref(), &["verify", "pools.mtf"]).exits(0).err, "", "it was closed");
    pools("Pool, 0x0").exits(0);
    assert_eq!(dump(&folder, "pools.mtf").matches("\"alloc\"").count(), 0);
    pools("Pul").exits(1).says("Invalid argument");
    // If the disk is full, the program counts lost events and fails.
    for size in ["4k", "8k", "16k", "24k"] {
        let Some(disk) = Disk::new(size) else { return skip("this user cannot mount a disk") };
        let trace = disk.path("pools.mtf");
        let mut command = program(&folder, &[]);
        let run = run(command.env("METATF_TELEMETRY_CONTROL", "all").env("METATF_TELEMETRY_FILENAME", &trace));
        let run = run.exits(1).says("No space left on device");
        if run.err.starts_with("pools: the trace") {
            // The disk has no space even for the header of the trace.
            assert_eq!(size, "4k");
            continue;
        }
        metatfc(folder.as_ref(), &["verify", &trace]).exits(0).prints("whole");
        let lines = dump(&folder, &trace);
        let emitted: usize =
            ["\"create\"", "\"alloc\"", "\"label\""].iter().map(|name| lines.matches(name).count()).sum();
        assert_eq!(dropped(&lines, "dropped") + emitted, 1002, "{size}: {lines}");
    }
}

/// Returns the sum of the counts in records of dropped events.
fn dropped(lines: &str, record: &str) -> usize {
    let counts = lines.lines().filter(|line| line.contains(&format!("\"{record}\""))).map(|line| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        usize::try_from(value["count"].as_u64().unwrap()).unwrap()
    });
    counts.sum()
}

/// If a disk fills up, the trace contains the number of lost events, closing it fails, and a message reports the error.
#[test]
fn a_full_disk_is_reported_and_counted() {
    for flags in [&["-std=c99"][..], SANITIZED, &["-std=c99", "-DEVENTS_QUIET"]] {
        let Some(folder) = compile("cc", flags) else { return };
        for size in ["16k", "64k", "100k"] {
            let Some(disk) = Disk::new(size) else { return skip("this user cannot mount a disk") };
            let trace = disk.path("events.mtf");
            let run = run(program(&folder, &["full-disk"]).env("METATF_TELEMETRY_FILENAME", &trace)).exits(0);
            metatfc(folder.as_ref(), &["verify", &trace]).exits(0).prints("whole");
            let lines = dump(&folder, &trace);
            let lost = dropped(&lines, "lost");
            assert!(lost > 10_000, "{size}: {lost}");
            assert_eq!(lines.matches("\"step\"").count() + lost, 20_000, "{size}");
            let line = format!("{trace}: {lost} events were lost: No space left on device\n");
            assert_eq!(run.err, if flags.contains(&"-DEVENTS_QUIET") { "" } else { &line });
        }
    }
}

/// A signal handler emits events while its thread writes to the trace.
#[test]
fn handlers_emit_while_their_thread_writes() {
    for flags in [&["-std=c99"][..], SANITIZED] {
        let Some(folder) = compile("cc", flags) else { return };
        within_seconds(&mut program(&folder, &["in-handlers"]));
        let lines = dump(&folder, "events.mtf");
        assert_eq!(lines.matches("\"step\"").count() + dropped(&lines, "lost"), 8000, "{lines}");
        assert!(lines.matches("\"step\"").count() > 4000);
    }
}

/// Runs a program that must end within 30 seconds.
#[track_caller]
fn within_seconds(command: &mut Command) -> Run {
    let mut limited = Command::new("timeout");
    limited.arg("30").arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(command.get_current_dir().unwrap());
    run(&mut limited).exits(0)
}

/// Naming a trace file in the program enables all kinds, unless the environment or the program itself selects kinds.
#[test]
fn a_path_means_on() {
    let Some(folder) = compile("cc", &["-std=c99"]) else { return };
    for (control, argument, events) in [
        (None, None, 2),
        (Some("none"), None, 0),
        (Some(""), None, 0),
        (Some("Object"), None, 1),
        (None, Some("Arena"), 1),
        (Some("none"), Some("Arena"), 0),
    ] {
        let mut command = program(&folder, &["path"]);
        command.args(argument).env_remove("METATF_TELEMETRY_CONTROL");
        command.envs(control.map(|kinds| ("METATF_TELEMETRY_CONTROL", kinds)));
        run(&mut command).exits(0);
        assert_eq!(plain(&dump(&folder, "path.mtf")).len(), events, "{control:?} {argument:?}");
    }
    // Without the path, only the environment selects kinds.
    run(program(&folder, &["threads"]).env_remove("METATF_TELEMETRY_CONTROL")).exits(0);
    assert_eq!(dump(&folder, "events.mtf"), "");
}

/// No memory access depends on data that other processes may have written to the shared buffers.
#[test]
fn a_damaged_head_of_shared_buffers_harms_nobody() {
    for flags in [&["-std=c99"][..], SANITIZED] {
        let Some(folder) = compile("cc", flags) else { return };
        run(program(&folder, &["shared-nonsense"]).env("METATF_TELEMETRY_FOLDER", folder.as_ref())).exits(0);
        assert_eq!(steps(&dump(&folder, "events.mtf")), [2000]);
    }
}

/// Threads can emit into both types of buffers, intern strings and change the kinds without data races.
#[test]
fn threads_do_not_race() {
    for flags in [&["-std=c99", "-g", "-fsanitize=thread"][..], SANITIZED] {
        let Some(folder) = compile("cc", flags) else { continue };
        let mut command = program(&folder, &["together"]);
        command.env("METATF_TELEMETRY_FOLDER", folder.as_ref());
        // A sanitizer that cannot reserve its address range exits immediately.
        assert_eq!(run(&mut command).exits(0).err, "", "{flags:?}");
        let lines = dump(&folder, "events.mtf");
        assert_eq!((lines.matches("\"step\"").count(), lines.matches("\"intern\"").count()), (8000, 40));
    }
}

/// System calls interrupted by a signal are retried.
#[test]
fn calls_that_are_interrupted() {
    let Some(folder) = compile("cc", &["-std=c99"]) else { return };
    folder.write("interrupt.c", INTERRUPT);
    let mut command = Command::new("cc");
    command.current_dir(folder.as_ref()).args(["-shared", "-fPIC", "interrupt.c", "-o", "interrupt.so", "-ldl"]);
    assert!(command.status().unwrap().success());
    for scenario in ["threads", "shared-ends"] {
        let mut command = program(&folder, &[scenario]);
        command.env("LD_PRELOAD", folder.path("interrupt.so")).env("METATF_TELEMETRY_FOLDER", folder.as_ref());
        let run = run(&mut command).exits(0);
        let calls: &[_] =
            if scenario == "threads" { &["open64", "pread64", "fallocate64", "write"] } else { &["posix_fallocate64"] };
        calls
            .iter()
            .for_each(|call| assert!(run.err.contains(&format!("{call} was interrupted")), "{call}: {}", run.err));
        assert_eq!(steps(&dump(&folder, "events.mtf"))[0], 2000);
    }
}

/// A library that interrupts the first call to each of these functions.
const INTERRUPT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#define FIRST(name, answer)     static int count;     if (count++ == 0) {         fprintf(stderr, "%s was interrupted\n", #name);         errno = EINTR;         return answer;     }
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
int open64(const char *path, int flags, ...) { FIRST(open64, -1) return REAL(open64)(path, flags, 0666); }
ssize_t pread64(int file, void *to, size_t length, off64_t at) { FIRST(pread64, -1) return REAL(pread64)(file, to, length, at); }
ssize_t write(int file, const void *from, size_t length) { FIRST(write, -1) return REAL(write)(file, from, length); }
int fallocate64(int file, int mode, off64_t at, off64_t length) { FIRST(fallocate64, -1) return REAL(fallocate64)(file, mode, at, length); }
int posix_fallocate64(int file, off64_t at, off64_t length) { FIRST(posix_fallocate64, EINTR) return REAL(posix_fallocate64)(file, at, length); }
"#;

/// A host program continues after unloading a plug-in that has not closed its trace.
#[test]
fn a_library_that_is_unloaded() {
    let Some(folder) = compile("cc", &["-std=c99"]) else { return };
    folder.write("plugin.c", PLUGIN);
    folder.write("host.c", HOST);
    for arguments in [&["-shared", "-fPIC", "plugin.c", "-o", "plugin.so"][..], &["host.c", "-o", "host", "-ldl"]] {
        let mut command = Command::new("cc");
        let output = command.current_dir(folder.as_ref()).args(FLAGS).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut command = Command::new(folder.path("host"));
    command.current_dir(folder.as_ref()).env("METATF_TELEMETRY_FOLDER", folder.as_ref());
    run(&mut command).exits(0).prints("it goes on");
    // The event is still in the buffers.
    metatfc(folder.as_ref(), &["telemetry", "plugin.mtf", "-o", "whole.mtf"]).exits(0);
    assert_eq!(steps(&dump(&folder, "whole.mtf")), [1]);
    // Without the trace, the number of missing events is unknown.
    let names = std::fs::read_dir(folder.as_ref()).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let left = names.into_iter().find(|name| name.contains("/metatf.")).unwrap();
    std::fs::remove_file(folder.join("plugin.mtf")).unwrap();
    metatfc(folder.as_ref(), &["telemetry", &left, "-o", "whole.mtf"]).exits(1).says("does not exist");
    assert_eq!(steps(&dump(&folder, "whole.mtf")), [1]);
}

const PLUGIN: &str = r#"
#define EVENTS_IMPLEMENTATION
#include "events.h"
static events_file file;
static events_emitter emitter;
int begin(void);
int begin(void)
{
    if (events_open(&file, "plugin.mtf") != 0 || events_share(&file, 1, 4096) != 0 || events_emitter_begin_shared(&emitter, &file) != 0) {
        return 1;
    }
    EVENTS_EMIT_STEP(&emitter, 0);
    return 0;
}
"#;

const HOST: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    void *plugin = dlopen("./plugin.so", RTLD_NOW);
    int (*begin)(void);
    void *found = plugin != NULL ? dlsym(plugin, "begin") : NULL;
    int status = 0;
    pid_t child;
    if (found == NULL) {
        return 2;
    }
    memcpy(&begin, &found, sizeof begin);
    if (begin() != 0 || dlclose(plugin) != 0 || dlopen("./plugin.so", RTLD_NOW | RTLD_NOLOAD) != NULL) {
        return 3;
    }
    /* The thread looked at its word every 50 ms. */
    usleep(200000);
    child = fork();
    if (child == 0) {
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        return 4;
    }
    puts("it goes on");
    return 0;
}
"#;

/// Returns a call of an emitter with values that match the types in its signature. Pointers to items point to zeros.
fn call(signature: &str) -> String {
    let (name, parameters) =
        signature.trim_start_matches("static inline void ").trim_end_matches(')').split_once('(').unwrap();
    let values = parameters.split(", ").skip(1).map(|parameter| {
        let (kind, _) = parameter.rsplit_once([' ', '*']).unwrap();
        match kind {
            "const char " => "\"text\"".to_owned(),
            "const void " => "bytes".to_owned(),
            "size_t" | "bool" => "1".to_owned(),
            "float" | "double" => "-1.5".to_owned(),
            _ if parameter.contains('*') => format!("({kind}*)zeros"),
            _ if kind.starts_with("int") => "-2".to_owned(),
            "uint64_t" => "UINT64_MAX".to_owned(),
            _ => "254".to_owned(),
        }
    });
    format!("    {name}(&emitter, {});\n", values.collect::<Vec<_>>().join(", ")).replace(", )", ")")
}

/// C programs can emit every event of the vectors' DTDs twice. The DTDs contain all interpretations, nested records,
/// predictors, wide tags, and changed tags.
#[test]
fn every_dtd_can_be_emitted_from_c() {
    let folder = Folder::new();
    let (mut source, mut main, mut traces) = (String::new(), String::new(), Vec::new());
    let mut vectors: Vec<_> = std::fs::read_dir(vectors("good")).unwrap().map(|entry| entry.unwrap().path()).collect();
    vectors.sort();
    for dtd in vectors.iter().map(|vector| vector.join("format.dtd")).filter(|dtd| dtd.exists()) {
        let prefix = format!("d{}", traces.len());
        let path = dtd.to_str().unwrap();
        let header = format!("{prefix}.h");
        let arguments = ["gen", "--lang", "c", "--allow-missing", path, "--emitters", &prefix, "-o", &header];
        if metatfc(folder.as_ref(), &arguments).status != 0 {
            // The DTD has errors or no events.
            continue;
        }
        let header = folder.text(&header);
        let functions: Vec<_> =
            header.lines().filter(|l| l.starts_with(&format!("static inline void {prefix}_emit_"))).collect();
        let calls: String = functions.iter().map(|function| call(function)).collect();
        let upper = prefix.to_uppercase();
        source += &format!("#define {upper}_IMPLEMENTATION\n#include \"{prefix}.h\"\n");
        source += &format!(
            "static int all_{prefix}(void)\n{{\n    static uint8_t buffer[{upper}_BUFFER_LEAST];\n    {prefix}_trace trace;\n    \
             {prefix}_emitter emitter;\n    memset(&trace, 0, sizeof trace);\n    trace.write = to_file;\n    trace.index = entries;\n    \
             trace.index_bytes = sizeof entries;\n    trace.context = fopen(\"{prefix}.mtf\", \"wb\");\n    \
             if (trace.context == NULL || {prefix}_begin(&trace) || {prefix}_set_kinds(\"all\")\n        \
             || {prefix}_emitter_begin(&emitter, &trace, buffer, sizeof buffer)) {{\n        return 1;\n    }}\n{calls}{calls}    \
             return {prefix}_emitter_end(&emitter) || {prefix}_end(&trace) || fclose((FILE *)trace.context);\n}}\n"
        );
        main += &format!("    if (all_{prefix}() != 0) {{\n        return 1;\n    }}\n");
        traces.push((prefix, functions.len() * 2, dtd));
    }
    let head = "#include <stdio.h>\n#include <stdint.h>\nstatic uint8_t bytes[1024];\nstatic uint64_t zeros[64];\nstatic uint8_t entries[1 << 16];\n\
                static int to_file(void *to, const void *from, size_t n)\n{\n    return fwrite(from, 1, n, (FILE *)to) != n;\n}\n";
    folder.write(
        "all.c",
        format!("{head}{source}int main(void)\n{{\n    (void)bytes;\n    (void)zeros;\n{main}    return 0;\n}}\n"),
    );
    let mut command = Command::new("cc");
    command.current_dir(folder.as_ref()).args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "all.c",
        "-o",
        "program",
    ]);
    let Ok(output) = command.output() else { return skip("no cc on this machine") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    run(&mut program(&folder, &[])).exits(0);
    assert!(traces.len() > 20, "{} DTDs", traces.len());
    let (mut emitted, mut missing) = (0, 0);
    for (prefix, count, dtd) in traces {
        let trace = format!("{prefix}.mtf");
        let written = dump(&folder, &trace).lines().count();
        // The values of an event may not match the lengths that its DTD computes from them.
        let all = metatfc(folder.as_ref(), &["dump", "--all", "--format", "jsonl", &trace]).exits(0).text();
        let dropped = all.lines().filter_map(|line| line.split_once("\"text\":\"")?.1.split_once(" events of thread"));
        let dropped: usize = dropped.map(|(count, _)| count.parse::<usize>().unwrap()).sum();
        assert_eq!(written + dropped, count, "{}", dtd.display());
        emitted += written;
        missing += dropped;
    }
    assert!(missing * 10 < emitted, "{missing} of {emitted} events were dropped");
}

#[test]
fn options_without_effect_are_named() {
    let folder = Folder::new();
    folder.write("x.dtd", "x.width = 1; x.interpretation = none; section s 1 { r: (x) { tag.value = 4; } }");
    for (arguments, message) in [
        (&["--lang", "c", "--module", "m"][..], "--module cannot be used with --lang c"),
        (&["--lang", "c", "--emitters", "crate::x"], "`crate::x` is not a valid prefix for C names"),
        (&["--lang", "c", "--rename", "y=z"], "refers to `y`"),
        (&["--without-kind", "Other"], "--emitters"),
        (&["--allow-missing"], "--lang c"),
        (&["--reader", "x"], "--reader requires --lang c"),
        (&["--lang", "c", "--reader", "x", "--allow-missing"], "--allow-missing cannot be used with --reader"),
        (&["--lang", "c", "--reader", "x y"], "`x y` is not a valid prefix for C names"),
        (&["--lang", "ksy", "--module", "m"], "--module cannot be used with --lang ksy"),
        (&["--lang", "ksy", "--rename", "x=z"], "--rename cannot be used with --lang ksy"),
        (&["--lang", "ksy"], "no field has the role `magic`"),
        (&["--lang", "cobol"], "possible values: rust, c, ksy"),
    ] {
        metatfc(folder.as_ref(), &[&["gen", "x.dtd"], arguments].concat()).exits(2).says(message);
    }
}

/// An error names each record that cannot be emitted and the reason. On request, such records are omitted, and the
/// header mentions them.
#[test]
fn records_without_an_emitter_are_named() {
    let folder = Folder::new();
    let dtd = "x.width = 1; x.interpretation = none; n.width = 1; n.interpretation = none; y.width = 2; y.interpretation = none;
        section rests 2 { rest: (vfield) {} }
        section items 4 { item: (y) {} }
        section steps 3 { step: (y) { y.interpretation = delta 0; } }
        section s 1 {
            plain: (x) { tag.value = 4; }
            both: (of, next) { tag.value = 7; of.width = 2; of.interpretation = sectionOffset 4; next.interpretation = sectionStride 4 1; }
            place: (at) { tag.value = 5; at.width = 4; at.interpretation = sectionOffset 3; }
            timed: (time, (time.bit 0)*y) {
                tag.value = 6;
                time.width = 8; time.interpretation = none; time.source = \"clock\";
            }
            last: (x, y) { tag.value = 8; y.interpretation = delta 0; y.value = 9; }
        }";
    folder.write("x.dtd", dtd);
    let reasons = [
        ("rest", "it is an element of a stream section to which no field refers"),
        ("step", "the stored value of `y` depends on the previous element"),
        ("item", "fields refer to its section, and other fields stride through it or are predicted from it"),
        ("both", "`of` refers to elements that cannot be emitted"),
        ("place", "`at` refers to elements that cannot be emitted"),
        ("last", "the stored value of the constant `y` depends on the previous record"),
        ("timed", "a length or a count depends on `time`, which telemetry fills in"),
    ];
    let run = metatfc(folder.as_ref(), &["gen", "--lang", "c", "x.dtd", "-o", "x.h"]).exits(2).says("--allow-missing");
    assert!(!folder.join("x.h").exists());
    metatfc(folder.as_ref(), &["gen", "--lang", "c", "--allow-missing", "x.dtd", "-o", "x.h"]).exits(0);
    let header = folder.text("x.h");
    assert!(header.contains("x_emit_plain("));
    for (record, reason) in reasons {
        assert!(run.err.contains(&format!("`{record}` ({reason})")), "{record}: {}", run.err);
        assert!(header.contains(&format!("   `{record}` ({reason})\n")), "{record}: {header}");
        assert!(!header.contains(&format!("x_emit_{record}(")), "{record}");
    }
}

/// Users who run a program with the privileges of another user cannot choose its files.
#[test]
fn a_set_user_id_program_ignores_the_environment() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let Some(folder) = compile("cc", &["-std=c99"]) else { return };
    let rights = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    if std::os::unix::fs::chown(folder.path("events.h"), Some(65_534), None).is_err() {
        return skip("only root makes a program that other users run with its rights");
    }
    rights(folder.as_ref(), 0o777);
    for (mode, obeys) in [(0o755, true), (0o4755, false)] {
        rights(Path::new(&folder.path("program")), mode);
        run(program(&folder, &["threads"]).env("METATF_TELEMETRY_FILENAME", "chosen.mtf").uid(65_534)).exits(0);
        assert_eq!(Path::new(&folder.path("chosen.mtf")).exists(), obeys);
        let _ = std::fs::remove_file(folder.path("chosen.mtf"));
    }
}
