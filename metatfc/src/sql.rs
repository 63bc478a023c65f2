//! `sql`: queries the records of traces with DuckDB.

use metatf_cli::sql::{Sql, text};

use crate::failure::{Failure, Result, failed};

const MORE: &str = "\
In the query, records('TYPE') is the table of all records of a type, and the table
`tables` lists all types with their columns. If the DTD defines spans,
records('spans') has a row for each span, and records('events') a row for each
other record that has a time. Several traces are read as one table with a column
\"@file\"; TRACE may be a quoted pattern, such as '*.mtf'.

DuckDB runs the query, either as the program `duckdb` or as the Python module. It
reads traces with the extension metatf.duckdb_extension, which is built by
`dev/scripts/duckdb-extension --release`. The extension must be in the same directory
as metatfc, or METATF_DUCKDB_EXTENSION must contain its path.

Examples:
  metatfc sql tour.mtf \"select count(*), sum(size) from records('malloc')\"
  metatfc sql tour.mtf 'from tables'
  metatfc sql server.mtf \"select name, max(duration_ns) from records('spans') group by all\"
  metatfc sql 'hosts/*.mtf' --csv \"select \\\"@file\\\", max(size) from records('malloc') group by all\"";

/// Query the records of a trace with DuckDB
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace, or a pattern that matches several traces of one format
    trace: String,
    /// SQL statement
    query: String,
    /// DTD to use if a trace does not embed one
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
