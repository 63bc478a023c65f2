//! Named values and bits in generated types.

use std::collections::{BTreeMap, HashSet};

use super::named;
use super::named::{
    Bits, File, FileState, Mode, ModeItem, Odd, Pair, PairState, Record, S, SResult, State, Task, TaskNItem, TaskState,
    Trace, Writer,
};

#[test]
fn names_and_numbers() {
    const GONE: TaskState = TaskState::from_number(u64::MAX);
    assert!(matches!(GONE, TaskState::Gone));
    assert_eq!((GONE.number(), GONE.name(), GONE.to_string()), (u64::MAX, Some("gone"), "gone".to_owned()));
    let other = TaskState::from(3);
    assert!(matches!(other, TaskState::Unknown(3)));
    assert_eq!((u64::from(other), other.name(), other.to_string()), (3, None, "3".to_owned()));
    assert_eq!(format!("{:>9}|{:<4}|", TaskState::Running, other), "  running|3   |");
    assert_eq!(TaskState::Unknown(7), TaskState::NotFound, "a number has one meaning");
    assert!(TaskState::default() == TaskState::Running && TaskState::Running < TaskState::Gone);
    assert_eq!(HashSet::from([TaskState::Unknown(7), TaskState::NotFound, TaskState::Sleeping]).len(), 2);
    assert_eq!(BTreeMap::from([(Odd::Q, 1), (Odd::from(7), 2)]).len(), 1);
    assert_eq!(
        (Odd::SelfValue2.name(), Odd::NaVe.name(), Odd::Q.name()),
        (Some("self"), Some("naïve"), Some("\"q\" \\"))
    );
}

#[test]
fn flags() {
    let mode = Mode::READ | Mode::TOP;
    assert!(
        mode.contains(Mode::READ)
            && !mode.contains(Mode::READ | Mode::WRITE)
            && mode.intersects(Mode::READ | Mode::WRITE)
    );
    assert_eq!((mode.number(), mode.to_string()), (1 | 1 << 7, "read|top".to_owned()));
    let mut odd = Mode::from_number(0x30);
    assert_eq!((odd.to_string(), Mode::default().to_string()), ("48".to_owned(), "0".to_owned()));
    odd |= Mode::WRITE;
    assert_eq!(odd.to_string(), "write|0x30");
    assert_eq!((Bits::CONTAINS.number(), Bits::A_B2.to_string()), (32, "a b".to_owned()));
    assert_eq!((Bits::TOP.number(), Bits::TOP.to_string()), (1 << 63, "top".to_owned()));
}

/// All numbers, named or not, survive a round trip, and the dynamic reader returns the same numbers.
#[test]
fn round_trip() {
    let items = vec![
        TaskNItem { state: TaskState::Gone, mode: Mode(6) },
        TaskNItem { state: TaskState::Unknown(300), mode: Mode(0) },
    ];
    let task = Task { state: TaskState::NotFound, mode: Mode::WRITE, n_items: items, option: named::TaskOption::Some };
    let file =
        File { state: FileState::Closed, mode: vec![Mode::READ, Mode(0x40)], state_2: vec![FileState::Open, 9.into()] };
    let pair = Pair { state: PairState::Right, size: 3 };
    let state = State { odd: Odd::Unknown(u64::MAX), bits: Bits(u64::MAX), pair };
    let mut writer = Writer::new(Vec::new()).unwrap();
    for _ in 0..200 {
        writer.task(&task).unwrap();
        writer.file(&file).unwrap();
        writer.state(&state).unwrap();
        writer.result(&SResult { name: b"x" }).unwrap();
    }
    writer.write_all([S::<&[u8]>::Task(task.clone()), S::Task(task.clone())]).unwrap();
    writer.modes().push(ModeItem { mode: Mode::WRITE }).unwrap();
    let bytes = writer.finish().unwrap();

    let mut trace = Trace::from_slice(&bytes).unwrap();
    for _ in 0..200 {
        assert_eq!(trace.next_owned().unwrap(), Some(Record::S(S::Task(task.clone()))));
        assert_eq!(trace.next_owned().unwrap(), Some(Record::S(S::File(file.clone()))));
        assert_eq!(trace.next().unwrap(), Some(Record::S(S::State(state.clone()))));
        let result = trace.next_owned().unwrap();
        assert_eq!(result, Some(Record::S(S::Result(SResult { name: b"x".to_vec() }))));
    }
    let mut states = Vec::new();
    Trace::from_slice(&bytes)
        .unwrap()
        .for_each(|record| {
            if let Record::S(S::Task(task)) = record {
                states.push(task.state);
            }
        })
        .unwrap();
    assert_eq!(states, [TaskState::NotFound; 202]);
    let mut universal = metatf::dynamic::Trace::from_slice(&bytes).unwrap();
    let mut lines = Vec::new();
    let options = metatf::dynamic::JsonOptions { names: true, ..Default::default() };
    while universal.next_json(&mut lines, options).unwrap() {}
    let text = String::from_utf8(lines).unwrap();
    let first: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(
        first,
        [
            r#"{"@section":"s","@record":"task","state":"not found","mode":"write","n":2,"n_items":[{"state":"gone","mode":"write|0x4"},{"state":300,"mode":0}],"Option":"some"}"#,
            r#"{"@section":"s","@record":"file","state":"closed","n":2,"mode":["read",64],"k":2,"state_2":["open",9]}"#,
            r#"{"@section":"s","@record":"State","odd":18446744073709551615,"bits":"a-b|a b|self|☃|2g|contains|_|top|0x7fffffffffffff80","pair":{"state":"right","size":3}}"#,
        ]
    );
}
