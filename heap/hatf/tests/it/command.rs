//! The `hatf` command: exit statuses and outputs.

use crate::common::hatf;
use insta::assert_snapshot;
use metatf::container::WriteOptions;
use metatf::dynamic::{Schema, Trace, Writer};
use metatf_test::{Folder, PATIENCE, Run, vectors};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn recorded(script: &str) -> Run {
    hatf(["record", "--report", "--no-trace", "--", "/bin/sh", "-c", script])
}

#[test]
fn the_program_s_output_and_status_are_kept() {
    let run = recorded("echo out; echo err >&2; exit 42").exits(42);
    assert_eq!(run.out, b"out\n");
    assert!(run.err.starts_with("err\nhatf: "), "{}", run.err);
    run.says(" records, 0 lost").says("total heap usage: ");
}

/// A report on a trace without times shows no times.
#[test]
fn a_recording_without_a_clock() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    hatf(["record", "-q", "--clock", "off", "--pages", "-o", &trace, "--", "/bin/sh", "-c", "exit 7"]).exits(7);
    let report = hatf(["report", &trace]).exits(0).prints("PEAK").prints("PAGES").prints("STILL LIVE").text();
    assert!(!report.contains(" ns") && !report.contains("allocated at"), "{report}");
}

/// A report in each format is the same on standard output and in a file.
#[test]
fn every_form_of_a_report() {
    let folder = Folder::new();
    let (trace, file) = (folder.path("trace.mtf"), folder.path("report"));
    hatf(["record", "-q", "-o", &trace, "--", "/bin/sh", "-c", "exit 7"]).exits(7);
    let forms = [
        ("text", "\nSIZES\n"),
        ("markdown", "\n### SIZES\n"),
        ("json", "\"report_version\": 1"),
        ("html", "<h2>SIZES</h2>"),
    ];
    for (form, part) in forms.into_iter().chain([("svg", "<desc>live: at most ")]) {
        let printed = hatf(["report", "--format", form, &trace]).exits(0).prints(part).text();
        hatf(["report", "--format", form, "-o", &file, &trace]).exits(0);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), printed, "{form}");
    }
    hatf(["report", "-o", &folder.path("no/such/folder/report"), &trace]).exits(1).says("folder/report: No such file");
}

/// `hatf record` warns that it does not see blocks of Python's own allocator.
#[test]
fn pythons_own_allocator() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let (program, trace) = (folder.path("python3.99"), folder.path("trace.mtf"));
    std::fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let recorded = |value: Option<&str>, program: &str| {
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
        hatf.args(["record", "-o", &trace, "--", program, "-c", "exit 7"]).env_remove("PYTHONMALLOC");
        metatf_test::run(hatf.envs(value.map(|value| ("PYTHONMALLOC", value)))).exits(7).err
    };
    assert!(
        recorded(None, &program).contains("--python=objects")
            && recorded(Some("debug"), &program).contains("--python=objects")
    );
    assert!(
        !recorded(Some("malloc"), &program).contains("--python=objects")
            && !recorded(None, "/bin/sh").contains("--python=objects")
    );
}

#[test]
fn statuses_of_programs_that_do_not_end_well() {
    recorded("kill -9 $$").exits(137);
    let quiet = |program| hatf(["record", "--report", "--no-trace", program]);
    quiet("/no/such/program").exits(127);
    quiet("/etc/passwd").exits(126);
    hatf(["record"]).exits(2);
    hatf(["report", "/no/such/trace.mtf"]).exits(1);
    let other = vectors("good/v1-width-narrow/trace.mtf").display().to_string();
    hatf(["report", &other]).exits(1).says("neither heap.dtd nor HATF10.dtd");
}

