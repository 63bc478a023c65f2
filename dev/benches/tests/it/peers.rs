//! Tests that other formats reproduce their input.

use metatf_bench::peers::{Call, binary, bincode, postcard, prost, rkyv, zerocopy};
use metatf_bench::{Counts, Event, Result, events};

/// Returns the first events of each shipped trace, which are more than a batch.
fn some() -> Result<(Vec<Call>, u64, Counts)> {
    let mut all: Vec<Event> = Vec::new();
    for path in events::shipped()? {
        events::read_file(&path, 1000, &mut all)?;
    }
    Ok((all.iter().map(Call::from).collect(), events::sum(&all), events::counts(&all)))
}

fn check(
    encode: fn(&[Call], &mut Vec<u8>) -> Result<()>,
    all: fn(&[u8]) -> Result<u64>,
    count: fn(&[u8]) -> Result<Counts>,
) -> Result<()> {
    let (calls, sum, counts) = some()?;
    let mut bytes = Vec::new();
    encode(&calls, &mut bytes)?;
    assert!(bytes.len() > calls.len() * 7);
    assert_eq!((all(&bytes)?, count(&bytes)?), (sum, counts));
    assert!(all(&bytes[..bytes.len() - 1]).is_err(), "cut off");
    // Reuse memory that was written before.
    encode(&calls[..3], &mut bytes)?;
    assert_eq!(count(&bytes)?.iter().sum::<u64>(), 3);
    Ok(())
}

#[test]
fn compiled_formats() {
    check(prost::encode, prost::all, prost::count).unwrap();
}

#[test]
fn derived_formats() {
    check(postcard::encode, postcard::all, postcard::count).unwrap();
    check(binary::binrw_encode, binary::binrw_all, binary::binrw_count).unwrap();
    check(binary::deku_encode, binary::deku_all, binary::deku_count).unwrap();
    check(
        |calls, out| bincode::encode(calls, bincode::variable(), out),
        |bytes| bincode::all(bytes, bincode::variable()),
        |bytes| bincode::count(bytes, bincode::variable()),
    )
    .unwrap();
    check(
        |calls, out| bincode::encode(calls, bincode::fixed(), out),
        |bytes| bincode::all(bytes, bincode::fixed()),
        |bytes| bincode::count(bytes, bincode::fixed()),
    )
    .unwrap();
}

#[test]
fn formats_read_in_place() {
    let encode = |calls: &[Call], out: &mut Vec<u8>| {
        zerocopy::encode(calls, out);
        Ok(())
    };
    check(encode, zerocopy::all, zerocopy::count).unwrap();
    let (calls, sum, counts) = some().unwrap();
    let bytes = rkyv::encode(&calls, Default::default()).unwrap();
    let checked = rkyv::checked(&bytes).unwrap();
    assert_eq!((rkyv::all(checked), rkyv::count(checked)), (sum, counts));
    assert_eq!(rkyv::all(rkyv::unchecked(&bytes)), sum);
}

#[cfg(feature = "arrow")]
#[test]
fn columnar_formats() {
    use metatf_bench::peers::arrow;
    let (calls, sum, counts) = some().unwrap();
    let mut bytes = Vec::new();
    arrow::ipc_encode(&calls, &mut bytes).unwrap();
    let bytes = bytes.into();
    assert_eq!((arrow::ipc_all(&bytes).unwrap(), arrow::ipc_count(&bytes).unwrap()), (sum, counts));
    for zstd in [false, true] {
        let mut bytes = Vec::new();
        arrow::parquet_encode(&calls, zstd, &mut bytes).unwrap();
        let bytes = bytes.into();
        assert_eq!((arrow::parquet_all(&bytes).unwrap(), arrow::parquet_count(&bytes).unwrap()), (sum, counts));
    }
}
