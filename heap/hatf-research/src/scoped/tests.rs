//! Tests of the paper's example.

use std::collections::BTreeSet;

use super::format::{Record, Scoped, Trace};
use super::{Variant, captures, example, register};

/// Returns the registered sites of a trace by call site.
fn registered(trace: &[u8]) -> metatf::Result<Vec<(String, BTreeSet<String>)>> {
    let mut trace = Trace::from_slice(trace)?;
    let names = trace.names();
    let name = |offset| Ok::<_, metatf::Error>(String::from_utf8_lossy(&names.get(offset)?.vfield).into_owned());
    let mut all = Vec::new();
    while let Some(record) = trace.next()? {
        let Record::Scoped(record) = record;
        if let Scoped::DetermineAllocationSite(of) = record {
            all.push((name(of.call_site)?, of.site.iter().map(|site| name(*site)).collect::<metatf::Result<_>>()?));
        }
    }
    Ok(all)
}

/// Example 3.2. Compares the sites that the program registers at each call site with the sites computed from Example
/// 3.1.
#[test]
fn example_3_2() {
    let expected: [(&str, &str, &[&str]); 3] = [
        ("m0", "m0_2", &["m1_3", "m2_3", "m2_6", "m2_7"]),
        ("m0", "m0_3", &["m2_3", "m2_6", "m2_7", "m2_8"]),
        ("m1", "m1_5", &["m2_8"]),
    ];
    for (method, call_site, sites) in expected {
        assert_eq!(register(captures(method), call_site), sites.iter().copied().collect(), "{call_site}");
    }
    for variant in [Variant::Figure1, Variant::Table2] {
        let trace = example(variant, 10, Vec::new()).unwrap();
        let all = registered(&trace).unwrap();
        // m0 calls m1 and m2, and m1 calls m2 ten times.
        assert_eq!(all.len(), 12);
        for (call_site, sites) in all {
            let (.., expected) = expected.iter().find(|(_, known, _)| *known == call_site).unwrap();
            assert_eq!(sites, expected.iter().map(|site| (*site).to_owned()).collect(), "{call_site}");
        }
    }
}
