//! What every table can do.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::Result;

/// The batches of one scan. After an error nothing more comes.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// Batches of several tables that are read at once, each with the place of its table among those asked for. After an error nothing more comes.
pub type Together = Box<dyn Iterator<Item = std::result::Result<(usize, RecordBatch), ArrowError>> + Send>;

/// A table of a trace, or of several.
pub trait Table: Send + Sync {
    /// Its name, as SQL and Python know it.
    fn name(&self) -> &str;

    /// All its columns. Docs and units are metadata of their fields, by the keys `doc` and `unit`.
    fn schema(&self) -> SchemaRef;

    /// Reads it. Batches have the columns of [`Scan::columns`], in that order.
    ///
    /// # Errors
    /// The trace cannot be opened. What is wrong further on is an error of a batch.
    fn scan(&self, scan: &Scan) -> Result<Batches>;
}

/// What of a table is read.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Indices of columns in the [schema](Table::schema); `None`: all. What is not asked for is decoded only where
    /// records behind it depend on it.
    pub columns: Option<Vec<usize>>,
    /// At most this many rows are wanted; `None`: all. A hint: more may come.
    pub limit: Option<u64>,
    /// Threads that decode; 0: one for each processor.
    pub threads: usize,
}

/// A comparison of a column with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Index of the column in the schema.
    pub column: usize,
    /// How they compare.
    pub comparison: Comparison,
    /// The value on the right.
    pub value: Scalar,
}

/// How a column compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A value that a column is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A whole number, in the column's unit; times count from where the column's do.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// Text.
    Text(String),
}

impl<T: Table + ?Sized> Table for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn schema(&self) -> SchemaRef {
        (**self).schema()
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        (**self).scan(scan)
    }
}
