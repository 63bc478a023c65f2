//! The forms of a heap trace.

/// A form of a heap trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Form {
    /// HATF 1.0, native: the paper's appendix A
    Hatf1,
    /// HATF 1.0 in Meta-TF: HATF10.dtd
    Hatf10,
    /// This project's own: heap.dtd
    Heap,
    /// Records of 32 bytes: tag, size, address, old address
    Raw32,
    /// Records of 64 bytes: those, time, thread, caller, alignment or count
    Raw64,
    /// Text traces of the CS:APP malloc lab (.rep)
    Malloclab,
    /// JSON lines of heap.dtd's records, or of HATF 1.0's
    Jsonl,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Hatf1, Self::Hatf10, Self::Heap, Self::Raw32, Self::Raw64, Self::Malloclab, Self::Jsonl];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hatf1 => "hatf1",
            Self::Hatf10 => "hatf10",
            Self::Heap => "heap",
            Self::Raw32 => "raw32",
            Self::Raw64 => "raw64",
            Self::Malloclab => "malloclab",
            Self::Jsonl => "jsonl",
        }
    }
}
