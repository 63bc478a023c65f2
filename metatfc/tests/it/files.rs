//! Files that cannot be read or written, files that are truncated while being read, and file names that are not UTF-8.
#![cfg(target_os = "linux")]

use super::common::{command, metatfc};
use super::folder;
use metatf_test::{Folder, Run, run_with};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;

/// Runs the command with a limit set by the shell.
fn limited(folder: &Path, limit: &str, args: &[&str]) -> Run {
    let own = command(folder, args);
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"]).arg(own.get_program()).args(own.get_args());
    run_with(shell.current_dir(folder), b"")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Creates a trace of many chunks, `long.mtf`, and the same trace without chunks, `plain.mtf`.
fn long_trace() -> Folder {
    let folder = folder();
    let line = r#"{"@section":"heap","@record":"list","time":1,"n":0,"value":[]}"#;
    folder.write("long.jsonl", format!("{line}\n").repeat(100_000));
    metatfc(&folder, &["convert", "--dtd", "a.dtd", "--chunk", "4K", "--codec", "stored", "long.jsonl", "long.mtf"])
        .exits(0);
    metatfc(&folder, &["convert", "--dtd", "a.dtd", "--version", "0", "long.jsonl", "plain.mtf"]).exits(0);
    folder
}

#[test]
fn an_input_that_is_truncated_while_it_is_read() {
    let folder = long_trace();
    for (trace, message) in [
        ("long.mtf", "long.mtf: the file was truncated while it was being read"),
        ("plain.mtf", "plain.mtf was truncated while it was being read"),
        ("long.jsonl", "long.jsonl: the file was truncated while it was being read"),
    ] {
        let args: &[&str] = match trace {
            "long.jsonl" => &["convert", "--dtd", "a.dtd", "--chunk", "4K", "--codec", "stored", trace, "-"],
            _ => &["dump", "--threads", "1", trace],
        };
        let mut child = command(&folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("metatfc");
        let (mut out, mut err) = (child.stdout.take().expect("a pipe"), String::new());
        // The command blocks on its full output pipe long before the end of the trace.
        out.read_exact(&mut [0; 16]).expect("the first bytes");
        folder.write(trace, &folder.read(trace)[..4096]);
        std::io::copy(&mut out, &mut std::io::sink()).expect("the rest");
        child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
        let status = child.wait().expect("metatfc");
        assert!(status.code() == Some(1) && err.contains(message), "{trace}: {status}: {err}");
    }
}

/// The database has no name while it is written, so a killed command leaves nothing.
#[test]
#[cfg(target_os = "linux")]
fn a_database_that_is_being_written() {
    let folder = long_trace();
    let before = names(&folder);
    let mut child = command(&folder, &["convert", "long.mtf", "--to", "sqlite", "out.db"]).spawn().expect("metatfc");
    let open = Path::new("/proc").join(child.id().to_string()).join("fd");
    let is_database = |entry: std::io::Result<std::fs::DirEntry>| {
        let target = entry.and_then(|entry| std::fs::read_link(entry.path())).unwrap_or_default();
        target.to_string_lossy().contains(".tables-") && target.to_string_lossy().ends_with(" (deleted)")
    };
    while !std::fs::read_dir(&open).expect("its files").any(is_database) {
        assert!(child.try_wait().expect("metatfc").is_none(), "it ended before it was killed");
    }
    child.kill().expect("metatfc");
    child.wait().expect("metatfc");
    assert_eq!(names(&folder), before);
}

#[test]
fn a_full_output_is_an_error_with_a_name() {
    let folder = long_trace();
    let before = names(&folder);
    for args in [
        &["convert", "long.mtf", "out.mtf"][..],
        &["sort", "--by", "time", "long.mtf", "-o", "out.mtf"],
        &["convert", "long.mtf", "--to", "csv", "tables"],
        &["convert", "long.mtf", "--to", "sqlite", "out.db"],
        &["--install-docs", "share"],
        &["new", "spans"],
        &["verify", "--salvage", "out.mtf", "long.mtf"],
    ] {
        if args.contains(&"--to") && cfg!(not(feature = "tables")) {
            continue;
        }
        let limited = limited(&folder, "-f 0", args);
        let salvages = args[0] == "verify";
        let limited = limited.exits(if salvages { 4 } else { 1 });
        let name = args.iter().find(|word| word.starts_with("out") || word.starts_with("tables") || **word == "share");
        let limited = limited.says(name.unwrap_or(&"spans.dtd"));
        if args.contains(&"sqlite") {
            limited.says("disk");
        } else {
            limited.says("File too large (os error 27)");
        }
        let left: Vec<_> = names(&folder).into_iter().filter(|name| !before.contains(name)).collect();
        assert!(left.iter().all(|name| has_no_files(&folder.join(name))), "{args:?} left {left:?}");
    }
}

/// Returns whether this is a directory without files, also in its subdirectories.
fn has_no_files(path: &Path) -> bool {
    path.is_dir()
        && std::fs::read_dir(path).expect("a directory").all(|entry| has_no_files(&entry.expect("an entry").path()))
}

#[test]
fn errors_keep_the_words_of_the_system() {
    let folder = folder();
    metatfc(&folder, &["verify", "/proc/self/mem"]).exits(1).says("/proc/self/mem: Input/output error (os error 5)");
}

#[test]
fn whether_the_salvaged_trace_was_written() {
    let folder = folder();
    let whole = folder.read("a.mtf");
    folder.write("torn.mtf", &whole[..whole.len() - 30]);
    metatfc(&folder, &["verify", "--salvage", "out.mtf", "torn.mtf"]).says("salvaged into out.mtf");
    metatfc(&folder, &["verify", "--salvage", "no/out.mtf", "torn.mtf"]).exits(4).says("no/out.mtf: not written");
    // An intact trace is also copied, so this output must be writable, too.
    metatfc(&folder, &["verify", "--salvage", "no/out.mtf", "a.mtf"]).exits(4).says("no/out.mtf: not written");
}

#[test]
fn names_that_are_not_utf_8() {
    let folder = folder();
    let name = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let [dtd, trace, lines, other, code] =
        [&b"\xff.dtd"[..], b"\xff.mtf", b"\xff.jsonl", b"other\xff.mtf", b"\xff.rs"].map(name);
    std::fs::copy(folder.join("a.dtd"), folder.join(&dtd)).expect("a copy");
    std::fs::copy(folder.join("a.mtf"), folder.join(&trace)).expect("a copy");
    let dump = metatfc(&folder, &["dump", "--all", "--format", "jsonl", "a.mtf"]).exits(0);
    std::fs::write(folder.join(&lines), dump.out).expect("a file");
    let run = |words: &[&OsStr]| run_with(command(&folder, &[]).args(words), b"");
    let [o, d, by] = ["-o", "--dtd", "--by"].map(OsStr::new);
    for words in [
        &[OsStr::new("convert"), d, &dtd, &lines, &other][..],
        &[OsStr::new("convert"), &trace, &other],
        &[OsStr::new("sort"), by, OsStr::new("time"), &trace, o, &other],
        &[OsStr::new("gen"), &dtd, o, &code],
        &[OsStr::new("verify"), OsStr::new("--salvage"), &other, &trace],
        &[OsStr::new("verify"), &other],
        &[OsStr::new("dump"), &other],
        &[OsStr::new("stat"), &other],
        &[OsStr::new("show"), &dtd],
        &[OsStr::new("check"), &dtd],
        &[OsStr::new("fmt"), &dtd],
        &[OsStr::new("diff"), &trace, &trace],
        &[OsStr::new("diff"), &dtd, &dtd],
    ] {
        run(words).exits(0);
    }
    assert!(folder.join(&other).is_file() && folder.join(&code).is_file());
    run(&[OsStr::new("verify"), &name(b"none\xff.mtf")]).exits(1).says("none\u{fffd}.mtf: No such file");
}
