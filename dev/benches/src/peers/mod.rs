//! Other formats, each used as recommended by its documentation. They store the same data of an event as plain HATF
//! 1.0: its kind and one or two 64-bit numbers. They need not store times, threads, heaps and attributes, which HATF
//! supports at little or no cost.

#![allow(missing_docs, reason = "the derive macro of rkyv generates public types without documentation")]

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

/// Events per message, for formats that read a message as a unit.
pub const BATCH: usize = 4096;

/// An event for formats that derive their code from Rust types.
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
    /// The allocation of a block.
    #[brw(magic = 4u8)]
    #[deku(id = "4")]
    Alloc {
        /// The size in bytes.
        size: u64,
        /// The address.
        address: u64,
    },
    /// A reallocation, which frees one block and allocates another block.
    #[brw(magic = 5u8)]
    #[deku(id = "5")]
    Realloc {
        /// The old address.
        old: u64,
        /// The new address.
        address: u64,
    },
    /// The deallocation of a block.
    #[brw(magic = 6u8)]
    #[deku(id = "6")]
    Free {
        /// The address.
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
    /// Returns the sum of the fields.
    #[inline(always)]
    #[must_use]
    pub fn sum(&self) -> u64 {
        match *self {
            Self::Alloc { size, address } => size.wrapping_add(address),
            Self::Realloc { old, address } => old.wrapping_add(address),
            Self::Free { address } => address,
        }
    }

    /// Counts the event.
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
