//! A reference decoder: what spec sections 3.3, 3.4, 4 and 5 say, written down as plainly as it goes.
//!
//! It is slow and holds everything in memory. It shares no code with the runtime except for the container, which gives it
//! the parts of a file; and it knows a format only as the parser's schema. Over 400 lines, as the table of spec 4 and
//! what stands around it are one thing; models have files of their own.

pub(crate) mod heap;
mod rules;
mod values;

use crate::{Seen, Value, What};
use heap::Heap;
use metatf::container::{Order, Part, Reader};
use metatf_parser::schema::{
    Comparison, Dtd, ExprOp, HeapRole, Interpretation as I, Item, LeafId, METADATA, Model, ModelKind, PredictorKind,
    Record, RecordId, Repeated, SECTION, Width,
};
pub use rules::Rule;
use std::collections::HashMap;
use values::{Kinds, Values, most_lines};

/// Something is wrong with the trace: what, in words.
pub type Wrong = String;

/// Everything in a trace, as `--all` would show it, up to the first error.
pub fn read(dtd: &Dtd, bytes: &[u8]) -> (Vec<Seen>, Result<(), Wrong>) {
    read_broken(dtd, bytes, None)
}

/// Does what [`read`] does, with one rule of the models broken.
pub fn read_broken(dtd: &Dtd, bytes: &[u8], broken: Option<Rule>) -> (Vec<Seen>, Result<(), Wrong>) {
    let mut oracle = Oracle { broken, ..Oracle::default() };
    let result = oracle.read(dtd, bytes);
    (oracle.out, result)
}

#[derive(Default)]
struct Oracle {
    out: Vec<Seen>,
    broken: Option<Rule>,
}

impl Oracle {
    fn read(&mut self, dtd: &Dtd, bytes: &[u8]) -> Result<(), Wrong> {
        let mut reader = Reader::from_slice(bytes).map_err(|e| e.to_string())?;
        reader.set_tag_width(dtd.tag_width);
        reader.set_section_tag(dtd.record(SECTION).and_then(|r| r.tag).unwrap_or(2));
        let header = reader.header().clone();
        let mut parts: Vec<(Part, Vec<u8>)> = Vec::new();
        while let Some(part) = reader.next_part().map_err(|e| e.to_string())? {
            let content = reader.bytes(&part.content).to_vec();
            parts.push((part, content));
        }
        let mut decoder = Decoder {
            dtd,
            broken: self.broken,
            order: header.order,
            int: header.class.int_size(),
            version: header.version,
            sections: dtd.sections.iter().map(|s| (s.number, State::default())).collect(),
            streams: HashMap::new(),
            cursors: HashMap::new(),
            model_cursors: HashMap::new(),
            last_section: 0,
        };
        for section in &dtd.sections {
            decoder.reset(section.number);
        }
        // Groups: shared tables stand before the group that needs them, and are shown before it.
        let mut groups: Vec<Vec<(Part, Vec<u8>)>> = Vec::new();
        let mut shared = Vec::new();
        for (part, content) in parts {
            if part.group_start || groups.is_empty() && !part.shared {
                groups.push(std::mem::take(&mut shared));
            }
            if part.shared {
                shared.push((part, content));
            } else {
                groups.last_mut().unwrap().push((part, content));
            }
        }
        if !shared.is_empty() {
            groups.push(shared);
        }
        for group in groups {
            self.group(&mut decoder, &group)?;
        }
        Ok(())
    }

