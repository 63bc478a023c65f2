//! Runs SQL queries over traces, using the machine's own DuckDB and an extension that reads traces.
//!
//! The commands contain no part of DuckDB: they find DuckDB's program or Python module, and pass the query to it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::output_of;

/// The file name of the extension.
const EXTENSION: &str = "metatf.duckdb_extension";

/// The environment variable that contains the path of the extension.
const EXTENSION_VARIABLE: &str = "METATF_DUCKDB_EXTENSION";

/// The script that runs a query if only the Python module of DuckDB is available. Its arguments are the extension, the
/// setup, the query, and `csv` or `table`.
const PYTHON: &str = "
import sys, duckdb
extension, setup, query, form = sys.argv[1:]
connection = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
try:
    connection.load_extension(extension)
    if setup:
        connection.execute(setup)
    result = connection.sql(query)
    if result is None:
        pass
    elif form == 'csv':
        result.write_csv('/dev/stdout')
    else:
        result.show(max_rows=1_000_000, max_width=10_000)
except duckdb.Error as error:
    sys.exit(str(error))
";

/// An SQL query and its setup.
#[derive(Clone, Debug)]
pub struct Sql {
    /// Statements that define the names used by the query, each terminated by `;`.
    pub setup: String,
    /// The query.
    pub query: String,
    /// Whether to print CSV instead of a table.
    pub csv: bool,
}

/// A program that runs queries.
enum Engine {
    DuckDb(OsString),
    Python(OsString),
}

impl Sql {
    /// Runs the query and prints the result to standard output. Returns false if the query failed, in which case DuckDB
    /// has printed the error.
    ///
    /// # Errors
    /// Fails if DuckDB or the extension is missing; the message explains how to install it.
    pub fn run(&self) -> Result<bool, String> {
        let extension = extension()?;
        let mut command = match engine()? {
            Engine::DuckDb(program) => {
                let load = format!("load {};", text(&extension.to_string_lossy()));
                let mut command = Command::new(program);
                command.args(["-unsigned", "-bail"]).args(self.csv.then_some("-csv")).args(["-c", &load]);
                if !self.setup.is_empty() {
                    command.args(["-c", &self.setup]);
                }
                command.args(["-c", &self.query]);
                command
            }
            Engine::Python(program) => {
                let form = if self.csv { "csv" } else { "table" };
                let mut command = Command::new(program);
                command.args(["-c", PYTHON]).arg(extension).args([self.setup.as_str(), &self.query, form]);
                command
            }
        };
        command.status().map(|status| status.success()).map_err(|error| format!("cannot run DuckDB: {error}"))
    }
}

/// Quotes a string for SQL.
#[must_use]
pub fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Finds DuckDB's program on the path, or else its Python module.
fn engine() -> Result<Engine, String> {
    if works(Command::new("duckdb").arg("-version")) {
        return Ok(Engine::DuckDb("duckdb".into()));
    }
    if works(Command::new("python3").args(["-c", "import duckdb"])) {
        return Ok(Engine::Python("python3".into()));
    }
    Err("DuckDB not found: install the program `duckdb`, or run `pip install duckdb`".to_owned())
}

/// Returns whether a program exists and succeeds.
fn works(command: &mut Command) -> bool {
    output_of(command.stderr(Stdio::piped())).is_ok_and(|output| output.status.success())
}

/// Finds the extension at the path in the environment variable, or else in the directory of the running program.
fn extension() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os(EXTENSION_VARIABLE).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(format!("{EXTENSION_VARIABLE} names {}, which does not exist", path.display()))
        };
    }
    let program = env::current_exe().and_then(|program| program.canonicalize()).unwrap_or_default();
    let path = program.parent().unwrap_or(Path::new("")).join(EXTENSION);
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "DuckDB extension not found: build it with `dev/scripts/duckdb-extension --release`, and copy it to {} or set {EXTENSION_VARIABLE}",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotes_are_doubled() {
        assert_eq!(super::text("it's"), "'it''s'");
    }
}
