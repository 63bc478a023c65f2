//! Drawing of the screen.

use std::sync::Arc;

use metatf_page::{shortened, shown, units};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Clear, Dataset, GraphType, Paragraph, Row, Table};

use super::follow::End;
use super::functions::{Functions, Sort};
use super::snapshot::{Snapshot, State};
use super::view::{Panel, View};
use hatf_view::analysis::Timeline;

/// Minimum width to show sizes and threads next to the functions.
const WIDE: u16 = 110;
/// Minimum height to show the program's output at the bottom.
const HIGH: u16 = 40;
/// Width of the panel with sizes and threads next to the functions.
const SIDE: u16 = 46;
/// Minimum size of a usable window.
const SMALLEST: (u16, u16) = (40, 10);
/// Maximum number of marks in the curve.
const MARKS: usize = 9;

/// The data to draw on the screen.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The current figures.
    pub snapshot: Arc<Snapshot>,
    /// The functions that hold memory.
    pub functions: Arc<Functions>,
    /// The last lines of the program's output, or `None` if they are unknown.
    pub output: Option<Vec<String>>,
}

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, all: &Shown, view: &View) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("hatf watch needs {} columns and {} lines", SMALLEST.0, SMALLEST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let head = head(&all.snapshot, view, area.width);
    let lines = u16::try_from(head.len()).unwrap_or(u16::MAX).min(area.height / 3);
    let curve_height = ((area.height - lines) * 2 / 5).clamp(4, 16);
    let [top, curve_area, rest, keys] = Layout::vertical([
        Constraint::Length(lines),
        Constraint::Length(curve_height),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(head), top);
    curve(frame, &all.snapshot, curve_area);
    lower(frame, all, view, rest);
    frame.render_widget(Paragraph::new(footer(view, area.width)), keys);
}

/// Draws the area below the curve.
fn lower(frame: &mut Frame<'_>, all: &Shown, view: &View, area: Rect) {
    let (wide, high) = (area.width >= WIDE, frame.area().height >= HIGH && all.output.is_some());
    let output_height = if high && view.panel == Panel::Functions { area.height / 3 } else { 0 };
    let [area, below] = Layout::vertical([Constraint::Min(3), Constraint::Length(output_height)]).areas(area);
    let side_width = if wide { SIDE } else { 0 };
    let [main, side] = Layout::horizontal([Constraint::Min(20), Constraint::Length(side_width)]).areas(area);
    match view.panel {
        Panel::Functions => functions(frame, &all.functions, view, main),
        Panel::Sizes if wide => functions(frame, &all.functions, view, main),
        Panel::Sizes => sizes_and_threads(frame, &all.snapshot, main),
        Panel::Output => output(frame, all, view.scroll, main),
        Panel::Help => help(frame, main),
    }
    if wide {
        sizes_and_threads(frame, &all.snapshot, side);
    }
    if output_height > 0 {
        output(frame, all, 0, below);
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn warning() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

/// Returns the header lines.
fn head(snapshot: &Snapshot, view: &View, width: u16) -> Vec<Line<'static>> {
    let glance = &snapshot.glance;
    let program = shown(&snapshot.program).into_owned();
    let program = if program.is_empty() { "hatf watch".to_owned() } else { program };
    let state = match &snapshot.state {
        State::Waiting => "waiting for the first events".to_owned(),
        State::Reading => "reading the trace".to_owned(),
        State::Recorded if snapshot.spool.is_some_and(|spool| spool.is_off) => "recording is off".to_owned(),
        State::Recorded => format!("running, {}", units::nanoseconds(glance.now)),
        State::Ended(None) => format!("recording ended after {}", units::nanoseconds(glance.now)),
        State::Ended(Some(End::Exit(status))) => {
            format!("ended with status {status} after {}", units::nanoseconds(glance.now))
        }
        State::Ended(Some(End::Killed(signal))) => {
            format!("killed by signal {signal} after {}", units::nanoseconds(glance.now))
        }
        State::Abandoned => "the trace is incomplete and not being written: run hatf recover".to_owned(),
        State::Damaged(why) => format!("cannot continue reading: {}", shown(why)),
    };
    let is_wrong = matches!(snapshot.state, State::Abandoned | State::Damaged(_));
    let paused = if view.paused { "PAUSED  " } else { "" };
    let room = usize::from(width).saturating_sub(state.chars().count() + paused.len() + 2).max(12);
    let mut lines = vec![Line::from(vec![
        Span::styled(paused, warning()),
        Span::styled(cut(&program, room), bold()),
        Span::raw("  "),
        Span::styled(state, if is_wrong { warning() } else { Style::new() }),
    ])];
    lines.extend(flow(numbers(snapshot), width));
    lines.extend(snapshot.warnings.iter().take(1).map(|text| Line::styled(shown(text).into_owned(), warning())));
    lines
}

/// Returns the figures in the header. Figures that indicate a problem are highlighted if they are not 0.
fn numbers(snapshot: &Snapshot) -> Vec<(String, Style)> {
    let (glance, plain) = (&snapshot.glance, Style::new());
    let has_ended = matches!(snapshot.state, State::Ended(_));
    let mut numbers = Vec::new();
    let mut add = |text: String, style| numbers.push((text, style));
    let bytes_in = |bytes, blocks| format!("{} in {} blocks", units::bytes(bytes), units::count(blocks));
    if glance.sizes_only {
        add(format!("{} allocated", bytes_in(glance.totals.bytes, glance.totals.allocs)), bold());
    } else {
        let what = if matches!(snapshot.state, State::Ended(Some(_))) { "never freed" } else { "live" };
        add(format!("{what} {}", bytes_in(glance.live.bytes, glance.live.blocks)), bold());
        add(format!("peak {} at {}", units::bytes(glance.peak.bytes), units::nanoseconds(glance.peak.time)), plain);
    }
    if let Some(resident) = snapshot.resident.points.last() {
        add(format!("private pages {}", units::bytes(resident.last)), plain);
    }
    add(format!("{} events", units::count(glance.totals.records)), plain);
    if !has_ended {
        add(format!("{}/s", units::count(snapshot.rate)), plain);
    }
    let dropped = snapshot.spool.map_or(0, |spool| spool.dropped);
    let lost = glance.totals.lost.max(dropped);
    add(format!("{} lost", units::count(lost)), if lost > 0 { warning() } else { plain });
    if let Some(spool) = snapshot.spool {
        let full = spool.backlog > spool.room / 2;
        let text = format!("spool {} of {}", units::bytes(spool.backlog), units::bytes(spool.room));
        add(text, if full { warning() } else { plain });
        if spool.waits > 0 {
            add(format!("waited {} times", units::count(spool.waits)), warning());
        }
        if spool.followed > 0 {
            add(format!("{} other processes", units::count(spool.followed.into())), plain);
        }
    }
    if let Some(mean) = glance.sampling {
        add(format!("sampled, one block per {}: functions are estimates", units::bytes(mean)), warning());
    }
    numbers
}

/// Arranges strings into lines, with as many strings per line as fit.
fn flow(texts: Vec<(String, Style)>, width: u16) -> Vec<Line<'static>> {
    let (mut lines, mut used) = (Vec::<Line<'static>>::new(), usize::MAX);
    for (text, style) in texts {
        let length = text.chars().count();
        match lines.last_mut() {
            Some(line) if used + 2 + length <= usize::from(width) => {
                line.push_span("  ");
                line.push_span(Span::styled(text, style));
                used += 2 + length;
            }
            _ => {
                lines.push(Line::styled(text, style));
                used = length;
            }
        }
    }
    lines
}

/// Returns the points of a timeline's curve, in seconds and bytes.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn points(timeline: &Timeline) -> Vec<(f64, f64)> {
    let at = |place: usize| place as f64 * timeline.step as f64 / 1e9;
    timeline.points.iter().enumerate().map(|(place, point)| (at(place), point.most as f64)).collect()
}

/// Draws live bytes and resident pages over time, with marks.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn curve(frame: &mut Frame<'_>, snapshot: &Snapshot, area: Rect) {
    let glance = &snapshot.glance;
    let (live, resident) = (points(&glance.timeline), points(&snapshot.resident));
    // Skip the time before watching began, for which resident pages are unknown.
    let resident: Vec<_> = resident.into_iter().skip_while(|(_, bytes)| *bytes == 0.0).collect();
    let end = (glance.now as f64 / 1e9).max(1e-6);
    let most = live.iter().chain(&resident).map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let first = glance.marks.len().saturating_sub(MARKS);
    let marks = glance.marks.get(first..).unwrap_or_default();
    let marks: Vec<[(f64, f64); 2]> =
        marks.iter().map(|mark| mark.last as f64 / 1e9).map(|at| [(at, 0.0), (at, top)]).collect();
    let line = |name, marker, color, data| {
        Dataset::default()
            .name(name)
            .marker(marker)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(color))
            .data(data)
    };
    let mut datasets: Vec<_> = marks.iter().map(|mark| line("", Marker::Dot, Color::Yellow, mark)).collect();
    if !resident.is_empty() {
        datasets.push(line("", Marker::Dot, Color::Blue, &resident));
    }
    datasets.push(line("", Marker::Braille, Color::Green, &live));
    let mut title = vec![Span::styled(" live bytes ", Style::new().fg(Color::Green))];
    if !resident.is_empty() {
        title.push(Span::styled("and private pages (dots) ", Style::new().fg(Color::Blue)));
    }
    if let Some(mark) = glance.marks.last() {
        let name = cut(&shown(&mark.name), 24);
        let at = units::nanoseconds(mark.last);
        title.push(Span::styled(format!(" mark {name} at {at} "), Style::new().fg(Color::Yellow)));
    }
    let label = |text: String| Span::styled(text, dim());
    let points = glance.timeline.points.iter().chain(&snapshot.resident.points);
    let highest = units::bytes(points.map(|point| point.most).max().unwrap_or(0));
    let x = Axis::default().bounds([0.0, end]).labels([label("0".to_owned()), label(units::nanoseconds(glance.now))]);
    let y = Axis::default().bounds([0.0, top]).labels([label("0".to_owned()), label(highest)]);
    let block = Block::new().borders(Borders::TOP).title(Line::from(title));
    frame.render_widget(Chart::new(datasets).block(block).x_axis(x).y_axis(y).legend_position(None), area);
}

