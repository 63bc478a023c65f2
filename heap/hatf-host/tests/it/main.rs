//! The recorder as the library embeds it.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use std::path::Path;

/// The embedded recorder is built with the versions in the lock file even if there are newer ones.
#[test]
fn the_recorder_is_built_by_the_lock_file() {
    let outer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let Ok(outer) = std::fs::read_to_string(outer) else { return metatf_test::skip("there is no lock file") };
    let inner = std::fs::read_to_string(concat!(env!("OUT_DIR"), "/recorder/Cargo.lock")).unwrap();
    // Name, version, source and checksum.
    let packages = |lock: &str| -> Vec<String> {
        let packages = lock.split("[[package]]").map(|package| package.trim().lines().take(4).collect::<Vec<_>>());
        packages.map(|lines| lines.join("\n")).filter(|package| package.contains("checksum = ")).collect()
    };
    let (inner, outer) = (packages(&inner), packages(&outer));
    assert_eq!(inner.len(), 2, "libc and gimli: {inner:?}");
    assert!(inner.iter().all(|package| outer.contains(package)), "{inner:?}");
}
