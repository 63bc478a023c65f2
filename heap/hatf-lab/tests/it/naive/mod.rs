//! First fit with a rover, and best fit, using a plain list of free intervals.

#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use std::collections::BTreeMap;

pub(crate) struct Naive {
    best: bool,
    /// Addresses and sizes of free blocks in list order.
    list: Vec<(u64, u64)>,
    rover: usize,
    used: BTreeMap<u64, u64>,
    pub(crate) heap: u64,
    pub(crate) examined: u64,
}

impl Naive {
    pub(crate) fn new(best: bool) -> Self {
        Self { best, list: Vec::new(), rover: 0, used: BTreeMap::new(), heap: 0, examined: 0 }
    }

    fn find(&mut self, need: u64) -> Option<usize> {
        let length = self.list.len();
        if self.best {
            self.examined += length as u64;
            let fitting = (0..length).filter(|at| self.list[*at].1 >= need);
            return fitting.min_by_key(|at| (self.list[*at].1, self.list[*at].0));
        }
        let around = (0..length).map(|n| (self.rover + n) % length);
        for at in around {
            self.examined += 1;
            if self.list[at].1 >= need {
                return Some(at);
            }
        }
        None
    }

    pub(crate) fn allocate(&mut self, size: u64) -> u64 {
        let need = (size.next_multiple_of(8) + 16).max(32);
        let at = self.find(need).unwrap_or_else(|| {
            let bytes = need.next_multiple_of(8192);
            self.give_back(self.heap, bytes);
            self.heap += bytes;
            self.rover
        });
        let (address, free) = self.list[at];
        if free - need >= 32 {
            self.list[at] = (address + need, free - need);
            self.rover = at;
            self.used.insert(address, need);
        } else {
            self.list.remove(at);
            self.rover = if at == self.list.len() { 0 } else { at };
            self.used.insert(address, free);
        }
        address + 8
    }

    pub(crate) fn free(&mut self, payload: u64) {
        let size = self.used.remove(&(payload - 8)).unwrap();
        self.give_back(payload - 8, size);
    }

    /// Inserts a block into the list, merged with its neighbors, and moves the rover to it.
    fn give_back(&mut self, address: u64, size: u64) {
        let below = self.list.iter().position(|(start, length)| start + length == address);
        let above = self.list.iter().position(|(start, _)| *start == address + size);
        match (below, above) {
            (None, None) => self.list.insert(self.rover, (address, size)),
            (Some(at), None) => (self.list[at].1, self.rover) = (self.list[at].1 + size, at),
            (None, Some(at)) => (self.list[at], self.rover) = ((address, size + self.list[at].1), at),
            (Some(below), Some(above)) => {
                let (start, length) = self.list[below];
                self.list[above] = (start, length + size + self.list[above].1);
                self.list.remove(below);
                self.rover = if below < above { above - 1 } else { above };
            }
        }
    }
}
