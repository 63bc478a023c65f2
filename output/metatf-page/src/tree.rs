//! Trees of calls, for flame graphs.

use std::collections::BTreeMap;

use crate::Unit;

/// Maximum number of calls kept of a stack, starting at the outermost.
const DEPTH: usize = 256;

/// A total divided among call stacks.
///
/// # Examples
///
/// ```
/// use metatf_page::{Flame, Unit};
///
/// let mut flame = Flame::new("grep.mtf: bytes live at the peak", Unit::Bytes);
/// flame.add(["main", "parse", "malloc"], 30_000);
/// flame.add(["main", "parse"], 5_000);
/// flame.add(["main", "copy"], 10_000);
///
/// assert_eq!(flame.root.total, 45_000);
/// let parse = &flame.root.calls["main"].calls["parse"];
/// assert_eq!((parse.total, parse.own()), (35_000, 5_000));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Flame {
    /// The title.
    pub title: String,
    /// The unit of the total.
    pub unit: Unit,
    /// All stacks, outermost function first.
    pub root: Node,
}

/// A function and its callees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The total of the function and its callees.
    pub total: u64,
    /// The callees.
    pub calls: BTreeMap<String, Self>,
}

impl Flame {
    /// Creates an empty flame graph.
    pub fn new(title: impl Into<String>, unit: Unit) -> Self {
        Self { title: title.into(), unit, root: Node::default() }
    }

    /// Adds the weight of a stack, outermost function first. If the stack has more than 256 functions, the innermost
    /// functions are dropped.
    pub fn add<S: AsRef<str>>(&mut self, stack: impl IntoIterator<Item = S>, weight: u64) {
        if weight == 0 {
            return;
        }
        let mut node = &mut self.root;
        node.total = node.total.saturating_add(weight);
        for name in stack.into_iter().take(DEPTH) {
            let name = name.as_ref();
            // Nearly all names exist already, so this avoids allocating strings.
            if !node.calls.contains_key(name) {
                node.calls.insert(name.to_owned(), Node::default());
            }
            let Some(call) = node.calls.get_mut(name) else { return };
            node = call;
            node.total = node.total.saturating_add(weight);
        }
    }
}

impl Node {
    /// Returns the weight of the function itself.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.total.saturating_sub(self.calls.values().fold(0, |sum, call| sum.saturating_add(call.total)))
    }
}
