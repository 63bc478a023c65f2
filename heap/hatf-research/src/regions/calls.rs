//! The call graph and the call tree (Figure 2 of the paper) of the calls that a program executed.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// The maximum number of nodes in a tree. If the tree is full, the allocations of further nodes count in their parent.
const MOST_NODES: usize = 1 << 16;
/// The maximum depth of a tree. Deeper calls count in the last node on the path.
const MOST_DEPTH: usize = 256;

/// Calls between methods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// The call graph, with one edge per caller, call site and callee.
    pub graph: Vec<Edge>,
    /// The call tree in depth-first order. Calls from the same place on the same path share a node.
    pub tree: Vec<Node>,
    /// The number of regions without their own node, because of the limits on size and depth.
    pub left_out: u64,
}

/// An edge of the call graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The calling method.
    pub caller: String,
    /// The last registered call site; empty if there is none.
    pub call_site: String,
    /// The method whose region was entered.
    pub callee: String,
    /// The number of calls.
    pub calls: u64,
}

/// A node of the call tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The method of the node.
    pub method: String,
    /// The call site in the caller; empty if unknown.
    pub call_site: String,
    /// The number of ancestors of the node.
    pub depth: usize,
    /// The number of regions entered.
    pub calls: u64,
    /// The number of objects that the method itself allocated, in any region.
    pub objects: u64,
    /// The bytes of these objects.
    pub bytes: u64,
}

/// A recorder of the calls of all threads.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    nodes: Vec<Counted>,
    /// Node indices by parent node, call site and method.
    places: HashMap<(Option<usize>, Option<u64>, u64), usize>,
    /// The active calls of each thread, outermost first.
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
        // Iterate backwards, because the loop below visits the most recently pushed node first.
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
