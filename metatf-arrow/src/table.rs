//! The table interface.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::Result;

/// The batches of one scan. The iterator ends after an error.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// The batches of several tables that are read at once, each with the index of its table in the request. The iterator
/// ends after an error.
pub type Together = Box<dyn Iterator<Item = std::result::Result<(usize, RecordBatch), ArrowError>> + Send>;

/// A table of a trace, or of several.
pub trait Table: Send + Sync {
    /// Returns the name used in SQL and Python.
    fn name(&self) -> &str;

    /// Returns the schema with all columns. Field metadata contains documentation under `doc` and the unit under
    /// `unit`.
    fn schema(&self) -> SchemaRef;

    /// Reads the table. Batches have the columns of [`Scan::columns`], in that order.
    ///
    /// # Errors
    /// The trace cannot be opened. Later errors are returned in place of a batch.
    fn scan(&self, scan: &Scan) -> Result<Batches>;
}

/// The part of a table to read.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Column indices in the [schema](Table::schema), or `None` for all. Other columns are decoded only if later
    /// records depend on them.
    pub columns: Option<Vec<usize>>,
    /// Maximum number of rows that the caller needs, or `None` for all. This is a hint: a scan may return more rows.
    pub limit: Option<u64>,
    /// Number of decoding threads; 0 uses one per processor.
    pub threads: usize,
}

/// A comparison of a column with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Index of the column in the schema.
    pub column: usize,
    /// The comparison operator.
    pub comparison: Comparison,
    /// The right-hand value.
    pub value: Scalar,
}

/// A comparison operator.
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

/// A value to compare a column with.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// An integer in the unit of the column. For times, it counts from the same origin as the column.
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
