//! Trees of calls, for flame graphs.

use std::collections::BTreeMap;

use crate::Unit;

/// Calls that are kept of a stack, from the outermost.
const DEPTH: usize = 256;

/// How a total is shared among call stacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Flame {
    /// What it shows.
    pub title: String,
    /// What is shared.
    pub unit: Unit,
    /// All stacks, outermost function first.
    pub root: Node,
}

/// A function on top of those that called it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// What it and those that it called have.
    pub total: u64,
    /// Those that it called.
    pub calls: BTreeMap<String, Self>,
}

impl Flame {
    /// Starts with nothing.
    pub fn new(title: impl Into<String>, unit: Unit) -> Self {
        Self { title: title.into(), unit, root: Node::default() }
    }

    /// Adds what a stack has, outermost function first. Of a stack of more than 256 functions the innermost are left out.
    pub fn add<S: AsRef<str>>(&mut self, stack: impl IntoIterator<Item = S>, weight: u64) {
        if weight == 0 {
            return;
        }
        let mut node = &mut self.root;
        node.total = node.total.saturating_add(weight);
        for name in stack.into_iter().take(DEPTH) {
            let name = name.as_ref();
            // Nearly all are there, and need no text of their own.
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
    /// Returns what the function itself has.
    #[must_use]
    pub fn own(&self) -> u64 {
        self.total.saturating_sub(self.calls.values().fold(0, |sum, call| sum.saturating_add(call.total)))
    }
}
