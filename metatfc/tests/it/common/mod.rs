//! Runs `metatfc`.

use metatf::container::WriteOptions;
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf_test::{Folder, Run, limited, run_with};
use std::path::Path;
use std::process::Command;

/// The unknown stack, to which offset 0 refers in heap traces.
pub(crate) const NO_STACK: &str =
    "{\"@section\":\"stacks\",\"@record\":\"stack_item\",\"depth\":0,\"frame\":[],\"@shared\":true}\n";

/// Runs the command in a directory, with `METATF_PATH` set to this directory.
pub(crate) fn metatfc(folder: &Path, args: &[&str]) -> Run {
    run(folder, args, b"")
}

/// Returns the command, which may take one minute of processor time.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = limited(env!("CARGO_BIN_EXE_metatfc"), 60);
    command.args(args).current_dir(folder).env("METATF_PATH", folder).env_remove("NO_COLOR");
    command
}

/// Runs the command with standard input.
pub(crate) fn run(folder: &Path, args: &[&str], input: &[u8]) -> Run {
    let mut command = command(folder, args);
    let run = run_with(&mut command, input);
    assert!((0..=4).contains(&run.status), "{args:?} ended with {}: {}", run.status, run.err);
    run
}

/// Writes a trace from JSON lines with the library. Unlike `convert`, this accepts dangling references.
pub(crate) fn written(folder: &Folder, name: &str, dtd: &str, lines: &str, version: u8) {
    let schema = Schema::parse("events.dtd", dtd.as_bytes()).expect("a DTD");
    let options = WriteOptions { version, dtd_url: "events.dtd".to_owned(), ..WriteOptions::default() };
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &options).expect("a writer");
    let mut owned = OwnedRecord::default();
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let read = schema.read_json(line.as_bytes(), &mut owned).expect(line);
        writer.write(&read, &owned).expect(line);
    }
    folder.write(name, writer.finish().expect("a trace").into_inner());
}
