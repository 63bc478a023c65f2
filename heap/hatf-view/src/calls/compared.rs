//! Allocations by function, compared between two traces.

use std::collections::{HashMap, HashSet};

use hatf_lab::sites::{Counts, Pair, pairs};
use hatf_trace::stacks::{Location, Stacks};

use super::groups::{Groups, title};
use super::passing::Folding;
use super::place::{GroupBy, Place};
use super::places::Places;
use crate::compare::{ModuleKey, ModuleKeys};

/// Maximum number of lines in the name of a function.
const LINES: usize = 3;

/// The identity of a function across traces, even if the program is in another directory, has another name or was built
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionKey<'p> {
    /// The name, or the offset in the module.
    name: &'p str,
    /// The name of the source file, if the module contains several functions with this name.
    file: &'p str,
    module: ModuleKey<'p>,
    /// The module's build ID, if the function has an offset instead of a name.
    build_id: &'p str,
}

/// The key of allocations without a known stack.
const UNKNOWN: FunctionKey<'static> = FunctionKey { name: "", file: "", module: ModuleKey::Path(""), build_id: "" };

/// Returns the keys of the groups of functions in each of the traces to compare, indexed by group number.
#[must_use]
pub fn function_keys<'p>(traces: &[&'p Places<'_>]) -> Vec<Vec<FunctionKey<'p>>> {
    let modules = ModuleKeys::new(traces.iter().map(|places| places.stacks()));
    let key = |(place, location): (&'p Place, Option<&'p Location>)| {
        let module = location.map_or(ModuleKey::Path(&place.module), |location| modules.key(location));
        let file = place.file.rsplit('/').next().unwrap_or_default();
        let named = FunctionKey { name: &place.name, file, module, build_id: "" };
        let Some(location) = location.filter(|location| location.functions.is_empty()) else { return named };
        let name = place.name.rsplit_once('+').map_or(&*place.name, |(_, offset)| offset);
        match &*location.build_id {
            "" => FunctionKey { name, ..named },
            build_id => FunctionKey { name, file, module: ModuleKey::Path(""), build_id },
        }
    };
    let keys = |places: &&'p Places<'_>| places.keys().iter().zip(places.locations()).map(key).collect();
    let mut keys: Vec<Vec<FunctionKey<'p>>> = traces.iter().map(keys).collect();
    // Omit the file if the name is enough, because only some of the traces may contain files.
    let without_file = |key: &FunctionKey<'p>| FunctionKey { file: "", ..*key };
    let mut ambiguous = HashSet::new();
    for keys in &keys {
        let mut files = HashMap::new();
        for key in keys.iter().filter(|key| !key.file.is_empty()) {
            if *files.entry(without_file(key)).or_insert(key.file) != key.file {
                ambiguous.insert(without_file(key));
            }
        }
    }
    for key in keys.iter_mut().flatten() {
        if !ambiguous.contains(&without_file(key)) {
            key.file = "";
        }
    }
    keys
}

impl<'s> Places<'s> {
    /// Returns the functions of two traces, grouped by function. A wrapper in one of the traces is folded in both, so
    /// that the functions of the traces can be compared.
    #[must_use]
    pub fn of_two(traces: [&'s Stacks; 2], folding: &Folding) -> [Self; 2] {
        let mut both = traces.map(|stacks| Self::new(stacks, folding, GroupBy::Function));
        let folded: Vec<Vec<bool>> = {
            let keys = function_keys(&both.each_ref());
            let wrappers: HashSet<_> = both
                .iter()
                .zip(&keys)
                .flat_map(|(places, keys)| {
                    places.keys().iter().zip(keys).filter(|(key, _)| places.wrappers().contains(key))
                })
                .map(|(_, key)| *key)
                .collect();
            keys.iter().map(|keys| keys.iter().map(|key| wrappers.contains(key)).collect()).collect()
        };
        for (places, folded) in both.iter_mut().zip(folded) {
            places.fold_also(&folded);
        }
        both
    }
}

/// Pairs the application functions of two traces. The name of a pair is the name in the second trace, if the function
/// occurs there.
#[must_use]
pub fn function_pairs(before: (&Places<'_>, &Groups), after: (&Places<'_>, &Groups)) -> Vec<Pair<String>> {
    let mut names = HashMap::from([(UNKNOWN, "unknown stack".to_owned())]);
    let mut keys = function_keys(&[before.0, after.0]).into_iter();
    let [before, after] = [before, after].map(|(places, groups)| {
        let known = places.keys().iter().zip(keys.next().unwrap_or_default()).zip(&groups.groups);
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
