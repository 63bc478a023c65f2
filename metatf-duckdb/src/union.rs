//! The tables of several traces as one.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, DictionaryArray, Int32Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use metatf_arrow::{Batches, Error, Filter, Result, Scan, Table};

/// The column that tells from which file a row is.
pub(crate) const FILE: &str = "@file";

/// Tables of the same columns, one after the other, with the column [`FILE`].
pub(crate) struct Union {
    parts: Vec<Part>,
    schema: SchemaRef,
}

/// A table and the file it is from.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) table: Arc<dyn Table>,
}

impl Union {
    /// # Errors
    /// There are none, or their columns differ.
    pub(crate) fn new(parts: Vec<Part>) -> Result<Self, String> {
        let Some(first) = parts.first() else { return Err("no tables".to_owned()) };
        let columns = |table: &dyn Table| {
            table
                .schema()
                .fields()
                .iter()
                .map(|field| (field.name().clone(), field.data_type().clone()))
                .collect::<Vec<_>>()
        };
        let expected = columns(&first.table);
        if let Some(part) = parts.iter().find(|part| columns(&part.table) != expected) {
            let name = part.table.name();
            return Err(format!(
                "{}: {name} has other columns than in {}: read them one by one",
                part.file, first.file
            ));
        }
        let mut fields = first.table.schema().fields().to_vec();
        let file = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        fields.push(Arc::new(Field::new(FILE, file, false)));
        Ok(Self { schema: Arc::new(Schema::new(fields)), parts })
    }
}

impl Table for Union {
    fn name(&self) -> &str {
        self.parts.first().map_or("", |part| part.table.name())
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn scan(&self, scan: &Scan) -> Result<Batches> {
        let file = self.schema.fields().len() - 1;
        let columns = scan.columns.clone().unwrap_or_else(|| (0..=file).collect());
        let schema = Arc::new(self.schema.project(&columns).map_err(|error| Error::new("", error))?);
        let mut inner = scan.clone();
        inner.columns = Some(columns.iter().copied().filter(|column| *column != file).collect());
        inner.filters.retain(|filter: &Filter| filter.column != file);
        // The first one is opened now, so that an error of it is one of the scan.
        let mut parts = self.parts.clone().into_iter();
        let mut opened = match parts.next() {
            Some(part) => Some((part.table.scan(&inner)?, part.file)),
            None => None,
        };
        let out = Arc::clone(&schema);
        let mut next = move || -> Result<Option<RecordBatch>, ArrowError> {
            loop {
                let Some((batches, name)) = &mut opened else { return Ok(None) };
                if let Some(batch) = batches.next() {
                    return with_file(&batch?, &out, &columns, file, name).map(Some);
                }
                opened = match parts.next() {
                    Some(part) => Some((
                        part.table.scan(&inner).map_err(|error| ArrowError::ExternalError(Box::new(error)))?,
                        part.file,
                    )),
                    None => None,
                };
            }
        };
        Ok(Box::new(RecordBatchIterator::new(std::iter::from_fn(move || next().transpose()), schema)))
    }
}

/// A batch with the name of its file where that is asked for.
fn with_file(
    batch: &RecordBatch,
    schema: &SchemaRef,
    columns: &[usize],
    file: usize,
    name: &str,
) -> Result<RecordBatch, ArrowError> {
    let mut values = batch.columns().iter();
    let mut out: Vec<Arc<dyn Array>> = Vec::with_capacity(columns.len());
    for column in columns {
        if *column == file {
            let keys = Int32Array::from(vec![0; batch.num_rows()]);
            out.push(Arc::new(DictionaryArray::<Int32Type>::try_new(
                keys,
                Arc::new(StringArray::from_iter_values([name])),
            )?));
        } else {
            out.extend(values.next().cloned());
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), out, &options)
}
