//! Generated readers in C pass the vectors of level *plain*, and those with codecs and filters, under sanitizers. They
//! survive corrupt files, and refuse what they cannot read.
//!
//! The program is `examples/c-reader/print.c`, compiled for the DTD of each vector.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use metatf_codegen::{Options, generate_c_reader};
use metatf_parser::Dtd;
use metatf_test::{root, skip};
use metatf_tests::conformance::{Level, Vector, levels, vectors};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PRINT: &str = "examples/c-reader/print.c";
const MUTATE: &str = "tests/tests/c/mutate.c";
/// Vectors whose formats together contain every shape of record and every interpretation.
const FORMATS: &[&str] = &[
    "baseoffset-reference",
    "constants",
    "f64",
    "global-records",
    "interleaved",
    "metadata-every-property-class2-big",
    "nested-records",
    "previous-shared",
    "repetition",
    "sectionstride-take-turns",
    "stream-complex",
    "string-table",
    "tag-width-4",
    "v1-groups",
    "v1-zstd-big",
    "variable-arithmetic",
    "x-count-constants",
    "x-counts",
    "x-cstring",
    "x-nested",
    "x-optional-empty",
    "x-other",
    "x-phrases",
    "x-tails",
];
const STRICT: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];
const SANITIZED: &[&str] = &["-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const RSS_LIMIT: &str = "hard_rss_limit_mb=1000";
/// Libraries of codecs: the macro, the library, its header, and declarations that replace a missing header.
const CODECS: &[[&str; 4]] = &[
    ["LZ4", "lz4", "lz4.h", "int LZ4_decompress_safe(const char *, char *, int, int);"],
    ["ZLIB", "z", "zlib.h", "#error no header"],
    [
        "ZSTD",
        "zstd",
        "zstd.h",
        "#include <stddef.h>\nunsigned ZSTD_isError(size_t);\n\
         size_t ZSTD_findFrameCompressedSize(const void *, size_t);\n\
         size_t ZSTD_decompress(void *, size_t, const void *, size_t);",
    ],
];

fn compiler(variable: &str, name: &str, arguments: &[String]) -> std::io::Result<Output> {
    Command::new(std::env::var(variable).unwrap_or_else(|_| name.to_owned())).args(arguments).output()
}

fn strings(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|&part| part.to_owned()).collect()
}

/// Checks whether an empty program that includes the header can be compiled.
fn compiles(folder: &Path, header: &str, options: &[String]) -> bool {
    let source = folder.join("empty.c");
    std::fs::write(&source, format!("#include <{header}>\nint main(void) {{ return 0; }}\n")).unwrap();
    let own = [source.display().to_string(), "-o".to_owned(), folder.join("empty").display().to_string()];
    compiler("CC", "cc", &[&own, options].concat()).is_ok_and(|run| run.status.success())
}

/// Returns the options of the compiler, with all codecs whose libraries exist. Returns `None` if there is no compiler.
fn options(folder: &Path) -> Option<(Vec<String>, bool)> {
    if !compiles(folder, "stdio.h", &[]) {
        skip("there is no C compiler");
        return None;
    }
    let mut options = strings(&[&["-std=c99"], STRICT].concat());
    let sanitized = strings(SANITIZED);
    if compiles(folder, "stdio.h", &sanitized) {
        options.extend(sanitized);
    } else {
        eprintln!("the C compiler has no sanitizers");
    }
    let mut complete = true;
    options.push(format!("-I{}", folder.display()));
    for [name, library, header, declarations] in CODECS {
        let usual = vec![format!("-l{library}")];
        let bare = vec![format!("-l:lib{library}.so.1"), format!("-I{}", folder.display())];
        let library = if compiles(folder, header, &usual) {
            usual
        } else {
            std::fs::write(folder.join(header), declarations).unwrap();
            bare
        };
        if compiles(folder, header, &library) {
            options.push(format!("-DTRACE_{name}"));
            options.extend(library);
        } else {
            eprintln!("the library of the codec {name} is missing");
            complete = false;
        }
    }
    Some((options, complete))
}

fn parse(text: &[u8]) -> Option<Dtd> {
    metatf_parser::parse("format.dtd", text).dtd
}

fn reader(dtd: &Dtd) -> Result<String, String> {
    generate_c_reader(dtd, &Options::new("format.dtd"), "trace").map_err(|error| error.to_string())
}

/// Compiles a program with the reader of a DTD.
fn compiled(folder: &Path, dtd: &Dtd, source: &str, options: &[String]) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("trace.h"), reader(dtd)?).unwrap();
    let program = folder.join("program");
    let own = [
        format!("-I{}", folder.display()),
        root().join(source).display().to_string(),
        "-o".to_owned(),
        program.display().to_string(),
    ];
    let run = compiler("CC", "cc", &[&own, options].concat()).unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Ok(program)
}

