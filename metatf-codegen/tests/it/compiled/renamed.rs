//! Reads traces that were written before a rename by their earlier names (spec 5.3).

use super::evolution::write;
use super::renamed::{Jump, JumpNItem, Pos, Record, S, Stay, Trace};
use metatf::typed::TraceOptions;

const OLD: &str = "ex.width = 1; ex.interpretation = none; vector.width = 1; vector.interpretation = none;
    section s 1 {
        stay: (queue, note) { tag.value = 9; queue.width = 1; queue.interpretation = none;
            note.width = 1; note.interpretation = none; }
        hop: (pos, count*(vfield, ex), m*ex, vector, gone) {
            tag.value = 8; count.width = 1; count.interpretation = none; m.width = 1; m.interpretation = none;
            gone.width = 1; gone.interpretation = none; }
        pos: (c) { c.width = 2; c.interpretation = none; }
        lost: (vector) { tag.value = 10; } }
    section items 2 { item: (vector) }";

const LINES: [&str; 3] = [
    r#"{"@section":"s","@record":"stay","queue":3,"note":9}"#,
    r#"{"@section":"s","@record":"hop","pos":{"c":700},"count_items":[{"vfield":"6869","ex":1},{"vfield":"","ex":2}],"ex":[5,6],"vector":77,"gone":1}"#,
    r#"{"@section":"s","@record":"lost","vector":4}"#,
];

#[test]
fn earlier_names_are_read() {
    let bytes = write(OLD, &LINES);
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let unmatched = trace.unmatched().unwrap().clone();
    assert_eq!(unmatched.unread, ["s.hop.gone", "s.stay.note", "s.lost"]);
    assert_eq!(unmatched.absent, ["s.jump.extra"]);
    assert_eq!(
        unmatched.to_string(),
        "the trace has s.hop.gone, s.stay.note, s.lost, which the reader does not declare\n\
         the reader has s.jump.extra, which the trace does not declare, so the values are 0 or empty"
    );
    let items = vec![JumpNItem { x: 1, vfield: b"hi".to_vec() }, JumpNItem { x: 2, vfield: Vec::new() }];
    let jump = Jump { line: 77, n_items: items, x: vec![5, 6], pos: Pos { a: 700 }, extra: 0 };
    assert_eq!(trace.next_owned().unwrap(), Some(Record::S(S::Stay(Stay { line: 3 }))));
    assert_eq!(trace.next_owned().unwrap(), Some(Record::S(S::Jump(jump))));
    assert_eq!(trace.next_owned().unwrap(), None);
}

/// A current name takes precedence over an earlier one: `extra` was once called `line`, but the trace also contains
/// `line`.
#[test]
fn names_of_today_come_first() {
    let dtd = OLD.replace("vector, gone", "line, vector").replace("gone.width = 1; gone", "line.width = 1; line");
    let bytes = write(&dtd, &[&LINES[1].replace("\"gone\"", "\"line\"")]);
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let unmatched = trace.unmatched().unwrap();
    assert!(
        unmatched.unread.contains(&"s.hop.vector".to_owned()) && unmatched.absent == ["s.jump.extra"],
        "{unmatched}"
    );
    let Some(Record::S(S::Jump(jump))) = trace.next_owned().unwrap() else { panic!() };
    assert_eq!((jump.line, jump.extra), (1, 0));
}

/// If two DTDs differ only in annotations, no names are unmatched.
#[test]
fn the_same_meaning_needs_no_names() {
    let dtd = super::renamed::FORMAT.dtd.replace("line.was = \"vector\";", "").replace("tag.was = \"hop, leap\";", "");
    let bytes = write(&dtd, &[r#"{"@section":"s","@record":"stay","line":3}"#]);
    let mut trace = Trace::from_slice(&bytes).unwrap();
    assert!(trace.unmatched().is_none());
    assert_eq!(trace.next_owned().unwrap(), Some(Record::S(S::Stay(Stay { line: 3 }))));
}

/// A different major or median version is refused, even if only the number indicates a change, unless the caller
/// requests it.
#[test]
fn other_versions_are_read_on_request() {
    let stay = || Some(Record::S(S::Stay(Stay { line: 3 })));
    for (version, is_read) in
        [("1.2.0", true), ("1.2.7", true), ("1.3.0", false), ("1.1.9", false), ("2.2.0", false), ("one", true)]
    {
        let dtd = super::renamed::FORMAT.dtd.replace("1.2.0", version);
        let bytes = write(&dtd, &[r#"{"@section":"s","@record":"stay","line":3}"#]);
        match Trace::from_slice(&bytes) {
            Ok(mut trace) => assert_eq!((trace.next_owned().unwrap(), is_read), (stay(), true), "{version}"),
            Err(error) => {
                let text = error.to_string();
                assert!(!is_read && text.contains(version) && text.contains("1.2.0"), "{text}");
            }
        }
        let mut trace = Trace::from_opened(TraceOptions::new().by_name(true).from_slice(&bytes).unwrap());
        assert_eq!(trace.next_owned().unwrap(), stay(), "{version}");
    }
}
