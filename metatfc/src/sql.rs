//! `sql`: queries the records of traces with DuckDB.

use metatf_cli::sql::{Sql, text};

use crate::failure::{Failure, Result, failed};

const MORE: &str = "\
The query sees the records of a type as records('TYPE'), and all types with
their columns as the table `tables`. If the DTD says which records are spans,
records('spans') has a row for each, and records('events') one for each other
record that has a time. Several traces are one table, with the
column \"@file\"; a TRACE may be a pattern in quotes, such as '*.mtf'.

DuckDB runs the query: its program `duckdb`, or its module of python3. It reads
traces by the extension metatf.duckdb_extension, which
`scripts/duckdb-extension --release` builds: beside metatfc, or where
METATF_DUCKDB_EXTENSION says.

Examples:
  metatfc sql tour.mtf \"select count(*), sum(size) from records('malloc')\"
  metatfc sql tour.mtf 'from tables'
  metatfc sql server.mtf \"select name, max(duration_ns) from records('spans') group by all\"
  metatfc sql 'hosts/*.mtf' --csv \"select \\\"@file\\\", max(size) from records('malloc') group by all\"";

/// Ask DuckDB about the records of a trace
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace, or a pattern of traces of one format
    trace: String,
    /// A statement of SQL
    query: String,
    /// Read traces that embed no DTD by this file
    #[arg(long, value_name = "FILE")]
    dtd: Option<String>,
    /// Print CSV instead of a table
    #[arg(long)]
    csv: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let trace = text(&args.trace);
    let dtd = args.dtd.as_deref().map_or_else(String::new, |dtd| format!(", dtd := {}", text(dtd)));
    let setup = format!(
        "create macro records(type) as table from metatf_records({trace}, type{dtd}); create view tables as from metatf_tables({trace}{dtd});"
    );
    let sql = Sql { setup, query: args.query.clone(), csv: args.csv };
    match sql.run() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Printed),
        Err(message) => failed(message),
    }
}
