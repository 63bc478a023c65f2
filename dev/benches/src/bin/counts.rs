//! Runs one loop once, so that callgrind can count its instructions: `counts LOOP DIRECTORY`. The directory contains
//! the input files of the loops, which `counts --make DIRECTORY N` creates from the first N events of each shipped
//! trace. `counts --list` prints the loop names.

use metatf_bench::ours::hatf10::{self, Fit, plain, split, stored};
use metatf_bench::ours::{heap, names, universal};
use metatf_bench::{Event, Result, events, hand};
use std::hint::black_box;
use std::path::Path;

/// Runs `pass`, which processes the entire input of a loop. Only the instructions of this function are counted.
#[inline(never)]
fn counted<T>(pass: impl FnOnce() -> T) -> T {
    black_box(pass())
}

/// A loop's name, and the function that runs it in a directory.
type Loop = (&'static str, fn(&Path) -> Result<()>);

/// Defines a loop over a trace.
macro_rules! reading {
    ($name:literal, $file:literal, $pass:path) => {
        ($name, |directory| {
            let trace = std::fs::read(directory.join($file))?;
            counted(|| $pass(&trace))?;
            Ok(())
        })
    };
}

/// Defines a hand-written loop over the contents of a trace.
macro_rules! by_hand {
    ($name:literal, $file:literal, $content:path, $pass:path) => {
        ($name, |directory| {
            let content = $content(&std::fs::read(directory.join($file))?)?;
            counted(|| $pass(&content)).ok_or("the content is not as expected")?;
            Ok(())
        })
    };
}

/// Defines a loop that writes events into preallocated memory.
macro_rules! writing {
    ($name:literal, $pass:expr) => {
        ($name, |directory| {
            let mut events = Vec::new();
            events::read_file(&directory.join("events.raw32"), usize::MAX, &mut events)?;
            let room = Vec::with_capacity(events.len() * 64);
            let pass: fn(&[Event], Vec<u8>) -> metatf::Result<Vec<u8>> = $pass;
            counted(|| pass(&events, room))?;
            Ok(())
        })
    };
}

const LOOPS: &[Loop] = &[
    by_hand!("plain, hand-written, all fields", "plain.mtf", hand::content, hand::plain::all),
    ("plain, hand-written, check sums, all fields", |directory| {
        let trace = std::fs::read(directory.join("plain.mtf"))?;
        counted(|| hand::stored::all(&trace)).ok_or("the trace is not as expected")?;
        Ok(())
    }),
    by_hand!("plain, hand-written, one field", "plain.mtf", hand::content, hand::plain::one),
    by_hand!("plain, hand-written, count by tag", "plain.mtf", hand::content, hand::plain::count),
    reading!("plain, `next`, all fields", "plain.mtf", plain::all),
    reading!("plain, `next`, one field", "plain.mtf", plain::one),
    reading!("plain, `next`, count by tag", "plain.mtf", plain::count),
    reading!("plain, `for_each`, all fields", "plain.mtf", plain::each_all),
    reading!("plain, `for_each`, one field", "plain.mtf", plain::each_one),
    reading!("plain, `for_each`, count by tag", "plain.mtf", plain::each_count),
    reading!("plain, `only`, `next_record`, one field", "plain.mtf", plain::only_one),
    reading!("plain, `only`, `for_each`, one field", "plain.mtf", plain::only_each_one),
    reading!("plain, columns, all fields", "plain.mtf", plain::columns_all),
    reading!("plain, columns, one field", "plain.mtf", plain::columns_one),
    reading!("plain, universal, `next_record`, all fields", "plain.mtf", universal::all),
    reading!("plain, universal, `next_record`, count by tag", "plain.mtf", universal::count),
    reading!("plain, universal, `for_each`, all fields", "plain.mtf", universal::each_all),
    reading!("plain, universal, `for_each`, count by tag", "plain.mtf", universal::each_count),
    reading!("plain, universal, owned records, all fields", "plain.mtf", universal::entries_all),
    reading!("plain, universal, announced, count by tag", "plain.mtf", universal::skipped_count),
    reading!("plain, universal, columns, all fields", "plain.mtf", universal::columns_all),
    by_hand!("`best`, hand-written, all fields", "best.mtf", hand::best::chunks, hand::best::all),
    reading!("`best`, `next`, all fields", "best.mtf", plain::all),
    reading!("`best`, `for_each`, all fields", "best.mtf", plain::each_all),
    reading!("`best`, columns, all fields", "best.mtf", plain::columns_all),
    reading!("`best`, universal, `next_record`, all fields", "best.mtf", universal::all),
    reading!("`best`, universal, `for_each`, all fields", "best.mtf", universal::each_all),
    reading!("`best`, universal, columns, all fields", "best.mtf", universal::columns_all),
    reading!("`HATF10-split`, `next`, all fields", "split.mtf", split::all),
    reading!("`HATF10-split`, `for_each`, all fields", "split.mtf", split::each_all),
    reading!("`heap.dtd`, `next`, all fields", "heap.mtf", heap::model::all),
    reading!("`heap.dtd`, `for_each`, all fields", "heap.mtf", heap::model::each_all),
    reading!("`heap.dtd` with times, `next`, all fields", "timed.mtf", heap::timed::all),
    reading!("`heap.dtd` with times, `for_each`, all fields", "timed.mtf", heap::timed::each_all),
    writing!("plain, hand-written, written", |events, mut out| {
        hand::plain::write(events, &mut out);
        Ok(out)
    }),
    writing!("plain, hand-written, check sums, written", |events, mut out| {
        hand::stored::write(events, &mut out);
        Ok(out)
    }),
    writing!("plain, strict, written", |events, out| plain::write(events, &stored(), Fit::Strict, true, out)),
    writing!("plain, strict, written at once", |events, out| plain::write_all(
        events,
        &stored(),
        Fit::Strict,
        true,
        out
    )),
    writing!("plain, widening, written", |events, out| plain::write(events, &stored(), Fit::Widen, true, out)),
    writing!("`HATF10-split`, written", |events, out| split::write(events, &stored(), Fit::Widen, false, out)),
    writing!("`heap.dtd`, written", |events, out| heap::model::write(events, &heap::options(), out)),
    writing!("`heap.dtd` with times, written", |events, out| heap::timed::write(events, &heap::options(), out)),
    ("table of strings, `intern` of a known one", |directory| {
        let distinct = names::distinct();
        let mut known = names::filled(&distinct.iter().map(String::as_str).collect::<Vec<_>>())?;
        let used = names::uses(&distinct, std::fs::read(directory.join("events.raw32"))?.len() / 32);
        counted(|| known.intern(&used))?;
        Ok(())
    }),
    reading!("table of strings, `next` and `get`", "names.mtf", names::lengths),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["--list"] => LOOPS.iter().for_each(|(name, _)| println!("{name}")),
        ["--make", directory, most] => make(Path::new(directory), most.parse()?)?,
        [name, directory] => {
            let (_, run) = LOOPS.iter().find(|(known, _)| known == name).ok_or("no such loop")?;
            run(Path::new(directory))?;
        }
        _ => return Err("counts --list | --make DIRECTORY N | LOOP DIRECTORY".into()),
    }
    Ok(())
}

/// Creates the input files of the loops and prints the number of records in each file.
fn make(directory: &Path, most: usize) -> Result<()> {
    let mut events = Vec::new();
    for path in events::shipped()? {
        events::read_file(&path, most, &mut events)?;
    }
    let plain = hatf10::plain_trace(&events)?;
    std::fs::write(directory.join("best.mtf"), hatf10::best_trace(&plain)?)?;
    std::fs::write(directory.join("plain.mtf"), plain)?;
    let split = split::write(&events, &stored(), Fit::Widen, false, Vec::new())?;
    std::fs::write(directory.join("split.mtf"), split)?;
    std::fs::write(directory.join("heap.mtf"), heap::model::write(&events, &heap::options(), Vec::new())?)?;
    std::fs::write(directory.join("timed.mtf"), heap::timed::write(&events, &heap::options(), Vec::new())?)?;
    let distinct = names::distinct();
    std::fs::write(directory.join("names.mtf"), names::trace(&names::uses(&distinct, events.len()))?)?;
    let mut packed = Vec::new();
    hand::packed::write(&events, &mut packed);
    std::fs::write(directory.join("events.raw32"), packed)?;
    println!("{}", events.len());
    Ok(())
}
