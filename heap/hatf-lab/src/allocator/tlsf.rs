//! TLSF: two-level segregated fit, in which every call takes constant time.
//!
//! Source: Masmano, Ripoll, Crespo, Real, "TLSF: a New Dynamic Memory Allocator for Real-Time Systems" (ECRTS 2004).
//! Each power of two is divided evenly into lists. A request is rounded up to a list boundary, so the first block of
//! that list or of any later list is large enough. Blocks are merged with free neighbours immediately. The pool has a
//! fixed size in the paper, but grows here.

use super::blocks::{Block, Blocks, NONE};
use super::lists::Lists;
use super::{ADDRESS_SPACE, Act, Acts, Allocator, PAGE, Place};

/// Parameters that the paper leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsfSettings {
    /// Lists per power of two, itself a power of two. The paper recommends 16 or 32.
    pub steps: u64,
    /// Bytes before each block.
    pub header: u64,
    /// Memory is requested from the system in multiples of this many bytes.
    pub grow: u64,
}

impl Default for TlsfSettings {
    fn default() -> Self {
        Self { steps: 32, header: 8, grow: 64 << 10 }
    }
}

/// The size granularity.
const UNIT: u64 = 16;
/// The smallest block, including its header.
const LEAST: u64 = 32;

/// A heap with two-level segregated fit.
///
/// # Examples
///
/// With its header of 8 bytes, a block occupies a multiple of 16 bytes:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Tlsf, TlsfSettings};
///
/// let (mut tlsf, mut acts) = (Tlsf::new(TlsfSettings::default()), Acts::default());
/// tlsf.switch_to(0);
/// let addresses = [24, 25, 24].map(|size| tlsf.allocate(size, &mut acts).map(|place| place.address));
/// assert_eq!(addresses, [Some(8), Some(40), Some(88)]);
/// ```
#[derive(Debug)]
pub struct Tlsf {
    settings: TlsfSettings,
    blocks: Blocks,
    lists: Lists,
    high: u64,
    touched: u32,
}

impl Tlsf {
    /// Creates an empty heap. `steps` should be a power of two.
    #[must_use]
    pub fn new(settings: TlsfSettings) -> Self {
        let lists = Lists::new(usize::try_from(settings.steps * 64).unwrap_or(0));
        Self { settings, blocks: Blocks::new(), lists, high: 0, touched: NONE }
    }

    fn lists(&self) -> usize {
        usize::try_from(self.settings.steps * 64).unwrap_or(0)
    }

    /// Returns the list for a free block of this size.
    fn list(&self, size: u64) -> usize {
        let (steps, power) = (self.settings.steps, u64::from(size.max(1).ilog2()));
        let step = if size < steps { 0 } else { (size - (1 << power)) >> (power - u64::from(steps.ilog2())) };
        usize::try_from(power * steps + step).unwrap_or(0)
    }

    fn insert(&mut self, id: u32, acts: &mut Acts) {
        acts.note(Act::Inserted);
        let list = self.list(self.blocks.get(id).size);
        self.lists.push(&mut self.blocks, list, id);
    }

    fn remove(&mut self, id: u32, acts: &mut Acts) {
        acts.note(Act::Unlinked);
        self.lists.remove(&mut self.blocks, id);
    }

    #[cold]
    fn grow(&mut self, need: u64, acts: &mut Acts) -> Option<u32> {
        let bytes = need.checked_next_multiple_of(self.settings.grow)?;
        self.blocks.heap().checked_add(bytes).filter(|end| *end <= ADDRESS_SPACE)?;
        acts.note(Act::Sbrk);
        let top = self.blocks.top_id();
        if self.blocks.get(top).free {
            self.remove(top, acts);
        }
        let (id, _) = self.blocks.grow(bytes)?;
        self.insert(id, acts);
        Some(id)
    }
}

impl Allocator for Tlsf {
    fn name(&self) -> String {
        let TlsfSettings { steps, header, grow } = self.settings;
        format!("tlsf:steps={steps}:header={header}:grow={grow}")
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let need = size.checked_add(self.settings.header)?.checked_next_multiple_of(UNIT)?.max(LEAST);
        let rounded =
            need.checked_add((1_u64 << need.ilog2()) / self.settings.steps - u64::from(need >= self.settings.steps))?;
        let id = match self.lists.next_filled(self.list(rounded), self.lists()) {
            Some(list) => self.lists.first(list),
            None => self.grow(need, acts)?,
        };
        acts.note(Act::Examined);
        self.remove(id, acts);
        let block = self.blocks.get(id);
        let used = if block.size - need >= LEAST {
            acts.note(Act::Split);
            let used = self.blocks.cut(id, need)?;
            self.insert(id, acts);
            used
        } else {
            self.blocks.edit(id, |block| block.free = false);
            id
        };
        self.touched = used;
        self.high = self.high.max(block.address + need);
        Some(Place { address: block.address + self.settings.header, block: used })
    }

    fn free(&mut self, place: Place, _: u64, acts: &mut Acts) {
        let id = place.block;
        self.blocks.edit(id, |block| block.free = true);
        let Block { below, above, .. } = self.blocks.get(id);
        if self.blocks.get(below).free {
            acts.note(Act::Merged);
            self.remove(below, acts);
            self.blocks.absorb_below(id);
        }
        if self.blocks.get(above).free {
            acts.note(Act::Merged);
            self.remove(above, acts);
            self.blocks.absorb_above(id);
        }
        self.insert(id, acts);
        self.touched = id;
    }

    fn heap(&self) -> u64 {
        self.blocks.heap()
    }

    fn held(&self) -> u64 {
        self.high.next_multiple_of(PAGE)
    }

    fn check_touched(&self) -> Result<(), String> {
        let Block { below, above, .. } = self.blocks.get(self.touched);
        let known = [below, self.touched, above].into_iter().filter(|id| *id != NONE);
        known.into_iter().try_for_each(|id| self.blocks.check_one(id))
    }

    fn check(&self) -> Result<(), String> {
        let free = self.blocks.check_all()?;
        if let Some(id) =
            free.iter().find(|id| usize::from(self.blocks.get(**id).list) != self.list(self.blocks.get(**id).size))
        {
            return Err(format!("the block at {} is in the list for a different size", self.blocks.get(*id).address));
        }
        self.lists.check(&self.blocks, free.len())
    }
}
