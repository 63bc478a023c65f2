//! Compares a custom allocator with first fit. The allocator takes blocks of up to 256 bytes from a stack of equal
//! slots. Larger blocks come from the end of the heap and are never reused.
//!
//! `cargo run -p hatf-lab --example two_stacks`
#![expect(clippy::disallowed_methods, reason = "an example prints without the command's library")]

use hatf_lab::HeapTracker;
use hatf_lab::allocator::{Act, Acts, Allocator, First, Place, TagSettings};
use hatf_lab::simulate::{Grid, Simulation, describe};
use hatf_trace::{Event, EventSink as _};
use metatf_page::{Form, Page, render};

/// Bytes per slot.
const SLOT: u64 = 256;

#[derive(Default)]
struct TwoStacks {
    /// Free slots.
    slots: Vec<u64>,
    /// The number of slots in use.
    used: u64,
    /// Bytes in large blocks.
    large: u64,
    heap: u64,
}

impl Allocator for TwoStacks {
    fn name(&self) -> String {
        "two-stacks".to_owned()
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        if size <= SLOT {
            self.used += 1;
            if let Some(address) = self.slots.pop() {
                acts.note(Act::Unlinked);
                return Some(Place { address, block: 0 });
            }
        } else {
            self.large += size;
        }
        acts.note(Act::Sbrk);
        let address = self.heap;
        self.heap = self.heap.checked_add(size.max(SLOT))?;
        Some(Place { address, block: 0 })
    }

    fn free(&mut self, place: Place, size: u64, acts: &mut Acts) {
        if size <= SLOT {
            self.used -= 1;
            self.slots.push(place.address);
            acts.note(Act::Inserted);
        }
    }

    fn heap(&self) -> u64 {
        self.heap
    }

    fn check_touched(&self) -> Result<(), String> {
        if self.slots.last().is_some_and(|slot| slot + SLOT > self.heap) {
            Err("a slot above the heap".into())
        } else {
            Ok(())
        }
    }

    fn check(&self) -> Result<(), String> {
        let slots = (self.slots.len() as u64 + self.used) * SLOT;
        if slots + self.large == self.heap { Ok(()) } else { Err(format!("{slots} + {} bytes", self.large)) }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let first = Simulation::new("first", Box::new(First::new(TagSettings::default())));
    let own = Simulation::new("two-stacks", Box::new(TwoStacks::default()));
    let grid = Grid::new(vec![first.with_invariants(100), own.with_invariants(100)], 2)?;
    // Allocate objects of 8 to 400 bytes, and free each after 50 more have been allocated. To read a trace instead, use
    // `hatf_trace::forms::open`.
    let mut tracker = HeapTracker::new(grid);
    for n in 0..10_000_u64 {
        tracker.event(&Event::malloc(n + 1, 8 + n * n % 393))?;
        if n >= 50 {
            tracker.event(&Event::free(n - 49))?;
        }
    }
    let (_, grid) = tracker.into_parts();
    let outcomes = grid.finish()?;
    let mut page = Page::default();
    describe(&outcomes, &mut page);
    render(&page, Form::text(None), &mut std::io::stdout())?;
    Ok(())
}
