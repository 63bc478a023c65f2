//! The attribute says what is wrong where it is written. What it gives is tested in `metatf`: trybuild builds again whatever this
//! crate's tests depend on.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong has to panic")]

#[test]
fn says_what_is_wrong() {
    // trybuild compiles from a package of its own: that is where the DTD has to be.
    let package = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tests/trybuild/metatf-derive/dtds");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::copy("tests/dtds/bad.dtd", package.join("bad.dtd")).unwrap();
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
