//! Numbers in LEB128: seven bits per byte, the least significant first. Bit 7 means that more bytes follow.

/// Writes a number in LEB128.
#[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
pub(crate) fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number in LEB128. Returns `None` if it is truncated or has more than 64 bits.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7F);
        number |= bits << shift;
        if byte < 0x80 {
            return (shift < 63 || bits <= 1).then_some(number);
        }
    }
    None
}

/// Reads a number of at most 5 bytes, as filters 2 to 4 store them. Returns a description of an invalid number.
pub(crate) fn read_short(bytes: &mut &[u8]) -> Result<usize, &'static str> {
    let mut number = 0_usize;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("a number is truncated")?;
        *bytes = rest;
        number |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number is too large")
}
