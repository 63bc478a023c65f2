use super::*;

/// A writer's and a reader's model, which receive the same events.
struct Both {
    writer: Heap,
    reader: Heap,
}

impl Both {
    fn new() -> Self {
        Self { writer: Heap::new(SizeRule::Header), reader: Heap::new(SizeRule::Header) }
    }

    fn allocate(&mut self, by: u64, size: u64, address: u64) -> u64 {
        let found = self.writer.find_allocated(by, size, address);
        let mut elements = found.elements().iter().copied();
        let back = self.reader.allocated(by, size, found.code, &mut || Ok(elements.next().unwrap())).unwrap().unwrap();
        assert_eq!(back.0, address, "code {}", found.code);
        assert_eq!(elements.next(), None);
        self.writer.allocate(by, size, address, found.code, found.hint);
        self.reader.allocate(by, size, address, found.code, back.1);
        found.code
    }

    fn free(&mut self, by: u64, address: u64) -> u64 {
        let found = self.writer.find_freed(by, address);
        let mut elements = found.elements().iter().copied();
        let back = self.reader.freed(by, found.code, &mut || Ok(elements.next().unwrap())).unwrap().unwrap();
        assert_eq!(back.0, address, "code {}", found.code);
        assert_eq!(elements.next(), None);
        self.writer.free(by, found.hint);
        self.reader.free(by, back.1);
        found.code
    }
}

#[test]
fn fresh_memory_and_free_lists() {
    let mut heap = Both::new();
    assert_eq!(heap.allocate(0, 24, 0x1000), allocated::MISS);
    assert_eq!(heap.allocate(0, 100, 0x1020), allocated::BUMP);
    assert_eq!(heap.allocate(0, 24, 0x1090), allocated::BUMP);
    assert_eq!(heap.free(0, 0x1090), freed::NEWEST);
    assert_eq!(heap.allocate(0, 20, 0x1090), allocated::NEWEST);
    assert_eq!(heap.free(0, 0x1020), freed::NEWEST + 1);
    assert_eq!(heap.free(0, 0x1000), freed::NEWEST + 1);
    // A smaller object is allocated at the address of a freed larger object. The list of its class does not contain the
    // address, but the list of recently freed addresses does.
    assert_eq!(heap.allocate(0, 40, 0x1020), allocated::RECENTLY + 1);
    assert_eq!(heap.allocate(0, 24, 0x1000), allocated::NEWEST);
}

#[test]
fn what_is_not_known() {
    let mut heap = Both::new();
    assert_eq!(heap.free(0, 0x5000), freed::MISS);
    assert_eq!(heap.free(0, 0), freed::NULL);
    assert_eq!(heap.allocate(0, 0, 0), allocated::NULL);
    assert_eq!(heap.allocate(0, u64::MAX, u64::MAX), allocated::MISS);
    assert_eq!(heap.free(0, u64::MAX), freed::NEWEST);
    assert_eq!(heap.free(0, u64::MAX), freed::MISS);
    // The second allocation at an address ends the life of the first object.
    heap.allocate(0, 8, 0x10);
    heap.allocate(0, 8, 0x10);
    assert_eq!(heap.free(0, 0x10), freed::NEWEST);
    assert_eq!(heap.free(0, 0x10), freed::MISS);
}

#[test]
fn contexts() {
    let mut heap = Both::new();
    heap.allocate(1, 24, 0x1000);
    heap.allocate(2, 24, 0x9000);
    assert_eq!(heap.allocate(1, 24, 0x1020), allocated::BUMP);
    assert_eq!(heap.free(2, 0x1000), freed::FOREIGN);
    // The thread that freed the object reuses it.
    assert_eq!(heap.allocate(2, 24, 0x1000), allocated::NEWEST);
    assert_eq!(heap.free(2, 0x1000), freed::NEWEST);
    assert_eq!(heap.allocate(1, 24, 0x1000), allocated::MISS);
}

/// Two pairs of models: one uses the fast paths, which find and learn in one step; the other uses separate steps. Both
/// must produce the same codes.
struct Usual {
    usual: Both,
    plain: Both,
}

impl Usual {
    fn allocate(&mut self, by: u64, size: u64, address: u64) {
        let code = self.plain.allocate(by, size, address);
        let Some(usual) = self.usual.writer.encode_allocated(by, size, address) else {
            assert_eq!(self.usual.allocate(by, size, address), code);
            return;
        };
        assert_eq!(usual, code);
        if self.usual.reader.allocated_usual(by, size, code) != Some(address) {
            let back = self.usual.reader.allocated(by, size, code, &mut || panic!("no element")).unwrap().unwrap();
            self.usual.reader.allocate(by, size, address, code, back.1);
            assert_eq!(back.0, address);
        }
    }

    fn free(&mut self, by: u64, address: u64) {
        let code = self.plain.free(by, address);
        let Some(usual) = self.usual.writer.encode_freed(by, address) else {
            assert_eq!(self.usual.free(by, address), code);
            return;
        };
        assert_eq!(usual, code);
        if self.usual.reader.freed_usual(by, code) != Some(address) {
            let back = self.usual.reader.freed(by, code, &mut || panic!("no element")).unwrap().unwrap();
            self.usual.reader.free(by, back.1);
            assert_eq!(back.0, address);
        }
    }
}

