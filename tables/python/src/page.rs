//! Reports as pages.

use std::path::Path;

use metatf_page::{Form, Report, html_blocks, render};
use pyo3::prelude::*;

use crate::error;

/// The result of an analysis: notebooks display it, `print` prints it, and `to_dict` returns its exact values.
#[pyclass(frozen, module = "hatf")]
pub(crate) struct Page {
    page: metatf_page::Page,
    json: String,
}

impl Page {
    /// Returns the page of a report on a trace.
    pub(crate) fn new(path: &Path, report: &impl Report) -> PyResult<Self> {
        let json = serde_json::to_string(report).map_err(error::plain)?;
        let mut page = report.page();
        if page.title.is_empty() {
            page.title = path.display().to_string();
        }
        Ok(Self { page, json })
    }

    /// Returns a page that consists of a picture.
    pub(crate) fn of_picture(page: metatf_page::Page, json: String) -> Self {
        Self { page, json }
    }

    fn rendered(&self, form: Form) -> PyResult<String> {
        let mut out = Vec::new();
        render(&self.page, form, &mut out).map_err(error::plain)?;
        String::from_utf8(out).map_err(error::plain)
    }
}

#[pymethods]
impl Page {
    /// Subject of the page, such as the name of the trace.
    #[getter]
    fn title(&self) -> &str {
        &self.page.title
    }

    /// Return the page as JSON, like the command with `--format json`.
    fn to_json(&self) -> &str {
        &self.json
    }

    /// Return the page as dicts, lists and numbers.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    /// Return an HTML document without scripts.
    fn to_html(&self) -> PyResult<String> {
        self.rendered(Form::Html)
    }

    /// Return Markdown for issues and pull requests.
    fn to_markdown(&self) -> PyResult<String> {
        self.rendered(Form::Markdown)
    }

    /// Return the first picture. Raises hatf.Error if there is none.
    fn to_svg(&self) -> PyResult<String> {
        self.rendered(Form::Svg)
    }

    fn __str__(&self) -> PyResult<String> {
        self.rendered(Form::text(None))
    }

    fn __repr__(&self) -> String {
        format!("<hatf.Page {:?}>", self.page.title)
    }

    fn _repr_html_(&self) -> PyResult<String> {
        let mut out = Vec::new();
        html_blocks(self.page.blocks.iter().chain(&self.page.figures), &mut out).map_err(error::plain)?;
        String::from_utf8(out).map_err(error::plain)
    }

    fn _repr_markdown_(&self) -> PyResult<String> {
        self.to_markdown()
    }
}
