//! Descriptions of a heap's codes, for dumps.

use super::{allocated, freed};

/// Describes the code of an allocation.
pub(crate) fn allocation(code: u64) -> String {
    use allocated::{BUMP, DEEP, END, FRESH, MISS, NEWER, NEWEST, NULL, OLDER, RECENTLY};
    match code {
        NEWEST => "newest freed of its class".to_owned(),
        OLDER => "older than the one taken last".to_owned(),
        NEWER => "newer than the one taken last".to_owned(),
        FRESH => "fresh memory, after the last of its class".to_owned(),
        BUMP..DEEP => format!("fresh memory, pointer {}", code - BUMP),
        DEEP..MISS => format!("freed of its class, {} newer", code - DEEP),
        MISS => "not predicted, a distance".to_owned(),
        NULL => "address 0".to_owned(),
        RECENTLY..END => format!("freed {} frees ago", code - RECENTLY + 1),
        _ => "no such candidate".to_owned(),
    }
}

/// Describes the code of a free or a use.
pub(crate) fn free(code: u64) -> String {
    use freed::{AFTER, BEFORE, DISTANCE, FOREIGN, MISS, NEWEST, NULL};
    match code {
        NEWEST..AFTER => format!("object with {} newer", code - NEWEST),
        AFTER..BEFORE => format!("after the most recently freed object, with {} objects between", code - AFTER),
        BEFORE..DISTANCE => format!("before the most recently freed object, with {} objects between", code - BEFORE),
        DISTANCE => "at a distance from the most recently freed object".to_owned(),
        FOREIGN => "of another context".to_owned(),
        MISS => "no object known there, a distance".to_owned(),
        NULL => "address 0".to_owned(),
        _ => "no such candidate".to_owned(),
    }
}

/// Returns whether elements of the stream section complete the code.
pub(crate) fn takes_elements(allocates: bool, code: u64) -> bool {
    match code {
        allocated::MISS if allocates => true,
        freed::DISTANCE | freed::FOREIGN | freed::MISS => !allocates,
        _ => false,
    }
}
