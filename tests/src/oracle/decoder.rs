//! Records and the state of their leaves, after sections 3.2, 3.3 and 4 of the specification.

use super::container::integer;
use super::heap::Heap;
use super::language::compare;
use super::values::{Kinds, Values, most_lines};
use super::{Rule, Rules, Wrong};
use crate::Value;
use metatf::container::Order;
use metatf_parser::schema::{
    Comparison, Dtd, ExprOp, HeapRole, Interpretation as I, Item, LeafId, Model, ModelKind, PredictorKind, Record,
    RecordId, Repeated, Width,
};
use std::collections::HashMap;
use std::ops::Range;

/// A record being read.
pub(super) struct Row<'c> {
    content: &'c [u8],
    pub(super) at: usize,
    pub(super) values: Vec<Value>,
    /// Stored bytes of the leaves, as ranges of the content.
    pub(super) stored: Vec<(usize, Range<usize>)>,
    items: u64,
}

impl<'c> Row<'c> {
    pub(super) fn new(content: &'c [u8]) -> Self {
        Self { content, at: 0, values: Vec::new(), stored: Vec::new(), items: 0 }
    }

    fn bytes(&mut self, n: u64) -> Result<&'c [u8], Wrong> {
        let n = usize::try_from(n).map_err(|_| "a length over the address space")?;
        let end = self.at.checked_add(n).ok_or("a length over the address space")?;
        let bytes = self.content.get(self.at..end).ok_or("the content ends")?;
        self.at = end;
        Ok(bytes)
    }

    /// Counts an item.
    fn item(&mut self) -> Result<(), Wrong> {
        self.items += 1;
        if self.items > self.content.len() as u64 + 65_536 { Err("too many items".into()) } else { Ok(()) }
    }

    /// Reads an unsigned integer of `n` bytes.
    pub(super) fn take(&mut self, n: usize, order: Order) -> Result<u64, Wrong> {
        Ok(integer(self.bytes(n as u64)?, order))
    }
}

/// Returns whether a leaf counts items that end by their content.
fn is_scanned(record: &Record, count: LeafId) -> bool {
    let steps = record.leaves[usize::from(count.0)].computed.as_ref().map_or(&[][..], |expr| &expr.0);
    matches!(steps.last(), Some(ExprOp::Rest | ExprOp::Until))
}

/// Reads an integer of `width` bytes as two's complement.
pub(super) fn sign_extend(raw: u64, width: usize) -> u64 {
    if width == 0 || width >= 8 || raw >> (8 * width - 1) == 0 { raw } else { raw | u64::MAX << (8 * width) }
}

#[derive(Clone, Debug)]
pub(super) struct LeafState {
    pub(super) width: u8,
    /// Last width other than 0.
    pub(super) remembered: u8,
    pub(super) interpretation: I,
    last: u64,
    /// Last value before the current record.
    before: u64,
}

impl LeafState {
    pub(super) fn value(&self) -> u64 {
        self.last
    }
}

/// Key of a value model that leaves share: their cell, and the predictors with whether each depends on a leaf. If the
/// sharing rule is broken, also the leaves.
type Shared = (u32, Vec<(PredictorKind, bool)>, Vec<Option<(RecordId, LeafId)>>);

/// State of one section.
#[derive(Default)]
pub(super) struct State {
    pub(super) leaves: HashMap<(RecordId, LeafId), LeafState>,
    /// Previous values, by the cell that leaves share.
    pub(super) previous: HashMap<u32, u64>,
    /// Value models, by that cell and their predictors.
    values: Vec<(Shared, Values)>,
    /// Numbers that the tables may still allocate.
    most_lines: usize,
    heap: Option<Heap>,
}

impl State {
    pub(super) fn leaf(&mut self, record: RecordId, leaf: LeafId) -> &mut LeafState {
        self.leaves.get_mut(&(record, leaf)).expect("every numeric leaf has a state")
    }
}

