//! Tokens that replace strings. The key and the string determine the token.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128 as _, SipHasher24 as SipHasher128};

/// Range of the number in a token, in decimal digits. A collision is unlikely below ten million strings.
const DIGITS: u64 = 10_u64.pow(15);

/// A generator of tokens with a keyed hash (SipHash-2-4). Without the key, nobody can guess strings by computing their
/// tokens.
#[derive(Clone, Copy)]
pub struct Tokens {
    key: (u64, u64),
}

impl Tokens {
    /// Creates a generator from a 16-byte key.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(key);
        #[expect(clippy::cast_possible_truncation, reason = "takes the halves of the key")]
        Self { key: (key as u64, (key >> 64) as u64) }
    }

    /// Creates a generator whose key is derived from a secret of any length.
    #[must_use]
    pub fn of_secret(secret: &[u8]) -> Self {
        let mut hasher = SipHasher128::new();
        hasher.write(secret);
        Self::new(hasher.finish128().as_u128().to_le_bytes())
    }

    /// Returns the number that replaces a string: a hash that depends on the key.
    #[must_use]
    pub fn number(&self, text: &[u8]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(text);
        hasher.finish()
    }

    /// Returns the token of a string, which is the prefix followed by digits. The token of an empty string is empty.
    #[must_use]
    pub fn token(&self, prefix: &str, text: &[u8]) -> String {
        if text.is_empty() {
            return String::new();
        }
        format!("{prefix}{:015}", self.number(text) % DIGITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_for_the_same_text_and_key() {
        let (tokens, others) = (Tokens::of_secret(b"a secret of some length"), Tokens::of_secret(b"another"));
        assert_eq!(tokens.token("f", b"main"), tokens.token("f", b"main"));
        assert_ne!(tokens.token("f", b"main"), tokens.token("f", b"malloc"));
        assert_ne!(tokens.token("f", b"main"), others.token("f", b"main"));
        assert_eq!((tokens.token("f", b"main").len(), tokens.token("f", b"")), (16, String::new()));
        // The SipHash-2-4 value was computed by another implementation. A key must yield the same tokens forever.
        assert_eq!(Tokens::new([7; 16]).number(b"main"), 5_886_262_414_352_681_756);
    }
}
