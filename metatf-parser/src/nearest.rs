//! Finds the known name closest to a misspelled name.

use crate::vocabulary::Property;

/// Returns the candidate closest to `name` if it is close enough.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() + 1) / 3;
    candidates
        .into_iter()
        .take(1000)
        .filter(|c| c.len().abs_diff(name.len()) <= limit && c.len() <= 64)
        .map(|c| (distance(name, c), c))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, c)| c)
}

/// Returns the property whose name differs in at most two letters, or at most half of the letters if the name is short.
pub(crate) fn near_property(name: &str) -> Option<Property> {
    let off = |property: Property| {
        let known = property.name();
        let limit = (known.len() / 2).min(2);
        let near = known.len().abs_diff(name.len()) <= limit && !share_few_letters(name, known, limit);
        near.then(|| (distance(name, known), property)).filter(|(off, _)| *off <= limit)
    };
    Property::ALL.iter().filter_map(|property| off(*property)).min().map(|(_, property)| property)
}

/// Returns true if more than `limit` letters of either ASCII name do not occur in the other name. This cheap check
/// rejects most pairs of names.
fn share_few_letters(a: &str, b: &str, limit: usize) -> bool {
    let letters = |name: &str| name.bytes().fold(0_u32, |set, byte| set | 1 << (byte & 31));
    let (of_a, of_b) = (letters(a), letters(b));
    let lacks = |of: u32, other: u32| (of & !other).count_ones() as usize > limit;
    a.is_ascii() && b.is_ascii() && (lacks(of_a, of_b) || lacks(of_b, of_a))
}

/// Returns the case-insensitive optimal string alignment distance, which counts insertions, deletions, replacements and
/// swaps of adjacent letters.
fn distance(a: &str, b: &str) -> usize {
    let lower = |name: &str| -> Vec<char> { name.chars().flat_map(char::to_lowercase).collect() };
    let (a, b) = (lower(a), lower(b));
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let (mut before, mut row) = (last.clone(), last.clone());
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row[j] = best;
        }
        std::mem::swap(&mut before, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names() {
        assert_eq!(nearest("adress", ["size", "address"]), Some("address"));
        assert_eq!(nearest("sectionoffset", ["sectionOffset"]), Some("sectionOffset"));
        assert_eq!(nearest("q", ["address"]), None);
        assert_eq!(near_property("WIDHT"), Some(Property::Width));
        assert_eq!(near_property("interpretaton"), Some(Property::Interpretation));
        assert_eq!(near_property("x12"), None);
        assert!(share_few_letters("x12", "doc", 1) && !share_few_letters("wdith", "Width", 2));
        assert_eq!(distance("abcd", "abdc"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
