//! Every command that reads a heap trace reads every format: from a file, compressed, and from standard input.
#![expect(clippy::unwrap_used, clippy::panic)]

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use hatf_trace::event::{Call, EventSink as _, Function};
use hatf_trace::forms::{FORMS, Form};
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Event, EventKind};
use metatf_test::{Folder, Run, golden, run_with};

use super::other_formats::{THEIRS, event, lines, trace};
use crate::common::hatf;

/// The commands with their arguments besides the trace. `OUT` is an output file, `BASE` a trace to compare with, `FORM`
/// the format, and `IN` the trace if it is not the last argument.
const COMMANDS: &[&[&str]] = &[
    &["report"],
    &["report", "--threads", "1"],
    &["sites"],
    &["sites", "--format", "svg", "-o", "OUT"],
    &["sites", "--format", "folded"],
    &["fragmentation", "--at", "peak,end"],
    &["simulate", "--allocator", "bsd"],
    &["whatif"],
    &["model", "fit", "-m", "cdf", "-o", "OUT"],
    &["model", "fit", "-m", "time", "-o", "OUT"],
    &["model", "evaluate", "-m", "cdf", "-a", "bsd", "--trials", "1"],
    &["profile", "-o", "OUT"],
    &["regions", "infer"],
    &["replay", "--runs", "1"],
    &["diff", "IN", "BASE"],
    &["dump"],
    &["symbolize", "-o", "OUT"],
    &["convert", "--to", "raw32", "IN", "OUT"],
    &["convert", "--from", "FORM", "IN", "OUT"],
];

/// Returns the reason if a command cannot support a format.
fn refusal(command: &[&str], form: &str) -> Option<&'static str> {
    // Stacks in raw64 and mtrace have one frame each.
    let has_frames = matches!(form, "heap" | "jsonl" | "raw64" | "heaptrack" | "mtrace" | "memray");
    match command[0] {
        // Python functions already have names.
        "symbolize" if !has_frames || form == "memray" => {
            Some("the trace has no stacks; record it with hatf record --stacks")
        }
        // mtrace logs contain function names. The modules of the other formats do not exist.
        "symbolize" if form != "mtrace" => Some("0 of "),
        "regions" if !has_frames => Some("the trace has no stacks, so calls are unknown"),
        _ => None,
    }
}

/// Writes a trace with stacks, threads and times.
fn base(folder: &Folder) -> String {
    let path = folder.path("base.mtf");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let load = EventKind::ModuleLoad { bias: 0, start: 0x1000, end: 0x9000, name: b"- /no/such/program" };
    writer.event(&Event::new(load)).unwrap();
    for number in 0..60_u64 {
        let (address, time, thread) = (0x10000 + 256 * number, 1000 * number, 1 + number % 2);
        let stack = [0x1010 + 16 * (number % 5), 0x2020];
        let call = Call { size: 8 + number % 100, address, ..Call::new(Function::Malloc) };
        let event = Event { time, thread, stack: (&stack).into(), ..Event::new(EventKind::Call(call)) };
        writer.event(&event).unwrap();
        if number % 3 == 0 {
            let call = Call { size: 200, old: address, address: address + 0x10_0000, ..Call::new(Function::Realloc) };
            writer.event(&Event { kind: EventKind::Call(call), ..event }).unwrap();
        } else if number % 3 == 1 {
            writer.event(&Event { kind: EventKind::Free { address }, stack: (&[]).into(), ..event }).unwrap();
        }
    }
    writer.finish().unwrap();
    path
}