    fn group(&mut self, d: &mut Decoder<'_>, parts: &[(Part, Vec<u8>)]) -> Result<(), Wrong> {
        d.streams.clear();
        d.cursors.clear();
        d.model_cursors.clear();
        for (part, content) in parts.iter().filter(|(p, _)| p.shared) {
            d.reset(part.section);
            self.elements(d, part, content, true)?;
        }
        let local: Vec<_> = parts.iter().filter(|(p, _)| !p.shared).collect();
        if let Some((first, _)) = local.first()
            && first.group > 0
        {
            self.note(What::Group(first.group), 0, "", 0, Vec::new());
        }
        // The elements come first, as what strides needs them; they are shown last.
        let mut elements = Oracle::default();
        let mut numbers: Vec<u8> = d.dtd.sections.iter().filter(|s| s.stream.is_some()).map(|s| s.number).collect();
        numbers.sort_unstable();
        for number in numbers {
            let mut first = true;
            for (part, content) in local.iter().filter(|(p, _)| p.section == number) {
                if part.reset || first {
                    d.reset(number);
                    if !first {
                        elements.note(What::Reset, number, "", 0, Vec::new());
                    }
                }
                first = false;
                elements.elements(d, part, content, false)?;
            }
        }
        let mut seen = Vec::new();
        for (part, content) in local {
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
            }
            seen.push(part.section);
            self.tagged(d, part, content)?;
        }
        self.out.append(&mut elements.out);
        Ok(())
    }

    fn note(&mut self, what: What, section: u8, record: &str, offset: u64, values: Vec<Value>) {
        self.out.push(Seen { what, section, record: record.to_owned(), offset, values });
    }

    /// A part of a stream section: elements back to back.
    fn elements(&mut self, d: &mut Decoder<'_>, part: &Part, content: &[u8], shared: bool) -> Result<(), Wrong> {
        let section = d.dtd.section(part.section).ok_or("an unknown section")?;
        let id = section.stream.ok_or("not a stream section")?;
        let record = d.dtd.record(id).ok_or("no such record")?;
        let single = matches!(&*record.items, [Item::Leaf(_)]) && record.leaves[0].is_numeric();
        if single && part.width > 0 {
            d.state(part.section).leaf(id, LeafId(0)).width = part.width;
        }
        let mut row = Row { content, at: 0, values: Vec::new(), items: 0 };
        let mut found = 0;
        while row.at < content.len() {
            let start = row.at;
            d.record(part.section, id, &mut row)?;
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
        d.count(part, found)
    }

    /// A part of tagged records.
    fn tagged(&mut self, d: &mut Decoder<'_>, part: &Part, content: &[u8]) -> Result<(), Wrong> {
        let mut section = part.section;
        let mut row = Row { content, at: 0, values: Vec::new(), items: 0 };
        let mut found = 0;
        while row.at < content.len() {
            let start = row.at;
            let offset = part.base + start as u64;
            let tag = row.take(d.dtd.tag_width.into(), d.order)?;
            let known = &d.dtd.section(section).ok_or("an unknown section")?.records;
            let tagged = |id: &&RecordId| d.dtd.record(**id).is_some_and(|r| r.tag.map(u64::from) == Some(tag));
            let other = || known.iter().find(|id| d.dtd.record(**id).is_some_and(|r| r.catch_all));
            let id = *known.iter().find(tagged).or_else(other).ok_or("an unknown tag")?;
            match id {
                METADATA => {
                    let values = d.metadata(section, &mut row)?;
                    self.note(What::Metadata, section, "metadata", offset, values);
                }
                SECTION => {
                    let number = row.take(1, d.order)? as u8;
                    if !part.follow || number == 0 {
                        return Err("a section record that does not belong here".into());
                    }
                    if d.dtd.section(number).is_none_or(|s| s.stream.is_some()) {
                        return Err("a section record of an unknown section, or of a stream".into());
                    }
                    self.note(What::Section(number), section, "section", offset, Vec::new());
                    section = number;
                }
                _ => {
                    row.items = 0;
                    if d.dtd.record(id).is_some_and(|r| r.catch_all) {
                        // Its tag is a field like others.
                        row.at = start;
                    }
                    d.record(section, id, &mut row)?;
                    if row.items > (row.at - start) as u64 + 65_536 {
                        return Err("too many items".into());
                    }
                    found += u32::from(id.0 != 0);
                    let name = d.dtd.record(id).map_or("", |r| &r.name);
                    let values = std::mem::take(&mut row.values);
                    self.note(What::Record, section, name, offset, values);
                }
            }
        }
        d.count(part, found)
    }
}