pub(super) struct Decoder<'d> {
    pub(super) dtd: &'d Dtd,
    pub(super) rules: Rules,
    pub(super) order: Order,
    /// Bytes of an `int`.
    pub(super) int: usize,
    pub(super) version: u8,
    sections: HashMap<u8, State>,
    /// Elements of the group's streams, by section number.
    pub(super) streams: HashMap<u8, Vec<u64>>,
    cursors: HashMap<(u8, u32), u64>,
    /// Cursors of predicted leaves.
    model_cursors: HashMap<(u8, u8), usize>,
    pub(super) last_section: u8,
}

impl<'d> Decoder<'d> {
    pub(super) fn new(dtd: &'d Dtd, order: Order, int: usize, version: u8, rules: Rules) -> Self {
        let mut decoder = Self {
            dtd,
            rules,
            order,
            int,
            version,
            sections: HashMap::new(),
            streams: HashMap::new(),
            cursors: HashMap::new(),
            model_cursors: HashMap::new(),
            last_section: 0,
        };
        for section in &dtd.sections {
            decoder.reset(section.number);
        }
        decoder
    }

    /// Starts a group, which has its own streams and cursors.
    pub(super) fn begin_group(&mut self) {
        self.streams.clear();
        if self.rules.holds(Rule::CursorsOfGroup) {
            self.cursors.clear();
        }
        if self.rules.holds(Rule::ModelCursorsOfGroup) {
            self.model_cursors.clear();
        }
    }

    pub(super) fn state(&mut self, section: u8) -> &mut State {
        self.sections.entry(section).or_default()
    }

