//! A report of the data that salvage could not deliver (spec 5.2).

use std::fmt;

use crate::Error;

/// All losses found during a salvage; empty if all data was delivered.
///
/// The example of [`Reader`](crate::Reader#examples) salvages a corrupt trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossReport {
    /// The losses, in file order.
    pub losses: Vec<Loss>,
    /// Number of missing chunks of any kind according to the sequence numbers, whether they are corrupt or were removed
    /// from the file.
    pub missing_chunks: u64,
    /// Whether lost bytes at the end of the file contained an unknown number of chunks.
    pub open_end: bool,
}

/// A single loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Offset of the first lost byte in the file.
    pub start: u64,
    /// Offset after the last lost byte; equal to `start` if chunks were removed from the file.
    pub end: u64,
    /// The cause of the loss.
    pub cause: LossCause,
    /// The section, if known.
    pub section: Option<u8>,
    /// Number of lost data records and stream elements, if the chunk's header or the index contains it. For corrupt
    /// bytes, the associated `Missing` entry contains the number instead.
    pub records: Option<u64>,
}

/// The cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// The bytes are not a valid chunk, for this reason.
    Damaged(Error),
    /// Chunks are missing before this point according to the sequence numbers.
    Missing {
        /// Sequence number of the first missing chunk.
        first: u64,
        /// Number of missing chunks.
        chunks: u64,
    },
    /// The chunk is intact, but its section's state has not been reset since the corruption.
    StateLost,
    /// The chunk is intact but depends on lost data: it strides through a stream section, and an earlier chunk of its
    /// group is missing.
    Dependent,
    /// The chunk's CRC is valid, but its header or content is not.
    Content(Error),
    /// An intact chunk with a sequence number that has already occurred.
    Repeated,
}

impl LossReport {
    /// Returns whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.losses.is_empty()
    }

    /// Returns the number of lost records and elements, if it is known for every loss.
    #[must_use]
    pub fn records_lost(&self) -> Option<u64> {
        let known = |loss: &Loss| match loss.cause {
            LossCause::Damaged(_) | LossCause::Repeated => Some(0),
            _ => loss.records,
        };
        if self.open_end {
            return None;
        }
        self.losses.iter().try_fold(0_u64, |sum, loss| Some(sum.saturating_add(known(loss)?)))
    }

    /// Returns the number of corrupt bytes, excluding intact chunks that had to be dropped.
    #[must_use]
    pub fn damaged_bytes(&self) -> u64 {
        let damaged = self.losses.iter().filter(|loss| matches!(loss.cause, LossCause::Damaged(_)));
        damaged.map(|loss| loss.end - loss.start).sum()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start < self.end {
            write!(f, "bytes {} to {}: ", self.start, self.end - 1)?;
        } else {
            write!(f, "before offset {}: ", self.start)?;
        }
        match self.cause {
            LossCause::Damaged(error) => write!(f, "damaged ({error})")?,
            LossCause::Missing { first, chunks: 1 } => write!(f, "chunk {first} is missing")?,
            LossCause::Missing { first, chunks } => {
                write!(f, "chunks {first} to {} are missing", first.saturating_add(chunks) - 1)?;
            }
            LossCause::StateLost => write!(f, "an intact chunk whose state has not been reset since the corruption")?,
            LossCause::Dependent => write!(f, "an intact chunk that depends on lost data")?,
            LossCause::Content(error) => write!(f, "an invalid chunk ({error})")?,
            LossCause::Repeated => write!(f, "a chunk with a repeated sequence number")?,
        }
        if let Some(section) = self.section {
            write!(f, ", section {section}")?;
        }
        match self.records {
            Some(1) => write!(f, ", 1 record"),
            Some(n) => write!(f, ", {n} records"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LossReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(f, "nothing was lost");
        }
        for loss in &self.losses {
            writeln!(f, "{loss}")?;
        }
        match self.records_lost() {
            Some(1) => write!(f, "1 record or stream element lost"),
            Some(n) => write!(f, "{n} records and stream elements lost"),
            None => write!(f, "the total number of lost records is unknown"),
        }
    }
}
