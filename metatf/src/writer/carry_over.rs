//! Live-set carry-over. Whether a group starts with the live objects of a heap is decided at the end of the group, when
//! it is known how many of these objects the group frees.
//!
//! A group is first written as if no object were live at its start, while the inputs of its heap model are logged. If
//! many of the previously live objects are freed in the group, the model runs again with these objects. The new codes
//! replace the old ones in the chunks, which are still waiting for the group's stream sections.

use crate::encode::Prediction;
use crate::formula::Width;
use crate::predict::{Cells, Context, Live, Models};
use crate::writer::RecordCore;
use hashbrown::HashSet;
use metatf_container::{Order, Sink};
use std::collections::BTreeMap;

/// Maximum number of logged addresses. If a group contains more, no object is carried into it.
const MOST: usize = 1 << 21;
/// Objects are carried into a group only if more than one in this many of them is freed in the group.
const PAYS: usize = 2;

/// The objects that were live at the start of a group, and the predicted addresses in the group's records.
#[derive(Debug)]
pub(crate) struct Log {
    before: Vec<Live>,
    entries: Vec<LoggedAddress>,
    /// Whether the limit on logged addresses was exceeded.
    full: bool,
}

/// A predicted address and the position of its code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedAddress {
    value: u64,
    by: u64,
    size: u64,
    /// The position of the address's code: the chunk of the section within this group, the offset in the chunk, and the
    /// number of bytes.
    part: u32,
    at: u32,
    width: Width,
    model: u16,
}

impl Log {
    /// Starts the log of a group, reusing the memory of an earlier log.
    pub(crate) fn new(before: Vec<Live>, mut memory: Vec<LoggedAddress>) -> Self {
        memory.clear();
        Self { before, entries: memory, full: false }
    }

    /// Returns the memory for reuse by another log.
    pub(crate) fn into_memory(self) -> Vec<LoggedAddress> {
        self.entries
    }

    /// Logs the inputs of a heap model.
    #[inline]
    pub(crate) fn push(&mut self, prediction: &Prediction, part: u32) {
        let Prediction { model, value, context, at, width, .. } = *prediction;
        let Context::Heap { by, size } = context else { return };
        match u32::try_from(at) {
            Ok(at) if self.entries.len() < MOST && !self.full => {
                self.entries.push(LoggedAddress { value, by, size, part, at, width, model });
            }
            // The log is now incomplete and can no longer be used.
            _ => {
                self.full = true;
                self.entries = Vec::new();
            }
        }
    }

    /// Returns the objects from before the group that are still live at its end, and the number of objects that were
    /// freed.
    fn survivors(&self, cells: &Cells) -> (Vec<Live>, usize) {
        let mut live: HashSet<u64> = self.before.iter().flat_map(|(_, objects)| objects).map(|o| o.0).collect();
        let mut freed = 0;
        for entry in &self.entries {
            // A free ends the life of an object, and so does a new allocation at its address.
            if !cells.is_use(entry.model) && live.remove(&entry.value) {
                freed += 1;
            }
        }
        let left = |(by, objects): &Live| (*by, objects.iter().filter(|o| live.contains(&o.0)).copied().collect());
        (self.before.iter().map(left).collect(), freed)
    }

    /// Returns the objects that are live at the end of the group, where `new` contains those that the group's model
    /// knows.
    pub(crate) fn live_after(&self, cells: &Cells, new: Vec<Live>) -> Vec<Live> {
        if self.full {
            return new;
        }
        let (mut all, _) = self.survivors(cells);
        for (by, objects) in new {
            match all.iter_mut().find(|(known, _)| *known == by) {
                Some((_, known)) => known.extend(objects),
                None => all.push((by, objects)),
            }
        }
        all
    }
}

impl RecordCore<dyn Sink + '_> {
    /// Carries the live objects into an encoded group if enough of these objects are freed in the group.
    pub(crate) fn carry_live_set(&mut self, section: usize) {
        let Some(writer) = self.sections.get_mut(section) else { return };
        let Some(log) = writer.log.take() else { return };
        let cells = &writer.state.encoding.model_cells;
        let before: usize = log.before.iter().map(|(_, objects)| objects.len()).sum();
        if log.full || log.survivors(cells).1 * PAYS <= before {
            writer.log = Some(log);
            return;
        }
        let mut models = writer.state.history.models.with_live(log.before.clone());
        let rerun = rerun(&self.format, cells, &mut models, &log.entries);
        let reader = self.format.sections.len() + section;
        let Some((codes, _)) = rerun.filter(|(_, e)| self.streams.replace(&self.format, reader, e)) else {
            writer.log = Some(log);
            return;
        };
        writer.state.history.models.replace(models);
        let mut parts: Vec<&mut Vec<u8>> = Vec::new();
        for chunk in self.waiting.iter_mut().filter(|chunk| chunk.section == section) {
            parts.push(&mut chunk.raw);
        }
        patch(self.order, &log.entries, &codes, &mut parts);
        writer.log_memory = log.into_memory();
    }
}

/// The new elements of each stream section.
type StreamElements = BTreeMap<u8, Vec<u64>>;

/// Encodes the addresses with models that know the live objects. Returns the codes of the addresses and the elements
/// for stream sections, or `None` if a code does not fit in its width.
fn rerun(
    format: &crate::format::Format,
    cells: &Cells,
    models: &mut Models,
    entries: &[LoggedAddress],
) -> Option<(Vec<u64>, StreamElements)> {
    let mut codes = Vec::with_capacity(entries.len());
    let mut elements = StreamElements::new();
    for &LoggedAddress { value, by, size, width, model, .. } in entries {
        let context = (Context::Heap { by, size }, &[][..]);
        let target = elements.entry(format.models.get(usize::from(model))?.section).or_default();
        let found = models.find(cells, model, context, value, target);
        target.extend_from_slice(found.elements());
        if found.code & !width.mask() != 0 {
            return None;
        }
        models.learn(cells, model, context, value, &found);
        codes.push(found.code);
    }
    Some((codes, elements))
}

/// Stores the new codes in the chunks.
fn patch(order: Order, entries: &[LoggedAddress], codes: &[u64], parts: &mut [&mut Vec<u8>]) {
    for (&LoggedAddress { part, at, width, .. }, &code) in entries.iter().zip(codes) {
        let (raw, at) = (parts.get_mut(part as usize), at as usize);
        if let Some(stored) = raw.and_then(|raw| raw.get_mut(at..at + width.bytes())) {
            order.store(code, stored);
        }
    }
}
