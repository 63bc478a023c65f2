//! Checks that the `metatf-derive` attribute generates the same code as the other generators and refers to the runtime
//! by a custom path.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

mod inner {
    /// The runtime under a different name.
    pub(crate) use metatf as renamed;
}

#[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
mod readings {
    /// Existing items in the module are kept.
    pub(crate) const ANSWER: u64 = 42;
}

#[metatf_derive::metatf(dtd = "tests/dtds/good.dtd", runtime = "crate::attribute::inner::renamed")]
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