/// Draws the table of functions.
fn functions(frame: &mut Frame<'_>, functions: &Functions, view: &View, area: Rect) {
    let by = match view.sort {
        Sort::Live => "live bytes",
        Sort::Growth => "growth",
        Sort::Blocks => "live blocks",
        Sort::Allocated => "bytes allocated",
    };
    let rows = functions.sorted(view.sort);
    let scroll = view.scroll.min(rows.len().saturating_sub(1));
    let what = if functions.count == 1 { "function" } else { "functions" };
    let mut title = format!(" {} {what}, by {by} ", units::count(functions.count as u64));
    if functions.unnamed > 0 {
        title.push_str(&format!("({} frames have no name yet) ", units::count(functions.unnamed as u64)));
    }
    let block = Block::new().borders(Borders::TOP).title(title);
    if !functions.has_stacks && functions.total.allocated.blocks > 0 {
        let text = "The trace has no stacks. To record them, use hatf record --stacks.";
        frame.render_widget(Paragraph::new(text).block(block), area);
        return;
    }
    let growth = format!("+{} s", functions.over.as_secs());
    let all = area.width >= 80;
    let columns = ["live", "", "blocks", "allocated", &growth, "function"];
    let shown_columns = move |column: usize| all || column != 2 && column != 3;
    let cells = |cells: [String; 6]| {
        let cells = cells.into_iter().enumerate().filter(move |(column, _)| shown_columns(*column));
        let right = |(column, cell): (usize, String)| {
            let alignment = if column == 5 { Alignment::Left } else { Alignment::Right };
            Line::from(cell).alignment(alignment)
        };
        Row::new(cells.map(right).collect::<Vec<_>>())
    };
    let head = cells(columns.map(str::to_owned)).style(bold());
    let of = match view.sort {
        Sort::Allocated => functions.total.allocated.bytes,
        _ => functions.total.live.bytes,
    };
    let widths: Vec<u16> =
        [9, 6, 9, 9, 10].into_iter().enumerate().filter(|(n, _)| shown_columns(*n)).map(|n| n.1).collect();
    let room = usize::from(area.width).saturating_sub(widths.iter().map(|width| usize::from(*width) + 1).sum());
    let body = rows.into_iter().skip(scroll).map(|function| {
        let part = if view.sort == Sort::Allocated { function.allocated.bytes } else { function.live.bytes };
        cells([
            units::bytes(function.live.bytes),
            units::percent(part, of),
            units::count(function.live.blocks),
            units::bytes(function.allocated.bytes),
            units::bytes_change(function.growth),
            shortened(&shown(&function.name), room).into_owned(),
        ])
    });
    let widths: Vec<_> = widths.into_iter().map(Constraint::Length).chain([Constraint::Min(10)]).collect();
    frame.render_widget(Table::new(body, widths).header(head).block(block), area);
}

