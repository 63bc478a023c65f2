//! Text to syntax tree (spec 2): [`driver`] goes from item to item, pest parses each, [`build`] makes the tree.

mod build;
mod docs;
mod driver;
mod expected;
mod model;

use pest_derive::Parser;

pub(crate) use driver::parse;

/// pest's parser for `metatf.pest`.
#[derive(Parser)]
#[grammar = "metatf.pest"]
struct Grammar;
