//! Tables as a database of SQLite.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use std::fs::File;

use super::WriteError;
use crate::cell::{Cell, cell};

/// A database of tables that is being written.
///
/// Numbers and truth values are integers, numbers above 63 bits decimal digits; dates are text; lists and structures are JSON. Names differ
/// in more than upper and lower case, or there is an error, as SQLite takes them for the same.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    file: File,
    /// By name: columns, and how many rows there are.
    tables: HashMap<String, (usize, u64)>,
}

impl Database {
    /// Begins a database, which is a temporary file in this folder until it is [finished](Self::finish). The file has no name once SQLite has
    /// opened it, so that it is gone when the process ends.
    ///
    /// # Errors
    /// The system's.
    pub fn create_in(folder: &Path) -> Result<Self, WriteError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let file = tempfile::Builder::new().prefix(".tables-").tempfile_in(folder).map_err(WriteError::Output)?;
        let connection = Connection::open(file.path()).map_err(output)?;
        // SQLite opens files lazily.
        connection.query_row("pragma schema_version", (), |_| Ok(())).map_err(output)?;
        let (file, name) = file.into_parts();
        name.close().map_err(WriteError::Output)?;
        // Nobody else reads it before it is whole.
        connection
            .execute_batch(
                "pragma journal_mode = off; pragma synchronous = off; pragma locking_mode = exclusive; begin",
            )
            .map_err(output)?;
        Ok(Self { connection, file, tables: HashMap::new() })
    }

    /// Adds a table, if there is none of this name. `lead` is a column of text before the others.
    ///
    /// # Errors
    /// SQLite does not take its name, or those of its columns.
    pub fn table(&mut self, name: &str, schema: &Schema, lead: Option<&str>) -> Result<(), WriteError> {
        if self.tables.contains_key(name) {
            return Ok(());
        }
        let fields = schema.fields().iter().map(|field| (field.name().as_str(), affinity(field.data_type())));
        let columns: Vec<_> = lead.map(|lead| (lead, "TEXT")).into_iter().chain(fields).collect();
        let list: Vec<_> = columns.iter().map(|(name, of)| format!("{} {of}", quoted(name))).collect();
        let sql = format!("create table {} ({})", quoted(name), list.join(", "));
        self.connection.execute(&sql, ()).map_err(|e| WriteError::Table(format!("table {name}: {e}")))?;
        self.tables.insert(name.to_owned(), (columns.len(), 0));
        Ok(())
    }

    /// Writes rows of a table that was added, with this text in its column before the others, if it has one.
    ///
    /// # Errors
    /// There is no such table, or it has other columns; the output's.
    pub fn batch(&mut self, name: &str, lead: Option<&str>, batch: &RecordBatch) -> Result<(), WriteError> {
        let columns = usize::from(lead.is_some()) + batch.num_columns();
        let Some((_, rows)) = self.tables.get_mut(name).filter(|(count, _)| *count == columns) else {
            return Err(WriteError::Table(format!("table {name}: it has other columns than in the traces before")));
        };
        let places = vec!["?"; columns].join(", ");
        let sql = format!("insert into {} values ({places})", quoted(name));
        let mut insert = self.connection.prepare_cached(&sql).map_err(output)?;
        for row in 0..batch.num_rows() {
            let mut place = 0;
            if let Some(lead) = lead {
                place += 1;
                insert.raw_bind_parameter(place, lead).map_err(output)?;
            }
            for array in batch.columns() {
                place += 1;
                let cell = cell(array, row).map_err(|e| WriteError::Output(io::Error::other(e)))?;
                insert.raw_bind_parameter(place, value(&cell)).map_err(output)?;
            }
            insert.raw_execute().map_err(output)?;
        }
        *rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Copies the whole database to an output. Gives how many rows each table has.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(self, to: &mut impl Write) -> Result<HashMap<String, u64>, WriteError> {
        let Self { connection, mut file, tables } = self;
        connection.execute_batch("commit").map_err(output)?;
        connection.close().map_err(|(_, error)| output(error))?;
        io::copy(&mut file, to).map_err(WriteError::Output)?;
        Ok(tables.into_iter().map(|(name, (_, rows))| (name, rows)).collect())
    }
}

fn output(error: rusqlite::Error) -> WriteError {
    WriteError::Output(match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => io::Error::new(io::ErrorKind::StorageFull, "No space left on device"),
        _ => io::Error::other(error),
    })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns what SQLite calls the type of a column.
fn affinity(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 | DataType::Boolean => "INTEGER",
        // In a column with a type, digits of a number above 63 bits would become a number that is near it.
        DataType::UInt64 => "",
        DataType::Float64 => "REAL",
        DataType::Binary => "BLOB",
        _ => "TEXT",
    }
}

fn value<'c>(cell: &'c Cell<'_>) -> ToSqlOutput<'c> {
    let text = |text: String| ToSqlOutput::Owned(Value::Text(text));
    match cell {
        Cell::Null => ToSqlOutput::Owned(Value::Null),
        Cell::Signed(n) => ToSqlOutput::Owned(Value::Integer(*n)),
        Cell::Unsigned(n) => {
            i64::try_from(*n).map_or_else(|_| text(n.to_string()), |n| ToSqlOutput::Owned(Value::Integer(n)))
        }
        // SQLite has no number that is none, and takes it for null.
        Cell::Float(real) if real.is_nan() => text(cell.json().to_string()),
        Cell::Float(real) => ToSqlOutput::Owned(Value::Real(*real)),
        Cell::Bool(is) => ToSqlOutput::Owned(Value::Integer((*is).into())),
        Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Cell::Date(date) => ToSqlOutput::Borrowed(ValueRef::Text(date.as_bytes())),
        Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        Cell::List(_) | Cell::Object(_) => text(cell.json().to_string()),
    }
}
