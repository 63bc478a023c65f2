//! Conversion of Python strings to UTF-8.

/// The characters of a string, with one, two or four bytes each.
pub(super) struct Characters<'a> {
    pub(super) width: usize,
    pub(super) bytes: &'a [u8],
}

impl Characters<'_> {
    fn iter(&self) -> impl Iterator<Item = char> {
        // An unpaired surrogate is not a character.
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        self.bytes
            .chunks_exact(self.width.max(1))
            .map(number)
            .map(|number| char::from_u32(number).unwrap_or('\u{fffd}'))
    }
}

/// A string of at most `N` bytes.
pub(super) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    /// Adds characters up to a maximum length, without splitting a character.
    pub(super) fn put(&mut self, characters: &Characters<'_>, most: usize) {
        for character in characters.iter() {
            let end = self.length + character.len_utf8();
            let Some(place) = self.bytes.get_mut(self.length..end).filter(|_| end <= most) else { return };
            character.encode_utf8(place);
            self.length = end;
        }
    }

    /// Terminates a part by a zero byte.
    pub(super) fn end(&mut self) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = 0;
            self.length += 1;
        }
    }

    pub(super) fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        let mut text = Text::<12>::new();
        text.put(&Characters { width: 1, bytes: &[b'a', 0xe9] }, 12);
        text.put(&Characters { width: 2, bytes: &[0xac, 0x20, 0, 0xd8] }, 12);
        text.end();
        assert_eq!(text.get(), "a\u{e9}\u{20ac}\u{fffd}\0".as_bytes());
        // There is room for two bytes.
        text.put(&Characters { width: 4, bytes: &[0x00, 0xf6, 0x01, 0, 97, 0, 0, 0] }, 12);
        text.put(&Characters { width: 1, bytes: b"bcd" }, 12);
        assert_eq!(text.get(), "a\u{e9}\u{20ac}\u{fffd}\0bc".as_bytes());
        text.end();
        assert_eq!(text.get().len(), 12);
    }
}
