//! Child processes that symbolize frames: their number, and the cost if one dies.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use hatf_trace::event::{Call, Function};
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Event, EventKind, EventSink};
use hatf_view::symbolize::{Files, Found, Wanted, find};
use metatf_cli::ChildCommand;
use metatf_test::Folder;

use crate::common::{elf, hatf};

/// Number of modules symbolized at the same time.
const AT_ONCE: usize = 4;

/// Sends a module for each name, with a frame in it, to a sink.
fn modules(names: &[String], sink: &mut dyn EventSink) {
    for (at, name) in (1_u64..).zip(names) {
        let bias = at << 20;
        let (start, end, stack) = (bias + 0x1000, bias + 0x2000, [bias + 0x1008]);
        sink.event(&Event::new(EventKind::ModuleLoad { bias, start, end, name: name.as_bytes() })).unwrap();
        let call = Call { size: 64, address: 4096 * at, ..Call::new(Function::Malloc) };
        sink.event(&Event { stack: (&stack).into(), ..Event::new(EventKind::Call(call)) }).unwrap();
    }
}

/// Writes a trace of modules.
fn trace_of(folder: &Folder, names: &[String]) -> String {
    let trace = folder.path("modules.mtf");
    let mut writer = HeapWriter::new(fs::File::create(&trace).unwrap(), &HeapOptions::default()).unwrap();
    modules(names, &mut writer);
    writer.finish().unwrap();
    trace
}

/// Writes programs with one function each.
fn programs(folder: &Folder, count: usize) -> Vec<String> {
    let program = |at: usize| {
        let text = elf::bytes(".text", vec![0x90; 64]);
        let [symbols, strings] = elf::functions(&[format!("f{at}").as_bytes()]);
        folder.write(&format!("program-{at}"), elf::program(vec![text, symbols, strings]));
        format!("- {}", folder.path(&format!("program-{at}")))
    };
    (0..count).map(program).collect()
}

/// Symbolizes modules in children that run this script first. Returns the result and the number of children.
fn found(folder: &Folder, names: &[String], script: &str) -> (Found, usize) {
    let (started, hatf) = (folder.join("started"), env!("CARGO_BIN_EXE_hatf"));
    let script = format!("echo >>'{}'\n{script}\nexec '{hatf}' __symbolize-helper\n", started.display());
    let mut wanted = Wanted::new();
    modules(names, &mut wanted);
    let helper = Some(ChildCommand::new("/bin/sh".into(), vec!["-c".into(), script.into()]));
    let found = find(&wanted, &Files { helper, ..Files::default() });
    let started = fs::read(started).map_or(0, |lines| lines.len());
    (found, started)
}

#[test]
fn files_that_are_not_there_need_no_child() {
    let folder = Folder::new();
    let names: Vec<String> = (0..500).map(|at| format!("- /no/such/file-{at}")).collect();
    let (found, started) = found(&folder, &names, "");
    assert_eq!((found.named, found.problems.len(), started), (0, 500, 0));
    assert!(found.problems.iter().all(|problem| problem.why.ends_with("does not exist") && !problem.is_failure));
}

#[test]
fn a_child_serves_many_modules() {
    let folder = Folder::new();
    let names = programs(&folder, 40);
    let (found, started) = found(&folder, &names, "");
    assert_eq!((found.named, found.problems), (40, Vec::new()));
    assert!((1..=AT_ONCE).contains(&started), "{started}");
}

/// A module that is loaded repeatedly is symbolized once.
#[test]
fn a_module_is_looked_up_once() {
    let folder = Folder::new();
    let names = vec![programs(&folder, 1).remove(0); 30];
    let (found, started) = found(&folder, &names, "");
    assert_eq!((found.named, found.problems, started), (30, Vec::new(), 1));
}

/// The first child dies before its first answer and leaves one module without names.
#[test]
fn the_death_of_a_child_costs_one_module() {
    let folder = Folder::new();
    let names = programs(&folder, 12);
    let (found, _) = found(&folder, &names, &format!("mkdir '{}' 2>/dev/null && exit 9", folder.path("first")));
    assert_eq!((found.named, found.problems.len()), (11, 1));
    let problem = &found.problems[0];
    assert_eq!(
        (&*problem.why, problem.is_failure),
        ("symbolizing it failed in its child process: exit status: 9", true)
    );
}

/// A system error is reported as it is and makes `hatf symbolize` exit with status 1.
#[test]
fn errors_of_the_system() {
    let folder = Folder::new();
    let looped = folder.path("loop");
    symlink(&looped, &looped).unwrap();
    let cases = [
        (format!("- {looped}"), "Too many levels of symbolic links"),
        // A file that cannot be mapped.
        ("00ff00ff00ff00ff /proc/version".to_owned(), "/proc/version: "),
    ];
    let names = programs(&folder, 1);
    for (name, why) in cases {
        let trace = trace_of(&folder, &[name, names[0].clone()]);
        let output = folder.path("out.mtf");
        let run = hatf(["symbolize", &trace, "-o", &output]).exits(1).says(why).says("1 of 2 frames have a function");
        assert!(!run.err.contains("does not exist") && !run.err.contains("different version"), "{}", run.err);
        assert!(PathBuf::from(output).exists(), "what was found is kept");
        // A table reports missing names but is correct without them.
        hatf(["sites", &trace]).exits(0).says(why);
    }
}

/// `hatf symbolize` fails if all frames stay without a name, but not if the trace already contains names.
#[test]
fn a_trace_without_names() {
    let folder = Folder::new();
    let trace = trace_of(&folder, &["- /no/such/program".to_owned()]);
    let output = folder.path("out.mtf");
    hatf(["symbolize", &trace, "-o", &output]).exits(1).says("0 of 1 frames have a function");

    let names = programs(&folder, 1);
    let trace = trace_of(&folder, &names);
    hatf(["symbolize", &trace, "-o", &output]).exits(0).says("1 of 1 frames have a function");
    fs::remove_file(folder.join("program-0")).unwrap();
    hatf(["symbolize", &output, "-o", &output]).exits(0).says("does not exist");
    hatf(["sites", "--group", "stack", &output]).exits(0).prints("f0");
}

/// Endless devices and an endless pipe are refused.
#[test]
fn inputs_without_an_end() {
    for device in ["/dev/full", "/dev/zero"] {
        hatf(["symbolize", device, "-o", "/dev/null"]).exits(1).says(device).says("specify it with --from");
    }
    let piped = format!("yes | '{}' symbolize - -o /dev/null", env!("CARGO_BIN_EXE_hatf"));
    let run = metatf_test::run(Command::new("sh").args(["-c", &piped]));
    run.exits(1).says("standard input").says("specify it with --from");
}
