//! Tests with calls that return addresses no allocator would choose, so that the heap model must encode mispredictions.
//! Some values fit into their fields without widening, and others do not.

use super::{HEAP, expected, heap_of, text_of};
use crate::event::{Accesses, Call, Event, EventKind, Function};
use crate::heap::HeapOptions;

/// A pseudo-random number generator with a fixed seed.
struct Random(u64);

impl Random {
    fn under(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }

    /// Returns a number of varying width, rarely one of many bytes.
    fn wide(&mut self) -> u64 {
        let bits = if self.under(40) == 0 { self.under(50) } else { self.under(7) };
        self.under(1 << 30) & ((1 << bits) - 1) | 1 << bits
    }
}

/// The blocks that are live or freed after the calls so far.
#[derive(Default)]
struct Calls {
    live: Vec<u64>,
    freed: Vec<u64>,
    end: u64,
}

impl Calls {
    fn pick(random: &mut Random, addresses: &[u64]) -> Option<u64> {
        let near = if random.under(3) == 0 { addresses.len() as u64 } else { 4.min(addresses.len() as u64) };
        let back = if near == 0 { 0 } else { usize::try_from(random.under(near)).ok()? };
        addresses.iter().rev().nth(back).copied()
    }

    /// Returns the address of a new block: a freed, live, fresh or arbitrary address.
    fn begin(&mut self, random: &mut Random, size: u64) -> u64 {
        let address = match random.under(12) {
            0..6 => Self::pick(random, &self.freed),
            6 => Self::pick(random, &self.live),
            7 => Some(random.under(1 << 20) << 4),
            8 => Some(random.under(3)),
            _ => None,
        };
        let address = address.unwrap_or_else(|| {
            self.end += (size + 23) & !15;
            0x5555_0000 + self.end
        });
        self.freed.retain(|&freed| freed != address);
        self.live.push(address);
        address
    }

    /// Returns the address of a block to free: a live, freed or unseen block.
    fn end(&mut self, random: &mut Random) -> u64 {
        let address = match random.under(20) {
            0 => random.under(1 << 20) << 4,
            1 => Self::pick(random, &self.freed).unwrap_or(0),
            _ => Self::pick(random, &self.live).unwrap_or(0),
        };
        self.live.retain(|&live| live != address);
        self.freed.push(address);
        address
    }

    fn event(&mut self, random: &mut Random) -> EventKind<'static> {
        let size = random.wide();
        let usable = if random.under(50) == 0 { random.wide() } else { 0 };
        match random.under(21) {
            0..8 => {
                let function = if random.under(4) == 0 { Function::Calloc } else { Function::Malloc };
                let detail = if function == Function::Calloc && random.under(8) == 0 { random.wide() } else { 0 };
                let address = self.begin(random, size);
                EventKind::Call(Call { detail, size, usable, address, ..Call::new(function) })
            }
            8..14 => EventKind::Free { address: self.end(random) },
            14..17 => {
                let old = self.end(random);
                EventKind::Call(Call {
                    size,
                    usable,
                    old,
                    address: self.begin(random, size),
                    ..Call::new(Function::Realloc)
                })
            }
            17 => EventKind::ReallocBegin { old: self.end(random) },
            18 => EventKind::Accesses(Accesses {
                address: Self::pick(random, &self.live).unwrap_or(1),
                loads: random.wide(),
                stores: random.wide(),
                touched: random.wide(),
                granules: random.wide(),
                reached: false,
            }),
            19 => EventKind::Untouched { address: Self::pick(random, &self.live).unwrap_or(1), bytes: random.wide() },
            _ => EventKind::LastAccess { address: Self::pick(random, &self.freed).unwrap_or(1), last: random.wide() },
        }
    }
}

#[test]
fn unlikely_calls_come_back() {
    for seed in 0..8 {
        let (mut random, mut calls, mut time) = (Random(seed), Calls::default(), 0);
        let stacks = [vec![], vec![1, 2], vec![1 << 40; 3]];
        let (timed, stacked, threads) = (seed % 2, seed / 2 % 2, 1 + seed / 4 * 3);
        let event = |_| {
            let kind = calls.event(&mut random);
            time += timed * random.wide();
            let has_stack =
                !matches!(kind, EventKind::Accesses(_) | EventKind::LastAccess { .. } | EventKind::Untouched { .. });
            let stack = if has_stack && random.under(6) < stacked { random.under(3) } else { 0 };
            let stack = stacks.get(usize::try_from(stack).unwrap_or(0)).map_or(&[][..], |stack| stack);
            let among = if random.under(5) == 0 { threads } else { 1 };
            let thread = 1 + random.under(among);
            Event { time, thread, stack: stack.into(), ..Event::new(kind) }
        };
        let events: Vec<Event<'_>> = (0..6000).map(event).collect();
        for group_records in [40, 1500, 1_000_000] {
            let (heap, losses) = heap_of(&events, &HeapOptions { group_records, ..HeapOptions::default() });
            assert!(losses.is_empty(), "{losses}");
            let (read, written) = (text_of(&HEAP, &heap).0, expected(&events));
            let wrong = read.iter().zip(&written).find(|(read, written)| read != written);
            assert_eq!((wrong, read.len()), (None, written.len()), "seed {seed}, groups of {group_records}");
        }
    }
}
