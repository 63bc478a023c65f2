//! Compares the cost of a telemetry event with other event recorders in one table: `--help` lists the requirements.
//!
//! Each round measures each row once, in its own process or in a process shared with similar rows, so that the compared
//! rows see the same machine state. A process prints its measurements as lines (`row`), and `main` builds the table.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    reason = "the casts are of event counts, and a failure ends the measurement"
)]

mod built;
mod lttng;
mod measure;
mod ours;
mod peers;
mod rates;
mod row;
mod shared;
mod table;
mod tracy;

use built::{Built, run};
use std::path::Path;
use std::process::Command;
use table::Table;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Events per measurement.
const EVENTS: u64 = 2_000_000;

const HELP: &str = "\
Compares the cost of a telemetry event with other event recorders in Markdown tables

cargo run --release -p metatf-bench --no-default-features --features telemetry --bin telemetry -- [OPTIONS]

  --rounds N  Measure each row this many times, one row after the other [default: 9]
  --rows TEXT Measure only groups of rows whose name contains TEXT:
              ours, file, shared, peers, c, lttng, tracy, rates

With nine rounds, this takes about three minutes after the builds. The following rows
have requirements, and are marked if these are missing:
  C header         a C compiler, `cc`
  LTTng-UST        `cc`, and Debian's packages liblttng-ust-dev, lttng-tools, babeltrace2
  Tracy            a C++ compiler; cargo builds the client of Tracy 0.11.0
  Tracy, to a file `tracy-capture` or `iree-tracy-capture` of that version in PATH, or its
                   path in TRACY_CAPTURE; the Python package iree-runtime 20241104.1068 has it

The machine should be idle. Nanoseconds are processor time; rates use the wall clock
and need two free cores.
";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut rounds, mut rows) = (9, "");
    let mut rest = arguments.as_slice();
    loop {
        rest = match rest {
            [] => break,
            ["measure", what, folder, more @ ..] => return measure_here(what, Path::new(folder), more),
            ["--rounds", number, rest @ ..] => {
                rounds = number.parse()?;
                rest
            }
            ["--rows", text, rest @ ..] => {
                rows = text;
                rest
            }
            ["--help" | "-h", ..] => {
                print!("{HELP}");
                return Ok(());
            }
            [other, ..] => return Err(format!("unknown option `{other}`; see --help").into()),
        };
    }
    tables(rounds.max(1), rows)
}

/// Measures all rows this many times.
fn tables(rounds: usize, rows: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let wanted = |group: &str| group.contains(rows);
    let mut built = Built::new(folder, &wanted)?;
    let lttng = built.lttng.as_ref().ok().map(|program| lttng::Daemon::start(folder, program)).transpose()?;
    let mut table = Table::default();
    let before = table::load();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        let mut add = |lines: String| table.add(&lines);
        for group in ["ours", "file", "peers"].into_iter().filter(|group| wanted(group)) {
            add(run(&mut itself(group, folder)?)?)?;
        }
        if let Ok(library) = &built.shared {
            add(run(shared::environment(itself("shared", folder)?.arg(library), folder))?)?;
        }
        if let Ok(program) = &built.c {
            add(run(Command::new(program).arg(folder.join("c.mtf")))?)?;
        }
        if let Some(lttng) = &lttng {
            lttng.measure(&mut add)?;
        }
        if let Ok(program) = &built.tracy {
            add(tracy::alone(program)?)?;
            if let Ok(capture) = &built.capture {
                match tracy::to_file(program, capture, folder) {
                    Ok(rows) => add(rows)?,
                    Err(error) => built.capture = Err(error.to_string()),
                }
            }
        }
    }
    let missing: Vec<_> = built.missing().collect();
    if !table.is_empty() || !missing.is_empty() {
        print!("{}", table.text());
    }
    for (name, reason) in missing {
        println!("| {name} | {reason} | | | | |");
    }
    if wanted("rates") {
        print!("\n{}", rates::text(&|more| run(itself("rate", folder)?.args(more)), rounds)?);
    }
    println!("\n{}", table::machine(rounds, &before));
    Ok(())
}

/// Returns a command that measures a group in a separate process.
fn itself(group: &str, folder: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["measure", group]).arg(folder);
    Ok(command)
}

/// Measures a group in this process.
fn measure_here(what: &str, folder: &Path, more: &[&str]) -> Result<()> {
    match (what, more) {
        ("ours", _) => ours::recorder(folder),
        ("file", _) => ours::files(folder),
        ("filed", [policy, ..]) => ours::filed(folder, policy),
        ("churn", [policy, ..]) => ours::churn(folder, policy),
        ("shared", [library, ..]) => shared::measure(Path::new(library)),
        ("peers", _) => peers::all(folder),
        ("peer", [name, ..]) => peers::one(name, folder),
        ("rate", _) => rates::measure(folder, more),
        _ => Err(format!("unknown measurement `{what}`").into()),
    }
}
