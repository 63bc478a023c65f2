//! Writes a heap trace with a given number of records, for measuring the cost of long traces:
//!
//! ```console
//! $ cargo run --release -p hatf --example many_records -- 1000000000 many.mtf
//! ```
//!
//! The trace describes an imaginary program with a few thousand live blocks. The program allocates blocks of a few
//! sizes and frees the oldest, the newest, or a random block.

use hatf_trace::event::{Call, Event, EventKind, EventSink, Function};
use hatf_trace::heap::{HeapOptions, HeapWriter};
use std::collections::VecDeque;

/// Number of live blocks.
const LIVE: usize = 4000;
const SIZES: [u64; 8] = [16, 24, 32, 32, 48, 64, 128, 1000];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(records), Some(path)) = (args.next(), args.next()) else {
        return Err("usage: many_records RECORDS TRACE".into());
    };
    let mut file = hatf_trace::trace::create(path.as_ref())?;
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default())?;
    let mut program = Program::default();
    for _ in 0..records.parse::<u64>()? {
        writer.event(&Event::new(program.next()))?;
    }
    writer.finish()?;
    let bytes = hatf_trace::trace::written(file, path.as_ref())?;
    println!("{bytes} bytes");
    Ok(())
}

/// The imaginary program.
#[derive(Default)]
struct Program {
    random: u64,
    live: VecDeque<(usize, u64)>,
    /// Freed addresses by size.
    free: [Vec<u64>; SIZES.len()],
    end: u64,
}

impl Program {
    fn next(&mut self) -> EventKind<'static> {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = usize::try_from(self.random >> 40).unwrap_or(0);
        let full = self.live.len() >= LIVE;
        if full || (self.live.len() > LIVE / 2 && random & 1 == 0) {
            let block = match random >> 1 & 7 {
                0..4 => self.live.pop_front(),
                4..7 => self.live.pop_back(),
                _ => self.live.swap_remove_front(random >> 4 & 1023),
            };
            if let Some((size, address)) = block {
                self.free[size].push(address);
                return EventKind::Free { address };
            }
        }
        let size = random >> 1 & 7;
        let address = self.free[size].pop().unwrap_or_else(|| {
            self.end += SIZES[size] + 16;
            0x5000_0000 + self.end - SIZES[size]
        });
        self.live.push_back((size, address));
        EventKind::Call(Call { size: SIZES[size], address, ..Call::new(Function::Malloc) })
    }
}
