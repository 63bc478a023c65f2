//! Values that models predict to some degree: those of an allocator and a program, and recurring numbers.

use super::Choices;
use metatf_parser::schema::{Dtd, HeapRole, Interpretation, Leaf, ModelKind};

/// State of the simulated program while records are drawn. If the format has no models, it makes no choices.
pub(super) struct World {
    models: bool,
    live: Vec<u64>,
    /// Freed objects, the most recent one last.
    freed: Vec<u64>,
    fresh: u64,
    /// Last number and its step.
    number: u64,
    step: u64,
}

impl World {
    pub(super) fn new(dtd: &Dtd) -> Self {
        let models = !dtd.models.is_empty();
        Self { models, live: Vec::new(), freed: Vec::new(), fresh: 0x1000, number: 0, step: 16 }
    }

    /// Returns a value for a numeric leaf.
    pub(super) fn value(&mut self, c: &mut Choices<'_>, dtd: &Dtd, leaf: &Leaf) -> u64 {
        if !self.models {
            return c.number();
        }
        let Interpretation::Predicted(model) = leaf.interpretation else {
            // Values that models depend on must recur as well.
            return if c.chance(40) { c.number() } else { *c.pick(&[0, 1, 24, 40, 100, 1 << 20]) };
        };
        match dtd.models.get(usize::from(model.0)).map(|m| &m.kind) {
            Some(ModelKind::Heap { role: HeapRole::Allocated { .. }, .. }) => self.allocated(c),
            Some(ModelKind::Heap { role, .. }) => self.ended(c, *role),
            _ => self.foretold(c),
        }
    }

    fn allocated(&mut self, c: &mut Choices<'_>) -> u64 {
        let address = match c.below(16) {
            0..6 => {
                self.fresh += *c.pick(&[32, 32, 32, 16, 48, 112, 4096]);
                self.fresh
            }
            6..11 => self.freed.pop().unwrap_or(32),
            11..13 => {
                let at = c.below(self.freed.len());
                if self.freed.is_empty() { 0 } else { self.freed.remove(at) }
            }
            13 if !self.live.is_empty() => *c.pick(&self.live),
            14 => 0,
            _ => c.number(),
        };
        self.live.retain(|a| *a != address);
        self.live.push(address);
        address
    }

    fn ended(&mut self, c: &mut Choices<'_>, role: HeapRole) -> u64 {
        let newest = self.live.len().wrapping_sub(1);
        let at = match c.below(16) {
            0..5 => newest,
            5..8 => 0,
            8..13 => c.below(self.live.len()),
            13 if !self.freed.is_empty() => return *c.pick(&self.freed),
            14 => return 0,
            _ => return c.number(),
        };
        let Some(&address) = self.live.get(at) else { return c.number() };
        if role == HeapRole::Freed {
            self.live.remove(at);
            self.freed.push(address);
        }
        address
    }

    fn foretold(&mut self, c: &mut Choices<'_>) -> u64 {
        self.number = match c.below(16) {
            0..4 => self.number,
            4..9 => self.number.wrapping_add(self.step),
            9..13 => c.below(4) as u64,
            13 => {
                self.step = *c.pick(&[1, 16, 0, u64::MAX]);
                self.number
            }
            _ => c.number(),
        };
        self.number
    }
}
