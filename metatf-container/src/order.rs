//! The rules for a chunk relative to the chunks before it (spec 5.2): sequence numbers, groups, resets, bases and
//! shared tables.

use super::chunk::{self, ChunkHeader, GROUP, RESET, SHARED, at};
use crate::{Error, ErrorKind, Result};

/// The state of a section after the chunks checked so far.
#[derive(Clone, Copy, Default)]
struct Section {
    /// The offset at which the content of the section's next chunk must start; unknown after corruption or a jump.
    next_base: Option<u64>,
    /// Whether the section's chunks belong to a shared table.
    shared: Option<bool>,
    /// The group of the section's last chunk, numbered like `Sequence::groups`; 0 before the first chunk.
    last_group: u64,
}

/// The state of the chunk sequence after the chunks checked so far.
#[derive(Clone)]
pub(crate) struct Sequence {
    /// Number of the next chunk.
    next: u64,
    /// The current group.
    group: Option<u32>,
    /// Number of groups so far, plus 1. Comparing numbers avoids clearing a flag for every section at each group, which
    /// would be slow if every record had its own group.
    groups: u64,
    /// Whether chunks may be missing, possibly including the start of a group and the first chunk of a section in the
    /// group.
    loose: bool,
    sections: Box<[Section; 256]>,
}

impl Sequence {
    /// Returns the state at the start of a file.
    pub(crate) fn new() -> Self {
        let start = Section { next_base: Some(0), ..Section::default() };
        Self { next: 0, group: None, groups: 1, loose: false, sections: Box::new([start; 256]) }
    }

    /// Returns the number of the next chunk.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the group of the last data chunk, ignoring shared tables.
    pub(crate) fn group(&self) -> Option<u32> {
        self.group
    }

    /// Continues with chunk number `next` after a gap. Since the previous chunks are uncertain, the next chunk of each
    /// section is accepted as it is.
    pub(crate) fn skip_to(&mut self, next: u64) {
        self.next = next;
        self.loose = true;
        for section in self.sections.iter_mut() {
            section.next_base = None;
        }
    }

    /// Continues after a jump (random access). Unlike after a gap, the current group is also unknown.
    pub(crate) fn jump_to(&mut self, next: u64) {
        self.skip_to(next);
        self.group = None;
    }

    /// Checks the individually valid chunk at `start` against the chunks before it.
    pub(crate) fn check(&self, header: &ChunkHeader, start: u64) -> Result<()> {
        let wrong = |at: u64, what, found: u64, expected| {
            Err(Error::at(start + at, ErrorKind::Invalid { what, found, expected }))
        };
        if u64::from(header.sequence) != self.next {
            let expected = "one more than in the preceding chunk, or 0 in the first chunk";
            return wrong(at::SEQUENCE, "the chunk's sequence", header.sequence.into(), expected);
        }
        if header.kind == chunk::DTD && self.next != 0 {
            return wrong(
                at::KIND,
                "the chunk's kind",
                header.kind.into(),
                "a kind other than the DTD source, which only the first chunk can contain",
            );
        }
        if header.kind != chunk::DATA {
            return Ok(());
        }
        let section = &self.sections[usize::from(header.section)];
        let shared = header.has(SHARED);
        if shared && (!header.has(RESET) || header.has(GROUP)) {
            let expected = "bits 0 and 2, but not bit 1, for a shared table";
            return wrong(at::FLAGS, "the chunk's flags", header.flags.into(), expected);
        }
        if section.shared.is_some_and(|before| before != shared) {
            let expected = "bit 2 in either all or no chunks of the section";
            return wrong(at::FLAGS, "the chunk's flags", header.flags.into(), expected);
        }
        if shared {
            if header.group != 0 {
                return wrong(at::GROUP, "the chunk's group", header.group.into(), "0 for a shared table");
            }
        } else {
            self.check_group(header, section, start)?;
        }
        if section.next_base.is_some_and(|base| base != header.base) {
            let expected = "the length of the section's content so far";
            return wrong(at::BASE, "the chunk's base", header.base, expected);
        }
        if header.base.checked_add(header.raw_len.into()).is_none() {
            return wrong(at::BASE, "the chunk's base", header.base, "a base that leaves room for the chunk's content");
        }
        Ok(())
    }

    fn check_group(&self, header: &ChunkHeader, section: &Section, start: u64) -> Result<()> {
        let wrong = |at: u64, what, found: u64, expected| {
            Err(Error::at(start + at, ErrorKind::Invalid { what, found, expected }))
        };
        let flags = |expected| wrong(at::FLAGS, "the chunk's flags", header.flags.into(), expected);
        let number = |expected| wrong(at::GROUP, "the chunk's group", header.group.into(), expected);
        let begins = header.has(GROUP);
        match self.group {
            _ if begins && !header.has(RESET) => {
                return flags("bit 0 in addition to bit 1, because the first chunk of a group resets the state");
            }
            None if self.loose => {}
            None if !begins => return flags("bit 1, because the first data chunk begins a group"),
            None if header.group != 0 => return number("0 for the first group"),
            None => {}
            Some(now) if begins && !self.loose && header.group.checked_sub(1) != Some(now) => {
                return number("one more than the preceding group's number");
            }
            Some(now) if begins && self.loose && header.group <= now => {
                return number("more than the preceding group's number");
            }
            Some(now) if !begins && (header.group < now || header.group > now && !self.loose) => {
                return number("the group of the preceding chunk, because flag bit 1 is not set");
            }
            Some(_) => {}
        }
        if !begins && !self.loose && section.last_group != self.groups && !header.has(RESET) {
            return flags("bit 0, because this is the section's first chunk in the group");
        }
        Ok(())
    }

    /// Records a chunk that [`Sequence::check`] accepted.
    pub(crate) fn note(&mut self, header: &ChunkHeader) {
        self.next += 1;
        if header.kind != chunk::DATA {
            return;
        }
        let shared = header.has(SHARED);
        if !shared {
            if header.has(GROUP) || self.group != Some(header.group) {
                self.groups += 1;
            }
            if header.has(GROUP) {
                self.loose = false;
            }
            self.group = Some(header.group);
        }
        let section = &mut self.sections[usize::from(header.section)];
        section.next_base = header.base.checked_add(header.raw_len.into());
        section.shared = Some(shared);
        section.last_group = self.groups;
    }
}
