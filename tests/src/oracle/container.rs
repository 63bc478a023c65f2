//! Parts of a trace file, read from the front, after sections 5.1 and 5.2 of the specification.

use super::columns::{self, Restored};
use super::filters::{decompressed, transposed};
use super::{Rule, Rules, Wrong, filters};
use metatf::container::Order;
use metatf_parser::schema::{Dtd, Interpretation, Item, SECTION};
use std::collections::{HashMap, HashSet};

/// Contiguous content of one section.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) section: u8,
    pub(super) content: Vec<u8>,
    /// Rows and labels of content that was stored in columns.
    pub(super) columns: Option<Restored>,
    pub(super) base: u64,
    pub(super) reset: bool,
    pub(super) group_start: bool,
    pub(super) shared: bool,
    pub(super) group: u32,
    /// Width of the elements in this chunk, or 0 for the DTD's width.
    pub(super) width: u8,
    pub(super) records: Option<u32>,
    /// Whether to follow `section` records: version 0 without a table.
    pub(super) follow: bool,
    /// Whether chunks are missing before this part.
    pub(super) gap: bool,
}

/// Header of the file.
#[derive(Clone)]
pub(super) struct Header {
    /// Bytes of an `int`.
    pub(super) int: usize,
    pub(super) order: Order,
    pub(super) version: u8,
    /// `sections`: number, start, size.
    table: Vec<[u64; 3]>,
    start: usize,
}

/// Decodes an integer.
pub(super) fn integer(bytes: &[u8], order: Order) -> u64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    match order {
        Order::Big => bytes.iter().fold(0, add),
        Order::Little => bytes.iter().rev().fold(0, add),
    }
}

fn slice(bytes: &[u8], at: usize, len: usize) -> Result<&[u8], Wrong> {
    Ok(at.checked_add(len).and_then(|end| bytes.get(at..end)).ok_or("the file ends")?)
}

impl Header {
    pub(super) fn read(bytes: &[u8], rules: Rules) -> Result<Self, Wrong> {
        let fixed = slice(bytes, 0, 16)?;
        rules.demand(Rule::Magic, fixed[..4] == *b"\x7fMTF", "no trace")?;
        rules.demand(Rule::ClassKnown, matches!(fixed[4], 1 | 2), "a class other than 1 and 2")?;
        rules.demand(Rule::ByteOrderKnown, matches!(fixed[5], 1 | 2), "a byte order other than 1 and 2")?;
        let int = if (fixed[4] == 1) == rules.holds(Rule::IntOfClass) { 4 } else { 8 };
        let order = if (fixed[5] == 2) == rules.holds(Rule::HeaderOrder) { Order::Big } else { Order::Little };
        let (url_len, version) = (usize::from(fixed[6]), fixed[7]);
        rules.demand(Rule::VersionKnown, version < 2, "a version over 1")?;
        let features = &fixed[8..];
        if version == 0 {
            rules.demand(Rule::PadZero, features.iter().all(|byte| *byte == 0), "a pad that is not 0")?;
        }
        let field = |at: usize| Ok::<_, Wrong>(integer(slice(bytes, at, int)?, order));
        let (sections, start) = (field(16)?, field(16 + int)?);
        slice(bytes, 16 + 3 * int, url_len)?;
        let mut at = 16 + 3 * int + url_len;
        let is_set = |number: &usize| version == 1 && features[*number / 8] >> (*number % 8) & 1 == 1;
        let mut known = true;
        for number in (0..64).filter(is_set) {
            let name = slice(bytes, at + 1, slice(bytes, at, 1)?[0].into())?;
            let is_name = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
            if !(1..=31).contains(&name.len()) || !name.iter().all(is_name) {
                return Err("a name of a feature that is none".into());
            }
            known &= number == 0 && (name == b"columns" || !rules.holds(Rule::FeatureByName));
            at += 1 + name.len();
        }
        rules.demand(Rule::FeaturesKnown, known, "features that are not known")?;
        let mut table = Vec::new();
        for _ in 0..sections {
            table.push([field(at)?, field(at + int)?, field(at + 2 * int)?]);
            at += 3 * int;
        }
        let start = usize::try_from(start).map_err(|_| "a start past the end")?;
        if version == 1 {
            rules.demand(Rule::NoTableInVersion1, sections == 0, "a table in version 1")?;
            rules.demand(Rule::StartBehindHeader, start == at, "data that do not begin behind the header")?;
        }
        rules.demand(Rule::StartNotInHeader, start >= at, "data that begin in the header")?;
        rules.demand(Rule::StartInFile, start <= bytes.len(), "a start past the end")?;
        let start = start.min(bytes.len());
        Ok(Self { int, order, version, table, start })
    }

