//! Whether a group begins with the live objects of a heap is decided when it is over: then it is known how many of them
//! ended in it.
//!
//! A group is written as if nothing were known of the objects before it, and what its heap's model was given is logged.
//! Where many of the objects that were live at its start were freed, the model runs once more, with them; the new codes
//! take the place of the old ones in the chunks, which still wait for the group's stream sections.

use crate::container::{Order, Sink};
use crate::encode::Noted;
use crate::predict::{Cells, Context, Live, Models};
use crate::writer::RecordWriter;
use hashbrown::HashSet;
use std::collections::BTreeMap;

/// What is logged at most; of a group with more, no object is carried on.
const MOST: usize = 1 << 21;
/// One in so many objects has to end in the group for all to be carried into it.
const PAYS: usize = 2;

/// The objects that were live when a group began, and what happened since.
#[derive(Debug)]
pub(crate) struct Log {
    before: Vec<Live>,
    entries: Vec<Entry>,
    /// There was more than is logged.
    full: bool,
}

/// A predicted address, and where its code is.
#[derive(Clone, Copy, Debug)]
struct Entry {
    value: u64,
    by: u64,
    size: u64,
    /// Where its code is: which of the section's chunks in this group, where in that, and of how many bytes.
    part: u32,
    at: u32,
    width: u8,
    model: u16,
}

/// Memory of a log that is not needed any more.
#[derive(Debug, Default)]
pub(crate) struct Room(Vec<Entry>);

impl Log {
    pub(crate) fn new(before: Vec<Live>, room: Room) -> Self {
        Self { before, entries: room.0, full: false }
    }

    pub(crate) fn into_room(mut self) -> Room {
        self.entries.clear();
        Room(self.entries)
    }

    /// Logs what a model of the heap was given.
    #[inline]
    pub(crate) fn note(&mut self, noted: Noted, part: u32) {
        let Noted { model, value, context, at, width } = noted;
        let Context::Heap { by, size } = context else { return };
        match u32::try_from(at) {
            Ok(at) if self.entries.len() < MOST && !self.full => {
                self.entries.push(Entry { value, by, size, part, at, width, model });
            }
            // Nobody asks for them any more.
            _ => {
                self.full = true;
                self.entries = Vec::new();
            }
        }
    }

    /// The objects from before the group that are live at its end, and how many there were and are not.
    fn survivors(&self, cells: &Cells) -> (Vec<Live>, usize) {
        let mut live: HashSet<u64> = self.before.iter().flat_map(|(_, objects)| objects).map(|o| o.0).collect();
        let mut ended = 0;
        for entry in &self.entries {
            // Where another object begins, too, the old one is gone.
            if !cells.is_use(entry.model) && live.remove(&entry.value) {
                ended += 1;
            }
        }
        let left = |(by, objects): &Live| (*by, objects.iter().filter(|o| live.contains(&o.0)).copied().collect());
        (self.before.iter().map(left).collect(), ended)
    }

    /// The objects that are live at the end of a group, where `new` are those that its model knows.
    pub(crate) fn after(&self, cells: &Cells, new: Vec<Live>) -> Vec<Live> {
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

impl<S: Sink> RecordWriter<S> {
    /// Carries the live objects into a group that is written, but for its chunks, where that pays.
    pub(crate) fn carry_live_set(&mut self, section: usize) {
        let Some(writer) = self.sections.get_mut(section) else { return };
        let Some(log) = writer.log.take() else { return };
        let cells = &writer.state.model_cells;
        let before: usize = log.before.iter().map(|(_, objects)| objects.len()).sum();
        if log.full || log.survivors(cells).1 * PAYS <= before {
            writer.log = Some(log);
            return;
        }
        let mut models = writer.state.models.anew(log.before.clone());
        let rerun = rerun(&self.format, cells, &mut models, &log.entries);
        let reader = self.format.sections.len() + section;
        let Some((codes, _)) = rerun.filter(|(_, e)| self.streams.replace(&self.format, reader, e)) else {
            writer.log = Some(log);
            return;
        };
        writer.state.models.replace(models);
        let mut parts: Vec<&mut Vec<u8>> = Vec::new();
        for chunk in self.waiting.iter_mut().filter(|chunk| chunk.section == section) {
            parts.push(&mut chunk.raw);
        }
        patch(self.order, &log.entries, &codes, &mut parts);
        writer.room = log.into_room();
    }
}

/// New elements by stream section.
type Elements = BTreeMap<u8, Vec<u64>>;

/// The codes by models that know more, and what goes to stream sections. `None` where a code does not fit its width.
fn rerun(
    format: &crate::format::Format,
    cells: &Cells,
    models: &mut Models,
    entries: &[Entry],
) -> Option<(Vec<u64>, Elements)> {
    let mut codes = Vec::with_capacity(entries.len());
    let mut elements = Elements::new();
    for &Entry { value, by, size, width, model, .. } in entries {
        let context = (Context::Heap { by, size }, &[][..]);
        let target = elements.entry(format.models.get(usize::from(model))?.section).or_default();
        let found = models.find(cells, model, context, value, target);
        target.extend_from_slice(found.elements());
        if width < 8 && found.code >> (8 * width) != 0 {
            return None;
        }
        models.learn(cells, model, context, value, &found);
        codes.push(found.code);
    }
    Some((codes, elements))
}

fn patch(order: Order, entries: &[Entry], codes: &[u64], parts: &mut [&mut Vec<u8>]) {
    for (&Entry { part, at, width, .. }, &code) in entries.iter().zip(codes) {
        let (raw, at) = (parts.get_mut(part as usize), at as usize);
        if let Some(stored) = raw.and_then(|raw| raw.get_mut(at..at + usize::from(width))) {
            order.store(code, stored);
        }
    }
}
