//! The resolver's working state, which consists of scopes and records.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::properties::NameLists;
use super::slots::Slots;
use crate::ast::{self, Setting, Typed};
use crate::schema::Origin;

/// Index into [`Model::records`].
pub(super) type RecordIndex = usize;
/// Index into [`Model::scopes`]; 0 is the global scope.
pub(super) type ScopeIndex = usize;

/// The predefined `vfield` (spec 3.6), which is the first record.
pub(super) const VFIELD: RecordIndex = 0;

/// The predefined tagged records, which are visible everywhere and cannot be changed (spec 3.1).
pub(super) const PREDEFINED_TAGGED: [&str; 3] = ["comment", "section", "metadata"];

/// The meaning of a name in a field list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Leaf,
    Record(RecordIndex),
    /// A tagged record, which cannot be nested. The mistake has been reported.
    Wrong,
}

/// The meaning of a field's type or of a type's definition.
#[derive(Clone, Copy)]
pub(super) enum Meaning<'a> {
    /// Only an interpretation.
    Nothing,
    /// A mistake that has been reported.
    Wrong,
    /// A predefined type.
    Predefined(&'a [Setting<'a>]),
    /// A type that the DTD defines, with the scope of its definition.
    Defined(ScopeIndex, &'a str),
    /// The predefined `text` without a length: a nested `vfield`, with the properties of its bytes.
    Text(&'a [Setting<'a>]),
    /// A nested record.
    Record(RecordIndex),
}

/// The types of a record's fields, or of a scope's definitions, sorted by name.
pub(super) type TypeMap<'a> = BTreeMap<&'a str, (&'a Typed<'a>, Meaning<'a>)>;

/// The meaning of a name in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    Nothing,
    Record(RecordIndex),
    PredefinedTagged,
}

pub(super) struct ScopeModel<'a> {
    pub(super) ast: &'a ast::Scope<'a>,
    /// The section number, which is 0 for the global scope; `None` if the number is invalid.
    pub(super) number: Option<u8>,
    pub(super) names: HashMap<&'a str, RecordIndex>,
    /// The scope's own records, in text order.
    pub(super) records: Vec<RecordIndex>,
    pub(super) slots: Slots<'a>,
    /// The types that the scope defines.
    pub(super) types: TypeMap<'a>,
    /// The element, if this is a stream section (spec 3.4).
    pub(super) stream: Option<RecordIndex>,
}

pub(super) struct RecordModel<'a> {
    pub(super) ast: &'a ast::Record<'a>,
    pub(super) scope: ScopeIndex,
    /// The origin of properties set in the record's block.
    pub(super) origin: Origin,
    /// Whether the record lists `tag` or sets `tag.value`.
    pub(super) tagged: bool,
    /// Whether the record lists `tag`.
    pub(super) lists_tag: bool,
    /// Whether the record's name is neither a duplicate nor predefined.
    pub(super) named: bool,
    /// Whether the record can be expanded because it neither nests itself nor nests too deeply.
    pub(super) sound: bool,
    /// Whether another record lists this record.
    pub(super) nested: bool,
    /// The meanings of the names in the field list, sorted by name.
    pub(super) fields: Vec<(&'a str, Field)>,
    pub(super) slots: Slots<'a>,
    /// The types of the fields that have one.
    pub(super) types: TypeMap<'a>,
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
    /// The tag width; `None` if the width set in the DTD is invalid.
    pub(super) tag_width: Option<u8>,
    pub(super) budget: Budget,
    pub(super) lists: NameLists,
    /// Names in the heads of definitions that could not be parsed.
    pub(super) unparsed: &'a HashSet<&'a str>,
}

impl<'a> Model<'a> {
    /// Looks up a name (spec 3.1). A section sees its own records and the global records.
    pub(super) fn visible(&self, scope: ScopeIndex, name: &str) -> Visible {
        if PREDEFINED_TAGGED.contains(&name) {
            return Visible::PredefinedTagged;
        }
        let own = self.scopes.get(scope).and_then(|s| s.names.get(name));
        let global = || self.scopes.first().and_then(|s| s.names.get(name));
        own.or_else(global).map_or(Visible::Nothing, |index| Visible::Record(*index))
    }

    /// Returns the tagged records that a section may contain in addition to predefined records (spec 3.1). Global
    /// records precede the section's own records. For a stream section, returns its element.
    pub(super) fn top_records(&self, scope: ScopeIndex) -> Vec<RecordIndex> {
        let Some(section) = self.scopes.get(scope) else { return Vec::new() };
        if let Some(element) = section.stream {
            return vec![element];
        }
        let global = self.scopes.first().filter(|_| scope != 0).map(|s| s.records.as_slice()).unwrap_or_default();
        let all = global.iter().chain(&section.records).copied();
        all.filter(|r| self.records.get(*r).is_some_and(|r| r.tagged && r.named)).collect()
    }

    /// Returns the top records (tagged records and stream elements) in the order of [`crate::schema::Dtd::records`].
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

/// Maximum size of the resolved schema in bytes. Nesting multiplies the fields of a short text, but memory use must
/// remain a small multiple of the input size (spec 7). The largest real DTDs need a few hundred KiB.
const MOST_BYTES: usize = 16 << 20;

/// The remaining part of [`MOST_BYTES`].
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Budget {
        Budget(MOST_BYTES)
    }

    /// Checks whether the budget was exhausted and this was reported.
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }

    /// Charges `bytes`, and returns whether the budget was sufficient.
    pub(super) fn charge(&mut self, bytes: usize) -> bool {
        match self.0.checked_sub(bytes) {
            Some(left) => self.0 = left,
            None => self.0 = 0,
        }
        self.0 > 0
    }
}
