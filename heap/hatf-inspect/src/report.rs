//! The report on a process.

use std::collections::HashMap;

use hatf_trace::event::shell_words;
use metatf_page::{Column, Note, Page, Report, Table, Value};
use serde::{Serialize, Serializer};

use crate::{Account, Heap, Kind};

/// Number of sizes in the report.
const SIZES: usize = 8;

/// Reciprocal of the share of resident memory from which a kind is mentioned after the first sentence.
const NOTABLE: u64 = 5;

/// Reciprocal of the share of resident memory from which a kind has a row in the text.
const SHOWN: u64 = 1000;

/// Reciprocal of the share of live bytes from which the blocks of a size are mentioned.
const NOTABLE_SIZE: u64 = 10;

/// The live blocks of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// The number of usable bytes of each block.
    pub usable: u64,
    /// The number of live blocks.
    pub blocks: u64,
    /// The sum of the usable bytes.
    pub bytes: u64,
}

/// The origin of the memory.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Origin {
    /// A running process.
    Process {
        /// The process ID.
        process: u32,
        /// The number of nanoseconds for which the process was stopped in the successful attempt.
        stopped_ns: u64,
        /// The number of attempts.
        attempts: u64,
        /// The number of resident bytes.
        resident: u64,
    },
    /// A core file.
    Core {
        /// The path of the file.
        core: String,
        /// The process ID.
        process: u32,
        /// The number of bytes in pages that do not only contain zeros.
        bytes: u64,
    },
}

/// The result of inspecting a process.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// The process or the core file.
    #[serde(flatten)]
    pub origin: Origin,
    /// The program and its arguments.
    pub command: String,
    /// The number of threads.
    pub threads: u64,
    /// The number of arenas, or 0 if the heap was not read.
    pub arenas: u64,
    /// The reason why the heap was not read, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_read: Option<String>,
    /// The number of bytes of each kind.
    #[serde(serialize_with = "by_kind")]
    pub account: Account,
    /// The number of live blocks and the sum of their usable bytes, if the heap was read.
    pub live: Option<(u64, u64)>,
    /// The sizes of the live blocks, those with the most bytes first.
    pub sizes: Vec<SizeCount>,
}

fn by_kind<S: Serializer>(account: &Account, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Kind::ALL.map(|kind| (kind, account.get(kind))))
}

impl Inspection {
    /// Adds the heap to a report whose other fields are known.
    #[must_use]
    pub fn with_heap(self, heap: &Heap) -> Self {
        let mut sizes = HashMap::<u64, u64>::new();
        heap.live().for_each(|block| *sizes.entry(block.usable).or_default() += 1);
        let count = |(usable, blocks): (u64, u64)| SizeCount { usable, blocks, bytes: usable.saturating_mul(blocks) };
        let mut sizes: Vec<_> = sizes.into_iter().map(count).collect();
        sizes.sort_by_key(|size| (std::cmp::Reverse(size.bytes), size.usable));
        let sum = |get: fn(&SizeCount) -> u64| sizes.iter().map(get).fold(0, u64::saturating_add);
        let live = Some((sum(|size| size.blocks), sum(|size| size.bytes)));
        Self { arenas: heap.arenas(), live, sizes, ..self }
    }

    /// Returns the number of bytes that the kinds add up to.
    fn all(&self) -> u64 {
        self.account.sum()
    }

    /// Returns the kinds with resident memory, the largest first.
    fn ranked(&self) -> Vec<(Kind, u64)> {
        let mut kinds: Vec<_> = Kind::ALL.iter().map(|kind| (*kind, self.account.get(*kind))).collect();
        kinds.retain(|(_, bytes)| *bytes > 0);
        kinds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        kinds
    }

