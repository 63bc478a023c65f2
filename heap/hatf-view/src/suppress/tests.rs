use super::*;

fn frame<'s>(function: &'s str, object: &'s str) -> Frame<'s> {
    Frame { function, object, file: "", line: 0 }
}

fn read(text: &str) -> Result<Suppressions> {
    let mut read = Suppressions::default();
    read.add("x.supp", text).map(|()| read)
}

fn block(lines: &[&str]) -> String {
    format!("{{\n  name\n  Memcheck:Leak\n  {}\n}}\n", lines.join("\n  "))
}

/// Returns whether a suppression with these lines matches the stack.
fn takes(lines: &[&str], frames: &[Frame<'_>]) -> bool {
    read(&block(lines)).unwrap().list()[0].takes(frames)
}

#[test]
fn frames_of_valgrind() {
    let stack = [
        frame("xmalloc", "/bin/program"),
        frame("own::parse", "/bin/program"),
        frame("", "/lib/libx.so.1"),
        frame("main", "/bin/program"),
    ];
    for lines in [
        &["fun:malloc", "fun:xmalloc"][..],
        &["fun:*alloc", "fun:xmalloc", "fun:own::*"],
        &["fun:_Znwm", "fun:xmalloc"],
        &["obj:*vgpreload_memcheck*", "fun:xmalloc"],
        &["...", "fun:main"],
        &["...", "obj:*/libx.so*", "fun:main"],
        &["fun:malloc", "...", "fun:m?in"],
        &["...", "fun:xmalloc", "...", "fun:own::parse"],
        &["...", "fun:???", "fun:main"],
        &["match-leak-kinds: definite,possible", "fun:calloc", "fun:xmalloc", "fun:_ZN3own5parseEv"],
        &["obj:*"],
        &["fun:malloc"],
    ] {
        assert!(takes(lines, &stack), "{lines:?}");
    }
    for lines in [
        &["fun:main"][..],
        &["fun:xmalloc"],
        &["fun:malloc", "fun:main"],
        &["fun:malloc", "fun:malloc", "fun:xmalloc"],
        &["fun:*", "fun:own::parse"],
        &["fun:malloc", "fun:xmall"],
        &["...", "fun:main", "fun:_start"],
        &["...", "obj:libx.so.1"],
        &["...", "src:main.c"],
        &["...", "fun:_ZN3own*"],
    ] {
        assert!(!takes(lines, &stack), "{lines:?}");
    }
    // Another recorder may have left names mangled.
    for line in ["fun:_ZN3own5parseEv", "fun:_ZN3own*"] {
        assert!(takes(&["...", line], &[frame("_ZN3own5parseEv", "")]), "{line}");
    }
    let line = Frame { function: "f", object: "", file: "/home/me/src/own.c", line: 12 };
    for (text, is_it) in [
        ("src:own.c", true),
        ("src:own.c:12", true),
        ("src:*/src/*.c:12", true),
        ("src:own.c:13", false),
        ("src:own", false),
    ] {
        assert_eq!(takes(&["...", text], &[line]), is_it, "{text}");
    }
    let mangled = read(&block(&["fun:_ZN3own*"])).unwrap();
    assert!(mangled.list()[0].cannot_match().is_some_and(|why| why.contains("mangled")));
    assert_eq!(read(&block(&["fun:own*"])).unwrap().list()[0].cannot_match(), None);
    assert!(takes(&["fun:malloc"], &[]) && !takes(&["fun:main"], &[]));
}

#[test]
fn patterns_of_leak_sanitizer() {
    let stack = [frame("own::parse", "/bin/program"), Frame { file: "/src/main.c", ..frame("main", "/lib/libx.so") }];
    for (pattern, is_it) in [
        ("own", true),
        ("^own::", true),
        ("parse$", true),
        ("^own*se$", true),
        ("main.c", true),
        ("libx", true),
        ("*", true),
        ("^parse", false),
        ("own$", false),
        ("pars?", false),
        ("other", false),
    ] {
        let read = read(&format!("# mine\nleak:{pattern}\n")).unwrap();
        assert_eq!(read.list()[0].takes(&stack), is_it, "{pattern}");
        assert_eq!((read.list()[0].name.as_str(), read.list()[0].line), (pattern, 2));
    }
    assert!(!read("leak:*").unwrap().list()[0].takes(&[frame("", "")]));
}

#[test]
fn files_of_several_and_of_none() {
    let none = read("\n# nothing\n").unwrap();
    assert!(none.list().is_empty() && none.others == 0);
    let text = "# of valgrind\n{\n a\n Memcheck:Cond\n fun:x\n}\n{\n b\n Memcheck,Helgrind:Leak\n fun:y\n}\n{\n c\n Memcheck:Param\n write(buf)\n ...\n}\n";
    let read_ = read(text).unwrap();
    assert_eq!(read_.list().iter().map(|one| (&*one.name, one.line)).collect::<Vec<_>>(), [("b", 7)]);
    assert_eq!(read_.others, 2);
    let lsan = read("race:x\nleak:y\n").unwrap();
    assert_eq!((lsan.list().len(), lsan.others), (1, 1));
}

#[test]
fn errors_have_a_line() {
    let long = format!("leak:{}", "x".repeat(LINE));
    let deep = block(&vec!["fun:x"; 501]);
    for (text, error) in [
        ("x\n", "x.supp:1: not a suppression: expected `{` as in valgrind, or leak:PATTERN as in LeakSanitizer"),
        ("\n\n{\n", "x.supp:3: the file ends before the suppression's name"),
        ("{\n}\n", "x.supp:2: the suppression ends before its name"),
        ("{\nn\n}\n", "x.supp:3: the suppression ends before its kind, such as Memcheck:Leak"),
        ("{\nn\nLeak\n", "x.supp:3: expected an error kind, such as Memcheck:Leak"),
        ("{\nn\nMemcheck:Leak\nfun:x\n", "x.supp:1: the suppression does not end: expected `}`"),
        (
            "{\nn\nMemcheck:Leak\nfun x\n}\n",
            "x.supp:4: expected fun:NAME, obj:PATH, src:FILE:LINE or `...`, found `fun x`",
        ),
        (
            "{\nn\nMemcheck:Leak\nfun:\n}\n",
            "x.supp:4: expected fun:NAME, obj:PATH, src:FILE:LINE or `...`, found `fun:`",
        ),
        (
            "{\nn\nMemcheck:Leak\n...\n}\n",
            "x.supp:1: the suppression matches everything: it needs a line other than `...`",
        ),
        ("{\nn\nMemcheck:Leak\nfun:x\n}\nleak:x\n", "x.supp:6: expected `{`, which begins a suppression"),
        ("leak:x\n\nleek:\u{1b}[31m\n", "x.supp:3: expected leak:PATTERN, found `leek:\\u{1b}[31m`"),
        ("leak:\n", "x.supp:1: the suppression matches everything: expected leak:PATTERN"),
        (&long, "x.supp:1: the line exceeds 65,536 bytes"),
        (&deep, "x.supp:504: the suppression has more than 500 frames"),
    ] {
        assert_eq!(read(text).unwrap_err().to_string(), error);
    }
}

/// The time for a pattern of many stars is at most proportional to the product of both lengths.
#[test]
fn stars_end() {
    let (pattern, name) = (format!("leak:{}b", "a*".repeat(5000)), "a".repeat(5000));
    assert!(!read(&pattern).unwrap().list()[0].takes(&[frame(&name, "")]));
    let mut lines = vec!["..."; 400];
    lines.push("fun:b");
    let stack = vec![frame("a", ""); 5000];
    assert!(!takes(&lines, &stack));
}

#[test]
fn what_is_known_is_read() {
    let known = Suppressions::known();
    assert!(known.list().len() > 20 && known.others == 0);
    let find = |frames: &[Frame<'_>]| known.list().iter().find(|one| one.takes(frames)).map(|one| one.name.clone());
    let pool = [
        frame("", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"),
        frame("call_init", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
    ];
    assert!(find(&pool).is_some_and(|name| name.contains("72,704 bytes")));
    let stdio =
        [frame("_IO_file_doallocate", "/lib/libc.so.6"), frame("puts", "/lib/libc.so.6"), frame("main", "/bin/x")];
    assert!(find(&stdio).is_some_and(|name| name.starts_with("glibc's buffers")));
    assert_eq!(find(&[frame("main", "/bin/x")]), None);
}

/// A written suppression matches its stack and no others. In LeakSanitizer's format, each function occurs once.
#[test]
fn what_is_written_is_read() {
    let stacks = [
        vec![frame("xmalloc", "/bin/x"), frame("own::Table<int, char>::grow", "/bin/x"), frame("main", "/bin/x")],
        vec![frame("own::make", "/bin/x"), frame("main", "/bin/x")],
        vec![frame("", "/lib/lib y.so"), frame("read@plt", "/bin/x")],
        vec![frame("<own::A as own::B>::f", "/bin/x"), frame("own::A::A", "/lib/a"), frame("std::run", "/lib/b")],
        vec![],
    ];
    let entry = |(number, frames): (usize, &Vec<Frame<'static>>)| Entry {
        name: format!("entry {number}"),
        function: ["own::Table<int, char>::grow", "own::make", "read@plt", "", ""][number],
        frames: frames.clone(),
    };
    let entries: Vec<_> = stacks.iter().enumerate().map(entry).collect();
    let (text, left_out) = write("what\nis left", &entries, SuppressionForm::Valgrind);
    assert_eq!(left_out, 1);
    let written = read(&text).unwrap();
    assert_eq!(written.list().len(), 4, "{text}");
    for (number, one) in written.list().iter().enumerate() {
        assert_eq!(one.name, format!("entry {number}"));
        let taken: Vec<_> = stacks.iter().map(|frames| one.takes(frames)).collect();
        assert_eq!(taken, (0..5).map(|other| other == number).collect::<Vec<_>>(), "{text}");
    }
    // valgrind sees mangled names.
    let mangled = [frame("xmalloc", ""), frame("_ZN3own5TableIicE4growEv", ""), frame("main", "")];
    assert!(written.list()[0].takes(&mangled), "{text}");
    let (text, left_out) = write("t", &entries, SuppressionForm::Lsan);
    assert_eq!((&*text, left_out), ("# t\nleak:own::Table*::grow\nleak:own::make\nleak:read@plt\n", 2));
    // In valgrind's format, the suppression matches only the blocks that `main` allocates directly. In LeakSanitizer's
    // format, it would match all stacks.
    let main = [Entry { name: "m".to_owned(), function: "main", frames: vec![frame("main", ""), frame("_start", "")] }];
    let (text, left_out) = write("t", &main, SuppressionForm::Valgrind);
    assert_eq!((&*text, left_out), ("# t\n{\n   m\n   Memcheck:Leak\n   fun:*\n   fun:main\n}\n", 0));
    assert!(!read(&text).unwrap().list()[0].takes(&stacks[0]));
    assert_eq!(write("t", &main, SuppressionForm::Lsan), ("# t\n".to_owned(), 1));
}

/// Written suppressions match their stacks in both formats, regardless of the characters in names and paths.
#[test]
fn what_is_written_takes_odd_names() {
    for function in [
        "leak>libx.so",
        "own::Smart<int>::operator->",
        "own::operator<< <char>",
        "a<b>c",
        "own::Table<int, std::less<int>>::grow<char>(int)",
        "parse*$",
        "parse$ <int>",
        "^begin",
        "# mine",
        "a\u{1b}[31m::b",
        "own::pick<0>",
        "<own::A as own::B<u8>>::f::{{closure}}",
    ] {
        for object in ["/lib/a\u{7}b.so", " /lib/x.so ", "/lib/x*y?.so", ""] {
            let frames = vec![frame(function, object), frame("main", "/bin/x")];
            for form in [SuppressionForm::Valgrind, SuppressionForm::Lsan] {
                let entry = Entry { name: "one".to_owned(), function, frames: frames.clone() };
                let (text, left_out) = write("t", &[entry], form);
                let read = read(&text).unwrap();
                assert_eq!(read.list().len() as u64 + left_out, 1, "{text}");
                assert!(read.list().iter().all(|one| one.takes(&frames)), "{text}{frames:?}");
                // The suppression must not match every stack, either.
                assert!(
                    !read.list().iter().any(|one| one.takes(&[frame("other", "/lib/other.so"), frames[1]])),
                    "{text}"
                );
            }
        }
    }
}
