//! Stream sections as other sections see them: pieces of content, and the cursors that stride through them (spec 4).

use crate::container::{Content, Order, Origin, Part};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Format;
use crate::row::{Bytes, place, stored, value};
use crate::state::State;

/// A part of a stream section's content.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) content: Content,
    pub(crate) origin: Origin,
    /// Offset of the content: logical (version 1) or in the file (version 0).
    pub(crate) base: u64,
    /// Offset in the section's content, whatever the version: what sectionOffset counts.
    pub(crate) logical: u64,
    pub(crate) reset: bool,
    /// The first piece of its group: elements start from the DTD's state.
    pub(crate) first: bool,
    /// Stored width of the single leaf; 0: the DTD's.
    pub(crate) width: u8,
    /// Elements the chunk declares.
    pub(crate) records: Option<u32>,
}

impl Piece {
    pub(crate) fn new(part: &Part, logical: u64) -> Self {
        Self {
            content: part.content.clone(),
            origin: part.origin,
            base: part.base,
            logical,
            reset: part.reset,
            first: false,
            width: part.width,
            records: part.records,
        }
    }
}

/// One stream section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) shared: bool,
    /// Total length of the pieces.
    pub(crate) length: u64,
}

/// All stream sections of the group in use, by index in `format.sections`, and the cursors into them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) streams: Vec<Stream>,
    cursors: Vec<Cursor>,
    /// Where the cursor used last is.
    latest: usize,
    /// Elements handed out so far: tells salvage whether a part strides at all.
    pub(crate) taken: u64,
}

/// A cursor belongs to a pair (section of the record, target section).
#[derive(Clone, Debug)]
struct Cursor {
    section: usize,
    target: u8,
    stream: usize,
    /// The element that comes next.
    index: u64,
    walk: Walk,
}

/// Decodes the numbers of a stream one after the other.
#[derive(Clone, Debug)]
struct Walk {
    state: State,
    piece: usize,
    entered: bool,
    position: usize,
    /// Index of the element at `position`.
    next: u64,
    value: u64,
}

impl Streams {
    pub(crate) fn new(format: &Format) -> Self {
        Self { streams: vec![Stream::default(); format.sections.len()], ..Self::default() }
    }

    /// A new group: cursors start over, and what belongs to the old group goes.
    pub(crate) fn start_group(&mut self) {
        self.cursors.clear();
        for stream in &mut self.streams {
            if !stream.shared {
                stream.pieces.clear();
            }
        }
    }

    /// Cursors start over, the pieces stay (version 0).
    pub(crate) fn restart(&mut self) {
        self.cursors.clear();
    }

    /// The element at the cursor of `section` in the stream section number `target`; the cursor moves by `stride`.
    pub(crate) fn next(
        &mut self,
        format: &Format,
        source: &dyn Bytes,
        order: Order,
        section: usize,
        target: u8,
        stride: u64,
    ) -> Result<u64> {
        self.taken += 1;
        let is = |c: &Cursor| c.section == section && c.target == target;
        let latest = Some(self.latest).filter(|&at| self.cursors.get(at).is_some_and(is));
        let known = latest.or_else(|| self.cursors.iter().position(is));
        let at = match known {
            Some(at) => at,
            None => {
                let missing = || Error::at(0, ErrorKind::NoElement { section: target, index: 0 });
                let stream = format.section_index(target).ok_or_else(missing)?;
                let walk = Walk {
                    state: State::new(format, stream),
                    piece: 0,
                    entered: false,
                    position: 0,
                    next: 0,
                    value: 0,
                };
                self.cursors.push(Cursor { section, target, stream, index: 0, walk });
                self.cursors.len() - 1
            }
        };
        self.latest = at;
        let none = |index| Error::at(0, ErrorKind::NoElement { section: target, index });
        let Some(cursor) = self.cursors.get_mut(at) else { return Err(none(0)) };
        let Some(stream) = self.streams.get(cursor.stream).filter(|s| !s.shared) else { return Err(none(0)) };
        while cursor.walk.next <= cursor.index {
            if !cursor.walk.step(format, source, order, stream)? {
                return Err(none(cursor.index));
            }
        }
        cursor.index = cursor.index.saturating_add(stride);
        Ok(cursor.walk.value)
    }
}

impl Walk {
    /// Moves on by one element; false at the end of the stream.
    fn step(&mut self, format: &Format, source: &dyn Bytes, order: Order, stream: &Stream) -> Result<bool> {
        loop {
            let Some(piece) = stream.pieces.get(self.piece) else { return Ok(false) };
            if !self.entered {
                enter(&mut self.state, format, piece);
                self.entered = true;
            }
            let data = source.bytes(&piece.content);
            if self.position >= data.len() {
                self.piece += 1;
                self.position = 0;
                self.entered = false;
                continue;
            }
            let Some(&plan) = self.state.plan(0) else { return Ok(false) };
            let Some(raw) = stored(data, self.position, &plan, order) else {
                let mut place = place(piece.origin, self.position);
                place.section = format.sections.get(self.state.section).map(|s| s.number);
                place.leaf = Some(0);
                return Err(Error { kind: ErrorKind::Truncated("an element"), place });
            };
            if plan.width == 0 {
                return Ok(false);
            }
            self.position += usize::from(plan.width);
            self.value = value(raw, &plan, &mut self.state.cells);
            self.next += 1;
            return Ok(true);
        }
    }
}

/// Takes over what a piece of a stream section says of the state.
pub(crate) fn enter(state: &mut State, format: &Format, piece: &Piece) {
    if piece.reset {
        state.reset(format);
    }
    let record = format.sections.get(state.section).and_then(|s| s.records.first());
    let record = record.and_then(|&r| format.records.get(usize::from(r)));
    if let Some(leaf) = record.and_then(|r| r.single_number()) {
        let width = if piece.width == 0 { leaf.width() } else { piece.width };
        state.set_chunk_width(format, leaf, width);
    }
}
