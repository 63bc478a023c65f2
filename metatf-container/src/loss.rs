//! What salvage could not deliver (spec 5.2).

use std::fmt;

use crate::Error;

/// All that was lost in salvage. Empty where everything was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossReport {
    /// Each loss, in the order of the file.
    pub losses: Vec<Loss>,
    /// Chunks that are missing by the sequence numbers, of whatever kind: damaged ones and ones cut out.
    pub missing_chunks: u64,
    /// Bytes at the end of the file are lost, and how many chunks they held is not known.
    pub open_end: bool,
}

/// One loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// First byte in the file.
    pub start: u64,
    /// The byte behind the last; `start` where chunks were cut out.
    pub end: u64,
    /// Why.
    pub cause: LossCause,
    /// The section, where it is known.
    pub section: Option<u8>,
    /// Data records and stream elements lost, where the chunk's header or the index tells. For damaged bytes the
    /// `Missing` entry that goes with them has it.
    pub records: Option<u64>,
}

/// Why something was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// These bytes are not a chunk that checks out, for this reason.
    Damaged(Error),
    /// By the sequence numbers, chunks are missing before this place.
    Missing {
        /// Sequence number of the first.
        first: u64,
        /// How many.
        chunks: u64,
    },
    /// The chunk is whole, but its section's state was not reset since the damage.
    StateLost,
    /// The chunk is whole, but needs what is lost: it strides through a stream section, and a chunk of its group before
    /// it is missing.
    Dependent,
    /// The chunk's CRC holds, but its header or its content is wrong.
    Content(Error),
    /// A whole chunk, with a sequence number that was there before.
    Repeated,
}

impl LossReport {
    /// Nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.losses.is_empty()
    }

    /// Records and elements lost, if that is known for every loss.
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

    /// Damaged bytes, without whole chunks that had to be dropped.
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
            LossCause::StateLost => write!(f, "a whole chunk whose state was not reset since the damage")?,
            LossCause::Dependent => write!(f, "a whole chunk that needs what is lost")?,
            LossCause::Content(error) => write!(f, "a chunk that is wrong ({error})")?,
            LossCause::Repeated => write!(f, "a chunk with a sequence number that was there before")?,
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
            None => write!(f, "how many records were lost in all is not known"),
        }
    }
}
