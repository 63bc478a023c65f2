//! Parses text to a syntax tree (spec 2). [`driver`] iterates over items, and pest parses each item with the grammar
//! `metatf.pest`. [`build`], [`values`] and [`model`] convert the pairs to the tree. If an item cannot be parsed, [`correct`]
//! suggests the line to write, and otherwise [`expected`] describes the error. [`reach`] locates the first error in an
//! edited item.

mod build;
mod correct;
mod docs;
mod driver;
mod expected;
mod model;
mod plain;
mod reach;
mod values;

use pest_derive::Parser;

pub(crate) use driver::parse;
pub(crate) use reach::{Block, first_mistake, open_blocks};

/// The pest parser for `metatf.pest`.
#[derive(Parser)]
#[grammar = "metatf.pest"]
struct Grammar;
