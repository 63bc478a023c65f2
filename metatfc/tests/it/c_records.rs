//! `gen --lang c`: records with optional, repeated and nested fields, references and computed lengths. The generated
//! Rust reader, the dynamic reader and the reader in C read the values that a C program wrote.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::common::metatfc;
use crate::emit_c::{SANITIZED, compile_for};
use metatf_derive::metatf;
use metatf_test::{Folder, root, run};

#[metatf(dtd = "tests/c/access.dtd")]
mod access {}

use access::{Access, Flags, Kind, Log, Method, Record, Restart, Span, Status};

const ACCESS: &str = "metatfc/tests/c/access.dtd";
const SHAPES: &str = "metatfc/tests/c/shapes.dtd";
const CPP: &[&str] = &["-std=c++17", "-x", "c++"];

/// Runs a scenario of the program, and returns the program's directory.
fn trace(dtd: &str, compiler: &str, flags: &[&str], scenario: &[&str]) -> Option<Folder> {
    let folder = compile_for(dtd, compiler, flags)?;
    let mut command = Command::new(folder.path("program"));
    command.current_dir(folder.as_ref()).args(scenario).arg("trace.mtf");
    assert_eq!(run(&mut command).exits(0).err, "", "{compiler} {flags:?} {scenario:?}");
    Some(folder)
}

fn dump(folder: &Folder) -> String {
    metatfc(folder.as_ref(), &["dump", "--format", "jsonl", "--resolve", "trace.mtf"]).exits(0).text()
}

/// Returns request `i` as the C program emits it.
fn request(i: u32, path: u64) -> Access {
    let number = u64::from(i);
    let span = |k: u32| Span {
        kind: Kind::from_number(u64::from(k)),
        offset_us: u64::from(i + k),
        dur_us: u64::from(1000 * k),
    };
    Access {
        time: 1_700_000_000_000_000 + 250 * number,
        request_id: number,
        path,
        method: Method::from_number(number % 4),
        status: if i.is_multiple_of(5) { Status::NotFound } else { Status::Ok },
        flags: Flags::from_number(number % 8),
        user: (i % 2 == 1).then_some(70 * number),
        took_us: 3 * number,
        bytes_out: number * number,
        score: f64::from(i) / 4.0,
        spans: (0..i % 4).map(span).collect(),
    }
}

/// A C program writes every record of an ordinary DTD, and Rust reads the same values.
#[test]
fn rust_reads_what_c_wrote() {
    for (compiler, flags) in [("cc", SANITIZED), ("c++", CPP)] {
        let Some(folder) = trace(ACCESS, compiler, flags, &["every"]) else { continue };
        metatfc(folder.as_ref(), &["verify", "trace.mtf"]).exits(0).prints("whole: 202 records, 3 stream elements");
        let mut trace = access::Trace::open(folder.path("trace.mtf")).unwrap();
        let paths = trace.paths();
        let mut next = 0;
        while let Some(record) = trace.next().unwrap() {
            let expected = match (next, &record) {
                (1..=200, Record::Log(Log::Access(found))) => {
                    let name = ["/", "/index.html", "/caf\u{e9}"][next as usize % 3];
                    assert_eq!(paths.get(found.path).unwrap().vfield, name.as_bytes());
                    Record::Log(Log::Access(request(next, found.path)))
                }
                (0, _) => restart(1_700_000_000_000_000, 258, b"2.1 \"beta\""),
                _ => restart(1_800_000_000_000_000, 65_535, b""),
            };
            assert_eq!(record.to_owned(), expected, "record {next}");
            next += 1;
        }
        assert_eq!(next, 202);
    }
}

fn restart(time: u64, version: u64, text: &[u8]) -> Record {
    Record::Log(Log::Restart(Restart { time, version, vfield: text.to_vec() }))
}

/// A reader for C, generated from the same DTD, reads the same values.
#[test]
fn a_reader_in_c_reads_the_same() {
    let Some(folder) = trace(ACCESS, "cc", &["-std=c99"], &["every"]) else { return };
    let dtd = root().join(ACCESS);
    metatfc(folder.as_ref(), &["gen", "--lang", "c", "--reader", "log", dtd.to_str().unwrap(), "-o", "read.h"])
        .exits(0);
    let program = r#"
        #define LOG_IMPLEMENTATION
        #define LOG_PRINT
        #include "read.h"
        int main(void)
        {
            log_reader reader;
            log_record record;
            FILE *file = fopen("trace.mtf", "rb");
            int found = log_open_file(&reader, file);
            while (found >= 0 && (found = log_next(&reader, &record)) > 0) {
                log_print(stdout, &reader, &record);
            }
            log_close(&reader);
            fclose(file);
            return found;
        }
    "#;
    folder.write("read.c", program);
    let mut command = Command::new("cc");
    command.current_dir(folder.as_ref()).args(["-std=c99", "-O1", "-o", "read", "read.c"]);
    assert!(command.status().unwrap().success());
    let read = run(Command::new(folder.path("read")).current_dir(folder.as_ref())).exits(0).text();
    let ours = metatfc(folder.as_ref(), &["dump", "--format", "jsonl", "trace.mtf"]).exits(0).text();
    let values = |text: &str| text.lines().map(|line| values(&serde_json::from_str(line).unwrap())).collect::<Vec<_>>();
    assert!(values(&read) == values(&ours), "{read}");
}

/// Returns the names and values of a line, without the notation of numbers.
fn values(line: &serde_json::Value) -> Vec<String> {
    match line {
        serde_json::Value::Array(items) => items.iter().flat_map(values).collect(),
        serde_json::Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| [vec![name.clone()], values(value)].concat()).collect()
        }
        value => vec![value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string())],
    }
}

