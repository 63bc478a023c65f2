//! What the names of a DTD's text mean, by place: the definitions and uses that an editor asks for, and where each property of a
//! field is set. A text with mistakes has an index, too, of all declarations that could be parsed.

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::schema::{Leaf, Origin};
use crate::vocabulary::Property;

/// The names of a text, and the records that it lays out. [`index`](crate::index()) makes it.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Errors and warnings, as [`parse`](crate::parse) gives them.
    pub diagnostics: Vec<Diagnostic>,
    /// What has a name or a number.
    pub symbols: Vec<Symbol>,
    /// Where symbols stand in the text, in its order. Places do not overlap.
    pub uses: Vec<Use>,
    /// The global records, then those of each section.
    pub outline: Vec<Declared>,
    /// Records that stand alone in a trace: tagged ones, and elements of stream sections.
    pub records: Vec<LaidOut>,
}

/// What a [`Symbol`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// A section, by its name.
    Section,
    /// A section, by its number.
    SectionNumber,
    /// A record.
    Record,
    /// A field of a record, or all fields of a name that a section or the top level sets properties for.
    Field,
}

/// Index in [`Index::symbols`].
pub type SymbolId = usize;

/// Something that is declared in one place and named in others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// What it is.
    pub kind: SymbolKind,
    /// Its name, or its number as it is written.
    pub name: String,
    /// The comment above a section or a record.
    pub doc: Option<String>,
    /// Where it is declared: bytes of the text. Of a field that a section or the top level names, every list that has it. Empty for
    /// what is predefined, or is declared nowhere. In the order of the text.
    pub definitions: Vec<Range<usize>>,
    /// Symbols of one number have to be renamed together: fields that one property is for, records that one path may mean.
    pub family: usize,
    /// Whether the language defines it, so that it has no other name.
    pub predefined: bool,
}

/// What stands where a symbol is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its declaration.
    Definition,
    /// A property of it is set.
    Setting,
    /// Something else refers to it.
    Reference,
}

/// A place that names a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Bytes of the text.
    pub span: Range<usize>,
    /// What is named.
    pub symbol: SymbolId,
    /// What is done with it.
    pub role: Role,
}

/// A section or a record as it is declared, for an outline of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// A section, a record or a field.
    pub kind: SymbolKind,
    /// Its name.
    pub name: String,
    /// The number of a section, the names of a record's fields.
    pub detail: String,
    /// Bytes of the name.
    pub span: Range<usize>,
    /// Bytes of the declaration, with its block. Holds `span`.
    pub extent: Range<usize>,
    /// The records of a section, the fields of a record.
    pub children: Vec<Declared>,
}

/// A record, with every field that it has in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// Its name.
    pub name: String,
    /// Where that is declared.
    pub span: Range<usize>,
    /// Behind the `{` of its block, where properties of its fields go. `None`: it has no block.
    pub block: Option<usize>,
    /// Its tag. `None`: it has none, or a wrong one.
    pub tag: Option<u32>,
    /// Fields in the order of their bytes, those of nested records too.
    pub fields: Vec<ResolvedField>,
}

/// A field with the properties that it comes to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedField {
    /// Its place in the list of the record that declares it: the same for a record that several others nest.
    pub site: Range<usize>,
    /// Its name, width, interpretation and all else.
    pub leaf: Leaf,
    /// Whether something that has been reported keeps width or interpretation from being known.
    pub broken: bool,
    /// Bytes before it in the record. `None`: they are not the same in every record, or not known.
    pub offset: Option<u64>,
    /// The settings that give it properties, the one that counts of each.
    pub settings: Vec<Set>,
}

/// Where a field gets a property from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The property.
    pub property: Property,
    /// Bytes of path and property. `None`: the language sets it.
    pub span: Option<Range<usize>>,
    /// Bytes of the value. `None` where the language sets it.
    pub value_span: Option<Range<usize>>,
    /// The scope that sets it.
    pub scope: Origin,
}

impl ResolvedField {
    /// Returns where a property is set.
    #[must_use]
    pub fn set(&self, property: Property) -> Option<&Set> {
        self.settings.iter().find(|set| set.property == property)
    }
}

impl Index {
    /// Returns the scope of a setting in words: ``record `free` ``.
    #[must_use]
    pub fn scope(&self, set: &Set) -> String {
        match &set.scope {
            Origin::Block(record) => format!("record `{record}`"),
            Origin::Section(_) => {
                let holds =
                    |declared: &&Declared| set.span.as_ref().is_some_and(|span| declared.extent.contains(&span.start));
                let section = self.outline.iter().find(holds);
                section.map_or_else(|| "a section".to_owned(), |section| format!("section `{}`", section.name))
            }
            Origin::Tag | Origin::Global => "the top level".to_owned(),
        }
    }

    /// Returns the use at an offset, which may stand right behind it.
    #[must_use]
    pub fn use_at(&self, offset: usize) -> Option<&Use> {
        let behind = self.uses.partition_point(|found| found.span.start <= offset);
        let found = self.uses.get(behind.checked_sub(1)?)?;
        (offset <= found.span.end).then_some(found)
    }

    /// Returns the symbol that a use names.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id)
    }

    /// Returns the uses of a symbol, and of all that are renamed with it.
    pub fn references(&self, id: SymbolId) -> impl Iterator<Item = &Use> {
        let family = self.symbol(id).map(|symbol| symbol.family);
        self.uses.iter().filter(move |u| family.is_some() && self.symbol(u.symbol).map(|s| s.family) == family)
    }

    /// Returns the fields that are declared at one of a symbol's places, each in the records that have it.
    pub fn fields(&self, id: SymbolId) -> impl Iterator<Item = (&LaidOut, &ResolvedField)> {
        let sites = self.symbol(id).map(|symbol| symbol.definitions.as_slice()).unwrap_or_default();
        let all = self.records.iter().flat_map(|record| record.fields.iter().map(move |field| (record, field)));
        all.filter(|(_, field)| sites.binary_search_by_key(&field.site.start, |site| site.start).is_ok())
    }
}
