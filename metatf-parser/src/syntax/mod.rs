//! Text to syntax tree (spec 2): [`driver`] goes from item to item, pest parses each by the grammar `metatf.pest`, [`build`],
//! [`values`] and [`model`] make the tree of its pairs, and [`expected`] puts an error into words.

mod build;
mod docs;
mod driver;
mod expected;
mod model;
mod plain;
mod values;

use pest_derive::Parser;

pub(crate) use driver::parse;

/// pest's parser for `metatf.pest`.
#[derive(Parser)]
#[grammar = "metatf.pest"]
struct Grammar;