/// Runs the program with limited memory. Fails if the program crashes.
fn run(program: &Path, all: bool, trace: &Path) -> Output {
    let all = all.then_some("--all");
    let mut command = Command::new(program);
    let run = command.args(all).arg(trace).env("ASAN_OPTIONS", RSS_LIMIT).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    let whole =
        matches!(run.status.code(), Some(0 | 1)) && !said.contains("Sanitizer") && !said.contains("runtime error");
    assert!(whole, "{}: {:?}\n{said}", trace.display(), run.status);
    assert!(run.status.success() || said.contains(": offset "), "{said}");
    run
}

/// Returns the DTD that a stored chunk at the start of the trace contains.
fn embedded(trace: &[u8]) -> Option<&[u8]> {
    let int = if trace.get(4) == Some(&2) { 8 } else { 4 };
    let at = 16 + 3 * int + usize::from(*trace.get(6)?);
    let head = trace.get(at..at + 48).filter(|head| head.starts_with(b"MTFC") && head[5..8] == [1, 0, 0])?;
    let length = u32::from_le_bytes([head[12], head[13], head[14], head[15]]) as usize;
    trace.get(at + 48..at + 48 + length)
}

/// Returns the printed lines. Readers return elements as they read them, but JSON lines end each group with its
/// elements.
fn lines(run: &Output, dtd: &Dtd) -> Vec<String> {
    let streams: BTreeMap<&str, u8> = dtd
        .sections
        .iter()
        .filter(|section| section.stream.is_some())
        .map(|section| (section.name.as_deref().unwrap_or_default(), section.number))
        .collect();
    let mut out = Vec::new();
    let mut elements: Vec<(u8, String)> = Vec::new();
    let end_group = |out: &mut Vec<String>, elements: &mut Vec<(u8, String)>| {
        elements.sort_by_key(|(section, _)| *section);
        out.extend(elements.drain(..).map(|(_, line)| line));
    };
    for line in String::from_utf8(run.stdout.clone()).unwrap().lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let stream = streams.get(value["@section"].as_str().unwrap_or_default());
        if let Some(group) = value.get("@group") {
            end_group(&mut out, &mut elements);
            out.extend((*group != 0).then(|| line.to_owned()));
        } else if let (Some(number), true, None) = (stream, value["@record"] != "section", value.get("@shared")) {
            elements.push((*number, line.to_owned()));
        } else {
            out.push(line.to_owned());
        }
    }
    end_group(&mut out, &mut elements);
    out
}

/// A vector, and the program that reads its DTD; or the error of the generator.
struct Case {
    vector: Vector,
    dtd: Dtd,
    program: Result<PathBuf, String>,
}

