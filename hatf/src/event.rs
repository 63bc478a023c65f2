//! What happens to a heap, as this crate's parts pass it to each other: more than any one form of a trace can hold, so
//! that every form maps to it and from it.

use serde_json::{Map, Value};

use crate::Result;
use crate::loss::Losses;

/// The size of a `realloc` where the trace does not say it (the paper's HATF 1.0 in Meta-TF has no field for it).
pub const UNKNOWN_SIZE: u64 = u64::MAX;

/// A function that allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `malloc`
    Malloc,
    /// `calloc`
    Calloc,
    /// `realloc`
    Realloc,
    /// `reallocarray`
    Reallocarray,
    /// `memalign`, or one of its family of which no more is known.
    Memalign,
    /// `posix_memalign`
    PosixMemalign,
    /// `aligned_alloc`
    AlignedAlloc,
    /// `valloc`
    Valloc,
    /// `pvalloc`
    Pvalloc,
}

impl Function {
    /// All of them, in the order of their tags in `dtds/heap.dtd`.
    pub const ALL: [Self; 9] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::Reallocarray,
        Self::Memalign,
        Self::PosixMemalign,
        Self::AlignedAlloc,
        Self::Valloc,
        Self::Pvalloc,
    ];

    /// Its name in C.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Realloc => "realloc",
            Self::Reallocarray => "reallocarray",
            Self::Memalign => "memalign",
            Self::PosixMemalign => "posix_memalign",
            Self::AlignedAlloc => "aligned_alloc",
            Self::Valloc => "valloc",
            Self::Pvalloc => "pvalloc",
        }
    }

    /// Whether it is given a block.
    #[must_use]
    pub fn is_realloc(self) -> bool {
        matches!(self, Self::Realloc | Self::Reallocarray)
    }

    /// Whether [`Call::detail`] is a number of elements.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::Calloc | Self::Reallocarray)
    }

    /// Whether it aligns, and [`Call::detail`] is an alignment, if it is anything.
    #[must_use]
    pub fn aligns(self) -> bool {
        matches!(self, Self::Memalign | Self::PosixMemalign | Self::AlignedAlloc | Self::Valloc | Self::Pvalloc)
    }
}

/// A call that was to allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The function.
    pub function: Function,
    /// How many elements, or the alignment; 0 where the function has neither, or it is not known.
    pub detail: u64,
    /// Bytes asked for; [`UNKNOWN_SIZE`].
    pub size: u64,
    /// Bytes that the block really has; 0: not known.
    pub usable: u64,
    /// The block that it was given; 0: none.
    pub old: u64,
    /// The block that it returned; 0: none.
    pub address: u64,
}

impl Call {
    /// A call of a function with all else 0.
    #[must_use]
    pub fn new(function: Function) -> Self {
        Self { function, detail: 0, size: 0, usable: 0, old: 0, address: 0 }
    }

    /// Whether the block it was given ended: it returned another, or the size was 0. A realloc that failed leaves its
    /// block as it was.
    #[must_use]
    pub fn old_is_gone(&self) -> bool {
        self.old != 0 && (self.address != 0 || self.size == 0)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What<'a> {
    /// A call that was to allocate.
    Call(Call),
    /// The block at `address` ends.
    Free {
        /// Where it began.
        address: u64,
    },
    /// The block at `old` ends within a realloc that has not returned.
    ReallocBegin {
        /// Where it began.
        old: u64,
    },
    /// That realloc returns.
    ReallocEnd(Call),
    /// A call gave no block, and left everything as it was; `old` lives on.
    Failed(Call),
    /// A heap begins (HATF 1.0, where there may be several).
    CreateHeap,
    /// A heap ends, with all blocks in it.
    DestroyHeap,
    /// A thread begins.
    ThreadStart {
        /// The thread that made it; 0: not known.
        creator: u64,
    },
    /// A thread ends.
    ThreadEnd,
    /// The program says where it is.
    Mark {
        /// What it says.
        name: &'a [u8],
    },
    /// A phase begins.
    PhaseBegin {
        /// Its name.
        name: &'a [u8],
    },
    /// A phase ends.
    PhaseEnd {
        /// Its name.
        name: &'a [u8],
    },
    /// A program image was loaded: a new heap, and the end of the one before.
    Image {
        /// The process.
        process: u64,
        /// The program.
        path: &'a [u8],
    },
    /// The program ended.
    Exit {
        /// With this status.
        status: u64,
    },
    /// A signal ended it.
    Killed {
        /// This one.
        signal: u64,
    },
    /// Events are missing here.
    Lost {
        /// So many.
        events: u64,
    },
}

impl What<'static> {
    /// The same with this name, if it is of a kind that has one.
    pub(crate) fn named(self, name: &[u8]) -> What<'_> {
        match self {
            Self::Mark { .. } => What::Mark { name },
            Self::PhaseBegin { .. } => What::PhaseBegin { name },
            Self::PhaseEnd { .. } => What::PhaseEnd { name },
            Self::Image { process, .. } => What::Image { process, path: name },
            other => other,
        }
    }
}

