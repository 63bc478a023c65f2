//! Which rows a call of a table function asks for: `predicate := 'size >= 4096 and thread = 2'`.
//!
//! The C API does not tell table functions the conditions of a query, so those that save reading are said in the call.
//! Tables take them as hints; the rows that come nevertheless are left out here.

use std::sync::Arc;

use arrow_array::types as arrow;
use arrow_array::{
    Array, ArrowPrimitiveType, BooleanArray, Float32Array, Float64Array, LargeStringArray, PrimitiveArray, RecordBatch,
    Scalar as ArrowScalar, StringArray, StringViewArray,
};
use arrow_schema::{DataType, Schema, TimeUnit};
use metatf_arrow::{Comparison, Filter, Scalar};

use crate::api::Result;

/// Comparisons of columns with values, all of which have to be true.
#[derive(Clone, Default)]
pub(crate) struct Predicate {
    filters: Vec<Filter>,
    terms: Vec<Term>,
}

/// One comparison, as the kernels of Arrow do it.
#[derive(Clone)]
struct Term {
    column: usize,
    comparison: Comparison,
    /// One value of the column's type.
    value: Arc<dyn Array>,
}

/// The operators, longer ones first.
const OPERATORS: [(&str, Comparison); 5] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

impl Predicate {
    /// Reads comparisons that are joined by `and`. An empty text asks for all rows.
    ///
    /// # Errors
    /// The text is none, names no column, or compares it with a value of another type.
    pub(crate) fn parse(text: &str, schema: &Schema) -> Result<Self> {
        let mut predicate = Self::default();
        for term in terms(text) {
            predicate.add(term.trim(), schema).map_err(|error| format!("predicate, {:?}: {error}", term.trim()))?;
        }
        Ok(predicate)
    }

    fn add(&mut self, term: &str, schema: &Schema) -> Result<()> {
        let at = term.find(['<', '>', '=']).ok_or("expected a column, one of = < <= > >=, and a value")?;
        let (name, rest) = (term[..at].trim(), &term[at..]);
        let (operator, comparison) =
            OPERATORS.into_iter().find(|(operator, _)| rest.starts_with(operator)).ok_or("no operator")?;
        let (column, field) =
            schema.column_with_name(name.trim_matches('"')).ok_or_else(|| format!("there is no column {name}"))?;
        let value = rest[operator.len()..].trim();
        let (value, scalar) = value_of(value, field.data_type())?;
        self.filters.push(Filter { column, comparison, value: scalar });
        self.terms.push(Term { column, comparison, value });
        Ok(())
    }

    /// The comparisons, for the table.
    pub(crate) fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// The same comparisons of columns of batches, whose places `place` gives.
    pub(crate) fn in_batches(mut self, mut place: impl FnMut(usize) -> usize) -> Self {
        for term in &mut self.terms {
            term.column = place(term.column);
        }
        self
    }

    /// The rows of a batch for which all comparisons are true.
    pub(crate) fn rows_of(&self, mut batch: RecordBatch) -> Result<RecordBatch> {
        for term in &self.terms {
            let column = batch.columns().get(term.column).ok_or("a batch lacks a column of the predicate")?;
            let passes = term.passes(column)?;
            batch = arrow_select::filter::filter_record_batch(&batch, &passes).map_err(|error| error.to_string())?;
        }
        Ok(batch)
    }
}

impl Term {
    fn passes(&self, column: &dyn Array) -> Result<BooleanArray> {
        use arrow_ord::cmp;
        let value = ArrowScalar::new(Arc::clone(&self.value));
        match self.comparison {
            Comparison::Equal => cmp::eq(&column, &value),
            Comparison::Less => cmp::lt(&column, &value),
            Comparison::LessOrEqual => cmp::lt_eq(&column, &value),
            Comparison::Greater => cmp::gt(&column, &value),
            Comparison::GreaterOrEqual => cmp::gt_eq(&column, &value),
        }
        .map_err(|error| error.to_string())
    }
}

/// The comparisons of a text, which `and` joins; those in quotes do not.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() => {
                let word = text[at..].trim_start();
                let end = at + text[at..].len() - word.len() + 3;
                if at >= start
                    && word.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("and"))
                    && text[end..].starts_with(char::is_whitespace)
                {
                    terms.push(&text[start..at]);
                    start = end;
                }
            }
            None => {}
        }
    }
    terms.push(&text[start.min(text.len())..]);
    if terms.iter().all(|term| term.trim().is_empty()) { Vec::new() } else { terms }
}