/// Flushed events are in the trace even if the recorder is killed.
#[test]
fn a_recorder_that_is_killed_leaves_what_it_flushed() {
    let folder = Folder::new();
    let path = folder.join("killed.mtf");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--flush", "1", "--spool", folder.path("").as_str(), "-o", path.to_str().unwrap()])
        .args(["--", "/bin/sh", "-c", "read wait"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    // The header is written immediately.
    let length = || std::fs::metadata(&path).map_or(0, |m| m.len());
    let mut header = 0;
    while (header == 0 || length() == header) && begun.elapsed() < PATIENCE {
        header = if header == 0 { length() } else { header };
        std::thread::sleep(Duration::from_millis(20));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let report = hatf(["report", path.to_str().unwrap()]).exits(0).prints("total heap usage: ").text();
    assert!(!report.contains("total heap usage: 0 allocs"), "{report}");
}

#[test]
fn a_termination_signal_is_passed_on() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--report", "--no-trace", "--", "/bin/sh", "-c"])
        .arg("echo ready; exec sleep 60")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let process = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: this child has not been waited for.
    unsafe { libc::kill(process, libc::SIGTERM) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("killed by signal 15") && text.contains("total heap usage: "), "{text}");
}

/// Help lists all visible commands, which are those in the completion scripts.
#[test]
fn each_command_has_a_group() {
    let help = hatf(["--help"]).exits(0).text();
    let folder = Folder::new();
    hatf(["--install-docs", &folder.path("share")]).exits(0);
    let script = folder.text("share/bash-completion/completions/hatf");
    let all: Vec<_> = script.split("hatf,").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let visible: Vec<_> = all.iter().filter(|name| !name.starts_with("__")).collect();
    assert!(visible.len() > 20, "{all:?}");
    for name in visible {
        assert!(
            help.lines().any(|line| line.strip_prefix("  ").is_some_and(|line| line.starts_with(&format!("{name} ")))),
            "{name}"
        );
    }
}

/// `hatf man` writes a page for each command from its help text.
#[test]
fn manual_pages() {
    let folder = Folder::new();
    hatf(["--install-docs", &folder.path("share")]).exits(0);
    let page = folder.text("share/man/man1/hatf-record.1");
    assert!(page.starts_with(".ie ") && page.contains("preloaded") && page.contains("Examples:"), "{page}");
    assert!(folder.text("share/man/man1/hatf.1").contains("hatf\\-convert(1)"));
    folder.write("file", "");
    hatf(["--install-docs", &folder.path("file")]).exits(1).says("file: ");
    hatf(["--install-docs", &folder.path("share"), "tour"]).exits(2).says("cannot be used with the command `tour`");
}

/// Reports on the first 2,000 calls of a program with threads match the snapshots.
#[test]
fn a_report() {
    let folder = Folder::new();
    let (raw, heap) = (DATA.to_owned() + "python_threads.raw64.zst", folder.path("heap.mtf"));
    hatf(["convert", &raw, &heap]).exits(0);
    let run = |arguments: &[&str]| hatf(["report", "--threads", "1"].iter().chain(arguments)).exits(0).text();
    let report = run(&[&heap]).replace(&heap, "heap.mtf");
    assert_snapshot!("report-text", report);
    assert_snapshot!("report-json", run(&["--format", "json", &heap]).replace(&heap, "heap.mtf"));
}

/// A report with other analyses reads the trace once, and each analysis finds the same as its own command.
#[test]
fn a_report_with_other_analyses() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    let script = "for (1..2000) { $h{$_ % 97} .= chr(65 + $_ % 26); push @l, [$_] if $_ % 5 }";
    hatf(["record", "--stacks", "-o", &trace, "perl", "-e", script]).exits(0);
    let json = |arguments: &[&str]| -> Value {
        let printed = hatf(arguments.iter().chain(&["--format", "json", &trace])).exits(0).text();
        serde_json::from_str(&printed).unwrap()
    };
    let with = ["report", "--with", "sites,churn,leaks,fragmentation,profile"];
    let all = json(&with);
    assert_eq!(all["report_version"], 1);
    let alone: [(&str, &[&str]); 5] = [
        ("report", &["report"]),
        ("sites", &["sites"]),
        ("churn", &["churn"]),
        ("leaks", &["leaks"]),
        ("fragmentation", &["fragmentation", "--at", "end"]),
    ];
    for (name, arguments) in alone {
        let mut alone = json(arguments);
        alone.as_object_mut().unwrap().remove("report_version");
        assert_eq!(all[name], alone, "{name}");
    }
    let profile = folder.path("p.heapprof");
    hatf(["profile", &trace, "-o", &profile]).exits(0);
    let shown = hatf(["profile", "show", "--format", "json", &profile]).exits(0).text();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(all["profile"]["contexts"], shown["contexts"]);
    for (form, part) in
        [("text", "CONTEXTS by total_size"), ("markdown", "SHORT-LIVED"), ("html", "<svg"), ("svg", "<svg")]
    {
        hatf(with.iter().chain(&["--format", form, &trace])).exits(0).prints(part);
    }
}

/// Directory of traces of programs, as compressed raw records.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

#[test]
fn converting() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let raw = &(DATA.to_owned() + "python_threads.raw64.zst");
    let (heap, back, less) = (path("a.mtf"), path("b.raw64"), path("c.raw32"));
    let run = |arguments: &[&str], status: i32| {
        let run = hatf([&["convert"], arguments].concat()).exits(status);
        (run.out, run.err)
    };
    assert_eq!(run(&["--strict", raw, &heap], 0), (Vec::new(), String::new()));
    assert_eq!(run(&["--strict", &heap, &back], 0).1, "");
    // The output goes to standard output if no file is named.
    assert!(run(&["--to", "raw64", &heap], 0).0 == std::fs::read(&back).unwrap());
    // Each kind of loss is reported once. A loss is an error only with `--strict`.
    let (_, messages) = run(&[&heap, &less], 0);
    assert!(
        messages.contains("hatf: raw32 cannot represent times: 2000\n") && messages.lines().count() == 3,
        "{messages}"
    );
    run(&["--strict", &heap, &less], 1);
    // A coarser clock makes the trace smaller.
    let coarse = path("coarse.mtf");
    let (_, messages) = run(&["--clock", "1ms", &heap, &coarse], 0);
    assert!(messages.contains("between two clock ticks"), "{messages}");
    let length = |path: &str| std::fs::metadata(path).unwrap().len();
    assert!(length(&coarse) < length(&heap));
    // Usage errors: an unknown output format and an invalid clock.
    run(&[&heap], 2);
    run(&["--clock", "2s", &heap, &coarse], 2);
    // Tables need a directory, and another command writes records as CSV.
    for (arguments, expected) in [
        (&["--to", "csv", &heap][..], "hatf convert TRACE OUTPUT --to csv"),
        (&[&heap, &path("a.csv")], "hatf convert TRACE DIR --to csv"),
        (&[&heap, &path("a.csv")], "metatfc convert --record malloc TRACE malloc.csv"),
        (&[&heap, &heap, "--to", "sqlite"], "a.mtf is also an input"),
        (&[&heap, &less, "--to", "csv"], "c.raw32 already exists; of several paths, the last is the output"),
    ] {
        let (_, messages) = run(arguments, 2);
        assert!(messages.contains(expected), "{messages}");
    }
    // Options without effect.
    for (options, expected) in [
        (
            &["--to", "raw32", "--preset", "fast"][..],
            "--preset requires heap or hatf10 output; this command converts one input to raw32",
        ),
        (&["--to", "sqlite", "--from", "heap"], "requires trace or profile output"),
        (&["--to", "sqlite", "--partition"], "--partition requires table output in a directory"),
        (&["--to", "heap", "--as-is"], "--as-is requires several inputs"),
        (&["--to", "heap", "--tables", "sites"], "requires table output"),
        (&["--to", "csv", "--symbols", "/"], "requires profile output or --resolve"),
    ] {
        let (_, messages) = run(&[options, &[&heap, &path("none")]].concat(), 2);
        assert!(messages.contains(expected), "{messages}");
    }
    assert!(!std::fs::exists(path("none")).unwrap());
    let (_, messages) = run(&["--from", "hatf10", &heap, &less], 1);
    assert!(messages.contains("--from heap"), "{messages}");
    // An existing output stays unchanged if the input is invalid.
    let before = std::fs::read(&less).unwrap();
    run(&["--from", "raw32", &heap, &less], 1);
    assert!(std::fs::read(&less).unwrap() == before);
    run(&["/no/such/trace", &less], 1);
}

