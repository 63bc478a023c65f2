//! `show --doc`: writes HTML pages that document the sections, records and fields of a format, with their bytes.
//!
//! `html` contains the parts shared by all pages, `record` documents a record, `layout` draws its bytes, `examples`
//! finds it in a trace, and `source` shows the text of the DTD.

mod examples;
mod html;
mod layout;
mod record;
mod source;

use crate::failure::{Failure, Result, failed};
use crate::show;
use crate::target::Target;
use crate::{input, output};
use examples::Examples;
use html::{Doc, Link, end, markup, prose, start};
use metatf_cli::OutputFolder;
use metatf_parser::index::{Declared, Index, LaidOut, SymbolKind};
use metatf_parser::schema::{Dtd, Section};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

/// Writes pages about a DTD to the directory `path`.
pub(crate) fn run(args: &show::Args, path: &Path) -> Result<()> {
    let dtd = args.dtd()?;
    let examples = match &args.trace {
        Some(trace) => Examples::of(trace, &dtd)?,
        None => Examples::default(),
    };
    let folder = OutputFolder::create(path).map_err(|e| Failure::io(&path.display().to_string(), &e))?;
    // Check that the output directory does not contain an `index.html` of another origin before writing anything.
    check_ours(&folder, "index.html")?;
    let index = metatf_parser::index(dtd.text.as_bytes());
    let name = input::name(&args.file).into_owned();
    // The pages need not reveal the directory of the file.
    let name = Path::new(&name).file_name().and_then(|name| name.to_str()).unwrap_or(&name);
    let places = Places::new(&index, &dtd.text);
    let pages = Pages { name, folder: &folder, dtd: &dtd, places: &places };
    let sections = pages.sections();
    let trace = args.trace.as_deref().map(input::name);
    for (position, section) in &sections {
        pages.section(*position, section, &examples, trace.as_deref())?;
    }
    pages.write("dtd.html", &mut |out| source::lines(out, &dtd.text), "DTD source")?;
    pages.index(&sections)?;
    let count = output::count(sections.len() + 2, "page");
    output::print(&format!("{}: {count}\n", path.join("index.html").display()))
}

/// The inputs of the pages and their destination.
struct Pages<'d> {
    name: &'d str,
    folder: &'d OutputFolder,
    dtd: &'d Dtd,
    places: &'d Places<'d>,
}

impl<'d> Pages<'d> {
    /// Returns the sections that get a page. The global section gets a page only if it declares records.
    fn sections(&self) -> Vec<(usize, &'d Section)> {
        let sections = self.dtd.sections.iter().enumerate();
        sections.filter(|(i, s)| s.number != 0 || !show::listed(self.dtd, *i, s).is_empty()).collect()
    }

    /// Writes a page, but does not replace a file that was not written by `show --doc`. The parts are written one by one, so
    /// that a page with many records is never entirely in memory.
    fn write(&self, file: &str, parts: &mut dyn FnMut(&mut Doc) -> Result<()>, title: &str) -> Result<()> {
        check_ours(self.folder, file)?;
        let (target, sink) = Target::create_in(self.folder, file)?;
        let mut doc = Doc::new(sink, target.name());
        start(&mut doc.text, &format!("{}: {title}", self.name));
        parts(&mut doc)?;
        end(&mut doc.text);
        target.keep(doc.finish()?)
    }

