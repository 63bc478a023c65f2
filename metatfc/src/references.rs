//! References, which are offsets in `sectionOffset` leaves, and the elements that they refer to (spec 3.4).

use crate::fields::Cursor;
use metatf::dynamic::{Item as Value, OwnedRecord, Schema};
use metatf::format::Interpretation;
use metatf_parser::schema::{Item, Leaf, LeafId, Record, Repeated};

/// A referenced element, as the index of its section and its offset in the section.
pub(crate) type Target = (usize, u64);

/// The leaves of each record that contain references. Metadata records can change this set.
pub(crate) struct Referring {
    schema: Schema,
    /// The leaves, by section and record.
    known: Vec<Vec<Leaves>>,
    /// The current generation. Leaves found in an earlier generation are invalid.
    generation: u64,
}

/// The leaves of a record that contain references.
#[derive(Clone, Default)]
struct Leaves {
    generation: u64,
    /// The leaves, each with the index of the section that it refers to.
    leaves: Vec<(LeafId, usize)>,
    /// Whether the position of a leaf varies between records.
    repeats: bool,
}

/// The offsets of the elements in a section.
#[derive(Default)]
pub(crate) struct Starts {
    /// The offset of the first bit.
    from: u64,
    bits: Vec<u64>,
}

impl Referring {
    pub(crate) fn new(schema: &Schema) -> Self {
        let sections = schema.dtd.sections.len();
        Self { schema: schema.clone(), known: vec![Vec::new(); sections], generation: 1 }
    }

    /// Discards all leaves, because interpretations may have changed.
    pub(crate) fn changed(&mut self) {
        self.generation += 1;
    }

    /// Returns the leaves of a record that contain references, each with the index of the section that it refers to.
    /// Returns `None` if they are unknown, or if their positions vary between records.
    #[inline]
    pub(crate) fn known(&self, section: usize, record: u16) -> Option<&[(LeafId, usize)]> {
        let known = self.known.get(section)?.get(usize::from(record))?;
        let is_plain = known.generation == self.generation && (!known.repeats || known.leaves.is_empty());
        is_plain.then_some(&*known.leaves)
    }

    /// Calls `visit` for each reference of a record, with the leaf and the referenced element. `interpretation` returns
    /// the current interpretation of a leaf.
    pub(crate) fn each(
        &mut self,
        (section, index): (usize, u16),
        owned: &OwnedRecord,
        interpretation: impl Fn(u8) -> Option<Interpretation>,
        visit: &mut dyn FnMut(LeafId, Target),
    ) {
        let Some(record) = self.schema.dtd.records.get(usize::from(index)) else { return };
        let Some(of_section) = self.known.get_mut(section) else { return };
        if of_section.is_empty() {
            of_section.resize_with(self.schema.dtd.records.len(), Leaves::default);
        }
        let Some(known) = of_section.get_mut(usize::from(index)) else { return };
        if known.generation != self.generation {
            known.generation = self.generation;
            known.repeats = record.leaves.iter().any(|leaf| leaf.repeated);
            known.leaves.clear();
            for (id, leaf) in (0..=u8::MAX).zip(&record.leaves) {
                if let (false, Some(Interpretation::SectionOffset(number))) = (leaf.is_tag(), interpretation(id)) {
                    known.leaves.extend(self.schema.format.section_index(number).map(|target| (LeafId(id), target)));
                }
            }
        }
        if known.leaves.is_empty() {
            return;
        }
        each_value(&mut Cursor::new(record, owned), &record.items, &mut |_, value, id| {
            if let (Value::Number(offset), Some((_, target))) =
                (value, known.leaves.iter().find(|(leaf, _)| *leaf == id))
            {
                visit(id, (*target, offset));
            }
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap_or_else(|never| match never {});
    }
}

impl Starts {
    /// Adds an element. Elements must be added in order.
    pub(crate) fn add(&mut self, offset: u64) {
        if self.bits.is_empty() {
            self.from = offset;
        }
        let Some((word, bit)) = self.place(offset) else { return };
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    /// Returns whether an element begins at this offset.
    pub(crate) fn has(&self, offset: u64) -> bool {
        self.place(offset).is_some_and(|(word, bit)| self.bits.get(word).is_some_and(|word| word & bit != 0))
    }

    fn place(&self, offset: u64) -> Option<(usize, u64)> {
        let at = offset.checked_sub(self.from)?;
        Some((usize::try_from(at / 64).ok()?, 1 << (at % 64)))
    }
}

/// Visits the values of a record in order. Items nest at most 32 levels deep (spec 3.5), which bounds the recursion.
///
/// # Errors
/// Returns the error of `visit`.
pub(crate) fn each_value<E>(
    cursor: &mut Cursor<'_>,
    items: &[Item],
    visit: &mut dyn FnMut(&Leaf, Value<'_>, LeafId) -> Result<(), E>,
) -> Result<(), E> {
    for item in items {
        match item {
            Item::Leaf(id) => {
                if let Some((leaf, value)) = cursor.take(*id) {
                    visit(leaf, value, *id)?;
                }
            }
            Item::Nested { items, .. } => each_value(cursor, items, visit)?,
            Item::Repeat { count, body, .. } => {
                for _ in 0..cursor.count(*count) {
                    match body {
                        Repeated::Leaf(id) => {
                            if let Some((leaf, value)) = cursor.take(*id) {
                                visit(leaf, value, *id)?;
                            }
                        }
                        Repeated::Group(items) | Repeated::Record { items, .. } => each_value(cursor, items, visit)?,
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the name of a leaf, as in JSON lines.
pub(crate) fn leaf_name(record: &Record, leaf: LeafId) -> String {
    let named = crate::fields::names(record).into_iter().find(|(id, _)| *id == leaf);
    named.map_or_else(|| format!("leaf {}", leaf.0), |(_, name)| name)
}
