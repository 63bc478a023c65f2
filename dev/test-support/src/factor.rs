//! The multiplier for the number of cases in random tests.

/// Returns the value of `METATF_TEST_FACTOR`, or 1 if it is not set.
#[must_use]
pub fn factor() -> u32 {
    std::env::var("METATF_TEST_FACTOR").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1)
}
