//! Offsets of members in CPython's structures by version, as compiled from the headers of that version
//! (`Include/internal`).

/// Offsets in bytes.
pub(super) struct Layout {
    /// The location of a running thread's innermost frame.
    pub(super) innermost: Innermost,
    /// Members of a frame (`_PyInterpreterFrame`): its code, its caller, and its current instruction.
    pub(super) code: usize,
    pub(super) caller: usize,
    pub(super) instruction: usize,
    /// The marker of the last frame of a call to `_PyEval_EvalFrameDefault`.
    pub(super) last: Last,
    /// Members of a code object (`PyCodeObject`), in addition to the members common to all versions.
    pub(super) first_line: usize,
    pub(super) instructions: usize,
    /// The offset of the characters in an ASCII string and in any other string.
    pub(super) ascii: usize,
    pub(super) characters: usize,
}

/// The members of a thread's state (`PyThreadState`).
pub(super) enum Innermost {
    /// A structure (`_PyCFrame`) at `thread`, stored on the stack in the frame of `_PyEval_EvalFrameDefault`, which
    /// contains the innermost frame and the structure of the previous call.
    OnStack { thread: usize, frame: usize, before: usize },
    /// The innermost frame.
    Frame { thread: usize },
}

/// The marker of the last frame run by one call to `_PyEval_EvalFrameDefault`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// A nonzero byte in the frame.
    Marked { byte: usize },
    /// An additional frame after it, which does not belong to a function: it has a byte with this number, and is in the
    /// stack frame of `_PyEval_EvalFrameDefault`.
    Behind { byte: usize, number: u8 },
}

/// Members with the same offset in all supported versions.
pub(super) const TYPE: usize = 8;
pub(super) const SIZE: usize = 16;
pub(super) const STRING_HASH: usize = 24;
pub(super) const STRING_STATE: usize = 32;
pub(super) const BYTES: usize = 32;
pub(super) const CODE_FILE: usize = 112;
pub(super) const CODE_NAME: usize = 128;
pub(super) const CODE_LINES: usize = 136;

/// The value of `FRAME_OWNED_BY_CSTACK`.
const BY_STACK: u8 = 3;

static LAYOUTS: [Layout; 3] = [
    Layout {
        innermost: Innermost::OnStack { thread: 56, frame: 8, before: 16 },
        code: 32,
        caller: 48,
        instruction: 56,
        last: Last::Marked { byte: 68 },
        first_line: 72,
        instructions: 184,
        ascii: 48,
        characters: 72,
    },
    Layout {
        innermost: Innermost::OnStack { thread: 56, frame: 0, before: 8 },
        code: 0,
        caller: 8,
        instruction: 56,
        last: Last::Behind { byte: 70, number: BY_STACK },
        first_line: 68,
        instructions: 192,
        ascii: 40,
        characters: 56,
    },
    Layout {
        innermost: Innermost::Frame { thread: 72 },
        code: 0,
        caller: 8,
        instruction: 56,
        last: Last::Behind { byte: 70, number: BY_STACK },
        first_line: 68,
        instructions: 200,
        ascii: 40,
        characters: 56,
    },
];

/// Returns the layout of Python 3 with this minor version.
pub(super) fn of(minor: u32) -> Option<&'static Layout> {
    LAYOUTS.get(usize::try_from(minor.checked_sub(11)?).ok()?)
}
