//! Files without a header, after section 5.4 of the specification.

use super::container::{Part, extent};
use super::decoder::{Decoder, Row};
use super::{Oracle, Rule, Rules, Wrong};
use crate::{Seen, Value, What};
use metatf::container::Order;
use metatf_parser::schema::{Dtd, Interpretation, Leaf, LeafId, Names, Record, RecordId, Section};

/// Caller's description of a raw stream.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// Class: 1 or 2.
    pub class: u8,
    /// Byte order.
    pub order: Order,
    /// Name of the section.
    pub section: &'a str,
}

/// Content of a raw stream.
pub(super) struct Found {
    pub(super) order: Order,
    pub(super) seen: Vec<Seen>,
    pub(super) end: Result<(), Wrong>,
}

/// Record that a file may begin with.
struct Start {
    section: u8,
    record: RecordId,
    is_prologue: bool,
}

pub(super) fn read(dtd: &Dtd, bytes: &[u8], raw: Option<Raw<'_>>, rules: Rules) -> Result<Found, Wrong> {
    let (int, order, parts, records) = match raw {
        Some(raw) => {
            let section = dtd.section_named(raw.section).ok_or("no such section")?.number;
            let int = if raw.class == 1 { 4 } else { 8 };
            (int, raw.order, vec![extent(section, bytes, 0, false)], None)
        }
        None => {
            let (order, parts, records) = recognized(dtd, bytes, rules)?;
            (8, order, parts, Some(records))
        }
    };
    let mut oracle = Oracle { rules, ..Oracle::default() };
    // Not version 0, because no `section` records separate the parts.
    let mut decoder = Decoder::new(dtd, order, int, 1, rules);
    if raw.is_none() && rules.holds(Rule::HeaderGivesValues) {
        take_header(dtd, order, bytes, &mut decoder, rules);
    }
    let end = oracle.groups(&mut decoder, parts);
    // If the records are elements, they are printed like records.
    let elements = oracle.out.iter_mut().filter(|seen| Some(seen.section) == records && seen.what == What::Element);
    elements.for_each(|seen| seen.what = What::Record);
    Ok(Found { order, seen: oracle.out, end })
}

/// Sets the values that records take from the header at the start of the file.
fn take_header(dtd: &Dtd, order: Order, bytes: &[u8], decoder: &mut Decoder<'_>, rules: Rules) {
    let headers = dtd.records.iter().flat_map(|record| &record.leaves).filter_map(|leaf| leaf.header);
    let Some((header, _)) = headers.clone().next() else { return };
    let is_it = |section: &&Section| section.stream == Some(header);
    let Some(number) = dtd.sections.iter().find(is_it).map(|section| section.number) else { return };
    let mut before = Decoder::new(dtd, order, 8, 0, rules);
    if before.record(number, header, &mut Row::new(bytes)).is_err() {
        return;
    }
    for section in &dtd.sections {
        for id in &section.records {
            let leaves = dtd.record(*id).map_or(&[][..], |record| &record.leaves);
            for (leaf, at) in leaves.iter().zip(0..=u8::MAX) {
                let Some((_, source)) = leaf.header else { continue };
                let value = before.state(number).leaf(header, source).value();
                decoder.state(section.number).leaf(*id, LeafId(at)).interpretation = Interpretation::Default(value);
            }
        }
    }
}

fn is_stream(dtd: &Dtd, section: u8) -> bool {
    dtd.section(section).is_some_and(|s| s.stream.is_some())
}

fn has_role(leaf: &Leaf, role: &str) -> bool {
    leaf.annotations.get("role").is_some_and(|text| text.trim_matches('"') == role)
}

/// Recognizes a file by the starts in the DTD.
fn recognized(dtd: &Dtd, bytes: &[u8], rules: Rules) -> Result<(Order, Vec<Part>, u8), Wrong> {
    let own = |number: u8| dtd.section(number).map(|s| &*s.records).unwrap_or_default();
    let role = |number: u8, role: &str| {
        let records = own(number).iter().filter_map(|id| dtd.record(*id));
        records.flat_map(|r| &r.leaves).any(|leaf| has_role(leaf, role))
    };
    let numbers: Vec<u8> = dtd.sections.iter().map(|s| s.number).filter(|n| *n > 0).collect();
    let is_of_arrays = |n: u8| dtd.records.iter().flat_map(|r| &r.leaves).any(|leaf| leaf.section == Some(n));
    let mut starts = Vec::new();
    for &section in &numbers {
        for &record in own(section) {
            let found = dtd.record(record).ok_or("no such record")?;
            if found.section.is_some() && found.leaves.iter().any(|leaf| has_role(leaf, "magic")) {
                starts.push(Start { section, record, is_prologue: is_stream(dtd, section) });
            }
        }
    }
    if !rules.holds(Rule::StartsInOrder) {
        starts.reverse();
    }
    let trailer = numbers.iter().copied().find(|n| is_stream(dtd, *n) && role(*n, "trailer"));
    let of_records = |n: &&u8| {
        Some(**n) != trailer && !starts.iter().any(|s| s.is_prologue && s.section == **n) && !is_of_arrays(**n)
    };
    let mut sections = numbers.iter().filter(of_records);
    let records = match (sections.next(), starts.first()) {
        (Some(records), _) => *records,
        // The file consists of the elements of its only start.
        (None, Some(start)) if rules.holds(Rule::StartsAlone) => start.section,
        _ => return Err("no section of records".into()),
    };
    starts.iter_mut().for_each(|start| start.is_prologue &= start.section != records);
    if starts.is_empty() {
        return Err("nothing says how the file is read".into());
    }
    let mut orders = [Order::Little, Order::Big];
    if !rules.holds(Rule::LittleFirst) {
        orders.reverse();
    }
    for start in &starts {
        for order in orders {
            let Some(begun) = begun(dtd, start, order, records, bytes, rules) else { continue };
            let (from, size) = begun?;
            let left = bytes.len() - from;
            let size = size.filter(|_| rules.holds(Rule::RecordsSize)).unwrap_or(left as u64);
            rules.demand(Rule::RecordsSizeInFile, size <= left as u64, "more records than the file has")?;
            let to = from + left.min(size as usize);
            let mut parts = Vec::new();
            if start.is_prologue {
                parts.push(extent(start.section, &bytes[..from], 0, false));
            }
            parts.push(extent(records, &bytes[from..to], from, false));
            if let Some(trailer) = trailer.filter(|_| rules.holds(Rule::TrailerIsStream)) {
                parts.push(extent(trailer, &bytes[to..], to, false));
            }
            return Ok((order, parts, records));
        }
    }
    Err("no start fits".into())
}

