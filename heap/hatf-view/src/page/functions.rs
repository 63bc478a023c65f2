//! The functions in a report, numbered across all of its traces.

use std::collections::HashMap;

use super::Side;
use crate::calls::{Groups, function_keys, title};
use hatf_trace::short_name::short_name;

/// Maximum number of source lines in the name of a function.
const LINES: usize = 3;

/// The functions of all traces, each with a unique number.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// Function number of each group, by trace.
    of: Vec<Vec<u32>>,
    /// For each function, the last trace that contains the function, and the function's group in that trace.
    at: Vec<(usize, u32)>,
}

impl Functions {
    /// Numbers the functions. The functions of two traces are matched as in `hatf diff`.
    pub(super) fn new(sides: &[Side<'_>]) -> Self {
        let mut this = Self::default();
        let mut known = HashMap::new();
        // In a report on one trace, each group is a separate function.
        let places: Vec<_> = sides.iter().map(|side| side.places).collect();
        let keys = if sides.len() > 1 { function_keys(&places) } else { Vec::new() };
        for (trace, side) in sides.iter().enumerate() {
            let keys = keys.get(trace);
            let groups = 0..u32::try_from(side.places.keys().len()).unwrap_or(u32::MAX);
            let numbers = groups.map(|group| {
                let next = u32::try_from(this.at.len()).unwrap_or(u32::MAX);
                let key = keys.and_then(|keys| keys.get(group as usize)).copied();
                let number = key.map_or(next, |key| *known.entry(key).or_insert(next));
                match this.at.get_mut(number as usize) {
                    Some(at) => *at = (trace, group),
                    None => this.at.push((trace, group)),
                }
                number
            });
            let numbers = numbers.collect();
            this.of.push(numbers);
        }
        this
    }

    /// Returns the function number of a group in a trace.
    pub(super) fn of(&self, trace: usize, group: u32) -> Option<u32> {
        self.of.get(trace)?.get(group as usize).copied()
    }

    /// Returns a function's name, location and module.
    pub(super) fn name(&self, sides: &[Side<'_>], number: u32) -> [String; 3] {
        let at = self.at.get(number as usize).copied();
        let named = at.and_then(|(trace, group)| sides.get(trace).map(|side| name(side, group)));
        named.unwrap_or_default()
    }
}

fn name(side: &Side<'_>, group: u32) -> [String; 3] {
    let Some(key) = side.places.keys().get(group as usize) else { return Default::default() };
    let whole = title(key, &lines(side.groups, group));
    let short = short_name(&key.name);
    let place = whole.strip_prefix(&*short).and_then(|rest| rest.strip_prefix(" at ")).unwrap_or_default();
    let name = if key.name.is_empty() { whole.clone() } else { short.clone().into_owned() };
    [name, place.to_owned(), key.module_name().to_owned()]
}

/// Returns the lines of a function that allocated the most.
fn lines(groups: &Groups, group: u32) -> Vec<u64> {
    let mut lines: Vec<(u64, u64)> = groups.groups.get(group as usize).map_or_else(Vec::new, |group| {
        group.lines.iter().map(|(line, counts)| (counts.allocated.bytes, *line)).collect()
    });
    lines.sort_unstable_by(|a, b| b.cmp(a));
    lines.into_iter().take(LINES).map(|(_, line)| line).collect()
}
