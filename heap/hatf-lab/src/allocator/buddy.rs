//! BUDDY: the binary buddy system.
//!
//! Source: Knuth, The Art of Computer Programming, volume 1, 2.5, Algorithms R and S. Block sizes are powers of two. A
//! larger block is halved until it fits, and a freed block is merged with its buddy for as long as the buddy is free.
//! Of equally large blocks, the lowest is used; the book leaves this choice open. Blocks have no headers, because the
//! size of the object determines the size of its block.

use std::collections::BTreeSet;

use super::mapped::{MAPPED, Mapped};
use super::pages::Pages;
use super::{ADDRESS_SPACE, Act, Acts, Allocator, Place};

/// Parameters that the book leaves open. All settings are in bytes and are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuddySettings {
    /// The smallest block size.
    pub least: u64,
    /// Bytes per request to the system. Larger blocks are mapped individually.
    pub region: u64,
}

impl Default for BuddySettings {
    fn default() -> Self {
        Self { least: 16, region: 4 << 20 }
    }
}

/// A heap managed by the buddy system.
///
/// # Examples
///
/// The second object occupies half of a block of 128 bytes, and its buddy is too small for the third object:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Buddy, BuddySettings};
///
/// let (mut buddy, mut acts) = (Buddy::new(BuddySettings::default()), Acts::default());
/// buddy.switch_to(0);
/// let addresses = [100, 60, 128].map(|size| buddy.allocate(size, &mut acts).map(|place| place.address));
/// assert_eq!(addresses, [Some(0), Some(128), Some(256)]);
/// ```
#[derive(Debug)]
pub struct Buddy {
    settings: BuddySettings,
    /// Free blocks, indexed by power of two.
    free: Vec<BTreeSet<u64>>,
    used: u64,
    heap: u64,
    pages: Pages,
    mapped: Mapped,
    touched: (usize, u64),
}

impl Buddy {
    /// Creates an empty heap. The settings should be powers of two.
    #[must_use]
    pub fn new(settings: BuddySettings) -> Self {
        let (pages, mapped) = (Pages::default(), Mapped::new());
        Self { settings, free: vec![BTreeSet::new(); 48], used: 0, heap: 0, pages, mapped, touched: (0, 0) }
    }

    /// Returns the binary logarithm of the block size for a request, or `None` if the block is mapped.
    fn order(&self, size: u64) -> Option<usize> {
        let block = size.checked_next_power_of_two()?.max(self.settings.least);
        (block <= self.settings.region).then_some(block.trailing_zeros() as usize)
    }

    fn insert(&mut self, order: usize, block: u64) {
        self.free.get_mut(order).map(|free| free.insert(block));
    }
}

impl Allocator for Buddy {
    fn name(&self) -> String {
        let BuddySettings { least, region } = self.settings;
        format!("buddy:least={least}:region={region}")
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let Some(order) = self.order(size) else {
            acts.note(Act::Sbrk);
            return self.mapped.map(size);
        };
        let larger = self.free.iter().enumerate().skip(order).find_map(|(n, free)| Some((n, *free.first()?)));
        let (from, block) = match larger {
            Some((from, block)) => {
                acts.note(Act::Unlinked);
                self.free.get_mut(from)?.remove(&block);
                (from, block)
            }
            None => {
                let block = self.heap;
                self.heap = block.checked_add(self.settings.region).filter(|end| *end <= MAPPED)?;
                acts.note(Act::Sbrk);
                (self.settings.region.trailing_zeros() as usize, block)
            }
        };
        for order in order..from {
            acts.note(Act::Split);
            self.insert(order, block + (1 << order));
        }
        self.used += 1 << order;
        self.pages.touch(block, size);
        self.touched = (order, block);
        Some(Place { address: block, block: 0 })
    }

    fn free(&mut self, place: Place, size: u64, acts: &mut Acts) {
        let Some(mut order) = self.order(size) else {
            acts.note(Act::Returned);
            self.mapped.unmap(place);
            return;
        };
        let mut block = place.address;
        self.used -= 1 << order;
        while 1 << order < self.settings.region {
            let other = block ^ 1 << order;
            if !self.free.get_mut(order).is_some_and(|free| free.remove(&other)) {
                break;
            }
            acts.note(Act::Merged);
            block = block.min(other);
            order += 1;
        }
        acts.note(Act::Inserted);
        self.insert(order, block);
        self.touched = (order, block);
    }

    fn heap(&self) -> u64 {
        self.heap + self.mapped.bytes()
    }

    fn reserves(&self) -> bool {
        true
    }

    fn held(&self) -> u64 {
        self.pages.bytes() + self.mapped.bytes()
    }

    fn end(&self) -> u64 {
        ADDRESS_SPACE
    }

    fn check_touched(&self) -> Result<(), String> {
        let (order, block) = self.touched;
        if block.is_multiple_of(1 << order) { Ok(()) } else { Err(format!("the block at {block} is not aligned")) }
    }

    /// Checks that free and used blocks add up to the heap and that no two buddies are both free.
    fn check(&self) -> Result<(), String> {
        let mut sum = self.used;
        for (order, free) in self.free.iter().enumerate() {
            sum += (free.len() as u64) << order;
            let halves = |block: &&u64| 1 << order < self.settings.region && free.contains(&(**block ^ 1 << order));
            if let Some(block) = free.iter().find(halves) {
                return Err(format!("both buddies at {block} are free"));
            }
        }
        if sum != self.heap {
            return Err(format!("the blocks add up to {sum} bytes, but the heap has {}", self.heap));
        }
        self.pages.check()?;
        self.mapped.check()
    }
}