/// For a trace of another version of `heap.dtd`, the commands warn about fields that only one version declares.
#[test]
fn a_trace_of_another_version() {
    let folder = Folder::new();
    let (now, older, lines) = (folder.path("now.mtf"), folder.path("older.mtf"), folder.path("out.jsonl"));
    hatf(["convert", &(DATA.to_owned() + "python_threads.raw64.zst"), &now]).exits(0);
    let text = Trace::open(&now).unwrap().schema().dtd.text.clone();
    let (before, rest) = text.split_once("    processor: (").unwrap();
    let (_, behind) = rest.split_once("\n    }\n").unwrap();
    let text = format!("{before}{behind}").replace("creator", "parent");
    let schema = Schema::parse("heap.dtd", text.as_bytes()).unwrap();
    let options = WriteOptions { dtd_url: "heap.dtd".to_owned(), ..WriteOptions::default() };
    std::fs::write(&older, Writer::new(Vec::new(), &schema, &options).unwrap().finish().unwrap()).unwrap();
    for run in [hatf(["convert", &older, &lines]), hatf(["report", &older])] {
        run.exits(0)
            .says("older.mtf: warning: the trace has heap.thread_start.parent, which the reader does not declare")
            .says(
                "older.mtf: warning: the reader has heap.thread_start.creator, which the trace does not declare, so the values are 0 or empty\n",
            );
    }
}

