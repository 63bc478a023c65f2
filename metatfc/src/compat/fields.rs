//! Compares the fields of a record.

use super::change::{Change, Kind, Place};
use metatf_parser::schema::{Bits, Dtd, Format, Interpretation, Item, Leaf, LeafId, Names, Record, Repeated};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A record and the DTD that defines it.
#[derive(Clone, Copy)]
pub(super) struct Of<'d> {
    pub(super) dtd: &'d Dtd,
    pub(super) record: &'d Record,
}

/// The indices of a field in the old and the new record.
pub(super) type LeafPair = (usize, usize);

/// Compares the fields of a record, and returns the pairs of corresponding fields.
pub(super) fn compare(old: Of<'_>, new: Of<'_>, place: &Place, changes: &mut Vec<Change>) -> Vec<LeafPair> {
    let pairs = pair(old.record, new.record);
    let known: HashSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    for (_, leaf) in old.record.leaves.iter().enumerate().filter(|(index, _)| !known.contains(index)) {
        changes.push(Change::new(Kind::FieldRemoved, place.field(path(leaf)), "field removed"));
    }
    let known: HashSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    for (_, leaf) in new.record.leaves.iter().enumerate().filter(|(index, _)| !known.contains(index)) {
        changes.push(Change::new(Kind::FieldAdded, place.field(path(leaf)), "field added"));
    }
    if pairs.iter().zip(pairs.iter().skip(1)).any(|(one, next)| one.0 > next.0) {
        changes.push(Change::new(Kind::FieldOrder, place.clone(), "fields reordered"));
    }
    let both = Both { old, new, twins: pairs.iter().copied().collect() };
    let counts = (counts(old.record), counts(new.record));
    for &(i, j) in &pairs {
        let (Some(before), Some(after)) = (old.record.leaves.get(i), new.record.leaves.get(j)) else { continue };
        if !(before.is_tag() || after.is_tag()) {
            both.leaf(before, after, &place.field(path(after)), changes);
            both.repetition((i, j), &counts, &place.field(path(after)), changes);
        }
    }
    pairs
}

fn path(leaf: &Leaf) -> String {
    leaf.path.join(".")
}

/// Pairs fields by path, or else by the first unused earlier path, as a new reader of an old trace does (spec 5.3).
fn pair(old: &Record, new: &Record) -> Vec<LeafPair> {
    let places: HashMap<String, usize> = old.leaves.iter().enumerate().map(|(i, leaf)| (path(leaf), i)).collect();
    let taken: HashSet<String> = new.leaves.iter().map(path).collect();
    let earlier: HashMap<LeafId, Vec<String>> = new.earlier_paths().into_iter().collect();
    let by_earlier = |id: LeafId| {
        let paths = earlier.get(&id)?.iter().filter(|path| !taken.contains(*path));
        paths.into_iter().find_map(|path| places.get(path).copied())
    };
    let leaves = (0..=u8::MAX).map(LeafId).zip(&new.leaves);
    let twin = |(id, leaf): (LeafId, &Leaf)| {
        Some((places.get(&path(leaf)).copied().or_else(|| by_earlier(id))?, usize::from(id.0)))
    };
    leaves.filter_map(twin).collect()
}

struct Both<'d> {
    old: Of<'d>,
    new: Of<'d>,
    /// The new index of each old field, if it still exists.
    twins: HashMap<usize, usize>,
}

impl Both<'_> {
    fn leaf(&self, old: &Leaf, new: &Leaf, place: &Place, changes: &mut Vec<Change>) {
        let mut changed = |kind, what: &str, old: Option<String>, new: Option<String>, misread| {
            if old != new {
                changes.push(Change::of(kind, place.clone(), what, old, new).misread_if(misread));
            }
        };
        let (types, units) = ((type_name(old), type_name(new)), (unit(old), unit(new)));
        // A reader rejects a number in place of bytes. For bytes, it makes no difference whether they are text.
        let numbers = old.is_numeric() && new.is_numeric();
        changed(Kind::FieldType, "type", Some(types.0.to_owned()), Some(types.1.to_owned()), numbers);
        if old.is_numeric() == new.is_numeric() {
            let widths = (self.old.record.width_text(&old.width), self.new.record.width_text(&new.width));
            changed(Kind::FieldWidth, "width", Some(widths.0), Some(widths.1), false);
            let text = |of: Of<'_>, leaf: &Leaf| Some(of.dtd.interpretation_text(of.record, leaf));
            // A table offset has a different meaning from a number.
            let is_offset = |leaf: &Leaf| matches!(leaf.interpretation, Interpretation::SectionOffset(_));
            let misread = is_offset(old) != is_offset(new);
            changed(Kind::FieldInterpretation, "interpretation", text(self.old, old), text(self.new, new), misread);
        }
        let records = |leaf: &Leaf| leaf.section.map(|section| section.to_string());
        changed(Kind::FieldType, "section of contained records", records(old), records(new), true);
        let constants = (old.constant.map(|n| n.to_string()), new.constant.map(|n| n.to_string()));
        changed(Kind::FieldConstant, "constant", constants.0, constants.1, false);
        // Adding a unit only documents a field, and changes nothing.
        if let (Some(before), Some(after)) = units {
            changed(Kind::FieldUnit, "unit", Some(before.to_owned()), Some(after.to_owned()), true);
        }
        if path(old) != path(new) {
            changes.push(Change::renamed(Kind::FieldRenamed, place.clone(), &path(old), &path(new)));
        }
        names(&old.names, &new.names, place, changes);
    }

    fn repetition(&self, pair: LeafPair, counts: &(Counts, Counts), place: &Place, changes: &mut Vec<Change>) {
        let (Some(old), Some(new)) = (counts.0.get(pair.0), counts.1.get(pair.1)) else { return };
        // A count may have been renamed.
        let twins: Option<Vec<usize>> = old.iter().map(|count| self.twins.get(count).copied()).collect();
        if twins.as_ref() != Some(new) {
            let shown = |record: &Record, counts: &[usize]| {
                let paths: Vec<String> = counts.iter().filter_map(|c| record.leaves.get(*c)).map(path).collect();
                Some(paths.join("*")).filter(|text| !text.is_empty())
            };
            let (old, new) = (shown(self.old.record, old), shown(self.new.record, new));
            changes.push(Change::of(Kind::FieldRepetition, place.clone(), "repeated by", old, new));
        }
    }
}

