//! Plans the widths of a predicted leaf. Its codes are known before planning (`trial_encoding`), and each record needs
//! as many bytes as its greatest code, or 0 bytes if this code is 0. The resulting path is optimal.

use super::setting::{Path, Setting};
use metatf::Change;

/// Number of widths, 0 to 8.
const WIDTHS: usize = 9;

/// The widths required by a leaf's codes, record by record, from the start of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Codes {
    /// Runs of steps that need the same number of bytes, as the first step, the number of occurrences, and the width of
    /// the greatest code.
    runs: Vec<(u32, u64, u8)>,
    /// The number of steps so far.
    steps: u32,
    /// Whether the codes of the following steps are unknown.
    ended: bool,
}

impl Codes {
    /// Adds a record with this many occurrences.
    #[inline]
    pub(super) fn push(&mut self, items: u32, need: u8) {
        if self.ended {
            return;
        }
        match self.runs.last_mut() {
            Some((_, all, last)) if *last == need => *all += u64::from(items),
            _ => self.runs.push((self.steps, items.into(), need)),
        }
        self.steps += 1;
    }

    /// Marks the codes of the following steps as unknown, because the leaf is no longer predicted or its state has
    /// changed.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the width changes that minimize the size of the codes and their metadata. `header` is the size of a
    /// metadata record without its one-byte value.
    pub(super) fn path(&self, header: u32, start: Setting) -> Path {
        let change = u64::from(header) + 1;
        let seen = self.runs.iter().fold(1_u16 << (start.width & 15), |seen, run| seen | 1 << (run.2 & 15));
        let used = |width: usize| seen >> width & 1 == 1;
        let mut costs = [u64::MAX / 2; WIDTHS];
        if let Some(cost) = costs.get_mut(usize::from(start.width)) {
            *cost = 0;
        }
        // For each run and width, the best width of the previous run.
        let mut from = Vec::with_capacity(self.runs.len());
        for &(_, items, need) in &self.runs {
            let (best, least) = (0..).zip(costs).min_by_key(|(_, cost)| *cost).unwrap_or((0, 0));
            let mut before = [0_u8; WIDTHS];
            for (width, (cost, before)) in costs.iter_mut().zip(&mut before).enumerate() {
                let stay = u8::try_from(width).unwrap_or(0);
                (*cost, *before) = if *cost <= least + change { (*cost, stay) } else { (least + change, best) };
                *cost = match used(width) && width >= usize::from(need) {
                    true => *cost + items * width as u64,
                    false => u64::MAX / 2,
                };
            }
            from.push(before);
        }
        let mut path = Path::new();
        let mut width = (0..).zip(costs).min_by_key(|(_, cost)| *cost).map_or(0, |(width, _): (u8, u64)| width);
        for (run, before) in self.runs.iter().zip(&from).rev() {
            let source = before.get(usize::from(width)).copied().unwrap_or(width);
            if source != width {
                path.push((run.0, Change::Width(width)));
                width = source;
            }
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metatf::format::Interpretation;

    fn setting(width: u8) -> Setting {
        Setting { interpretation: Interpretation::Predicted(0), width, remembered: width.max(1) }
    }

    /// Returns the number of bytes along a path, or `None` if a code does not fit.
    fn cost(needs: &[u8], header: u32, mut width: u8, path: &Path) -> Option<u64> {
        let mut sum = 0;
        let mut changes = path.iter().peekable();
        for (step, &need) in (0..).zip(needs) {
            while let Some((_, change)) = changes.next_if(|(at, _)| *at == step) {
                let Change::Width(new) = *change else { return None };
                width = new;
                sum += u64::from(header) + 1;
            }
            if need > width {
                return None;
            }
            sum += u64::from(width);
        }
        Some(sum)
    }

    /// Returns the minimum cost over all sequences of widths.
    fn cheapest(needs: &[u8], header: u32, start: u8) -> u64 {
        let mut costs: Vec<u64> = (0..=8).map(|w| if w == start { 0 } else { 1 << 40 }).collect();
        for &need in needs {
            let least = costs.iter().min().unwrap() + u64::from(header) + 1;
            costs = (0..=8_u8)
                .zip(costs)
                .map(|(w, cost)| if w >= need { cost.min(least) + u64::from(w) } else { 1 << 40 })
                .collect();
        }
        costs.into_iter().min().unwrap()
    }

    /// Tests all sequences of three runs with lengths around the break-even point of a width change.
    #[test]
    fn no_widths_are_cheaper() {
        let runs: Vec<(u8, usize)> =
            (0..3).flat_map(|need| [1, 4, 5, 6, 9, 10, 11, 12, 25].map(|count| (need, count))).collect();
        for n in 0..runs.len().pow(3) {
            let count = runs.len();
            let three = [n % count, n / count % count, n / count / count].map(|i| runs[i]);
            let needs: Vec<u8> = three.iter().flat_map(|&(need, count)| vec![need; count]).collect();
            let mut codes = Codes::default();
            needs.iter().for_each(|&need| codes.push(1, need));
            for (header, start) in [(4, 0), (4, 1), (4, 2), (10, 1)] {
                let path = codes.path(header, setting(start));
                assert_eq!(cost(&needs, header, start, &path), Some(cheapest(&needs, header, start)), "{needs:?}");
            }
        }
    }
}
