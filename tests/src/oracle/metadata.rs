//! Metadata records, after section 4.1 of the specification: they change the state of leaves.

use super::decoder::{Decoder, Row, sign_extend, stores};
use super::{Rule, Wrong};
use crate::Value;
use metatf_parser::schema::{Interpretation as I, Item, LeafId, METADATA, Record, RecordId, SECTION};

impl Decoder<'_> {
    /// Applies a metadata record (spec 4.1). Returns record, field, property and values.
    pub(super) fn metadata(&mut self, section: u8, row: &mut Row<'_>) -> Result<Vec<Value>, Wrong> {
        let order = self.order;
        let tag = row.take(self.dtd.tag_width.into(), order)?;
        let field = row.take(1, order)?;
        let property = row.take(1, order)?;
        let rules = self.rules;
        let nibble = (property >> 4) as usize;
        rules.demand(Rule::MetadataValuesTo8, nibble <= 8, "values of over 8 bytes")?;
        let width = if nibble == 0 || !rules.holds(Rule::MetadataValueWidth) { self.int } else { nibble.min(8) };
        let code = property & 7;
        let mut values = Vec::new();
        if code != 1 {
            let value = row.take(width, order)?;
            values.push(if rules.holds(Rule::MetadataZeroExtends) { value } else { sign_extend(value, width) });
        }
        if code >= 6 {
            let stride = row.take(width, order)?;
            values.push(if rules.holds(Rule::MetadataStrideSigned) { sign_extend(stride, width) } else { stride });
        }
        self.change(section, tag, field, property, &values)?;
        let all = [tag, field, property].into_iter().chain(values);
        Ok(all.map(Value::Number).collect())
    }

    fn change(&mut self, section: u8, tag: u64, field: u64, property: u64, values: &[u64]) -> Result<(), Wrong> {
        let (dtd, rules) = (self.dtd, self.rules);
        let visible = &dtd.section(section).ok_or("an unknown section")?.records;
        let visible = || {
            let can = |id| id != SECTION && id != METADATA || !rules.holds(Rule::MetadataOfNone);
            visible.iter().filter(move |&&id| can(id))
        };
        let named = visible().find(|id| dtd.record(**id).is_some_and(|r| r.tag.map(u64::from) == Some(tag)));
        let any = rules.holds(Rule::CatchAllByAnyTag);
        let other = || visible().find(|id| dtd.record(**id).is_some_and(|r| r.catch_all && any));
        let id = *named.or_else(other).ok_or("metadata for a record that is not there")?;
        let record = dtd.record(id).ok_or("no such record")?;
        let settable = |r: &Record, i: usize| {
            let leaf = r.leaves.get(i);
            let is_tag = i == 0 && r.tag.is_some();
            leaf.is_some_and(|l| {
                let computed = l.computed.is_some() && rules.holds(Rule::CountIsNotSet);
                let constant = l.constant.is_some() && rules.holds(Rule::MetadataNotOfConstants);
                let numeric = l.is_numeric() || !rules.holds(Rule::MetadataOfNumbers);
                let is_tag = is_tag && rules.holds(Rule::MetadataNotOfTags);
                numeric && !is_tag && !constant && !computed
            })
        };
        let field = if rules.holds(Rule::CountHasIndex) {
            field as usize + usize::from(!rules.holds(Rule::TagIsField0))
        } else {
            let mut counted = record.leaves.iter().zip(0..).filter(|(l, _)| l.computed.is_none());
            counted.nth(field as usize).map_or(usize::MAX, |(_, at)| at)
        };
        if !settable(record, field) {
            return Err("metadata for a leaf that cannot change".into());
        }
        let mut targets = vec![(id, LeafId(field as u8))];
        if property & 8 != 0 && rules.holds(Rule::AllOfAName) {
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
                rules.demand(Rule::MetadataWidthTo8, width <= 8, "a width over 8")?;
                let width = width.min(8);
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
                rules.demand(Rule::MetadataStrideAbove0, stride as i64 > 0, "a stride under 1")?;
                I::SectionStride { section: self.stream(number, true)?, stride }
            }
            _ => return Err("values that do not fit the property".into()),
        };
        for &(id, leaf) in &targets {
            let never = stores(interpretation) && self.state(section).leaf(id, leaf).remembered == 0;
            let rule = if property & 8 == 0 { Rule::NeverAWidth } else { Rule::AllOfANameOrNone };
            rules.demand(rule, !never, "an interpretation that stores bytes, and there never was a width")?;
        }
        for (id, leaf) in targets {
            let cell = self.cell(section, id, leaf);
            let state = self.state(section);
            if let I::Delta(initial) | I::Stride { initial, .. } = interpretation
                && rules.holds(Rule::MetadataSetsPrevious)
            {
                state.previous.insert(cell, initial);
            }
            let leaf = state.leaf(id, leaf);
            leaf.interpretation = interpretation;
            if stores(interpretation) && rules.holds(Rule::WidthRestored) {
                leaf.width = leaf.remembered;
            }
        }
        Ok(())
    }

    fn set_width(&mut self, section: u8, id: RecordId, leaf: LeafId, width: u8) {
        let rules = self.rules;
        let leaf = self.state(section).leaf(id, leaf);
        let stored = stores(leaf.interpretation);
        if stored {
            leaf.width = width;
        }
        if (width > 0 || !rules.holds(Rule::Width0NotRemembered)) && (stored || rules.holds(Rule::WidthKeptUnstored)) {
            leaf.remembered = width;
        }
    }

    /// Checks the number of a stream section; `single` requires elements of one number.
    fn stream(&self, number: u64, single: bool) -> Result<u8, Wrong> {
        let number = u8::try_from(number).map_err(|_| "a section over 255")?;
        let element = self.dtd.section(number).and_then(|s| self.dtd.record(s.stream?));
        if element.is_none() && !self.rules.holds(Rule::MetadataStreamIsThere) {
            return Ok(number);
        }
        let element = element.ok_or("not a stream section")?;
        let right = !single || matches!(&*element.items, [Item::Leaf(_)]) && element.leaves[0].is_numeric();
        self.rules.demand(Rule::MetadataStrideOfNumbers, right, "not a stream section of one number")?;
        Ok(number)
    }
}
