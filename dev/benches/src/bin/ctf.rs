//! `ctf DIRECTORY`: writes the events as a CTF 1.8 trace for babeltrace2, which `dev/benches/babeltrace` times.

use metatf_bench::peers::Call;
use metatf_bench::{Result, events};
use std::path::Path;

/// Events per packet.
const BATCH: usize = 65_536;

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := uint64_t;
trace {
    major = 1;
    minor = 8;
    byte_order = le;
    packet.header := struct { uint32_t magic; uint32_t stream_id; };
};
stream {
    id = 0;
    packet.context := struct { uint64_t content_size; uint64_t packet_size; };
    event.header := struct { uint8_t id; };
};
event { name = "alloc"; id = 4; stream_id = 0; fields := struct { uint64_t size; uint64_t address; }; };
event { name = "realloc"; id = 5; stream_id = 0; fields := struct { uint64_t old; uint64_t address; }; };
event { name = "free"; id = 6; stream_id = 0; fields := struct { uint64_t address; }; };
"#;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).ok_or("ctf DIRECTORY")?;
    let directory = Path::new(&directory);
    let (events, _) = events::load()?;
    let calls: Vec<Call> = events.iter().map(Call::from).collect();
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("metadata"), METADATA)?;
    std::fs::write(directory.join("stream"), calls.chunks(BATCH).flat_map(packet).collect::<Vec<u8>>())?;
    println!("{}", calls.len());
    Ok(())
}

/// Encodes a packet, which consists of a header, the packet's length in bits (twice), and the events.
fn packet(calls: &[Call]) -> Vec<u8> {
    let mut events = Vec::new();
    for call in calls {
        let (id, first, second) = match *call {
            Call::Alloc { size, address } => (4, size, Some(address)),
            Call::Realloc { old, address } => (5, old, Some(address)),
            Call::Free { address } => (6, address, None),
        };
        events.push(id);
        events.extend_from_slice(&first.to_le_bytes());
        events.extend(second.map(u64::to_le_bytes).into_iter().flatten());
    }
    let mut packet = 0xC1FC_1FC1_u32.to_le_bytes().to_vec();
    packet.extend_from_slice(&[0; 4]);
    let bits = 8 * (events.len() as u64 + 24);
    packet.extend_from_slice(&bits.to_le_bytes());
    packet.extend_from_slice(&bits.to_le_bytes());
    packet.append(&mut events);
    packet
}
