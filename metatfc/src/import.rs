//! `import`: writes a trace from tables.

use crate::pack::{PROFILES, PackArgs};
use std::path::PathBuf;

const MORE: &str = "\
Each file contains the table of the same name: malloc.parquet has records of type
`malloc`. Its columns are the fields, named as by `metatfc export`; constants,
counts and lengths may be missing. Rows of several files are written in the order
of their column @number. It is an error if the DTD has no field for a column.

The output file appears when it is complete.

Examples:
  metatfc export T.mtf -o tables --to parquet
  metatfc import --dtd D.dtd tables/*.parquet -o copy.mtf
  metatfc import --dtd D.dtd --record malloc all.csv -o some.mtf";

/// Write a trace from Parquet, Arrow or CSV tables
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The DTD of the trace (a file or the name of a built-in DTD)
    #[arg(long, value_name = "FILE")]
    dtd: PathBuf,
    /// The tables
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The trace; `-` writes to standard output
    #[arg(long, short, value_name = "TRACE")]
    output: PathBuf,
    /// Record type of all files, regardless of their names
    #[arg(long, value_name = "NAME")]
    record: Option<String>,
    #[command(flatten)]
    pack: PackArgs,
}

mod child;

pub(crate) use child::{ChildArgs, run, serve};
