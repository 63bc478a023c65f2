//! A list that finds the first sufficiently large member, and the member's position, without walking the list.
//!
//! The list is a treap in list order. Each node stores the number of members in both subtrees, and the size of the
//! largest of these members. Priorities are hashes of member numbers, so the same list has the same tree in every run.

use super::blocks::NONE;

/// Numbered members, in an order determined by the insertions.
#[derive(Debug)]
pub(super) struct Order {
    nodes: Vec<Node>,
    root: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    left: Subtree,
    right: Subtree,
    parent: u32,
    size: u64,
}

/// A summary of a subtree, so that searches can skip the subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subtree {
    root: u32,
    count: u32,
    /// The size of the largest member in bytes.
    most: u64,
}

const NOTHING: Subtree = Subtree { root: NONE, count: 0, most: 0 };
const EMPTY: Node = Node { left: NOTHING, right: NOTHING, parent: NONE, size: 0 };

impl Node {
    /// Returns the subtree rooted at this node.
    #[inline]
    fn subtree(&self, id: u32) -> Subtree {
        let most = self.size.max(self.left.most).max(self.right.most);
        Subtree { root: id, count: 1 + self.left.count + self.right.count, most }
    }

    /// Returns the subtree of which `child` is the root.
    #[inline]
    fn side(&mut self, child: u32) -> &mut Subtree {
        if self.left.root == child { &mut self.left } else { &mut self.right }
    }
}

impl Order {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), root: NONE }
    }

    /// Inserts a member of one byte or more before `next`, or at the end if `next` is [`NONE`].
    pub(super) fn insert_before(&mut self, next: u32, id: u32, size: u64) {
        if self.nodes.len() <= id as usize {
            self.nodes.resize(id as usize + 1, EMPTY);
        }
        let left = self.get(next).left.root;
        let parent = match (next, left) {
            (NONE, _) => self.last(self.root),
            (next, NONE) => next,
            (_, left) => self.last(left),
        };
        self.edit(id, |node| *node = Node { parent, size, ..EMPTY });
        let new = Subtree { root: id, count: 1, most: size };
        if parent == NONE {
            self.root = id;
        } else {
            self.edit(parent, |node| *(if parent == next { &mut node.left } else { &mut node.right }) = new);
        }
        self.tell_above(parent);
        while self.get(id).parent != NONE && priority(id) > priority(self.get(id).parent) {
            self.lift(id);
        }
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, id: u32) {
        loop {
            let Node { left, right, .. } = self.get(id);
            match (left.root, right.root) {
                (NONE, NONE) => break,
                (child, NONE) | (NONE, child) => self.lift(child),
                (left, right) => self.lift(if priority(left) > priority(right) { left } else { right }),
            }
        }
        let parent = self.get(id).parent;
        self.replace(parent, id, NOTHING);
        self.tell_above(parent);
    }

    /// Changes the size of a member.
    pub(super) fn resize(&mut self, id: u32, size: u64) {
        self.edit(id, |node| node.size = size);
        self.tell_above(id);
    }

    /// Finds the first member of at least `need` bytes, starting at `from` and wrapping around. Counts the members that
    /// a linear search would examine, which are all members if there is no match.
    pub(super) fn find(&self, from: u32, need: u64) -> (Option<u32>, u64) {
        let (all, need) = (self.get(self.root).subtree(self.root), need.max(1));
        if self.root == NONE {
            return (None, 0);
        }
        if all.most < need {
            return (None, all.count.into());
        }
        let mut count = 0;
        let found = self.find_behind(from, need, &mut count);
        let found = found.unwrap_or_else(|| self.find_below(self.root, need, &mut count));
        (Some(found), count)
    }

    /// Finds the first member of at least `need` bytes at or after `from`. Counts the members up to the match.
    fn find_behind(&self, from: u32, need: u64, count: &mut u64) -> Option<u32> {
        let mut at = from;
        let mut is_behind = true;
        while at != NONE {
            let Node { right, parent, size, .. } = self.get(at);
            if is_behind {
                *count += 1;
                if size >= need {
                    return Some(at);
                }
                if right.most >= need {
                    return Some(self.find_below(right.root, need, count));
                }
                *count += u64::from(right.count);
            }
            is_behind = self.get(parent).left.root == at;
            at = parent;
        }
        None
    }

    /// Finds the first member of at least `need` bytes in a subtree that contains such a member. Counts the members up
    /// to the match.
    fn find_below(&self, root: u32, need: u64, count: &mut u64) -> u32 {
        let mut at = root;
        loop {
            let Node { left, right, size, .. } = self.get(at);
            if left.most >= need {
                at = left.root;
                continue;
            }
            *count += u64::from(left.count) + 1;
            if size >= need || right.root == NONE {
                return at;
            }
            at = right.root;
        }
    }

    fn last(&self, root: u32) -> u32 {
        let mut at = root;
        while self.get(at).right.root != NONE {
            at = self.get(at).right.root;
        }
        at
    }

    /// Rotates a node with its parent. This preserves the list order and the counts of the nodes above.
    fn lift(&mut self, id: u32) {
        let (node, parent) = (self.get(id), self.get(id).parent);
        let Node { parent: above, left: parents_left, .. } = self.get(parent);
        let is_left = parents_left.root == id;
        let moved = if is_left { node.right } else { node.left };
        self.edit(parent, |node| {
            *node.side(id) = moved;
            node.parent = id;
        });
        let under = self.get(parent).subtree(parent);
        self.edit(id, |node| {
            *(if is_left { &mut node.right } else { &mut node.left }) = under;
            node.parent = above;
        });
        self.edit(moved.root, |node| node.parent = parent);
        self.replace(above, parent, self.get(id).subtree(id));
    }

    /// Replaces one subtree with another.
    fn replace(&mut self, parent: u32, child: u32, by: Subtree) {
        if parent == NONE {
            self.root = by.root;
        } else {
            self.edit(parent, |node| *node.side(child) = by);
        }
    }

    /// Updates the affected ancestors of a changed node.
    fn tell_above(&mut self, id: u32) {
        let mut at = id;
        while at != NONE {
            let (node, parent) = (self.get(at), self.get(at).parent);
            let now = node.subtree(at);
            let Some(above) = self.nodes.get_mut(parent as usize) else { return };
            let side = above.side(at);
            if *side == now {
                return;
            }
            *side = now;
            at = parent;
        }
    }

    /// Returns a node; for [`NONE`], returns an empty node.
    #[inline]
    fn get(&self, id: u32) -> Node {
        self.nodes.get(id as usize).copied().unwrap_or(EMPTY)
    }

    #[inline]
    fn edit(&mut self, id: u32, edit: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(id as usize) {
            edit(node);
        }
    }
}