fn type_name(leaf: &Leaf) -> &'static str {
    match (leaf.is_numeric(), leaf.format) {
        (true, Format::F32 | Format::F64) => "float",
        (true, Format::Signed) => "signed integer",
        (true, _) => "integer",
        (false, Format::Utf8 | Format::CString) => "string",
        (false, _) => "bytes",
    }
}

fn unit(leaf: &Leaf) -> Option<&str> {
    match leaf.format {
        Format::TimeNs | Format::DateNs | Format::DurationNs => Some("ns"),
        Format::TimeUs | Format::DateUs => Some("us"),
        Format::DateMs => Some("ms"),
        Format::TimeS | Format::DateS => Some("s"),
        _ => leaf.unit.as_deref(),
    }
}

/// Compares the value names or bit names of a field.
fn names(old: &Names, new: &Names, place: &Place, changes: &mut Vec<Change>) {
    let of = |names: &Names| match names {
        Names::Flags(_) => "bit",
        Names::None | Names::Values(_) => "value",
    };
    let has = |names: &Names| !matches!(names, Names::None);
    let text = |names: &Names| Some(format!("for {}s", of(names)));
    if has(old) && has(new) && of(old) != of(new) {
        changes.push(Change::of(Kind::NameChanged, place.clone(), "names", text(old), text(new)).misread_if(true));
        return;
    }
    let what = of(if has(new) { new } else { old });
    let shown = |number: u64| if what == "bit" { Bits::of(number).to_string() } else { number.to_string() };
    let map = |names: &Names| names.list().iter().cloned().collect::<BTreeMap<u64, String>>();
    let (old, new) = (map(old), map(new));
    for number in old.keys().chain(new.keys().filter(|number| !old.contains_key(number))) {
        let (before, after) = (old.get(number).cloned(), new.get(number).cloned());
        let kind = match (&before, &after) {
            (None, _) => Kind::NameAdded,
            (_, None) => Kind::NameRemoved,
            _ if before == after => continue,
            _ => Kind::NameChanged,
        };
        let change = Change::of(kind, place.clone(), &format!("name of {what} {}", shown(*number)), before, after);
        changes.push(change.misread_if(kind == Kind::NameChanged));
    }
}

/// The indices of the counts that repeat each field, outermost first.
type Counts = Vec<Vec<usize>>;

fn counts(record: &Record) -> Counts {
    let mut counts = vec![Vec::new(); record.leaves.len()];
    repeat(&record.items, &mut Vec::new(), &mut counts);
    counts
}

/// Collects the counts of the fields. Items nest at most 32 levels deep (spec 3.5), which bounds the recursion.
fn repeat(items: &[Item], open: &mut Vec<usize>, counts: &mut Counts) {
    let set = |id: LeafId, open: &[usize], counts: &mut Counts| {
        if let Some(slot) = counts.get_mut(usize::from(id.0)) {
            open.clone_into(slot);
        }
    };
    for item in items {
        match item {
            Item::Leaf(id) => set(*id, open, counts),
            Item::Nested { items, .. } => repeat(items, open, counts),
            Item::Repeat { count, body, .. } => {
                open.push(usize::from(count.0));
                match body {
                    Repeated::Leaf(id) => set(*id, open, counts),
                    Repeated::Group(items) | Repeated::Record { items, .. } => repeat(items, open, counts),
                }
                open.pop();
            }
        }
    }
}
