//! What a model keeps of its trace: a row of the paper's Table 4.

use serde::{Deserialize, Serialize};

/// A row of Table 4. Times are in units of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Objects allocated.
    pub objects: u64,
    /// The most objects live at once.
    pub max_objects: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// The most bytes live at once.
    pub max_bytes: u64,
    /// Distinct sizes (SC).
    pub size_classes: u64,
    /// Distinct interarrival times (ITC).
    pub interarrival_classes: u64,
    /// Distinct holding times (HTC).
    pub holding_classes: u64,
    /// The time of the last event (T).
    pub end: u64,
    /// The size of the trace's file; `None`: not known.
    pub trace_bytes: Option<u64>,
    /// Objects never freed.
    pub never_freed: u64,
}