/// Draws sizes and threads.
fn sizes_and_threads(frame: &mut Frame<'_>, snapshot: &Snapshot, area: Rect) {
    let [above, below] = Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
    let sizes = &snapshot.glance.sizes;
    let total: u64 = sizes.iter().map(|bucket| bucket.count).sum();
    // Keep the most frequent sizes, in ascending order.
    let room = usize::from(above.height.saturating_sub(2));
    let mut frequent: Vec<_> = sizes.iter().collect();
    frequent.sort_by_key(|bucket| (std::cmp::Reverse(bucket.count), bucket.from));
    frequent.truncate(room);
    frequent.sort_by_key(|bucket| bucket.from);
    let most = frequent.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let right = |text: String| Line::from(text).alignment(Alignment::Right);
    let size = |bucket: &&hatf_lab::statistics::Bucket| {
        Row::new([
            right(units::bytes(bucket.from)),
            right(units::count(bucket.count)),
            right(units::percent(bucket.count, total)),
            Line::styled(units::bar(bucket.count, most, 12), Style::new().fg(Color::Green)),
        ])
    };
    let widths = [9, 13, 6, 12].map(Constraint::Length);
    let head = Row::new([right("from".into()), right("blocks".into()), Line::default(), Line::default()]).style(bold());
    let block = |title| Block::new().borders(Borders::TOP).title(title);
    let table = Table::new(frequent.iter().map(size), widths).header(head);
    frame.render_widget(table.block(block(" sizes of allocated blocks ")), above);
    let mut threads: Vec<_> = snapshot.glance.threads.iter().filter(|thread| thread.thread > 0).collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.bytes), thread.thread));
    let thread = |thread: &&hatf_view::analysis::ThreadReport| {
        let name = thread.name.as_deref().unwrap_or("");
        Row::new([
            right(units::bytes(thread.bytes)),
            right(units::count(thread.allocs)),
            right(units::count(thread.frees)),
            Line::from(format!("{} {}", thread.thread, shown(name))),
        ])
    };
    let widths = [Constraint::Length(9), Constraint::Length(11), Constraint::Length(11), Constraint::Min(8)];
    let head = ["allocated", "allocs", "frees"].map(|text| right(text.to_owned()));
    let head = Row::new(head.into_iter().chain([Line::from("thread")])).style(bold());
    let what = if threads.len() == 1 { "thread" } else { "threads" };
    let title = format!(" {} {what} ", units::count(threads.len() as u64));
    let table = Table::new(threads.iter().map(thread), widths).header(head);
    frame.render_widget(table.block(block(title.as_str())), below);
}

