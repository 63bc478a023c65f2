//! The durations of nested spans, with one line per span kind and path of enclosing kinds.

use metatf_page::{Column, Flame, Table, Unit, Value};
use metatf_tools::spans::{Node, Tree};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The lines of a tree, each with the names on its path.
pub(super) struct Lines<'t>(pub(super) &'t Tree);

#[derive(Serialize)]
struct Line<'t> {
    path: Vec<&'t str>,
    count: u64,
    total_ns: u64,
    self_ns: u64,
    busy_ns: Option<u64>,
}

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = Vec::new();
        self.0.walk(|path, line| {
            let (path, count, total_ns, self_ns, busy_ns) =
                (path.to_vec(), line.count, line.total, line.own, line.busy);
            list.push(Line { path, count, total_ns, self_ns, busy_ns });
        });
        list.serialize(to)
    }
}

/// Returns a tree as a table with indented names.
pub(super) fn table(tree: &Tree) -> Table {
    let names = ["count", "total", "self", "busy", "mean"].map(Column::new);
    let mut table = Table::new(names.into_iter().chain([Column::key("span")]));
    tree.walk(|path, line| {
        let Some((name, above)) = path.split_last() else { return };
        table.row([
            Value::Count(line.count),
            Value::Time(line.total),
            Value::Time(line.own),
            line.busy.map_or(Value::Unknown, Value::Time),
            Value::Time(line.total / line.count.max(1)),
            Value::text(format!("{}{name}", "  ".repeat(above.len()))),
        ]);
    });
    table
}

/// Returns a flame graph of the time in which no direct child span was open.
pub(super) fn flame(tree: &Tree, title: String) -> Flame {
    let mut flame = Flame::new(title, Unit::Time);
    flame.root = calls(tree, tree.root());
    flame
}

/// Converts a node and its children. A tree is at most 64 levels deep.
fn calls(tree: &Tree, node: Node) -> metatf_page::Node {
    let Some(line) = tree.line(node) else { return metatf_page::Node::default() };
    let calls: BTreeMap<_, _> = tree.below(node).map(|(name, below)| (name.to_owned(), calls(tree, below))).collect();
    let total = calls.values().fold(line.own, |sum, call| sum.saturating_add(call.total));
    metatf_page::Node { total, calls }
}