/// A record being read.
struct Row<'c> {
    content: &'c [u8],
    at: usize,
    values: Vec<Value>,
    items: u64,
}

impl<'c> Row<'c> {
    fn bytes(&mut self, n: u64) -> Result<&'c [u8], Wrong> {
        let n = usize::try_from(n).map_err(|_| "a length over the address space")?;
        let end = self.at.checked_add(n).ok_or("a length over the address space")?;
        let bytes = self.content.get(self.at..end).ok_or("the content ends")?;
        self.at = end;
        Ok(bytes)
    }

    /// An unsigned integer of `n` bytes.
    fn take(&mut self, n: usize, order: Order) -> Result<u64, Wrong> {
        let bytes = self.bytes(n as u64)?.iter();
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Ok(match order {
            Order::Big => bytes.fold(0, add),
            Order::Little => bytes.rev().fold(0, add),
        })
    }
}

/// Reads an integer of `width` bytes as two's complement.
fn sign_extend(raw: u64, width: usize) -> u64 {
    if width == 0 || width >= 8 || raw >> (8 * width - 1) == 0 { raw } else { raw | u64::MAX << (8 * width) }
}

#[derive(Clone, Debug)]
struct LeafState {
    width: u8,
    /// The last width that was not 0.
    remembered: u8,
    interpretation: I,
    last: u64,
}

/// What leaves that share a model of values have in common: their cell, and the predictors, whether they go by a leaf.
type Shared = (u32, Vec<(PredictorKind, bool)>);

/// Of one section.
#[derive(Default)]
struct State {
    leaves: HashMap<(RecordId, LeafId), LeafState>,
    /// Previous values, by the cell the leaf shares.
    previous: HashMap<u32, u64>,
    /// Models of values, by that cell and their predictors.
    values: Vec<(Shared, Values)>,
    /// Numbers that their tables may still have.
    most_lines: usize,
    heap: Option<Heap>,
}

impl State {
    fn leaf(&mut self, record: RecordId, leaf: LeafId) -> &mut LeafState {
        self.leaves.get_mut(&(record, leaf)).expect("every numeric leaf has a state")
    }
}

struct Decoder<'d> {
    dtd: &'d Dtd,
    broken: Option<Rule>,
    order: Order,
    int: usize,
    version: u8,
    sections: HashMap<u8, State>,
    /// Elements of the group's streams of one number.
    streams: HashMap<u8, Vec<u64>>,
    cursors: HashMap<(u8, u8), u64>,
    /// The cursors of predicted leaves.
    model_cursors: HashMap<(u8, u8), usize>,
    last_section: u8,
}

