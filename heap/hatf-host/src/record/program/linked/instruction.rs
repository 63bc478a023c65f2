//! Decodes the length of an x86-64 instruction, and the parts of it that depend on its position.
//!
//! The decoder is strict: it treats instructions as invalid if compilers do not generate them or the decoder does not
//! know them.

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// The length of the instruction in bytes.
    pub(super) length: usize,
    pub(super) kind: Kind,
}

/// The effect of moving the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The instruction stays the same.
    Plain,
    /// The instruction is padding after a function: a no-op or a trap.
    Padding,
    /// The instruction addresses memory by a 4-byte distance at offset `at`. `ends` is set if the instruction is a
    /// jump.
    Distance { at: usize, ends: bool },
    /// A branch to the instruction at distance `to` from its end. A short branch stores the distance in one byte.
    Branch { to: i64, branch: Branch, short: bool },
    /// The instruction stays the same, and execution never continues after it.
    End,
    /// The instruction cannot be moved.
    Fixed,
}

/// The type of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    Always,
    /// A conditional branch, with the condition code in the low four bits of its opcode.
    If(u8),
    Call,
    /// A branch on the count register. It has only a short form.
    Count,
}

/// The operands that follow an opcode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operands {
    None,
    /// An immediate of this many bytes.
    Number(usize),
    /// Registers and memory, and an immediate of this many bytes.
    Memory(usize),
    Unknown,
}

use Operands::{Memory, None as Nothing, Number, Unknown};

/// Maximum length of an instruction in bytes.
const LENGTH_MAX: usize = 15;

/// Decodes the instruction at the start of these bytes.
pub(super) fn decode(bytes: &[u8]) -> Option<Instruction> {
    let mut cursor = Cursor { bytes: bytes.get(..LENGTH_MAX).unwrap_or(bytes), at: 0 };
    let (mut small, mut repeated) = (false, false);
    let mut byte = cursor.next()?;
    while matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0xf0 | 0xf2 | 0xf3) {
        small |= byte == 0x66;
        repeated |= matches!(byte, 0xf2 | 0xf3);
        byte = cursor.next()?;
    }
    if matches!(byte, 0xc4 | 0xc5 | 0x62) {
        return vector(cursor, byte);
    }
    let mut wide = false;
    if byte & 0xf0 == 0x40 {
        wide = byte & 8 != 0;
        byte = cursor.next()?;
    }
    let full = if small && !wide { 2 } else { 4 };
    match byte {
        0x0f => return two_bytes(cursor),
        0x70..=0x7f => return cursor.branch(Branch::If(byte & 15), true),
        0xe0..=0xe3 => return cursor.branch(Branch::Count, true),
        // With this prefix, the distance has two bytes on some CPUs.
        0xe8 | 0xe9 if small => return None,
        0xe8 => return cursor.branch(Branch::Call, false),
        0xe9 => return cursor.branch(Branch::Always, false),
        0xeb => return cursor.branch(Branch::Always, true),
        0x90 if !repeated => return cursor.rest(Nothing, Kind::Padding),
        0xcc => return cursor.rest(Nothing, Kind::Padding),
        0xc3 => return cursor.rest(Nothing, Kind::End),
        0xc2 => return cursor.rest(Number(2), Kind::End),
        _ => {}
    }
    let operands = match byte {
        0x00..=0x3f => match byte & 7 {
            0..=3 => Memory(0),
            4 => Number(1),
            5 => Number(full),
            _ => Unknown,
        },
        0x50..=0x5f | 0x90..=0x99 | 0x9c..=0x9f | 0xa4..=0xa7 | 0xaa..=0xaf | 0xc9 | 0xf4 | 0xf5 | 0xf8..=0xfd => {
            Nothing
        }
        0x63 | 0x84..=0x8b | 0x8d | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe => Memory(0),
        0x68 | 0xa9 => Number(full),
        0x69 | 0x81 => Memory(full),
        0xc7 if cursor.extension()? == 0 => Memory(full),
        0xc6 if cursor.extension()? == 0 => Memory(1),
        0x6a | 0xa8 | 0xb0..=0xb7 => Number(1),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 => Memory(1),
        0xb8..=0xbf if wide => Number(8),
        0xb8..=0xbf => Number(full),
        // Two of these eight instructions have an immediate.
        0xf6 => Memory(usize::from(cursor.extension()? < 2)),
        0xf7 => Memory(if cursor.extension()? < 2 { full } else { 0 }),
        0xff => match cursor.extension()? {
            0 | 1 | 6 => Memory(0),
            4 => return cursor.rest(Memory(0), Kind::End),
            2 => return cursor.rest(Memory(0), Kind::Fixed),
            _ => Unknown,
        },
        _ => Unknown,
    };
    cursor.rest(operands, Kind::Plain)
}

