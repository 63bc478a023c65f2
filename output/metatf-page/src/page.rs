//! Pages and their blocks.

use std::borrow::Cow;

use serde::Serialize;

use crate::{AddressMap, Chart, Flame, Intervals, Note, Table, Value};

/// The result of a command, which serializes to JSON and can be printed as a page.
///
/// JSON members may be added at any time; the version is incremented when a member is removed or changes its meaning.
///
/// # Examples
///
/// ```
/// use metatf_page::{Form, Note, Page, Report, Value, render};
///
/// #[derive(serde::Serialize)]
/// struct Live {
///     bytes: u64,
/// }
///
/// impl Report for Live {
///     fn page(&self) -> Page {
///         let mut page = Page::new("grep.mtf");
///         page.push(Note::new("{} live at the end").with([Value::Bytes(self.bytes)]));
///         page
///     }
/// }
///
/// let mut out = Vec::new();
/// render(&Live { bytes: 14_848 }.page(), Form::Markdown, &mut out)?;
/// assert_eq!(out, b"## grep.mtf\n\n14.5 KiB live at the end\n\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Report: Serialize {
    /// Creates the page.
    fn page(&self) -> Page;
}

/// A page: a title and blocks in reading order. See the [crate] documentation for an example.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The subject, such as the name of a trace; empty if the page has no title.
    pub title: String,
    /// The content.
    pub blocks: Vec<Block>,
    /// Pictures at the end, for graphical formats; text and Markdown omit them.
    pub figures: Vec<Block>,
}

impl Page {
    /// Creates an empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a block.
    pub fn push(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }

    /// Adds a picture for graphical formats.
    pub fn figure(&mut self, figure: impl Into<Block>) {
        self.figures.push(figure.into());
    }

    /// Adds a heading for the following blocks.
    pub fn heading(&mut self, heading: impl Into<Note>) {
        self.blocks.push(Block::Heading(heading.into()));
    }

    /// Adds a heading of the second level. If it is empty, the following blocks are only separated from the previous
    /// ones.
    pub fn subheading(&mut self, heading: impl Into<Note>) {
        self.blocks.push(Block::Subheading(heading.into()));
    }

    /// Adds a sentence without values.
    pub fn note(&mut self, text: impl Into<Cow<'static, str>>) {
        self.push(Note::new(text));
    }
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading for the following blocks.
    Heading(Note),
    /// A second-level heading; if it is empty, the following blocks are only separated from the previous ones.
    Subheading(Note),
    /// A sentence.
    Note(Note),
    /// Named values.
    Facts(Facts),
    /// Rows of values.
    Table(Table),
    /// Quantities over time or another axis.
    Chart(Chart),
    /// A total, divided among call stacks.
    Flame(Flame),
    /// Intervals drawn next to each other.
    Intervals(Intervals),
    /// A map of the address space.
    AddressMap(AddressMap),
}

/// Named values, each on its own line.
///
/// # Examples
///
/// ```
/// use metatf_page::{Facts, Form, Note, Page, Value, render};
///
/// let share = Note::new("{} of all").with([Value::Part(1, 3)]);
/// let mut page = Page::default();
/// page.push(Facts::new().and("objects", Value::Count(3_316)).and_said("bytes", Value::Bytes(283_194), share));
///
/// let mut out = Vec::new();
/// render(&page, Form::text(None), &mut out)?;
/// assert_eq!(String::from_utf8(out)?, "  objects    3,316\n  bytes    276 KiB  33.3% of all\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Names, values, and remarks.
    pub(crate) rows: Vec<(Cow<'static, str>, Value, Note)>,
}

impl Facts {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    #[must_use]
    pub fn and(self, name: impl Into<Cow<'static, str>>, value: Value) -> Self {
        self.and_said(name, value, Note::default())
    }

    /// Adds a value with a remark.
    #[must_use]
    pub fn and_said(mut self, name: impl Into<Cow<'static, str>>, value: Value, remark: impl Into<Note>) -> Self {
        self.rows.push((name.into(), value, remark.into()));
        self
    }
}

macro_rules! blocks {
    ($($block:ident)*) => {$(
        impl From<$block> for Block {
            fn from(block: $block) -> Self {
                Self::$block(block)
            }
        }
    )*};
}

blocks! { Note Facts Table Chart Flame Intervals AddressMap }
