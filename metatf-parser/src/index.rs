//! An index of a DTD for editors. It contains the definitions and uses of names, and the statements that set the
//! properties of each field. If the text contains mistakes, the index covers all declarations that parse.
//!
//! # Examples
//!
//! ```
//! let text = b"section heap 1 { free: (tag, size) { tag.value = 4; size.width = 2; size.interpretation = none; } }";
//! let index = metatf_parser::index(text);
//! let free = index.records.iter().find(|record| record.name == "free").ok_or("no record")?;
//! let size = free.fields.iter().find(|field| field.leaf.name == "size").ok_or("no field")?;
//! assert_eq!(size.offset, Some(1)); // After the tag.
//!
//! // The name occurs in the field list and in two statements.
//! let found = index.use_at(size.site.start).ok_or("no use")?;
//! assert_eq!(index.references(found.symbol).count(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use crate::diagnostic::Diagnostic;
use crate::schema::{Leaf, Origin};
use crate::vocabulary::Property;

/// The names in a text and the layout of its records, as built by [`index`](crate::index()).
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Errors and warnings, as returned by [`parse`](crate::parse).
    pub diagnostics: Vec<Diagnostic>,
    /// All named or numbered items.
    pub symbols: Vec<Symbol>,
    /// The places that name a symbol, in source order and without overlaps.
    pub uses: Vec<Use>,
    /// The global records, followed by the records of each section.
    pub outline: Vec<Declared>,
    /// Records that are not nested in other records: tagged records, and elements of stream sections.
    pub records: Vec<LaidOut>,
    /// The types in field lists and in the definitions of types, in source order.
    pub expansions: Vec<Expansion>,
}

/// A type with the statements for which it is shorthand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The byte range of the type, such as `u32 delta 0`.
    pub span: Range<usize>,
    /// The byte range of its first word.
    pub word: Range<usize>,
    /// The nested record, if the type is one.
    pub record: Option<String>,
    /// The statements, such as `time.width = 4;`.
    pub statements: Vec<String>,
}

/// The kind of a [`Symbol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// A section, referred to by name.
    Section,
    /// A section, referred to by number.
    SectionNumber,
    /// A record.
    Record,
    /// A field of a record. Fields with the same name are a single symbol if a section or the top level sets their
    /// properties.
    Field,
}

/// Index into [`Index::symbols`].
pub type SymbolId = usize;

/// An item that is declared in one place and named in other places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The kind of item.
    pub kind: SymbolKind,
    /// The name, or the number as written.
    pub name: String,
    /// The comment above a section or a record.
    pub doc: Option<String>,
    /// The byte ranges of the declarations, in source order. If a section or the top level sets properties of a field,
    /// the field has a range in every field list that contains it. Empty for a predefined or undeclared item.
    pub definitions: Vec<Range<usize>>,
    /// The number of the symbol's family. Symbols of a family must be renamed together, because one statement sets
    /// properties of all of them, or one path may refer to any of them.
    pub family: usize,
    /// Whether the symbol is predefined and cannot be renamed.
    pub predefined: bool,
}

/// The role of a symbol at a place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The symbol is declared here.
    Definition,
    /// A property of the symbol is set here.
    Setting,
    /// The symbol is referred to in another way.
    Reference,
}

/// A place that names a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The byte range in the text.
    pub span: Range<usize>,
    /// The symbol.
    pub symbol: SymbolId,
    /// The role of the symbol at this place.
    pub role: Role,
}

/// A declaration of a section or a record, for an outline of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The kind: a section, a record or a field.
    pub kind: SymbolKind,
    /// The name.
    pub name: String,
    /// The number of a section, or the field names of a record.
    pub detail: String,
    /// The byte range of the name.
    pub span: Range<usize>,
    /// The byte range of the declaration with its block, which includes `span`.
    pub extent: Range<usize>,
    /// The records of a section, or the fields of a record.
    pub children: Vec<Declared>,
}

/// The layout of a record, with every field that it contains in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// The name.
    pub name: String,
    /// The byte range of the name in its declaration.
    pub span: Range<usize>,
    /// The offset just after the `{` that opens the record's block; `None` if the record has no block.
    pub block: Option<usize>,
    /// The tag; `None` if the tag is missing or invalid.
    pub tag: Option<u32>,
    /// The fields in byte order, including the fields of nested records.
    pub fields: Vec<ResolvedField>,
}

/// A field with its resolved properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedField {
    /// The byte range of the field in the field list that declares it. If several records nest the declaring record,
    /// their fields share this range.
    pub site: Range<usize>,
    /// The name, width, interpretation and other attributes.
    pub leaf: Leaf,
    /// Whether a reported mistake makes it impossible to resolve the width or the interpretation.
    pub broken: bool,
    /// The offset in the record; `None` if it is unknown or differs between records.
    pub offset: Option<u64>,
    /// The settings in effect for this field, one per property.
    pub settings: Vec<Set>,
}

/// The origin of a field's property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The property.
    pub property: Property,
    /// The byte range of the path and the property name; `None` if the language sets the property.
    pub span: Option<Range<usize>>,
    /// The byte range of the value; `None` if the language sets the property.
    pub value_span: Option<Range<usize>>,
    /// The scope that sets the property.
    pub scope: Origin,
}

impl ResolvedField {
    /// Returns the setting of a property.
    #[must_use]
    pub fn set(&self, property: Property) -> Option<&Set> {
        self.settings.iter().find(|set| set.property == property)
    }
}

impl Index {
    /// Describes the scope of a setting, such as ``record `free` ``.
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

    /// Returns the use at an offset, which may be within the use or right after it.
    #[must_use]
    pub fn use_at(&self, offset: usize) -> Option<&Use> {
        let behind = self.uses.partition_point(|found| found.span.start <= offset);
        let found = self.uses.get(behind.checked_sub(1)?)?;
        (offset <= found.span.end).then_some(found)
    }

    /// Returns the symbol with this ID.
    #[must_use]
    pub fn symbol(&self, id: SymbolId) -> Option<&Symbol> {
        self.symbols.get(id)
    }

    /// Returns the uses of a symbol and of all symbols that must be renamed with it.
    pub fn references(&self, id: SymbolId) -> impl Iterator<Item = &Use> {
        let family = self.symbol(id).map(|symbol| symbol.family);
        self.uses.iter().filter(move |u| family.is_some() && self.symbol(u.symbol).map(|s| s.family) == family)
    }

    /// Returns the fields declared at any definition of a symbol, with each record that contains them.
    pub fn fields(&self, id: SymbolId) -> impl Iterator<Item = (&LaidOut, &ResolvedField)> {
        let sites = self.symbol(id).map(|symbol| symbol.definitions.as_slice()).unwrap_or_default();
        let all = self.records.iter().flat_map(|record| record.fields.iter().map(move |field| (record, field)));
        all.filter(|(_, field)| sites.binary_search_by_key(&field.site.start, |site| site.start).is_ok())
    }
}
