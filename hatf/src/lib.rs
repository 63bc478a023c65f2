//! Heap allocation traces: record, report and read them.
static RECORDER: &[u8] = include_bytes!(env!("HATF_RECORDER"));
/// x
pub fn recorder_bytes() -> usize { RECORDER.len() }
