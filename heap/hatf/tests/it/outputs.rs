//! Output names: not UTF-8, in directories or links of other users, or taken or removed during the recording.
#![expect(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, chown, lchown, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::hatf;
use metatf_test::{Disk, Folder, PATIENCE, run, skip};

/// A user that owns no files.
const NOBODY: Option<u32> = Some(65_534);

/// Starts a recording of a program that waits for the end of its input. The recording runs when this returns.
fn start(folder: &Folder, trace: &str) -> Child {
    let id = || fs::metadata(folder.join(trace)).map(|metadata| metadata.ino()).ok();
    let before = id();
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "-o", trace, "--", "/bin/sh", "-c", "echo; read line; exit 7"])
        .current_dir(&**folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    recorder.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    // The program may start before the trace has its name.
    let begun = Instant::now();
    while id().is_none() || id() == before {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    recorder
}

fn end(mut recorder: Child) -> (Output, String) {
    drop(recorder.stdin.take());
    let output = recorder.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    (output, said)
}

/// `hatf record` refuses a process directory that is a link or belongs to another user, and replaces links in the
/// user's own.
#[test]
fn a_folder_of_processes_of_another_user() {
    let folder = Folder::new();
    let processes = folder.join("z.processes");
    fs::create_dir(&processes).unwrap();
    fs::write(folder.join("victim"), "secret").unwrap();
    for name in ["2-true.mtf", "2-sh.mtf", "processes.jsonl"] {
        symlink(folder.join("victim"), processes.join(name)).unwrap();
    }
    // Events missing from a trace stay in a spool, which is removed with the directory.
    let (trace, place) = (folder.path("z.mtf"), folder.path(""));
    let record = || hatf(["record", "--spool", &place, "-o", &trace, "--", "/bin/sh", "-c", "/bin/true; :"]);
    if chown(&processes, NOBODY, NOBODY).is_ok() {
        record().exits(125).says("z.processes: it belongs to another user");
        assert_eq!(folder.read("victim"), b"secret");
        chown(&processes, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    } else {
        skip("only the superuser can give a folder to another user");
    }
    // In the user's own directory, the links are replaced.
    record().exits(0);
    assert_eq!(folder.read("victim"), b"secret");
    assert!(!processes.join("2-true.mtf").is_symlink() && !processes.join("processes.jsonl").is_symlink());
    // A link in place of the directory is not followed.
    let elsewhere = folder.join("elsewhere");
    fs::rename(&processes, &elsewhere).unwrap();
    symlink(&elsewhere, &processes).unwrap();
    let before = fs::read(elsewhere.join("processes.jsonl")).unwrap();
    record().exits(125).says("z.processes: it is a link");
    assert_eq!(fs::read(elsewhere.join("processes.jsonl")).unwrap(), before);
}

/// Derived output names are refused if they are links created by another user.
#[test]
fn derived_names_that_are_links_of_another_user() {
    let folder = Folder::new();
    let trace = folder.path("z.mtf");
    hatf(["record", "-q", "--stacks", "-o", &trace, "--", "true"]).exits(0);
    fs::write(folder.join("victim"), "secret").unwrap();
    let link = folder.join("z.prof.mtf");
    symlink(folder.join("victim"), &link).unwrap();
    if lchown(&link, NOBODY, None).is_err() {
        return skip("only the superuser can give a link to another user");
    }
    hatf(["profile", &trace]).exits(1).says("z.prof.mtf is a link created by another user");
    assert_eq!(folder.read("victim"), b"secret");
}

#[test]
fn a_folder_whose_name_is_not_utf_8() {
    let folder = Folder::new();
    let strange = folder.join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&strange).unwrap();
    let hatf =
        |arguments: &[&OsStr]| run(Command::new(env!("CARGO_BIN_EXE_hatf")).current_dir(&strange).args(arguments));
    let text = |arguments: &[&str]| hatf(&arguments.iter().map(OsStr::new).collect::<Vec<_>>());
    text(&["record", "-q", "-o", "a.mtf", "--", "/bin/sh", "-c", "/bin/true; :"]).exits(0);
    text(&["processes", "a.mtf"]).exits(0).prints("2 processes");
    text(&["run", "-o", "b.mtf", "--", "true"]).exits(0);
    let name = OsStr::from_bytes(b"t\xfe.mtf");
    let record = ["record", "-q", "-o"].map(OsStr::new);
    let program = ["--", "/bin/sh", "-c", "/bin/true; :"].map(OsStr::new);
    hatf(&[&record[..], &[name], &program[..]].concat()).exits(0);
    hatf(&["processes".as_ref(), name]).exits(0).prints("2 processes");
    hatf(&["processes".as_ref(), name, "--format".as_ref(), "json".as_ref()]).exits(0);
    // An abandoned spool records such a trace name as well.
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .current_dir(&strange)
        .args(["record", "-q", "--spool", ".", "-o"])
        .arg(OsStr::from_bytes(b"u\xfe.mtf"))
        .args(["--", "/bin/sh", "-c", "echo; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    recorder.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let mut output = recorder.stdout.take().unwrap();
    let input = recorder.stdin.take();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    drop(input);
    output.read_to_end(&mut Vec::new()).unwrap();
    let entries = fs::read_dir(&strange).unwrap().map(|entry| entry.unwrap().file_name());
    let mut entries = entries;
    let spool = entries.find(|name| name.as_bytes().starts_with(b"hatf-spool-")).unwrap();
    hatf(&["recover".as_ref(), "--keep".as_ref(), &spool]).exits(0).says(", 0 lost");
    hatf(&["recover".as_ref(), &spool, "-o".as_ref(), OsStr::from_bytes(b"v\xfe.mtf")]).exits(0).says(", 0 lost");
}

/// If the trace loses its name while the program runs, it gets another name, which a message reports.
#[test]
fn a_trace_that_is_removed_or_renamed_meanwhile() {
    let folder = Folder::new();
    let is_whole = |path: &Path| {
        hatf(["report".as_ref(), path.as_os_str()]).exits(0).prints("total heap usage");
    };
    let recorder = start(&folder, "x.mtf");
    fs::remove_file(folder.join("x.mtf")).unwrap();
    let (output, said) = end(recorder);
    assert!(output.status.code() == Some(7) && said.contains("the trace is in x.mtf"), "{said}");
    is_whole(&folder.join("x.mtf"));
    let recorder = start(&folder, "x.mtf");
    fs::rename(folder.join("x.mtf"), folder.join("y.mtf")).unwrap();
    fs::write(folder.join("x.mtf"), "of another").unwrap();
    let (output, said) = end(recorder);
    assert!(output.status.code() == Some(7) && said.contains("the trace is in x.1.mtf"), "{said}");
    is_whole(&folder.join("x.1.mtf"));
    assert_eq!(folder.read("x.mtf"), b"of another");
    fs::remove_file(folder.join("x.1.mtf")).unwrap();
    let recorder = start(&folder, "x.mtf");
    fs::write(folder.join("other"), "of another").unwrap();
    fs::rename(folder.join("other"), folder.join("x.mtf")).unwrap();
    let (output, said) = end(recorder);
    assert!(output.status.code() == Some(7) && said.contains("the trace is in x.1.mtf"), "{said}");
    is_whole(&folder.join("x.1.mtf"));
    fs::create_dir(folder.join("d")).unwrap();
    let recorder = start(&folder, "d/z.mtf");
    fs::remove_dir_all(folder.join("d")).unwrap();
    let (output, said) = end(recorder);
    assert!(output.status.code() == Some(7) && said.contains("the trace is in z.mtf"), "{said}");
    is_whole(&folder.join("z.mtf"));
}

/// If there is no space for temporary files, the message names their directory, not the input.
#[test]
fn a_full_folder_of_temporary_files() {
    let folder = Folder::new();
    let Some(full) = Disk::new("4k") else { return skip("this user cannot mount a file system") };
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../hatf-trace/tests/data/gawk.raw32.zst");
    for command in [&["replay", trace][..], &["convert", "--to", "malloclab", trace, &folder.path("out.rep")]] {
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
        let run = run(hatf.args(command).env("TMPDIR", full.as_os_str())).exits(1);
        let message = format!("a temporary file in {}: No space left on device (os error 28)", full.display());
        assert_eq!(run.err, format!("hatf: {message}\n"));
    }
    assert!(!folder.join("out.rep").exists());
}

/// `-o` after the program is an argument of the program, but a message warns if it names a trace.
#[test]
fn an_option_after_the_program() {
    let folder = Folder::new();
    for after in [&["-o", "x.mtf"][..], &["--output=x.mtf"], &["-ox.mtf"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
        command.current_dir(&*folder).args(["record", "-o", "true.mtf", "true"]).args(after);
        run(&mut command).exits(0).says("`-o x.mtf` comes after the program").says("the trace is written to true.mtf");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    command.current_dir(&*folder).args(["record", "-o", "true.mtf", "true", "-o", "x.o"]);
    let run = run(&mut command).exits(0);
    assert!(!run.err.contains("comes after the program"), "{}", run.err);
}
