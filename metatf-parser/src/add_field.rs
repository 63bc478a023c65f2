//! Adds a field to every record, for tools that extend the traces of an arbitrary DTD.

use crate::ast::{Count, FieldItem, Name, Record};
use crate::diagnostic::Reporter;
use crate::span::{Source, Span};
use crate::{lexer, syntax, text};

/// Returns the text of a DTD with a field added to every tagged record, right after the tag, and with `properties`
/// appended. All other text is unchanged. Returns `None` if the text does not follow the grammar, or if a record
/// consists of a repetition without parentheses. The new text is not checked; [`parse`](crate::parse) reports problems
/// such as an existing field with the same name.
#[must_use]
pub fn add_field(text: &[u8], name: &str, properties: &str) -> Option<String> {
    let source = Source::new(text);
    let mut report = Reporter::new(&source);
    let text = text::decode(text, &mut report)?;
    let lexed = lexer::lex(text, source.start, &mut report)?;
    let ast = syntax::parse(text, &lexed, &mut report);
    if report.failed() {
        return None;
    }
    let records = ast.scopes.iter().flat_map(|scope| &scope.records).filter(|record| is_tagged(record));
    let places: Option<Vec<_>> = records.map(|record| places(record, name)).collect();
    let mut places = places?.concat();
    places.sort_unstable();
    let (mut out, mut done) = (String::with_capacity(text.len() + properties.len()), 0);
    for (at, added) in places {
        out.push_str(text.get(done..at)?);
        out.push_str(&added);
        done = at;
    }
    out.push_str(text.get(done..)?);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(properties);
    Some(out)
}

fn is_tagged(record: &Record<'_>) -> bool {
    let sets_tag = |path: &[Name<'_>]| matches!(path, [tag] if tag.text == "tag");
    record.block.iter().any(|setting| sets_tag(&setting.path) && setting.name.text == "value")
}

/// Returns the insertions for a record, each as an offset and the text to insert.
fn places(record: &Record<'_>, name: &str) -> Option<Vec<(usize, String)>> {
    match &record.fields {
        FieldItem::Name(tag) if tag.text == "tag" => {
            Some(vec![(tag.span.start(), "(".to_owned()), (tag.span.end(), format!(", {name})"))])
        }
        FieldItem::Name(only) => {
            Some(vec![(only.span.start(), format!("({name}, ")), (only.span.end(), ")".to_owned())])
        }
        FieldItem::Repeat { .. } => None,
        group @ FieldItem::Group(_) => first(group).map(|(first, is_tag)| {
            vec![if is_tag { (first.end(), format!(", {name}")) } else { (first.start(), format!("{name}, ")) }]
        }),
    }
}

/// Returns the location of the first field in a field list, and whether this field is the tag.
fn first(item: &FieldItem<'_>) -> Option<(Span, bool)> {
    match item {
        FieldItem::Repeat { own: Some(own), .. } => Some((own.span, false)),
        FieldItem::Name(name) | FieldItem::Repeat { count: Count::Name(name), .. } => {
            Some((name.span, name.text == "tag"))
        }
        FieldItem::Repeat { count: Count::Computed(count), .. } => Some((count.span, false)),
        FieldItem::Group(items) => items.iter().find_map(first),
    }
}

#[cfg(test)]
mod tests {
    use super::add_field;
    use crate::parse;

    fn fields(text: &str) -> Vec<String> {
        let added = add_field(text.as_bytes(), "from", "from.width = 1; from.interpretation = none;\n")
            .expect("it follows the grammar");
        let parsed = parse("t.dtd", added.as_bytes());
        let dtd = parsed.dtd.unwrap_or_else(|| panic!("{added}\n{:?}", parsed.diagnostics));
        let records = dtd.records.iter().skip(3);
        records.map(|r| r.leaves.iter().map(|l| l.path.join(".")).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn every_record_with_a_tag_has_it() {
        let number = |n: &str| format!("{n}.width = 1; {n}.interpretation = none;");
        let text = format!(
            "// first\n{} {} {} section s 1 {{ // a comment, kept
                a: (tag, x) {{ tag.value = 4; }} b: (x, y) {{ tag.value = 5; }} c: (tag) {{ tag.value = 6; }}
                d: ((n * x, y)) {{ tag.value = 7; }} e: vfield {{ tag.value = 8; }} f: (pair) {{ tag.value = 9; }}
                pair: (x, y); g: (tag, n*(x, y)) {{ tag.value = 10; }}
                h: tag {{ tag.value = 11; }} }}
            section t 2 {{ element: (y); }}",
            number("x"),
            number("y"),
            number("n")
        );
        let wanted = [
            "tag from x",
            "tag from x y",
            "tag from",
            "tag from n x y",
            "tag from vfield.length vfield.data",
            "tag from pair.x pair.y",
            "tag from n n_items.x n_items.y",
            "tag from",
            "y",
        ];
        assert_eq!(fields(&text), wanted);
    }

    #[test]
    fn what_is_no_dtd_gets_none() {
        assert_eq!(add_field(b"section {", "from", ""), None);
        assert_eq!(add_field(b"\xff", "from", ""), None);
        assert_eq!(add_field(b"section s 1 { r: n * x { tag.value = 4; } }", "from", ""), None);
    }
}