/// Draws the last lines of the program's output.
fn output(frame: &mut Frame<'_>, all: &Shown, scroll: usize, area: Rect) {
    let block = Block::new().borders(Borders::TOP).title(" program output ");
    let Some(lines) = &all.output else {
        let text = "The output is not shown because hatf watch did not start the program.";
        frame.render_widget(Paragraph::new(text).block(block), area);
        return;
    };
    let room = usize::from(area.height.saturating_sub(1));
    let last = lines.len().saturating_sub(scroll.min(lines.len().saturating_sub(room)));
    let first = last.saturating_sub(room);
    let visible = lines.get(first..last).unwrap_or_default();
    let text: Vec<_> = visible.iter().map(|line| Line::from(shown(line).into_owned())).collect();
    frame.render_widget(Paragraph::new(text).block(block), area);
}

/// Draws the help for the keys.
fn help(frame: &mut Frame<'_>, area: Rect) {
    let keys = [
        ("s", "sort by live bytes, growth, live blocks or bytes allocated"),
        ("p", "pause the display; reading continues"),
        ("m", "set a mark in the trace and in the curve: type a name, press Enter"),
        ("w", "write an HTML report of the current state next to the trace"),
        ("o", "program output"),
        ("t", "block sizes and threads"),
        ("up down", "scroll; Page Up, Page Down, Home"),
        ("q", "leave; the program and its recording continue"),
        ("Ctrl-C", "interrupt the program, or stop recording an attached process"),
        ("Ctrl-Z", "suspend this screen; fg resumes it"),
    ];
    let rows = keys.map(|(key, does)| Row::new([Line::styled(key, bold()), Line::from(does)]));
    let block = Block::new().borders(Borders::TOP).title(" keys ");
    frame.render_widget(Clear, area);
    frame.render_widget(Table::new(rows, [Constraint::Length(8), Constraint::Min(20)]).block(block), area);
}

/// Returns the footer line.
fn footer(view: &View, width: u16) -> Line<'static> {
    if let Some(name) = &view.name {
        return Line::from(vec![Span::styled("mark name: ", bold()), Span::raw(format!("{name}_"))]);
    }
    if let Some(message) = &view.message {
        return Line::styled(cut(&shown(message), width.into()), bold());
    }
    let keys = "q leave  p pause  s sort  m mark  w page  o output  t sizes  ? help";
    let short = "q leave  p pause  s sort  m mark  o output  ? help";
    Line::styled(if usize::from(width) > keys.len() { keys } else { short }, dim())
}

/// Truncates a string to this many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most.saturating_sub(2)).collect();
    cut.push_str("..");
    cut
}
