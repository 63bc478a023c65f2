//! A page and its blocks.

use std::borrow::Cow;

use serde::Serialize;

use crate::{AddressMap, Chart, Flame, Intervals, Note, Table, Value};

/// What a command has found: its JSON is what it serializes to, and what people read is its page.
///
/// Members of the JSON are added without a word; one that goes, or comes to mean something else, makes its version grow.
pub trait Report: Serialize {
    /// Makes the page.
    fn page(&self) -> Page;
}

/// A page: a title, and blocks in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What it is about, such as the name of a trace; empty: the page has no title.
    pub title: String,
    /// What it says.
    pub blocks: Vec<Block>,
    /// Pictures behind it, for forms that draw; text and Markdown leave them out.
    pub figures: Vec<Block>,
}

impl Page {
    /// Starts a page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a block.
    pub fn push(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }

    /// Adds a picture, for forms that draw.
    pub fn figure(&mut self, figure: impl Into<Block>) {
        self.figures.push(figure.into());
    }

    /// Adds a heading, to which the blocks behind it belong.
    pub fn heading(&mut self, heading: impl Into<Note>) {
        self.blocks.push(Block::Heading(heading.into()));
    }

    /// Adds a heading below the last one; an empty one sets what is behind it apart.
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
    /// What the blocks behind it are about.
    Heading(Note),
    /// What those up to the next heading are about, within what that one says; empty: they are set apart.
    Subheading(Note),
    /// A sentence.
    Note(Note),
    /// Named values.
    Facts(Facts),
    /// Rows of values.
    Table(Table),
    /// Lines over time, or over something else.
    Chart(Chart),
    /// What each call stack has of a total.
    Flame(Flame),
    /// Intervals beside each other.
    Intervals(Intervals),
    /// Memory by address.
    AddressMap(AddressMap),
}

/// Named values, each in a line of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Names, values, and remarks beside them.
    pub(crate) rows: Vec<(Cow<'static, str>, Value, Note)>,
}

impl Facts {
    /// Starts with nothing.
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
