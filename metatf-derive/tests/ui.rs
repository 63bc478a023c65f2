//! Checks that the attribute reports errors at the right location in the source. Its output is tested in `metatf`,
//! because trybuild rebuilds everything that this crate's tests depend on.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

#[test]
fn says_what_is_wrong() {
    // trybuild compiles from its own package, so the DTD must be there.
    let package = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tests/trybuild/metatf-derive/dtds");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::copy("tests/dtds/bad.dtd", package.join("bad.dtd")).unwrap();
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
