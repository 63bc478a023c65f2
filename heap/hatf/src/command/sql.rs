//! `hatf sql`: queries heap traces with DuckDB.

use std::io::Write as _;

use hatf_trace::{Error, Result};
use metatf_cli::sql::{Sql, text};
use metatf_cli::{Style, stdout};

/// Heap tables for which the extension has functions.
const TABLES: [&str; 8] = ["objects", "sites", "stacks", "lifetimes", "timeline", "marks", "processes", "traces"];

/// Named queries. Each starts with a comment that states its question.
const QUERIES: [(&str, &str); 10] = [
    ("top-sites", include_str!("../../queries/top-sites.sql")),
    ("leaks", include_str!("../../queries/leaks.sql")),
    ("temporary", include_str!("../../queries/temporary.sql")),
    ("peak", include_str!("../../queries/peak.sql")),
    ("live-halfway", include_str!("../../queries/live-halfway.sql")),
    ("rate", include_str!("../../queries/rate.sql")),
    ("size-classes", include_str!("../../queries/size-classes.sql")),
    ("lifetimes", include_str!("../../queries/lifetimes.sql")),
    ("functions", include_str!("../../queries/functions.sql")),
    ("other-threads", include_str!("../../queries/other-threads.sql")),
];

/// Query heap traces with DuckDB: objects, sites, stacks, lifetimes, timeline, marks, processes, traces.
///
/// DuckDB runs the query, either as the program `duckdb` or as a Python 3 module. It reads traces through
/// metatf.duckdb_extension, which `dev/scripts/duckdb-extension --release` builds; the extension is expected next to hatf
/// or at the path in METATF_DUCKDB_EXTENSION.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf sql perl.mtf 'select stack_hash, allocated_bytes from sites order by 2 desc limit 3'
  hatf sql perl.mtf --query top-sites
  hatf sql 'hosts/*.mtf' 'select trace, max(live_bytes) from timeline group by trace' --csv
  hatf sql --list")]
pub(crate) struct Ask {
    /// Trace, or a glob pattern that matches traces.
    #[arg(required_unless_present = "list")]
    trace: Option<String>,

    /// SQL statement.
    #[arg(required_unless_present_any = ["list", "named"])]
    query: Option<String>,

    /// Named query to run.
    #[arg(long = "query", value_name = "NAME", conflicts_with = "query", value_parser = super::row(questions()))]
    named: Option<String>,

    /// Print the named queries and exit.
    #[arg(long, conflicts_with_all = ["trace", "query", "named", "csv"])]
    list: bool,

    /// Print CSV instead of a table.
    #[arg(long)]
    csv: bool,
}

/// Returns the names of the queries and their questions.
fn questions() -> impl Iterator<Item = (&'static str, &'static str)> {
    QUERIES.into_iter().map(|(name, query)| (name, query.lines().next().unwrap_or_default().trim_start_matches("-- ")))
}

pub(crate) fn run(options: &Ask) -> Result<u8> {
    if options.list {
        let mut out = stdout(Style::Text);
        for (name, query) in QUERIES {
            writeln!(out, "{name}\n\n{query}")?;
        }
        out.flush()?;
        return Ok(0);
    }
    let trace = text(options.trace.as_deref().unwrap_or_default());
    let setup: String =
        TABLES.iter().map(|table| format!("create view {table} as from heap_{table}({trace}); ")).collect();
    let named = options.named.as_ref().and_then(|named| QUERIES.into_iter().find(|(name, _)| name == named));
    let query = named.map_or_else(|| options.query.clone().unwrap_or_default(), |(_, query)| query.to_owned());
    match (Sql { setup, query, csv: options.csv }).run() {
        Ok(true) => Ok(0),
        Ok(false) => Ok(1),
        Err(message) => Err(Error::Trace(message.into())),
    }
}
