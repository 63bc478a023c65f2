//! Directories of segments: consecutive parts of one recording, each of which is a complete trace.
//!
//! A segment begins with the records that restore the live state. The user metadata `segment` and `segment_end` of each
//! segment contain its number, and the live blocks and bytes at its start and at its end, so that a missing, repeated or
//! foreign segment is detected.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{HEAP, Input, OpenOptions, Segments, TraceReader, read};
use crate::event::{Event, EventSink, EventSource, Item, RESUME, SEGMENT, SEGMENT_END, Stack, UserMetadata};
use crate::loss::Losses;
use crate::{Error, OwnedEvent, Result};

/// Opens a directory of segments.
pub(super) fn open(folder: &Path, options: &OpenOptions) -> Result<TraceReader> {
    let name = folder.display().to_string();
    if options.form.is_some_and(|form| form != &HEAP) {
        return Err(Error::Usage(format!("{name} is a directory of segments, which are always in heap format")));
    }
    let Segments { complete, unfinished } = Segments::list(folder)?;
    if let Some(first) = unfinished.first() {
        let file = Segments::unfinished_name(*first);
        (options.note)(&format!(
            "{name}: {file} is not read, because it is still being written or its recording was interrupted; in the \
             second case, `hatf recover {name}` completes it"
        ));
    }
    let (Some(first), Some(last)) = (complete.first(), complete.last()) else {
        let why = if unfinished.is_empty() { "contains no segments" } else { "contains no complete segment yet" };
        return Err(Error::Trace(format!("{name} {why}").into()));
    };
    let listed = complete.len() as u64;
    if last - first != listed - 1 {
        let missing = complete.iter().zip(complete.iter().skip(1)).find(|(before, after)| **before + 1 != **after);
        let missing = missing.map_or(*first, |(before, _)| before + 1);
        let file = Segments::name(missing);
        let why = "move the segments before or after it to another directory to read them separately";
        return Err(Error::Trace(format!("{name}: segment {file} is missing; {why}").into()));
    }
    let mut reader = SegmentReader {
        folder: folder.to_owned(),
        options: *options,
        current: None,
        next: *first,
        last: *last,
        is_over: false,
        first: UserMetadata::new(),
        seam: None,
        offsets: Offsets::default(),
        losses: Losses::default(),
        lost: 0,
        event: OwnedEvent::default(),
        comment: Vec::new(),
    };
    match reader.begin() {
        // The oldest segment may have been deleted since the directory was listed.
        Err(_) if first < last && !folder.join(Segments::name(*first)).exists() => open(folder, options),
        begun => begun.map(|_| TraceReader::new(reader)),
    }
}

/// The offsets from the numbers in a segment to the numbers in the whole trace.
#[derive(Clone, Copy, Debug, Default)]
struct Offsets {
    heaps: u64,
    stacks: u32,
    /// The highest stack number so far, in the whole trace.
    highest: u32,
}

impl Offsets {
    fn apply<'e>(&mut self, event: &Event<'e>) -> Event<'e> {
        let mut stack = event.stack;
        if stack.number() > 0 && self.stacks > 0 {
            stack = Stack::numbered(stack.frames(), stack.number().saturating_add(self.stacks));
        }
        self.highest = self.highest.max(stack.number());
        Event { heap: event.heap.saturating_add(self.heaps), stack, ..*event }
    }
}

/// The live state at the start or the end of a segment, as its user metadata describes it.
struct Seam {
    recording: Option<Value>,
    blocks: u64,
    bytes: u64,
}

impl Seam {
    fn at_start(user_metadata: &UserMetadata) -> Option<Self> {
        Self::of(user_metadata, SEGMENT, "carried_blocks", "carried_bytes")
    }

    fn at_end(user_metadata: &UserMetadata) -> Option<Self> {
        Self::of(user_metadata, SEGMENT_END, "blocks", "bytes")
    }

    fn of(user_metadata: &UserMetadata, object: &str, blocks: &str, bytes: &str) -> Option<Self> {
        let object = user_metadata.get(object)?;
        let number = |key: &str| object.get(key).and_then(Value::as_u64);
        let recording = user_metadata.get("recording").cloned();
        Some(Self { recording, blocks: number(blocks)?, bytes: number(bytes)? })
    }
}

/// A reader of all segments of a directory.
struct SegmentReader {
    folder: PathBuf,
    options: OpenOptions,
    current: Option<TraceReader>,
    /// The number of the next segment to open.
    next: u64,
    last: u64,
    is_over: bool,
    /// The user metadata at the start of the first segment.
    first: UserMetadata,
    /// The state at the end of the previous segment.
    seam: Option<Seam>,
    offsets: Offsets,
    losses: Losses,
    /// The number of events that the recorder lost during the segments that were read to their end.
    lost: u64,
    /// Copies of the last event and comment.
    event: OwnedEvent,
    comment: Vec<u8>,
}

fn number_in(user_metadata: &UserMetadata, object: &str, key: &str) -> u64 {
    user_metadata.get(object).and_then(|object| object.get(key)?.as_u64()).unwrap_or_default()
}

/// Adds the name of a segment to an error about its content.
fn in_segment(number: u64, error: Error) -> Error {
    match error {
        Error::Trace(error) => Error::Trace(format!("segment {}: {error}", Segments::name(number)).into()),
        other => other,
    }
}

impl SegmentReader {
    fn error(&self, number: u64, why: &str) -> Error {
        Error::Trace(format!("{}: {why}", self.folder.join(Segments::name(number)).display()).into())
    }

