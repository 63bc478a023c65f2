//! BUMP: arenas that place blocks next to each other and are freed as a whole.
//!
//! Programs that work in phases often use such custom allocators (regions, obstacks). Each block is placed after the
//! previous one. Freeing a block only decrements a counter, and an arena is released when all of its blocks have been
//! freed. A single long-lived block therefore keeps its entire arena alive.

use super::mapped::Mapped;
use super::{Act, Acts, Allocator, PAGE, Place};

/// Settings of the arenas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BumpSettings {
    /// Bytes per arena. A larger block gets its own arena.
    pub arena: u64,
    /// Block addresses are multiples of this value.
    pub align: u64,
}

impl Default for BumpSettings {
    fn default() -> Self {
        Self { arena: 1 << 20, align: 16 }
    }
}

/// The location of an arena and the memory used in it.
#[derive(Clone, Copy, Debug)]
struct Arena {
    place: Place,
    bytes: u64,
    end: u64,
    live: u64,
}

/// An allocator with arenas. New blocks are placed in the current arena.
///
/// # Examples
///
/// The first arena is released when the last of its four blocks is freed:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Bump, BumpSettings};
///
/// let settings = BumpSettings { arena: 4_096, ..BumpSettings::default() };
/// let (mut bump, mut acts) = (Bump::new(settings), Acts::default());
/// bump.switch_to(0);
/// let places = [(); 5].map(|()| bump.allocate(1_024, &mut acts));
/// assert_eq!(bump.held(), 8_192);
/// for place in places.into_iter().take(4).flatten() {
///     bump.free(place, 1_024, &mut acts);
/// }
/// assert_eq!(bump.held(), 4_096);
/// ```
#[derive(Debug)]
pub struct Bump {
    settings: BumpSettings,
    arenas: Vec<Arena>,
    spare: Vec<u32>,
    current: u32,
    space: Mapped,
    held: u64,
}

impl Bump {
    /// Creates an empty heap.
    #[must_use]
    pub fn new(settings: BumpSettings) -> Self {
        Self { settings, arenas: Vec::new(), spare: Vec::new(), current: u32::MAX, space: Mapped::new(), held: 0 }
    }

    /// Opens an arena for a block of this size.
    fn begin(&mut self, size: u64, acts: &mut Acts) -> Option<u32> {
        let bytes = self.settings.arena.max(size);
        let arena = Arena { place: self.space.map(bytes)?, bytes, end: 0, live: 0 };
        acts.note(Act::Sbrk);
        let id = self.spare.pop().unwrap_or(u32::try_from(self.arenas.len()).ok()?);
        match self.arenas.get_mut(id as usize) {
            Some(place) => *place = arena,
            None => self.arenas.push(arena),
        }
        Some(id)
    }

    fn give_back(&mut self, id: u32, acts: &mut Acts) {
        let Some(Arena { place, end, .. }) = self.arenas.get(id as usize).copied() else { return };
        self.held -= end.next_multiple_of(PAGE);
        self.space.unmap(place);
        self.spare.push(id);
        acts.note(Act::Returned);
    }
}

impl Allocator for Bump {
    fn name(&self) -> String {
        format!("bump:arena={}:align={}", self.settings.arena, self.settings.align)
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let size = size.max(1).checked_next_multiple_of(self.settings.align)?;
        let fits = |arena: &Arena| arena.bytes - arena.end >= size;
        if !self.arenas.get(self.current as usize).is_some_and(fits) {
            self.current = self.begin(size, acts)?;
        }
        let block = self.current;
        let arena = self.arenas.get_mut(block as usize)?;
        let address = arena.place.address + arena.end;
        let end = arena.end + size;
        self.held += end.next_multiple_of(PAGE) - arena.end.next_multiple_of(PAGE);
        (arena.end, arena.live) = (end, arena.live + 1);
        acts.note(Act::Cut);
        Some(Place { address, block })
    }

    fn free(&mut self, place: Place, _: u64, acts: &mut Acts) {
        let Some(arena) = self.arenas.get_mut(place.block as usize) else { return };
        arena.live -= 1;
        if arena.live == 0 {
            self.give_back(place.block, acts);
            self.current = if self.current == place.block { u32::MAX } else { self.current };
        }
    }

    fn heap(&self) -> u64 {
        self.space.bytes()
    }

    fn reserves(&self) -> bool {
        true
    }

    fn held(&self) -> u64 {
        self.held
    }

    fn end(&self) -> u64 {
        super::ADDRESS_SPACE
    }

    fn check_touched(&self) -> Result<(), String> {
        let current = self.arenas.get(self.current as usize);
        if current.is_some_and(|arena| arena.end > arena.bytes) { Err("an arena is too full".into()) } else { Ok(()) }
    }

    fn check(&self) -> Result<(), String> {
        let live = (0..).zip(&self.arenas).filter(|(id, _)| !self.spare.contains(id)).map(|(_, arena)| arena.end);
        let held: u64 = live.map(|end| end.next_multiple_of(PAGE)).sum();
        if held == self.held {
            self.space.check()
        } else {
            Err(format!("the arenas hold {held} bytes, but {} were counted", self.held))
        }
    }
}
