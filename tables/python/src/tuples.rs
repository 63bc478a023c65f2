//! Records as named tuples of Python values, with one class per record type of a DTD.
//!
//! | field | value |
//! | --- | --- |
//! | number | `int`; `float` for `f32` and `f64`, `bool` for `bool`, text for addresses and characters |
//! | named values | the name, or an `int` if the value has no name |
//! | named bits | a list of the names |
//! | bytes | `str` if the DTD declares text and the bytes are valid text; otherwise `bytes` |
//! | reference into a stream section | if elements are texts, the text of the element, or None if there is no such element; otherwise the offset, an `int` |
//! | nested record | its tuple |
//! | repetition | a list; for an optional value, the value or None |
//! | records in a byte array | a list of their tuples, or `bytes` if the array does not contain records |

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use metatf::ErrorKind;
use metatf::dynamic::{Item as Value, Nested, OwnedRecord, Schema, Trace};
use metatf::format::Interpretation;
use metatf::reader::At;
use metatf_parser::schema::{Format, Item, Leaf, LeafId, Names, Record, Repeated};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// The classes of a schema's records.
pub(crate) struct Classes {
    schema: Schema,
    /// Classes by record index and address of the items. For the record's own items, the address is replaced by 0.
    classes: HashMap<(u16, usize), Py<PyAny>>,
    namedtuple: Py<PyAny>,
    is_keyword: Py<PyAny>,
}

impl Classes {
    pub(crate) fn new(py: Python<'_>, schema: &Schema) -> PyResult<Self> {
        let schema = Schema { dtd: Arc::clone(&schema.dtd), format: Arc::clone(&schema.format) };
        Ok(Self {
            schema,
            classes: HashMap::new(),
            namedtuple: py.import("collections")?.getattr("namedtuple")?.unbind(),
            is_keyword: py.import("keyword")?.getattr("iskeyword")?.unbind(),
        })
    }

    /// Returns the class of a record's tuples.
    pub(crate) fn of(&mut self, py: Python<'_>, record: u16) -> PyResult<Py<PyAny>> {
        let schema = self.schema.clone();
        match schema.record(record) {
            Some(of) => self.class(py, of, record, &of.name, &of.items),
            None => Err(crate::error::plain("the DTD has no such record")),
        }
    }

    /// Returns the class of items. Items are identified by their address, which does not change while the schema
    /// exists.
    fn class(&mut self, py: Python<'_>, of: &Record, record: u16, name: &str, items: &[Item]) -> PyResult<Py<PyAny>> {
        let key = (record, if std::ptr::eq(items, &*of.items) { 0 } else { items.as_ptr() as usize });
        if let Some(class) = self.classes.get(&key) {
            return Ok(class.clone_ref(py));
        }
        let names = keys(of, items).map(|key| self.python_name(py, key)).collect::<PyResult<Vec<_>>>()?;
        let options = PyDict::new(py);
        options.set_item("rename", true)?;
        options.set_item("module", "hatf")?;
        let class = self.namedtuple.bind(py).call((self.python_name(py, name)?, names), Some(&options))?;
        if let (0, Some(doc)) = (key.1, &of.doc) {
            class.setattr("__doc__", doc)?;
        }
        let class = class.unbind();
        self.classes.insert(key, class.clone_ref(py));
        Ok(class)
    }

    /// Converts a DTD name to a valid Python name: `class_`, `point_x`. Leading underscores are replaced by a trailing
    /// one.
    fn python_name(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let plain: String = name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
        let trimmed = plain.trim_start_matches('_');
        let is_keyword: bool = self.is_keyword.bind(py).call1((trimmed,))?.extract()?;
        Ok(if is_keyword || trimmed.len() < plain.len() { format!("{trimmed}_") } else { plain })
    }
}

/// Returns the keys of the visible items.
fn keys<'r>(of: &'r Record, items: &'r [Item]) -> impl Iterator<Item = &'r str> {
    items.iter().filter_map(|item| match item {
        Item::Leaf(id) => of.leaf(*id).filter(|leaf| !leaf.is_implied()).map(|leaf| &*leaf.key),
        Item::Nested { key, .. } | Item::Repeat { key, .. } => Some(&**key),
    })
}

/// Builds the tuple of the record at `at` from its values `owned`. References are looked up in the trace.
pub(crate) fn tuple(
    py: Python<'_>,
    classes: &mut Classes,
    trace: &mut Trace<'static>,
    at: At,
    owned: &OwnedRecord,
) -> Made {
    let order = trace.reader().order();
    let mut making = Making {
        py,
        schema: classes.schema.clone(),
        classes,
        from: Some((trace, at)),
        nested: Nested::new(order),
        failed: None,
    };
    making.record(at.record, owned)
}

/// A builder of tuples.
struct Making<'m> {
    py: Python<'m>,
    schema: Schema,
    classes: &'m mut Classes,
    /// The trace in which references are looked up.
    from: Option<(&'m mut Trace<'static>, At)>,
    nested: Nested,
    /// An error that could not be passed through the reader of nested records.
    failed: Option<Failed>,
}

