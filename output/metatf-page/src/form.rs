//! The output formats of a page.

use std::io::{self, Write};

use crate::text::TextStyle;
use crate::{Page, html, markdown, svg, text};

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for a terminal or a file.
    Text(TextStyle),
    /// Markdown with tables, for issues and pull requests.
    Markdown,
    /// A self-contained HTML document without scripts.
    Html,
    /// The first picture of the page.
    Svg,
}

impl Form {
    /// Returns the text format without colors.
    #[must_use]
    pub fn text(width: Option<usize>) -> Self {
        Self::Text(TextStyle { width, colour: false })
    }
}

/// Prints a page.
///
/// # Errors
/// Returns the error of the output, or [`InvalidInput`](io::ErrorKind::InvalidInput) if the form is SVG and the page
/// has no picture.
pub fn render(page: &Page, form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Text(style) => text::page(page, style, out),
        Form::Markdown => markdown::page(page, out),
        Form::Html => html::page(page, out),
        Form::Svg => svg::page(page, out),
    }
}
