//! Durations by what lies in what: a line for each kind of span below each kind that it is in.

use super::pairs::Done;
use super::table::duration;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;

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

#[derive(Default)]
struct Line {
    name: String,
    depth: usize,
    below: Vec<usize>,
    count: u64,
    total: u64,
    own: u64,
    busy: Option<u64>,
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

    pub(super) fn add(&mut self, done: &Done) {
        let Some(line) = self.lines.get_mut(done.node.0) else { return };
        line.count += 1;
        line.total = line.total.saturating_add(done.nanoseconds());
        line.own = line.own.saturating_add(done.own);
        if let Some(busy) = done.busy {
            line.busy = Some(line.busy.unwrap_or(0).saturating_add(busy));
        }
    }

    pub(super) fn text(&self, out: &mut Vec<u8>) {
        let mut text = String::new();
        let _ = writeln!(text, "{:>10} {:>10} {:>10} {:>10} {:>10}  span", "count", "total", "self", "busy", "mean");
        // Lines nest at most `DEEPEST` deep; those that wait are on the heap.
        let mut next = self.sorted(0);
        while let Some(number) = next.pop() {
            let Some(line) = self.lines.get(number) else { continue };
            if self.is_empty(number) {
                continue;
            }
            let busy = line.busy.map_or("-".to_owned(), duration);
            let [total, own, mean] = [line.total, line.own, line.total / line.count.max(1)].map(duration);
            let _ = write!(text, "{:>10} {total:>10} {own:>10} {busy:>10} {mean:>10}  ", line.count);
            text.extend(std::iter::repeat_n("  ", line.depth - 1));
            text.push_str(&metatf_cli::shown(&line.name));
            text.push('\n');
            next.extend(self.sorted(number));
        }
        out.extend_from_slice(text.as_bytes());
    }

    /// Returns the tree as a list of lines, each with the path of names that leads to it.
    pub(super) fn json(&self) -> Vec<Value> {
        let mut list = Vec::new();
        let mut next: Vec<(usize, Vec<&str>)> = self.sorted(0).into_iter().map(|number| (number, Vec::new())).collect();
        while let Some((number, mut path)) = next.pop() {
            let Some(line) = self.lines.get(number).filter(|_| !self.is_empty(number)) else { continue };
            path.push(&line.name);
            list.push(json!({"path": path, "count": line.count, "total_ns": line.total, "self_ns": line.own, "busy_ns": line.busy}));
            next.extend(self.sorted(number).into_iter().map(|below| (below, path.clone())));
        }
        list
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
