//! `import`: writes a trace from tables.

use crate::pack::{PROFILES, PackArgs};
use std::path::PathBuf;

const MORE: &str = "\
Each file is named after its record type: malloc.parquet contains records of type
`malloc`. The columns have the same names as in the output of `metatfc export`;
columns for constants, counts and lengths may be omitted. The rows of all files
are written in the order of their column @number. A column without a matching
field in the DTD is an error.

The output file is created only when it is complete.

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