/// Returns the offset and, if specified, the length of the records. Returns `None` if the start does not match.
fn begun(
    dtd: &Dtd,
    start: &Start,
    order: Order,
    records: u8,
    bytes: &[u8],
    rules: Rules,
) -> Option<Result<(usize, Option<u64>), Wrong>> {
    let record = dtd.record(start.record)?;
    // The fields are read with and without constants, because only those of role `magic` decide whether the start
    // matches.
    let read = |rules: Rules| {
        let mut d = Decoder::new(dtd, order, 8, 0, rules);
        let mut row = Row::new(bytes);
        let mut result = Ok(());
        if !is_stream(dtd, start.section) {
            result = d.tag(start.section, &mut row).map(drop);
        }
        let result = result.and_then(|()| d.record(start.section, start.record, &mut row));
        (row, result)
    };
    let (row, _) = read(Rules(Some(Rule::ConstantsChecked)));
    let fields = record.leaves.iter().filter(|leaf| !leaf.is_tag());
    let mut values = row.values.iter();
    let mut weight = 0;
    if let Some(tag) = record.leaves.iter().find(|leaf| leaf.is_tag() && has_role(leaf, "magic")) {
        let width = usize::from(dtd.tag_width);
        if Row::new(bytes).take(width, order).ok()? != u64::from(record.tag?) {
            return None;
        }
        weight += not_zero(magic(record, tag));
    }
    for leaf in fields {
        let value = values.next();
        if !has_role(leaf, "magic") {
            continue;
        }
        let Some(Value::Number(value)) = value else { return None };
        if !magic(record, leaf).contains(value) {
            return None;
        }
        weight += not_zero(magic(record, leaf));
    }
    let (row, result) = read(rules);
    let end = if start.is_prologue { row.at } else { 0 };
    if weight < 4 && !two_whole(dtd, order, records, &bytes[end..], rules) && rules.holds(Rule::WeakMagicNeedsTwo) {
        return None;
    }
    let at = record.leaves.iter().filter(|leaf| !leaf.is_tag()).position(|leaf| has_role(leaf, "records_size"));
    let size = match at.and_then(|at| row.values.get(at)) {
        Some(Value::Number(size)) => Some(*size),
        _ => None,
    };
    if start.is_prologue
        && let Err(wrong) = result
    {
        return rules.holds(Rule::PrologueConstants).then_some(Err(wrong));
    }
    Some(Ok((end, size)))
}

/// Returns the allowed values of a field of role `magic`.
fn magic(record: &Record, leaf: &Leaf) -> Vec<u64> {
    match (&leaf.names, leaf.constant) {
        _ if leaf.is_tag() => record.tag.map(u64::from).into_iter().collect(),
        (_, Some(value)) => vec![value],
        (Names::Values(list), None) => list.iter().map(|(value, _)| *value).collect(),
        _ => Vec::new(),
    }
}

/// Returns the number of nonzero bytes, the minimum over several values.
fn not_zero(values: Vec<u64>) -> usize {
    values.iter().map(|v| v.to_le_bytes().iter().filter(|b| **b != 0).count()).min().unwrap_or(0)
}

/// Returns whether two data records are complete, or one that reaches the end. Catch-all records do not count.
fn two_whole(dtd: &Dtd, order: Order, section: u8, bytes: &[u8], rules: Rules) -> bool {
    let mut d = Decoder::new(dtd, order, 8, 0, rules);
    let mut row = Row::new(bytes);
    for n in 0..2 {
        if n == 1 && row.at == bytes.len() {
            return true;
        }
        let start = row.at;
        let element = dtd.section(section).and_then(|s| s.stream);
        let whole = match element.map_or_else(|| d.tag(section, &mut row), Ok) {
            Ok(id) if id.0 < 3 => Err("a record without data".into()),
            Ok(id) if dtd.record(id).is_some_and(|r| r.catch_all) => Err("a catch-all record".into()),
            Ok(id) => d.data_record(section, id, start, &mut row),
            Err(wrong) => Err(wrong),
        };
        if whole.is_err() {
            return false;
        }
    }
    true
}
