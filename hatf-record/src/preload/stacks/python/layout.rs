//! Where the members of CPython's structures lie, by version: what the compiler makes of the headers of that version (`Include/internal`).

/// Offsets in bytes.
pub(super) struct Layout {
    /// How the frame of a thread that runs is found.
    pub(super) innermost: Innermost,
    /// Of a frame (`_PyInterpreterFrame`): its code, the one that called it, and the instruction that it is at.
    pub(super) code: usize,
    pub(super) caller: usize,
    pub(super) instruction: usize,
    /// How the last frame of a call of `_PyEval_EvalFrameDefault` is known.
    pub(super) last: Last,
    /// Of a code object (`PyCodeObject`), beside those that all versions have.
    pub(super) first_line: usize,
    pub(super) instructions: usize,
    /// Where characters begin in a string of ASCII, and in another.
    pub(super) ascii: usize,
    pub(super) characters: usize,
}

/// What a thread's state (`PyThreadState`) has.
pub(super) enum Innermost {
    /// At `thread` a structure that lies on the stack in the frame of `_PyEval_EvalFrameDefault` (`_PyCFrame`), with the innermost frame, and the
    /// structure of the call before.
    OnStack { thread: usize, frame: usize, before: usize },
    /// The innermost frame.
    Frame { thread: usize },
}

/// How the last frame is known that one call of `_PyEval_EvalFrameDefault` runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// A byte of it that is not 0.
    Marked { byte: usize },
    /// By one more behind it, which is no function's: it has a byte with this number, and lies in the stack frame of `_PyEval_EvalFrameDefault`.
    Behind { byte: usize, number: u8 },
}

/// Members that lie in the same place in all versions here.
pub(super) const TYPE: usize = 8;
pub(super) const SIZE: usize = 16;
pub(super) const STRING_HASH: usize = 24;
pub(super) const STRING_STATE: usize = 32;
pub(super) const BYTES: usize = 32;
pub(super) const CODE_FILE: usize = 112;
pub(super) const CODE_NAME: usize = 128;
pub(super) const CODE_LINES: usize = 136;

/// `FRAME_OWNED_BY_CSTACK`.
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

/// Returns that of Python 3 with this minor version.
pub(super) fn of(minor: u32) -> Option<&'static Layout> {
    LAYOUTS.get(usize::try_from(minor.checked_sub(11)?).ok()?)
}
