//! `metatfc`, the Meta-TF command line: makes, checks and formats DTDs, and reads, writes and checks traces of any DTD.
//!
//! One file per command. What they share: [`dtd`] finds the DTD of a trace, [`input`] opens files and standard input,
//! [`output`] writes, [`failure`] ends a command.

mod check;
mod completions;
mod diff;
mod dtd;
mod dump;
mod encode;
mod failure;
mod fields;
mod fmt;
mod r#gen;
mod input;
mod new;
mod options;
mod output;
mod pack;
mod recode;
mod show;
mod stat;
mod target;
mod verify;

use clap::{CommandFactory as _, Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  metatfc new spans                          a DTD to start from: spans.dtd
  metatfc check spans.dtd                    every mistake in it, with its place
  metatfc gen spans.dtd -o spans.rs          a Rust reader and writer for it
  metatfc encode --dtd spans.dtd in.jsonl out.mtf
  metatfc recode out.mtf small.mtf           the same records, encoded smaller
  metatfc dump out.mtf | head                what a trace holds, a line a record
  metatfc dump --format jsonl --where 'size > 4096' out.mtf
  metatfc verify out.mtf                     is it whole?
  metatfc diff out.mtf other.mtf             do they hold the same values?

`-` stands for standard input or output wherever a file is named. Where a
trace does not carry its DTD, it is looked for in the order: --dtd, the
built-in DTDs (HATF10, HATF10-split, heap, heap-split, heap-values), the files and
folders on METATF_PATH.

Exit status: 0 all is well, 1 something is wrong with a DTD or a trace, 2 the
command line is wrong.";

/// Meta-TF: binary trace formats, declared in a page of text.
#[derive(Parser)]
#[command(version, about, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
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
    Encode(encode::Args),
    Diff(diff::Args),
    Recode(Box<recode::Args>),
    Stat(stat::Args),
    Verify(verify::Args),
    Completions(completions::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::New(args) => new::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Fmt(args) => fmt::run(&args),
        Command::Gen(args) => r#gen::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Encode(args) => encode::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Recode(args) => recode::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Completions(args) => completions::run(&args, &mut Cli::command()),
    };
    failure::exit_code(result)
}
