//! The names in a header that the names of structs must not repeat.

use crate::emitters::Emitters;
use crate::names::Scope;

/// The names of types and functions in a header.
pub(crate) struct Types {
    pub(super) names: Scope,
    /// The section and the name of each table.
    pub(super) tables: Vec<(u8, String)>,
}

impl Types {
    /// Returns the names that the parts of the header and the emitters use.
    pub(super) fn of(emitters: &Emitters, parts: &[&str]) -> Self {
        let mut scope = Scope::default();
        for text in parts {
            let words = text
                .split("pfx_")
                .skip(1)
                .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>());
            words.for_each(|word| drop(scope.take(&[word])));
        }
        let functions =
            emitters.events.iter().flat_map(|event| ["emit_", "store_"].map(|part| part.to_owned() + &event.name));
        let tables =
            emitters.tables.iter().flat_map(|event| ["intern_", "store_"].map(|part| part.to_owned() + &event.name));
        functions.chain(tables).for_each(|name| drop(scope.take(&[name])));
        let tables = emitters.tables.iter().map(|table| (table.section, table.name.clone())).collect();
        Self { names: scope, tables }
    }
}
