//! Traversal of a record's layout.

use crate::format::{Record, Step};

/// A visitor for the steps of a record's layout.
pub trait Steps {
    /// The error that ends the traversal.
    type Error;

    /// Visits a numeric leaf or the tag.
    ///
    /// # Errors
    /// Returns an error to end the traversal.
    fn number(&mut self, leaf: u8) -> Result<(), Self::Error>;

    /// Visits a byte array.
    ///
    /// # Errors
    /// Returns an error to end the traversal.
    fn bytes(&mut self, leaf: u8) -> Result<(), Self::Error>;

    /// Returns the number of repetitions of the following steps. The leaf `count` has already been visited.
    ///
    /// # Errors
    /// Returns an error to end the traversal.
    fn items(&mut self, count: u8) -> Result<u64, Self::Error>;
}

impl Record {
    /// Traverses the layout in byte order, starting with step `first`, which is 1 to skip the tag.
    ///
    /// # Errors
    /// Returns the first error from `steps`, which ends the traversal.
    #[inline]
    pub fn walk<S: Steps>(&self, first: usize, steps: &mut S) -> Result<(), S::Error> {
        walk(self.steps.get(first..).unwrap_or_default(), first, steps)
    }
}

/// Traverses steps, the first of which has index `offset`. Recursion is bounded, because repetitions nest at most 32
/// levels deep (spec 3.5).
#[inline]
fn walk<S: Steps>(layout: &[Step], offset: usize, steps: &mut S) -> Result<(), S::Error> {
    let mut at = 0;
    while let Some(step) = layout.get(at) {
        at += 1;
        match *step {
            Step::Number(leaf) => steps.number(leaf)?,
            Step::Bytes(leaf) => steps.bytes(leaf)?,
            Step::Repeat { count, end } => {
                let end = usize::from(end).saturating_sub(offset).max(at);
                let body = layout.get(at..end).unwrap_or_default();
                for _ in 0..steps.items(count)? {
                    walk(body, offset + at, steps)?;
                }
                at = end;
            }
        }
    }
    Ok(())
}
