//! `hatf export`: tables of heap traces for other tools.

mod work;

use std::path::PathBuf;

use super::symbols::Symbols;

/// Write tables of traces: Parquet, Arrow, CSV, SQLite.
///
/// Tables are objects (one row an object), sites (one row a stack, with what it allocated), stacks (their frames), lifetimes (of the objects of a
/// stack, by powers of two), timeline (live bytes over time, and the peak), marks, processes and traces. Each has a column `trace` with the path of the trace.
///
/// A table is FOLDER/TABLE.FORM, with the rows of all traces. With --partition each trace has a file of its own,
/// FOLDER/TABLE/build=BUILD-ID/day=YYYY-MM-DD/NAME.FORM, which engines read as one table with the columns `build` and `day`.
/// A database of SQLite is one file with all tables. A folder stands for the traces in it, such as that of the processes of a recording.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf export perl.mtf --to parquet -o tables
  hatf export perl.mtf --tables sites,stacks --resolve --to csv -o tables
  hatf export *.mtf --tables sites,stacks --partition --to parquet -o fleet
  duckdb -c \"select sum(leaked_bytes) from 'fleet/sites/*/*/*.parquet'\"")]
pub(crate) struct Export {
    /// The traces, in any form that hatf convert reads, or folders of traces.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,

    /// The form of the tables.
    #[arg(long, value_name = "FORM", value_parser = work::forms())]
    to: String,

    /// The folder of the tables: a new one, or one that is empty; the file of a database.
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,

    /// Only these tables.
    #[arg(
        long,
        value_name = "TABLES",
        value_delimiter = ',',
        default_value = "objects,sites,stacks,lifetimes,timeline,marks,processes,traces"
    )]
    tables: Vec<String>,

    /// Write files for each trace, by the build id of its program and the day of its recording.
    #[arg(long)]
    partition: bool,

    /// Look up functions that the trace does not name, in the debug information of this machine.
    #[arg(long, alias = "symbolize")]
    resolve: bool,

    #[command(flatten)]
    symbols: Symbols,

    /// Threads that work at once; the result is the same: 1, or one that decodes beside one that follows the heap [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
}

pub(crate) use work::run;
