//! The instructions per record of the hot loops stay within 5% of those in `docs/performance.md`. They are counted by
//! callgrind in a release build: `cargo test --release -p metatf-bench --no-default-features counts::`.
//! `METATF_BLESS=1` writes the new counts to the page.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

/// The lines of the page that enclose the counts.
const BEGIN: &str = "<!-- begin: instructions -->\n";
const END: &str = "<!-- end: instructions -->";

/// Events of each program in a short and a long run. Their difference excludes the cost of a trace before its first
/// record.
const SHORT: usize = 1000;
const LONG: usize = 4000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[test]
fn instructions_a_record() {
    if cfg!(debug_assertions) {
        eprintln!("SKIPPED: instructions are counted in a release build (.ci/run counts)");
        return;
    }
    if !Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        metatf_test::skip("valgrind is not installed");
        return;
    }
    let counted = count().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page should have a section for the counts");
    let (table, after) = rest.split_once(END).expect("the section should have an end");
    if std::env::var_os("METATF_BLESS").is_some() {
        let mut table = String::from("\n| loop | instructions a record |\n| --- | ---: |\n");
        table.extend(counted.iter().map(|(name, count)| format!("| {name} | {count:.1} |\n")));
        std::fs::write(&path, format!("{before}{BEGIN}{table}\n{END}{after}")).unwrap();
        return;
    }
    let known: BTreeMap<&str, f64> = table.lines().filter_map(row).collect();
    let mut wrong = Vec::new();
    for (name, count) in &counted {
        match known.get(&**name) {
            None => wrong.push(format!("{name}: {count:.1} instructions a record, missing on the page")),
            Some(known) if (count / known - 1.0).abs() > 0.05 => {
                wrong.push(format!("{name}: {count:.1} instructions a record, but {known:.1} on the page"));
            }
            Some(_) => {}
        }
    }
    let gone = known.keys().filter(|name| counted.iter().all(|(known, _)| known != *name));
    wrong.extend(gone.map(|name| format!("{name}: on the page, but there is no such loop")));
    assert!(wrong.is_empty(), "{}\nIf the change is intended, METATF_BLESS=1 updates the page.", wrong.join("\n"));
}

/// Returns the name and the count in a line of the page's table.
fn row(line: &str) -> Option<(&str, f64)> {
    let (name, count) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
    Some((name, count.parse().ok()?))
}

/// Counts all loops in order.
fn count() -> Result<Vec<(String, f64)>> {
    let (short, long) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let records = |directory: &Path, events: usize| -> Result<f64> {
        let directory = directory.to_str().ok_or("a directory's name")?;
        Ok(output(loops().args(["--make", directory, &events.to_string()]))?.0.trim().parse()?)
    };
    let more = records(long.path(), LONG)? - records(short.path(), SHORT)?;
    let list = output(loops().arg("--list"))?.0;
    let mut counts = Vec::new();
    for name in list.lines() {
        let more_instructions = instructions(name, long.path())? - instructions(name, short.path())?;
        counts.push((name.to_owned(), more_instructions / more));
    }
    Ok(counts)
}

fn loops() -> Command {
    Command::new(env!("CARGO_BIN_EXE_counts"))
}

fn instructions(name: &str, directory: &Path) -> Result<f64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted*"]);
    let (_, log) = output(valgrind.arg(env!("CARGO_BIN_EXE_counts")).arg(name).arg(directory))?;
    let collected = log.lines().find_map(|line| line.split_once("Collected :"));
    let count: f64 = collected.ok_or("the output of callgrind has no total")?.1.trim().parse()?;
    if count > 0.0 { Ok(count) } else { Err(format!("{name}: nothing was collected").into()) }
}

/// Returns a program's standard output and standard error.
fn output(command: &mut Command) -> Result<(String, String)> {
    let output = command.output()?;
    let error = String::from_utf8(output.stderr)?;
    if !output.status.success() {
        return Err(format!("{command:?}: {error}").into());
    }
    Ok((String::from_utf8(output.stdout)?, error))
}