    /// Resets a section to the state in the DTD.
    pub(super) fn reset(&mut self, number: u8) {
        let Some(section) = self.dtd.section(number) else { return };
        let rules = self.rules;
        let mut state = State::default();
        let before = self.sections.remove(&number);
        let mut models = Vec::new();
        for (&id, cells) in section.records.iter().zip(&section.cells) {
            for (i, leaf) in self.dtd.record(id).map_or(&[][..], |r| &r.leaves).iter().enumerate() {
                let width = if let Width::Number(n) = leaf.width { n } else { 0 };
                let interpretation = leaf.interpretation;
                let mut leaf = LeafState { width, remembered: width, interpretation, last: 0, before: 0 };
                if let Some(old) = before.as_ref().and_then(|state| state.leaves.get(&(id, LeafId(i as u8)))) {
                    if !rules.holds(Rule::ResetRestoresWidths) {
                        (leaf.width, leaf.remembered) = (old.width, old.remembered);
                    }
                    if !rules.holds(Rule::ResetRestoresInterpretations) {
                        leaf.interpretation = old.interpretation;
                    }
                    if !rules.holds(Rule::ResetEmptiesLastValues) {
                        leaf.last = old.last;
                    }
                }
                state.leaves.insert((id, LeafId(i as u8)), leaf);
                if let I::Delta(initial) | I::Stride { initial, .. } = interpretation
                    && let Some(&cell) = cells.get(i)
                {
                    let initial = if rules.holds(Rule::PreviousIsInitial) { initial } else { 0 };
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
        state.most_lines = most_lines(models.iter().map(|(_, kinds)| kinds), rules);
        if let Some(old) = before {
            if !rules.holds(Rule::ResetRestoresPrevious) {
                state.previous = old.previous;
            }
            if !rules.holds(Rule::ResetEmptiesModels) {
                (state.values, state.heap) = (old.values, old.heap);
            }
        }
        if !rules.holds(Rule::ResetMovesNoCursor) {
            self.cursors.retain(|(section, _), _| *section != number);
        }
        if !rules.holds(Rule::ResetMovesNoModelCursor) {
            self.model_cursors.retain(|(section, _), _| *section != number);
        }
        self.sections.insert(number, state);
    }

    /// Returns the predictors of a value model.
    fn kinds(&self, model: usize) -> Option<Kinds> {
        let ModelKind::Values(predictors) = &self.dtd.models.get(model)?.kind else { return None };
        Some(predictors.iter().map(|p| (p.kind, p.by.is_some())).collect())
    }

    pub(super) fn cell(&self, section: u8, record: RecordId, leaf: LeafId) -> u32 {
        let section = self.dtd.section(section).expect("a known section");
        let position = section.records.iter().position(|&r| r == record).expect("a record of the section");
        if self.rules.holds(Rule::PreviousShared) {
            section.cells[position][usize::from(leaf.0)]
        } else {
            1_000_000 + 256 * record.0 + u32::from(leaf.0)
        }
    }

    /// Reads a tag and returns its record.
    pub(super) fn tag(&mut self, section: u8, row: &mut Row<'_>) -> Result<RecordId, Wrong> {
        let tag = row.take(self.dtd.tag_width.into(), self.order)?;
        let known = &self.dtd.section(section).ok_or("an unknown section")?.records;
        let record = |id: &RecordId| self.dtd.record(*id);
        // For metadata, a catch-all record has the lowest unused tag, but it does not own that tag.
        let named = |id: &&RecordId| record(id).is_some_and(|r| r.tag.map(u64::from) == Some(tag) && !r.catch_all);
        let other = |id: &&RecordId| {
            let all = self.rules.holds(Rule::CatchAllTakesTheRest);
            record(id).is_some_and(|r| r.catch_all && (all || r.tag.map(u64::from) == Some(tag)))
        };
        if !self.rules.holds(Rule::NamedTagsFirst)
            && let Some(id) = known.iter().find(other)
        {
            return Ok(*id);
        }
        Ok(*known.iter().find(named).or_else(|| known.iter().find(other)).ok_or("an unknown tag")?)
    }

    /// Reads the rest of a data record or comment after its tag; `start` is the position of the tag.
    pub(super) fn data_record(
        &mut self,
        section: u8,
        id: RecordId,
        start: usize,
        row: &mut Row<'_>,
    ) -> Result<(), Wrong> {
        if self.dtd.record(id).is_some_and(|r| r.catch_all) {
            // The tag is an ordinary field of the record.
            row.at = start;
        }
        self.element(section, id, start, row)
    }

    /// Reads an element that begins at `start`, or the rest of such a record.
    pub(super) fn element(&mut self, section: u8, id: RecordId, start: usize, row: &mut Row<'_>) -> Result<(), Wrong> {
        row.items = 0;
        self.record(section, id, row)?;
        let bounded = row.items <= (row.at - start) as u64 + 65_536;
        self.rules.demand(Rule::ItemsBounded, bounded, "too many items")
    }

    /// Reads all leaves of a record except its tag.
    pub(super) fn record(&mut self, section: u8, id: RecordId, row: &mut Row<'_>) -> Result<(), Wrong> {
        let dtd = self.dtd;
        let record = dtd.record(id).ok_or("no such record")?;
        if !self.rules.holds(Rule::RecordInProgress) {
            self.state(section).leaves.values_mut().for_each(|leaf| leaf.before = leaf.last);
        }
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
                Item::Repeat { count, body, .. } if is_scanned(record, *count) => {
                    self.scanned(section, id, record, (*count, body), row)?;
                }
                Item::Repeat { count, body, .. } => {
                    let count = self.state(section).leaf(id, *count).last;
                    if let (0, Repeated::Leaf(leaf), false) = (count, body, self.rules.holds(Rule::AbsentKeepsPrevious))
                    {
                        let cell = self.cell(section, id, *leaf);
                        self.state(section).previous.insert(cell, 0);
                    }
                    row.items = row.items.saturating_add(count);
                    let most = if self.rules.holds(Rule::ItemsBounded) { 65_536 } else { 1 << 20 };
                    if row.items > row.content.len() as u64 + most {
                        return Err("too many items".into());
                    }
                    for _ in 0..count {
                        self.item(section, id, record, body, row)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn item(
        &mut self,
        section: u8,
        id: RecordId,
        record: &Record,
        body: &Repeated,
        row: &mut Row<'_>,
    ) -> Result<(), Wrong> {
        match body {
            Repeated::Leaf(leaf) => self.leaf(section, id, record, *leaf, row),
            Repeated::Group(items) | Repeated::Record { items, .. } => self.items(section, id, record, items, row),
        }
    }

    /// Reads items up to the end of the content or up to an item after which a condition holds (spec 3.3). The count is
    /// known only afterwards.
    fn scanned(
        &mut self,
        section: u8,
        id: RecordId,
        record: &Record,
        (count, body): (LeafId, &Repeated),
        row: &mut Row<'_>,
    ) -> Result<(), Wrong> {
        let at = row.values.len() - 1;
        let steps = record.leaves[usize::from(count.0)].computed.as_ref().map_or(&[][..], |expr| &expr.0);
        let mut items = 0;
        if let [condition @ .., ExprOp::Until] = steps {
            let early = !self.rules.holds(Rule::UntilIsAfterItem);
            while !(early && self.evaluate(section, id, condition)? != 0) {
                row.item()?;
                self.item(section, id, record, body, row)?;
                items += 1;
                if self.evaluate(section, id, condition)? != 0 {
                    break;
                }
            }
        } else {
            // The leaves after the items are not repeated.
            let after = record.leaves[usize::from(count.0) + 1..].iter().take_while(|leaf| leaf.repeated).count();
            let end = self.before_tail(section, id, record, count.0 + after as u8, row)?;
            while row.at < end {
                row.item()?;
                self.item(section, id, record, body, row)?;
                items += 1;
            }
            if row.at > end {
                return Err("an item extends past the end".into());
            }
        }
        row.values[at] = Value::Number(items);
        self.state(section).leaf(id, count).last = items;
        Ok(())
    }

    /// Returns the position at which the leaves after `last` begin if they end the content.
    fn before_tail(
        &mut self,
        section: u8,
        id: RecordId,
        record: &Record,
        last: u8,
        row: &Row<'_>,
    ) -> Result<usize, Wrong> {
        let mut end = row.content.len();
        if !self.rules.holds(Rule::RestLeavesTail) {
            return Ok(end);
        }
        for leaf in (last + 1)..u8::try_from(record.leaves.len()).map_err(|e| e.to_string())? {
            let size = match record.leaves[usize::from(leaf)].width {
                Width::Array(n) => n as usize,
                _ => {
                    let LeafState { width, interpretation, .. } = *self.state(section).leaf(id, LeafId(leaf));
                    if interpretation.stores() { width.into() } else { 0 }
                }
            };
            end = end.checked_sub(size).ok_or("the content ends")?;
        }
        if end < row.at { Err("the content ends".into()) } else { Ok(end) }
    }

    fn leaf(
        &mut self,
        section: u8,
        id: RecordId,
        record: &Record,
        leaf: LeafId,
        row: &mut Row<'_>,
    ) -> Result<(), Wrong> {
        let start = row.at;
        self.value(section, id, record, leaf, row)?;
        row.stored.push((leaf.0.into(), start..row.at));
        Ok(())
    }

    fn value(
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
                let short = |length: &usize| *length <= 65_535 || !self.rules.holds(Rule::UntilBounded);
                let length = rest.iter().position(|b| b == end).filter(short).ok_or("no byte at the end")?;
                let kept = length + usize::from(!self.rules.holds(Rule::EndIsOutside));
                row.values.push(Value::Bytes(rest[..kept].to_vec()));
                row.at += length + 1;
                return Ok(());
            }
            Width::Rest => Some((self.before_tail(section, id, record, leaf.0, row)? - row.at) as u64),
            Width::Unset | Width::Number(_) => None,
        };
        if let Some(length) = length {
            let bytes = row.bytes(length)?.to_vec();
            row.values.push(Value::Bytes(bytes));
            return Ok(());
        }
        let value = match &declared.computed {
            // The items are counted when they are read.
            Some(_) if is_scanned(record, leaf) => 0,
            Some(expr) => self.evaluate(section, id, &expr.0)?,
            None => self.number(section, id, leaf, row)?,
        };
        let right = declared.constant.is_none_or(|constant| constant == value);
        self.rules.demand(Rule::ConstantsChecked, right, "a constant with another value")?;
        row.values.push(Value::Number(value));
        let cell = self.cell(section, id, leaf);
        let always = self.rules.holds(Rule::PreviousAlwaysUpdated);
        let state = self.state(section);
        let relative = matches!(state.leaf(id, leaf).interpretation, I::Delta(_) | I::Stride { .. } | I::Predicted(_));
        if always || relative {
            state.previous.insert(cell, value);
        }
        state.leaf(id, leaf).last = value;
        Ok(())
    }

    /// Decodes a number by the table of spec 4.
    fn number(&mut self, section: u8, id: RecordId, leaf: LeafId, row: &mut Row<'_>) -> Result<u64, Wrong> {
        let (dtd, order, rules) = (self.dtd, self.order, self.rules);
        let cell = self.cell(section, id, leaf);
        let LeafState { width, interpretation, .. } = *self.state(section).leaf(id, leaf);
        let width = usize::from(width);
        let signed = |raw: u64, rule| if rules.holds(rule) { sign_extend(raw, width) } else { raw };
        let previous = self.state(section).previous.get(&cell).copied().unwrap_or(0);
        Ok(match interpretation {
            I::None => {
                let raw = row.take(width, order)?;
                if rules.holds(Rule::NoneExtendsWithZeros) { raw } else { sign_extend(raw, width) }
            }
            I::SectionOffset(_) => row.take(width, order)?,
            I::BaseOffset(base) => base.wrapping_add(signed(row.take(width, order)?, Rule::BaseOffsetExtendsSign)),
            I::BaseOffsetOf(other, x) => {
                let x = self.state(section).leaf(other, x);
                let base = if rules.holds(Rule::RecordInProgress) { x.last } else { x.before };
                base.wrapping_add(sign_extend(row.take(width, order)?, width))
            }
            I::Delta(_) => previous.wrapping_add(signed(row.take(width, order)?, Rule::DeltaExtendsSign)),
            I::Default(value) => value,
            I::Stride { stride, .. } => previous.wrapping_add(stride),
            I::SectionStride { section: target, stride } => {
                let owner = if rules.holds(Rule::CursorOfSection) { section } else { 0 };
                let target_of = if rules.holds(Rule::CursorOfLeaves) {
                    target.into()
                } else {
                    256 * (id.0 + 1) + u32::from(leaf.0)
                };
                let cursor = self.cursors.entry((owner, target_of)).or_default();
                let at = *cursor;
                *cursor = at.saturating_add(if rules.holds(Rule::CursorMovesBySteps) { stride } else { 1 });
                let elements = self.streams.get(&target).map_or(&[][..], |s| s);
                let at = usize::try_from(at).map_err(|_| "no such element")?;
                match elements.get(at) {
                    None if !rules.holds(Rule::ElementsAreThere) => 0,
                    element => *element.ok_or("no such element")?,
                }
            }
            I::Predicted(model) => {
                let code = row.take(width, order)?;
                let model = dtd.models.get(usize::from(model.0)).ok_or("no such model")?;
                self.predicted(section, cell, model, code)?
            }
        })
    }

    /// Returns the value that a prediction depends on: the last value of another leaf, or the record's tag.
    fn goes_by(&mut self, section: u8, (record, leaf): (RecordId, LeafId)) -> u64 {
        let all = !self.rules.holds(Rule::ByTagOfCatchAll);
        let is_tag = |r: &&Record| r.leaves[usize::from(leaf.0)].is_tag() || all && r.catch_all && leaf.0 == 0;
        let tag = self.dtd.record(record).filter(is_tag).and_then(|r| r.tag);
        tag.map_or_else(|| self.state(section).leaf(record, leaf).last, u64::from)
    }

    /// Decodes a predicted value (spec 4.2).
    fn predicted(&mut self, section: u8, cell: u32, model: &Model, code: u64) -> Result<u64, Wrong> {
        let rules = self.rules;
        let leaves: Vec<_> = match &model.kind {
            ModelKind::Values(predictors) => predictors.iter().map(|p| p.by).collect(),
            ModelKind::Heap { by, role: HeapRole::Allocated { size } } => vec![*by, Some(*size)],
            ModelKind::Heap { by, .. } => vec![*by],
        };
        let by: Vec<u64> = leaves.iter().map(|by| by.map_or(0, |leaf| self.goes_by(section, leaf))).collect();
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
                let apart = if rules.holds(Rule::ModelsOfOtherBy) { Vec::new() } else { leaves };
                let key = (cell, kinds, apart);
                let same = |known: &Shared| {
                    let kind = |(kind, by): &(PredictorKind, bool)| (*kind, *by && rules.holds(Rule::ModelsWithoutBy));
                    known.0 == key.0 && known.1.iter().map(kind).eq(key.1.iter().map(kind)) && known.2 == key.2
                };
                let known = state.values.iter().position(|(known, _)| same(known));
                let at = known.unwrap_or_else(|| {
                    let values = Values::new(&key.1, state.most_lines, rules);
                    state.values.push((key, values));
                    state.values.len() - 1
                });
                state.values[at].1.decode(&by, code, element)
            }
            ModelKind::Heap { role, .. } => {
                if state.heap.is_none() {
                    state.heap = Some(Heap::open(rules, &mut element)?);
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
        let rules = self.rules;
        let mut stack: Vec<u64> = Vec::new();
        for op in ops {
            let value = match *op {
                ExprOp::Push(n) => Some(n),
                ExprOp::Leaf(leaf) => Some(self.state(section).leaf(id, leaf).last),
                ExprOp::Bit(bit) if rules.holds(Rule::BitsFromLeast) => stack.pop().map(|n| n >> bit & 1),
                ExprOp::Bit(bit) => stack.pop().map(|n| n >> (7 - bit.min(7)) & 1),
                op => {
                    let (b, a) = (stack.pop().ok_or("an operand")?, stack.pop().ok_or("an operand")?);
                    match op {
                        ExprOp::Add if !rules.holds(Rule::SumsBounded) => Some(a.wrapping_add(b)),
                        ExprOp::Add => a.checked_add(b),
                        ExprOp::Sub if !rules.holds(Rule::DifferencesBounded) => Some(a.saturating_sub(b)),
                        ExprOp::Sub => a.checked_sub(b),
                        ExprOp::Div if !rules.holds(Rule::DividesDown) => (b > 0).then(|| a.div_ceil(b)),
                        ExprOp::Div if !rules.holds(Rule::DivisorNotZero) => Some(a.checked_div(b).unwrap_or(0)),
                        ExprOp::Div => a.checked_div(b),
                        ExprOp::Rem if !rules.holds(Rule::RemainderOfLeft) => b.checked_rem(a),
                        ExprOp::Rem if !rules.holds(Rule::RemainderDivisorNotZero) => {
                            Some(a.checked_rem(b).unwrap_or(a))
                        }
                        ExprOp::Rem => a.checked_rem(b),
                        ExprOp::Compare(comparison) => {
                            let order = if rules.holds(Rule::ComparesUnsigned) {
                                a.cmp(&b)
                            } else {
                                a.cast_signed().cmp(&b.cast_signed())
                            };
                            let equal = order.is_eq() && !rules.holds(Rule::IncludesEqual);
                            let broken = equal && comparison == Comparison::LessOrEqual;
                            Some(u64::from(compare(comparison, order) && !broken))
                        }
                        _ if !rules.holds(Rule::ProductsBounded) => Some(a.wrapping_mul(b)),
                        _ => a.checked_mul(b),
                    }
                }
            };
            stack.push(value.ok_or("an expression out of range")?);
        }
        Ok(stack.pop().ok_or("an empty expression")?)
    }
}

pub(super) fn stores(interpretation: I) -> bool {
    !matches!(interpretation, I::Default(_) | I::Stride { .. } | I::SectionStride { .. })
}
