//! Containers: the layout of a trace's bytes in a file (spec 5). This crate handles headers, extents, chunks, codecs,
//! the index and salvage, but not records.
//!
//! It is the foundation of the crate `metatf`, which re-exports it as `metatf::container`; code that reads or writes
//! records should depend on `metatf`. It also defines the [`Error`] type of both crates.
//!
//! A reader splits a source into [`Part`]s, which are runs of one section's content in file order. A writer accepts
//! finished runs and stores them.
//!
//! # Examples
//!
//! A writer stores one record in a chunk, and a reader returns the same bytes:
//!
//! ```
//! use metatf_container::{ChunkSpec, ChunkWriter, Reader, WriteOptions};
//!
//! let dtd = b"section heap 1 { free: (tag, size) { tag.value = 4; size.width = 2; size.interpretation = none; } }";
//! let mut writer = ChunkWriter::new(Vec::new(), &WriteOptions::default(), dtd)?;
//! let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, ..ChunkSpec::default() };
//! writer.data(spec, &[4, 16, 0])?;
//! let file = writer.finish(1)?;
//!
//! let mut reader = Reader::from_slice(&file)?;
//! assert_eq!(reader.dtd_text(), Some(&dtd[..]));
//! let part = reader.next_part()?.ok_or("no part")?;
//! assert_eq!((part.section, part.records), (1, Some(1)));
//! assert_eq!(reader.bytes(&part.content), &[4, 16, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

mod append;
mod chunk;
#[cfg(feature = "parallel")]
mod chunk_pipeline;
mod codec;
#[doc(hidden)]
pub mod columns;
mod content;
mod crc;
mod decode;
mod encode;
pub mod error;
mod existing;
mod feature_names;
mod features;
mod files;
mod filter;
mod growing;
mod header;
mod index;
mod kept_columns;
mod leb128;
mod loss;
#[doc(hidden)]
pub mod memory;
mod options;
mod order;
mod part;
#[doc(hidden)]
mod random;
mod ranges;
mod raw_content;
mod read;
mod read_v0;
mod read_v1;
mod record_dictionary;
mod record_dictionary_read;
mod salvage;
mod sample;
mod sink;
mod source;
mod split;
mod sums;
mod times;
mod trial;
mod warning;
mod whole_file;
mod write_v0;
mod write_v1;

pub use append::AppendFile;
pub use codec::Codec;
pub use content::{KeptColumns, Owned};
#[doc(hidden)]
pub use decode::Decoder;
pub use error::{Error, ErrorKind, MetadataRule, Place, Result, SystemError, TRUNCATED};
#[doc(hidden)]
pub use existing::ExistingTrace;
pub use features::Features;
pub use growing::GrowingFile;
pub use header::{Class, Header, MAGIC, Order, SectionEntry};
pub use index::ChunkInfo;
pub use loss::{Loss, LossCause, LossReport};
pub use options::{Filter, FlushEvery, SizeRule, Trial, WriteOptions};
pub use part::{Content, ContentBytes, MAX_RAW_LEN, Origin, Part};
pub use ranges::ByteRanges;
pub use read::Reader;
pub use sink::{Forward, Seekable, Sink};
pub use split::Split;
pub use times::{GroupTimes, TimeLeaf, TimeRange};
pub use warning::Warning;
pub use whole_file::WholeFile;
pub use write_v0::{ExtentWriter, Extents};
pub use write_v1::{ChunkSpec, ChunkWriter, Chunks};

/// Size of a chunk header, which precedes the chunk's payload (spec 5.2), in bytes.
pub const CHUNK_HEADER_LEN: u64 = chunk::LEN as u64;
