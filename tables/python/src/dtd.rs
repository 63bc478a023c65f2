//! The declarations of a DTD, as Python objects.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use metatf::dynamic::Schema;
use metatf_parser::MOST_BYTES;
use metatf_parser::schema::{self, LeafId, RecordId};
use metatf_tools::built_in;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error;
use crate::html::Html;

/// A trace format: sections, records and fields. `source` is the text of a DTD, or a file given by a path or by a
/// string that ends with `.dtd`. A DTD that comes with the project, such as `heap.dtd`, needs no file.
///
/// >>> dtd = hatf.Dtd('''section s 1 {
/// ...     // A tick of the clock.
/// ...     tick: (tag, n) { tag.value = 4; n.width = 2; n.interpretation = delta 0; n.unit = "ms"; }
/// ... }''')
/// >>> dtd
/// <hatf.Dtd of 1 record>
/// >>> dtd["tick"].doc
/// 'A tick of the clock.'
/// >>> [(f.name, f.width, f.interpretation, f.unit) for f in dtd["tick"].fields]
/// [('n', '2', 'delta 0', 'ms')]
#[pyclass(frozen, module = "hatf")]
pub(crate) struct Dtd {
    pub(crate) schema: Schema,
}

/// A section of a DTD.
#[pyclass(frozen, get_all, module = "hatf")]
pub(crate) struct Section {
    /// Section number; 0 for the global section.
    number: u8,
    /// Section name; None for the global section.
    name: Option<String>,
    /// Comment, or None.
    doc: Option<String>,
    /// Whether it is a stream section, which contains elements of one record type without tags.
    stream: bool,
}

/// A record type.
#[pyclass(frozen, get_all, module = "hatf")]
pub(crate) struct Record {
    /// Record name.
    name: String,
    /// Name of the section; None for a record of all sections.
    section: Option<String>,
    /// Tag; None for the element of a stream section.
    tag: Option<u32>,
    /// Comment, or None.
    doc: Option<String>,
    /// Fields, without tag and constants.
    fields: Vec<Py<Field>>,
}

/// A field of a record.
#[pyclass(frozen, get_all, module = "hatf")]
pub(crate) struct Field {
    /// Field name, preceded by the names of the enclosing fields: `point.x`.
    name: String,
    /// Width in bytes, or the expression that computes it, as text.
    width: String,
    /// Interpretation of the stored bytes in DTD syntax: `delta 0`.
    interpretation: String,
    /// Display format, such as `hex`; None if the DTD does not specify it.
    format: Option<&'static str>,
    /// Unit of the values, or None.
    unit: Option<String>,
    /// Comment, or None.
    doc: Option<String>,
    /// Names of values or bits, each with its number.
    names: Vec<(u64, String)>,
    /// Whether the field is inside a repetition.
    repeated: bool,
}

impl Dtd {
    /// Finds a record by `name` or `section.name`. Returns the indices of the section and of the record.
    pub(crate) fn find(&self, name: &str) -> PyResult<(usize, u16)> {
        let dtd = &self.schema.dtd;
        let (section, record) = match name.split_once('.') {
            Some((section, record)) => (Some(section), record),
            None => (None, name),
        };
        let mut found: Vec<(usize, u32)> = Vec::new();
        for (number, of) in dtd.sections.iter().enumerate() {
            if section.is_some_and(|wanted| of.name.as_deref() != Some(wanted)) {
                continue;
            }
            let listed = of.records.iter().filter(|id| id.0 > schema::METADATA.0);
            let named = listed.filter(|id| dtd.record(**id).is_some_and(|known| known.name == record));
            found.extend(named.map(|id| (number, id.0)));
        }
        // The global section lists the records of all sections, but contains no records itself if there are other
        // sections.
        if found.len() > 1 && section.is_none() {
            found.retain(|(number, _)| *number != 0);
        }
        match *found.as_slice() {
            [(section, record)] => u16::try_from(record).map(|record| (section, record)).map_err(error::plain),
            [] => Err(PyKeyError::new_err(format!(
                "the DTD has no record {name:?}; available records: {}",
                self.names().join(", ")
            ))),
            _ => {
                let of = |section: usize| dtd.sections.get(section).and_then(|section| section.name.clone());
                let names =
                    found.iter().filter_map(|(section, _)| of(*section)).map(|section| format!("{section}.{record}"));
                let names = names.collect::<Vec<_>>().join(", ");
                Err(PyKeyError::new_err(format!("several sections contain a record {name:?}: use one of {names}")))
            }
        }
    }

