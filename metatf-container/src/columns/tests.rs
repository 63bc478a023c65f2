//! Tests of filter 4: rows survive, and each rule has its error.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::{ChunkColumns, Column, Piece, RowShape, Rows, restore, split};
use crate::codec::Failure;

/// Packs runs of a byte as the byte and their number.
fn pack(stream: &[u8], out: &mut Vec<u8>) -> crate::Result<bool> {
    for run in stream.chunk_by(|a, b| a == b) {
        out.extend([run[0], u8::try_from(run.len()).unwrap()]);
    }
    Ok(out.len() < stream.len())
}

fn unpack(stored: &[u8], out: &mut [u8]) -> Result<(), Failure> {
    let bytes: Vec<u8> = stored.chunks_exact(2).flat_map(|run| vec![run[0]; run[1].into()]).collect();
    if bytes.len() != out.len() || !stored.len().is_multiple_of(2) {
        return Err(Failure::Length);
    }
    out.copy_from_slice(&bytes);
    Ok(())
}

fn restored(payload: &[u8], raw_len: usize) -> Result<Vec<u8>, &'static str> {
    let mut out = vec![0; raw_len];
    match restore(payload, &mut unpack, &mut Vec::new(), &mut out) {
        Ok(()) => Ok(out),
        Err(Failure::Payload(what)) => Err(what),
        Err(_) => Err("another failure"),
    }
}

/// Rows with every kind of piece.
fn rows() -> (Vec<u8>, Rows) {
    let column = |leaf, width| Column { leaf, width };
    let columns = vec![
        column(Some((4, 1)), 1),
        column(Some((4, 2)), 3),
        column(None, 2),
        column(Some((5, 1)), 9),
        column(Some((4, 3)), 2),
    ];
    let shapes = vec![
        RowShape {
            constant: vec![4],
            pieces: vec![Piece::Element(0), Piece::Repeat { count: 0, columns: vec![1, 4] }],
        },
        RowShape { constant: vec![5], pieces: vec![Piece::Repeat { count: 2, columns: vec![3] }] },
        RowShape { constant: vec![6, 7], pieces: Vec::new() },
    ];
    let rows = Rows { columns, shapes, rows: vec![0, 1, 2, 0, 1], counts: vec![1, 0] };
    let raw = [&[4, 2][..], b"abcdeABCDE", &[5], b"nine byte", &[6, 7], &[4, 0], &[5]].concat();
    (raw, rows)
}

#[test]
fn rows_survive() {
    let (raw, rows) = rows();
    let mut payload = Vec::new();
    assert!(split(&raw, &rows, &mut pack, &mut payload).unwrap());
    assert_eq!(restored(&payload, raw.len()), Ok(raw.clone()));
    // Each column can be read without the others.
    let mut chunk = ChunkColumns::new(&payload, raw.len(), &mut unpack).ok().unwrap();
    assert_eq!((chunk.rows(), chunk.shape_of_rows(), chunk.shapes()), (5, &rows.rows[..], &rows.shapes[..]));
    assert!(chunk.load(&payload, &[1, 3, 9], &mut unpack).is_ok());
    assert_eq!(chunk.column(1), Some((rows.columns[1], 2)));
    assert_eq!(chunk.column(5), None);
    assert_eq!(chunk.elements(1), b"abcABC\0\0\0\0\0\0\0");
    assert_eq!(chunk.elements(3), b"nine byte\0\0\0\0\0\0\0");
    assert!(chunk.elements(0).is_empty());
}

#[test]
fn streams_are_packed_where_that_is_shorter() {
    let columns = vec![Column { leaf: Some((4, 1)), width: 2 }];
    let shapes = vec![RowShape { constant: vec![4], pieces: vec![Piece::Element(0)] }];
    let rows = Rows { columns, shapes, rows: vec![0; 40], counts: Vec::new() };
    let raw: Vec<u8> = (0..40).flat_map(|n| [4, 7 + n / 20, 0]).collect();
    let mut payload = Vec::new();
    assert!(split(&raw, &rows, &mut pack, &mut payload).unwrap());
    // The lower bytes are two runs, and the upper bytes are equal.
    assert!(payload.ends_with(&[40, 4, 1, 7, 20, 8, 20, 0]), "{payload:?}");
    assert_eq!(restored(&payload, raw.len()), Ok(raw));
}

#[test]
fn rows_of_other_content_are_refused() {
    let (raw, rows) = rows();
    let refused = |raw: &[u8], rows: &Rows| !split(raw, rows, &mut pack, &mut Vec::new()).unwrap();
    assert!(refused(&raw[1..], &rows));
    assert!(refused(&[&raw[..], &[0]].concat(), &rows));
    assert!(refused(&raw, &Rows { counts: vec![1], ..rows.clone() }));
    assert!(refused(&raw, &Rows { counts: vec![1, 0, 0], ..rows.clone() }));
    assert!(refused(&raw, &Rows { rows: vec![0, 3], ..rows }));
}

