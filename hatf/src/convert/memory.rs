//! Converting what is in memory.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

use metatf::container::Sink;

use super::{Form, Input, Options, convert};
use crate::Result;
use crate::loss::Losses;

/// Converts a trace in memory, as [`convert`] does. Its form is `options.from`, or shows in its first bytes.
///
/// # Errors
/// As for [`convert`].
pub fn convert_bytes(bytes: &[u8], to: Form, options: &Options) -> Result<(Vec<u8>, Losses)> {
    let output = Shared::default();
    let input = Input::of("a trace in memory".to_owned(), Box::new(Cursor::new(bytes.to_vec())))?;
    let (_, losses) = convert(input, to, options, Box::new(output.clone()))?;
    let bytes = std::mem::take(&mut *output.0.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((bytes, losses))
}

/// An output whose bytes are still there when it is gone.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Shared {
    fn is_volatile(&self) -> bool {
        true
    }
}
