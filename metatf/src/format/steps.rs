//! Going through the layout of a record.

use crate::format::{Record, Step};

/// What is done at the steps of a record's layout.
pub trait Steps {
    /// Why it is left.
    type Error;

    /// A numeric leaf, or the tag.
    ///
    /// # Errors
    /// What ends the walk.
    fn number(&mut self, leaf: u8) -> Result<(), Self::Error>;

    /// A byte array.
    ///
    /// # Errors
    /// What ends the walk.
    fn bytes(&mut self, leaf: u8) -> Result<(), Self::Error>;

    /// How often the steps that come next are gone through; the leaf `count` has been met.
    ///
    /// # Errors
    /// What ends the walk.
    fn items(&mut self, count: u8) -> Result<u64, Self::Error>;
}

impl Record {
    /// Goes through the layout in the order of the bytes, from a step on: 1 where the tag is not part of it.
    ///
    /// # Errors
    /// The first of `steps`, which ends the walk.
    #[inline]
    pub fn walk<S: Steps>(&self, first: usize, steps: &mut S) -> Result<(), S::Error> {
        walk(self.steps.get(first..).unwrap_or_default(), first, steps)
    }
}

/// Goes through steps, the first of which has the index `offset`. Repetitions nest at most 32 deep (spec 3.5), so this recursion is
/// bounded.
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
