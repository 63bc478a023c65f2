//! The number of values that a leaf has in each record.

use super::{Item, LeafId, Record, Repeated};

/// The number of values that a leaf has in each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// Exactly one value, regardless of optional and repeated items before and after the leaf.
    Once,
    /// No value or one value.
    Optional,
    /// Any number of values.
    Repeated,
}

impl Record {
    /// Returns the number of values that a leaf has in each record.
    ///
    /// # Examples
    ///
    /// ```
    /// use metatf_parser::schema::{LeafId, Occurrence};
    ///
    /// let dtd = b"section s 1 { r: (tag, n, n*item, (n.value > 4)*rest, end) { tag.value = 4;
    ///     n.width = 1; n.interpretation = none; item.width = 1; item.interpretation = none;
    ///     rest.width = 1; rest.interpretation = none; end.width = 1; end.interpretation = none; } }";
    /// let dtd = metatf_parser::parse("s.dtd", dtd).dtd.ok_or("the DTD has errors")?;
    /// let record = dtd.records.last().ok_or("no record")?;
    /// let of = |name| record.leaf_at(&[name]).map(|(id, _)| record.occurrence(id));
    /// assert_eq!(of("item"), Some(Occurrence::Repeated));
    /// assert_eq!(of("rest"), Some(Occurrence::Optional));
    /// assert_eq!(of("end"), Some(Occurrence::Once));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn occurrence(&self, id: LeafId) -> Occurrence {
        self.find(&self.items, id, Occurrence::Once).unwrap_or(Occurrence::Once)
    }

    /// Finds a leaf among items that occur this often. Items nest at most 32 levels deep (spec 3.5), which bounds the
    /// recursion.
    fn find(&self, items: &[Item], id: LeafId, occurrence: Occurrence) -> Option<Occurrence> {
        items.iter().find_map(|item| match item {
            Item::Leaf(leaf) => (*leaf == id).then_some(occurrence),
            Item::Nested { items, .. } => self.find(items, id, occurrence),
            Item::Repeat { count, body, .. } => {
                let is_optional = self.is_optional(*count) && occurrence != Occurrence::Repeated;
                let occurrence = if is_optional { Occurrence::Optional } else { Occurrence::Repeated };
                match body {
                    Repeated::Leaf(leaf) => (*leaf == id).then_some(occurrence),
                    Repeated::Group(items) | Repeated::Record { items, .. } => self.find(items, id, occurrence),
                }
            }
        })
    }
}
