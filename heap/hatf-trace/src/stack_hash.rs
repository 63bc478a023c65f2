//! Stack hashes that are the same wherever a build of a program runs, because they are computed from the build ID and
//! offset of each frame rather than its address.
//!
//! Exported tables contain these hashes, so the algorithm must not change. `docs/heap-tables.md` describes it with an
//! example. A frame hash is SipHash-2-4 with an all-zero key over these bytes:
//!
//! | frame | first byte | following bytes |
//! | --- | --- | --- |
//! | in a module with a build ID | 1 | the bytes of the build ID, the offset |
//! | in a module without a build ID | 2 | the file name of the module, the offset |
//! | a Python frame with a name in the trace | 3 | the file, a zero byte, the function, a zero byte, the line |
//! | any other frame, such as code generated at run time | 4 | |
//!
//! Offsets and lines are 8-byte little-endian integers. A stack hash is computed by the same function over the hashes
//! of the frames, innermost frame first, as 8-byte little-endian integers. The empty stack, which represents an unknown
//! stack, has the hash 0.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::stack_hash::{frame_hash, stack_hash};
//! use hatf_trace::stacks::Location;
//!
//! let libc = Location { build_id: "0a1b".to_owned(), offset: 0x1010, ..Location::default() };
//! let program = Location { module: "/usr/bin/program".to_owned(), offset: 0x2001, ..Location::default() };
//! assert_eq!(stack_hash([frame_hash(&libc), frame_hash(&program)]), 0xc961_ef8d_19b9_39de);
//! ```

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

use crate::location::Location;
use crate::stacks::{Stacks, is_python};

/// The hashes of a trace's stacks, each computed once.
///
/// # Examples
///
/// A stack has the same hash at any load address of its modules:
///
/// ```
/// use hatf_trace::EventKind;
/// use hatf_trace::stack_hash::StackHashes;
/// use hatf_trace::stacks::Stacks;
///
/// let hash_at = |bias: u64| {
///     let mut stacks = Stacks::default();
///     let name = b"0a1b /lib/libc.so.6";
///     stacks.note(&EventKind::ModuleLoad { bias, start: bias, end: bias + 0x4000, name });
///     let number = stacks.number(&[bias + 0x1010]);
///     StackHashes::default().of(&stacks, number)
/// };
/// assert_eq!(hash_at(0x5000), hash_at(0x7f00_0000_0000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct StackHashes {
    /// Frame hashes, indexed like the locations.
    frames: Vec<u64>,
    /// Stack hashes, indexed by stack number.
    stacks: Vec<u64>,
}

impl StackHashes {
    /// Returns the hash of the stack with this number, or 0 if there is no such stack or it is empty.
    #[inline]
    pub fn of(&mut self, stacks: &Stacks, number: u64) -> u64 {
        let Ok(index) = usize::try_from(number) else { return 0 };
        if index >= self.stacks.len() {
            self.extend(stacks);
        }
        self.stacks.get(index).copied().unwrap_or(0)
    }

    /// Hashes the locations and stacks added since the last call.
    #[cold]
    fn extend(&mut self, stacks: &Stacks) {
        let new = stacks.locations().get(self.frames.len()..).unwrap_or_default();
        self.frames.extend(new.iter().map(frame_hash));
        for number in self.stacks.len() as u64..stacks.count() {
            let frames = stacks.frames(number).iter();
            let hashes = frames.map(|frame| self.frames.get(*frame as usize).copied().unwrap_or(0));
            self.stacks.push(stack_hash(hashes));
        }
    }
}

/// Returns the hash of a stack from its frame hashes, innermost first.
#[must_use]
pub fn stack_hash(frames: impl IntoIterator<Item = u64>) -> u64 {
    let mut frames = frames.into_iter().peekable();
    if frames.peek().is_none() {
        return 0;
    }
    let mut hasher = SipHasher24::new();
    frames.for_each(|frame| hasher.write(&frame.to_le_bytes()));
    hasher.finish()
}

/// Returns the hash of a frame. Symbols affect only the hashes of Python frames, which have no module.
#[must_use]
pub fn frame_hash(location: &Location) -> u64 {
    let Location { address, module, build_id, offset, functions, .. } = location;
    let mut hasher = SipHasher24::new();
    let python = functions.first().filter(|_| is_python(*address));
    if !build_id.is_empty() {
        hasher.write(&[1]);
        hasher.write(&build_id_bytes(build_id));
        hasher.write(&offset.to_le_bytes());
    } else if !module.is_empty() {
        hasher.write(&[2]);
        hasher.write(location.module_name().as_bytes());
        hasher.write(&offset.to_le_bytes());
    } else if let Some(function) = python {
        hasher.write(&[3]);
        hasher.write(function.file.as_bytes());
        hasher.write(&[0]);
        hasher.write(function.name.as_bytes());
        hasher.write(&[0]);
        hasher.write(&function.line.to_le_bytes());
    } else {
        hasher.write(&[4]);
    }
    hasher.finish()
}

/// Decodes a string of hexadecimal digits. Any other string is returned as its own bytes.
fn build_id_bytes(build_id: &str) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = build_id.as_bytes().chunks(2).map(pair).collect();
    bytes.unwrap_or_else(|| build_id.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Function;
    use crate::stacks::PYTHON_FRAMES;

    fn location(build_id: &str, module: &str, offset: u64) -> Location {
        Location { build_id: build_id.to_owned(), module: module.to_owned(), offset, ..Location::default() }
    }

    /// Checks the example in `docs/heap-tables.md`.
    #[test]
    fn the_example_of_the_docs() {
        let inner = frame_hash(&location("0a1b", "/lib/libc.so.6", 0x1010));
        let outer = frame_hash(&location("", "/usr/bin/program", 0x2001));
        let hash = stack_hash([inner, outer]);
        assert_eq!(
            [inner, outer, hash].map(|hash| format!("{hash:016x}")),
            ["b7dd46f6ae381748", "4d274fd84ade2e2e", "c961ef8d19b939de"]
        );
        assert_eq!(stack_hash([]), 0);
    }

    #[test]
    fn addresses_paths_and_names_do_not_matter() {
        let one = location("0a1b", "/lib/a.so", 16);
        let function = Function { name: "f".to_owned(), file: "f.c".to_owned(), line: 1 };
        let named = Location { address: 99, functions: vec![function.clone()], is_program: true, ..one.clone() };
        assert_eq!(frame_hash(&one), frame_hash(&named));
        assert_eq!(frame_hash(&one), frame_hash(&location("0A1B", "/other/b.so", 16)));
        assert_eq!(frame_hash(&location("", "/lib/a.so", 16)), frame_hash(&location("", "/mnt/a.so", 16)));
        assert_ne!(frame_hash(&one), frame_hash(&location("0a1b", "/lib/a.so", 17)));
        assert_ne!(frame_hash(&one), frame_hash(&location("0a1c", "/lib/a.so", 16)));
        // Code generated at run time has the same hash regardless of its location and of whether it has a name.
        let jit = Location { address: 5, ..Location::default() };
        assert_eq!(
            frame_hash(&jit),
            frame_hash(&Location { address: 6, functions: vec![function.clone()], ..jit.clone() })
        );
        let python = |line| Location {
            address: PYTHON_FRAMES + line,
            functions: vec![Function { line, ..function.clone() }],
            ..Location::default()
        };
        assert_ne!(frame_hash(&python(1)), frame_hash(&python(2)));
        assert_ne!(frame_hash(&python(1)), frame_hash(&jit));
    }
}
