//! `export`: writes the records of traces as tables for other tools.

mod work;

use crate::dtd::DtdArgs;
use crate::options::ThreadArgs;
use std::path::PathBuf;

const MORE: &str = "\
Each type of record is a table, with a column for each field, named as in CSV and
JSON lines; the column @number says how many data records stand before it. Names
of values, flags, dates and texts are what they read as. A number of a field
without a sign that is over 63 bits, text that is not UTF-8, and a `bool` that is
neither 0 nor 1 are errors; --stored gives what the trace stores in their place,
and refuses nothing.

If the DTD says which records are spans (`metatfc spans --help`), --record spans
writes a row for each span, with its times, the span around it and its fields, and
--record events one for each other record that has a time. They are written on
request only, as they are made of the records that other tables have.

A condition compares columns with constants by =, !=, <, <=, >, >=; text is in single
or double quotes, and a date is a number in its column's unit. A row with null in a
column that is compared does not pass. Every table that is written has to have the
columns that are compared; --record names those that do.

With one trace a table is FOLDER/RECORD.FORM; with several it is
FOLDER/RECORD/trace=NAME/RECORD.FORM, which engines read as one, with a column
`trace`. Tables without rows are left out. With a file in place of a folder, name
one record (--record); several traces follow each other in it. A database of SQLite
is one file for all tables; those of several traces have a column `trace` in it.

Examples:
  metatfc export T.mtf -o tables --to parquet
  metatfc export T.mtf --record malloc --columns size,address -o malloc.csv
  metatfc export T.mtf --record malloc --where 'size >= 4096 and thread = 2' -o big.csv
  metatfc export T.mtf --record spans -o spans.parquet
  duckdb -c \"select count(*) from 'tables/malloc.parquet'\"";

/// Write the records of traces as tables: Parquet, Arrow, CSV, SQLite
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The traces
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// The folder of the tables, or the file of one, or of a database
    #[arg(long, short, value_name = "PATH")]
    output: PathBuf,
    /// The form of the tables [default: the extension of the output file]
    #[arg(long, value_name = "FORM", value_parser = work::forms())]
    to: Option<String>,
    /// Only the table of this name; may be repeated
    #[arg(long, value_name = "NAME")]
    record: Vec<String>,
    /// Only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Only rows that pass: comparisons of columns with constants, joined by `and`
    #[arg(long = "where", value_name = "CONDITION")]
    filter: Option<String>,
    /// Numbers and bytes as they are stored, in place of names, flags, dates, truth values and text
    #[arg(long)]
    stored: bool,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub(crate) use work::run;
