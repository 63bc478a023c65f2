//! A snapshot: a trace of the live blocks.

use hatf_trace::Result;
use hatf_trace::event::{Call, Event, EventKind, EventSink, Function, UserMetadata};
use serde_json::json;

use crate::Heap;

/// Writes the live blocks of a process as a heap trace. Each block is an allocation of its usable size. The user
/// metadata `snapshot` states that the trace lacks the history of the blocks.
///
/// # Errors
/// Returns an error if the sink fails.
///
/// # Examples
///
/// ```
/// use hatf_inspect::{Heap, write_snapshot};
/// use hatf_trace::heap::{HeapOptions, HeapWriter};
///
/// let mut writer = HeapWriter::new(Vec::new(), &HeapOptions::default())?;
/// write_snapshot(&Heap::default(), 1234, &["server".to_owned()], &mut writer)?;
/// writer.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_snapshot(heap: &Heap, process: u32, command: &[String], sink: &mut dyn EventSink) -> Result<()> {
    let about = [
        ("program", json!(command.first())),
        ("command", json!(command)),
        ("snapshot", json!({ "process": process, "arenas": heap.arenas, "thread_caches": heap.caches })),
    ];
    let about: UserMetadata = about.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    sink.user_metadata(&about)?;
    for block in heap.live() {
        let call =
            Call { size: block.usable, usable: block.usable, address: block.address, ..Call::new(Function::Malloc) };
        sink.event(&Event::new(EventKind::Call(call)))?;
    }
    Ok(())
}