    /// Derives a header from the first complete chunk if the header is unreadable.
    fn of_chunk(chunk: &Chunk<'_>, at: usize) -> Self {
        let int = if chunk.class == 1 { 4 } else { 8 };
        Self { int, order: chunk.order, version: 1, table: Vec::new(), start: at }
    }
}

/// Returns the header and the embedded DTD, if there is one.
pub(super) fn open(bytes: &[u8], salvage: bool, rules: Rules) -> Result<(Header, Option<Vec<u8>>), Wrong> {
    let header = match Header::read(bytes, rules) {
        Err(_) if salvage => {
            let found = (0..bytes.len()).find_map(|at| Some((at, Chunk::read(bytes, at, rules).ok()?)));
            found.map(|(at, chunk)| Header::of_chunk(&chunk, at)).ok_or("no whole chunk")?
        }
        header => header?,
    };
    if header.version == 0 {
        return Ok((header, None));
    }
    let mut chunks = (header.start..bytes.len()).filter_map(|at| Chunk::read(bytes, at, rules).ok());
    let first = if salvage { chunks.find(|c| c.kind == 1) } else { Chunk::read(bytes, header.start, rules).ok() };
    let source = first.filter(|c| c.kind == 1).and_then(|chunk| chunk.content(rules).ok());
    Ok((header, source))
}

/// Returns all parts up to the first error, and that error.
pub(super) fn parts(
    header: &Header,
    dtd: &Dtd,
    bytes: &[u8],
    salvage: bool,
    rules: Rules,
) -> (Vec<Part>, Result<(), Wrong>) {
    let mut parts = Vec::new();
    let end = match (header.version, salvage) {
        (0, _) => extents(header, dtd, bytes, rules, &mut parts),
        (_, true) => {
            salvaged(header, bytes, rules, &mut parts);
            Ok(())
        }
        (_, false) => Chunks::new(header, dtd, rules).read(bytes, &mut parts),
    };
    (parts, end)
}

pub(super) fn extent(section: u8, content: &[u8], base: usize, follow: bool) -> Part {
    Part {
        section,
        content: content.to_vec(),
        columns: None,
        base: base as u64,
        reset: false,
        group_start: false,
        shared: false,
        group: 0,
        width: 0,
        records: None,
        follow,
        gap: false,
    }
}

/// Reads the parts of version 0.
fn extents(header: &Header, dtd: &Dtd, bytes: &[u8], rules: Rules, parts: &mut Vec<Part>) -> Result<(), Wrong> {
    if header.table.is_empty() {
        parts.push(extent(0, &bytes[header.start..], header.start, true));
        return Ok(());
    }
    let tag_width = usize::from(dtd.tag_width);
    let tag = dtd.record(SECTION).and_then(|r| r.tag).unwrap_or(2);
    let mut at = header.start;
    for (i, &[number, start, size]) in header.table.iter().enumerate() {
        let number = u8::try_from(number).map_err(|_| "a section over 255")?;
        let known = dtd.section(number).is_some();
        rules.demand(Rule::TableSectionKnown, known, "an entry of a section that the DTD does not have")?;
        let place = |n: u64| usize::try_from(n).map_err(|_| Wrong::from("an entry past the end"));
        let (start, size) = (place(start)?, place(size)?);
        if number == 0 {
            let right = i == 0 && start == header.start;
            rules.demand(Rule::GlobalEntryAtStart, right, "a global section that is elsewhere")?;
        } else {
            let before = start.checked_sub(tag_width + 1).filter(|before| *before >= at).ok_or("entries overlap")?;
            if i == 0 {
                parts.push(extent(0, &bytes[at..before.min(bytes.len())], at, false));
            } else {
                rules.demand(Rule::TableWithoutGap, before == at, "a gap between extents")?;
            }
            let record = slice(bytes, before, tag_width + 1)?;
            let is_it = integer(&record[..tag_width], header.order) == u64::from(tag) && record[tag_width] == number;
            rules.demand(Rule::ExtentBehindRecord, is_it, "no section record before an extent")?;
        }
        parts.push(extent(number, slice(bytes, start, size)?, start, false));
        at = start + size;
    }
    rules.demand(Rule::NothingBehindExtents, at == bytes.len(), "bytes behind the last extent")
}

