//! Reference reader: a direct transcription of the specification. Any of its [rules](Rule) can be broken.
//!
//! It is slow, keeps everything in memory, and shares no code with the runtime. It takes the format as a schema from
//! the parser.

mod columns;
mod container;
mod decoder;
mod filters;
pub(crate) mod heap;
mod json;
mod language;
mod metadata;
mod raw;
mod rules;
mod syntax;
mod values;

use crate::{Seen, Value, What};
use columns::Found;
use container::Part;
pub use container::{Times, times};
use decoder::{Decoder, Row};
use metatf::container::Order;
use metatf_parser::schema::{Dtd, Item, Leaf, LeafId, METADATA, RecordId, SECTION};
pub use raw::Raw;
pub use rules::{Chapter, Rule};
pub(crate) use rules::{Rules, asked};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

/// Description of an error in the trace.
pub type Wrong = String;

/// Returns everything in a trace, as `--all` would show it, up to the first error.
pub fn read(dtd: &Dtd, bytes: &[u8]) -> (Vec<Seen>, Result<(), Wrong>) {
    read_broken(dtd, bytes, None)
}

/// Reads like [`read`], with one rule broken.
pub fn read_broken(dtd: &Dtd, bytes: &[u8], broken: Option<Rule>) -> (Vec<Seen>, Result<(), Wrong>) {
    let rules = Rules(broken);
    match container::open(bytes, false, rules) {
        Ok((header, _)) => read_parts(&header, dtd, bytes, false, rules),
        Err(wrong) => (Vec::new(), Err(wrong)),
    }
}

/// Checks that the labels of columns are true (spec 5.2, filter 4).
///
/// # Errors
/// Fails at the first label that is not true, and if the trace has an error.
pub fn labels(dtd: &Dtd, bytes: &[u8]) -> Result<(), Wrong> {
    let rules = Rules(None);
    let (header, _) = container::open(bytes, false, rules)?;
    let (parts, end) = container::parts(&header, dtd, bytes, false, rules);
    let mut oracle = Oracle { rules, ..Oracle::default() };
    oracle.groups(&mut Decoder::new(dtd, header.order, header.int, header.version, rules), parts)?;
    end.and(oracle.untrue.map_or(Ok(()), Err))
}

/// Options of the oracle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Text of the caller's DTD. A DTD embedded in the trace takes precedence.
    pub dtd: Option<&'a str>,
    /// Whether to salvage the intact parts.
    pub salvage: bool,
    /// Set if the bytes are content without a header.
    pub raw: Option<Raw<'a>>,
    /// The broken rule.
    pub broken: Option<Rule>,
}

/// Returns the trace as JSON lines, without and with `--all`, up to the first error, and that error.
pub fn lines(bytes: &[u8], options: Options<'_>) -> ([Vec<String>; 2], Result<(), Wrong>) {
    let rules = Rules(options.broken);
    let parsed = |text: &[u8]| -> Result<Arc<Dtd>, Wrong> {
        let dtd = parsed(text).ok_or(Wrong::from("a DTD with errors"))?;
        match std::str::from_utf8(text) {
            Ok(text) if is_read(&dtd) => language::read(text, rules).map(Arc::new),
            _ => Ok(dtd),
        }
    };
    let read = || {
        let is_trace = bytes.starts_with(b"\x7fMTF") || !rules.holds(Rule::Magic);
        if !is_trace && !options.salvage && (options.raw.is_some() || options.dtd.is_some()) {
            let dtd = parsed(options.dtd.unwrap_or_default().as_bytes())?;
            let found = raw::read(&dtd, bytes, options.raw, rules)?;
            return Ok((dtd, found.order, found.seen, found.end));
        }
        let (header, embedded) = container::open(bytes, options.salvage, rules)?;
        let given = options.dtd.map(|text| text.as_bytes().to_vec());
        let source = if rules.holds(Rule::EmbeddedFirst) { embedded.or(given) } else { given.or(embedded) };
        let dtd = parsed(&source.ok_or("no DTD")?)?;
        let (seen, end) = read_parts(&header, &dtd, bytes, options.salvage, rules);
        Ok((dtd, header.order, seen, end))
    };
    let (dtd, order, seen, end) = match read() {
        Ok(read) => read,
        Err(wrong) => return (Default::default(), Err(wrong)),
    };
    let lines = [false, true].map(|all| {
        let printer = json::Printer { dtd: &dtd, order, all, rules };
        seen.iter().filter_map(|seen| printer.line(seen)).collect()
    });
    (lines, end)
}

