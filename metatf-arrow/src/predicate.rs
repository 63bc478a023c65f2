//! Conditions as text: `size >= 4096 and thread = 2`.

use arrow_schema::{DataType, Schema};

use crate::condition::{ConditionError, Conditions};
use crate::{Comparison, Filter, Scalar};

/// The comparisons by their signs, longer ones first.
const SIGNS: [(&str, Comparison); 8] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    ("<>", Comparison::NotEqual),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

impl Comparison {
    /// The comparison of a sign: `=` or `==`, `!=` or `<>`, `<`, `<=`, `>`, `>=`.
    #[must_use]
    pub fn of_sign(sign: &str) -> Option<Self> {
        SIGNS.into_iter().find_map(|(known, comparison)| (known == sign).then_some(comparison))
    }
}

impl Conditions {
    /// Reads comparisons of columns with constants, which `and` joins. An empty text has none: all rows pass.
    ///
    /// Numbers are decimal, or hexadecimal behind `0x`; times are numbers in the column's unit. Text is in single or double quotes, or
    /// as it is where it has no spaces.
    ///
    /// # Errors
    /// The text is none, names no column, or compares it with a value of another type.
    pub fn parse(text: &str, schema: &Schema) -> Result<Self, ConditionError> {
        let mut conditions = Self::default();
        for term in terms(text).into_iter().map(str::trim) {
            let filter = filter(term, schema).and_then(|filter| conditions.add(schema, filter).map_err(|e| e.0));
            filter.map_err(|error| ConditionError(format!("{term:?}: {error}")))?;
        }
        Ok(conditions)
    }
}

fn filter(term: &str, schema: &Schema) -> Result<Filter, String> {
    const EXPECTED: &str = "expected a column, one of = != < <= > >=, and a value";
    let (name, rest) = term.split_at_checked(term.find(['<', '>', '=', '!']).ok_or(EXPECTED)?).ok_or(EXPECTED)?;
    let sign = SIGNS.into_iter().find_map(|(sign, comparison)| Some((rest.strip_prefix(sign)?, comparison)));
    let (value, comparison) = sign.ok_or(EXPECTED)?;
    let name = name.trim();
    let (column, field) =
        schema.column_with_name(name.trim_matches('"')).ok_or_else(|| format!("there is no column {name}"))?;
    Ok(Filter { column, comparison, value: scalar(value.trim(), field.data_type())? })
}

/// The comparisons of a text, which `and` joins; those in quotes do not.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() && at >= start => {
                let word = text.get(at..).unwrap_or_default().trim_start();
                let behind = word.get(3..).filter(|_| word.get(..3).is_some_and(|and| and.eq_ignore_ascii_case("and")));
                if let Some(behind) = behind.filter(|behind| behind.starts_with(char::is_whitespace)) {
                    terms.push(text.get(start..at).unwrap_or_default());
                    start = text.len() - behind.len();
                }
            }
            None => {}
        }
    }
    terms.push(text.get(start..).unwrap_or_default());
    if terms.iter().all(|term| term.trim().is_empty()) { Vec::new() } else { terms }
}

/// Reads a constant as the type of its column wants it.
fn scalar(text: &str, data_type: &DataType) -> Result<Scalar, String> {
    Ok(match data_type {
        DataType::Dictionary(_, values) => return scalar(text, values),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Scalar::Text(unquoted(text)),
        DataType::Boolean => {
            let value = text.parse::<bool>();
            Scalar::Integer(value.map_err(|_| format!("the column has true and false, and {text} is neither"))?.into())
        }
        DataType::Float32 | DataType::Float64 => {
            Scalar::Float(text.parse().map_err(|_| format!("the column has numbers, and {text} is none"))?)
        }
        _ => {
            let number = match text.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16),
                None => text.parse(),
            };
            Scalar::Integer(number.map_err(|_| format!("the column has whole numbers, and {text} is none"))?)
        }
    })
}

/// A text without the quotes around it; within them a quote is twice.
fn unquoted(text: &str) -> String {
    let inner = |quote: char| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.replace(&String::from_iter([quote, quote]), quote.encode_utf8(&mut [0; 4])))
    };
    inner('\'').or_else(|| inner('"')).unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;

    use arrow_array::cast::AsArray as _;
    use arrow_array::types::UInt32Type;
    use arrow_array::{Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
    use arrow_schema::Field;

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("size", DataType::Int64, true),
            Field::new("thread", DataType::UInt32, false),
            Field::new("name", DataType::Utf8, false),
            Field::new("part", DataType::Float64, false),
        ])
    }

    /// The threads of the rows that pass.
    fn rows(predicate: &str) -> Result<Vec<u32>, ConditionError> {
        let size = Int64Array::from(vec![Some(1), None, Some(5), Some(9)]);
        let thread = UInt32Array::from(vec![0, 1, 2, 3]);
        let name = StringArray::from(vec!["a", "b", "x and y", "'"]);
        let part = Float64Array::from(vec![0.5, 0.25, -1.0, f64::NAN]);
        let columns = vec![Arc::new(size) as _, Arc::new(thread) as _, Arc::new(name) as _, Arc::new(part) as _];
        let batch = RecordBatch::try_new(schema().into(), columns).unwrap();
        let conditions = Conditions::parse(predicate, &schema())?;
        let all = conditions.select(None).rows(batch.clone()).unwrap();
        let threads = all.column(1).as_primitive::<UInt32Type>().values().to_vec();
        // The same where only this column is wanted, and columns that decide are read behind it.
        let selection = conditions.select(Some(&[1]));
        let narrow = selection.rows(batch.project(selection.columns().unwrap()).unwrap()).unwrap();
        assert_eq!(narrow.num_columns(), 1);
        assert_eq!(narrow.column(0).as_primitive::<UInt32Type>().values(), &threads[..]);
        Ok(threads)
    }

    #[test]
    fn rows_that_pass() {
        for (text, passed) in [
            ("", &[0, 1, 2, 3][..]),
            ("size > 1", &[2, 3]),
            ("size >= 1 AND thread<0x3", &[0, 2]),
            ("size <= 5\nand  thread = 0", &[0]),
            ("size != 5", &[0, 3]),
            ("size<>5 and thread == 3", &[3]),
            ("name = 'x and y'", &[2]),
            ("name = \"'\" and size=9", &[3]),
            ("name = ''''", &[3]),
            ("name = a", &[0]),
            ("\"thread\" = 1", &[1]),
            ("part < 0.5", &[1, 2]),
        ] {
            assert_eq!(rows(text).unwrap(), passed, "{text}");
        }
    }

    #[test]
    fn what_is_no_predicate() {
        for (text, message) in [
            ("size", "\"size\": expected a column, one of = != < <= > >=, and a value"),
            ("size ! 1", "expected a column"),
            ("size > ", "the column has whole numbers, and  is none"),
            ("sise = 1", "there is no column sise"),
            ("thread = -1", "column thread: -1 is outside of the column's numbers, UInt32"),
            ("size = 1 and", "and 1 and is none"),
            ("size = 1 and ", "expected a column"),
            ("and size = 1", "there is no column and size"),
            ("size = 99999999999999999999", "outside of the column's numbers"),
            ("é<", "there is no column é"),
            ("part = x", "the column has numbers, and x is none"),
        ] {
            let error = rows(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