    /// Returns sentences about the largest kinds of memory, and what to do about them.
    fn sentences(&self) -> Vec<Note> {
        let mut notes: Vec<_> = self.not_read.iter().map(|why| Note::from(why.clone())).collect();
        let ranked = self.ranked();
        let notable = ranked.iter().enumerate().filter(|(place, (kind, bytes))| {
            let is_notable = bytes.saturating_mul(NOTABLE) >= self.all();
            *place == 0 || (is_notable && !matches!(kind, Kind::Files | Kind::Overhead | Kind::Caches))
        });
        notes.extend(notable.map(|(_, (kind, _))| self.sentence(*kind)));
        let trimmable = self.account.get(Kind::Trimmable);
        let is_said = trimmable.saturating_mul(NOTABLE) >= self.all()
            || ranked.first().is_some_and(|(kind, _)| *kind == Kind::Trimmable);
        if self.live.is_some() && !is_said {
            let text = match self.origin {
                Origin::Process { .. } => Some("malloc_trim(0) would return {}."),
                // Free pages that only contain zeros are not counted, but may have been resident.
                Origin::Core { .. } => Some("malloc_trim(0) would return at least {}.").filter(|_| trimmable > 0),
            };
            notes.extend(text.map(|text| Note::new(text).with([Value::Bytes(trimmable)])));
        }
        notes
    }

    fn sentence(&self, kind: Kind) -> Note {
        let of = [Value::Bytes(self.account.get(kind)), Value::Bytes(self.all())];
        let largest = self
            .sizes
            .first()
            .zip(self.live)
            .filter(|(size, (_, bytes))| size.bytes.saturating_mul(NOTABLE_SIZE) >= *bytes);
        let largest = largest.map(|(size, (_, bytes))| {
            let (count, part) = (Value::Count(size.blocks), Value::Part(size.bytes, bytes));
            let blocks = if size.blocks == 1 { "block" } else { "blocks" };
            format!(" {part} of their bytes are in {count} {blocks} of {}.", requested(size.usable))
        });
        let (input, advice) = match &self.origin {
            Origin::Process { process, .. } => (process.to_string(), format!("hatf record --stacks --pid {process}")),
            Origin::Core { core, .. } => {
                (shell_words([core]), "start the program again with hatf record --stacks".to_owned())
            }
        };
        let text = match kind {
            Kind::Live => format!(
                "{{}} of {{}} resident are live blocks.{} To see which code allocates them: {advice}",
                largest.unwrap_or_default()
            ),
            Kind::Trimmable => {
                "malloc_trim(0) would return {} of {} resident: the allocator keeps whole free pages. Call \
                                malloc_trim(0) when the program has freed much memory."
                    .to_owned()
            }
            Kind::Pinned => format!(
                "{{}} of {{}} resident are free, but malloc_trim(0) cannot return them, because live blocks are in the \
                 same pages. For the blocks in these pages: hatf inspect {input} -o heap.mtf, then hatf fragmentation \
                 heap.mtf --at end"
            ),
            Kind::ArenaEnds => "{} of {} resident are free memory at the ends of the arenas of threads, which \
                                malloc_trim(0) does not return. The environment variable MALLOC_ARENA_MAX=2 limits the \
                                number of arenas."
                .to_owned(),
            Kind::Caches => "{} of {} resident are freed blocks in the caches of threads.".to_owned(),
            Kind::Overhead => "{} of {} resident are headers of blocks, which small blocks need.".to_owned(),
            Kind::Segment => "{} of {} resident are the heap segment, which malloc uses.".to_owned(),
            Kind::Stacks => "{} of {} resident are stacks of threads.".to_owned(),
            Kind::Files => {
                "{} of {} resident are pages of files, such as libraries, which other processes may share.".to_owned()
            }
            Kind::Shared => "{} of {} resident are shared memory.".to_owned(),
            Kind::Anonymous if self.live.is_none() => "{} of {} resident are anonymous mappings.".to_owned(),
            Kind::Anonymous => "{} of {} resident are not in malloc, but in anonymous mappings, such as the heap of a \
                                language runtime or of another allocator. hatf record --pages records the calls that map memory."
                .to_owned(),
            Kind::Named => "{} of {} resident are in mappings with names other than those of files.".to_owned(),
        };
        let text = match self.origin {
            Origin::Process { .. } => text,
            Origin::Core { .. } => text.replacen("{} resident", "{} in the core file", 1),
        };
        Note::new(text).with(of)
    }

