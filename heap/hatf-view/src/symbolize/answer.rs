//! Queries about images, and their answers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A program or a shared object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Image {
    /// The path of the file.
    pub path: String,
    /// The build ID in hexadecimal digits; empty if the image has no build ID or if any build ID is acceptable.
    pub build_id: String,
}

/// A function that contains a call, and the source position of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The demangled name of the function.
    pub function: String,
    /// The mangled name of the function; empty if it is longer than 16 KiB.
    pub symbol: String,
    /// The source file of the call; empty if unknown.
    pub file: String,
    /// The line of the call, from 1, or 0 if unknown.
    pub line: u32,
    /// The column of the call, from 1, or 0 if unknown.
    pub column: u32,
    /// The line on which the function begins, from 1, or 0 if unknown.
    pub first_line: u32,
    /// Whether the function was inlined into the function of the next frame.
    pub inlined: bool,
}

/// The reason that the frames of an image have no names or no lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Missing {
    /// The file does not exist or is another version.
    File(String),
    /// The file cannot be read or is corrupt.
    Image(String),
    /// The image contains no debug information, and no separate file was found. Functions come from the symbol table.
    DebugInformation,
    /// A part of the debug information is missing or corrupt.
    Part(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) | Self::Image(why) | Self::Part(why) => f.write_str(why),
            Self::DebugInformation => f.write_str("it has no debug information"),
        }
    }
}

/// The answer to a query about addresses in one image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The frames of each address, inlined functions first; empty if unknown.
    pub frames: Vec<Vec<Frame>>,
    /// The data that was missing, if any.
    pub missing: Option<Missing>,
}

impl Answer {
    /// Returns an answer without frames.
    pub(super) fn without(addresses: usize, missing: Missing) -> Self {
        Self { frames: vec![Vec::new(); addresses], missing: Some(missing) }
    }
}
