//! Writes tables to an SQLite database.

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

/// A database under construction.
///
/// Numbers and booleans are stored as integers, numbers of more than 63 bits as decimal text, dates as text, and lists
/// and structures as JSON. SQLite ignores case in names, so names that differ only in case are an error.
///
/// # Examples
///
/// ```
/// use arrow_array::record_batch;
/// use metatf_arrow::files::Database;
///
/// let batch = record_batch!(("size", Int64, [16, 48]))?;
/// let mut database = Database::create_in(&std::env::temp_dir())?;
/// database.table("blocks", &batch.schema(), None)?;
/// database.batch("blocks", None, &batch)?;
/// let mut file = Vec::new();
/// let rows = database.finish(&mut file)?;
/// assert_eq!(rows["blocks"], 2);
/// assert!(file.starts_with(b"SQLite format 3\0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    file: File,
    /// Column count and row count by table name.
    tables: HashMap<String, (usize, u64)>,
}

impl Database {
    /// Creates a database as a temporary file in this directory; [`finish`](Self::finish) copies it to the output. The
    /// file is unlinked as soon as SQLite has opened it, so it disappears when the process ends.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or opened.
    pub fn create_in(folder: &Path) -> Result<Self, WriteError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let file = tempfile::Builder::new().prefix(".tables-").tempfile_in(folder).map_err(WriteError::Output)?;
        let connection = Connection::open(file.path()).map_err(output)?;
        // SQLite opens the file on first use.
        connection.query_row("pragma schema_version", (), |_| Ok(())).map_err(output)?;
        let (file, name) = file.into_parts();
        name.close().map_err(WriteError::Output)?;
        // No other process reads the database before it is complete.
        connection
            .execute_batch(
                "pragma journal_mode = off; pragma synchronous = off; pragma locking_mode = exclusive; begin",
            )
            .map_err(output)?;
        Ok(Self { connection, file, tables: HashMap::new() })
    }

    /// Adds a table unless one with this name exists. `lead` is the name of an additional first column of text.
    ///
    /// # Errors
    /// Returns an error if SQLite rejects the name of the table or of a column.
    pub fn table(&mut self, name: &str, schema: &Schema, lead: Option<&str>) -> Result<(), WriteError> {
        if self.tables.contains_key(name) {
            return Ok(());
        }
        let fields = schema.fields().iter().map(|field| (field.name().as_str(), affinity(field.data_type())));
        let columns: Vec<_> = lead.map(|lead| (lead, "TEXT")).into_iter().chain(fields).collect();
        let list: Vec<_> = columns.iter().map(|(name, of)| format!("{} {of}", quoted(name))).collect();
        let sql = format!("create table {} ({})", quoted(name), list.join(", "));
        self.connection.execute(&sql, ()).map_err(|error| match error.sqlite_error_code() {
            // SQLite rejects the statement.
            Some(rusqlite::ErrorCode::Unknown) | None => WriteError::Table(format!("table {name}: {error}")),
            Some(_) => output(error),
        })?;
        self.tables.insert(name.to_owned(), (columns.len(), 0));
        Ok(())
    }

    /// Writes rows to an existing table. `lead` is the value of the additional first column, if the table has one.
    ///
    /// # Errors
    /// Returns an error if the table does not exist, its columns differ, or writing fails.
    pub fn batch(&mut self, name: &str, lead: Option<&str>, batch: &RecordBatch) -> Result<(), WriteError> {
        let columns = usize::from(lead.is_some()) + batch.num_columns();
        let Some((_, rows)) = self.tables.get_mut(name).filter(|(count, _)| *count == columns) else {
            return Err(WriteError::Table(format!(
                "the columns of table {name} differ from the columns in previous traces"
            )));
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

    /// Copies the complete database to an output. Returns the row count of each table.
    ///
    /// # Errors
    /// Returns an error if writing fails.
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
        // SQLite also reports this if the system fails to read the file.
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            io::Error::other("the temporary database next to it cannot be read back (database disk image is malformed)")
        }
        _ => io::Error::other(error),
    })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the SQLite type of a column.
fn affinity(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 | DataType::Boolean => "INTEGER",
        // In a typed column, SQLite would round decimal text above 63 bits to a floating-point number.
        DataType::UInt64 => "",
        DataType::Float32 | DataType::Float64 => "REAL",
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
        // SQLite stores NaN as null.
        Cell::Single(real) if real.is_nan() => text(cell.json().to_string()),
        Cell::Single(real) => ToSqlOutput::Owned(Value::Real((*real).into())),
        Cell::Float(real) if real.is_nan() => text(cell.json().to_string()),
        Cell::Float(real) => ToSqlOutput::Owned(Value::Real(*real)),
        Cell::Bool(is) => ToSqlOutput::Owned(Value::Integer((*is).into())),
        Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Cell::Date(date) => ToSqlOutput::Borrowed(ValueRef::Text(date.as_bytes())),
        Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        Cell::List(_) | Cell::Object(_) => text(cell.json().to_string()),
    }
}
