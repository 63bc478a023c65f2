//! A table of strings and records that refer to them: `dev/benches/schemas/names.dtd`.

use crate::Result;
use metatf_derive::metatf;

#[metatf(dtd = "schemas/names.dtd")]
mod format {}

use format::{Trace, UseOf, Writer};

/// Returns 20,000 file paths of 20 to 60 bytes.
#[must_use]
pub fn distinct() -> Vec<String> {
    const FOLDERS: [&str; 8] = ["src", "include", "lib", "tests", "build", "generated", "third_party", "tools"];
    let mut below = below();
    (0..20_000)
        .map(|n| {
            let (a, b) = (FOLDERS[below(8)], FOLDERS[below(8)]);
            format!("/home/project/{a}/{b}/{:0>width$}.c", n, width = 1 + below(24))
        })
        .collect()
}

/// Returns this many uses of names. A few names are frequent, and most are rare.
#[must_use]
pub fn uses(names: &[String], count: usize) -> Vec<&str> {
    let (mut below, n) = (below(), names.len());
    // The product of two draws is more often near 0 than near the end.
    (0..count).map(|_| &*names[below(n) * below(n) / n]).collect()
}

/// Returns a generator of numbers below a given limit.
fn below() -> impl FnMut(usize) -> usize {
    let mut state = 1_u64;
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    }
}

/// Returns a writer whose table contains all names.
///
/// # Errors
/// Never fails, because it writes to memory.
pub fn filled(names: &[&str]) -> Result<Names> {
    let mut names_writer = Names(Writer::new(Vec::new())?);
    names_writer.intern(names)?;
    Ok(names_writer)
}

/// A writer of names.
#[derive(Debug)]
pub struct Names(Writer<Vec<u8>>);

impl Names {
    /// Interns each name. Returns the sum of their offsets.
    ///
    /// # Errors
    /// Never fails, because it writes to memory.
    pub fn intern(&mut self, names: &[&str]) -> Result<u64> {
        let mut sum = 0;
        for name in names {
            sum += self.0.names().intern(name.as_bytes())?;
        }
        Ok(sum)
    }
}

/// Returns a trace with a record for each name.
///
/// # Errors
/// Never fails, because it writes to memory.
pub fn trace(names: &[&str]) -> Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new())?;
    for name in names {
        let name = writer.names().intern(name.as_bytes())?;
        writer.use_of(&UseOf { name })?;
    }
    Ok(writer.finish()?)
}

/// Looks up the name of each record. Returns the sum of their lengths.
///
/// # Errors
/// Returns the errors of reading.
pub fn lengths(trace: &[u8]) -> Result<u64> {
    let mut trace = Trace::from_slice(trace)?;
    let names = trace.names();
    let mut sum = 0;
    while let Some(record) = trace.next()? {
        let format::Record::Uses(format::Uses::UseOf(record)) = record;
        sum += names.get(record.name)?.vfield.len() as u64;
    }
    Ok(sum)
}