/// Invalid values cost their event and nothing else: counts larger than any memory, items without memory, references to
/// elements that were not stored.
#[test]
fn invalid_values_are_dropped_and_counted() {
    for (compiler, flags) in [("cc", SANITIZED), ("c++", CPP)] {
        let Some(folder) = trace(ACCESS, compiler, flags, &["enemy"]) else { continue };
        metatfc(folder.as_ref(), &["verify", "trace.mtf"]).exits(0).prints("whole: ");
        let lines = dump(&folder);
        let counts = lines.lines().filter_map(|line| line.split_once("\"n_spans\":")?.1.split(',').next());
        let counts: Vec<u64> = counts.map(|count| count.parse().unwrap()).filter(|count| *count > 3).collect();
        assert_eq!(counts, [96, 97, 98, 99, 100], "the counts that fit in a buffer");
        assert!(lines.contains(&format!("\"{}\u{2026}\"", "x".repeat(252))), "a text that was truncated");
        let all = metatfc(folder.as_ref(), &["dump", "--all", "--format", "jsonl", "trace.mtf"]).exits(0).text();
        let dropped = all.lines().filter_map(|line| line.split_once("\"text\":\"")?.1.split_once(" events of thread"));
        // Five counts, four invalid events, and one whose path was refused.
        assert_eq!(dropped.map(|(count, _)| count.parse::<u64>().unwrap()).sum::<u64>(), 10, "{all}");
    }
}

/// Threads intern elements and emit events without data races, and all their events arrive.
#[test]
fn threads_share_the_tables() {
    for flags in [&["-std=c99", "-g", "-fsanitize=thread"][..], SANITIZED] {
        let Some(folder) = trace(ACCESS, "cc", flags, &["threads"]) else { continue };
        metatfc(folder.as_ref(), &["verify", "trace.mtf"]).exits(0).prints("12000 records, 3 stream elements");
    }
}

/// A signal handler emits and interns while its thread does the same. No event is torn.
#[test]
fn handlers_interrupt_nested_events() {
    for flags in [&["-std=c99"][..], SANITIZED] {
        let Some(folder) = compile_for(ACCESS, "cc", flags) else { return };
        let mut command = Command::new("timeout");
        command.current_dir(folder.as_ref()).arg("60").arg(folder.path("program")).args(["in-handlers", "trace.mtf"]);
        let said = run(&mut command).exits(0).text();
        let (requests, handled) = said.trim().split_once(' ').unwrap();
        let (requests, handled): (u64, u64) = (requests.parse().unwrap(), handled.parse().unwrap());
        let mut trace = access::Trace::open(folder.path("trace.mtf")).unwrap();
        let (mut of_loop, mut of_handler) = (0, 0);
        while let Some(record) = trace.next().unwrap() {
            let Record::Log(Log::Access(found)) = record else { panic!("{record:?}") };
            if found.time == 5 {
                of_handler += 1;
            } else {
                let i = u32::try_from(found.request_id).unwrap();
                assert_eq!((found.spans.len(), found.user.is_some()), (i as usize % 4, i % 2 == 1));
                of_loop += 1;
            }
        }
        // A handler that interrupts an event is dropped, and so is a request that interns while the handler's element
        // is refused.
        assert!(of_loop <= requests && of_loop > requests - handled, "{of_loop} of {requests}, {handled} handlers");
        assert!(of_handler <= handled, "{of_handler} of {handled}");
    }
}

/// The events in the buffers of a killed program refer to the elements in its trace.
#[test]
fn nested_events_survive_a_kill() {
    let Some(folder) = compile_for(ACCESS, "cc", &["-std=c99"]) else { return };
    let mut command = Command::new(folder.path("program"));
    command.current_dir(folder.as_ref()).args(["shared", "killed.mtf"]).env("METATF_TELEMETRY_FOLDER", folder.as_ref());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(line, "ready\n");
    metatfc(folder.as_ref(), &["telemetry", "killed.mtf", "-o", "trace.mtf"]).exits(0);
    metatfc(folder.as_ref(), &["verify", "trace.mtf"]).exits(0).prints("whole: 150 records, 3 stream elements");
    let mut trace = access::Trace::open(folder.path("trace.mtf")).unwrap();
    for i in 0..150 {
        let Some(Record::Log(Log::Access(found))) = trace.next().unwrap() else { panic!("request {i} is missing") };
        assert_eq!(found, request(i, found.path));
    }
    let last = metatfc(folder.as_ref(), &["telemetry", "killed.mtf", "--last", "1"]).exits(0).text();
    assert!(last.contains("# Other") && last.contains("\"request_id\":149,"), "{last}");
}

/// Each construct of the language that a record can contain.
#[test]
fn every_shape_of_a_record() {
    let Some(c) = trace(SHAPES, "cc", SANITIZED, &[]) else { return };
    metatfc(c.as_ref(), &["verify", "trace.mtf"]).exits(0).prints("whole: 58 records, 3 stream elements");
    let lines = dump(&c);
    let long = [("6c", 1000), ("62", 1000), ("00", 1000), ("l", 1000)];
    insta::assert_snapshot!(long.iter().fold(lines.clone(), |text, (part, n)| text.replace(&part.repeat(*n), "[..]")));
    for (compiler, flags) in [("cc", &["-std=c99", "-O3"][..]), ("c++", CPP), ("clang", &["-std=c99"])] {
        if let Some(other) = trace(SHAPES, compiler, flags, &[]) {
            assert_eq!(dump(&other), lines, "{compiler} {flags:?}");
        }
    }
}