/// Parses a DTD, once per text.
fn parsed(text: &[u8]) -> Option<Arc<Dtd>> {
    static PARSED: Mutex<BTreeMap<Vec<u8>, Option<Arc<Dtd>>>> = Mutex::new(BTreeMap::new());
    let known = PARSED.lock().unwrap().get(text).cloned();
    known.unwrap_or_else(|| {
        let dtd = metatf_parser::parse("format.dtd", text).dtd.map(Arc::new);
        PARSED.lock().unwrap().insert(text.to_vec(), dtd.clone());
        dtd
    })
}

/// Returns whether the oracle can interpret a DTD by itself. It supports neither models of `predicted` nor roles.
pub fn is_read(dtd: &Dtd) -> bool {
    let has_role = |leaf: &Leaf| leaf.annotations.contains_key("role");
    dtd.models.is_empty() && !dtd.records.iter().flat_map(|record| &record.leaves).any(has_role)
}

/// Returns the meaning of a DTD without errors.
///
/// # Errors
/// Fails if the oracle does not support the DTD.
pub fn meaning(text: &str) -> Result<Dtd, Wrong> {
    language::read(text, Rules(None))
}

fn read_parts(
    header: &container::Header,
    dtd: &Dtd,
    bytes: &[u8],
    salvage: bool,
    rules: Rules,
) -> (Vec<Seen>, Result<(), Wrong>) {
    let (parts, end) = container::parts(header, dtd, bytes, salvage, rules);
    let mut oracle = Oracle { salvage, rules, ..Oracle::default() };
    let mut decoder = Decoder::new(dtd, header.order, header.int, header.version, rules);
    let parts = if salvage { oracle.trusted(&decoder, parts) } else { parts };
    let result = oracle.groups(&mut decoder, parts);
    (oracle.out, result.and(end))
}

#[derive(Default)]
struct Oracle {
    out: Vec<Seen>,
    rules: Rules,
    salvage: bool,
    /// The first label that is not true.
    untrue: Option<Wrong>,
    /// Salvage: sections of the group whose content is lost from here on.
    lost: HashSet<u8>,
    /// Salvage: whether records of the group were lost, which makes cursors unknown.
    cursors_lost: bool,
}

impl Oracle {
    /// Salvage: returns the parts whose section was reset after the damage, and whose stride streams are complete.
    fn trusted(&self, d: &Decoder<'_>, parts: Vec<Part>) -> Vec<Part> {
        let (mut trusted, mut missing) = (HashSet::new(), false);
        let deliver = |part: &Part| {
            if part.shared {
                missing |= part.gap;
                if part.gap {
                    trusted.clear();
                }
                return true;
            }
            if part.gap {
                trusted.clear();
                missing = true;
            }
            if part.group_start {
                trusted.clear();
                missing = false;
            }
            if part.reset {
                trusted.insert(part.section);
            }
            let state = trusted.contains(&part.section) || !self.rules.holds(Rule::SalvageAfterReset);
            let strides = missing && !container::strides(d.dtd, part.section).is_empty();
            let delivered = state && !(strides && self.rules.holds(Rule::SalvageWholeStreams));
            if !delivered {
                trusted.remove(&part.section);
            }
            delivered
        };
        parts.into_iter().filter(deliver).collect()
    }

    fn groups(&mut self, decoder: &mut Decoder<'_>, parts: Vec<Part>) -> Result<(), Wrong> {
        // Groups: a shared table precedes the group that needs it and is shown before that group.
        let mut groups: Vec<Vec<Part>> = Vec::new();
        let mut shared = Vec::new();
        for part in parts {
            let other = groups.last().and_then(|g| g.iter().find(|p| !p.shared)).is_some_and(|p| p.group != part.group);
            if part.group_start || !part.shared && (groups.is_empty() || other) {
                groups.push(std::mem::take(&mut shared));
            }
            if part.shared {
                shared.push(part);
            } else {
                groups.last_mut().unwrap().push(part);
            }
        }
        if !shared.is_empty() {
            groups.push(shared);
        }
        groups.iter().try_for_each(|group| self.group(decoder, group))
    }

