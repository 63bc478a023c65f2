//! Counts of the data that a target format cannot store, collected while a trace is written.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::loss::{Loss, Losses};
//!
//! let mut losses = Losses::default();
//! losses.note(Loss::Stack);
//! losses.add(Loss::Time, 3);
//! assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Time, 3), (Loss::Stack, 1)]);
//! assert_eq!(losses.to_string(), "3 times\n1 stacks\n");
//! ```

use std::fmt;

/// Declares the kinds of loss and their descriptions.
macro_rules! losses {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// A kind of loss.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Loss {
            $($(#[$doc])* $name,)+
        }

        /// The number of losses of each kind.
        ///
        /// The [module's example](crate::loss#examples) counts losses.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Losses([u64; Loss::ALL.len()]);

        impl Loss {
            /// All kinds of loss.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns a description of the lost data, in the plural.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

losses! {
    /// Nonzero times.
    Time = "times",
    /// Times that are not multiples of a clock tick.
    Rounding = "times that fall between two clock ticks (rounded down)",
    /// Thread numbers other than 1.
    Thread = "thread numbers of events",
    /// Stacks that are not empty.
    Stack = "stacks",
    /// Stack frames other than the innermost one.
    Frames = "stack frames other than the innermost one",
    /// Native frames of stacks that consist of Python functions.
    NativeFrames = "native frames in stacks of Python functions",
    /// Usable sizes.
    Usable = "usable sizes",
    /// The called function.
    Function = "the called function (a similar function is written instead)",
    /// Element counts and alignments.
    Detail = "element counts and alignments",
    /// Realloc sizes that the source does not store.
    Size = "realloc sizes missing from the input (written as 0)",
    /// The HATF 1.0 kind of a realloc, if it does not follow from the addresses.
    ReallocKind = "realloc kinds that do not follow from the addresses",
    /// Reallocs recorded as two events.
    Halves = "reallocs recorded as two events (written as free and realloc)",
    /// Heaps other than the image's heap.
    Heap = "heap numbers of events",
    /// The creation and destruction of heaps.
    Heaps = "heap creations and destructions",
    /// Attributes.
    Attributes = "attributes",
    /// The start and end of threads.
    Threads = "thread starts and ends",
    /// Thread names and kernel thread IDs.
    ThreadNames = "thread names and kernel thread IDs",
    /// Requests for memory pages, samples of memory use and untouched pages of blocks.
    Pages = "page-level calls, samples of memory use and untouched pages",
    /// Marks and phases.
    Marks = "marks and phases",
    /// Program images and how they ended.
    Images = "program images and how they ended",
    /// Modules and symbols.
    Modules = "modules and symbols of stack frames",
    /// Failed calls.
    Failed = "failed calls",
    /// Counts of lost events.
    Lost = "counts of lost events",
    /// Positions at which recording stopped or resumed.
    Recording = "points at which recording stopped or resumed",
    /// Loads and stores of blocks.
    Accesses = "loads and stores of blocks",
    /// Function entries and exits.
    Functions = "function entries and exits",
    /// The CPUs that threads ran on.
    Processors = "CPUs that threads ran on",
    /// Comments.
    Comments = "comments",
    /// User metadata.
    UserMetadata = "facts about the recording (user metadata)",
    /// Addresses, in a format that numbers blocks.
    Addresses = "addresses (blocks are numbered instead)",
    /// Events of blocks that are not part of a sample.
    Sampled = "allocations and frees of blocks outside the written sample",
    /// Frees of blocks that were not allocated in the trace.
    UnknownFrees = "frees of blocks allocated before the trace began",
}

impl Losses {
    /// Counts one loss.
    #[inline]
    pub fn note(&mut self, loss: Loss) {
        self.add(loss, 1);
    }

    /// Counts one loss if `lost` is true.
    #[inline]
    pub fn note_if(&mut self, lost: bool, loss: Loss) {
        if lost {
            self.note(loss);
        }
    }

    /// Counts several losses.
    #[inline]
    pub fn add(&mut self, loss: Loss, count: u64) {
        if let Some(sum) = self.0.get_mut(loss as usize) {
            *sum += count;
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(loss, count)| self.add(loss, count));
    }

    /// Iterates over the kinds of loss that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        Loss::ALL.iter().copied().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// Returns whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl fmt::Display for Losses {
    /// Prints one line per kind of loss.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(loss, count)| writeln!(f, "{count} {}", loss.text()))
    }
}