/// A chunk and its position.
struct Chunk<'b> {
    section: u8,
    kind: u8,
    codec: u8,
    filter: u8,
    flags: u8,
    width: u8,
    class: u8,
    order: Order,
    raw_len: usize,
    records: u32,
    group: u32,
    sequence: u32,
    base: u64,
    filtered_len: usize,
    payload: &'b [u8],
    /// Index entry of the chunk.
    entry: Vec<u8>,
}

const HEADER: usize = 48;
/// Kind of the chunk with the times of groups.
const TIMES: u8 = 129;
const MOST: usize = 64 << 20;

impl<'b> Chunk<'b> {
    fn read(bytes: &'b [u8], at: usize, rules: Rules) -> Result<Self, Wrong> {
        let head = slice(bytes, at, HEADER)?;
        if head[..4] != *b"MTFC" {
            return Err("no chunk".into());
        }
        let at_4 = |at: usize| integer(&head[at..at + 4], Order::Little) as u32;
        let payload = slice(bytes, at + HEADER, at_4(12) as usize)?;
        let sum = crc([&head[..44], payload].into_iter().flatten().copied());
        rules.demand(Rule::ChunkSum, sum == at_4(44), "a CRC that does not hold")?;
        let entry = [&(at as u64).to_le_bytes()[..], &head[32..40], &head[4..7], &head[8..9], &head[12..24]].concat();
        Ok(Self {
            section: head[4],
            kind: head[5],
            codec: head[6],
            filter: head[7],
            flags: head[8],
            width: head[9],
            class: head[10],
            order: if head[11] == 2 { Order::Big } else { Order::Little },
            raw_len: at_4(16) as usize,
            records: at_4(20),
            group: at_4(24),
            sequence: at_4(28),
            base: integer(&head[32..40], Order::Little),
            filtered_len: at_4(40) as usize,
            payload,
            entry,
        })
    }

    fn len(&self) -> usize {
        HEADER + self.payload.len()
    }

    /// Checks the header of the chunk by itself, regardless of the surrounding chunks.
    fn check(&self, rules: Rules) -> Result<(), Wrong> {
        let known = self.kind < 4 || self.kind >= 128;
        rules.demand(Rule::KindKnown, known, "a kind that is not known")?;
        if self.kind >= 128 && rules.holds(Rule::OtherFieldsFree) {
            return Ok(());
        }
        rules.demand(Rule::CodecKnown, self.codec < 4, "a codec that is not known")?;
        rules.demand(Rule::FilterKnown, self.filter < 5, "a filter that is not known")?;
        rules.demand(Rule::FlagsKnown, self.flags < 8, "flags that are not known")?;
        if self.raw_len > MOST && self.kind != 2 {
            return Err("a chunk over 64 MiB".into());
        }
        let elements = self.filter != 1 || self.width > 0 && self.raw_len.is_multiple_of(self.width.into());
        rules.demand(Rule::TransposedElements, elements, "elements of no size")?;
        if self.filter == 4 {
            rules.demand(Rule::ColumnsOfData, self.kind == 0, "columns in a chunk that is not data")?;
            let bounded = self.raw_len <= self.payload.len().saturating_mul(65_536);
            rules.demand(Rule::RatioBounded, bounded, "content that is too long for its payload")?;
        }
        let filtered = self.filtered_len;
        match self.filter {
            2 | 3 => {
                let right = filtered >= 1
                    && filtered >= self.raw_len.div_ceil(255)
                    && filtered <= MOST
                    && (self.codec != 0 || filtered == self.payload.len());
                right.then_some(()).ok_or("a filtered length out of bounds".into())
            }
            _ => rules.demand(Rule::FilteredLengthZero, filtered == 0, "a filtered length without need"),
        }
    }

