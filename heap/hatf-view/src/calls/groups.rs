//! Allocations by function, line, file or module, both by own calls and including those of called functions.

use std::collections::{BTreeMap, HashMap};

use hatf_lab::sites::{Amount, Counts, Measure};

use super::place::Place;
use super::places::Places;
use hatf_trace::short_name::short_name;

/// The number and counts of a group.
pub type Share = (u32, Counts);

/// The counts of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Allocations of stacks whose innermost application frame is in the group.
    pub own: Counts,
    /// Allocations of all stacks that contain the group.
    pub inclusive: Counts,
    /// Counts by line, for the group's own allocations. Line 0 means unknown.
    pub lines: BTreeMap<u64, Counts>,
    /// Counts by group number of the caller, for the group's own allocations.
    pub callers: BTreeMap<u32, Counts>,
}

/// The counts of all groups. The [module documentation](super) contains an example.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The groups, indexed by their numbers in [`Places::keys`].
    pub groups: Vec<Group>,
    /// Allocations without a known stack.
    pub unknown: Counts,
}

impl Groups {
    /// Sums the counts of stacks, which are indexed by stack number.
    #[must_use]
    pub fn new(places: &Places<'_>, sites: &[Counts]) -> Self {
        let mut this = Self { groups: vec![Group::default(); places.keys().len()], ..Self::default() };
        // The last stack in which each group occurred, so that a recursive function counts once.
        let mut met = vec![u64::MAX; this.groups.len()];
        for (site, counts) in (0..).zip(sites).filter(|(_, counts)| counts.allocated.blocks > 0) {
            let mut own = places.own(site).peekable();
            let Some(&first) = own.peek() else {
                this.unknown.add(counts);
                continue;
            };
            let innermost = places.group(first);
            let mut caller = None;
            for place in own {
                let group = places.group(place);
                caller = caller.or((group != innermost).then_some(group));
                let (Some(met), Some(group)) = (met.get_mut(group as usize), this.groups.get_mut(group as usize))
                else {
                    continue;
                };
                if std::mem::replace(met, site) != site {
                    group.inclusive.add(counts);
                }
            }
            if let Some(group) = this.groups.get_mut(innermost as usize) {
                group.own.add(counts);
                let line = places.place(first).map_or(0, |place| place.line);
                group.lines.entry(line).or_default().add(counts);
                caller.iter().for_each(|caller| group.callers.entry(*caller).or_default().add(counts));
            }
        }
        this
    }

    /// Returns the numbers of the groups with a nonzero measure in descending order. Groups are ranked by their own
    /// counts or, if `inclusive` is set, by their inclusive counts. `None` denotes allocations without a stack.
    #[must_use]
    pub fn ranked(&self, measure: Measure, inclusive: bool, by_blocks: bool) -> Vec<(Option<u32>, Amount)> {
        let rank = |amount: Amount| if by_blocks { amount.blocks } else { amount.bytes };
        let of = |group: &Group| if inclusive { group.inclusive } else { group.own }.get(measure);
        let known = (0..).zip(&self.groups).map(|(number, group)| (Some(number), of(group)));
        let all = known.chain([(None, self.unknown.get(measure))]);
        let mut ranked: Vec<_> = all.filter(|(_, amount)| rank(*amount) > 0).collect();
        ranked.sort_by_key(|(number, amount)| (std::cmp::Reverse(rank(*amount)), *number));
        ranked
    }
}

/// The callers and callees of a function.
///
/// # Examples
///
/// ```
/// use hatf_lab::sites::{Amount, Counts};
/// use hatf_trace::event::EventKind;
/// use hatf_trace::stacks::Stacks;
/// use hatf_view::calls::{Around, Folding, GroupBy, Places};
///
/// let mut stacks = Stacks::default();
/// for (frame, name) in [(0x20, "parse"), (0x30, "main")] {
///     stacks.note(&EventKind::Symbol { frame, line: 0, name: name.as_bytes() });
/// }
/// stacks.number(&[0x20, 0x30]);
/// let places = Places::new(&stacks, &Folding::default(), GroupBy::Function);
/// let allocated = Counts { allocated: Amount { blocks: 2, bytes: 100 }, ..Counts::default() };
///
/// let around = Around::new(&places, &[Counts::default(), allocated], "parse");
/// assert_eq!(around.total.own.allocated.bytes, 100);
/// let callers = around.callers.keys().flatten().map(|caller| places.keys()[*caller as usize].name.as_str());
/// assert_eq!(callers.collect::<Vec<_>>(), ["main"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The groups that match the function.
    pub groups: Vec<u32>,
    /// The own and the inclusive allocations of the function.
    pub total: Group,
    /// Allocations by caller. `None` means that the function has no caller.
    pub callers: HashMap<Option<u32>, Counts>,
    /// Allocations by callee. `None` denotes the function's own allocations.
    pub callees: HashMap<Option<u32>, Counts>,
}

impl Around {
    /// Collects the stacks through the groups whose function, file or module name contains `pattern`.
    #[must_use]
    pub fn new(places: &Places<'_>, sites: &[Counts], pattern: &str) -> Self {
        let is: Vec<bool> = places.keys().iter().map(|key| key.is(pattern)).collect();
        let is_it = |group: u32| is.get(group as usize) == Some(&true);
        let mut this =
            Self { groups: (0..).zip(&is).filter_map(|(group, is)| is.then_some(group)).collect(), ..Self::default() };
        for (site, counts) in (0..).zip(sites).filter(|(_, counts)| counts.allocated.blocks > 0) {
            let path: Vec<u32> = places.own(site).map(|place| places.group(place)).collect();
            let (Some(inner), Some(outer)) =
                (path.iter().position(|group| is_it(*group)), path.iter().rposition(|group| is_it(*group)))
            else {
                continue;
            };
            let called = inner.checked_sub(1).and_then(|at| path.get(at)).copied();
            this.total.inclusive.add(counts);
            this.callers.entry(path.get(outer + 1).copied()).or_default().add(counts);
            this.callees.entry(called).or_default().add(counts);
            if called.is_none() {
                this.total.own.add(counts);
                let line = places.own(site).next().and_then(|place| places.place(place)).map_or(0, |place| place.line);
                this.total.lines.entry(line).or_default().add(counts);
            }
        }
        this
    }
}

/// Formats a group as one line, which contains the function and its file, only the file, or only the module.
#[must_use]
pub fn title(key: &Place, lines: &[u64]) -> String {
    let known: Vec<String> = lines.iter().filter(|line| **line > 0).map(u64::to_string).collect();
    let known = if key.line > 0 { vec![key.line.to_string()] } else { known };
    let place = match (key.file.as_str(), known.as_slice()) {
        ("", _) => String::new(),
        (file, []) => file.to_owned(),
        (file, lines) => format!("{file}:{}", lines.join(",")),
    };
    match (&*short_name(&key.name), place.as_str()) {
        ("", "") if key.module.is_empty() => "in no module".to_owned(),
        ("", "") => key.module.clone(),
        ("", place) => place.to_owned(),
        // The name already includes the module.
        (name, "") if key.module.is_empty() || name.starts_with(key.module_name()) => name.to_owned(),
        (name, "") => format!("{name} in {}", key.module_name()),
        (name, place) => format!("{name} at {place}"),
    }
}
