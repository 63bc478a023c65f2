/// The emitter, through which events are emitted.
#[allow(dead_code, reason = "a DTD may have no texts")]
mod __emitter {
    use super::{__DROPPED_SECTION, __put_dropped, BUFFER_LEAST, DTD, SECTIONS, SOURCE};

    /// Writes events to a buffer. Each full buffer becomes a chunk of the trace. Chunks do not depend on each other, so
    /// a lost chunk affects no other. A thread or an interrupt handler has its own emitter and so its own trace;
    /// `metatfc sort` joins them.
    pub struct Emitter<'b, W> {
        /// The enabled kinds: bit k belongs to kind k. Initially, all kinds are disabled.
        pub control: u64,
        /// The value of fields with the source `thread`.
        pub thread: u32,
        /// The value of fields with the source `process`.
        pub process: u32,
        buffer: &'b mut [u8],
        clock: fn() -> u64,
        write: W,
        /// The position of the next record, or 0 if no chunk has been started.
        at: usize,
        /// Index of the chunk's section.
        section: usize,
        events: u32,
        dropped: u64,
        /// Number of dropped events reported by a record in the chunk. `events` does not include that record.
        reported: u64,
        chunks: u32,
        bases: [u64; SECTIONS.len()],
    }

    impl<W> core::fmt::Debug for Emitter<'_, W> {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.debug_struct("Emitter")
                .field("control", &self.control)
                .field("dropped", &self.dropped)
                .finish_non_exhaustive()
        }
    }

    impl<'b, W: FnMut(&[u8]) -> bool> Emitter<'b, W> {
        /// Starts a trace by writing its header and the DTD. `clock` returns the nanoseconds since the start. `write`
        /// either appends all of its bytes to the trace, or appends none of them and returns false. Returns `None` if
        /// the buffer is smaller than [`BUFFER_LEAST`], or if writing fails.
        pub fn begin(buffer: &'b mut [u8], clock: fn() -> u64, write: W) -> Option<Self> {
            let (control, thread, process) = (0, 1, 0);
            let (at, section, events, dropped, reported, chunks) = (0, 0, 0, 0, 0, 0);
            let bases = [0; SECTIONS.len()];
            let mut emitter = Self {
                control,
                thread,
                process,
                buffer,
                clock,
                write,
                at,
                section,
                events,
                dropped,
                reported,
                chunks,
                bases,
            };
            let is_begun = emitter.buffer.len() >= BUFFER_LEAST && emitter.write_head().is_some();
            if is_begun { Some(emitter) } else { None }
        }

        fn write_head(&mut self) -> Option<()> {
            let mut head = [0; 40];
            let source = SOURCE.as_bytes();
            head[..8].copy_from_slice(&[0x7f, b'M', b'T', b'F', 2, 1, u8::try_from(source.len()).ok()?, 1]);
            head[24..32].copy_from_slice(&(40 + source.len() as u64).to_le_bytes());
            self.put(&head);
            self.put(source);
            let mut chunk = self.chunk_head(1, 0, u32::try_from(DTD.len()).ok()?, 0);
            sign(&mut chunk, DTD.as_bytes());
            self.put(&chunk);
            let head = self.buffer.get(..core::mem::take(&mut self.at))?;
            self.chunks = 1;
            ((self.write)(head) && (self.write)(DTD.as_bytes())).then_some(())
        }

        /// Returns the header of a chunk (section 5.2 of the specification), except for its checksum.
        fn chunk_head(&self, kind: u8, section: u8, length: u32, records: u32) -> [u8; 48] {
            let mut head = [0; 48];
            head[..12].copy_from_slice(&[
                b'M',
                b'T',
                b'F',
                b'C',
                section,
                kind,
                0,
                0,
                if kind == 0 { 3 } else { 0 },
                0,
                2,
                1,
            ]);
            for (at, number) in
                [(12, length), (16, length), (20, records), (24, self.chunks.saturating_sub(1)), (28, self.chunks)]
            {
                head[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            head
        }

        /// Writes the content of the buffer. Returns false on failure, in which case these events count as dropped.
        pub fn flush(&mut self) -> bool {
            let at = core::mem::take(&mut self.at);
            let (events, reported) = (core::mem::take(&mut self.events), core::mem::take(&mut self.reported));
            if events == 0 && reported == 0 {
                return true;
            }
            let is_written = self.write_chunk(at, events + u32::from(reported != 0)).is_some();
            self.dropped = if is_written { self.dropped - reported } else { self.dropped + u64::from(events) };
            is_written
        }

        fn write_chunk(&mut self, at: usize, records: u32) -> Option<()> {
            let length = u32::try_from(at.checked_sub(48)?).ok()?;
            let mut head = self.chunk_head(0, SECTIONS.get(self.section)?.0, length, records);
            let base = self.bases.get_mut(self.section)?;
            head[32..40].copy_from_slice(&base.to_le_bytes());
            sign(&mut head, self.buffer.get(48..at)?);
            self.buffer.get_mut(..48)?.copy_from_slice(&head);
            let next = self.chunks.checked_add(1)?;
            (self.write)(self.buffer.get(..at)?).then(|| {
                *base += u64::from(length);
                self.chunks = next;
            })
        }

        /// Ends the trace: writes the content of the buffer, and the number of dropped events if the trace does not
        /// contain it yet. Returns whether this succeeded. The trace is complete, but tools report that it has no
        /// index.
        pub fn finish(mut self) -> bool {
            let is_written = self.flush();
            let Some(section) = __DROPPED_SECTION.filter(|_| self.dropped != 0) else { return is_written };
            self.start(section);
            self.flush() && is_written
        }

        /// Returns the number of dropped events that no record of the trace reports.
        pub fn dropped(&self) -> u64 {
            self.dropped
        }

        /// Makes room for an event of a section.
        pub(super) fn reserve(&mut self, section: usize, most: usize) {
            if self.at == 0 || self.section != section || self.buffer.len() - self.at < most {
                self.flush();
                self.start(section);
            }
        }

        /// Starts a chunk with the metadata that sets the width of each field, so that events depend on no state.
        fn start(&mut self, section: usize) {
            (self.section, self.at) = (section, 48);
            if let Some((_, metadata)) = SECTIONS.get(section) {
                self.put(metadata);
            }
            if self.dropped != 0 && Some(section) == __DROPPED_SECTION {
                __put_dropped(self, self.dropped);
                self.reported = self.dropped;
            }
        }

        pub(super) fn commit(&mut self) {
            self.events += 1;
        }

        pub(super) fn now(&self) -> u64 {
            (self.clock)()
        }

        /// Appends bytes. There is room for them, because the maximum size of each event was reserved.
        pub(super) fn put(&mut self, bytes: &[u8]) {
            let end = self.at + bytes.len();
            if let Some(place) = self.buffer.get_mut(self.at..end) {
                place.copy_from_slice(bytes);
                self.at = end;
            }
        }

        pub(super) fn put_length(&mut self, cut: &Cut<'_>) {
            // At most 1,024.
            self.put(&((cut.bytes.len() + cut.mark.len()) as u16).to_le_bytes());
        }

        pub(super) fn put_cut(&mut self, cut: &Cut<'_>) {
            self.put(cut.bytes);
            self.put(cut.mark.as_bytes());
        }
    }

    /// A string or bytes as they are written.
    pub(super) struct Cut<'t> {
        bytes: &'t [u8],
        mark: &'static str,
    }

    /// Returns a string, truncated to 255 bytes. A truncated string ends in a mark.
    pub(super) fn text(text: &str) -> Cut<'_> {
        if text.len() <= 255 {
            return Cut { bytes: text.as_bytes(), mark: "" };
        }
        let mut end = 252;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Cut { bytes: text.as_bytes().get(..end).unwrap_or_default(), mark: "\u{2026}" }
    }

    /// Returns the first 1,024 bytes.
    pub(super) fn array(bytes: &[u8]) -> Cut<'_> {
        Cut { bytes: bytes.get(..1024).unwrap_or(bytes), mark: "" }
    }

    /// Writes the checksum of a header and its content into the header.
    fn sign(head: &mut [u8; 48], content: &[u8]) {
        let crc = crc(crc(u32::MAX, &head[..44]), content);
        head[44..].copy_from_slice(&(!crc).to_le_bytes());
    }

    /// Computes a CRC-32C, one byte at a time.
    fn crc(before: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(before, |crc, byte| TABLE[usize::from((crc as u8) ^ byte)] ^ crc >> 8)
    }

    static TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut crc, mut bit) = (byte as u32, 0);
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
}

pub use __emitter::Emitter;