/// A record whose values are consumed in order.
struct Taking<'t> {
    of: &'t Record,
    index: u16,
    owned: &'t OwnedRecord,
    next: usize,
    /// The last number of each leaf, which may be a count.
    last: Vec<u64>,
}

impl<'t> Taking<'t> {
    fn take(&mut self, id: LeafId, leaf: &Leaf) -> Value<'t> {
        if leaf.is_tag() {
            return Value::Number(self.of.tag.unwrap_or(0).into());
        }
        let value = self.owned.get(self.next).unwrap_or(Value::Number(0));
        self.next += 1;
        if let (Value::Number(n), Some(last)) = (value, self.last.get_mut(usize::from(id.0))) {
            *last = n;
        }
        value
    }

    fn count(&self, id: LeafId) -> u64 {
        self.last.get(usize::from(id.0)).copied().unwrap_or(0)
    }
}

impl Making<'_> {
    fn record(&mut self, index: u16, owned: &OwnedRecord) -> Made {
        let schema = self.schema.clone();
        let Some(of) = schema.record(index) else { return Ok(self.py.None()) };
        let counts = of.leaves.iter().any(|leaf| leaf.repeated);
        let mut taking = Taking { of, index, owned, next: 0, last: vec![0; if counts { of.leaves.len() } else { 0 }] };
        self.items(&mut taking, &of.name, &of.items)
    }

    /// Builds the tuple of items. Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn items(&mut self, taking: &mut Taking<'_>, name: &str, items: &[Item]) -> Made {
        let (of, index) = (taking.of, taking.index);
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Leaf(id) => {
                    let Some(leaf) = of.leaf(*id) else { continue };
                    let value = taking.take(*id, leaf);
                    if !leaf.is_implied() {
                        values.push(self.value(*id, leaf, value)?);
                    }
                }
                Item::Nested { record, items, .. } => values.push(self.group(taking, record, items)?),
                Item::Repeat { count, body, .. } if of.is_optional(*count) => values.push(match taking.count(*count) {
                    0 => self.py.None(),
                    _ => self.repeated(taking, body)?,
                }),
                Item::Repeat { count, body, .. } => {
                    let list = PyList::empty(self.py);
                    for _ in 0..taking.count(*count) {
                        list.append(self.repeated(taking, body)?)?;
                    }
                    values.push(list.into_any().unbind());
                }
            }
        }
        let class = self.classes.class(self.py, of, index, name, items)?;
        Ok(class.call1(self.py, PyTuple::new(self.py, values)?)?)
    }

    fn repeated(&mut self, taking: &mut Taking<'_>, body: &Repeated) -> Made {
        match body {
            Repeated::Leaf(id) => match taking.of.leaf(*id) {
                Some(leaf) => {
                    let value = taking.take(*id, leaf);
                    self.value(*id, leaf, value)
                }
                None => Ok(self.py.None()),
            },
            Repeated::Group(items) => self.group(taking, "item", items),
            Repeated::Record { record, items, .. } => self.group(taking, record, items),
        }
    }

    /// Builds the tuple of a nested record, or only the data of a `vfield`.
    fn group(&mut self, taking: &mut Taking<'_>, name: &str, items: &[Item]) -> Made {
        match items {
            [Item::Leaf(length), Item::Leaf(data)] if name == "vfield" => {
                let (Some(length_leaf), Some(data_leaf)) = (taking.of.leaf(*length), taking.of.leaf(*data)) else {
                    return Ok(self.py.None());
                };
                let _ = taking.take(*length, length_leaf);
                let value = taking.take(*data, data_leaf);
                self.value(*data, data_leaf, value)
            }
            _ => self.items(taking, name, items),
        }
    }

    fn value(&mut self, id: LeafId, leaf: &Leaf, value: Value<'_>) -> Made {
        match value {
            Value::Bytes(bytes) => match leaf.section {
                Some(section) => self.records(section, bytes),
                None => Ok(bytes_value(self.py, leaf.format, bytes)?),
            },
            Value::Number(number) => match self.element(id, number)? {
                Some(element) => Ok(element),
                None => Ok(number_value(self.py, leaf, number)?),
            },
        }
    }

    /// Returns the text that a leaf of the trace's record refers to, or Python's `None` if the reference is dangling.
    /// Returns `None` if the leaf does not refer to a text.
    fn element(&mut self, id: LeafId, offset: u64) -> Made<Option<Py<PyAny>>> {
        let Some((trace, at)) = &mut self.from else { return Ok(None) };
        let Some(Interpretation::SectionOffset(number)) = trace.reader().interpretation(*at, id.0) else {
            return Ok(None);
        };
        let Some(section) = self.schema.format.section_index(number) else { return Ok(None) };
        let Some(element) = self.schema.section(section).and_then(|section| section.stream) else { return Ok(None) };
        if !self.schema.dtd.record(element).is_some_and(is_text) {
            return Ok(None);
        }
        let mut owned = OwnedRecord::default();
        let found = trace.reader_mut().element_at(section, offset, |row| owned.decode(row));
        if let Err(mut error) = found {
            if matches!(error.kind, ErrorKind::NoOffset { .. }) {
                return Ok(Some(self.py.None()));
            }
            error.place.section = self.schema.section(at.section).map(|section| section.number);
            error.place.tag = self.schema.record(at.record).and_then(|record| record.tag);
            error.place.leaf = Some(id.0);
            return Err(Failed::Trace(error));
        }
        let element = u16::try_from(element.0).map_err(crate::error::plain)?;
        let from = self.from.take();
        let made = self.record(element, &owned);
        self.from = from;
        let made = made?.into_bound(self.py);
        let only = made.cast::<PyTuple>().ok().filter(|tuple| tuple.len() == 1);
        let only = only.map(|tuple| tuple.get_item(0)).transpose()?;
        Ok(Some(only.unwrap_or(made).unbind()))
    }

    /// Builds the tuples of the records in a byte array.
    fn records(&mut self, section: u8, bytes: &[u8]) -> Made {
        let (schema, from) = (self.schema.clone(), self.from.take());
        let list = PyList::empty(self.py);
        let mut nested = std::mem::replace(&mut self.nested, Nested::new(metatf::container::Order::Little));
        let whole = nested.read(&schema, (section, bytes), &mut |_, record, owned| {
            let appended = self.record(record, owned).and_then(|tuple| Ok(list.append(tuple)?));
            appended.map_err(|error| {
                self.failed = Some(error);
                metatf::Error::at(0, metatf::ErrorKind::Usage("a record could not be converted to Python"))
            })
        });
        (self.nested, self.from) = (nested, from);
        match self.failed.take() {
            Some(error) => Err(error),
            None if whole => Ok(list.into_any().unbind()),
            None => Ok(PyBytes::new(self.py, bytes).into_any().unbind()),
        }
    }
}