    /// Returns the names of the data records and elements.
    pub(crate) fn names(&self) -> Vec<String> {
        let records = self.schema.dtd.records.iter().skip(schema::METADATA.0 as usize + 1);
        let mut names: Vec<String> = records.map(|record| record.name.clone()).collect();
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    fn described(&self, py: Python<'_>, section: Option<usize>, index: u32) -> PyResult<Py<Record>> {
        let dtd = &self.schema.dtd;
        let record = dtd.record(RecordId(index)).ok_or_else(|| PyKeyError::new_err(index))?;
        let fields = (0..=u8::MAX).map(LeafId).zip(&record.leaves).filter(|(_, leaf)| !leaf.is_implied());
        let fields = fields.map(|(_, leaf)| {
            let format = leaf.format.name();
            Py::new(
                py,
                Field {
                    name: leaf.path.join("."),
                    width: record.width_text(&leaf.width),
                    interpretation: dtd.interpretation_text(record, leaf),
                    format: (!format.is_empty()).then_some(format),
                    unit: leaf.unit.clone(),
                    doc: leaf.doc.clone(),
                    names: leaf.names.list().to_vec(),
                    repeated: leaf.repeated,
                },
            )
        });
        let section = section.or_else(|| record.section.map(|section| usize::from(section.0)));
        let of_section = section.and_then(|section| dtd.sections.get(section));
        Py::new(
            py,
            Record {
                name: record.name.clone(),
                section: of_section.and_then(|section| section.name.clone()),
                tag: record.tag,
                doc: record.doc.clone(),
                fields: fields.collect::<PyResult<_>>()?,
            },
        )
    }
}

/// Reads a DTD from a file.
fn read(path: PathBuf) -> PyResult<Schema> {
    if let Some((name, text)) = path.to_str().and_then(built_in::find).filter(|_| !path.exists()) {
        return Schema::parse(name, text.as_bytes()).map_err(|problem| error::of_dtd(&problem));
    }
    let mut text = Vec::new();
    let opened = File::open(&path).and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut text));
    opened.map_err(|problem| error::of_system(&path, &problem))?;
    Schema::parse(&path.display().to_string(), &text).map_err(|problem| error::of_dtd(&problem))
}

#[pymethods]
impl Dtd {
    #[new]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let schema = match source.cast::<PyString>() {
            Ok(text) if !is_name(text.to_str()?) => {
                Schema::parse("<text>", text.to_str()?.as_bytes()).map_err(|problem| error::of_dtd(&problem))?
            }
            _ => read(source.extract()?)?,
        };
        Ok(Self { schema })
    }

    /// Text of the DTD.
    #[getter]
    fn text(&self) -> &str {
        &self.schema.dtd.text
    }

    /// Comment at the beginning of the DTD, or None.
    #[getter]
    fn doc(&self) -> Option<&str> {
        self.schema.dtd.doc.as_deref()
    }

    /// Sections, without the global one.
    #[getter]
    fn sections(&self) -> Vec<Section> {
        let sections = self.schema.dtd.sections.iter().skip(1);
        let section = |of: &schema::Section| Section {
            number: of.number,
            name: of.name.clone(),
            doc: of.doc.clone(),
            stream: of.stream.is_some(),
        };
        sections.map(section).collect()
    }

    /// Records, without comments and metadata.
    #[getter]
    fn records(&self, py: Python<'_>) -> PyResult<Vec<Py<Record>>> {
        let first = schema::METADATA.0 + 1;
        let indices = (first..).zip(self.schema.dtd.records.iter().skip(first as usize));
        indices.map(|(index, _)| self.described(py, None, index)).collect()
    }

    /// Return the record with this name, or with the name `section.name`.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Record>> {
        let (section, record) = self.find(name)?;
        self.described(py, Some(section), u32::from(record))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    fn __repr__(&self) -> String {
        let records = self.schema.dtd.records.len() - (schema::METADATA.0 as usize + 1);
        format!("<hatf.Dtd of {records} record{}>", if records == 1 { "" } else { "s" })
    }

    pub(crate) fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let mut html = Html::table(["record", "field", "width", "interpretation", "unit", "meaning"]);
        for record in self.records(py)? {
            let record = record.get();
            html.row([&*record.name, "", "", "", "", record.doc.as_deref().unwrap_or_default()]);
            for field in &record.fields {
                let field = field.get();
                let (unit, doc) = (field.unit.as_deref().unwrap_or_default(), field.doc.as_deref().unwrap_or_default());
                html.row(["", &*field.name, &*field.width, &*field.interpretation, unit, doc]);
            }
        }
        Ok(html.finish())
    }
}

/// Returns whether a text is a file name rather than a DTD.
fn is_name(text: &str) -> bool {
    text.ends_with(".dtd") && !text.contains(['{', '\n'])
}

#[pymethods]
impl Section {
    fn __repr__(&self) -> String {
        format!("<hatf.Section {} {}>", self.name.as_deref().unwrap_or("global"), self.number)
    }
}

#[pymethods]
impl Record {
    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.fields.iter().map(|field| &*field.get().name).collect();
        format!("<hatf.Record {}({})>", self.name, names.join(", "))
    }
}

#[pymethods]
impl Field {
    fn __repr__(&self) -> String {
        format!("<hatf.Field {}: {} bytes, {}>", self.name, self.width, self.interpretation)
    }
}

/// Wraps the schema used to read a trace.
pub(crate) fn of_schema(schema: &Schema) -> Dtd {
    Dtd { schema: Schema { dtd: Arc::clone(&schema.dtd), format: Arc::clone(&schema.format) } }
}
