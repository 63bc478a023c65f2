//! Sections of debug information.

use addr2line::gimli::{EndianSlice, RunTimeEndian, SectionId};

/// Bytes of debug information.
pub(super) type Bytes<'b> = EndianSlice<'b, RunTimeEndian>;

/// Returns whether a section describes functions and lines. The other sections describe types, variables and macros.
pub(super) fn is_read(id: SectionId) -> bool {
    !matches!(
        id,
        SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugMacinfo
            | SectionId::DebugMacro
            | SectionId::DebugNames
            | SectionId::DebugTypes
    )
}