/// The reason that a tuple could not be built.
pub(crate) enum Failed {
    /// An error in the trace: a reference to a missing element.
    Trace(metatf::Error),
    /// A Python exception.
    Python(PyErr),
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Failed {
    /// Converts the error to an exception with the name of the file.
    pub(crate) fn of(self, path: &Path, schema: &Schema) -> PyErr {
        match self {
            Self::Trace(error) => crate::error::of_trace(path, schema, &error),
            Self::Python(error) => error,
        }
    }
}

type Made<T = Py<PyAny>> = Result<T, Failed>;

/// Returns whether a record consists of exactly one text.
fn is_text(record: &Record) -> bool {
    let text = |id: &LeafId| {
        let is_text = |leaf: &&Leaf| matches!(leaf.format, Format::Utf8 | Format::CString);
        record.leaf(*id).filter(|leaf| !leaf.is_numeric()).is_some_and(|leaf| is_text(&leaf))
    };
    let is_implied = |item: &&Item| matches!(item, Item::Leaf(id) if record.leaf(*id).is_some_and(Leaf::is_implied));
    let mut shown = record.items.iter().filter(|item| !is_implied(item));
    let is_first = match shown.next() {
        Some(Item::Leaf(id)) => text(id),
        Some(Item::Nested { record, items, .. }) if record == "vfield" => match items.as_slice() {
            [Item::Leaf(_), Item::Leaf(data)] => text(data),
            _ => false,
        },
        _ => false,
    };
    is_first && shown.next().is_none()
}

fn bytes_value(py: Python<'_>, format: Format, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    if let Some(word) = format.word_of_bytes(bytes) {
        return word.into_py_any(py);
    }
    match format.text_of_bytes(bytes) {
        Some(text) if matches!(format.tail_of_bytes(bytes), [] | [0]) => text.into_py_any(py),
        _ => Ok(PyBytes::new(py, bytes).into_any().unbind()),
    }
}

fn number_value(py: Python<'_>, leaf: &Leaf, number: u64) -> PyResult<Py<PyAny>> {
    match (&leaf.names, leaf.names.text(number)) {
        (Names::Flags(_), _) if number == 0 => return PyList::empty(py).into_py_any(py),
        (Names::Flags(_), names) => {
            let names = names.map_or_else(|| format!("{number:#x}"), Into::into);
            return PyList::new(py, names.split('|'))?.into_py_any(py);
        }
        (_, Some(name)) => return name.into_py_any(py),
        _ => {}
    }
    match leaf.format {
        Format::Signed => number.cast_signed().into_py_any(py),
        format if let Some(float) = format.float(number) => float.into_py_any(py),
        Format::Bool if number <= 1 => (number == 1).into_py_any(py),
        Format::Ipv4 | Format::Char | Format::Chars | Format::CharsLe => match leaf.format.word(number) {
            Some(word) => word.into_py_any(py),
            None => number.into_py_any(py),
        },
        _ => number.into_py_any(py),
    }
}
