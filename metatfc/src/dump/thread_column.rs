//! `--thread-column`, which prints the thread of each record.

use super::select::Select;
use crate::failure::{Result, usage};
use metatf::dynamic::{Item as Value, Schema, Trace};
use metatf::reader::Event;
use metatf_parser::schema::Item;

/// The name of the column.
pub(super) const NAME: &str = "thread";

/// The current thread, taken from the latest record that names a thread.
pub(super) struct ThreadColumn {
    /// The index of the record that names a thread.
    record: u16,
    /// The position of the thread's number among the record's values.
    place: usize,
    pub(super) number: u64,
}

impl ThreadColumn {
    /// Finds the field by its name, such as `thread.id`. Before the first record with this field, the thread is 1, as
    /// in `heap.dtd`.
    pub(super) fn new(schema: &Schema, name: &str, select: &Select) -> Result<Self> {
        let (record_name, field) = name.split_once('.').unwrap_or((name, ""));
        let records = (0_u16..).zip(&schema.dtd.records);
        // The tag is not part of the values.
        let found = records.filter(|(_, record)| record.name == record_name).find_map(|(index, record)| {
            let plain = |item: &Item| matches!(item, Item::Leaf(_));
            let leaves = record.leaves.iter().filter(|leaf| !leaf.is_tag());
            let place = leaves.clone().position(|leaf| leaf.key == field && leaf.is_numeric())?;
            record.items.iter().all(plain).then_some((index, place))
        });
        let Some((record, place)) = found else {
            return usage(format!(
                "--thread-column: the DTD has no record `{record_name}` with a number `{field}`; name the field that identifies \
                 the thread: --thread-column=RECORD.FIELD"
            ));
        };
        let kinds = select.kinds(schema);
        let clash = kinds.iter().filter_map(|&(_, index)| schema.record(index));
        if clash.flat_map(|record| &record.leaves).any(|leaf| leaf.key == NAME) {
            return usage(format!("--thread-column: the records already have a field `{NAME}`"));
        }
        Ok(Self { record, place, number: 1 })
    }

    pub(super) fn is_named_by(&self, event: Event) -> bool {
        matches!(event, Event::Record(at) if at.record == self.record)
    }

    /// Updates the current thread if a decoded event names a thread.
    pub(super) fn take(&mut self, trace: &Trace<'_>, event: Event) {
        if self.is_named_by(event)
            && let Some(Value::Number(number)) = trace.record().get(self.place)
        {
            self.number = number;
        }
    }
}
