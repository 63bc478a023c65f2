//! The summary of a trace in its model, which is a row of the paper's Table 4.

use serde::{Deserialize, Serialize};

/// A row of Table 4. Times are in units of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The number of objects allocated.
    pub objects: u64,
    /// The maximum number of simultaneously live objects.
    pub max_objects: u64,
    /// The number of bytes allocated.
    pub bytes: u64,
    /// The maximum number of simultaneously live bytes.
    pub max_bytes: u64,
    /// The number of distinct sizes (SC).
    pub size_classes: u64,
    /// The number of distinct interarrival times (ITC).
    pub interarrival_classes: u64,
    /// The number of distinct holding times (HTC).
    pub holding_classes: u64,
    /// The time of the last event (T).
    pub end: u64,
    /// The size of the trace file in bytes, if known.
    pub trace_bytes: Option<u64>,
    /// The number of objects never freed.
    pub never_freed: u64,
}
