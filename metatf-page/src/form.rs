//! The forms of a page.

use std::io::{self, Write};

use crate::text::TextStyle;
use crate::{Page, html, markdown, svg, text};

/// How a page is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text, for a terminal or a file.
    Text(TextStyle),
    /// Markdown with tables, as issues and pull requests show it.
    Markdown,
    /// A document that a browser shows, without scripts, and without anything that is not in it.
    Html,
    /// The page's first picture.
    Svg,
}

impl Form {
    /// Text without colours.
    #[must_use]
    pub fn text(width: Option<usize>) -> Self {
        Self::Text(TextStyle { width, colour: false })
    }
}

/// Prints a page.
///
/// # Errors
/// The output's; and [`InvalidInput`](io::ErrorKind::InvalidInput) if a page without a picture shall be SVG.
pub fn render(page: &Page, form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Text(style) => text::page(page, style, out),
        Form::Markdown => markdown::page(page, out),
        Form::Html => html::page(page, out),
        Form::Svg => svg::page(page, out),
    }
}
