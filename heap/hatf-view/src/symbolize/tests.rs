//! Tests with the addresses of this program's own functions.

use std::path::Path;

use super::*;
use hatf_trace::stacks::Stacks;

/// A sink that stores stacks and the names of their frames.
#[derive(Default)]
struct Kept(Stacks, Vec<u64>, Vec<String>);

impl EventSink for Kept {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.0.note(&event.kind);
        if !event.stack.is_empty() {
            self.1.push(self.0.number(event.stack));
        }
        self.2.push(format!("{:?}", event.kind).chars().take_while(|c| c.is_alphabetic()).collect());
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}

#[inline(never)]
extern "C" fn a_function_of_ours(number: u64) -> u64 {
    std::hint::black_box(number) + 1
}

/// Returns the address range and the path of this program.
fn this_program() -> (u64, u64, String) {
    let path = std::env::current_exe().unwrap().display().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let lines: Vec<_> = maps.lines().filter(|line| line.ends_with(&path)).collect();
    let range = |line: &str| {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap())
    };
    (range(lines[0]).0, range(lines[lines.len() - 1]).1, path)
}

fn run(events: &[Event<'_>], files: &Files) -> (Kept, Found) {
    let mut wanted = Wanted::new();
    events.iter().for_each(|event| wanted.event(event).unwrap());
    let found = find(&wanted, files);
    let mut kept = Kept::default();
    let mut symbolized = Symbolized::new(&mut kept, &found);
    events.iter().for_each(|event| symbolized.event(event).unwrap());
    (kept, found)
}

fn event<'a>(kind: EventKind<'a>, stack: &'a [u64]) -> Event<'a> {
    Event { stack: stack.into(), ..Event::new(kind) }
}

#[test]
fn functions_of_this_program() {
    let (start, end, path) = this_program();
    let name = format!("- {path}");
    let frame = a_function_of_ours as *const () as u64 + 2;
    let load = EventKind::ModuleLoad { bias: start, start, end, name: name.as_bytes() };
    let gone = EventKind::ModuleLoad { bias: 1, start: 1, end: 9, name: b"- /nothing/here.so" };
    let other = EventKind::ModuleLoad { bias: 10, start: 10, end: 19, name: b"00ff /proc/self/exe" };
    let (stack, unknown) = ([frame, 5, 15], [77]);
    let events = [
        event(load, &[]),
        event(gone, &[]),
        event(other, &[]),
        event(EventKind::Free { address: 16 }, &stack),
        event(EventKind::Free { address: 32 }, &unknown),
    ];
    let (kept, found) = run(&events, &Files::default());
    let names = kept.0.name(kept.1[0], 9).to_string();
    assert!(names.contains("symbolize::tests::a_function_of_ours"), "{names}");
    assert!(names.contains("here.so+0x4 <- exe+0x5"), "{names}");
    let file = &kept.0.get(kept.1[0]).next().unwrap().functions.last().unwrap().file;
    assert!(Path::new(file).ends_with("src/symbolize/tests.rs"), "{file}");
    assert_eq!(kept.2, ["ModuleLoad", "Source", "Symbol", "ModuleLoad", "ModuleLoad", "Free", "Free"]);
    let problems: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems[0], "/nothing/here.so: a frame has no name: /nothing/here.so does not exist");
    assert!(problems[1].contains("is a different version: its build ID is not 00ff"), "{problems:?}");
    assert_eq!((found.named, a_function_of_ours(1)), (1, 2));
}

/// Existing symbols are kept if no new ones are found.
#[test]
fn symbols_that_the_trace_has() {
    let stack = [5];
    let events = [
        event(EventKind::Source { path: b"a.c" }, &[]),
        event(EventKind::ModuleLoad { bias: 1, start: 1, end: 9, name: b"- /nothing/here.so" }, &[]),
        event(EventKind::Symbol { frame: 5, line: 3, name: b"inner" }, &[]),
        event(EventKind::Symbol { frame: 5, line: 4, name: b"outer" }, &[]),
        event(EventKind::Free { address: 16 }, &stack),
    ];
    let (kept, found) = run(&events, &Files::default());
    let lines: Vec<_> = kept.0.get(kept.1[0]).flat_map(hatf_trace::stacks::Location::lines).collect();
    assert_eq!((lines, found.named), (vec!["inner at a.c:3".to_owned(), "outer at a.c:4".to_owned()], 0));
}

/// Code generated at run time is in no module.
#[test]
fn functions_of_a_perf_map() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("perf-1.map");
    std::fs::write(&map, "7000 100 LazyCompile:*f a.js:1:1\n").unwrap();
    let stack = [0x7010, 0x6000];
    let events = [
        Event::new(EventKind::Image { process: 1, path: b"node" }),
        Event { stack: (&stack).into(), ..Event::new(EventKind::Free { address: 16 }) },
    ];
    let (kept, _) = run(&events, &Files { perf_map: Some(map), ..Files::default() });
    assert_eq!(kept.0.name(kept.1[0], 9).to_string(), "LazyCompile:*f a.js:1:1 <- 0x6000");
    let (_, found) = run(&events, &Files { perf_map: Some(folder.path().join("none")), ..Files::default() });
    assert_eq!(found.problems.len(), 1);
}

/// A problem matters if the nameless functions that allocate have more than 1% of the weight.
#[test]
fn problems_that_matter() {
    let mut stacks = Stacks::default();
    for (start, name) in [(0x1000, &b"- /bin/program"[..]), (0x2000, b"- /lib/small.so"), (0x3000, b"- /lib/libc.so.6")]
    {
        stacks.note(&EventKind::ModuleLoad { bias: start, start, end: start + 0x1000, name });
    }
    // The frames of the C library do not count, although they are on every stack.
    let [program, small] = [[0x3010, 0x1010, 0x3020], [0x3010, 0x2010, 0x3020]].map(|stack| stacks.number(&stack));
    let problem = |path: &str| Problem {
        path: path.to_owned(),
        frames: 1,
        why: String::new(),
        is_map: false,
        is_failure: false,
        needs_debug_information: false,
    };
    let problems = ["/bin/program", "/lib/small.so", "/lib/libc.so.6"].map(problem).to_vec();
    let kept = |weights: [u64; 2]| {
        let weight = |stack| if stack == small { weights[1] } else { weights[0] };
        let kept = of_weight(problems.clone(), &stacks, [program, small], weight);
        kept.into_iter().map(|problem| problem.path).collect::<Vec<_>>()
    };
    assert_eq!(kept([99, 1]), ["/bin/program"]);
    assert_eq!(kept([98, 2]), ["/bin/program", "/lib/small.so"]);
    assert_eq!(kept([0, 0]), [""; 0]);
}