#[test]
fn an_output_that_cannot_be_written() {
    let folder = Folder::new();
    let heap = folder.path("a.mtf");
    hatf(["convert", &(DATA.to_owned() + "python_threads.raw64.zst"), &heap]).exits(0);
    for form in ["heap", "jsonl", "hatf1", "hatf10", "raw32", "raw64", "malloclab"] {
        let run = hatf(["convert", "--to", form, &heap, "/dev/full"]).exits(1);
        assert_eq!(run.err, "hatf: /dev/full: No space left on device (os error 28)\n", "{form}");
    }
    hatf(["record", "-o", "/dev/full", "--", "/bin/true"]).exits(125).says("hatf: /dev/full: ");
}

#[test]
fn a_program_that_cannot_be_run_leaves_the_output_as_it_was() {
    let folder = Folder::new();
    folder.write("old.mtf", "an old trace");
    let link = folder.join("link.mtf");
    std::os::unix::fs::symlink(folder.join("old.mtf"), &link).unwrap();
    for name in ["old.mtf", "link.mtf", "new.mtf"] {
        hatf(["record", "-o", &folder.path(name), "--", "/no/such/program"]).exits(127);
    }
    assert_eq!(folder.text("old.mtf"), "an old trace");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(folder.join("")).unwrap().count(), 2);
    // A program that runs replaces the target of the link.
    hatf(["record", "-o", &folder.path("link.mtf"), "--", "/bin/sh", "-c", ":"]).exits(0);
    assert!(link.is_symlink());
    hatf(["report", &folder.path("old.mtf")]).exits(0);
}

#[test]
fn a_trace_to_standard_output() {
    let run = hatf(["record", "-o", "-", "--", "/bin/sh", "-c", "echo out"]).exits(0).says("out\n");
    let folder = Folder::new();
    std::fs::write(folder.join("trace.mtf"), run.out).unwrap();
    hatf(["report", &folder.path("trace.mtf")]).exits(0).prints("total heap usage: ");
    assert!(!Path::new("-").exists());
}

#[test]
fn a_report_without_a_trace() {
    hatf(["record", "--no-trace", "--", "/bin/sh", "-c", ":"]).exits(0).says("total heap usage: ");
}