/// A value as one of a column's type, for the kernels and for the table.
fn value_of(text: &str, data_type: &DataType) -> Result<(Arc<dyn Array>, Scalar)> {
    let integer = || whole(text).ok_or_else(|| format!("the column has whole numbers, and {text} is none"));
    let (array, scalar): (Arc<dyn Array>, _) = match data_type {
        DataType::Dictionary(_, values) => return value_of(text, values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = ['\'', '"']
                .iter()
                .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))
                .unwrap_or(text)
                .to_owned();
            let one = [text.as_str()];
            let array: Arc<dyn Array> = match data_type {
                DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter_values(one)),
                DataType::Utf8View => Arc::new(StringViewArray::from_iter_values(one)),
                _ => Arc::new(StringArray::from_iter_values(one)),
            };
            (array, Scalar::Text(text))
        }
        DataType::Boolean => {
            let value =
                text.parse::<bool>().map_err(|_| format!("the column has true and false, and {text} is neither"))?;
            (Arc::new(BooleanArray::from(vec![value])), Scalar::Integer(value.into()))
        }
        DataType::Float32 | DataType::Float64 => {
            let value = text.parse::<f64>().map_err(|_| format!("the column has numbers, and {text} is none"))?;
            #[expect(clippy::cast_possible_truncation, reason = "the nearest value of the column's type")]
            let array: Arc<dyn Array> = match data_type {
                DataType::Float32 => Arc::new(Float32Array::from(vec![value as f32])),
                _ => Arc::new(Float64Array::from(vec![value])),
            };
            (array, Scalar::Float(value))
        }
        _ => {
            let array = integers(integer()?, data_type)?;
            (array, Scalar::Integer(integer()?))
        }
    };
    Ok((array, scalar))
}

/// One whole number as a column's type.
fn integers(value: i128, data_type: &DataType) -> Result<Arc<dyn Array>> {
    match data_type {
        DataType::Int8 => one::<arrow::Int8Type>(value, data_type),
        DataType::Int16 => one::<arrow::Int16Type>(value, data_type),
        DataType::Int32 => one::<arrow::Int32Type>(value, data_type),
        DataType::Int64 => one::<arrow::Int64Type>(value, data_type),
        DataType::UInt8 => one::<arrow::UInt8Type>(value, data_type),
        DataType::UInt16 => one::<arrow::UInt16Type>(value, data_type),
        DataType::UInt32 => one::<arrow::UInt32Type>(value, data_type),
        DataType::UInt64 => one::<arrow::UInt64Type>(value, data_type),
        DataType::Duration(TimeUnit::Second) => one::<arrow::DurationSecondType>(value, data_type),
        DataType::Duration(TimeUnit::Millisecond) => one::<arrow::DurationMillisecondType>(value, data_type),
        DataType::Duration(TimeUnit::Microsecond) => one::<arrow::DurationMicrosecondType>(value, data_type),
        DataType::Duration(TimeUnit::Nanosecond) => one::<arrow::DurationNanosecondType>(value, data_type),
        DataType::Timestamp(TimeUnit::Second, _) => one::<arrow::TimestampSecondType>(value, data_type),
        DataType::Timestamp(TimeUnit::Millisecond, _) => one::<arrow::TimestampMillisecondType>(value, data_type),
        DataType::Timestamp(TimeUnit::Microsecond, _) => one::<arrow::TimestampMicrosecondType>(value, data_type),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => one::<arrow::TimestampNanosecondType>(value, data_type),
        other => Err(format!("a column of {other} is not compared here; use WHERE")),
    }
}

fn one<T: ArrowPrimitiveType<Native: TryFrom<i128>>>(value: i128, data_type: &DataType) -> Result<Arc<dyn Array>> {
    let value =
        T::Native::try_from(value).map_err(|_| format!("{value} is outside of the column's numbers, {data_type}"))?;
    Ok(Arc::new(PrimitiveArray::<T>::new(vec![value].into(), None).with_data_type(data_type.clone())))
}

/// A whole number, decimal or hexadecimal.
fn whole(text: &str) -> Option<i128> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| i128::from_str_radix(digits, 16).ok())
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, UInt32Array};
    use arrow_schema::Field;

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("size", DataType::Int64, true),
            Field::new("thread", DataType::UInt32, false),
            Field::new("name", DataType::Utf8, false),
        ])
    }

    fn rows(predicate: &str) -> Result<Vec<u32>> {
        let size = Int64Array::from(vec![Some(1), None, Some(5), Some(9)]);
        let name = StringArray::from(vec!["a", "b", "x and y", "'"]);
        let batch = RecordBatch::try_new(
            schema().into(),
            vec![Arc::new(size), Arc::new(UInt32Array::from(vec![0, 1, 2, 3])), Arc::new(name)],
        )
        .unwrap();
        let rows = Predicate::parse(predicate, &schema())?.rows_of(batch)?;
        Ok(rows.column(1).as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec())
    }

    #[test]
    fn rows_that_pass() {
        assert_eq!(rows("").unwrap(), [0, 1, 2, 3]);
        assert_eq!(rows("size > 1").unwrap(), [2, 3]);
        assert_eq!(rows("size >= 1 AND thread<0x3").unwrap(), [0, 2]);
        assert_eq!(rows("size <= 5\nand  thread = 0").unwrap(), [0]);
        assert_eq!(rows("name = 'x and y'").unwrap(), [2]);
        assert_eq!(rows("name = \"'\" and size=9").unwrap(), [3]);
        assert_eq!(rows("name = a").unwrap(), [0]);
    }

    #[test]
    fn what_is_no_predicate() {
        for (text, message) in [
            ("size", "expected a column, one of = < <= > >=, and a value"),
            ("size > ", "the column has whole numbers, and  is none"),
            ("sise = 1", "there is no column sise"),
            ("thread = -1", "-1 is outside of the column's numbers, UInt32"),
            ("size = 1 and", "and 1 and is none"),
            ("size = 1 and ", "expected a column"),
            ("and size = 1", "there is no column and size"),
            ("size = 99999999999999999999", "outside of the column's numbers"),
            ("é<", "there is no column é"),
        ] {
            let error = rows(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