    fn content(&self, rules: Rules) -> Result<Vec<u8>, Wrong> {
        self.restored(rules).map(|restored| restored.content)
    }

    /// Returns the content, with its rows if it was stored in columns.
    fn restored(&self, rules: Rules) -> Result<Restored, Wrong> {
        self.check(rules)?;
        if self.filter == 4 {
            let restored = columns::restored(self.payload, self.codec, self.raw_len, self.order, rules)?;
            let right = restored.content.len() == self.raw_len;
            rules.demand(Rule::RawLength, right, "content of another length")?;
            return Ok(restored);
        }
        let len = if matches!(self.filter, 2 | 3) { self.filtered_len } else { self.raw_len };
        let filtered = decompressed(self.codec, self.payload, len, rules)?;
        if matches!(self.filter, 2 | 3) {
            rules.demand(Rule::DecompressedLength, filtered.len() == len, "decompressed bytes of another length")?;
        }
        let content = match self.filter {
            1 => transposed(&filtered, self.width.into(), rules),
            0 | 4.. => filtered,
            _ => filters::entries(&filtered, self.raw_len, self.filter == 3, rules)?,
        };
        rules.demand(Rule::RawLength, content.len() == self.raw_len, "content of another length")?;
        Ok(Restored { content, ..Restored::default() })
    }

    fn part(&self, restored: Restored) -> Part {
        Part {
            section: self.section,
            content: restored.content.clone(),
            columns: (self.filter == 4).then_some(restored),
            base: self.base,
            reset: self.flags & 1 != 0,
            group_start: self.flags & 2 != 0,
            shared: self.flags & 4 != 0,
            group: self.group,
            width: self.width,
            records: Some(self.records),
            follow: false,
            gap: false,
        }
    }
}

/// The times of a trace's groups: the leaves as section, tag and index, and the lowest and the highest time of each group.
/// A group without times has none, and a group whose times are not known has all.
pub type Times = (Vec<[u64; 3]>, Vec<Option<[u64; 2]>>);

/// Reads the times of the groups in a version 1 trace. Returns `None` if the trace has no such times.
///
/// # Errors
/// Returns an error if the header, a chunk or the times are invalid.
pub fn times(bytes: &[u8]) -> Result<Option<Times>, Wrong> {
    let rules = Rules::default();
    let header = Header::read(bytes, rules)?;
    let (mut at, mut groups, mut found) = (header.start, 0, None);
    while header.version == 1 && at < bytes.len() {
        let chunk = Chunk::read(bytes, at, rules)?;
        groups += usize::from(chunk.kind == 0 && chunk.flags & 2 != 0);
        at += chunk.len();
        match chunk.kind {
            2 => break,
            TIMES => found = Some((chunk, groups)),
            _ => {}
        }
    }
    let Some((chunk, before)) = found else { return Ok(None) };
    let bare = [u32::from(chunk.section), chunk.flags.into(), chunk.records, chunk.group] == [0; 4];
    // The rules for other kinds also apply to this kind.
    let content = Chunk { kind: 3, ..chunk }.content(rules)?;
    let (leaves, mut times) = parsed(&content, before).filter(|_| bare).ok_or("times of groups that are wrong")?;
    times.resize(groups, Some([0, u64::MAX]));
    Ok(Some((leaves, times)))
}