#[test]
fn the_usual_ways_are_no_others() {
    let mut random = random(7);
    let mut heap = Usual { usual: Both::new(), plain: Both::new() };
    let mut live = Vec::new();
    for i in 0..60_000_u64 {
        let by = random(2);
        if live.is_empty() || random(10) < [7, 2, 5][pick(i / 20_000)] {
            let (size, address) = (random(2000), random(6000) * 16);
            heap.allocate(by, size, address);
            live.retain(|&a| a != address);
            live.extend((address != 0).then_some(address));
        } else {
            let at = if random(2) == 0 { live.len() - 1 } else { pick(random(live.len() as u64)) };
            heap.free(by, live.remove(at));
        }
    }
    for heap in [&heap.usual.writer, &heap.usual.reader] {
        assert_eq!(heap.live().iter().map(|(_, objects)| objects.len()).sum::<usize>(), live.len());
    }
}

/// Returns random numbers less than the argument.
pub(super) fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    }
}

pub(super) fn pick(n: u64) -> usize {
    usize::try_from(n).unwrap()
}

#[test]
fn random_events_come_back() {
    let mut random = random(1);
    let mut heap = Both::new();
    let mut live = Vec::new();
    for i in 0..60_000_u64 {
        let by = random(3);
        // Phases of growth, shrinking and churn.
        if live.is_empty() || random(10) < [7, 2, 5][pick(i / 20_000)] {
            let (size, address) = (random(300), 0x10_000 + random(6000) * 16);
            heap.allocate(by, size, address);
            live.retain(|&a| a != address);
            live.push(address);
        } else {
            let at = if random(2) == 0 { live.len() - 1 } else { pick(random(live.len() as u64)) };
            heap.free(by, live.remove(at));
        }
    }
    assert_eq!(heap.writer.live().iter().map(|(_, objects)| objects.len()).sum::<usize>(), live.len());
    let mut carried = Heap::new(SizeRule::Header);
    let elements = carried.carry(SizeRule::Header, &heap.writer.live());
    let mut elements = elements.into_iter();
    let mut opened = Heap::new(SizeRule::Classes);
    opened.open(&mut || Ok(elements.next().unwrap())).unwrap().unwrap();
    assert_eq!(carried.live(), opened.live());
    assert_eq!(elements.next(), None);
}

#[test]
fn memory_follows_what_is_live() {
    let mut heap = Both::new();
    for i in 0..200_000_u64 {
        heap.allocate(0, 24, i * 32 + 32);
        heap.free(0, i * 32 + 32);
    }
    assert!(heap.writer.blocks.at(32).is_none(), "the first block is evicted");
    assert!(heap.writer.blocks.at(200_000 * 32).is_some(), "the last block is kept");
}

#[test]
fn codes_that_name_nothing() {
    let heap = Heap::new(SizeRule::Header);
    for code in (0..300).chain([u64::MAX]) {
        let mut next = || Ok(7);
        let _ = heap.allocated(0, 8, code, &mut next).unwrap();
        let _ = heap.freed(0, code, &mut next).unwrap();
    }
    let mut both = Both::new();
    both.allocate(0, 8, 0x20);
    both.allocate(5, 8, 0x40);
    for code in (0..300).chain([u64::MAX]) {
        for element in [0, 1, 2, 1000, u64::MAX] {
            let mut next = || Ok(element);
            for by in [0, 5, 6] {
                let _ = both.writer.allocated(by, 8, code, &mut next).unwrap();
                let _ = both.writer.freed(by, code, &mut next).unwrap();
            }
        }
    }
    assert_eq!(both.writer.allocated(0, 8, allocated::END, &mut || Ok(0)), Ok(None));
    assert_eq!(both.writer.freed(0, freed::NULL + 1, &mut || Ok(0)), Ok(None));
}

#[test]
fn contexts_are_bounded() {
    let mut heap = Both::new();
    for by in 0..10_000 {
        heap.allocate(by, 24, 0x1000 + by * 32);
        heap.free(by + 1, 0x1000 + by * 32);
    }
    assert!(heap.writer.contexts.len() < MOST_ADDRESSES / ADDRESSES_PER_CONTEXT);
}

/// After a reset, a heap behaves like a new one.
#[test]
fn begun_anew_it_is_a_new_one() {
    let mut random = random(7);
    let mut again = Heap::new(SizeRule::Header);
    // The numbers of events are large, small, larger than before, and zero.
    for (events, places, contexts) in
        [(60_000, 50_000, 40), (300, 100, 2), (90_000, 3_000_000, 3), (0, 1, 1), (5000, 900, 17)]
    {
        let rule = if events == 300 { SizeRule::Classes } else { SizeRule::Header };
        again.reset(rule);
        let mut new = Heap::new(rule);
        for _ in 0..events {
            // Some addresses are not multiples of 16, and some exceed what a table of places can store.
            let shift = [4, 4, 4, 4, 3, 44][usize::try_from(random(6)).unwrap()];
            let (by, size, address) = (random(contexts), random(3000), (random(places) + 1) << shift);
            let freed = random(2) == 0;
            let found = |heap: &mut Heap| {
                if freed { heap.find_freed(by, address) } else { heap.find_allocated(by, size, address) }
            };
            let (one, other) = (found(&mut again), found(&mut new));
            assert_eq!((one.code, one.elements(), one.hint), (other.code, other.elements(), other.hint));
            for (heap, found) in [(&mut again, one), (&mut new, other)] {
                match freed {
                    true => heap.free(by, found.hint),
                    false => heap.allocate(by, size, address, found.code, found.hint),
                }
            }
        }
        assert_eq!(again.live(), new.live());
    }
}
