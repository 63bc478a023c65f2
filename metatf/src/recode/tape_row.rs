//! A tape's values as a row.

use crate::dynamic::{Datum, Tape};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Row;

/// Gives the values of a tape as a row.
pub(crate) struct TapeRow<'t> {
    tape: &'t Tape,
    next: usize,
}

impl<'t> TapeRow<'t> {
    pub(crate) fn new(tape: &'t Tape) -> Self {
        Self { tape, next: 0 }
    }

    fn take(&mut self) -> Result<&'t Datum> {
        let datum = self.tape.data().get(self.next);
        self.next += 1;
        datum.ok_or(Error::at(0, ErrorKind::Usage("the tape does not hold the record's values")))
    }
}

impl<'t> Row<'t> for TapeRow<'t> {
    type Error = Error;

    fn stop(&mut self, error: Error) -> Error {
        error
    }

    fn number(&mut self, _: u8) -> Result<u64> {
        match self.take()? {
            Datum::Number(value) => Ok(*value),
            Datum::Bytes(_) => {
                Err(Error::at(0, ErrorKind::Usage("the tape holds bytes where the record has a number")))
            }
        }
    }

    fn bytes(&mut self, _: u8) -> Result<&'t [u8]> {
        match self.take()? {
            datum @ Datum::Bytes(_) => Ok(self.tape.bytes(datum)),
            Datum::Number(_) => {
                Err(Error::at(0, ErrorKind::Usage("the tape holds a number where the record has bytes")))
            }
        }
    }

    fn items(&mut self, count: u64) -> Result<usize> {
        // As many as the tape holds at most, an item without leaves slow.
        let most = self.tape.data().len() as u64 + crate::record::FREE_ITEMS;
        usize::try_from(count.min(most))
            .map_err(|_| Error::at(0, ErrorKind::Usage("the tape has more items than values")))
    }
}