/// Parses the times of this number of groups.
fn parsed(bytes: &[u8], groups: usize) -> Option<Times> {
    let mut bytes = bytes.iter().copied();
    let mut number = || {
        let mut sum = 0_u128;
        for place in 0..10 {
            let byte = bytes.next()?;
            sum |= u128::from(byte % 128) << (7 * place);
            if byte < 128 {
                return u64::try_from(sum).ok();
            }
        }
        None
    };
    let (mut leaves, mut times) = (Vec::new(), Vec::new());
    for _ in 0..number()? {
        let leaf @ [section, tag, index] = [number()?, number()?, number()?];
        (section < 256 && tag < 1 << 32 && index < 256).then(|| leaves.push(leaf))?;
    }
    (number()? == groups as u64).then_some(())?;
    let mut lowest = 0_u64;
    for _ in 0..groups {
        times.push(match number()? {
            0 => None,
            1 => Some([0, u64::MAX]),
            length => {
                let change = number()?;
                let half = change / 2;
                lowest =
                    if change % 2 == 0 { lowest.wrapping_add(half) } else { lowest.wrapping_sub(half).wrapping_sub(1) };
                Some([lowest, lowest.checked_add(length - 2)?])
            }
        });
    }
    bytes.next().is_none().then_some((leaves, times))
}

/// Computes the CRC-32C.
fn crc(bytes: impl Iterator<Item = u8>) -> u32 {
    let divided = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { 0x82F6_3B78 } else { 0 };
    !bytes.fold(!0, |crc: u32, byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| divided(crc)))
}

/// Consecutive chunks, and the rules about their sequence.
struct Chunks<'d> {
    header: &'d Header,
    dtd: &'d Dtd,
    rules: Rules,
    /// Number of the current group.
    group: Option<u32>,
    /// Sections that have a chunk in the current group.
    seen: HashSet<u8>,
    /// Content length so far, by section.
    lengths: HashMap<u8, u64>,
    /// Whether each section is a shared table.
    shared: HashMap<u8, bool>,
    entries: Vec<u8>,
}

impl<'d> Chunks<'d> {
    fn new(header: &'d Header, dtd: &'d Dtd, rules: Rules) -> Self {
        let (seen, lengths, shared) = (HashSet::new(), HashMap::new(), HashMap::new());
        Self { header, dtd, rules, group: None, seen, lengths, shared, entries: Vec::new() }
    }

    fn read(mut self, bytes: &[u8], parts: &mut Vec<Part>) -> Result<(), Wrong> {
        let (rules, mut at, mut sequence) = (self.rules, self.header.start, 0);
        while at < bytes.len() {
            let chunk = Chunk::read(bytes, at, rules)?;
            rules.demand(Rule::SequenceRuns, chunk.sequence == sequence, "chunks are missing")?;
            let same = chunk.class == (self.header.int / 4) as u8 && chunk.order == self.header.order;
            rules.demand(Rule::ChunkOfHeader, same, "a chunk of another class or byte order")?;
            if chunk.kind == 0 {
                chunk.check(rules)?;
                self.stands_right(&chunk)?;
                parts.push(chunk.part(chunk.restored(rules)?));
            } else {
                let free = chunk.kind >= 128 && rules.holds(Rule::OtherFieldsFree);
                let bare = free || chunk.section == 0 && chunk.group == 0;
                rules.demand(Rule::OtherKindsBare, bare, "a chunk that is not data, of a section or group")?;
                chunk.check(rules)?;
            }
            if chunk.kind == 1 {
                // Another module handles the DTD, since a DTD from elsewhere may take precedence.
                chunk.content(rules)?;
            }
            if chunk.kind == 2 {
                return self.close(bytes, at, &chunk);
            }
            self.entries.extend(&chunk.entry);
            sequence += 1;
            at += chunk.len();
        }
        Ok(())
    }

    /// Checks index and footer.
    fn close(&self, bytes: &[u8], at: usize, index: &Chunk<'_>) -> Result<(), Wrong> {
        let rules = self.rules;
        rules.demand(Rule::IndexRight, index.payload == self.entries, "an index that is wrong")?;
        let footer = &bytes[at + index.len()..];
        if footer.is_empty() {
            return Ok(());
        }
        let footer_at = |from: usize, to: usize| footer.get(from..to).ok_or(Wrong::from("a footer that is cut"));
        let right = footer_at(12, 16)? == b"MTFE" && footer_at(0, 8)? == (at as u64).to_le_bytes();
        let sum = crc(footer[..8].iter().copied()).to_le_bytes();
        rules.demand(Rule::FooterRight, right && footer_at(8, 12)? == sum, "a footer that is wrong")?;
        rules.demand(Rule::NothingBehindFooter, footer.len() == 16, "bytes behind the footer")
    }

