use super::*;
use hatf_trace::event::UserMetadata;

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

fn slot(kind: Kind, thread: u32, size: u64, address: u64, old: u64, extra: u64) -> SpoolEvent {
    SpoolEvent { size, address, old, extra, ..SpoolEvent::new(kind, thread, 7) }
}

fn lines(slots: &[SpoolEvent]) -> Vec<String> {
    let (mut translator, mut lines) = (Translator::default(), Lines::default());
    for slot in slots {
        translator.slot(slot, b"/bin/sh", Stack::NONE, &mut lines).unwrap();
    }
    translator.finish(Some(EventKind::Exit { status: 0 }), &mut lines).unwrap();
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
    let begun = SpoolEvent { extra: 1, ..SpoolEvent::new(Kind::ThreadStart, 2, 9) };
    let lines = lines(&[image, begun, slot(Kind::ReallocBegin, 2, 1, 0, 5, 0), image]);
    let expected = [
        "1 ThreadStart { creator: 0, task: 42 }",
        "1 image 42 /bin/sh",
        "2 ThreadStart { creator: 1, task: 0 }",
        "// a realloc of 0x5 by thread 2 did not return",
        "1 image 42 /bin/sh",
        "1 Exit { status: 0 }",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn marks_and_phases() {
    let (mut translator, mut lines) = (Translator::default(), Lines::default());
    for (kind, thread, name) in
        [(Kind::PhaseBegin, 1, "load"), (Kind::Mark, 2, "ready"), (Kind::Mark, 1, ""), (Kind::PhaseEnd, 1, "load")]
    {
        translator.slot(&slot(kind, thread, 0, 0, 0, 0), name.as_bytes(), Stack::NONE, &mut lines).unwrap();
    }
    translator.finish(None, &mut lines).unwrap();
    let name = |name: &str| format!("{:?}", name.as_bytes());
    let expected = [
        format!("1 PhaseBegin {{ name: {} }}", name("load")),
        format!("2 Mark {{ name: {} }}", name("ready")),
        "1 Mark { name: [] }".to_owned(),
        format!("1 PhaseEnd {{ name: {} }}", name("load")),
    ];
    assert_eq!(lines.0, expected);
}

#[test]
fn events_that_were_lost() {
    let lines = lines(&[slot(Kind::Image, 1, 7, 0, 0, 42), slot(Kind::Lost, 3, 12, 0, 0, 0)]);
    assert_eq!(lines[2], "3 Lost { events: 12 }");
}

/// A completed trace contains each part of a realloc once, including the parts that it already contained.
#[test]
fn a_realloc_that_had_begun() {
    let (mut translator, mut lines) = (Translator::default(), Lines::default());
    translator.after(1);
    translator.begin_realloc(2, 0x10, true);
    for event in [slot(Kind::ReallocBegin, 2, 30, 0, 0x10, 0), slot(Kind::Realloc, 2, 30, 0x80, 0x10, 0)] {
        translator.slot(&event, b"", Stack::NONE, &mut lines).unwrap();
    }
    assert_eq!(lines.0, ["2 end of realloc(0x0, 30, 0) = 0x80"]);
}
