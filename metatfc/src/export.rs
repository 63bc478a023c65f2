//! `export`: writes the records of traces as tables for other tools.

mod work;

use crate::dtd::DtdArgs;
use crate::options::ThreadArgs;
use std::path::PathBuf;

const MORE: &str = "\
Each record type becomes a table, with a column for each field, named as in CSV
and JSON lines. The column @number contains the number of data records before the
row. Named values, flags, dates and text are written in readable form. The export
fails if an unsigned number requires more than 63 bits, text is not UTF-8, or a
`bool` is neither 0 nor 1. With --stored, values are written as stored, and every
value is accepted.

If the DTD defines spans (see `metatfc spans --help`), --record spans writes a row
for each span, with its times, its parent and its fields, and --record events a
row for each other record that has a time. These tables are written only on
request, as they repeat the content of other tables.

Conditions (--where) have the syntax described in `metatfc dump --help`. They can
refer to columns, and to fields of structures in a column. Every exported table
must contain all fields of the condition; use --record to select such tables.

With a single trace, each table is written to DIR/RECORD.FORMAT. With several
traces, tables are written to DIR/RECORD/trace=NAME/RECORD.FORMAT, which query
engines read as one table with a column `trace`. Empty tables are not written. To
write a file instead of a directory, select one record (--record); the rows of
several traces are concatenated. An SQLite database is a single file with all
tables; with several traces, its tables contain a column `trace`.

Examples:
  metatfc export T.mtf -o tables --to parquet
  metatfc export T.mtf --record malloc --columns size,address -o malloc.csv
  metatfc export T.mtf --record malloc --where 'size >= 4096 and thread = 2' -o big.csv
  metatfc export T.mtf --record spans -o spans.parquet
  duckdb -c \"select count(*) from 'tables/malloc.parquet'\"";

/// Export traces as Parquet, Arrow, CSV or SQLite tables
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The traces
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// The directory for the tables, or the file of a single table or a database
    #[arg(long, short, value_name = "PATH")]
    output: PathBuf,
    /// The table format [default: the extension of the output file]
    #[arg(long, value_name = "FORM", value_parser = work::forms())]
    to: Option<String>,
    /// Write only the table with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    record: Vec<String>,
    /// Write only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Write only rows that match this condition, such as 'size > 4096'
    #[arg(long = "where", value_name = "CONDITION")]
    filter: Option<String>,
    /// Write numbers and bytes as stored, instead of names, flags, dates, booleans and text
    #[arg(long)]
    stored: bool,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub(crate) use work::run;