    /// Checks whether a data chunk is allowed here.
    fn stands_right(&mut self, chunk: &Chunk<'_>) -> Result<(), Wrong> {
        let rules = self.rules;
        let [reset, first, shared] = [1, 2, 4].map(|bit| chunk.flags & bit != 0);
        let length = self.lengths.entry(chunk.section).or_default();
        rules.demand(Rule::BaseRuns, chunk.base == *length, "a base that is wrong")?;
        *length += chunk.raw_len as u64;
        let before = *self.shared.entry(chunk.section).or_insert(shared);
        rules.demand(Rule::SharedWholly, before == shared, "a section that is partly a shared table")?;
        if shared {
            let right = reset && !first && chunk.group == 0;
            return rules.demand(Rule::SharedFlags, right, "a chunk of a shared table with other flags");
        }
        if first {
            self.seen.clear();
        }
        rules.demand(Rule::GroupStarts, first || self.group.is_some(), "a chunk before the first group")?;
        let next = self.group.map_or(0, |group| group + u32::from(first));
        rules.demand(Rule::GroupRuns, chunk.group == next, "a group of another number")?;
        self.group = Some(chunk.group);
        let resets = reset || !self.seen.insert(chunk.section);
        rules.demand(Rule::FirstChunkResets, resets, "the first chunk of a section in a group without a reset")?;
        let late = self.seen.iter().any(|section| strides(self.dtd, *section).contains(&chunk.section));
        rules.demand(Rule::StreamsFirst, !late, "a stream section behind one that strides through it")?;
        self.seen.insert(chunk.section);
        let single = self.dtd.section(chunk.section).and_then(|s| s.stream).and_then(|id| self.dtd.record(id));
        let single = single.is_some_and(|r| {
            let leaf = &r.leaves[0];
            matches!(&*r.items, [Item::Leaf(_)]) && leaf.is_numeric() && leaf.interpretation.stores()
        });
        if single {
            let right = (1..=8).contains(&chunk.width);
            rules.demand(Rule::WidthOfSingle, right, "a leaf's width that is not 1 to 8")
        } else {
            let right = chunk.width == 0 || chunk.filter == 1;
            rules.demand(Rule::WidthNowhereElse, right, "a width that does not belong here")
        }
    }
}

/// Returns the stream sections that the records of a section stride through or are predicted from.
pub(super) fn strides(dtd: &Dtd, section: u8) -> HashSet<u8> {
    let records = dtd.section(section).into_iter().flat_map(|s| &s.records).filter_map(|id| dtd.record(*id));
    let leaves = records.flat_map(|record| &record.leaves);
    let target = leaves.filter_map(|leaf| match leaf.interpretation {
        Interpretation::SectionStride { section, .. } => Some(section),
        Interpretation::Predicted(model) => Some(dtd.models[usize::from(model.0)].section),
        _ => None,
    });
    target.collect()
}

/// Collects all complete data chunks, whatever is between them.
fn salvaged(header: &Header, bytes: &[u8], rules: Rules, parts: &mut Vec<Part>) {
    let (mut at, mut next, mut gap) = (header.start.min(bytes.len()), 0, false);
    while at < bytes.len() {
        let Ok(chunk) = Chunk::read(bytes, at, rules) else {
            if !rules.holds(Rule::LooksForSync) {
                return;
            }
            at += 1;
            continue;
        };
        gap |= chunk.sequence != next && rules.holds(Rule::GapsBySequence);
        next = chunk.sequence.wrapping_add(1);
        at += chunk.len();
        if chunk.kind != 0 {
            continue;
        }
        match chunk.restored(rules) {
            Ok(restored) => {
                parts.push(Part { gap, ..chunk.part(restored) });
                gap = false;
            }
            Err(_) => gap = true,
        }
    }
}
