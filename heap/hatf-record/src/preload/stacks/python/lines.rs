//! Line numbers of instructions from the table in a code object (`co_linetable`), in the format used since Python 3.11:
//! `Objects/locations.md`.
//!
//! An entry begins with a byte whose highest bit is set; the other bytes of the entry have it cleared. This byte
//! contains the number of instructions covered by the entry, and the encoding of the line difference.

/// Returns the line of an instruction, given by its number, or 0 if it has no line.
pub(super) fn line_of(table: &[u8], first: u32, instruction: usize) -> u32 {
    const LONG: u8 = 14;
    const NO_COLUMNS: u8 = 13;
    let (mut line, mut passed, mut at) = (i64::from(first), 0, 0);
    while let Some(head) = table.get(at) {
        let form = head >> 3 & 15;
        line += match form {
            LONG | NO_COLUMNS => signed(table.get(at + 1..).unwrap_or_default()),
            10..=12 => i64::from(form - 10),
            _ => 0,
        };
        passed += usize::from(head & 7) + 1;
        if instruction < passed {
            // The last encoding means that the instruction belongs to no line.
            return if form == 15 { 0 } else { u32::try_from(line).unwrap_or(0) };
        }
        at += 1;
        while table.get(at).is_some_and(|byte| byte & 0x80 == 0) {
            at += 1;
        }
    }
    0
}

/// Reads a number in six-bit pieces, lowest first. The lowest bit is the sign.
fn signed(bytes: &[u8]) -> i64 {
    let (mut value, mut shift) = (0_u32, 0);
    for byte in bytes.iter().take(5) {
        value |= u32::from(byte & 63).wrapping_shl(shift);
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
    }
    let number = i64::from(value >> 1);
    if value & 1 == 0 { number } else { -number }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPython 3.11's output for `def f():`, `x = [` and so on: `f.__code__.co_linetable`, and the result of
    /// `co_positions`.
    #[test]
    fn lines() {
        let entry = |form: u8, length: u8| 0x80 | form << 3 | (length - 1);
        // A short form on the first line, the next line, five lines back (long), nothing, and a line without columns.
        let table = [
            entry(0, 1),
            0x12,
            entry(11, 3),
            4,
            9,
            entry(14, 2),
            11,
            0,
            1,
            2,
            entry(15, 8),
            entry(13, 1),
            0x40 | 0x10,
            2,
        ];
        let lines = [0, 1, 3, 4, 5, 6, 13, 14, 15, 1000].map(|instruction| line_of(&table, 7, instruction));
        // 11 is -5. The pieces 0x10 and 2 are 16 + 128 = 144, which is 72 lines ahead.
        assert_eq!(lines, [7, 8, 8, 3, 3, 0, 0, 75, 0, 0]);
        assert_eq!(line_of(&[], 1, 0), 0);
        // Numbers that no compiler produces.
        for byte in 0..=255 {
            line_of(&[byte; 40], u32::MAX, 300);
            line_of(&[0x80 | 14 << 3, byte], 0, 0);
        }
        assert_eq!(line_of(&[entry(14, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f], 1, 0), 0);
    }
}
