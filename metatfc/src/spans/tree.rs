//! Durations by what lies in what: a line for each kind of span below each kind that it is in.

use metatf_page::{Column, Flame, Table, Unit, Value};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};

/// Most lines: kinds of spans beyond them count as the one above.
const MOST: usize = 1 << 16;
/// Deepest lines.
const DEEPEST: usize = 64;

/// A kind of span in its place: the number of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node(usize);

#[derive(Default)]
pub(super) struct Tree {
    /// The first is above all.
    lines: Vec<Line>,
    places: HashMap<(usize, String), usize>,
}

#[derive(Default, Serialize)]
struct Line {
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    depth: usize,
    #[serde(skip)]
    below: Vec<usize>,
    count: u64,
    #[serde(rename = "total_ns")]
    total: u64,
    #[serde(rename = "self_ns")]
    own: u64,
    #[serde(rename = "busy_ns")]
    busy: Option<u64>,
}

/// A line with the path of names that leads to it.
#[derive(Serialize)]
struct WithPath<'t> {
    path: Vec<&'t str>,
    #[serde(flatten)]
    line: &'t Line,
}

impl Serialize for Tree {
    /// Serializes the tree as a list of lines.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = Vec::new();
        self.walk(|path, line| list.push(WithPath { path: path.to_vec(), line }));
        list.serialize(to)
    }
}

impl Tree {
    /// Returns the line of spans of this name below another.
    pub(super) fn node(&mut self, above: Option<Node>, name: &str) -> Node {
        if self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        let above = above.map_or(0, |above| above.0);
        let place = (above, name.to_owned());
        if let Some(known) = self.places.get(&place) {
            return Node(*known);
        }
        let number = self.lines.len();
        match self.lines.get_mut(above) {
            Some(line) if number < MOST && line.depth < DEEPEST => {
                line.below.push(number);
                let depth = line.depth + 1;
                self.lines.push(Line { name: name.to_owned(), depth, ..Line::default() });
                self.places.insert(place, number);
                Node(number)
            }
            _ => Node(above),
        }
    }

    /// Adds a span: its nanoseconds, those in which no span right below it was open, and those in which a thread was in it.
    pub(super) fn add(&mut self, node: Node, total: u64, own: u64, busy: Option<u64>) {
        let Some(line) = self.lines.get_mut(node.0) else { return };
        line.count += 1;
        line.total = line.total.saturating_add(total);
        line.own = line.own.saturating_add(own);
        if let Some(busy) = busy {
            line.busy = Some(line.busy.unwrap_or(0).saturating_add(busy));
        }
    }

    /// Returns the tree as a table; names are set in.
    pub(super) fn table(&self) -> Table {
        let names = ["count", "total", "self", "busy", "mean"].map(Column::new);
        let mut table = Table::new(names.into_iter().chain([Column::key("span")]));
        self.walk(|path, line| {
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

    /// Returns the times in which no span right below one was open.
    pub(super) fn flame(&self, title: String) -> Flame {
        let mut flame = Flame::new(title, Unit::Time);
        flame.root = self.calls(0);
        flame
    }

    /// Lines nest at most [`DEEPEST`] deep.
    fn calls(&self, number: usize) -> metatf_page::Node {
        let Some(line) = self.lines.get(number) else { return metatf_page::Node::default() };
        let below = line.below.iter().filter_map(|below| Some((self.lines.get(*below)?.name.clone(), *below)));
        let calls: BTreeMap<_, _> = below.map(|(name, below)| (name, self.calls(below))).collect();
        let total = calls.values().fold(line.own, |sum, call| sum.saturating_add(call.total));
        metatf_page::Node { total, calls }
    }

    /// Gives all lines that have spans, or that one below has, and the names that lead to each; those that took most first.
    fn walk<'t>(&'t self, mut take: impl FnMut(&[&'t str], &'t Line)) {
        let mut path = Vec::new();
        // Those that wait are on the heap.
        let mut next = self.sorted(0);
        while let Some(number) = next.pop() {
            let Some(line) = self.lines.get(number).filter(|_| !self.is_empty(number)) else { continue };
            path.truncate(line.depth - 1);
            path.push(line.name.as_str());
            take(&path, line);
            next.extend(self.sorted(number));
        }
    }

    /// Returns the lines below one, that which took most last.
    fn sorted(&self, above: usize) -> Vec<usize> {
        let mut below = self.lines.get(above).map(|line| line.below.clone()).unwrap_or_default();
        below.sort_by_key(|number| self.lines.get(*number).map(|line| (line.total, std::cmp::Reverse(*number))));
        below
    }

    /// Returns whether neither this line nor one below it has a span.
    fn is_empty(&self, number: usize) -> bool {
        let mut next = vec![number];
        while let Some(number) = next.pop() {
            match self.lines.get(number) {
                Some(line) if line.count == 0 => next.extend(&line.below),
                Some(_) => return false,
                None => {}
            }
        }
        true
    }
}
