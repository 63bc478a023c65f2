//! Invariants of recoding.

use crate::example::same;
use crate::{Seen, What, runtime};
use metatf::ErrorKind;
use metatf::container::{Codec, Reader, WriteOptions};
use metatf::dynamic::{JsonOptions, Schema, Trace};
use metatf_tools::recode::{Failure, Options, Plan, recode};

/// Recodes a trace with a plan, in blocks of `block` records, keeping its container.
///
/// # Errors
/// Fails if the trace is invalid.
pub fn recoded(schema: &Schema, trace: &[u8], plan: Plan, block: usize) -> Result<Vec<u8>, Failure> {
    recoded_by(1, schema, trace, Codec::Stored, Options { plan, block, ..Options::default() })
}

/// Recodes a trace with this many threads, keeping its container.
///
/// # Errors
/// Fails if the trace is invalid.
pub fn recoded_by(
    threads: usize,
    schema: &Schema,
    trace: &[u8],
    codec: Codec,
    options: Options,
) -> Result<Vec<u8>, Failure> {
    let container = Reader::from_slice(trace).map_err(Failure::Read)?;
    let header = container.header();
    let write = WriteOptions {
        version: header.version,
        class: header.class,
        order: header.order,
        codec,
        threads,
        ..WriteOptions::default()
    };
    let mut trace = Trace::new(schema.clone(), container).map_err(Failure::Read)?;
    recode(&mut trace, Vec::new(), &write, options, || ()).map(|(out, _)| out)
}

/// Returns ways to recode in blocks of this many records: each plan, and the search for the plan that compresses best.
#[must_use]
pub fn ways(block: usize) -> Vec<(Codec, Options)> {
    let options = |plan| Options { plan, block, ..Options::default() };
    let tried = Options { others: vec![Plan::Naive, Plan::Best], ..options(Plan::Optimal) };
    let plans = Plan::ALL.map(|plan| (Codec::Stored, options(plan)));
    plans.into_iter().chain([(Codec::Zstd(1), tried)]).collect()
}

/// Recodes a trace with every plan and with the plan that compresses best.
///
/// # Panics
/// Panics if a record is lost, if recoding again changes bytes, or if an incomplete trace is recoded.
pub fn check(schema: &Schema, trace: &[u8], block: usize, about: &str) {
    let (seen, whole) = runtime::read(schema, trace);
    let has_resets = seen.iter().any(|seen| seen.what == What::Reset);
    let wanted = kept(schema, seen);
    let lines = runtime::json(schema, trace, JsonOptions::default());
    for (codec, options) in ways(block) {
        let about = format!("{codec:?}, {options:?}\n{about}");
        let recoded = |trace: &[u8]| recoded_by(1, schema, trace, codec, options.clone());
        let once = match recoded(trace) {
            Ok(once) => once,
            Err(Failure::Read(_)) if whole.is_err() => continue,
            Err(Failure::Write(error)) if is_limit(error.kind) => continue,
            Err(error) => panic!("{error}\n{about}"),
        };
        assert_eq!(whole, Ok(()), "{about}");
        let (seen, result) = runtime::read(schema, &once);
        same(&wanted, &kept(schema, seen), &about);
        assert_eq!(result, Ok(()), "{about}");
        assert_eq!(runtime::json(schema, &once, JsonOptions::default()), lines, "{about}");
        let again = |trace: &[u8]| recoded(trace).unwrap_or_else(|e| panic!("{e}\n{about}"));
        // Resets end a block and are not kept, so the second time blocks may end elsewhere.
        let first = if has_resets { again(&once) } else { once };
        assert!(first == again(&first), "recoding twice gives other bytes: {about}");
    }
}

/// Returns whether the error is a limit that a trace may exceed but its copy may not: items that no longer occupy
/// bytes, or a record that has become too long.
fn is_limit(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::TooManyItems(_) | ErrorKind::Limit(_))
}

/// Recodes with every plan.
///
/// # Panics
/// Panics if one result is smaller than the optimal one.
pub fn optimal_is_smallest(schema: &Schema, trace: &[u8], block: usize, about: &str) {
    // Without resets, state carries over between blocks, and a block's optimum is not the trace's.
    let block = if Reader::from_slice(trace).is_ok_and(|r| r.header().version == 0) { usize::MAX } else { block };
    let sizes = Plan::ALL.map(|plan| {
        let out = recoded(schema, trace, plan, block).unwrap_or_else(|e| panic!("{e}\n{about}"));
        (content(schema, &out), plan)
    });
    let optimal = sizes[sizes.len() - 1].0;
    for (size, plan) in sizes {
        assert!(size >= optimal, "{plan} takes {size} bytes, optimal {optimal}, blocks of {block}\n{about}");
    }
}

/// Returns the bytes of content in a trace.
///
/// # Panics
/// Panics if the trace is incomplete.
#[must_use]
pub fn content(schema: &Schema, trace: &[u8]) -> usize {
    let mut reader = Reader::from_slice(trace).expect("it was written");
    reader.set_tag_width(schema.format.tag_width);
    reader.set_section_tag(schema.format.tag(metatf::format::SECTION));
    let mut sum = 0;
    while let Some(part) = reader.next_part().expect("it was written") {
        sum += reader.bytes(&part.content).len();
    }
    sum
}

/// Returns the part that does not depend on the encoding: records, comments and elements in their order, with their
/// values. Groups that contain only metadata are omitted; their table elements move to the next group, table by table.
/// Model misses in stream sections belong to the encoding.
fn kept(schema: &Schema, seen: Vec<Seen>) -> Vec<Seen> {
    let missed = |section: u8| schema.format.models.iter().any(|m| m.section == section);
    let kept = seen.into_iter().filter(|s| match s.what {
        What::Record => true,
        What::Element | What::Shared => !missed(s.section),
        _ => false,
    });
    let mut kept: Vec<Seen> = kept.map(|s| Seen { offset: 0, ..s }).collect();
    let tables = |a: &Seen, b: &Seen| a.what == What::Shared && b.what == What::Shared;
    kept.chunk_by_mut(tables).for_each(|elements| elements.sort_by_key(|s| s.section));
    kept
}
