//! Simulated threads of a program. Each step of a call is a step of the machine, and any thread may take the next step,
//! so every possible preemption between the allocator, the stamp and the write can occur.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use hatf_record::{CHUNK_BYTES, Kind, Owner, Producer, Spool, SpoolEvent, bytes_for};

const CHUNKS: usize = 256;

/// Memory for a spool.
pub(crate) struct Memory(*mut u8, Layout);

impl Memory {
    pub(crate) fn new() -> Self {
        let layout = Layout::from_size_align(bytes_for(CHUNKS), CHUNK_BYTES).unwrap();
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(layout) };
        // SAFETY: this is zeroed memory of the spool's size, used only through spools.
        let spool = unsafe { Spool::create(memory, CHUNKS) };
        for chunk in 0..CHUNKS {
            assert!(spool.make_ready(chunk));
        }
        Self(memory, layout)
    }

    pub(crate) fn spool(&self) -> Spool<'_> {
        // SAFETY: this is the memory in which `new` created a spool.
        unsafe { Spool::attach(self.0, bytes_for(CHUNKS)) }.unwrap()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and no spool outlives `self`.
        unsafe { dealloc(self.0, self.1) };
    }
}

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

pub(crate) fn write(producer: &Producer, spool: Spool<'_>, event: &SpoolEvent) {
    let owner = Owner { thread: event.thread, process: 1, image: 1, task: 1 };
    let (slots, used) = event.to_slots();
    // SAFETY: the memory remains valid.
    while !unsafe { producer.put_slots(event.time, &slots[..used]) } {
        let chunk = spool.chunk(spool.take().unwrap()).unwrap();
        producer.install(&chunk, owner, event.time, event.time);
    }
}

/// The progress of a thread within a call.
#[derive(Clone, Copy)]
enum Step {
    Between,
    /// The allocator has returned this address.
    Given(u64),
    /// The address is stamped.
    StampedGiven(u64, u64),
    /// The end of this thread's block is stamped.
    StampedFree(u64, u64),
    /// The end is written, so the allocator may reuse the block.
    WrittenFree(u64),
    /// The beginning of a realloc is stamped, then written; then the allocator has freed the old block and returned the
    /// new one.
    StampedRealloc(u64, u64),
    WrittenRealloc(u64),
    Moved(u64, u64),
}

/// Simulated threads of a program with one allocator, which reuses the most recently freed block.
pub(crate) struct Machine<'m> {
    spool: Spool<'m>,
    threads: Vec<(Producer, Step, u64)>,
    /// The clock error of each thread.
    skew: Vec<u64>,
    free: Vec<u64>,
    fresh: u64,
    live: Vec<u64>,
    pub(crate) now: u64,
    /// The number of events so far, excluding realloc-begin events.
    pub(crate) written: u64,
}

impl<'m> Machine<'m> {
    pub(crate) fn new(spool: Spool<'m>, threads: usize, most_skew: u64, random: &mut Random) -> Self {
        Self {
            spool,
            threads: (0..threads).map(|_| (Producer::new(), Step::Between, 0)).collect(),
            skew: (0..threads).map(|_| random.below(most_skew + 1)).collect(),
            free: Vec::new(),
            fresh: 0x1000,
            live: Vec::new(),
            now: 1 << 20,
            written: 0,
        }
    }

    fn stamp(&mut self, thread: usize) -> u64 {
        self.threads[thread].2 = self.threads[thread].2.max(self.now + self.skew[thread]);
        self.threads[thread].2
    }

    fn allocate(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.fresh += 16;
            self.fresh
        })
    }

    fn write(&mut self, thread: usize, kind: Kind, stamp: u64, address: u64, old: u64) {
        let number = u32::try_from(thread + 1).unwrap();
        let event = SpoolEvent { size: 10, address, old, ..SpoolEvent::new(kind, number, stamp) };
        write(&self.threads[thread].0, self.spool, &event);
        self.written += u64::from(kind != Kind::ReallocBegin);
    }

    /// Records an image in the first thread.
    pub(crate) fn begin_image(&mut self) {
        let stamp = self.stamp(0);
        write(&self.threads[0].0, self.spool, &SpoolEvent::new(Kind::Image, 1, stamp));
        self.written += 1;
    }

    /// Runs one step of a thread.
    pub(crate) fn step(&mut self, thread: usize, random: &mut Random) {
        self.now += 1;
        let any = |live: &mut Vec<u64>, random: &mut Random| {
            let at = usize::try_from(random.below(live.len() as u64)).unwrap();
            live.swap_remove(at)
        };
        self.threads[thread].1 = match self.threads[thread].1 {
            Step::Between => match random.below(5) {
                0 | 1 if !self.live.is_empty() => {
                    let address = any(&mut self.live, random);
                    Step::StampedFree(address, self.stamp(thread))
                }
                2 if !self.live.is_empty() => {
                    let old = any(&mut self.live, random);
                    Step::StampedRealloc(old, self.stamp(thread))
                }
                _ => Step::Given(self.allocate()),
            },
            Step::Given(address) => Step::StampedGiven(address, self.stamp(thread)),
            Step::StampedGiven(address, stamp) => {
                self.write(thread, Kind::Malloc, stamp, address, 0);
                self.live.push(address);
                Step::Between
            }
            Step::StampedFree(address, stamp) => {
                self.write(thread, Kind::Free, stamp, address, 0);
                Step::WrittenFree(address)
            }
            Step::WrittenFree(address) => {
                self.free.push(address);
                Step::Between
            }
            Step::StampedRealloc(old, stamp) => {
                self.write(thread, Kind::ReallocBegin, stamp, 0, old);
                Step::WrittenRealloc(old)
            }
            Step::WrittenRealloc(old) => {
                let address = self.allocate();
                self.free.push(old);
                Step::Moved(old, address)
            }
            Step::Moved(old, address) => {
                let stamp = self.stamp(thread);
                self.write(thread, Kind::Realloc, stamp, address, old);
                self.live.push(address);
                Step::Between
            }
        };
    }
}
