//! The fields of an event, as `describe.h` declares them for debuggers.

use super::put::{Put, stored};
use crate::emitters::Machine;

/// A field of an event, as declared in `describe.h`.
pub(crate) struct Field {
    pub(crate) kind: char,
    pub(crate) leaf: usize,
    pub(crate) bytes: usize,
    /// The C expression that computes a length or a count.
    pub(crate) value: Option<String>,
}

/// Returns the row of a leaf.
pub(super) fn field(put: Put, leaf: usize, leaves: &[Put]) -> Field {
    let bytes = stored(put).map_or(0, |(width, _)| usize::from(width));
    let (kind, bytes) = match put {
        Put::Constant(_, width) => ('k', usize::from(width)),
        Put::Length(argument) => {
            let is_measured =
                |leaf: &Put| matches!(leaf, Put::Argument(index, Machine::Text | Machine::Bytes) if *index == argument);
            ('l', leaves.iter().position(is_measured).unwrap_or(255))
        }
        Put::Argument(_, Machine::Signed(_)) => ('s', bytes),
        Put::Argument(_, Machine::Bool) => ('b', bytes),
        Put::Argument(_, Machine::Single) => ('f', bytes),
        Put::Argument(_, Machine::F32 | Machine::F64) => ('d', bytes),
        Put::Argument(_, Machine::Text) => ('t', 0),
        Put::Argument(_, Machine::Bytes) => ('x', 0),
        Put::Argument(_, Machine::Array(bytes)) => ('x', usize::try_from(bytes).unwrap_or(usize::MAX)),
        Put::Clock => ('c', bytes),
        Put::Argument(_, Machine::Unsigned(_) | Machine::Id)
        | Put::Thread
        | Put::Process
        | Put::Own
        | Put::Count(_)
        | Put::Reference(_) => ('u', bytes),
        Put::Measured(_) => ('v', 0),
        Put::Until(_, end) => ('z', usize::from(end)),
        // Records of strings and elements are in separate chunks, and a computed count stores nothing.
        Put::OwnId | Put::OwnLength | Put::OwnText | Put::Computed | Put::Encoded(..) | Put::EncodedLength(..) => {
            ('k', bytes)
        }
    };
    Field { kind, leaf, bytes, value: None }
}