    fn group(&mut self, d: &mut Decoder<'_>, parts: &[Part]) -> Result<(), Wrong> {
        d.begin_group();
        (self.lost, self.cursors_lost) = (HashSet::new(), false);
        for part in parts.iter().filter(|p| p.shared) {
            d.reset(part.section);
            let result = self.elements(d, part, true);
            self.found_wrong(d, part, result)?;
        }
        let local: Vec<_> = parts.iter().filter(|p| !p.shared).collect();
        if let Some(first) = local.first()
            && first.group > 0
        {
            self.note(What::Group(first.group), 0, "", 0, Vec::new());
        }
        // The elements are read first because strides need them; they are shown last.
        let mut elements = Oracle { salvage: self.salvage, rules: self.rules, ..Oracle::default() };
        let mut numbers: Vec<u8> = d.dtd.sections.iter().filter(|s| s.stream.is_some()).map(|s| s.number).collect();
        numbers.sort_unstable();
        // An error in the elements is reported where the elements are shown, after the records that do not need them.
        let mut end = Ok(());
        for number in numbers {
            let mut first = true;
            for part in local.iter().filter(|p| p.section == number) {
                if part.reset || first {
                    d.reset(number);
                    if !first {
                        elements.note(What::Reset, number, "", 0, Vec::new());
                    }
                }
                first = false;
                if elements.skips(d, part) || end.is_err() {
                    continue;
                }
                let result = elements.elements(d, part, false);
                end = elements.found_wrong(d, part, result);
            }
        }
        let mut seen = Vec::new();
        for part in local {
            if d.version == 0 && part.section != 0 && !part.follow {
                let offset = part.base - u64::from(d.dtd.tag_width) - 1;
                let last = d.last_section;
                self.note(What::Section(part.section), last, "section", offset, Vec::new());
            }
            d.last_section = part.section;
            if d.dtd.section(part.section).is_some_and(|s| s.stream.is_some()) {
                continue;
            }
            if part.reset {
                d.reset(part.section);
                if seen.contains(&part.section) && d.version == 1 {
                    self.note(What::Reset, part.section, "", 0, Vec::new());
                }
            } else if !self.rules.holds(Rule::StateContinues) {
                d.reset(part.section);
            }
            seen.push(part.section);
            if self.skips(d, part) {
                continue;
            }
            let result = self.tagged(d, part);
            self.found_wrong(d, part, result)?;
        }
        self.out.append(&mut elements.out);
        self.untrue = self.untrue.take().or(elements.untrue);
        end
    }

    /// Salvage: returns whether a part is unreadable because something before it was lost.
    fn skips(&mut self, d: &Decoder<'_>, part: &Part) -> bool {
        if part.reset {
            self.lost.remove(&part.section);
        }
        self.lost.contains(&part.section) || self.cursors_lost && !container::strides(d.dtd, part.section).is_empty()
    }

    /// Salvage: continues after an error and counts the rest of the part as missing.
    fn found_wrong(&mut self, d: &Decoder<'_>, part: &Part, result: Result<(), Wrong>) -> Result<(), Wrong> {
        if result.is_err() && self.salvage {
            self.lost.insert(part.section);
            self.cursors_lost |= d.dtd.section(part.section).is_some_and(|s| s.stream.is_none());
            return Ok(());
        }
        result
    }

    fn note(&mut self, what: What, section: u8, record: &str, offset: u64, values: Vec<Value>) {
        self.out.push(Seen { what, section, record: record.to_owned(), offset, values });
    }

    /// Reads a part of a stream section: contiguous elements.
    fn elements(&mut self, d: &mut Decoder<'_>, part: &Part, shared: bool) -> Result<(), Wrong> {
        let section = d.dtd.section(part.section).ok_or("an unknown section")?;
        let id = section.stream.ok_or("not a stream section")?;
        let record = d.dtd.record(id).ok_or("no such record")?;
        let single = matches!(&*record.items, [Item::Leaf(_)]) && record.leaves[0].is_numeric();
        if single && part.width > 0 && self.rules.holds(Rule::WidthOfChunk) {
            d.state(part.section).leaf(id, LeafId(0)).width = part.width;
        }
        let mut row = Row::new(&part.content);
        let mut found = 0;
        while row.at < part.content.len() {
            let start = row.at;
            d.element(part.section, id, start, &mut row)?;
            if row.at == start {
                return Err("an element without a byte".into());
            }
            found += 1;
            let values = std::mem::take(&mut row.values);
            if single && let [Value::Number(n)] = *values {
                d.streams.entry(part.section).or_default().push(n);
            }
            let what = if shared { What::Shared } else { What::Element };
            self.note(what, part.section, &record.name, part.base + start as u64, values);
        }
        self.labelled(d, part, &[]);
        self.counted(part, found)
    }