/// The MurmurHash3 finalizer. It is a bijection, so distinct numbers have distinct results.
fn priority(id: u32) -> u32 {
    let mut hash = id.wrapping_add(1);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the treap with a list searched linearly.
    #[test]
    fn finds_what_a_walk_finds() {
        let (mut order, mut list, mut random) = (Order::new(), Vec::<(u32, u64)>::new(), 1_u64);
        let mut below = |end: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % end
        };
        for step in 0..20_000_u32 {
            let growing = step < 2000 || step % 7 < 3;
            match below(4) {
                0 | 1 if growing => {
                    let at = usize::try_from(below(list.len() as u64 + 1)).unwrap();
                    let (id, size) =
                        ((0..).find(|id| list.iter().all(|(used, _)| used != id)).unwrap(), 1 + below(100));
                    order.insert_before(list.get(at).map_or(NONE, |(id, _)| *id), id, size);
                    list.insert(at, (id, size));
                }
                _ if list.is_empty() => {}
                0 | 1 => {
                    let (id, _) = list.remove(usize::try_from(below(list.len() as u64)).unwrap());
                    order.remove(id);
                }
                2 => {
                    let at = usize::try_from(below(list.len() as u64)).unwrap();
                    list[at].1 = 1 + below(100);
                    order.resize(list[at].0, list[at].1);
                }
                _ => {
                    let (at, need) = (usize::try_from(below(list.len() as u64)).unwrap(), below(104));
                    let around = list[at..].iter().chain(&list[..at]);
                    let walked = (1..).zip(around).find(|(_, (_, size))| *size >= need);
                    let expected = walked.map_or((None, list.len() as u64), |(count, (id, _))| (Some(*id), count));
                    assert_eq!(order.find(list[at].0, need), expected);
                }
            }
            assert_eq!(order.find(list.first().map_or(NONE, |(id, _)| *id), 1000), (None, list.len() as u64));
        }
    }
}