/// Applies a function to all items on all CPUs.
fn parallel<T: Sync, R: Send>(items: &[T], apply: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = |first: usize| -> Vec<R> {
        items.iter().enumerate().skip(first).step_by(threads).map(|(index, item)| apply(index, item)).collect()
    };
    std::thread::scope(|scope| {
        let share = &share;
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Compiles a program for each DTD.
fn cases(folder: &Path, options: &[String]) -> Vec<Case> {
    let vectors = vectors().into_iter().filter(|vector| !vector.name.starts_with("models/"));
    let found: Vec<_> = vectors
        .filter_map(|vector| {
            let trace = std::fs::read(vector.trace_file()).unwrap();
            let given = std::fs::read(vector.dtd_file()).unwrap();
            // A vector with a wrong DTD is read with the given one.
            let dtd = embedded(&trace).and_then(parse).or_else(|| parse(&given))?;
            Some((vector, dtd))
        })
        .collect();
    let dtds: BTreeMap<&str, &Dtd> = found.iter().map(|(_, dtd)| (dtd.text.as_str(), dtd)).collect();
    let dtds: Vec<_> = dtds.into_iter().collect();
    let programs: BTreeMap<String, Result<PathBuf, String>> = parallel(&dtds, |index, (text, dtd)| {
        ((*text).to_owned(), compiled(&folder.join(index.to_string()), dtd, PRINT, options))
    })
    .into_iter()
    .collect();
    let case = |(vector, dtd): (Vector, Dtd)| {
        let program = programs[&dtd.text].clone();
        Case { vector, dtd, program }
    };
    found.into_iter().map(case).collect()
}

/// Checks what a program prints for a vector.
fn check(case: &Case, program: &Path, complete: bool) -> Vec<String> {
    let Case { vector, dtd, .. } = case;
    let [some, all] = [false, true].map(|all| run(program, all, &vector.trace_file()));
    let said = String::from_utf8_lossy(&some.stderr).into_owned();
    // The trace of `x-salvage-embedded-first` is intact.
    let is_salvaged =
        ["/salvage-", "/x-salvage-class", "/x-salvage-header"].iter().any(|group| vector.name.contains(group));
    let lacks_codec = !complete && said.contains("level container");
    let lacks_columns = said.contains("columns (0)") || said.contains("filter 4 (columns)");
    if is_salvaged || !vector.is_trace() || lacks_codec || lacks_columns {
        let ok = some.status.code() == Some(1);
        return if ok { Vec::new() } else { vec![format!("{}: not refused", vector.name)] };
    }
    let failed = some.status.code() != Some(0);
    vector.complaints(&[(lines(&some, dtd), failed), (lines(&all, dtd), failed)])
}

#[test]
fn generated_readers_pass_the_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let Some((options, complete)) = options(folder.path()) else { return };
    let cases = cases(folder.path(), &options);
    let complaints = parallel(&cases, |_, case| {
        let name = &case.vector.name;
        let program = match &case.program {
            Ok(program) => program,
            Err(error)
                if levels(&case.vector).iter().any(|level| matches!(level, Level::Predicted | Level::Ends))
                    && error.contains("level plain") =>
            {
                return Vec::new();
            }
            Err(error) => return vec![format!("{name}: {error}")],
        };
        check(case, program, complete)
    });
    let complaints = complaints.concat();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let passed = cases.iter().filter(|case| case.program.is_ok()).count();
    assert!(passed > 200, "{passed}");
}

/// Readers survive changed copies of the vectors of some formats: `METATF_TEST_FACTOR=100` reads a hundred times as
/// many.
#[test]
fn generated_readers_survive_damage() {
    let folder = tempfile::tempdir().unwrap();
    let Some((options, _)) = options(folder.path()) else { return };
    let vectors: Vec<(PathBuf, Vec<u8>)> = vectors()
        .iter()
        .filter(|vector| vector.is_trace() && vector.dtd_file().exists())
        .map(|vector| (vector.trace_file(), std::fs::read(vector.dtd_file()).unwrap()))
        .collect();
    parallel(FORMATS, |index, name| {
        let text = std::fs::read(root().join("tests/vectors/good").join(name).join("format.dtd")).unwrap();
        let folder = folder.path().join(index.to_string());
        let program = compiled(&folder, &parse(&text).unwrap(), MUTATE, &options).unwrap();
        let traces = vectors.iter().filter(|(_, dtd)| *dtd == text).map(|(trace, _)| trace);
        let count = (1000 * metatf_test::factor()).to_string();
        let mut command = Command::new(&program);
        let run = command.args([&count, "1"]).args(traces).env("ASAN_OPTIONS", RSS_LIMIT).output().unwrap();
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
    });
}

/// Readers name the feature that filter 4 needs, at its bit, or the filter in a trace without the feature.
#[test]
fn columns_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some((options, _)) = options(folder.path()) else { return };
    let vectors = root().join("tests/vectors/good");
    let text = std::fs::read(vectors.join("x-columns-feature/format.dtd")).unwrap();
    let program = compiled(folder.path(), &parse(&text).unwrap(), PRINT, &options).unwrap();
    let filter = 40 + 48 + text.len() + 7;
    for (name, offset, message) in [
        ("x-columns-feature", 8, "the trace needs features that this reader lacks: columns (0)"),
        ("x-columns-no-feature", filter, "the chunk has filter 4 (columns), which this reader lacks"),
    ] {
        let run = run(&program, false, &vectors.join(name).join("trace.mtf"));
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!((run.status.code(), run.stdout.is_empty()), (Some(1), true), "{name}: {said}");
        assert!(said.contains(&format!(": offset {offset}")) && said.contains(message), "{name}: {said}");
    }
}

/// A reader accepts a DTD with other comments, spaces and annotations, and refuses any other difference.
#[test]
fn another_dtd_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some((options, _)) = options(folder.path()) else { return };
    let trace = root().join("tests/vectors/good/v1-pipe/trace.mtf");
    let text = String::from_utf8(embedded(&std::fs::read(&trace).unwrap()).unwrap().to_vec()).unwrap();
    let annotated = format!("/* A comment. */ size.unit = \"a; b\";\n{}", text.replace(' ', "\t "));
    for (text, accepted) in [(annotated, true), (text.replace(".width = 4", ".width = 3"), false)] {
        let program = compiled(folder.path(), &parse(text.as_bytes()).unwrap(), PRINT, &options).unwrap();
        let run = run(&program, false, &trace);
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.success(), accepted, "{text}\n{said}");
        assert!(accepted || said.contains("differs from the DTD of this reader at `4`"), "{said}");
    }
}

/// Headers compile as C++, for DTDs with every shape of record and with names that are keywords.
#[test]
fn headers_are_valid_in_cpp() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["hostile", "shapes", "optional", "named", "nested", "catch_all", "string_table"] {
        let text = std::fs::read(root().join(format!("metatf-codegen/tests/golden/{name}.dtd"))).unwrap();
        let source =
            format!("#define TRACE_IMPLEMENTATION\n#define TRACE_PRINT\n{}", reader(&parse(&text).unwrap()).unwrap());
        for (variable, compiler_name, standard, file) in
            [("CC", "cc", "-std=c99", "x.c"), ("CXX", "c++", "-std=c++11", "x.cpp")]
        {
            let file = folder.path().join(file);
            std::fs::write(&file, &source).unwrap();
            let own = strings(&[standard, "-fsyntax-only", &file.display().to_string()]);
            match compiler(variable, compiler_name, &[own, strings(STRICT)].concat()) {
                Ok(run) => assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr)),
                Err(error) => eprintln!("skipped: no {compiler_name}: {error}"),
            }
        }
    }
}
