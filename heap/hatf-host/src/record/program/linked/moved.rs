//! Moves the first instructions of a function so that they can run elsewhere, because a jump will replace them.
//!
//! Everything uncertain is rejected: an instruction that is unknown or cannot be moved, a branch into the replaced
//! bytes, and a function that ends before them.

use std::fmt;

use hatf_record::linked::{FIXES_MAX, Fix, JUMP_BYTES, MOVED_MAX, TAKEN_MAX};

use super::instruction::{Branch, Kind, decode};

/// The reason why a function cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// An instruction at the beginning is unknown or cannot be moved.
    Instruction,
    /// The function is shorter than a jump.
    Short,
    /// A branch leads into the bytes that would be replaced.
    Branch,
    /// Another function begins in the bytes that would be replaced.
    Shared,
    /// The program selects one of several implementations when it starts.
    Chosen,
    /// The function's bytes are not in the file.
    Absent,
    /// The function is not for x86-64.
    Machine,
    /// There are too many functions.
    Many,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instruction => "begins with an instruction that cannot be moved",
            Self::Short => "is too short",
            Self::Branch => "contains a branch to its second instruction",
            Self::Shared => "overlaps another function",
            Self::Chosen => "is selected when the program starts",
            Self::Absent => "has no code in the program file",
            Self::Machine => "does not contain x86-64 code",
            Self::Many => "is one of more functions than can be recorded",
        })
    }
}

/// Moved instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// The size of the original instructions in bytes.
    pub(super) taken: usize,
    pub(super) code: [u8; MOVED_MAX],
    pub(super) length: usize,
    pub(super) fix: [Fix; FIXES_MAX],
    pub(super) fixes: usize,
}

/// The distance in bytes from a function's beginning up to which a short branch can reach the replaced bytes.
pub(super) const NEAR: usize = JUMP_BYTES + 127 + 2;

/// Moves the first instructions of a function at an address. `function` contains the bytes of the function, and
/// `filling` contains the padding after it.
pub(super) fn move_beginning(address: u64, function: &[u8], filling: &[u8]) -> Result<Moved, Refusal> {
    let mut moved = Moved { taken: 0, code: [0; MOVED_MAX], length: 0, fix: [Fix::default(); FIXES_MAX], fixes: 0 };
    let mut ended = false;
    while moved.taken < JUMP_BYTES {
        let Some(rest) = function.get(moved.taken..).filter(|rest| !rest.is_empty() && !ended) else {
            // Execution never reaches this instruction, so it is not moved.
            let at = moved.taken;
            let behind = function.get(at..).unwrap_or_default().iter().chain(filling).copied();
            let behind: Vec<u8> = behind.take(TAKEN_MAX).collect();
            let padding = decode(&behind).filter(|next| ended && next.kind == Kind::Padding).ok_or(Refusal::Short)?;
            moved.taken += padding.length;
            continue;
        };
        let instruction = decode(rest).ok_or(Refusal::Instruction)?;
        let bytes = rest.get(..instruction.length).ok_or(Refusal::Instruction)?;
        let next = address.wrapping_add((moved.taken + bytes.len()) as u64);
        match instruction.kind {
            Kind::Fixed => return Err(Refusal::Instruction),
            Kind::Plain | Kind::Padding | Kind::End => moved.push(bytes, None)?,
            Kind::Distance { at, .. } => {
                let distance = rest.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Refusal::Instruction)?;
                let target = next.wrapping_add_signed(i32::from_le_bytes(*distance).into());
                moved.push(bytes, Some((at, target)))?;
            }
            Kind::Branch { to, branch, .. } => {
                let target = next.wrapping_add_signed(to);
                match branch {
                    Branch::Always => moved.push(&[0xe9, 0, 0, 0, 0], Some((1, target)))?,
                    Branch::If(condition) => moved.push(&[0x0f, 0x80 | condition, 0, 0, 0, 0], Some((2, target)))?,
                    Branch::Call => {
                        // This is the last instruction: the called function returns to the original position after it.
                        moved.push(&[0xff, 0x35, 0, 0, 0, 0], Some((2, Fix::BEHIND)))?;
                        moved.push(&[0xe9, 0, 0, 0, 0], Some((1, target)))?;
                    }
                    Branch::Count => return Err(Refusal::Instruction),
                }
            }
        }
        ended = matches!(
            instruction.kind,
            Kind::End | Kind::Distance { ends: true, .. } | Kind::Branch { branch: Branch::Always, .. }
        );
        moved.taken += bytes.len();
    }
    if moved.taken > TAKEN_MAX {
        return Err(Refusal::Instruction);
    }
    no_branch_back(function)?;
    Ok(moved)
}

impl Moved {
    /// Appends an instruction. If it contains a relative displacement, `distance` is the offset of the displacement in
    /// the instruction and its target address.
    fn push(&mut self, bytes: &[u8], distance: Option<(usize, u64)>) -> Result<(), Refusal> {
        let end = self.length + bytes.len();
        self.code.get_mut(self.length..end).ok_or(Refusal::Instruction)?.copy_from_slice(bytes);
        if let Some((at, target)) = distance {
            let narrow = |place: usize| u8::try_from(place).map_err(|_| Refusal::Instruction);
            let fix = Fix { at: narrow(self.length + at)?, end: narrow(end)?, target };
            *self.fix.get_mut(self.fixes).ok_or(Refusal::Instruction)? = fix;
            self.fixes += 1;
        }
        self.length = end;
        Ok(())
    }
}

/// Checks that no short branch of the function leads into the replaced bytes. After an unknown instruction, every byte
/// may begin a branch.
fn no_branch_back(function: &[u8]) -> Result<(), Refusal> {
    let near = function.get(..NEAR).unwrap_or(function);
    let mut at = 0;
    let mut known = true;
    while at < near.len() {
        let rest = function.get(at..).unwrap_or_default();
        let instruction = decode(rest).filter(|_| known);
        let branch = match instruction.map(|instruction| (instruction.length, instruction.kind)) {
            Some((length, Kind::Branch { to, .. })) => Some((length, to)),
            Some(_) => None,
            None => match *rest {
                [0x70..=0x7f | 0xe0..=0xe3 | 0xeb, to, ..] => Some((2, i64::from(to.cast_signed()))),
                _ => None,
            },
        };
        if let Some((length, to)) = branch {
            let target = (at + length) as i64 + to;
            if (1..JUMP_BYTES as i64).contains(&target) {
                return Err(Refusal::Branch);
            }
        }
        known &= instruction.is_some();
        at += instruction.map_or(1, |instruction| instruction.length);
    }
    Ok(())
}
