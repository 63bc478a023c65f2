//! How many times the cases a run of random tests draws.

/// What `METATF_TEST_FACTOR` asks for, else 1.
#[must_use]
pub fn factor() -> u32 {
    std::env::var("METATF_TEST_FACTOR").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1)
}
