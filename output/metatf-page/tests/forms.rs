//! Prints a page with every block and every value in every format, and pages with arbitrary content.
#![expect(clippy::unwrap_used)]

use metatf_page::{
    AddressMap, Block, Chart, Column, Facts, Flame, Form, Intervals, Mark, Note, Page, Panel, Region, Shape, Table,
    TextStyle, Unit, Value, render,
};
use proptest::prelude::*;

fn printed(page: &Page, form: Form) -> String {
    let mut out = Vec::new();
    render(page, form, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn sizes() -> Table {
    let mut table = Table::new([Column::key("size"), Column::new("blocks"), Column::new("bytes"), Column::new("")]);
    for (size, blocks, bytes) in
        [("32..63", 532_u64, 25_088_u64), ("1024..2047", 430, 473_088), ("65536..131071", 1, 65_536)]
    {
        table.row([Value::text(size), Value::Count(blocks), Value::Bytes(bytes), Value::Bar(blocks, 532)]);
    }
    table.sum([Value::text("all"), Value::Count(963), Value::Bytes(563_712)]);
    table.rest(Note::new("and {} more").with([Value::Count(12)]));
    table
}

fn chart() -> Chart {
    let mut chart = Chart::new("grep.mtf: live bytes over time", Unit::Time, Unit::Bytes);
    let live = [1, 3, 2, 8, 5, 6, 4, 7, 1];
    chart.stretches("live", Shape::Area, 22_750_000, live.map(|level| level * 1_100_000));
    chart.stretches("resident", Shape::Steps, 22_750_000, live.map(|level| 900_000 + level * 1_200_000));
    chart.marks.push(Mark { at: 91_000_000, name: "peak".to_owned() });
    chart
}

fn flame() -> Flame {
    let mut flame = Flame::new("grep.mtf: bytes live at the peak", Unit::Bytes);
    flame.add(["main", "parse<a; b>", "malloc"], 30_000);
    flame.add(["main", "parse<a; b>"], 5_000);
    flame.add(["main", "copy"], 10_000);
    flame.add(["start_thread", "work"], 5_000);
    flame
}

fn map() -> AddressMap {
    let cells = (0..200_u16).map(|cell| (cell % 7 != 3).then(|| f32::from(cell % 11) / 10.0)).collect();
    let regions =
        vec![Region { address: 0x5555_0000, cells }, Region { address: 0x7fff_0000, cells: vec![Some(1.0); 12] }];
    AddressMap { title: "grep.mtf: the heap at its peak".to_owned(), cell: 4096, regions, left_out: 3 }
}

/// Creates ten series, which is more than the number of colors. One series lacks an interval, and another exceeds the
/// scale.
fn intervals() -> Intervals {
    let of_group =
        |group: u32| (0..10).map(move |n| f64::from(n + group) / 4.0).map(|at| Some([at - 0.1, at, at + 0.2]));
    let mut groups: Vec<Vec<_>> = [1, 2].map(|group| of_group(group).collect()).into();
    groups[1][4] = None;
    let panels = ["Bytes", "Objects"].map(|name| Panel { name: name.to_owned(), intervals: groups.clone() }).into();
    Intervals {
        title: "Models <of> two programs".to_owned(),
        x_name: "programs".into(),
        groups: ["grep", "make"].map(str::to_owned).into(),
        series: (0..10).map(|n| format!("model {n}")).collect(),
        panels,
        most: Some(2.5),
        baseline: Some(1.0),
        ..Intervals::default()
    }
}

fn page() -> Page {
    let mut page = Page::new("grep.mtf");
    page.push(Note::new("{} live in {} blocks, {} after the start").with([
        Value::Bytes(14_848),
        Value::Count(221),
        Value::Time(205_000_000),
    ]));
    page.heading(Note::new("TOTALS, {} of them").with([Value::Count(3)]));
    let share = Note::new("{} of all").with([Value::Part(1, 3)]);
    let facts = Facts::new().and("objects", Value::Count(3_316)).and_said("bytes", Value::Bytes(283_194), share);
    page.push(facts.and("command", Value::text("grep -r <x> | \x1b[31mred\n")));
    page.heading("SIZES");
    page.push(sizes());
    page.heading("CHANGES");
    let mut changes = Table::new([Column::new("bytes"), Column::new(""), Column::new("by stack")]);
    let stack =
        ["std::vector<int>::push_back(int const&) (stl_vector.h:1280)", "Cart::add(Item const&) (cart.cpp:12)", "main"];
    let change = Value::PartChange { before: 1000, after: 1050 };
    changes.row([Value::BytesChange(-2048), change, Value::Lines(stack.map(str::to_owned).to_vec())]);
    changes.row([Value::Unknown, Value::Blank, Value::text("stack not known")]);
    page.push(changes);
    page.heading("PICTURES");
    page.push(chart());
    page.push(flame());
    page.push(map());
    page
}

#[test]
fn every_form() {
    insta::assert_snapshot!("text", printed(&page(), Form::text(None)));
    insta::assert_snapshot!("narrow", printed(&page(), Form::Text(TextStyle { width: Some(60), colour: true })));
    insta::assert_snapshot!("markdown", printed(&page(), Form::Markdown));
    insta::assert_snapshot!("html", printed(&page(), Form::Html));
    insta::assert_snapshot!("chart", printed(&page(), Form::Svg));
}

#[test]
fn every_picture() {
    for (name, block) in [("flame", Block::from(flame())), ("map", map().into()), ("intervals", intervals().into())] {
        insta::assert_snapshot!(name, printed(&Page { figures: vec![block], ..Page::default() }, Form::Svg));
    }
    let error = render(&Page::new("no picture"), Form::Svg, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "this report has no picture");
}

fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..5000_u64];
    let text = prop_oneof!["\\PC{0,60}", any::<String>(), "[a-z:<>&|\"\x1b\n ]{0,90}"];
    (0..13_u8, number.clone(), number, text, any::<f64>()).prop_map(|(kind, a, b, text, float)| match kind {
        0 => Value::Blank,
        1 => Value::Unknown,
        2 => Value::Count(a),
        3 => Value::Bytes(a),
        4 => Value::Time(a),
        5 => Value::Part(a, b),
        6 => Value::CountChange(i128::from(a) - i128::from(b)),
        7 => Value::BytesChange(i128::from(a) - i128::from(b)),
        8 => Value::PartChange { before: a, after: b },
        9 => Value::Number(float, 3),
        10 => Value::Address(a),
        11 => Value::Lines(text.split(' ').map(str::to_owned).collect()),
        _ => Value::text(text),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that for any page, the output contains no control characters, tags are complete, and text fits the
    /// terminal if its numbers fit.
    #[test]
    fn any_page(
        cells in prop::collection::vec(prop::collection::vec(value(), 0..6), 0..6),
        names in prop::collection::vec("\\PC{0,12}", 1..6),
        points in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20),
        width in 1..120_usize,
        text in any::<String>(),
    ) {
        let mut page = Page::new(text.clone());
        page.heading(text.clone());
        page.push(Note::new("{} {}").with(cells.iter().flatten().take(2).cloned()));
        let mut table = Table::new(names.into_iter().map(Column::new));
        cells.iter().for_each(|row| table.row(row.iter().cloned()));
        page.push(cells.iter().flatten().cloned().fold(Facts::new(), |facts, value| facts.and(text.clone(), value)));
        page.push(table);
        let mut chart = Chart::new(text.clone(), Unit::Time, Unit::Count);
        chart.series.push(metatf_page::Series { name: text.clone(), shape: Shape::Steps, points: points.clone() });
        chart.stretches(text.clone(), Shape::Bars, u64::MAX / 3, points.iter().map(|point| point.1));
        page.push(chart);
        let mut flame = Flame::new(text.clone(), Unit::Count);
        flame.add([text.clone(), text], points.len() as u64);
        page.push(flame);
        for form in [Form::text(None), Form::text(Some(width)), Form::Markdown, Form::Html, Form::Svg] {
            let printed = printed(&page, form);
            prop_assert!(!printed.contains(|c| c != '\n' && metatf_page::is_control(c)), "{form:?}: {printed:?}");
            if form == Form::Html || form == Form::Svg {
                prop_assert!(!printed.contains("NaN") && !printed.contains("inf\""));
                prop_assert_eq!(printed.matches("<svg").count(), printed.matches("</svg>").count());
                prop_assert_eq!(printed.matches("<td").count(), printed.matches("</td>").count());
            }
        }
    }
}
