//! Exclusions from a comparison, which are named fields and records, times, and the base of addresses.

use crate::field_names::FieldNames;
use metatf::dynamic::Schema;
use metatf_parser::schema::{Format, Leaf, Record};
use std::collections::HashMap;

/// The name that excludes fields with this name and all fields whose format is a time.
const TIME: &str = "time";
/// The name that selects the comparison of addresses by identity; see [`Addresses`].
const ADDRESS_BASE: &str = "address-base";

/// The parsed form of [`CompareOptions::ignore`](super::CompareOptions::ignore).
#[derive(Debug)]
pub(super) struct Ignored {
    names: FieldNames,
    times: bool,
    address_base: bool,
}

impl Ignored {
    pub(super) fn new(ignore: &[String]) -> Self {
        let has = |word: &str| ignore.iter().any(|name| name == word);
        let names: Vec<String> = ignore.iter().filter(|name| *name != ADDRESS_BASE).cloned().collect();
        Self { names: FieldNames::new(&names), times: has(TIME), address_base: has(ADDRESS_BASE) }
    }

    /// Returns whether a leaf is excluded.
    pub(super) fn leaf(&self, record: &Record, index: u16, leaf: &Leaf) -> bool {
        self.names.mean(record, index, &leaf.path) || self.times && is_time(leaf)
    }

    /// Returns whether a record is excluded.
    pub(super) fn record(&self, record: &Record) -> bool {
        self.names.mean_record(record)
    }

    /// Returns whether a leaf's values are addresses to compare by identity.
    pub(super) fn address(&self, leaf: &Leaf) -> bool {
        self.address_base && leaf.is_numeric() && (leaf.format == Format::Hex || leaf.name == "address")
    }

    /// Returns the names that match nothing in any of the schemas.
    pub(super) fn unknown(&self, schemas: &[&Schema]) -> Vec<String> {
        let mut unknown = self.names.unknown(schemas);
        let mut leaves = schemas.iter().flat_map(|schema| &schema.dtd.records).flat_map(|record| &record.leaves);
        if leaves.any(is_time) {
            unknown.retain(|name| name != TIME);
        }
        unknown
    }
}

fn is_time(leaf: &Leaf) -> bool {
    leaf.format.is_time()
}

/// Corresponding addresses of the two traces. Two addresses are equal if, since they were first seen together, neither
/// has corresponded to a third address. Therefore, moving a memory region makes no difference, but changing its layout
/// does.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    of_left: HashMap<u64, u64>,
    of_right: HashMap<u64, u64>,
}

impl Addresses {
    pub(super) fn same(&mut self, left: u64, right: u64) -> bool {
        // 0 means that there is no address, so it corresponds only to 0.
        if left == 0 || right == 0 {
            return left == right;
        }
        match (self.of_left.get(&left), self.of_right.get(&right)) {
            (None, None) => {
                self.of_left.insert(left, right);
                self.of_right.insert(right, left);
                true
            }
            (Some(&known), _) => known == right,
            (None, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    #[test]
    fn addresses_stand_for_each_other() {
        let mut addresses = Addresses::default();
        let mut same = |left, right| addresses.same(left, right);
        assert!(same(0x10, 0x510) && same(0x20, 0x920) && same(0x10, 0x510) && same(0, 0));
        assert!(!same(0x10, 0x920) && !same(0x30, 0x510) && !same(0, 0x510) && !same(0x30, 0));
        assert!(same(0x30, 0x530));
    }
}
