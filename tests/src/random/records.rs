//! Random content for a trace of a given format.

use super::Choices;
use super::world::World;
use crate::Value;
use metatf::reader::Metadata;
use metatf_parser::schema::{COMMENT, Dtd, ExprOp, Item, LeafId, Record, RecordId, Repeated, SECTION, Width};
use std::collections::HashSet;

/// Request to a writer.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write a data record or comment: section index, record index, and values without the tag.
    Record(usize, u16, Vec<Value>),
    /// Append an element to a stream section; the flag marks a shared table.
    Element(usize, bool, Vec<Value>),
    /// Write a metadata record.
    Metadata(usize, Metadata),
    /// Start a group.
    Group,
    /// Reset a section's state.
    Reset(usize),
}

/// Limits of the drawn actions.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of actions.
    pub actions: usize,
    /// Whether to draw metadata, groups and resets.
    pub changes: bool,
}

/// Draws random actions on traces of a format, until the bytes or the limits are used up.
///
/// Stream sections that a stride may refer to get no explicit elements. Each other stream section is either a shared
/// table or not, for the complete trace.
#[must_use]
pub fn actions(c: &mut Choices<'_>, dtd: &Dtd, limits: Limits) -> Vec<Action> {
    let strided = c.chance(50);
    let uses: Vec<Use> = (0..dtd.sections.len()).map(|s| use_of(c, dtd, s, strided)).collect();
    let mut actions = Vec::new();
    let mut hot = vec![None; dtd.sections.len()];
    let mut world = World::new(dtd);
    while !c.is_spent() && actions.len() < limits.actions {
        let section = c.below(dtd.sections.len());
        let action = match (uses[section], c.below(16)) {
            (_, 15) if limits.changes && c.chance(20) => Some(Action::Group),
            (Use::Strided, _) => None,
            (_, 14) if limits.changes && c.chance(30) && uses[section] != Use::Shared => Some(Action::Reset(section)),
            (Use::Records, 12..14) if limits.changes => metadata(c, dtd, section, &uses, &mut hot[section]),
            (Use::Records, _) => record(c, dtd, &mut world, section, hot[section]),
            (Use::Given, _) => element(c, dtd, &mut world, section, false),
            (Use::Shared, _) => element(c, dtd, &mut world, section, true),
        };
        actions.extend(action);
    }
    actions
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Use {
    /// A section of tagged records.
    Records,
    /// Stream section filled by strides and by model misses.
    Strided,
    /// Stream section with explicit elements.
    Given,
    /// Shared table.
    Shared,
}

fn use_of(c: &mut Choices<'_>, dtd: &Dtd, section: usize, strided: bool) -> Use {
    use metatf_parser::schema::Interpretation::SectionStride;
    let number = dtd.sections[section].number;
    let Some(element) = dtd.sections[section].stream else { return Use::Records };
    let strides = |i| matches!(i, SectionStride { section, .. } if section == number);
    let leaves = dtd.records.iter().flat_map(|r| &r.leaves);
    let single = dtd.record(element).is_some_and(|r| matches!(&*r.items, [Item::Leaf(_)]) && r.leaves[0].is_numeric());
    let misses = dtd.models.iter().any(|m| m.section == number);
    if leaves.into_iter().any(|l| strides(l.interpretation)) || misses || (single && strided) {
        return Use::Strided;
    }
    if c.chance(50) { Use::Shared } else { Use::Given }
}

/// Leaf that metadata changed. Further changes of the same leaf reveal whether its state is tracked correctly.
type Hot = Option<(RecordId, usize)>;

fn record(c: &mut Choices<'_>, dtd: &Dtd, world: &mut World, section: usize, hot: Hot) -> Option<Action> {
    let records: Vec<_> = dtd.sections[section].records.iter().filter(|r| r.0 == 0 || r.0 > 2).collect();
    let id = **c.pick(&records);
    // Comments are the last choice, not the first.
    let id = if id == COMMENT && c.chance(50) { **records.last()? } else { id };
    let id = hot.filter(|_| c.chance(40)).map_or(id, |(id, _)| id);
    let values = values(c, dtd, world, dtd.record(id)?)?;
    Some(Action::Record(section, u16::try_from(id.0).ok()?, values))
}

fn element(c: &mut Choices<'_>, dtd: &Dtd, world: &mut World, section: usize, shared: bool) -> Option<Action> {
    let record = dtd.record(dtd.sections[section].stream?)?;
    Some(Action::Element(section, shared, values(c, dtd, world, record)?))
}

/// Returns random values of a record in leaf order, or `None` if its expressions cannot be evaluated.
fn values(c: &mut Choices<'_>, dtd: &Dtd, world: &mut World, record: &Record) -> Option<Vec<Value>> {
    // A record up to the end of its content cannot precede another one in version 0, nor be in a shared table.
    if record.ends_by_content().is_some() {
        return None;
    }
    let mut small = HashSet::new();
    counts(&record.items, &mut small);
    for leaf in &record.leaves {
        let width = if let Width::Variable(expr) = &leaf.width { Some(expr) } else { None };
        for expr in width.into_iter().chain(&leaf.computed) {
            small.extend(expr.0.iter().filter_map(|op| if let ExprOp::Leaf(l) = op { Some(*l) } else { None }));
        }
    }
    let mut maker = Values { c, dtd, world, record, small, last: [0; 256], out: Vec::new() };
    maker.items(&record.items)?;
    Some(maker.out)
}

fn counts(items: &[Item], small: &mut HashSet<LeafId>) {
    for item in items {
        match item {
            Item::Leaf(_) => {}
            Item::Nested { items, .. } => counts(items, small),
            Item::Repeat { count, body, .. } => {
                small.insert(*count);
                if let Repeated::Group(items) | Repeated::Record { items, .. } = body {
                    counts(items, small);
                }
            }
        }
    }
}

struct Values<'v, 'c> {
    c: &'v mut Choices<'c>,
    dtd: &'v Dtd,
    world: &'v mut World,
    record: &'v Record,
    /// Leaves used as counts or lengths.
    small: HashSet<LeafId>,
    last: [u64; 256],
    out: Vec<Value>,
}

impl Values<'_, '_> {
    fn items(&mut self, items: &[Item]) -> Option<()> {
        for item in items {
            match item {
                Item::Leaf(id) => self.leaf(*id)?,
                Item::Nested { items, .. } => self.items(items)?,
                Item::Repeat { count, body, .. } => {
                    for _ in 0..self.last[usize::from(count.0)] {
                        match body {
                            Repeated::Leaf(id) => self.leaf(*id)?,
                            Repeated::Group(items) | Repeated::Record { items, .. } => self.items(items)?,
                        }
                        if self.out.len() > 400 {
                            return None;
                        }
                    }
                }
            }
        }
        Some(())
    }

    fn leaf(&mut self, id: LeafId) -> Option<()> {
        let leaf = self.record.leaves.get(usize::from(id.0))?;
        if leaf.is_tag() {
            return Some(());
        }
        let length = match &leaf.width {
            Width::Unset | Width::Number(_) => {
                let value = match leaf.constant {
                    Some(constant) => constant,
                    None if leaf.computed.is_some() => self.evaluate(&leaf.computed.as_ref()?.0)?,
                    None if self.record.catch_all && id == LeafId(0) => other_tag(self.c, self.dtd).into(),
                    None if leaf.name == "length" && self.small.contains(&id) => match self.c.below(20) {
                        19 => 250 + self.c.below(20) as u64,
                        _ => self.c.below(12) as u64,
                    },
                    None if self.small.contains(&id) => self.c.below(5) as u64,
                    None => self.world.value(self.c, self.dtd, leaf),
                };
                self.last[usize::from(id.0)] = value;
                self.out.push(Value::Number(value));
                return Some(());
            }
            Width::Array(n) => u64::from(*n),
            Width::Variable(expr) => self.evaluate(&expr.0)?,
            Width::Until(_) | Width::Rest => self.c.below(20) as u64,
        };
        let length = usize::try_from(length).ok().filter(|&n| n < 5000)?;
        let mut bytes = self.c.bytes(length);
        if self.c.chance(50) {
            bytes.iter_mut().for_each(|b| *b = b' ' + *b % 95);
            // C strings end with a zero byte.
            if self.c.chance(30)
                && let Some(last) = bytes.last_mut()
            {
                *last = 0;
            }
        }
        if let Width::Until(end) = leaf.width {
            bytes.retain(|b| *b != end);
        }
        self.out.push(Value::Bytes(bytes));
        Some(())
    }

    fn evaluate(&self, ops: &[ExprOp]) -> Option<u64> {
        let mut stack = Vec::new();
        for op in ops {
            let value = match *op {
                ExprOp::Push(n) => n,
                ExprOp::Leaf(l) => self.last[usize::from(l.0)],
                ExprOp::Bit(bit) => stack.pop()? >> bit & 1,
                op => {
                    let (b, a): (u64, u64) = (stack.pop()?, stack.pop()?);
                    match op {
                        ExprOp::Add => a.checked_add(b)?,
                        ExprOp::Sub => a.checked_sub(b)?,
                        ExprOp::Div => a.checked_div(b)?,
                        ExprOp::Rem => a.checked_rem(b)?,
                        ExprOp::Compare(comparison) => u64::from(comparison.holds(a, b)),
                        _ => a.checked_mul(b)?,
                    }
                }
            };
            stack.push(value);
        }
        stack.pop()
    }
}

/// Returns a tag that no record of the DTD has, except for catch-all records.
fn other_tag(c: &mut Choices<'_>, dtd: &Dtd) -> u32 {
    let most = u32::MAX >> (32 - 8 * u32::from(dtd.tag_width));
    let start = (*c.pick(&[0, 4, 100, 255, 256, 70_000, most - 9])).wrapping_add(c.below(20) as u32);
    let taken = |tag: u32| dtd.records.iter().any(|record| !record.catch_all && record.tag == Some(tag));
    (0..=255).map(|step| start.wrapping_add(step) & most).find(|tag| !taken(*tag)).unwrap_or(0)
}

/// Returns a metadata record that is likely allowed; the writer makes the final decision.
fn metadata(c: &mut Choices<'_>, dtd: &Dtd, section: usize, uses: &[Use], hot: &mut Hot) -> Option<Action> {
    let records: Vec<_> = dtd.sections[section].records.iter().filter(|&&r| r.0 == 0 || r.0 > SECTION.0 + 1).collect();
    let kept = hot.filter(|_| c.chance(60));
    let id = kept.map_or_else(|| **c.pick(&records), |(id, _)| id);
    let record = dtd.record(id)?;
    let settable: Vec<usize> = (0..record.leaves.len())
        .filter(|&i| {
            let leaf = &record.leaves[i];
            let is_tag = i == 0 && record.tag.is_some();
            leaf.is_numeric() && leaf.constant.is_none() && leaf.computed.is_none() && !is_tag
        })
        .collect();
    if settable.is_empty() {
        return None;
    }
    let field = kept.map_or_else(|| *c.pick(&settable), |(_, field)| field);
    *hot = Some((id, field));
    let code = c.below(8) as u8;
    let streams = |wanted: &dyn Fn(Use) -> bool| -> Vec<u64> {
        let known = dtd.sections.iter().zip(uses).filter(|(_, u)| wanted(**u));
        known.map(|(s, _)| u64::from(s.number)).collect()
    };
    let (values, count) = match code {
        0 => ([c.below(9) as u64, 0], 1),
        1 => ([0, 0], 0),
        2..5 => ([c.number(), 0], 1),
        5 => {
            let streams = streams(&|u| u != Use::Records);
            ([*(!streams.is_empty()).then(|| c.pick(&streams))?, 0], 1)
        }
        6 => ([c.number(), c.number()], 2),
        _ => {
            let streams = streams(&|u| u == Use::Strided);
            ([*(!streams.is_empty()).then(|| c.pick(&streams))?, 1 + c.below(3) as u64], 2)
        }
    };
    let all = if c.chance(25) { 8 } else { 0 };
    // The minimum number of bytes, sometimes more, and sometimes the default of the class.
    let least = (1..8).find(|&n| {
        let unsigned = |v: u64| v >> (8 * n) == 0;
        let signed = |v: u64| ((v << (64 - 8 * n)) as i64 >> (64 - 8 * n)) as u64 == v;
        unsigned(values[0]) && signed(values[1])
    });
    let least = least.unwrap_or(8) as u8;
    let width = match c.below(6) {
        5 => 8,
        4 => 0,
        3 => (least + 1).min(8),
        _ => least,
    };
    let metadata = Metadata {
        record: if record.catch_all { other_tag(c, dtd) } else { record.tag? },
        field: u8::try_from(field).ok()?,
        property: width << 4 | all | code,
        values,
        count,
    };
    Some(Action::Metadata(section, metadata))
}
