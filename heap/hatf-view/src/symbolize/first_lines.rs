//! The first lines of functions.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use addr2line::gimli::{self, AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitHeader, UnitOffset, UnitRef};

use super::sections::Bytes;

/// Maximum number of references to follow between the entries of a function.
const ORIGINS: usize = 8;

/// The first lines of functions.
pub(super) struct FirstLines<'b> {
    own: Units<'b>,
    shared: Option<Units<'b>>,
}

impl<'b> FirstLines<'b> {
    pub(super) fn new(dwarf: Arc<Dwarf<Bytes<'b>>>) -> Self {
        let shared = dwarf.sup.clone().map(Units::new);
        Self { own: Units::new(dwarf), shared }
    }

    /// Returns the line of a function's declaration, or 0 if unknown.
    ///
    /// # Errors
    /// The function's entry is corrupt.
    pub(super) fn of(&self, unit: UnitRef<'_, Bytes<'b>>, entry: UnitOffset) -> gimli::Result<u32> {
        let (mut unit, mut entry, mut units) = (unit, entry, &self.own);
        for _ in 0..ORIGINS {
            let function = unit.entry(entry)?;
            if let Some(line) = function.attr_value(gimli::DW_AT_decl_line).and_then(|line| line.udata_value()) {
                return Ok(u32::try_from(line).unwrap_or(0));
            }
            let origins = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
            let Some(origin) = origins.into_iter().find_map(|name| function.attr_value(name)) else { break };
            let place = match origin {
                AttributeValue::UnitRef(entry) => Some((unit, entry)),
                AttributeValue::DebugInfoRef(entry) => units.find(entry),
                AttributeValue::DebugInfoRefSup(entry) => self.shared.as_ref().and_then(|shared| {
                    units = shared;
                    shared.find(entry)
                }),
                _ => None,
            };
            let Some(place) = place else { break };
            (unit, entry) = place;
        }
        Ok(0)
    }
}

/// A unit that is parsed on demand.
type Lazy<'b> = OnceCell<Option<Unit<Bytes<'b>>>>;

/// The units of a file. References can lead to other units, because link-time optimization inlines functions across
/// units.
struct Units<'b> {
    dwarf: Arc<Dwarf<Bytes<'b>>>,
    /// Units by offset.
    units: BTreeMap<usize, (UnitHeader<Bytes<'b>>, Lazy<'b>)>,
}

impl<'b> Units<'b> {
    fn new(dwarf: Arc<Dwarf<Bytes<'b>>>) -> Self {
        let (mut units, mut headers) = (BTreeMap::new(), dwarf.units());
        while let Ok(Some(header)) = headers.next() {
            units.extend(header.debug_info_offset().map(|offset| (offset.0, (header, OnceCell::new()))));
        }
        Self { dwarf, units }
    }

    /// Returns the unit that contains an entry, and the entry's offset in it.
    fn find(&self, entry: DebugInfoOffset) -> Option<(UnitRef<'_, Bytes<'b>>, UnitOffset)> {
        let (_, (header, unit)) = self.units.range(..=entry.0).next_back()?;
        let unit = unit.get_or_init(|| self.dwarf.unit(*header).ok()).as_ref()?;
        Some((UnitRef::new(&self.dwarf, unit), entry.to_unit_offset(&unit.header)?))
    }
}
