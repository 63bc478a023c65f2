//! Determines which leaves share a previous value (spec 4), and assigns them to the cells of each section.

use std::collections::HashMap;

use super::leaves::{Resolved, ResolvedLeaf, Sharing};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::span::Span;

/// The previous-value cells used by one section's records.
pub(super) struct Cells {
    /// The cell of each leaf of each record.
    pub(super) cells: Vec<Vec<u32>>,
    pub(super) initials: Vec<u64>,
}

/// Sets of leaves that share a previous value, implemented by union-find with path halving.
struct Sets(Vec<usize>);

impl Sets {
    fn find(&mut self, mut at: usize) -> usize {
        while let Some(parent) = self.0.get(at).copied().filter(|p| *p != at) {
            let above = self.0.get(parent).copied().unwrap_or(parent);
            if let Some(slot) = self.0.get_mut(at) {
                *slot = above;
            }
            at = above;
        }
        at
    }

    /// Joins two sets. The smaller index remains the root.
    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        if let Some(slot) = self.0.get_mut(a.max(b)) {
            *slot = a.min(b);
        }
    }
}

/// Joins the leaves that share a previous value, and reports leaves with different initial values (spec 3.5).
pub(super) fn cells(records: &[&Resolved], report: &mut Reporter) -> Cells {
    let leaves: Vec<&ResolvedLeaf> = records.iter().flat_map(|r| &r.leaves).collect();
    let mut sets = Sets((0..leaves.len()).collect());
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut by_property: HashMap<(Span, &str), usize> = HashMap::new();
    for (index, leaf) in leaves.iter().enumerate().filter(|(_, l)| l.leaf.is_numeric()) {
        if matches!(leaf.sharing, Sharing::Name | Sharing::NameAndProperty(_)) {
            sets.join(index, *by_name.entry(&leaf.leaf.name).or_insert(index));
        }
        if let Sharing::Property(place) | Sharing::NameAndProperty(place) = leaf.sharing {
            sets.join(index, *by_property.entry((place, &leaf.leaf.name)).or_insert(index));
        }
    }
    let mut out = Cells { cells: Vec::new(), initials: Vec::new() };
    let mut numbers = vec![None; leaves.len()];
    let mut firsts: HashMap<u32, &ResolvedLeaf> = HashMap::new();
    let mut index = 0;
    for record in records {
        let mut cells = Vec::with_capacity(record.leaves.len());
        for leaf in &record.leaves {
            let fresh = u32::try_from(out.initials.len()).unwrap_or(u32::MAX);
            let set = numbers.get_mut(sets.find(index));
            let cell = set.map_or(fresh, |cell: &mut Option<u32>| *cell.get_or_insert(fresh));
            if cell == fresh {
                out.initials.push(0);
            }
            set_initial(cell, leaf, &mut firsts, &mut out.initials, report);
            cells.push(cell);
            index += 1;
        }
        out.cells.push(cells);
    }
    out
}

fn set_initial<'l>(
    cell: u32,
    leaf: &'l ResolvedLeaf,
    firsts: &mut HashMap<u32, &'l ResolvedLeaf>,
    initials: &mut [u64],
    report: &mut Reporter,
) {
    let Some(value) = leaf.leaf.interpretation.initial().filter(|_| !leaf.broken) else { return };
    let first = firsts.entry(cell).or_insert(leaf);
    let first_value = first.leaf.interpretation.initial().unwrap_or(value);
    if first_value != value {
        report.add(
            Draft::new(
                Code::InitialsDiffer,
                leaf.place,
                format!("`{}` shares a previous value that starts at {first_value}, not {value}", leaf.leaf.name),
            )
            .also(first.place, "the first initial value")
            .help(format!(
                "write `{LINE}` for the same initial value, or `{0}.previous = own;` to share nothing",
                leaf.leaf.name
            ))
            .line(leaf.place, format!("delta {first_value}")),
        );
    } else if let Some(slot) = usize::try_from(cell).ok().and_then(|c| initials.get_mut(c)) {
        *slot = value;
    }
}