    fn index(&self, sections: &[(usize, &Section)]) -> Result<()> {
        let version = self.dtd.version().ok().flatten().map(|version| version.to_string());
        let mut parts = |doc: &mut Doc| {
            let text = &mut doc.text;
            prose(text, self.dtd.doc.as_deref());
            let _ = write!(text, "<dl>\n<dt>version</dt><dd>{}</dd>\n", markup(version.as_deref().unwrap_or("none")));
            let _ = writeln!(text, "<dt>tag</dt><dd>{}</dd>", output::count(self.dtd.tag_width, "byte"));
            let _ = writeln!(text, "<dt>fingerprint</dt><dd><code>{:016x}</code></dd>", self.dtd.fingerprint());
            text.push_str("<dt>text</dt><dd><a href=\"dtd.html\">the DTD</a></dd>\n</dl>\n");
            for (position, section) in sections {
                let page = Link::section(section.number);
                let _ = writeln!(doc.text, "<h2><a href=\"{page}\">{}</a></h2>", heading(section));
                prose(&mut doc.text, section.doc.as_deref());
                doc.text.push_str("<div class=\"scroll\"><table>\n<tr><th class=\"n\">tag</th><th>record</th><th>description</th></tr>\n");
                for (_, record) in show::listed(self.dtd, *position, section) {
                    let first = record.doc.as_deref().and_then(|doc| doc.lines().next()).unwrap_or_default();
                    let _ = writeln!(
                        doc.text,
                        "<tr><td class=\"n\">{}</td><td><a href=\"{page}#{}\">{}</a></td><td>{}</td></tr>",
                        record::tag(record),
                        Link(&record.name),
                        markup(&record.name),
                        html::line(first)
                    );
                    doc.spill()?;
                }
                doc.text.push_str("</table></div>\n");
            }
            Ok(())
        };
        self.write("index.html", &mut parts, "a binary trace format")
    }

    fn section(&self, position: usize, section: &Section, examples: &Examples, trace: Option<&str>) -> Result<()> {
        let mut parts = |doc: &mut Doc| {
            doc.text.push_str("<p><a href=\"index.html\">All sections</a></p>\n");
            prose(&mut doc.text, section.doc.as_deref());
            for (in_section, record) in show::listed(self.dtd, position, section) {
                let id = section.records.get(in_section).map_or(0, |id| id.0);
                let part = record::Part {
                    dtd: self.dtd,
                    record,
                    places: self.places,
                    laid_out: self.places.records.get(&(section.name.as_deref(), record.name.as_str())).copied(),
                    examples: examples.of_record(id),
                    trace,
                };
                part.write(&mut doc.text);
                doc.spill()?;
            }
            Ok(())
        };
        self.write(&Link::section(section.number), &mut parts, &heading(section))
    }
}

/// Record layouts of a DTD source, keyed by section name and record name, and the offsets of its line starts.
struct Places<'i> {
    index: &'i Index,
    records: HashMap<(Option<&'i str>, &'i str), &'i LaidOut>,
    lines: Vec<usize>,
}

impl<'i> Places<'i> {
    fn new(index: &'i Index, text: &str) -> Self {
        let by_place: HashMap<usize, &LaidOut> = index.records.iter().map(|r| (r.span.start, r)).collect();
        let mut records = HashMap::new();
        let mut add = |section, declared: &'i Declared| {
            if let (SymbolKind::Record, Some(record)) = (declared.kind, by_place.get(&declared.span.start)) {
                records.insert((section, declared.name.as_str()), *record);
            }
        };
        for declared in &index.outline {
            add(None, declared);
            if declared.kind == SymbolKind::Section {
                declared.children.iter().for_each(|child| add(Some(declared.name.as_str()), child));
            }
        }
        let lines = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        Self { index, records, lines }
    }

    /// Returns the line number of a byte of the text, starting at 1.
    fn line(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte) + 1
    }
}

fn heading(section: &Section) -> String {
    let stream = if section.stream.is_some() { ", a stream" } else { "" };
    match &section.name {
        Some(name) => format!("section {} {}{stream}", markup(name), section.number),
        None => "records of all sections".to_owned(),
    }
}

/// Fails if the file exists and was not written by an earlier run.
fn check_ours(folder: &OutputFolder, file: &str) -> Result<()> {
    let name = folder.path().join(file).display().to_string();
    let mut head = Vec::new();
    match folder.read(file.as_ref()).and_then(|file| file.take(html::HEAD.len() as u64).read_to_end(&mut head)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::io(&name, &error)),
        Ok(_) if head == html::HEAD.as_bytes() => Ok(()),
        Ok(_) => failed(format!("{name} exists and was not written by `metatfc show --doc`: choose another directory")),
    }
}
