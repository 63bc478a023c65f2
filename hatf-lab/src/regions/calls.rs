//! Who entered whose region: the call graph and the call tree (the document's Figure 2), as far as the program ran through them.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// Nodes of a tree. Where one more would be needed, what is allocated counts in the node above.
const MOST_NODES: usize = 1 << 16;
/// Nodes on a path; deeper calls count in the last of them.
const MOST_DEPTH: usize = 256;

/// Calls between methods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// The call graph: a line for each caller, call site and callee.
    pub graph: Vec<Edge>,
    /// The call tree, depth first: calls from one place on one path are one node.
    pub tree: Vec<Node>,
    /// Regions that have no node of their own, as there are too many or they are too deep.
    pub left_out: u64,
}

/// A line of the call graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The method that calls.
    pub caller: String,
    /// Where: the call site that was registered last; empty: none was.
    pub call_site: String,
    /// The method whose region was entered.
    pub callee: String,
    /// How often.
    pub calls: u64,
}

/// A node of the call tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The method.
    pub method: String,
    /// Where its caller calls it; empty: not known.
    pub call_site: String,
    /// Methods above it.
    pub depth: usize,
    /// Regions entered.
    pub calls: u64,
    /// Objects that the method itself allocated, wherever they went.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Follows the calls of all threads.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    nodes: Vec<Counted>,
    /// By the node above, the call site and the method.
    places: HashMap<(Option<usize>, Option<u64>, u64), usize>,
    /// What threads are in, outermost first.
    threads: HashMap<u64, Vec<Frame>>,
    left_out: u64,
}

#[derive(Debug)]
struct Counted {
    method: u64,
    call_site: Option<u64>,
    above: Option<usize>,
    depth: usize,
    calls: u64,
    objects: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Frame {
    node: Option<usize>,
    call_site: Option<u64>,
}

impl Recorder {
    pub(super) fn enter(&mut self, thread: u64, method: u64) {
        let frames = self.threads.entry(thread).or_default();
        let (above, call_site) = frames.last().map_or((None, None), |frame| (frame.node, frame.call_site));
        let depth = above.and_then(|above| self.nodes.get(above)).map_or(0, |node| node.depth + 1);
        let next = self.nodes.len();
        let known = self.places.get(&(above, call_site, method)).copied();
        let node = known.or_else(|| {
            if next >= MOST_NODES || depth >= MOST_DEPTH {
                return None;
            }
            self.places.insert((above, call_site, method), next);
            self.nodes.push(Counted { method, call_site, above, depth, calls: 0, objects: 0, bytes: 0 });
            Some(next)
        });
        match node.and_then(|node| self.nodes.get_mut(node)) {
            Some(node) => node.calls += 1,
            None => self.left_out += 1,
        }
        frames.push(Frame { node: node.or(above), call_site: None });
    }

    pub(super) fn exit(&mut self, thread: u64) {
        self.threads.get_mut(&thread).and_then(Vec::pop);
    }

    pub(super) fn registered(&mut self, thread: u64, call_site: u64) {
        if let Some(frame) = self.threads.get_mut(&thread).and_then(|frames| frames.last_mut()) {
            frame.call_site = Some(call_site);
        }
    }

    pub(super) fn allocated(&mut self, thread: u64, size: u64) {
        let frame = self.threads.get(&thread).and_then(|frames| frames.last());
        if let Some(node) = frame.and_then(|frame| frame.node).and_then(|node| self.nodes.get_mut(node)) {
            node.objects += 1;
            node.bytes = node.bytes.saturating_add(size);
        }
    }

    pub(super) fn finish(self, names: &[String]) -> Calls {
        let name = |number: u64| usize::try_from(number).ok().and_then(|number| names.get(number)).cloned();
        let name = |number: Option<u64>| number.and_then(name).unwrap_or_default();
        let mut edges: BTreeMap<(u64, Option<u64>, u64), u64> = BTreeMap::new();
        let mut below: Vec<Vec<usize>> = self.nodes.iter().map(|_| Vec::new()).collect();
        // Of a stack of nodes the last comes first.
        let mut next = Vec::new();
        for (number, node) in self.nodes.iter().enumerate().rev() {
            match node.above.and_then(|above| Some((below.get_mut(above)?, self.nodes.get(above)?))) {
                Some((below, above)) => {
                    below.push(number);
                    *edges.entry((above.method, node.call_site, node.method)).or_default() += node.calls;
                }
                None => next.push(number),
            }
        }
        let mut tree = Vec::new();
        while let Some(number) = next.pop() {
            next.extend(below.get(number).into_iter().flatten());
            let Some(node) = self.nodes.get(number) else { continue };
            let Counted { method, call_site, depth, calls, objects, bytes, .. } = *node;
            tree.push(Node { method: name(Some(method)), call_site: name(call_site), depth, calls, objects, bytes });
        }
        let edge = |((caller, call_site, callee), calls)| Edge {
            caller: name(Some(caller)),
            call_site: name(call_site),
            callee: name(Some(callee)),
            calls,
        };
        Calls { graph: edges.into_iter().map(edge).collect(), tree, left_out: self.left_out }
    }
}
