//! Guesses the size rule of an allocator from the positions of its first objects.

use super::classes::Rounding;
use hashbrown::HashMap;
use metatf_container::SizeRule;

/// Number of allocations to examine.
const ENOUGH: u32 = 4096;

/// For each size rule, counts the objects that begin where the rule expects the previous object, or the previous object
/// of the same class, to end.
#[derive(Clone, Debug)]
pub(crate) struct Guess {
    seen: u32,
    tallies: [Tally; 2],
}

#[derive(Clone, Debug, Default)]
struct Tally {
    rule: SizeRule,
    hits: u32,
    end: u64,
    ends: HashMap<u64, u64>,
}

impl Guess {
    pub(crate) fn new() -> Self {
        let tally = |rule| Tally { rule, ..Tally::default() };
        Self { seen: 0, tallies: [tally(SizeRule::Header), tally(SizeRule::Classes)] }
    }

    /// Records a new object. Once enough objects have been recorded, returns the rule that explains most of them.
    pub(crate) fn note(&mut self, size: u64, address: u64) -> Option<SizeRule> {
        for tally in &mut self.tallies {
            let round = tally.rule.round(size);
            let end = address.wrapping_add(round);
            let before = tally.ends.insert(round, end);
            tally.hits += u32::from(tally.end == address || before == Some(address));
            tally.end = end;
        }
        self.seen += 1;
        let [header, classes] = &self.tallies;
        let best = if classes.hits > header.hits { classes.rule } else { header.rule };
        (self.seen >= ENOUGH).then_some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_apart() {
        for rule in [SizeRule::Header, SizeRule::Classes] {
            let (mut guess, mut address) = (Guess::new(), 0x1000);
            let found = (0..ENOUGH).find_map(|i| {
                let size = u64::from(i * 37 % 400);
                let found = guess.note(size, address);
                address += rule.round(size);
                found
            });
            assert_eq!(found, Some(rule));
        }
    }
}
