//! Counts of what a form of a trace cannot hold, made while a trace is written in it.

use std::fmt;

/// Declares the kinds of loss, with their text in messages.
macro_rules! losses {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// A kind of loss.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Loss {
            $($(#[$doc])* $name,)+
        }

        /// How often each kind of loss was met.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Losses([u64; Loss::ALL.len()]);

        impl Loss {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Describes what is lost, in the plural.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

losses! {
    /// Times that are not 0.
    Time = "times",
    /// Times that are not whole numbers of the clock's ticks.
    Rounding = "times between two ticks of the clock (rounded down)",
    /// Events of another thread than 1.
    Thread = "threads of events",
    /// Stacks of more than nothing.
    Stack = "stacks",
    /// Frames of stacks behind the innermost one.
    Frames = "frames of stacks but the innermost one",
    /// Frames of native code, where Python's functions are the stack.
    NativeFrames = "native frames of stacks, where Python's functions are known",
    /// Usable sizes.
    Usable = "usable sizes",
    /// Which function it was.
    Function = "which function was called (a similar one is written instead)",
    /// Numbers of elements, and alignments.
    Detail = "numbers of elements and alignments",
    /// Sizes of reallocs that the source does not hold.
    Size = "sizes of reallocs, which the source does not hold (written as 0)",
    /// HATF 1.0's kind of realloc, where it does not follow from the addresses.
    ReallocKind = "kinds of realloc that do not follow from the addresses",
    /// A realloc in two halves.
    Halves = "reallocs in two halves (written as free and realloc)",
    /// Heaps but the image's.
    Heap = "heaps of events",
    /// Heaps that begin and end.
    Heaps = "beginnings and ends of heaps",
    /// Attributes.
    Attributes = "attributes",
    /// Threads that begin and end.
    Threads = "beginnings and ends of threads",
    /// Names of threads, and the system's numbers of them.
    ThreadNames = "names of threads, and the kernel's numbers of them",
    /// Pages.
    Pages = "calls for pages, and what the kernel said of them",
    /// Marks and phases.
    Marks = "marks and phases",
    /// Images, and how they end.
    Images = "program images, and how they ended",
    /// Modules and symbols.
    Modules = "modules and symbols of stacks",
    /// Calls that failed.
    Failed = "failed calls",
    /// Events lost.
    Lost = "counts of lost events",
    /// Where recording was off.
    Recording = "places where recording stopped or went on",
    /// Loads and stores.
    Accesses = "loads and stores of blocks",
    /// Functions that are entered and left.
    Functions = "functions entered and left",
    /// On which processor a thread runs.
    Processors = "processors that threads ran on",
    /// Comments.
    Comments = "comments",
    /// User metadata.
    UserMetadata = "facts about the recording (user metadata)",
    /// Addresses, where blocks are numbered.
    Addresses = "addresses (blocks are numbered)",
    /// Events of blocks that are not in a sample.
    Sampled = "allocations and frees of blocks that are left out, as there are many (a sample is written)",
    /// Frees of blocks that were not allocated in the trace.
    UnknownFrees = "frees of blocks that were allocated before the trace",
}

impl Losses {
    /// Counts one.
    #[inline]
    pub fn note(&mut self, loss: Loss) {
        self.add(loss, 1);
    }

    /// Counts one if `lost`.
    #[inline]
    pub fn note_if(&mut self, lost: bool, loss: Loss) {
        if lost {
            self.note(loss);
        }
    }

    /// Counts several.
    #[inline]
    pub fn add(&mut self, loss: Loss, count: u64) {
        if let Some(sum) = self.0.get_mut(loss as usize) {
            *sum += count;
        }
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(loss, count)| self.add(loss, count));
    }

    /// Iterates over the kinds that were met, with their counts.
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
    /// Prints a line for each kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(loss, count)| writeln!(f, "{count} {}", loss.text()))
    }
}