impl Decoder<'_> {
    fn state(&mut self, section: u8) -> &mut State {
        self.sections.entry(section).or_default()
    }

    /// As the DTD says.
    fn reset(&mut self, number: u8) {
        let Some(section) = self.dtd.section(number) else { return };
        let mut state = State::default();
        let mut models = Vec::new();
        for (&id, cells) in section.records.iter().zip(&section.cells) {
            for (i, leaf) in self.dtd.record(id).map_or(&[][..], |r| &r.leaves).iter().enumerate() {
                let width = if let Width::Number(n) = leaf.width { n } else { 0 };
                let interpretation = leaf.interpretation;
                let leaf = LeafState { width, remembered: width, interpretation, last: 0 };
                state.leaves.insert((id, LeafId(i as u8)), leaf);
                if let I::Delta(initial) | I::Stride { initial, .. } = interpretation
                    && let Some(&cell) = cells.get(i)
                {
                    state.previous.insert(cell, initial);
                }
                if let I::Predicted(model) = interpretation
                    && let (Some(&cell), Some(kinds)) = (cells.get(i), self.kinds(usize::from(model.0)))
                    && !models.contains(&(cell, kinds.clone()))
                {
                    models.push((cell, kinds));
                }
            }
        }
        state.most_lines = most_lines(models.iter().map(|(_, kinds)| kinds), self.broken);
        self.sections.insert(number, state);
    }

    /// The predictors of a model of values.
    fn kinds(&self, model: usize) -> Option<Kinds> {
        let ModelKind::Values(predictors) = &self.dtd.models.get(model)?.kind else { return None };
        Some(predictors.iter().map(|p| (p.kind, p.by.is_some())).collect())
    }

    fn cell(&self, section: u8, record: RecordId, leaf: LeafId) -> u32 {
        let section = self.dtd.section(section).expect("a known section");
        let position = section.records.iter().position(|&r| r == record).expect("a record of the section");
        section.cells[position][usize::from(leaf.0)]
    }

    fn count(&self, part: &Part, found: u32) -> Result<(), Wrong> {
        match part.records {
            Some(declared) if declared != found => Err("another number of records than declared".into()),
            _ => Ok(()),
        }
    }

    /// All leaves of a record, its tag apart.
    fn record(&mut self, section: u8, id: RecordId, row: &mut Row<'_>) -> Result<(), Wrong> {
        let dtd = self.dtd;
        let record = dtd.record(id).ok_or("no such record")?;
        self.items(section, id, record, &record.items, row)
    }

    fn items(
        &mut self,
        section: u8,
        id: RecordId,
        record: &Record,
        items: &[Item],
        row: &mut Row<'_>,
    ) -> Result<(), Wrong> {
        for item in items {
            match item {
                Item::Leaf(leaf) => self.leaf(section, id, record, *leaf, row)?,
                Item::Nested { items, .. } => self.items(section, id, record, items, row)?,
                Item::Repeat { count, body, .. } => {
                    let count = self.state(section).leaf(id, *count).last;
                    if let (0, Repeated::Leaf(leaf), Some(Rule::AbsentKeepsPrevious)) = (count, body, self.broken) {
                        let cell = self.cell(section, id, *leaf);
                        self.state(section).previous.insert(cell, 0);
                    }
                    row.items = row.items.saturating_add(count);
                    if row.items > row.content.len() as u64 + 65_536 {
                        return Err("too many items".into());
                    }
                    for _ in 0..count {
                        match body {
                            Repeated::Leaf(leaf) => self.leaf(section, id, record, *leaf, row)?,
                            Repeated::Group(items) | Repeated::Record { items, .. } => {
                                self.items(section, id, record, items, row)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn leaf(
        &mut self,
        section: u8,
        id: RecordId,
        record: &Record,
        leaf: LeafId,
        row: &mut Row<'_>,
    ) -> Result<(), Wrong> {
        let declared = &record.leaves[usize::from(leaf.0)];
        if declared.is_tag() {
            return Ok(());
        }
        let length = match &declared.width {
            Width::Array(n) => Some(u64::from(*n)),
            Width::Variable(expr) => Some(self.evaluate(section, id, &expr.0)?),
            Width::Until(end) => {
                let rest = &row.content[row.at..];
                let length = rest.iter().position(|b| b == end).filter(|n| *n <= 65_535).ok_or("no byte at the end")?;
                let kept = length + usize::from(self.broken == Some(Rule::EndIsOutside));
                row.values.push(Value::Bytes(rest[..kept].to_vec()));
                row.at += length + 1;
                return Ok(());
            }
            Width::Unset | Width::Number(_) => None,
        };
        if let Some(length) = length {
            let bytes = row.bytes(length)?.to_vec();
            row.values.push(Value::Bytes(bytes));
            return Ok(());
        }
        let value = match &declared.computed {
            Some(expr) => self.evaluate(section, id, &expr.0)?,
            None => self.number(section, id, leaf, row)?,
        };
        if declared.constant.is_some_and(|constant| constant != value) {
            return Err("a constant with another value".into());
        }
        row.values.push(Value::Number(value));
        let cell = self.cell(section, id, leaf);
        let state = self.state(section);
        state.previous.insert(cell, value);
        state.leaf(id, leaf).last = value;
        Ok(())
    }

    /// The table of spec 4.
    fn number(&mut self, section: u8, id: RecordId, leaf: LeafId, row: &mut Row<'_>) -> Result<u64, Wrong> {
        let (dtd, order) = (self.dtd, self.order);
        let cell = self.cell(section, id, leaf);
        let LeafState { width, interpretation, .. } = *self.state(section).leaf(id, leaf);
        let width = usize::from(width);
        let previous = self.state(section).previous.get(&cell).copied().unwrap_or(0);
        Ok(match interpretation {
            I::None | I::SectionOffset(_) => row.take(width, order)?,
            I::BaseOffset(base) => base.wrapping_add(sign_extend(row.take(width, order)?, width)),
            I::BaseOffsetOf(other, x) => {
                let base = self.state(section).leaf(other, x).last;
                base.wrapping_add(sign_extend(row.take(width, order)?, width))
            }
            I::Delta(_) => previous.wrapping_add(sign_extend(row.take(width, order)?, width)),
            I::Default(value) => value,
            I::Stride { stride, .. } => previous.wrapping_add(stride),
            I::SectionStride { section: target, stride } => {
                let cursor = self.cursors.entry((section, target)).or_default();
                let at = *cursor;
                *cursor = at.saturating_add(stride);
                let elements = self.streams.get(&target).map_or(&[][..], |s| s);
                let at = usize::try_from(at).map_err(|_| "no such element")?;
                *elements.get(at).ok_or("no such element")?
            }
            I::Predicted(model) => {
                let code = row.take(width, order)?;
                let model = dtd.models.get(usize::from(model.0)).ok_or("no such model")?;
                self.predicted(section, cell, model, code)?
            }
        })
    }

    /// What a predicted leaf goes by: the last value of another, or the tag of its record.
    fn goes_by(&mut self, section: u8, (record, leaf): (RecordId, LeafId)) -> u64 {
        let tag = self.dtd.record(record).filter(|r| r.leaves[usize::from(leaf.0)].is_tag()).and_then(|r| r.tag);
        tag.map_or_else(|| self.state(section).leaf(record, leaf).last, u64::from)
    }

    /// Spec 4.2.
    fn predicted(&mut self, section: u8, cell: u32, model: &Model, code: u64) -> Result<u64, Wrong> {
        let by = match &model.kind {
            ModelKind::Values(predictors) => predictors.iter().map(|p| p.by).collect(),
            ModelKind::Heap { by, role: HeapRole::Allocated { size } } => vec![*by, Some(*size)],
            ModelKind::Heap { by, .. } => vec![*by],
        };
        let by: Vec<u64> = by.into_iter().map(|by| by.map_or(0, |leaf| self.goes_by(section, leaf))).collect();
        let elements = self.streams.get(&model.section).map_or(&[][..], |elements| elements);
        let cursor = self.model_cursors.entry((section, model.section)).or_default();
        let mut element = || {
            *cursor += 1;
            elements.get(*cursor - 1).copied().ok_or_else(|| Wrong::from("no such element"))
        };
        let state = self.sections.get_mut(&section).ok_or("an unknown section")?;
        match &model.kind {
            ModelKind::Values(predictors) => {
                let kinds: Vec<_> = predictors.iter().map(|p| (p.kind, p.by.is_some())).collect();
                let key = (cell, kinds);
                let known = state.values.iter().position(|(k, _)| *k == key);
                let at = known.unwrap_or_else(|| {
                    let values = Values::new(&key.1, state.most_lines, self.broken);
                    state.values.push((key, values));
                    state.values.len() - 1
                });
                state.values[at].1.decode(&by, code, element)
            }
            ModelKind::Heap { role, .. } => {
                if state.heap.is_none() {
                    state.heap = Some(Heap::open(self.broken, &mut element)?);
                }
                let heap = state.heap.as_mut().ok_or("it was opened")?;
                match role {
                    HeapRole::Allocated { .. } => heap.allocated(by[0], by[1], code, &mut element),
                    HeapRole::Freed => heap.ended(by[0], code, true, &mut element),
                    HeapRole::Used => heap.ended(by[0], code, false, &mut element),
                }
            }
        }
    }

    fn evaluate(&mut self, section: u8, id: RecordId, ops: &[ExprOp]) -> Result<u64, Wrong> {
        let mut stack: Vec<u64> = Vec::new();
        for op in ops {
            let value = match *op {
                ExprOp::Push(n) => Some(n),
                ExprOp::Leaf(leaf) => Some(self.state(section).leaf(id, leaf).last),
                ExprOp::Bit(bit) if self.broken == Some(Rule::BitsFromLeast) => {
                    stack.pop().map(|n| n >> (7 - bit.min(7)) & 1)
                }
                ExprOp::Bit(bit) => stack.pop().map(|n| n >> bit & 1),
                op => {
                    let (b, a) = (stack.pop().ok_or("an operand")?, stack.pop().ok_or("an operand")?);
                    match op {
                        ExprOp::Add => a.checked_add(b),
                        ExprOp::Sub => a.checked_sub(b),
                        ExprOp::Div if self.broken == Some(Rule::DividesDown) => (b > 0).then(|| a.div_ceil(b)),
                        ExprOp::Div => a.checked_div(b),
                        ExprOp::Rem if self.broken == Some(Rule::RemainderOfLeft) => b.checked_rem(a),
                        ExprOp::Rem => a.checked_rem(b),
                        ExprOp::Compare(comparison) => Some(self.compare(comparison, a, b)),
                        _ => a.checked_mul(b),
                    }
                }
            };
            stack.push(value.ok_or("an expression out of range")?);
        }
        Ok(stack.pop().ok_or("an empty expression")?)
    }

    fn compare(&self, comparison: Comparison, a: u64, b: u64) -> u64 {
        let signed = self.broken == Some(Rule::ComparesUnsigned);
        let order = if signed { a.cast_signed().cmp(&b.cast_signed()) } else { a.cmp(&b) };
        let holds = match comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual if self.broken == Some(Rule::IncludesEqual) => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        };
        u64::from(holds)
    }

    /// Spec 4.1. Gives record, field, property and values.
    fn metadata(&mut self, section: u8, row: &mut Row<'_>) -> Result<Vec<Value>, Wrong> {
        let order = self.order;
        let tag = row.take(self.dtd.tag_width.into(), order)?;
        let field = row.take(1, order)?;
        let property = row.take(1, order)?;
        let width = match property >> 4 {
            0 => self.int,
            n @ 1..=8 => n as usize,
            _ => return Err("values of over 8 bytes".into()),
        };
        let code = property & 7;
        let mut values = Vec::new();
        if code != 1 {
            values.push(row.take(width, order)?);
        }
        if code >= 6 {
            values.push(sign_extend(row.take(width, order)?, width));
        }
        self.change(section, tag, field, property, &values)?;
        let all = [tag, field, property].into_iter().chain(values);
        Ok(all.map(Value::Number).collect())
    }

    fn change(&mut self, section: u8, tag: u64, field: u64, property: u64, values: &[u64]) -> Result<(), Wrong> {
        let dtd = self.dtd;
        let visible = &dtd.section(section).ok_or("an unknown section")?.records;
        let visible = || visible.iter().filter(|&&id| id != SECTION && id != METADATA);
        let named = visible().find(|id| dtd.record(**id).is_some_and(|r| r.tag.map(u64::from) == Some(tag)));
        let other = || visible().find(|id| dtd.record(**id).is_some_and(|r| r.catch_all));
        let id = *named.or_else(other).ok_or("metadata for a record that is not there")?;
        let record = dtd.record(id).ok_or("no such record")?;
        let settable = |r: &Record, i: usize| {
            let leaf = r.leaves.get(i);
            let is_tag = i == 0 && r.tag.is_some();
            leaf.is_some_and(|l| {
                let computed = l.computed.is_some() && self.broken != Some(Rule::CountIsNotSet);
                l.is_numeric() && !is_tag && l.constant.is_none() && !computed
            })
        };
        let field = match self.broken {
            Some(Rule::CountHasIndex) => {
                let mut counted = record.leaves.iter().zip(0..).filter(|(l, _)| l.computed.is_none());
                counted.nth(field as usize).map_or(usize::MAX, |(_, at)| at)
            }
            _ => field as usize,
        };
        if !settable(record, field) {
            return Err("metadata for a leaf that cannot change".into());
        }
        let mut targets = vec![(id, LeafId(field as u8))];
        if property & 8 != 0 {
            let name = &record.leaves[field].name;
            targets.clear();
            for &id in visible() {
                let Some(r) = dtd.record(id) else { continue };
                let same = (0..r.leaves.len()).filter(|&i| r.leaves[i].name == *name && settable(r, i));
                targets.extend(same.map(|i| (id, LeafId(i as u8))));
            }
        }
        let interpretation = match (property & 7, values) {
            (0, &[width]) => {
                if width > 8 {
                    return Err("a width over 8".into());
                }
                for (id, leaf) in targets {
                    self.set_width(section, id, leaf, width as u8);
                }
                return Ok(());
            }
            (1, []) => I::None,
            (2, &[base]) => I::BaseOffset(base),
            (3, &[initial]) => I::Delta(initial),
            (4, &[value]) => I::Default(value),
            (5, &[number]) => I::SectionOffset(self.stream(number, false)?),
            (6, &[initial, stride]) => I::Stride { initial, stride },
            (7, &[number, stride]) => {
                if stride as i64 <= 0 {
                    return Err("a stride under 1".into());
                }
                I::SectionStride { section: self.stream(number, true)?, stride }
            }
            _ => return Err("values that do not fit the property".into()),
        };
        for &(id, leaf) in &targets {
            if stores(interpretation) && self.state(section).leaf(id, leaf).remembered == 0 {
                return Err("an interpretation that stores bytes, and there never was a width".into());
            }
        }
        for (id, leaf) in targets {
            let cell = self.cell(section, id, leaf);
            let state = self.state(section);
            if let I::Delta(initial) | I::Stride { initial, .. } = interpretation {
                state.previous.insert(cell, initial);
            }
            let leaf = state.leaf(id, leaf);
            leaf.interpretation = interpretation;
            if stores(interpretation) {
                leaf.width = leaf.remembered;
            }
        }
        Ok(())
    }

    fn set_width(&mut self, section: u8, id: RecordId, leaf: LeafId, width: u8) {
        let leaf = self.state(section).leaf(id, leaf);
        if stores(leaf.interpretation) {
            leaf.width = width;
        }
        if width > 0 {
            leaf.remembered = width;
        }
    }

    /// The number of a stream section, of one number where `single` is asked for.
    fn stream(&self, number: u64, single: bool) -> Result<u8, Wrong> {
        let number = u8::try_from(number).map_err(|_| "a section over 255")?;
        let element = self.dtd.section(number).and_then(|s| self.dtd.record(s.stream?));
        let element = element.ok_or("not a stream section")?;
        if single && !(matches!(&*element.items, [Item::Leaf(_)]) && element.leaves[0].is_numeric()) {
            return Err("not a stream section of one number".into());
        }
        Ok(number)
    }
}

fn stores(interpretation: I) -> bool {
    !matches!(interpretation, I::Default(_) | I::Stride { .. } | I::SectionStride { .. })
}