    /// Reads a part of tagged records.
    fn tagged(&mut self, d: &mut Decoder<'_>, part: &Part) -> Result<(), Wrong> {
        let (rules, mut section) = (self.rules, part.section);
        let mut row = Row::new(&part.content);
        let mut found = 0;
        let mut records = Vec::new();
        while row.at < part.content.len() {
            let start = row.at;
            let offset = part.base + start as u64;
            match d.tag(section, &mut row)? {
                METADATA => {
                    let values = d.metadata(section, &mut row)?;
                    self.note(What::Metadata, section, "metadata", offset, values);
                    found += u32::from(!rules.holds(Rule::RecordsAreData));
                }
                SECTION => {
                    let number = row.take(1, d.order)? as u8;
                    rules.demand(Rule::NoSectionInExtent, part.follow, "a section record inside of an extent")?;
                    rules.demand(Rule::NotBackToGlobal, number != 0, "a section record of the global section")?;
                    let known = d.dtd.section(number).ok_or("a section record of an unknown section")?;
                    let stream = known.stream.is_some();
                    rules.demand(Rule::NoStreamWithoutTable, !stream, "a stream section without a table")?;
                    self.note(What::Section(number), section, "section", offset, Vec::new());
                    section = number;
                }
                id => {
                    d.data_record(section, id, start, &mut row)?;
                    found += u32::from(id.0 != 0 || !rules.holds(Rule::RecordsAreData));
                    let name = d.dtd.record(id).map_or("", |r| &r.name);
                    let values = std::mem::take(&mut row.values);
                    self.note(What::Record, section, name, offset, values);
                    records.push(Found { bytes: start..row.at, stored: std::mem::take(&mut row.stored) });
                }
            }
        }
        self.labelled(d, part, &records);
        self.counted(part, found)
    }

    /// Checks the labels of content stored in columns. Only records have tags, so labels of elements are never true.
    fn labelled(&mut self, d: &mut Decoder<'_>, part: &Part, records: &[Found]) {
        let Some(columns) = &part.columns else { return };
        let is_stream = d.dtd.section(part.section).is_some_and(|section| section.stream.is_some());
        let tag_of = |bytes: &[u8]| {
            let is_tag = !is_stream && bytes.len() == usize::from(d.dtd.tag_width);
            let record = if is_tag { d.tag(part.section, &mut Row::new(bytes)).ok()? } else { return None };
            (record != METADATA && record != SECTION).then(|| container::integer(bytes, d.order) as usize)
        };
        let checked = columns::check_labels(columns, records, tag_of);
        self.untrue = self.untrue.take().or(checked.err());
    }

    fn counted(&self, part: &Part, found: u32) -> Result<(), Wrong> {
        let right = part.records.is_none_or(|declared| declared == found);
        self.rules.demand(Rule::RecordsCounted, right, "another number of records than declared")
    }
}

/// Decodes the records in a byte array (spec 3.7) if it consists of complete records. Returns the record and values of
/// each.
fn nested(dtd: &Dtd, order: Order, number: u8, bytes: &[u8], rules: Rules) -> Option<Vec<(RecordId, Vec<Value>)>> {
    let section = dtd.section(number)?;
    let mut d = Decoder::new(dtd, order, 8, 0, rules);
    let mut row = Row::new(bytes);
    let mut out = Vec::new();
    while row.at < bytes.len() {
        let start = row.at;
        let id = match section.stream {
            Some(id) => {
                d.element(number, id, start, &mut row).ok()?;
                id
            }
            None => {
                let id = d.tag(number, &mut row).ok()?;
                if id.0 < 3 && rules.holds(Rule::ArraysHaveData) {
                    return None;
                }
                d.data_record(number, id, start, &mut row).ok()?;
                id
            }
        };
        if row.at == start {
            return None;
        }
        out.push((id, std::mem::take(&mut row.values)));
    }
    Some(out)
}
