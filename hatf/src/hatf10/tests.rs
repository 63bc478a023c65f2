use super::*;

#[derive(Default)]
struct Lines(Vec<String>);

impl EventSink for Lines {
    fn record(&mut self, record: &Record<'_>) -> Result<()> {
        let text = String::from_utf8_lossy(record.attributes);
        self.0.push(format!("{} {:?} {text}", record.thread, record.what));
        Ok(())
    }

    fn comment(&mut self, text: &str) -> Result<()> {
        self.0.push(format!("// {text}"));
        Ok(())
    }
}

fn event(kind: Kind, thread: u32, size: u64, address: u64, old: u64, extra: u64) -> Event {
    Event { size, address, old, extra, ..Event::new(kind, thread, 7) }
}

fn lines(events: &[Event]) -> Vec<String> {
    let (mut mapper, mut lines) = (Mapper::default(), Lines::default());
    for event in events {
        mapper.event(event, &mut lines).unwrap();
    }
    mapper.finish("exit=0", &mut lines).unwrap();
    lines.0
}

#[test]
fn every_call() {
    let lines = lines(&[
        event(Kind::Malloc, 1, 10, 0x10, 0, 0),
        event(Kind::Calloc, 1, 12, 0x20, 0, 3),
        event(Kind::PosixMemalign, 1, 12, 0x40, 0, 64),
        event(Kind::Valloc, 1, 12, 0x1000, 0, 0),
        event(Kind::Realloc, 1, 30, 0x80, 0x10, 0),
        event(Kind::Realloc, 1, 31, 0x90, 0, 0),
        event(Kind::Reallocarray, 1, 32, 0xa0, 0x90, 4),
        event(Kind::Realloc, 1, 0, 0, 0x80, 0),
        event(Kind::Free, 1, 0, 0x20, 0, 0),
        event(Kind::Malloc, 1, 99, 0, 0, 0),
        event(Kind::Realloc, 1, 98, 0, 0x40, 0),
    ]);
    let expected = [
        "1 Alloc { size: 10, address: 16 } ",
        "1 Alloc { size: 12, address: 32 } calloc count=3",
        "1 Alloc { size: 12, address: 64 } posix_memalign align=64",
        "1 Alloc { size: 12, address: 4096 } valloc",
        "1 Realloc { old: 16, address: 128 } size=30",
        "1 Alloc { size: 31, address: 144 } realloc",
        "1 Realloc { old: 144, address: 160 } reallocarray count=4 size=32",
        "1 Free { address: 128 } realloc",
        "1 Free { address: 32 } ",
        "// malloc of 99 bytes failed: thread 1, time 7",
        "// realloc of 0x40 to 98 bytes failed: thread 1, time 7",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_realloc_whose_old_block_another_thread_got() {
    let lines = lines(&[
        event(Kind::Malloc, 1, 10, 0x10, 0, 0),
        event(Kind::ReallocBegin, 1, 30, 0, 0x10, 0),
        event(Kind::Malloc, 2, 10, 0x10, 0, 0),
        event(Kind::Realloc, 1, 30, 0x80, 0x10, 0),
        event(Kind::ReallocBegin, 1, 40, 0, 0x80, 0),
        event(Kind::Realloc, 1, 40, 0x80, 0x80, 0),
    ]);
    let expected = [
        "1 Alloc { size: 10, address: 16 } ",
        "1 Free { address: 16 } realloc",
        "2 Alloc { size: 10, address: 16 } ",
        "1 Alloc { size: 30, address: 128 } realloc",
        "1 Realloc { old: 128, address: 128 } size=40",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn images_and_threads() {
    let image = event(Kind::Image, 1, 7, 0, 0, 42);
    let text = Event::from_words(&Event::text(1, b"/bin/sh")).unwrap();
    let begun = Event { extra: 1, ..Event::new(Kind::ThreadStart, 2, 9) };
    let lines = lines(&[image, text, begun, event(Kind::ReallocBegin, 2, 1, 0, 5, 0), image, text]);
    let expected = [
        "// image 1: /bin/sh (process 42)",
        "1 CreateThread time=7",
        "1 CreateHeap time=7",
        "2 CreateThread time=9 by=1",
        "// a realloc of 0x5 by thread 2 did not return",
        "1 DestroyHeap exec time=7",
        "// image 2: /bin/sh (process 42)",
        "1 CreateHeap time=7",
        "1 DestroyHeap exit=0 time=7",
    ];
    assert_eq!(lines, expected);
}
