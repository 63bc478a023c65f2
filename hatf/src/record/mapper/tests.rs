use super::*;
use crate::event::UserMetadata;

#[derive(Default)]
struct Lines(Vec<String>);

impl EventSink for Lines {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let thread = event.thread;
        self.0.push(match event.kind {
            EventKind::Call(call) => format!("{thread} {}", of(&call)),
            EventKind::ReallocEnd(call) => format!("{thread} end of {}", of(&call)),
            EventKind::Failed(call) => format!("{thread} failed {}", of(&call)),
            EventKind::Image { process, path } => format!("{thread} image {process} {}", String::from_utf8_lossy(path)),
            other => format!("{thread} {other:?}"),
        });
        Ok(())
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.0.push(format!("// {}", String::from_utf8_lossy(text)));
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}

fn of(call: &Call) -> String {
    let Call { function, detail, size, old, address, .. } = *call;
    format!("{}({old:#x}, {size}, {detail}) = {address:#x}", function.name())
}

fn slot(kind: Kind, thread: u32, size: u64, address: u64, old: u64, extra: u64) -> Slot {
    Slot { size, address, old, extra, ..Slot::new(kind, thread, 7) }
}

fn lines(slots: &[Slot]) -> Vec<String> {
    let (mut mapper, mut lines) = (Mapper::default(), Lines::default());
    for slot in slots {
        mapper.slot(slot, &mut lines).unwrap();
    }
    mapper.finish(EventKind::Exit { status: 0 }, &mut lines).unwrap();
    lines.0
}

#[test]
fn every_call() {
    let lines = lines(&[
        slot(Kind::Malloc, 1, 10, 0x10, 0, 0),
        slot(Kind::Calloc, 1, 12, 0x20, 0, 3),
        slot(Kind::PosixMemalign, 1, 12, 0x40, 0, 64),
        slot(Kind::Valloc, 1, 12, 0x1000, 0, 0),
        slot(Kind::Realloc, 1, 30, 0x80, 0x10, 0),
        slot(Kind::Realloc, 1, 31, 0x90, 0, 0),
        slot(Kind::Reallocarray, 1, 32, 0xa0, 0x90, 4),
        slot(Kind::Realloc, 1, 0, 0, 0x80, 0),
        slot(Kind::Free, 1, 0, 0x20, 0, 0),
        slot(Kind::Malloc, 1, 99, 0, 0, 0),
        slot(Kind::Realloc, 1, 98, 0, 0x40, 0),
    ]);
    let expected = [
        "1 malloc(0x0, 10, 0) = 0x10",
        "1 calloc(0x0, 12, 3) = 0x20",
        "1 posix_memalign(0x0, 12, 64) = 0x40",
        "1 valloc(0x0, 12, 0) = 0x1000",
        "1 realloc(0x10, 30, 0) = 0x80",
        "1 realloc(0x0, 31, 0) = 0x90",
        "1 reallocarray(0x90, 32, 4) = 0xa0",
        "1 realloc(0x80, 0, 0) = 0x0",
        "1 Free { address: 32 }",
        "1 failed malloc(0x0, 99, 0) = 0x0",
        "1 failed realloc(0x40, 98, 0) = 0x0",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_realloc_whose_old_block_another_thread_got() {
    let lines = lines(&[
        slot(Kind::Malloc, 1, 10, 0x10, 0, 0),
        slot(Kind::ReallocBegin, 1, 30, 0, 0x10, 0),
        slot(Kind::Malloc, 2, 10, 0x10, 0, 0),
        slot(Kind::Realloc, 1, 30, 0x80, 0x10, 0),
        slot(Kind::ReallocBegin, 1, 40, 0, 0x80, 0),
        slot(Kind::Realloc, 1, 40, 0x80, 0x80, 0),
    ]);
    let expected = [
        "1 malloc(0x0, 10, 0) = 0x10",
        "1 ReallocBegin { old: 16 }",
        "2 malloc(0x0, 10, 0) = 0x10",
        "1 end of realloc(0x0, 30, 0) = 0x80",
        "1 realloc(0x80, 40, 0) = 0x80",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn images_and_threads() {
    let image = slot(Kind::Image, 1, 7, 0, 0, 42);
    let text = Slot::from_words(&Slot::text(1, b"/bin/sh")).unwrap();
    let begun = Slot { extra: 1, ..Slot::new(Kind::ThreadStart, 2, 9) };
    let lines = lines(&[image, text, begun, slot(Kind::ReallocBegin, 2, 1, 0, 5, 0), image, text]);
    let expected = [
        "1 ThreadStart { creator: 0 }",
        "1 image 42 /bin/sh",
        "2 ThreadStart { creator: 1 }",
        "// a realloc of 0x5 by thread 2 did not return",
        "1 image 42 /bin/sh",
        "1 Exit { status: 0 }",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn marks_and_phases() {
    let named = |kind, thread, length| slot(kind, thread, length, 0, 0, 0);
    let text = |text: &[u8]| Slot::from_words(&Slot::text(1, text)).unwrap();
    let long = [b'x'; 50];
    let lines = lines(&[
        named(Kind::PhaseBegin, 1, 4),
        text(b"load"),
        named(Kind::Mark, 2, 50),
        text(&long[..40]),
        text(&long[40..]),
        // The rest of this name was lost.
        named(Kind::Mark, 1, 42),
        text(&[b'y'; 40]),
        named(Kind::Mark, 1, 0),
        named(Kind::PhaseEnd, 1, 4),
        text(b"load"),
        text(b"belongs to nothing"),
    ]);
    let name = |name: &[u8]| format!("{name:?}");
    let expected = [
        format!("1 PhaseBegin {{ name: {} }}", name(b"load")),
        format!("2 Mark {{ name: {} }}", name(&long)),
        format!("1 Mark {{ name: {} }}", name(&[b'y'; 40])),
        "1 Mark { name: [] }".to_owned(),
        format!("1 PhaseEnd {{ name: {} }}", name(b"load")),
    ];
    assert_eq!(lines, expected);
}

/// The length is a number in memory that the program may overwrite: no more text is kept than the recorder writes.
#[test]
fn a_hostile_length_of_text() {
    let text = Slot::from_words(&Slot::text(1, &[b'z'; 40])).unwrap();
    let mut slots = vec![slot(Kind::Mark, 1, u64::MAX, 0, 0, 0)];
    slots.extend([text; 100]);
    let expected = format!("1 Mark {{ name: {:?} }}", [b'z'; 1000]);
    assert_eq!(lines(&slots), [expected]);
}
