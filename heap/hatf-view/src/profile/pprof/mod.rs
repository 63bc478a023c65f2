//! pprof profiles: the messages of `profile.proto`, optionally compressed by gzip.
//!
//! A sample contains the four values of Go's heap profiles: `alloc_objects`, `alloc_space`, `inuse_objects` and
//! `inuse_space`. "In use" means live at the peak. A pprof location contains the address of a call. The corresponding
//! location here contains the return address, which is approximated as the next byte.

mod read;
mod wire;
mod write;

use std::io::Read as _;

use super::ProfileForm;
use hatf_trace::Error;

pub use read::read_pprof;

pub(super) static FORM: ProfileForm = ProfileForm {
    name: "pprof",
    about: "pprof's profile.proto: allocated, and live at the peak",
    ending: "pb.gz",
    // The type of the first value, which is a message with two string indices.
    sniff: |head| matches!(head.bytes, [0x0a, 2..=8, 0x08, ..]),
    open: Some(|input, step| {
        let (name, mut bytes) = (input.name().to_owned(), Vec::new());
        input.into_read().take(LONGEST + 1).read_to_end(&mut bytes).map_err(Error::system(name))?;
        read_pprof(&bytes, step).map(|profile| vec![profile])
    }),
    create: Some(|profile, _, note, output| {
        if profile.infos.iter().any(|info| info.live.is_none()) {
            note(
                "the profile does not record live memory, so inuse_objects and inuse_space are 0: create it again from \
                 its trace",
            );
        }
        write::write_pprof(profile, output)
    }),
};

/// Maximum size of a decompressed profile in bytes, because the entire profile is held in memory.
const LONGEST: u64 = 1 << 28;

/// Nanoseconds per second.
const NANOSECONDS: u64 = 1_000_000_000;

/// The four values of a sample with their units.
const VALUES: [(&str, &str); 4] =
    [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")];

/// Field numbers by message.
mod field {
    pub(super) mod profile {
        pub(in super::super) const SAMPLE_TYPE: u64 = 1;
        pub(in super::super) const SAMPLE: u64 = 2;
        pub(in super::super) const MAPPING: u64 = 3;
        pub(in super::super) const LOCATION: u64 = 4;
        pub(in super::super) const FUNCTION: u64 = 5;
        pub(in super::super) const STRING: u64 = 6;
        pub(in super::super) const TIME_NANOS: u64 = 9;
        pub(in super::super) const DURATION_NANOS: u64 = 10;
        pub(in super::super) const PERIOD_TYPE: u64 = 11;
        pub(in super::super) const PERIOD: u64 = 12;
        pub(in super::super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
    }
    pub(super) mod value_type {
        pub(in super::super) const TYPE: u64 = 1;
        pub(in super::super) const UNIT: u64 = 2;
    }
    pub(super) mod sample {
        pub(in super::super) const LOCATION: u64 = 1;
        pub(in super::super) const VALUE: u64 = 2;
    }
    pub(super) mod mapping {
        pub(in super::super) const ID: u64 = 1;
        pub(in super::super) const START: u64 = 2;
        pub(in super::super) const LIMIT: u64 = 3;
        pub(in super::super) const OFFSET: u64 = 4;
        pub(in super::super) const FILE: u64 = 5;
        pub(in super::super) const BUILD_ID: u64 = 6;
        pub(in super::super) const HAS_FUNCTIONS: u64 = 7;
        pub(in super::super) const HAS_FILES: u64 = 8;
        pub(in super::super) const HAS_LINES: u64 = 9;
        pub(in super::super) const HAS_INLINED: u64 = 10;
    }
    pub(super) mod location {
        pub(in super::super) const ID: u64 = 1;
        pub(in super::super) const MAPPING: u64 = 2;
        pub(in super::super) const ADDRESS: u64 = 3;
        pub(in super::super) const LINE: u64 = 4;
    }
    pub(super) mod line {
        pub(in super::super) const FUNCTION: u64 = 1;
        pub(in super::super) const LINE: u64 = 2;
    }
    pub(super) mod function {
        pub(in super::super) const ID: u64 = 1;
        pub(in super::super) const NAME: u64 = 2;
        pub(in super::super) const SYSTEM_NAME: u64 = 3;
        pub(in super::super) const FILE: u64 = 4;
    }
}
