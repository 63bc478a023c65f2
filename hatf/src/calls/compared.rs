//! What functions allocated in two traces, side by side.

use std::collections::HashMap;

use hatf_lab::compare::{Pair, pairs};
use hatf_lab::sites::Counts;

use super::groups::{Groups, title};
use super::passing::Folding;
use super::place::{GroupBy, Place};
use super::places::Places;
use crate::stacks::Stacks;

/// Lines of a function that its name has.
const LINES: usize = 3;

/// Pairs the own functions of two traces by name and module, and names each as the second trace does, if it has it.
#[must_use]
pub fn function_pairs(
    before: (&Stacks, &[Counts]),
    after: (&Stacks, &[Counts]),
    folding: &Folding,
) -> Vec<Pair<String>> {
    let mut names = HashMap::new();
    let [before, after] = [before, after].map(|(stacks, sites)| {
        let places = Places::new(stacks, folding, GroupBy::Function);
        let groups = Groups::new(&places, sites);
        let own = places.keys().iter().zip(&groups.groups).filter(|(_, group)| group.own.allocated.blocks > 0);
        let mut rows: Vec<_> = own
            .map(|(place, group)| {
                let lines: Vec<u64> = group.lines.keys().copied().take(LINES).collect();
                names.insert(key(place), title(place, &lines));
                (key(place), group.own)
            })
            .collect();
        if groups.unknown.allocated.blocks > 0 {
            rows.push((key(&Place::default()), groups.unknown));
        }
        rows
    });
    let name = |key: &(String, String)| names.get(key).cloned().unwrap_or_else(|| "stack not known".to_owned());
    let named = |pair: Pair<(String, String)>| Pair { key: name(&pair.key), before: pair.before, after: pair.after };
    pairs(before, after).into_iter().map(named).collect()
}

/// What a function is matched by: builds lie in other folders.
fn key(place: &Place) -> (String, String) {
    (place.name.clone(), place.module_name().to_owned())
}