/// A column of width 1, a shape of a tag and an element, and two rows, with another part in place of one of these.
fn changed(columns: &[u8], shapes: &[u8], rows: &[u8], streams: &[u8]) -> Vec<u8> {
    [columns, shapes, rows, streams].concat()
}

const COLUMN: &[u8] = &[1, 1, 2, 4];
const TWO: &[u8] = &[2, 1, 2, 4, 1, 0];
const SHAPE: &[u8] = &[1, 1, 4, 1, 0];
const ROWS: &[u8] = &[2];
const STREAMS: &[u8] = &[2, 2, 7, 8];

#[test]
fn invalid_payloads_are_refused() {
    let whole = changed(COLUMN, SHAPE, ROWS, STREAMS);
    assert_eq!(restored(&whole, 4), Ok(vec![4, 7, 4, 8]));
    let many = |number: [u8; 2], one: &[u8], times: usize| [&number[..], &one.repeat(times)].concat();
    let cases: &[(&str, Vec<u8>)] = &[
        ("there are more than 4096 columns", changed(&many([0x81, 32], &[1, 0], 4097), SHAPE, ROWS, STREAMS)),
        ("a column is truncated", vec![1]),
        ("a column has elements without bytes", changed(&[1, 0, 2, 4], SHAPE, ROWS, STREAMS)),
        ("a column has a leaf with a number above 255", changed(&[1, 1, 0x81, 2, 4], SHAPE, ROWS, STREAMS)),
        ("a column has a tag of more than 32 bits", changed(&[1, 1, 2, 128, 128, 128, 128, 16], SHAPE, ROWS, STREAMS)),
        ("there are more than 256 shapes", changed(COLUMN, &many([0x81, 2], &[1, 4, 1, 0], 257), ROWS, STREAMS)),
        ("a shape is truncated", changed(COLUMN, &[1, 2, 4], &[], &[])),
        ("a shape has more than 256 pieces", changed(COLUMN, &[1, 1, 4, 0x81, 2], &[0; 257], STREAMS)),
        ("a shape names a column that does not exist", changed(COLUMN, &[1, 1, 4, 1, 2], ROWS, STREAMS)),
        ("a shape names a column that does not exist", changed(COLUMN, &[1, 1, 4, 1, 1, 1, 1], ROWS, STREAMS)),
        ("a row can have no bytes", changed(COLUMN, &[2, 1, 4, 1, 0, 0, 0], ROWS, STREAMS)),
        ("a repetition has no elements, or its count has more than 8 bytes", {
            changed(TWO, &[1, 1, 4, 1, 3, 0], ROWS, &[2, 2, 0, 0, 7, 8])
        }),
        ("a repetition has no elements, or its count has more than 8 bytes", {
            changed(&[2, 1, 2, 4, 9, 0], &[1, 1, 4, 1, 3, 1, 0], &[0], &[0, 0, 0, 0])
        }),
        ("a count is neither in an earlier piece nor in a column of counts", {
            changed(TWO, &[1, 1, 4, 2, 1, 1, 1, 0], ROWS, &[2, 2, 0, 0, 0, 0])
        }),
        ("there are more rows than bytes", changed(COLUMN, SHAPE, &[5], STREAMS)),
        ("rows have no shape", changed(COLUMN, &[0], ROWS, STREAMS)),
        ("the columns are longer than the content allows", changed(COLUMN, SHAPE, ROWS, &[9, 1, 7])),
        ("a stream is truncated", whole[..whole.len() - 1].to_vec()),
        ("there are bytes after the last stream", [&whole[..], &[0]].concat()),
        ("a stream is longer than its column", changed(COLUMN, SHAPE, ROWS, &[2, 3, 7, 8, 9])),
        ("a stream is longer than its column", changed(TWO, SHAPE, ROWS, &[2, 2, 0, 1, 7, 8, 9])),
        ("a stream is shorter than its column", changed(COLUMN, SHAPE, ROWS, &[2, 0])),
        (
            "a row has a shape that does not exist",
            changed(COLUMN, &[2, 1, 4, 1, 0, 1, 5, 0], &[2, 1], &[2, 2, 2, 7, 8]),
        ),
        ("a column has too few elements", changed(COLUMN, SHAPE, ROWS, &[1, 1, 7])),
        ("a column has too few elements", changed(TWO, &[1, 1, 4, 1, 3, 1, 0], ROWS, &[2, 2, 1, 1, 7, 8, 1])),
        ("a column has too few elements", changed(TWO, &[1, 1, 4, 1, 3, 1, 0], ROWS, &[2, 2, 2, 2, 7, 8, 1, 2])),
        ("a column has too many elements", changed(COLUMN, SHAPE, ROWS, &[3, 1, 7])),
        ("the rows are longer than the content", changed(COLUMN, SHAPE, &[3], &[3, 1, 7])),
        ("the rows are shorter than the content", changed(COLUMN, SHAPE, &[1], &[1, 1, 7])),
    ];
    for (message, payload) in cases {
        assert_eq!(restored(payload, 4), Err(*message), "{payload:?}");
    }
    // Every cut is an error.
    for length in 0..whole.len() {
        assert!(restored(&whole[..length], 4).is_err(), "{length} bytes");
    }
}
