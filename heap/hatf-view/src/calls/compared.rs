//! Allocations by function, compared between two traces.

use std::collections::HashMap;

use hatf_lab::sites::{Counts, Pair, pairs};

use super::groups::{Groups, title};
use super::places::Places;

/// Maximum number of lines in the name of a function.
const LINES: usize = 3;

/// The identity of a function across builds with different directories and line numbers. It consists of the name, the
/// module and, if the function has an offset instead of a name, the module's build ID.
pub type FunctionKey<'p> = (&'p str, &'p str, &'p str);

/// The key of allocations without a known stack.
const UNKNOWN: FunctionKey<'static> = ("", "", "");

/// Returns the key of each group of functions, indexed by group number.
#[must_use]
pub fn function_keys<'p>(places: &'p Places<'_>) -> Vec<FunctionKey<'p>> {
    let builds = places.builds_of_nameless();
    let build = |group: usize| builds.get(group).copied().unwrap_or_default();
    places.keys().iter().enumerate().map(|(group, key)| (&*key.name, key.module_name(), build(group))).collect()
}

/// Pairs the application functions of two traces. The name of a pair is the name in the second trace, if the function
/// occurs there.
#[must_use]
pub fn function_pairs(before: (&Places<'_>, &Groups), after: (&Places<'_>, &Groups)) -> Vec<Pair<String>> {
    let mut names = HashMap::from([(UNKNOWN, "unknown stack".to_owned())]);
    let [before, after] = [before, after].map(|(places, groups)| {
        let known = places.keys().iter().zip(function_keys(places)).zip(&groups.groups);
        let own = known.filter(|(_, group)| group.own.allocated.blocks > 0);
        let rows = own.map(|((place, key), group)| {
            let lines: Vec<u64> = group.lines.keys().copied().take(LINES).collect();
            names.insert(key, title(place, &lines));
            (key, group.own)
        });
        let mut rows: Vec<(FunctionKey<'_>, Counts)> = rows.collect();
        if groups.unknown.allocated.blocks > 0 {
            rows.push((UNKNOWN, groups.unknown));
        }
        rows
    });
    let name = |key: &FunctionKey<'_>| names.get(key).cloned().unwrap_or_default();
    let named = |pair: Pair<FunctionKey<'_>>| Pair { key: name(&pair.key), before: pair.before, after: pair.after };
    pairs(before, after).into_iter().map(named).collect()
}
