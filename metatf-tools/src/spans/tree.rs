//! Durations by what lies in what: a line for each kind of span below each kind that it is in.

use std::collections::HashMap;

/// Most lines: kinds of spans beyond them count as the one above.
const MOST: usize = 1 << 16;
/// Deepest lines.
const DEEPEST: usize = 64;

/// A kind of span in its place: the number of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(usize);

/// The lines.
#[derive(Debug, Default)]
pub struct Tree {
    /// The first is above all.
    lines: Vec<Line>,
    places: HashMap<(usize, String), usize>,
}

/// A line: spans of one name below one other line.
#[derive(Debug, Default)]
pub struct Line {
    name: String,
    depth: usize,
    below: Vec<usize>,
    /// How many spans there are.
    pub count: u64,
    /// The nanoseconds that they took.
    pub total: u64,
    /// Those in which no span right below one was open.
    pub own: u64,
    /// Those in which a thread was in one, if one was ever entered.
    pub busy: Option<u64>,
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
    pub fn add(&mut self, node: Node, total: u64, own: u64, busy: Option<u64>) {
        let Some(line) = self.lines.get_mut(node.0) else { return };
        line.count += 1;
        line.total = line.total.saturating_add(total);
        line.own = line.own.saturating_add(own);
        if let Some(busy) = busy {
            line.busy = Some(line.busy.unwrap_or(0).saturating_add(busy));
        }
    }

    /// Returns the line above all, whose spans are none.
    #[must_use]
    pub fn root(&self) -> Node {
        Node(0)
    }

    /// Returns the lines right below one, with their names. Lines nest at most 64 deep.
    pub fn below(&self, node: Node) -> impl Iterator<Item = (&str, Node)> {
        let below = self.lines.get(node.0).map(|line| line.below.as_slice()).unwrap_or_default();
        below.iter().filter_map(|below| Some((self.lines.get(*below)?.name.as_str(), Node(*below))))
    }

    /// Returns what a line has.
    #[must_use]
    pub fn line(&self, node: Node) -> Option<&Line> {
        self.lines.get(node.0)
    }

    /// Gives all lines that have spans, or that one below has, and the names that lead to each; those that took most first.
    pub fn walk<'t>(&'t self, mut take: impl FnMut(&[&'t str], &'t Line)) {
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