/// Logs of two allocating functions: `MTRACE` of a C program and `MEMRAY` of a Python program.
const MTRACE: &str = "= Start
@ ./words:(add+0x15)[0x1185] + 0x5580 0x40
@ ./words:(add+0x15)[0x1185] + 0x5600 0x48
@ ./words:(main+0x2a)[0x11da] < 0x5580
@ ./words:(main+0x2a)[0x11da] > 0x5700 0x80
@ ./words:(main+0x31)[0x11e1] - 0x5600
= End
";
const MEMRAY: &str = "\
HEADER magic=memray version=13 python_version=030b0ff0 native_traces=false file_format=ALL_ALLOCATIONS n_allocations=4 n_frames=0 \
start_time=100 end_time=120 pid=7 main_tid=1 skipped_frames_on_main_tid=1 command_line=memray run words.py python_allocator=pymalloc
CONTEXT_SWITCH tid=1
CODE_OBJECT code_id=1 function_name=<module> filename=memray.py firstlineno=1 linetable_size=12
FRAME_PUSH code_object_id=1 instruction_offset=14 is_entry_frame=1
CODE_OBJECT code_id=2 function_name=add filename=/a b/words.py firstlineno=3 linetable_size=12
FRAME_PUSH code_object_id=2 instruction_offset=14 is_entry_frame=1
ALLOCATION address=0x5580 size=64 allocator=malloc native_frame_id=0
MEMORY_RECORD time=110 memory=45330432
ALLOCATION address=0x5600 size=72 allocator=pymalloc_calloc native_frame_id=0
ALLOCATION address=0x5580 size=0 allocator=free native_frame_id=0
FRAME_POP count=1
ALLOCATION address=0x5700 size=128 allocator=realloc native_frame_id=0
ALLOCATION address=0x7f00 size=8192 allocator=mmap native_frame_id=0
TRAILER
";

/// Writes a trace in a format to a file named after it.
fn in_form(folder: &Folder, base: &str, form: &Form) -> String {
    let suffix = form.suffixes.first().unwrap_or(&".mtf");
    let name = format!("{}{}{suffix}", form.name, if suffix.starts_with('.') { "" } else { "-" });
    let path = folder.path(&name);
    match form.name {
        "named" => return trace(folder, &name, THEIRS, &lines()),
        "mps" => {
            let objects = (0..40_u64).flat_map(|number| {
                let object = [0x7000, 0x1000 + 64 * number, 32];
                let end = (number % 2 == 0).then(|| event(0x2c, 101 + 2 * number, &object));
                [Some(event(0x2a, 100 + 2 * number, &object)), end].into_iter().flatten()
            });
            folder.write(&name, objects.collect::<Vec<_>>().concat());
        }
        "mtrace" => folder.write(&name, MTRACE),
        "memray" => folder.write(&name, MEMRAY),
        _ => drop(hatf(["convert", "--to", form.name, base, &path]).exits(0)),
    }
    path
}

/// Runs a command on a trace, which is `bytes` if the input is `-`.
fn run(command: &[&str], form: &str, input: &str, base: &str, folder: &Folder, bytes: &[u8]) -> Run {
    let out = folder.path("out.mtf");
    let mut arguments: Vec<&str> = command
        .iter()
        .map(|argument| match *argument {
            "OUT" => out.as_str(),
            "BASE" => base,
            "IN" => input,
            "FORM" => form,
            other => other,
        })
        .collect();
    if !command.contains(&"IN") {
        arguments.push(input);
    }
    // Nothing else identifies the format of standard input.
    if input == "-" && !command.contains(&"--from") {
        arguments.extend(["--from", form]);
    }
    let mut process = Command::new(env!("CARGO_BIN_EXE_hatf"));
    run_with(process.args(&arguments).env_remove("COLUMNS").current_dir(folder.join("")), bytes)
}