/// If a file reaches the size limit, `hatf` keeps a failing program's status, and the message names the file and what
/// to do.
#[test]
fn an_output_without_room() {
    let folder = Folder::new();
    let trace = folder.path("limited.mtf");
    // No file may exceed 1,024 bytes (512 in some shells), which applies to the trace and the recorder's own files.
    let script = "ulimit -f 1; \"$0\" record --quiet -o \"$1\" -- /bin/sh -c 'exit 7'; echo $?";
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_hatf"), &trace]);
    metatf_test::run(&mut shell).exits(0).prints("125\n").says("File too large (os error 27)");
    assert!(!Path::new(&trace).exists());
    // The limit is set while the program runs.
    for (status, code) in [("0", 125), ("7", 7)] {
        let program =
            format!("echo ready; read go; i=0; while [ $i -lt 40000 ]; do i=$((i + 1)); v=$i; done; exit {status}");
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
            .args(["record", "--quiet", "--clock", "1ns", "-o", &trace, "--", "/bin/sh", "-c", &program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        recorder.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
        let process = libc::pid_t::try_from(recorder.id()).unwrap();
        // SAFETY: a running child, and a valid limit.
        assert_eq!(unsafe { libc::prlimit(process, libc::RLIMIT_FSIZE, &raw const limit, std::ptr::null_mut()) }, 0);
        recorder.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let output = recorder.wait_with_output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{messages}");
        let expected = "limited.mtf: File too large (os error 27): raise the limit (ulimit -f)\n";
        assert!(messages.contains(expected), "{messages}");
        // Events missing from the trace are in the spool.
        let (_, spool) = messages.split_once("`hatf recover ").unwrap();
        let (spool, _) = spool.split_once('`').unwrap();
        hatf(["recover", spool, "-o", &folder.path("whole.mtf")]).exits(0).says(", 0 lost");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let raw = DATA.to_owned() + "gawk.raw32.zst";
    let mut child = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["convert", "--to", "jsonl", &raw])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

/// Of two recordings to the same file, the second is refused before its program runs.
#[test]
fn two_recordings_of_one_name() {
    let folder = Folder::new();
    let path = folder.path("same.mtf");
    let script = "echo; read line; exit 7";
    let mut first = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "-o", &path, "--", "/bin/sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    first.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    // The trace gets its name a moment after the program has started.
    let begun = Instant::now();
    while !Path::new(&path).exists() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    let second = ["record", "-o", &path, "--", "touch", &folder.path("ran")];
    hatf(second).exits(125).says("same.mtf: another recording is writing this trace");
    assert!(!folder.join("ran").exists());
    drop(first.stdin.take());
    let first = first.wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(7));
    hatf(["report", &path]).exits(0).prints("total heap usage");
    hatf(second).exits(0);
}

/// If a finished trace has lost its last groups completely, the count in its header shows this, and every command
/// reports it.
#[test]
fn every_reader_tells_what_is_missing() {
    let folder = Folder::new();
    let [whole, cut] = ["whole.mtf", "cut.mtf"].map(|name| folder.path(name));
    let raw = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gawk.raw32.zst");
    hatf(["convert", "--group", "1000", raw, &whole]).exits(0);
    let bytes = folder.read("whole.mtf");
    let mut reader = metatf::container::Reader::from_slice(&bytes).unwrap();
    let groups = reader.chunks().unwrap().iter().filter(|chunk| chunk.is_group_start());
    let last = groups.map(|chunk| chunk.offset).next_back().unwrap();
    folder.write("cut.mtf", &bytes[..usize::try_from(last).unwrap()]);
    let [out, heap, cdf] = ["out.jsonl", "out.profile", "out.model"].map(|name| folder.path(name));
    let runs: &[&[&str]] = &[
        &["report", &cut],
        &["report", "--threads", "1", &cut],
        &["convert", &cut, &out],
        &["simulate", &cut],
        &["whatif", "--threads", "1", &cut],
        &["profile", &cut, "-o", &heap],
        &["symbolize", &cut, "-o", &folder.path("s.mtf")],
        &["sites", &cut],
        &["diff", &cut, &cut],
        &["dump", &cut],
        &["fragmentation", &cut],
        &["churn", &cut],
        &["leaks", &cut],
        &["model", "fit", "-m", "cdf", &cut, "-o", &cdf],
        &["replay", &cut, "--with", "system", "--runs", "1"],
    ];
    for run in runs {
        let done = hatf(*run).exits(1).says("cut.mtf: the header declares ");
        assert_eq!(done.err.matches("the header declares").count(), 1, "{run:?}: {}", done.err);
    }
    hatf(["report", &whole]).exits(0);
}

/// A small trace can represent many blocks, whose memory adds up. Exceeding the memory limit is an error.
#[test]
fn a_trace_that_takes_much_memory() {
    let folder = Folder::new();
    let [rep, trace, svg] = ["many.rep", "many.mtf", "p.svg"].map(|name| folder.path(name));
    let calls: String = (0..200_000).map(|number| format!("a {number} 16\n")).collect();
    folder.write("many.rep", format!("0\n200000\n200000\n1\n{calls}"));
    hatf(["convert", "--profile", "archive", &rep, &trace]).exits(0);
    assert!(folder.size("many.mtf") < 20_000, "{} bytes", folder.size("many.mtf"));
    let limited: &[&[&str]] = &[
        &["report", &trace],
        &["sites", &trace],
        &["simulate", &trace],
        &["fragmentation", &trace],
        &["profile", &trace, "-o", &svg],
        &["sites", "--format", "svg", &trace, "-o", &svg],
    ];
    for run in limited {
        let run = [&["--max-memory", "8MiB"], *run].concat();
        hatf(&run).exits(1).says("hatf: out of memory: the limit is 8 MiB; to raise it, use --max-memory");
        assert!(!folder.join("p.svg").exists(), "{run:?} leaves its output");
    }
    hatf(["report", "--max-memory", "1GiB", &trace]).exits(0);
}
