//! Conditions on rows: the rows of a table that pass, exactly.
//!
//! Tables give all rows: the index of a trace has neither the values nor the tags of its records, so that no part of it can be skipped.

use std::fmt;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, Scalar as One};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, Schema};
use arrow_select::filter::filter_record_batch;

use crate::constant::constant;
use crate::{Comparison, Filter, Scan};

/// Comparisons of columns with values, all of which have to be true of a row. A comparison with null is not.
#[derive(Clone, Debug, Default)]
pub struct Conditions(Vec<Condition>);

/// One comparison.
#[derive(Clone, Debug)]
struct Condition {
    filter: Filter,
    /// The value as one of the column's type.
    value: ArrayRef,
}

/// Why a condition is none on this table.
#[derive(Debug)]
pub struct ConditionError(pub(crate) String);

/// Which columns and rows of a table are wanted, and which columns are read for that.
#[derive(Clone, Debug)]
pub struct Selection {
    columns: Option<Vec<usize>>,
    /// How many of the columns that are read are wanted; those behind them only decide. `None`: all.
    wanted: Option<usize>,
    conditions: Conditions,
    /// For each condition the place of its column among those that are read.
    places: Vec<usize>,
}

impl Conditions {
    /// Adds a comparison with a column of this schema.
    ///
    /// # Errors
    /// There is no such column, or its type has no such value.
    pub fn add(&mut self, schema: &Schema, filter: Filter) -> Result<(), ConditionError> {
        let Some(field) = schema.fields().get(filter.column) else {
            return Err(ConditionError(format!("there is no column {}", filter.column)));
        };
        let value = constant(&filter.value, field.data_type());
        let value = value.map_err(|problem| ConditionError(format!("column {}: {problem}", field.name())))?;
        self.0.push(Condition { filter, value });
        Ok(())
    }

    /// Selects these columns (`None`: all) of the rows that pass.
    #[must_use]
    pub fn select(&self, columns: Option<&[usize]>) -> Selection {
        let mut read = columns.map(<[usize]>::to_vec);
        let mut place = |column: usize| match &mut read {
            None => column,
            Some(read) => read.iter().position(|other| *other == column).unwrap_or_else(|| {
                read.push(column);
                read.len() - 1
            }),
        };
        let places = self.0.iter().map(|condition| place(condition.filter.column)).collect();
        Selection { columns: read, wanted: columns.map(<[usize]>::len), conditions: self.clone(), places }
    }
}

impl Selection {
    /// The columns to read, as [`Scan::columns`].
    #[must_use]
    pub fn columns(&self) -> Option<&[usize]> {
        self.columns.as_deref()
    }

    /// The scan whose batches [`rows`](Self::rows) takes, of which at most `limit` rows are wanted.
    #[must_use]
    pub fn scan(&self, limit: Option<u64>, threads: usize) -> Scan {
        // How many rows are read until enough have passed is not known.
        let limit = limit.filter(|_| self.conditions.0.is_empty());
        Scan { columns: self.columns.clone(), limit, threads }
    }

    /// The wanted columns of the rows that pass.
    ///
    /// # Errors
    /// A batch lacks a column, or has one of another type.
    pub fn rows(&self, mut batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        for (condition, place) in self.conditions.0.iter().zip(&self.places) {
            let column = batch.columns().get(*place);
            let column = column.ok_or_else(|| ArrowError::SchemaError("a batch lacks a column".to_owned()))?;
            batch = filter_record_batch(&batch, &condition.passes(column)?)?;
        }
        match self.wanted {
            Some(wanted) if wanted < batch.num_columns() => batch.project(&(0..wanted).collect::<Vec<_>>()),
            _ => Ok(batch),
        }
    }
}

impl Condition {
    fn passes(&self, column: &ArrayRef) -> Result<BooleanArray, ArrowError> {
        let value = One::new(&self.value);
        match self.filter.comparison {
            Comparison::Equal => cmp::eq(column, &value),
            Comparison::NotEqual => cmp::neq(column, &value),
            Comparison::Less => cmp::lt(column, &value),
            Comparison::LessOrEqual => cmp::lt_eq(column, &value),
            Comparison::Greater => cmp::gt(column, &value),
            Comparison::GreaterOrEqual => cmp::gt_eq(column, &value),
        }
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConditionError {}
