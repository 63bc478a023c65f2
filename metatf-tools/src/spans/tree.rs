//! A tree of durations, with one line for each kind of span within each enclosing kind.

use std::collections::HashMap;

/// Maximum number of lines; further kinds of spans are added to the line of their parent.
const MOST: usize = 1 << 16;
/// Maximum depth of lines.
const DEEPEST: usize = 64;

/// A kind of span at its place in the tree, as the number of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(usize);

/// The tree of lines.
#[derive(Debug, Default)]
pub struct Tree {
    /// The first line is the root.
    lines: Vec<Line>,
    places: HashMap<(usize, String), usize>,
}

/// A line for spans with the same name below the same parent line.
#[derive(Debug, Default)]
pub struct Line {
    name: String,
    depth: usize,
    below: Vec<usize>,
    /// The number of spans.
    pub count: u64,
    /// The total duration in nanoseconds.
    pub total: u64,
    /// The nanoseconds in which no direct child span was open.
    pub own: u64,
    /// The nanoseconds that threads spent in these spans, if any span was entered.
    pub busy: Option<u64>,
}

impl Tree {
    /// Returns the line for spans of this name below another line.
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

    /// Adds a span to a line, with its total nanoseconds, the nanoseconds in which no direct child span was open, and
    /// the nanoseconds in which a thread was in the span.
    pub fn add(&mut self, node: Node, total: u64, own: u64, busy: Option<u64>) {
        let Some(line) = self.lines.get_mut(node.0) else { return };
        line.count += 1;
        line.total = line.total.saturating_add(total);
        line.own = line.own.saturating_add(own);
        if let Some(busy) = busy {
            line.busy = Some(line.busy.unwrap_or(0).saturating_add(busy));
        }
    }

    /// Returns the root, which contains no spans itself.
    #[must_use]
    pub fn root(&self) -> Node {
        Node(0)
    }

    /// Returns the child lines of a line, with their names. Lines nest at most 64 levels deep.
    pub fn below(&self, node: Node) -> impl Iterator<Item = (&str, Node)> {
        let below = self.lines.get(node.0).map(|line| line.below.as_slice()).unwrap_or_default();
        below.iter().filter_map(|below| Some((self.lines.get(*below)?.name.as_str(), Node(*below))))
    }

    /// Returns the data of a line.
    #[must_use]
    pub fn line(&self, node: Node) -> Option<&Line> {
        self.lines.get(node.0)
    }

    /// Visits all lines that contain spans or have lines with spans below them, with the path of names to each line.
    /// Lines with the longest duration come first.
    pub fn walk<'t>(&'t self, mut take: impl FnMut(&[&'t str], &'t Line)) {
        let mut path = Vec::new();
        // The stack of pending lines is on the heap.
        let mut next = self.sorted(0);
        while let Some(number) = next.pop() {
            let Some(line) = self.lines.get(number).filter(|_| !self.is_empty(number)) else { continue };
            path.truncate(line.depth - 1);
            path.push(line.name.as_str());
            take(&path, line);
            next.extend(self.sorted(number));
        }
    }

    /// Returns the child lines of a line in ascending order of duration.
    fn sorted(&self, above: usize) -> Vec<usize> {
        let mut below = self.lines.get(above).map(|line| line.below.clone()).unwrap_or_default();
        below.sort_by_key(|number| self.lines.get(*number).map(|line| (line.total, std::cmp::Reverse(*number))));
        below
    }

    /// Returns whether neither this line nor any line below it contains a span.
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
