//! The attribute gives what the other faces give, and says what is wrong where it is written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

mod inner {
    /// The runtime under another name.
    pub(crate) use metatf as renamed;
}

#[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
mod readings {
    /// What stands in the module stays in it.
    pub(crate) const ANSWER: u64 = 42;
}

#[metatf_derive::metatf(dtd = "tests/dtds/good.dtd", runtime = "crate::inner::renamed")]
mod renamed {}

#[test]
fn reads_what_it_writes() {
    let mut writer = readings::Writer::new(Vec::new()).unwrap();
    writer.reading(&readings::Reading { time: readings::ANSWER, vfield: b"x" }).unwrap();
    let bytes = writer.finish().unwrap();
    let mut trace = renamed::Trace::from_slice(&bytes).unwrap();
    let Some(renamed::Record::Readings(renamed::Readings::Reading(reading))) = trace.next().unwrap() else { panic!() };
    assert_eq!((reading.time, reading.vfield), (42, &b"x"[..]));
}

#[test]
fn says_what_is_wrong() {
    // trybuild compiles from a package of its own: that is where the DTD has to be.
    let package = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tests/trybuild/metatf-derive/dtds");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::copy("tests/dtds/bad.dtd", package.join("bad.dtd")).unwrap();
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
