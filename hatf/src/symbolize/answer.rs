//! What is asked of images, and what is answered.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A program or a shared object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Image {
    /// The path of its file.
    pub path: String,
    /// Its build id in hexadecimal digits; empty: it has none, or any will do.
    pub build_id: String,
}

/// A function that a call lies in, and where in its source the call is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The name of the function as people write it.
    pub function: String,
    /// The name of the function as the linker has it; empty: it is longer than 16 KiB.
    pub symbol: String,
    /// The source file of the call; empty: not known.
    pub file: String,
    /// The line of the call, from 1; 0: not known.
    pub line: u32,
    /// The column of the call, from 1; 0: not known.
    pub column: u32,
    /// The line on which the function begins, from 1; 0: not known.
    pub first_line: u32,
    /// Whether the function was put into that of the next frame.
    pub inlined: bool,
}

/// What was missing to name the frames of an image, or to give their lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Missing {
    /// Its file is not there, or is another version.
    File(String),
    /// Its file may not be read, or is damaged.
    Image(String),
    /// It has no debug information, and none was found elsewhere: functions are those of its symbol table.
    DebugInformation,
    /// A part of its debug information is not there, or is damaged.
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

/// The answer about addresses of one image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The frames of each address, inlined functions first; none: not known.
    pub frames: Vec<Vec<Frame>>,
    /// What was missing.
    pub missing: Option<Missing>,
}

impl Answer {
    /// An answer of no frames.
    pub(super) fn without(addresses: usize, missing: Missing) -> Self {
        Self { frames: vec![Vec::new(); addresses], missing: Some(missing) }
    }
}
