//! What functions allocated in two traces, side by side.

use std::collections::HashMap;

use crate::compare::{Pair, pairs};
use crate::sites::Counts;

use super::groups::{Groups, title};
use super::places::Places;

/// Lines of a function that its name has.
const LINES: usize = 3;

/// What a function is matched by in another build, which lies in another folder, and has it at other lines: its name, its module, and
/// where it has no name but an offset, the module's build.
pub type FunctionKey<'p> = (&'p str, &'p str, &'p str);

/// What is of no known stack.
const UNKNOWN: FunctionKey<'static> = ("", "", "");

/// Returns what each group of functions is matched by, by its number.
#[must_use]
pub fn function_keys<'p>(places: &'p Places<'_>) -> Vec<FunctionKey<'p>> {
    let builds = places.builds_of_nameless();
    let build = |group: usize| builds.get(group).copied().unwrap_or_default();
    places.keys().iter().enumerate().map(|(group, key)| (&*key.name, key.module_name(), build(group))).collect()
}

/// Pairs the own functions of two traces, and names each as the second trace does, if it has it.
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