impl<'a> What<'a> {
    /// The same without its name, which [`named`](What::named) puts back.
    pub(crate) fn nameless(self) -> (What<'static>, &'a [u8]) {
        let what = match self {
            Self::Mark { name } => return (What::Mark { name: &[] }, name),
            Self::PhaseBegin { name } => return (What::PhaseBegin { name: &[] }, name),
            Self::PhaseEnd { name } => return (What::PhaseEnd { name: &[] }, name),
            Self::Image { process, path } => return (What::Image { process, path: &[] }, path),
            Self::Call(call) => What::Call(call),
            Self::Free { address } => What::Free { address },
            Self::ReallocBegin { old } => What::ReallocBegin { old },
            Self::ReallocEnd(call) => What::ReallocEnd(call),
            Self::Failed(call) => What::Failed(call),
            Self::CreateHeap => What::CreateHeap,
            Self::DestroyHeap => What::DestroyHeap,
            Self::ThreadStart { creator } => What::ThreadStart { creator },
            Self::ThreadEnd => What::ThreadEnd,
            Self::Exit { status } => What::Exit { status },
            Self::Killed { signal } => What::Killed { signal },
            Self::Lost { events } => What::Lost { events },
        };
        (what, &[])
    }
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// What happened.
    pub what: What<'a>,
    /// Nanoseconds since the start; 0 where the trace has no times.
    pub time: u64,
    /// Which thread did it, or which one began or ended; 1 where the trace has no threads.
    pub thread: u64,
    /// In which heap. Images are numbered from 1; 0 where the trace has no heaps.
    pub heap: u64,
    /// Return addresses of the call, innermost first; none: not known.
    pub stack: &'a [u64],
    /// HATF 1.0's attributes, where they say what nothing else here does.
    pub attributes: &'a [u8],
}

impl<'a> Event<'a> {
    /// An event of thread 1, and nothing else known.
    #[must_use]
    pub fn new(what: What<'a>) -> Self {
        Self { what, time: 0, thread: 1, heap: 0, stack: &[], attributes: &[] }
    }
}

/// What stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// A comment's bytes.
    Comment(&'a [u8]),
}

/// What a trace says about itself; see the head of `dtds/heap.dtd` for the keys.
pub type About = Map<String, Value>;

/// Takes events, in order.
pub trait EventSink {
    /// Takes an event.
    ///
    /// # Errors
    /// It could not be kept; no more should be given.
    fn event(&mut self, event: &Event<'_>) -> Result<()>;

    /// Takes a comment.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn comment(&mut self, text: &[u8]) -> Result<()>;

    /// Takes what the trace says about itself: before the first event, and what is known only then after the last.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn about(&mut self, about: &About) -> Result<()>;

    /// Makes what was given so far safe, should the process end without another word. By default nothing is done.
    ///
    /// # Errors
    /// As for [`EventSink::event`].
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Gives events, in order.
pub trait EventSource {
    /// What comes next, `None` at the end.
    ///
    /// # Errors
    /// The trace is damaged, or cannot be read; after an error nothing more comes.
    fn next(&mut self) -> Result<Option<Item<'_>>>;

    /// Gives all that is left to a sink. Sources that are to be fast have their own way.
    ///
    /// # Errors
    /// The first of either side.
    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()>
    where
        Self: Sized,
    {
        while let Some(item) = self.next()? {
            match item {
                Item::Event(event) => sink.event(&event)?,
                Item::Comment(text) => sink.comment(text)?,
            }
        }
        Ok(())
    }

    /// What the trace said about itself so far.
    fn about(&self) -> About {
        About::new()
    }

    /// What of the trace events cannot say, so far.
    fn losses(&self) -> Losses {
        Losses::default()
    }
}

impl<S: EventSource + ?Sized> EventSource for Box<S> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        (**self).next()
    }

    fn about(&self) -> About {
        (**self).about()
    }

    fn losses(&self) -> Losses {
        (**self).losses()
    }
}

/// Gives all of a source to a sink, with what the trace says about itself.
///
/// # Errors
/// The first of either side.
pub fn copy<S: EventSource, T: EventSink + ?Sized>(source: &mut S, sink: &mut T) -> Result<()> {
    let first = source.about();
    if !first.is_empty() {
        sink.about(&first)?;
    }
    source.pour(sink)?;
    let mut last = source.about();
    last.retain(|key, value| first.get(key) != Some(value));
    if last.is_empty() { Ok(()) } else { sink.about(&last) }
}

/// Gives each event to two sinks.
pub struct Tee<'s>(pub &'s mut dyn EventSink, pub &'s mut dyn EventSink);

impl EventSink for Tee<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.0.event(event)?;
        self.1.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.0.comment(text)?;
        self.1.comment(text)
    }

    fn about(&mut self, about: &About) -> Result<()> {
        self.0.about(about)?;
        self.1.about(about)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()?;
        self.1.flush()
    }
}

/// What a trace says about itself, a line each, as reports and comments show it.
#[must_use]
pub fn about_lines(about: &About) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(words) => {
            words.iter().map(|word| shell_word(word.as_str().unwrap_or("?"))).collect::<Vec<_>>().join(" ")
        }
        Value::Object(object) => {
            object.iter().map(|(key, value)| format!("{key} {}", bare(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    // What is about the file, not about the program.
    let of_file = |key: &str, value: &Value| match key {
        "format" | "converted" => true,
        "clock" => value.get("name").is_none(),
        _ => false,
    };
    let shown = about.iter().filter(|(key, value)| !value.is_null() && !of_file(key, value));
    shown.map(|(key, value)| format!("{key}: {}", text(value))).collect()
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A word as a shell would take it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(shell_word("a-b/c.d"), "a-b/c.d");
        assert_eq!(shell_word("print 'x'"), "'print '\\''x'\\'''");
        assert_eq!(shell_word(""), "''");
    }
}
