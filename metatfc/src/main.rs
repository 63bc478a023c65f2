//! `metatfc`, the Meta-TF command line: creates, checks and formats DTDs, and reads, writes and verifies traces of any
//! DTD.
//!
//! Each command has its own file. Of the shared modules, [`dtd`] finds the DTD of a trace, [`input`] opens files and
//! standard input, [`output`] writes output, and [`failure`] defines failures and exit codes.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod by_name;
mod check;
mod compat;
mod convert;
mod diff;
#[cfg(feature = "doc")]
mod doc;
mod dtd;
mod dump;
mod failure;
mod fields;
mod fmt;
mod r#gen;
mod input;
mod labels;
#[cfg(feature = "lint")]
mod lint;
#[cfg(feature = "lsp")]
mod lsp;
mod new;
mod options;
mod output;
mod pack;
mod raw;
mod references;
mod show;
mod sort;
mod spans;
mod sql;
mod stat;
mod target;
#[cfg(target_os = "linux")]
mod telemetry;
mod verify;

use clap::{Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  metatfc new spans                          create spans.dtd to start from
  metatfc check spans.dtd                    report every mistake in a DTD
  metatfc check --trace out.mtf spans.dtd    suggest improvements and savings
  metatfc gen spans.dtd -o spans.rs          generate a Rust reader and writer
  metatfc convert --dtd spans.dtd in.jsonl out.mtf
  metatfc convert out.mtf small.mtf          store the same records in fewer bytes
  metatfc convert out.mtf tables --to parquet
  metatfc sort out.mtf -o sorted.mtf         sort by time
  metatfc sort a.mtf b.mtf -o both.mtf       sort the records of several traces into one
  metatfc dump out.mtf | head                print a trace, one line per record
  metatfc dump --format jsonl --where 'size > 4096' out.mtf
  metatfc verify out.mtf                     check that a trace is intact
  metatfc diff out.mtf other.mtf             compare the values of two traces
  metatfc diff v1.dtd v2.dtd                 is the new version compatible?

A file named `-` is standard input or output. If a trace does not embed its DTD,
metatfc searches these places in order:
  1. the file or built-in DTD given by --dtd
  2. the built-in DTDs HATF10, HATF10-split, heap, heap-split, heap-values, mps,
     mps-split, pcap, pcapng, perf and xray
  3. the files and directories in METATF_PATH

Each command may use up to half of the available memory, and stops with an error
message if it requires more. To change this limit, use --max-memory SIZE, such as
--max-memory 8GiB.

Exit status:
  0  success
  1  a file is missing, corrupt or invalid
  2  usage error";

/// The Meta-TF command line.
#[derive(Parser)]
#[command(version, about, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    memory: metatf_cli::MemoryLimit,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(new::Args),
    Check(check::Args),
    Fmt(fmt::Args),
    Gen(r#gen::Args),
    Show(show::Args),
    Dump(Box<dump::Args>),
    Convert(Box<convert::Args>),
    #[cfg(feature = "export")]
    #[command(name = "__import-child", hide = true)]
    ImportChild(convert::ChildArgs),
    Diff(diff::Args),
    Sort(Box<sort::Args>),
    Sql(sql::Args),
    Stat(stat::Args),
    Verify(verify::Args),
    #[cfg(target_os = "linux")]
    Telemetry(telemetry::Args),
    #[cfg(feature = "lsp")]
    Lsp(lsp::Args),
}

#[global_allocator]
static MEMORY: metatf_cli::CountedMemory = metatf_cli::CountedMemory;

/// Returns the command to suggest if the user specifies a file without a command.
fn for_file(path: &Path) -> String {
    format!("metatfc {} {}", if dtd::has_extension(path) { "check" } else { "dump" }, path.display())
}

fn main() -> ExitCode {
    #[cfg(unix)]
    metatf_cli::report_file_signals(failure::COMMAND);
    let Cli { memory, command } = metatf_cli::parse(for_file);
    memory.set(failure::COMMAND);
    let result = match command {
        Command::New(args) => new::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Fmt(args) => fmt::run(&args),
        Command::Gen(args) => r#gen::run(&args),
        #[cfg(feature = "doc")]
        Command::Show(ref args @ show::Args { doc: Some(ref folder), .. }) => doc::run(args, folder),
        Command::Show(args) => show::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Convert(args) => convert::run(&args, memory),
        #[cfg(feature = "export")]
        Command::ImportChild(args) => match Cli::parse_from(args.line()).command {
            Command::Convert(args) => convert::serve(&args),
            _ => failure::usage("__import-child serves `metatfc convert`"),
        },
        Command::Diff(args) => diff::run(&args),
        Command::Sort(args) => sort::run(&args),
        Command::Sql(args) => sql::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Verify(args) => verify::run(&args),
        #[cfg(target_os = "linux")]
        Command::Telemetry(args) => telemetry::run(&args),
        #[cfg(feature = "lsp")]
        Command::Lsp(args) => lsp::run(&args),
    };
    failure::exit_code(result)
}
