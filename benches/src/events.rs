//! The heap events that are written and read: from a file, or made up.

use std::io::Read;

/// What a program did to its heap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Alloc { size: u64, address: u64 },
    Realloc { old: u64, size: u64, address: u64 },
    Free { address: u64 },
}

/// The events of a file of 32-byte records, compressed with zstd or not.
pub(crate) fn read_file(path: &str) -> std::io::Result<Vec<Event>> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    match path.ends_with(".zst") {
        true => zstd::Decoder::new(file)?.read_to_end(&mut bytes)?,
        false => std::io::BufReader::new(file).read_to_end(&mut bytes)?,
    };
    let (records, _) = bytes.as_chunks::<32>();
    Ok(records.iter().map(event).collect())
}

fn event(record: &[u8; 32]) -> Event {
    let (words, _) = record.as_chunks::<8>();
    let [tag, size, address, old] = [0, 1, 2, 3].map(|i| words.get(i).map_or(0, |w| u64::from_le_bytes(*w)));
    match tag {
        2 => Event::Free { address },
        4 => Event::Realloc { old, size, address },
        _ => Event::Alloc { size, address },
    }
}

/// Allocations and frees of a thousand blocks at random.
pub(crate) fn made_up(count: usize) -> Vec<Event> {
    let mut live = vec![0_u64; 1000];
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut events = Vec::with_capacity(count);
    while events.len() < count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let size = random >> 20 & 0xFFF;
        let index = (random % 1000) as usize;
        let Some(block) = live.get_mut(index) else { continue };
        let event = match *block {
            0 => Event::Alloc { size, address: 0x5555_0000_0000 + index as u64 * 0x1000 },
            address => Event::Free { address },
        };
        *block = match event {
            Event::Alloc { address, .. } => address,
            _ => 0,
        };
        events.push(event);
    }
    events
}
