//! The times for which a thread sleeps.

use std::time::Duration;

/// The growing times for which a thread sleeps while there is no work. It also looks for work without being woken: a
/// hook that was interrupted at an unlucky moment does not ring the bell, and a damaged spool has no bell.
#[derive(Debug)]
pub(crate) struct Naps(Duration);

impl Naps {
    /// The first and the longest nap.
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(20);

    pub(crate) fn new() -> Self {
        Self(Self::FIRST)
    }

    /// Returns the length of the next nap.
    pub(crate) fn next_length(&mut self) -> Duration {
        let next = (self.0 * 4).min(Self::LONGEST);
        std::mem::replace(&mut self.0, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_grow() {
        let mut naps = Naps::new();
        let lengths: Vec<_> = (0..7).map(|_| naps.next_length().as_millis()).collect();
        assert_eq!(lengths, [20, 80, 320, 1280, 5120, 20_000, 20_000]);
    }
}
