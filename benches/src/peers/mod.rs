//! Other formats, each used as its documentation advises. They hold what plain HATF 1.0 holds of an event: its kind and one or
//! two numbers of 64 bits. Times, threads, heaps and attributes, which HATF has at no or little cost, they need not hold.

#![allow(missing_docs, reason = "rkyv's derive macro makes public types without")]

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod binary;
pub mod bincode;
pub mod postcard;
pub mod prost;
pub mod rkyv;
pub mod zerocopy;

use crate::{Counts, Event};
use ::binrw::binrw;
use ::deku::{DekuRead, DekuWrite};

/// Events in a message, of formats that read one as a whole.
pub const BATCH: usize = 4096;

/// An event, as formats that derive their code from Rust types have it.
#[binrw]
#[brw(little)]
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    ::bincode::Encode,
    ::bincode::Decode,
    ::rkyv::Archive,
    ::rkyv::Serialize,
    ::rkyv::Deserialize,
    DekuRead,
    DekuWrite,
)]
#[deku(id_type = "u8", endian = "little")]
pub enum Call {
    /// A block begins.
    #[brw(magic = 4u8)]
    #[deku(id = "4")]
    Alloc {
        /// In bytes.
        size: u64,
        /// Where.
        address: u64,
    },
    /// A block ends and another begins.
    #[brw(magic = 5u8)]
    #[deku(id = "5")]
    Realloc {
        /// Where the block was.
        old: u64,
        /// Where it is now.
        address: u64,
    },
    /// A block ends.
    #[brw(magic = 6u8)]
    #[deku(id = "6")]
    Free {
        /// Where it was.
        address: u64,
    },
}

impl From<&Event> for Call {
    fn from(event: &Event) -> Self {
        match *event {
            Event::Alloc { size, address } => Self::Alloc { size, address },
            Event::Realloc { old, address, .. } => Self::Realloc { old, address },
            Event::Free { address } => Self::Free { address },
        }
    }
}

impl Call {
    /// The sum of its fields.
    #[inline(always)]
    #[must_use]
    pub fn sum(&self) -> u64 {
        match *self {
            Self::Alloc { size, address } => size.wrapping_add(address),
            Self::Realloc { old, address } => old.wrapping_add(address),
            Self::Free { address } => address,
        }
    }

    /// Counts it.
    #[inline(always)]
    pub fn note(&self, counts: &mut Counts) {
        let [allocs, reallocs, frees] = counts;
        *match self {
            Self::Alloc { .. } => allocs,
            Self::Realloc { .. } => reallocs,
            Self::Free { .. } => frees,
        } += 1;
    }
}
