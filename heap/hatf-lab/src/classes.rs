//! Classes of values by power of two, which are 0, 1, 2 to 3, 4 to 7, and so on.

/// The number of classes.
pub const CLASSES: usize = 65;

/// Returns the class of a value, which is below [`CLASSES`].
#[must_use]
#[inline]
pub fn class_of(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()) as usize
}

/// Returns the smallest and largest value of a class. Larger numbers than the last class are treated as the last class.
#[must_use]
pub fn bounds(class: usize) -> (u64, u64) {
    match u32::try_from(class).unwrap_or(u64::BITS).min(u64::BITS) {
        0 => (0, 0),
        bits => (1 << (bits - 1), u64::MAX >> (u64::BITS - bits)),
    }
}

/// Formats the values of a class, such as `8..15`.
#[must_use]
pub fn range(class: usize) -> String {
    match bounds(class) {
        (from, to) if from == to => from.to_string(),
        (from, to) => format!("{from}..{to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_in_their_class() {
        for class in 0..CLASSES {
            let (from, to) = bounds(class);
            assert_eq!((class_of(from), class_of(to)), (class, class));
            assert_eq!(from.checked_sub(1).map(class_of), class.checked_sub(1));
        }
        assert_eq!((range(0), range(1), range(4)), ("0".to_owned(), "1".to_owned(), "8..15".to_owned()));
        assert_eq!(bounds(usize::MAX), bounds(CLASSES - 1));
    }
}
