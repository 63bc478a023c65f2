//! `import`: writes a trace from tables.

use crate::pack::{PROFILES, PackArgs};
use std::path::PathBuf;

const MORE: &str = "\
A file holds the table of its name: malloc.parquet has records `malloc`. Its
columns are fields, named as `metatfc export` names them; it may lack those of
constants, counts and lengths. Rows of several files are written in the order of
their column @number. What the DTD has no place for is an error.

The output file appears when it is complete.

Examples:
  metatfc export T.mtf -o tables --to parquet
  metatfc import --dtd D.dtd tables/*.parquet -o copy.mtf
  metatfc import --dtd D.dtd --record malloc all.csv -o some.mtf";

/// Write a trace from tables: Parquet, Arrow, CSV
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The DTD of the trace (a file, or the name of a built-in one)
    #[arg(long, value_name = "FILE")]
    dtd: PathBuf,
    /// The tables
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The trace; `-` is standard output
    #[arg(long, short, value_name = "TRACE")]
    output: PathBuf,
    /// The table that all files hold, whatever their names
    #[arg(long, value_name = "NAME")]
    record: Option<String>,
    #[command(flatten)]
    pack: PackArgs,
}

mod child;

pub(crate) use child::{ChildArgs, run, serve};
