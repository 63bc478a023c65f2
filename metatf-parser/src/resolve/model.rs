//! What the resolver knows about scopes and records while it works.

use std::collections::HashMap;

use super::properties::NameLists;
use super::slots::Slots;
use crate::ast;
use crate::schema::Origin;

/// Index in [`Model::records`].
pub(super) type RecordIndex = usize;
/// Index in [`Model::scopes`]; 0 is the global scope.
pub(super) type ScopeIndex = usize;

/// The predefined `vfield` (spec 3.6) is the first record.
pub(super) const VFIELD: RecordIndex = 0;

/// The predefined tagged records: visible everywhere, changed nowhere (spec 3.1).
pub(super) const PREDEFINED_TAGGED: [&str; 3] = ["comment", "section", "metadata"];

/// What a name in a record's field list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Leaf,
    Record(RecordIndex),
    /// A tagged record, which cannot be nested: reported.
    Wrong,
}

/// What a name means in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    Nothing,
    Record(RecordIndex),
    PredefinedTagged,
}

pub(super) struct ScopeModel<'a> {
    pub(super) ast: &'a ast::Scope<'a>,
    /// 0 for the global scope; `None` where the number is wrong.
    pub(super) number: Option<u8>,
    pub(super) names: HashMap<&'a str, RecordIndex>,
    /// Its own records in the order of the text.
    pub(super) records: Vec<RecordIndex>,
    pub(super) slots: Slots<'a>,
    /// The element, where this is a stream section (spec 3.4).
    pub(super) stream: Option<RecordIndex>,
}

pub(super) struct RecordModel<'a> {
    pub(super) ast: &'a ast::Record<'a>,
    pub(super) scope: ScopeIndex,
    /// What its block sets has this origin.
    pub(super) origin: Origin,
    /// Lists `tag` or sets `tag.value`.
    pub(super) tagged: bool,
    /// Lists `tag`.
    pub(super) lists_tag: bool,
    /// Its name is its own: not a duplicate, not a predefined one's.
    pub(super) named: bool,
    /// Can be expanded: nests neither itself nor too deep.
    pub(super) sound: bool,
    /// Some record lists it.
    pub(super) nested: bool,
    /// What the names in its list are, sorted by name.
    pub(super) fields: Vec<(&'a str, Field)>,
    pub(super) slots: Slots<'a>,
}

impl RecordModel<'_> {
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.get(self.place_of(name)?).map(|(_, field)| *field)
    }

    /// Returns the index of a name in `fields`.
    pub(super) fn place_of(&self, name: &str) -> Option<usize> {
        self.fields.binary_search_by(|(field, _)| (*field).cmp(name)).ok()
    }

    pub(super) fn name(&self) -> &str {
        self.ast.name.text
    }
}

pub(super) struct Model<'a> {
    pub(super) scopes: Vec<ScopeModel<'a>>,
    pub(super) records: Vec<RecordModel<'a>>,
    /// `None` where it is set to something wrong.
    pub(super) tag_width: Option<u8>,
    pub(super) budget: Budget,
    pub(super) lists: NameLists,
}

impl<'a> Model<'a> {
    /// Looks a name up (spec 3.1): a section sees its own records and the global ones.
    pub(super) fn visible(&self, scope: ScopeIndex, name: &str) -> Visible {
        if PREDEFINED_TAGGED.contains(&name) {
            return Visible::PredefinedTagged;
        }
        let own = self.scopes.get(scope).and_then(|s| s.names.get(name));
        let global = || self.scopes.first().and_then(|s| s.names.get(name));
        own.or_else(global).map_or(Visible::Nothing, |index| Visible::Record(*index))
    }

    /// Returns the tagged records that may stand in a section besides the predefined ones: global ones first, then its own
    /// (spec 3.1); or the element of a stream section.
    pub(super) fn top_records(&self, scope: ScopeIndex) -> Vec<RecordIndex> {
        let Some(section) = self.scopes.get(scope) else { return Vec::new() };
        if let Some(element) = section.stream {
            return vec![element];
        }
        let global = self.scopes.first().filter(|_| scope != 0).map(|s| s.records.as_slice()).unwrap_or_default();
        let all = global.iter().chain(&section.records).copied();
        all.filter(|r| self.records.get(*r).is_some_and(|r| r.tagged && r.named)).collect()
    }

    /// Everything that is laid out on its own: tagged records and stream elements, in the order of
    /// [`crate::schema::Dtd::records`].
    pub(super) fn all_tops(&self) -> Vec<RecordIndex> {
        let mut tops = Vec::new();
        for scope in &self.scopes {
            let is_top = |r: &&RecordIndex| {
                self.records.get(**r).is_some_and(|record| record.tagged) || scope.stream == Some(**r)
            };
            tops.extend(scope.records.iter().filter(is_top));
        }
        tops
    }
}

/// Bytes that the resolved schema may take: nesting multiplies the fields of a short text (spec 7: memory stays a small
/// multiple of the input; a schema of the largest DTDs in use takes a few hundred KiB).
const MOST_BYTES: usize = 16 << 20;

/// What is left of [`MOST_BYTES`].
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Budget {
        Budget(MOST_BYTES)
    }

    /// Checks whether nothing is left, which has been reported.
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }

    /// Checks whether `bytes` more are allowed.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        match self.0.checked_sub(bytes) {
            Some(left) => self.0 = left,
            None => self.0 = 0,
        }
        self.0 > 0
    }
}