#[test]
fn every_command_reads_every_form() {
    let folder = Folder::new();
    let base = base(&folder);
    let mut wrong = String::new();
    for form in FORMS.into_iter().filter(|form| form.open.is_some()) {
        let path = in_form(&folder, &base, form);
        let plain = std::fs::read(&path).unwrap();
        let zst = zstd::stream::encode_all(&plain[..], 1).unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&plain).unwrap();
        let (zst_path, gz_path) = (format!("{path}.zst"), format!("{path}.gz"));
        std::fs::write(&zst_path, &zst).unwrap();
        std::fs::write(&gz_path, gz.finish().unwrap()).unwrap();
        for (number, command) in COMMANDS.iter().enumerate() {
            let piped = if number % 2 == 0 { &plain } else { &zst };
            let mut shown = None;
            for (name, bytes) in [(&path[..], &[][..]), (&zst_path, &[]), (&gz_path, &[]), ("-", piped)] {
                let run = run(command, form.name, name, &path, &folder, bytes);
                let text = String::from_utf8_lossy(&run.out).replace(name, "TRACE").replace(&path, "TRACE");
                let is_right = match refusal(command, form.name) {
                    Some(why) => run.status == 1 && run.err.contains(why),
                    // The output contains times or a bare file name.
                    None if name == "-" || matches!(command[0], "replay" | "model") => run.status == 0,
                    None => run.status == 0 && *shown.get_or_insert_with(|| text.clone()) == text,
                };
                if !is_right {
                    let _ = writeln!(wrong, "{command:?} {name}: {} {}{text}", run.status, run.err);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns a number from a JSON report.
fn number(command: &str, trace: &str, place: &str) -> u64 {
    let json: serde_json::Value =
        serde_json::from_str(&hatf([command, "--format", "json", trace]).exits(0).text()).unwrap();
    json.pointer(place).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{command} {trace}: {place}"))
}

/// All commands count the same number of events.
#[test]
fn counts_agree() {
    let folder = Folder::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");
    let files =
        ["gawk.raw32.zst", "perl_hash.raw32.zst", "python_threads.raw64.zst"].map(|name| data.to_owned() + name);
    let base = base(&folder);
    for trace in files.iter().chain([&base]) {
        let events = number("report", trace, "/totals/events");
        for command in ["sites", "simulate", "fragmentation"] {
            assert_eq!(number(command, trace, "/trace/events"), events, "{command} {trace}");
        }
        let records = number("report", trace, "/totals/records").to_string();
        let last = hatf(["dump", "--start", &records, trace]).exits(0).text();
        assert!(last.replace(',', "").trim_start().starts_with(&records), "{last}");
        hatf(["dump", "--start", &(records + "0"), trace]).exits(0).prints("");
    }
}

/// The table in the book has the rows of the table of formats.
#[test]
fn the_book_has_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/convert.md");
    let page = std::fs::read_to_string(path).unwrap();
    let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut rows = String::from("| form | what it is | names | lost, if written |\n| --- | --- | --- | --- |\n");
    for Form { name, about, suffixes, open, create, lost, .. } in FORMS {
        let only_written = if open.is_none() { "only written; " } else { "" };
        let lost = if create.is_some() { format!("{only_written}{lost}") } else { "only read".to_owned() };
        let _ = writeln!(rows, "| `{name}` | {about} | {} | {lost} |", quoted(suffixes));
    }
    let (begin, end) = ("<!-- begin: forms -->\n", "<!-- end: forms -->");
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    golden::hold(Path::new(path), &format!("{before}{begin}\n{rows}\n{end}{after}"));
}

/// Standard output is a pipe that is full long before the end of the trace, which is then truncated.
#[test]
fn an_input_that_is_truncated_while_it_is_read() {
    let folder = Folder::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../hatf-trace/tests/data/gawk.raw32.zst");
    hatf(["convert", data, &folder.path("short.raw32")]).exits(0);
    folder.write("long.raw32", folder.read("short.raw32").repeat(30));
    hatf(["convert", "--preset", "fast", &folder.path("long.raw32"), &folder.path("long.mtf")]).exits(0);
    for (name, said) in [("long.raw32", "long.raw32: raw records: "), ("long.mtf", "long.mtf: ")] {
        let mut dump = Command::new(env!("CARGO_BIN_EXE_hatf"));
        dump.args(["dump", &folder.path(name)]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut dump = dump.spawn().unwrap();
        let mut out = dump.stdout.take().unwrap();
        out.read_exact(&mut [0; 16]).unwrap();
        folder.write(name, &folder.read(name)[..4096]);
        std::io::copy(&mut out, &mut std::io::sink()).unwrap();
        let output = dump.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains(&format!("{said}the file was truncated while it was being read")), "{err}");
    }
}
