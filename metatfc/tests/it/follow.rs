//! `dump --follow` prints a trace while it is being written.
#![expect(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::common::{metatfc, run};
use metatf_test::Folder;

const DTD: &str = "tag.width = 1; section s 1 { r: (tag, x) { tag.value = 4; x.width = 8; x.interpretation = none; } }";

/// Creates a trace of many chunks. Returns its bytes and the output of `dump`.
fn trace(folder: &Folder) -> (Vec<u8>, String) {
    fs::write(folder.join("a.dtd"), DTD).unwrap();
    let record =
        |x: u64| format!("{{\"@section\":\"s\",\"@record\":\"r\",\"x\":{}}}\n", x.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let lines: String = (0..60_000).map(record).collect();
    run(
        folder,
        &["convert", "--dtd", "a.dtd", "--codec", "stored", "--chunk", "65536", "-", "a.mtf"],
        lines.as_bytes(),
    )
    .exits(0);
    let text = metatfc(folder, &["dump", "a.mtf"]).exits(0).text();
    (fs::read(folder.join("a.mtf")).unwrap(), text)
}

fn follow(folder: &Folder) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metatfc"));
    command.args(["dump", "--follow", "growing.mtf"]).current_dir(&**folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

#[test]
fn records_come_as_they_are_written() {
    let folder = Folder::new();
    let (bytes, text) = trace(&folder);
    let mut file = File::create(folder.join("growing.mtf")).unwrap();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    file.write_all(first).unwrap();
    let (mut child, mut out) = follow(&folder);
    // The records of complete chunks are printed before the rest is written.
    let mut seen = String::new();
    while seen.lines().count() < 10_000 {
        assert_ne!(out.read_line(&mut seen).unwrap(), 0);
    }
    for piece in rest.chunks(rest.len() / 5) {
        std::thread::sleep(Duration::from_millis(60));
        assert!(child.try_wait().unwrap().is_none());
        file.write_all(piece).unwrap();
    }
    while out.read_line(&mut seen).unwrap() > 0 {}
    assert!(child.wait().unwrap().success());
    assert!(seen == text);
}

#[test]
fn what_ends_it() {
    let folder = Folder::new();
    let (bytes, text) = trace(&folder);
    // Following a complete trace prints it and ends.
    fs::write(folder.join("growing.mtf"), &bytes).unwrap();
    assert!(metatfc(&folder, &["dump", "--follow", "growing.mtf"]).exits(0).text() == text);
    // A removed file cannot grow, so following it ends.
    fs::write(folder.join("growing.mtf"), &bytes[..bytes.len() / 2]).unwrap();
    let (mut child, mut out) = follow(&folder);
    out.read_line(&mut String::new()).unwrap();
    fs::remove_file(folder.join("growing.mtf")).unwrap();
    while out.read_line(&mut String::new()).unwrap() > 0 {}
    // The file ends inside a chunk.
    assert_eq!(child.wait().unwrap().code(), Some(1));
    metatfc(&folder, &["dump", "--follow", "-"]).exits(2).says("--follow needs a file");
    fs::write(folder.join("old.mtf"), []).unwrap();
    run(&folder, &["convert", "--dtd", "a.dtd", "--version", "0", "-", "old.mtf"], b"").exits(0);
    metatfc(&folder, &["dump", "--follow", "old.mtf"]).exits(2).says("version 0");
}