    /// Opens the next segment, and skips the records that restore the state at the end of the previous segment. Returns
    /// whether there was another segment.
    fn begin(&mut self) -> Result<bool> {
        if self.next > self.last {
            self.is_over = true;
            return Ok(false);
        }
        let (number, mut options) = (self.next, self.options);
        if self.current.is_some() {
            options.note = |_| ();
        }
        let path = self.folder.join(Segments::name(number));
        if !std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            return Err(self.error(number, "not a regular file, or deleted since the directory was listed"));
        }
        let mut reader = read(Input::open(&path)?, &options)?;
        let user_metadata = reader.user_metadata();
        let Some(start) = Seam::at_start(&user_metadata) else {
            return Err(self.error(number, "not a segment of a recording: the user metadata `segment` is missing"));
        };
        let own = number_in(&user_metadata, SEGMENT, "number");
        if own != number {
            return Err(self.error(number, &format!("wrong name: the file contains segment {own}")));
        }
        if let Some(end) = self.seam.take() {
            if end.recording != start.recording {
                return Err(self.error(number, "belongs to a different recording than the segment before it"));
            }
            if (end.blocks, end.bytes) != (start.blocks, start.bytes) {
                let why = format!(
                    "begins with {} live blocks of {} bytes, but the previous segment ends with {} blocks of {} bytes",
                    start.blocks, start.bytes, end.blocks, end.bytes
                );
                return Err(self.error(number, &why));
            }
            let mut carried = number_in(&user_metadata, SEGMENT, "carried_records");
            while carried > 0 {
                match reader.next().map_err(|error| in_segment(number, error))? {
                    Some(Item::Event(_)) => carried -= 1,
                    Some(Item::Comment(_)) => {}
                    None => return Err(self.error(number, "truncated within the records that restore its live state")),
                }
            }
            // The current image is the first image of each segment.
            let images = |user_metadata| number_in(user_metadata, RESUME, "images");
            self.offsets.heaps = images(&user_metadata).saturating_sub(images(&self.first).max(1));
            self.offsets.stacks = self.offsets.highest;
        } else {
            self.first = user_metadata;
        }
        self.next += 1;
        self.current = Some(reader);
        Ok(true)
    }

    /// Ends the current segment. Returns whether there is another one.
    fn end(&mut self) -> Result<bool> {
        let Some(reader) = &self.current else { return Ok(false) };
        let (number, user_metadata) = (self.next - 1, reader.user_metadata());
        self.losses.merge(&reader.losses());
        self.lost = self.lost.saturating_add(user_metadata.get("lost").and_then(Value::as_u64).unwrap_or_default());
        if number < self.last {
            self.seam = Seam::at_end(&user_metadata);
            if self.seam.is_none() {
                return Err(self.error(number, "truncated: the description of its end is missing"));
            }
        }
        self.begin()
    }
}

impl EventSource for SegmentReader {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        while !self.is_over {
            let Self { current: Some(current), offsets, event, comment, .. } = self else { break };
            let number = self.next - 1;
            let is_event = match current.next().map_err(|error| in_segment(number, error))? {
                Some(Item::Event(read)) => {
                    event.set(&offsets.apply(&read));
                    true
                }
                Some(Item::Comment(text)) => {
                    comment.clear();
                    comment.extend_from_slice(text);
                    false
                }
                None => {
                    self.end()?;
                    continue;
                }
            };
            return Ok(Some(if is_event { Item::Event(self.event.get()) } else { Item::Comment(&self.comment) }));
        }
        Ok(None)
    }

    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()> {
        while !self.is_over {
            let Self { current: Some(current), offsets, .. } = self else { break };
            let mut shifted = Shifted { sink, offsets, has_failed: false };
            let given = current.give(&mut shifted);
            let is_of_segment = !shifted.has_failed;
            given.map_err(|error| if is_of_segment { in_segment(self.next - 1, error) } else { error })?;
            self.end()?;
        }
        Ok(())
    }

    fn resolution(&self) -> u64 {
        self.current.as_ref().map_or(1, EventSource::resolution)
    }

    fn user_metadata(&self) -> UserMetadata {
        let mut user_metadata = self.first.clone();
        let current = self.current.as_ref().map(EventSource::user_metadata).unwrap_or_default();
        user_metadata.extend(current.into_iter().filter(|(key, _)| key != SEGMENT && key != SEGMENT_END));
        user_metadata.remove(RESUME);
        user_metadata.remove("events");
        if number_in(&self.first, SEGMENT, "number") == 1 {
            user_metadata.remove(SEGMENT);
        }
        if self.is_over {
            user_metadata.insert("lost".to_owned(), self.lost.into());
        } else {
            user_metadata.remove("lost");
        }
        user_metadata
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}

/// A sink that passes the events of a segment on with the numbers of the whole trace.
struct Shifted<'s, T: ?Sized> {
    sink: &'s mut T,
    offsets: &'s mut Offsets,
    /// Whether the sink returned an error.
    has_failed: bool,
}

impl<T: EventSink + ?Sized> EventSink for Shifted<'_, T> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let given = self.sink.event(&self.offsets.apply(event));
        self.has_failed |= given.is_err();
        given
    }

    fn coming(&mut self, addresses: &[u64]) {
        self.sink.coming(addresses);
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        let given = self.sink.comment(text);
        self.has_failed |= given.is_err();
        given
    }

    /// Ignores the user metadata of the segment, because the reader combines those of all segments.
    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}
