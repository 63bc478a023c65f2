//! `hatf export`: exports heap traces as tables for other tools.

mod work;

use std::path::PathBuf;

use super::symbols::Symbols;

/// Export traces as Parquet, Arrow, CSV or SQLite tables.
///
/// The tables are objects (one row per object), sites (one row per stack, with its allocations), stacks (the frames of
/// each stack), lifetimes (a histogram of object lifetimes per stack, in powers of two), timeline (live bytes over
/// time, and the peak), marks, processes and traces. Each table has a column `trace` that contains the path of the
/// trace.
///
/// Each table is written to DIR/TABLE.FORMAT and contains the rows of all traces. With --partition, each trace gets its
/// own file, DIR/TABLE/build=BUILD-ID/day=YYYY-MM-DD/NAME.FORMAT; query engines read these files as one table with the
/// columns `build` and `day`. An SQLite database is a single file with all tables. Naming a directory exports all
/// traces in it, such as the process traces of a recording.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf export perl.mtf --to parquet -o tables
  hatf export perl.mtf --tables sites,stacks --resolve --to csv -o tables
  hatf export *.mtf --tables sites,stacks --partition --to parquet -o fleet
  duckdb -c \"select sum(leaked_bytes) from 'fleet/sites/*/*/*.parquet'\"")]
pub(crate) struct Export {
    /// Traces, in any format that `hatf convert` reads, or directories of traces.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,

    /// Format of the tables.
    #[arg(long, value_name = "FORMAT", value_parser = work::forms())]
    to: String,

    /// Output directory, which must be new or empty, or the SQLite database file.
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,

    /// Tables to export.
    #[arg(
        long,
        value_name = "TABLES",
        value_delimiter = ',',
        default_value = "objects,sites,stacks,lifetimes,timeline,marks,processes,traces"
    )]
    tables: Vec<String>,

    /// Write separate files for each trace, arranged by the build ID of its program and the day of its recording.
    #[arg(long)]
    partition: bool,

    /// Look up functions that the trace does not name, using debug information on this machine.
    #[arg(long, alias = "symbolize")]
    resolve: bool,

    #[command(flatten)]
    symbols: Symbols,

    /// Number of worker threads; the result does not depend on it. With 2 or more, one thread decodes while another
    /// follows the heap [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
}

pub(crate) use work::run;
