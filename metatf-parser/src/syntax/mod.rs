//! Text to syntax tree (spec 2): [`driver`] goes from item to item, [`items`], [`values`] and [`model`] are the grammar, by
//! recursive descent on a [`cursor`] over the tokens, and [`expected`] puts an error into words.

mod cursor;
mod docs;
mod driver;
mod expected;
mod items;
mod model;
mod values;

pub(crate) use driver::parse;