    fn name(&self, kind: Kind) -> &'static str {
        match kind {
            Kind::Live => "live blocks",
            Kind::Trimmable => "free, returned by malloc_trim(0)",
            Kind::Pinned => "free, in pages with live blocks",
            Kind::ArenaEnds => "free, at the ends of thread arenas",
            Kind::Caches => "free, in caches of threads",
            Kind::Overhead => "headers and arenas",
            Kind::Segment if self.live.is_some() => "the rest of the heap segment",
            Kind::Segment => "heap segment",
            Kind::Stacks => "stacks",
            Kind::Files => "files",
            Kind::Shared => "shared memory",
            Kind::Anonymous if self.live.is_some() => "anonymous mappings outside of malloc",
            Kind::Anonymous => "anonymous mappings",
            Kind::Named => "named mappings",
        }
    }
}

/// Describes the requested sizes that lead to blocks with this many usable bytes.
fn requested(usable: u64) -> String {
    match usable {
        24 => "24 bytes or less".to_owned(),
        // Blocks in arenas have 8 usable bytes more than a multiple of 16.
        _ if usable % 16 == 8 => format!("{} to {} bytes", Value::Count(usable - 15), Value::Count(usable)),
        _ => format!("about {}", Value::Bytes(usable)),
    }
}

impl Report for Inspection {
    fn page(&self) -> Page {
        let of_heap = [Value::Count(self.threads), Value::Count(self.arenas)];
        let (title, note, heading) = match &self.origin {
            Origin::Process { process, stopped_ns, .. } => (
                format!("process {process}: {}", self.command),
                Note::new("stopped for {}; threads: {}; arenas: {}")
                    .with([Value::Time(*stopped_ns)].into_iter().chain(of_heap)),
                "RESIDENT MEMORY",
            ),
            Origin::Core { core, process, .. } => (
                format!("{core}: process {process}: {}", self.command),
                Note::new(
                    "threads: {}; arenas: {}; a core file does not contain which pages were resident, so all pages \
                     except those that only contain zeros are counted",
                )
                .with(of_heap),
                "MEMORY IN THE CORE FILE",
            ),
        };
        let mut page = Page::new(title);
        self.sentences().into_iter().for_each(|note| page.push(note));
        page.push(note);
        page.heading(heading);
        let mut table = Table::new([Column::key("kind"), Column::new("bytes"), Column::new("")]);
        let mut others = 0;
        for kind in Kind::ALL {
            let bytes = self.account.get(kind);
            if bytes.saturating_mul(SHOWN) >= self.all() && bytes > 0 {
                table.row([Value::text(self.name(kind)), Value::Bytes(bytes), Value::Part(bytes, self.all())]);
            } else {
                others += bytes;
            }
        }
        if others > 0 {
            table.row([Value::text("others"), Value::Bytes(others), Value::Part(others, self.all())]);
        }
        table.sum([Value::text("all"), Value::Bytes(self.all()), Value::Blank]);
        page.push(table);
        if let Some((blocks, bytes)) = self.live.filter(|_| !self.sizes.is_empty()) {
            page.heading(Note::new("LIVE BLOCKS ({} in {} blocks)").with([Value::Bytes(bytes), Value::Count(blocks)]));
            let columns = [Column::key("requested size"), Column::new("blocks"), Column::new("bytes"), Column::new("")];
            let mut table = Table::new(columns);
            for size in self.sizes.iter().take(SIZES) {
                let part = Value::Part(size.bytes, bytes);
                table.row([
                    Value::text(requested(size.usable)),
                    Value::Count(size.blocks),
                    Value::Bytes(size.bytes),
                    part,
                ]);
            }
            if let Some(more) = self.sizes.len().checked_sub(SIZES).filter(|more| *more > 0) {
                table.rest(Note::new("and {} more sizes").with([Value::Count(more as u64)]));
            }
            page.push(table);
        }
        page
    }
}
