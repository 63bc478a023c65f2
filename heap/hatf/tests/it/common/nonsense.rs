//! Well-formed traces that make no sense: each event can be written, but need not follow from earlier ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hatf_trace::event::{Accesses, Call, Function, Pages, Resident, UNKNOWN_SIZE};
use hatf_trace::{Event, EventKind, EventSink, Result};

/// Maximum number of events, because simulators process each one.
const MOST: usize = 400;

/// Returns bytes one by one, and zeros after the last.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Returns one of a few numbers, so that events refer to each other.
    fn few(&mut self) -> u64 {
        u64::from(self.next() % 6)
    }

    /// Returns a small number, a power of two, its predecessor or its negation.
    fn number(&mut self) -> u64 {
        let byte = self.next();
        let power = 1_u64 << (byte & 63);
        match byte >> 6 {
            0 => u64::from(byte),
            1 => power,
            2 => power.wrapping_sub(1),
            _ => power.wrapping_neg(),
        }
    }

    /// Returns an address: mostly one of a few, some of which are inside other blocks, and sometimes any number.
    fn address(&mut self) -> u64 {
        match self.next() {
            byte @ 0..=199 => 0x1000 + u64::from(byte % 40) * 16,
            _ => self.number(),
        }
    }

    fn size(&mut self) -> u64 {
        match self.next() {
            byte @ 0..=199 => u64::from(byte),
            200..=203 => UNKNOWN_SIZE,
            _ => self.number(),
        }
    }

    fn call(&mut self) -> Call {
        let function = Function::ALL[usize::from(self.next()) % Function::ALL.len()];
        let (address, size) = (self.address(), self.size());
        let old = if function.is_realloc() { self.address() } else { 0 };
        let detail = if function.counts() || function.aligns() { 1 << (self.next() % 16) } else { 0 };
        let usable = if self.few() == 0 { self.size() } else { 0 };
        // Only reallocs have unknown sizes.
        let size = if size == UNKNOWN_SIZE && !function.is_realloc() { 24 } else { size };
        Call { function, detail, size, usable, old, address }
    }
}

/// Sends the events encoded by these bytes to a sink.
pub(crate) fn give(bytes: &[u8], sink: &mut dyn EventSink) -> Result<()> {
    const NAMES: [&[u8]; 6] =
        [b"main", b"std::vec<int>::push_back(\"</script>\")", b"", b"\xff\x1b[2J", b"malloc", b"a.rs"];
    const MODULE: &[u8] = b"- /no/such/program";
    let mut bytes = Bytes(bytes);
    let (mut time, mut count) = (0_u64, 0);
    while !bytes.0.is_empty() && count < MOST {
        count += 1;
        time = match bytes.next() {
            0 => bytes.number(),
            byte => time.saturating_add(u64::from(byte) * 1000),
        };
        let name = NAMES[usize::from(bytes.next()) % NAMES.len()];
        let kind = match bytes.next() {
            0..=99 => EventKind::Call(bytes.call()),
            100..=169 => EventKind::Free { address: bytes.address() },
            170..=175 => EventKind::ReallocBegin { old: bytes.address() },
            176..=181 => EventKind::ReallocEnd(Call { function: Function::Realloc, detail: 0, ..bytes.call() }),
            182..=187 => EventKind::Failed(Call { address: 0, ..bytes.call() }),
            188 | 189 => EventKind::CreateHeap,
            190 | 191 => EventKind::DestroyHeap,
            192..=194 => EventKind::ThreadStart { creator: bytes.few(), task: bytes.number() },
            195..=197 => EventKind::ThreadEnd,
            198..=200 => EventKind::ThreadName { name },
            201..=203 => EventKind::Pages(Pages::Map {
                start: bytes.address(),
                length: bytes.number(),
                protection: 3,
                flags: bytes.few(),
            }),
            204 | 205 => EventKind::Pages(Pages::Unmap { start: bytes.address(), length: bytes.number() }),
            206 => EventKind::Pages(Pages::Remap {
                from: bytes.address(),
                from_length: bytes.number(),
                start: bytes.address(),
                length: bytes.number(),
            }),
            207 => EventKind::Pages(Pages::Break { end: bytes.number() }),
            208 => {
                EventKind::Pages(Pages::Advise { start: bytes.address(), length: bytes.number(), advice: bytes.few() })
            }
            209..=212 => EventKind::Resident(Resident {
                resident: bytes.number(),
                shared: bytes.number(),
                data: bytes.number(),
                mapped: bytes.number(),
            }),
            213..=216 => EventKind::Mark { name },
            217..=220 => EventKind::PhaseBegin { name },
            221..=224 => EventKind::PhaseEnd { name },
            225 => EventKind::Image { process: bytes.few(), path: name },
            226..=228 => EventKind::ModuleLoad {
                bias: bytes.number(),
                start: bytes.few() << 12,
                end: bytes.number(),
                name: MODULE,
            },
            229 => EventKind::ModuleUnload { start: bytes.few() << 12 },
            230 | 231 => EventKind::Source { path: name },
            232..=236 => EventKind::Symbol { frame: bytes.few() << 12, line: bytes.number(), name },
            237..=239 => EventKind::Accesses(Accesses {
                address: bytes.address(),
                loads: bytes.number(),
                stores: bytes.number(),
                touched: bytes.number(),
                granules: bytes.number(),
                reached: bytes.few() == 0,
            }),
            240 => EventKind::LastAccess { address: bytes.address(), last: bytes.number() },
            241 => EventKind::Untouched { address: bytes.address(), bytes: bytes.number() },
            242 | 243 => EventKind::Enter { function: bytes.few() << 12 },
            244 | 245 => EventKind::Leave,
            246..=248 => EventKind::Processor { cpu: bytes.few() },
            249 => EventKind::Exit { status: bytes.number() },
            250 => EventKind::Killed { signal: bytes.few() },
            251 | 252 => EventKind::Lost { events: bytes.number() },
            _ => EventKind::Recording { on: bytes.few() < 4 },
        };
        let stack: Vec<u64> = (0..bytes.few()).map(|_| (bytes.few() << 12) + 1).collect();
        let thread = 1 + bytes.few();
        sink.event(&Event { kind, time, thread, stack: (&stack).into(), ..Event::new(EventKind::CreateHeap) })?;
    }
    Ok(())
}