/// Decodes instructions whose opcode begins with `0f`.
fn two_bytes(mut cursor: Cursor<'_>) -> Option<Instruction> {
    let byte = cursor.next()?;
    let operands = match byte {
        0x38 => {
            cursor.next()?;
            Memory(0)
        }
        0x3a => {
            cursor.next()?;
            Memory(1)
        }
        0x80..=0x8f => return cursor.branch(Branch::If(byte & 15), false),
        0x1f => return cursor.rest(Memory(0), Kind::Padding),
        0x05 | 0x0b => return cursor.rest(Nothing, Kind::Fixed),
        0x31 | 0xa2 => Nothing,
        other => of_map_1(other),
    };
    cursor.rest(operands, Kind::Plain)
}

/// Returns the operands for the second byte of an opcode, also for vector instructions.
fn of_map_1(byte: u8) -> Operands {
    match byte {
        0x77 | 0xc8..=0xcf => Nothing,
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => Memory(1),
        0x01
        | 0x0d
        | 0x10..=0x1f
        | 0x28..=0x2f
        | 0x40..=0x6f
        | 0x74..=0x76
        | 0x78..=0x7f
        | 0x90..=0x9f
        | 0xa3
        | 0xa5
        | 0xab
        | 0xad..=0xaf
        | 0xb0..=0xb8
        | 0xbb..=0xbf
        | 0xc0
        | 0xc1
        | 0xc3
        | 0xc7
        | 0xd0..=0xfe => Memory(0),
        _ => Unknown,
    }
}

/// Decodes instructions of AVX and AVX-512, which have their own prefix.
fn vector(mut cursor: Cursor<'_>, prefix: u8) -> Option<Instruction> {
    let first = cursor.next()?;
    let map = match prefix {
        0xc5 => 1,
        0xc4 => first & 0x1f,
        _ => first & 7,
    };
    for _ in 0..match prefix {
        0xc5 => 0,
        0xc4 => 1,
        _ => 2,
    } {
        cursor.next()?;
    }
    let byte = cursor.next()?;
    let operands = match map {
        1 => of_map_1(byte),
        2 => Memory(0),
        3 => Memory(1),
        _ => Unknown,
    };
    cursor.rest(operands, Kind::Plain)
}

/// A byte slice and a read position.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Cursor<'_> {
    fn next(&mut self) -> Option<u8> {
        self.at += 1;
        self.bytes.get(self.at - 1).copied()
    }

    /// Returns the three bits of the next byte that extend the opcode.
    fn extension(&self) -> Option<u8> {
        self.bytes.get(self.at).map(|byte| byte >> 3 & 7)
    }

    /// Reads the distance at the end of a branch instruction.
    fn branch(self, branch: Branch, short: bool) -> Option<Instruction> {
        let rest = self.bytes.get(self.at..)?;
        let (to, bytes) = if short {
            (i64::from(i8::from_le_bytes([*rest.first()?])), 1)
        } else {
            (i64::from(i32::from_le_bytes(*rest.first_chunk()?)), 4)
        };
        Some(Instruction { length: self.at + bytes, kind: Kind::Branch { to, branch, short } })
    }

    /// Reads everything that follows the opcode.
    fn rest(mut self, operands: Operands, kind: Kind) -> Option<Instruction> {
        let mut kind = kind;
        match operands {
            Unknown => return None,
            Nothing => {}
            Number(bytes) => self.at += bytes,
            Memory(bytes) => {
                let byte = self.next()?;
                let (mode, register) = (byte >> 6, byte & 7);
                let base = if mode != 3 && register == 4 { self.next()? & 7 } else { register };
                match (mode, register, base) {
                    (0, 5, _) => {
                        kind = match kind {
                            Kind::Fixed => Kind::Fixed,
                            other => Kind::Distance { at: self.at, ends: other == Kind::End },
                        };
                        self.at += 4;
                    }
                    (2, ..) | (0, _, 5) => self.at += 4,
                    (1, ..) => self.at += 1,
                    _ => {}
                }
                self.at += bytes;
            }
        }
        (self.at <= self.bytes.len()).then_some(Instruction { length: self.at, kind })
    }
}
