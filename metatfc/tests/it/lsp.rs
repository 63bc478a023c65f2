//! Tests the language server as a client on its standard input and output. Each answer is parsed as the type that the
//! protocol defines.
#![allow(clippy::panic, reason = "a test")]

use super::common::command;
use gen_lsp_types as lsp;
use metatf_test::Folder;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const URI: &str = "file:///jobs.dtd";

const JOBS: &str = "\
// A queue of jobs.
time.width = 4;
time.interpretation = delta 0;

section queue 1 {
    // A job, by its number.
    job.width = 2; job.interpretation = none;
    // A job was put into the queue.
    submit: (tag, time, job, name) {
        tag.value = 4;
        name.width = 1; name.interpretation = sectionOffset 2;
    }
    done: (tag, time, job, n*cost) {
        tag.value = 5;
        n.width = 1; n.interpretation = none;
        cost.width = 8; cost.interpretation = baseOffset submit.job.value;
    }
}

section names 2 {
    text: vfield;
}
";

/// A server, and the messages that it has sent without a request.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: i64,
    published: Vec<Value>,
    version: i64,
}

impl Client {
    fn start(options: Value) -> (Self, Value) {
        let folder = Folder::new();
        let mut server =
            command(&folder, &["lsp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("metatfc starts");
        let (input, output) = (server.stdin.take().expect("piped"), server.stdout.take().expect("piped"));
        let output = BufReader::new(output);
        let mut client = Self { server, input, output, next: 0, published: Vec::new(), version: 0 };
        let answer = client.ask("initialize", options).expect("it is initialized");
        client.tell("initialized", json!({}));
        (client, answer)
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("the server writes") > 0, "the server has ended");
            if line == "\r\n" {
                break;
            }
            if let Some(number) = line.strip_prefix("Content-Length: ") {
                length = number.trim().parse().expect("a length");
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("the server writes");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// Returns the result of a request, or the message of its error.
    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message.get("id").is_none() {
                self.published.push(message);
            } else {
                assert_eq!(message["id"], id, "answers come in order");
                return match message.get("error") {
                    Some(error) => Err(error["message"].as_str().expect("a message").to_owned()),
                    None => Ok(message["result"].clone()),
                };
            }
        }
    }

    /// Sends a request about the document, using the types of the protocol; see [`ask`](Self::ask).
    fn request<R: lsp::Request>(&mut self, more: Value) -> Result<R::Result, String> {
        let mut params = json!({ "textDocument": { "uri": URI } });
        let fields = params.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        serde_json::from_value::<R::Params>(params.clone()).expect("the client sends what the protocol has");
        let result = self.ask(&R::METHOD.to_string(), params)?;
        Ok(serde_json::from_value(result.clone()).unwrap_or_else(|error| panic!("{}: {error}: {result}", R::METHOD)))
    }

    fn open(&mut self, text: &str) {
        let document = json!({ "uri": URI, "languageId": "metatf", "version": 0, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, changes: Value) {
        self.version += 1;
        let document = json!({ "uri": URI, "version": self.version });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// Returns the errors in the current document.
    fn diagnostics(&mut self) -> Vec<lsp::Diagnostic> {
        let mut found = self.published();
        found.retain(|diagnostic| diagnostic.severity != Some(lsp::DiagnosticSeverity::Hint));
        found
    }

    /// Returns the errors and hints in the current document.
    fn published(&mut self) -> Vec<lsp::Diagnostic> {
        loop {
            let message = match self.published.is_empty() {
                true => self.receive(),
                false => self.published.remove(0),
            };
            assert_eq!(message["method"], "textDocument/publishDiagnostics");
            let params: lsp::PublishDiagnosticsParams =
                serde_json::from_value(message["params"].clone()).expect("diagnostics");
            if params.version.is_none_or(|version| i64::from(version) == self.version) {
                return params.diagnostics;
            }
        }
    }

    fn end(mut self) {
        self.ask("shutdown", Value::Null).expect("it shuts down");
        self.tell("exit", Value::Null);
        drop(self.input);
        assert!(self.server.wait().expect("it ends").success());
    }
}

/// Returns the position of the `nth` occurrence of a word, with `more` added to its column.
fn at(text: &str, word: &str, nth: usize, more: usize) -> Value {
    let start = text.match_indices(word).nth(nth).expect("the word is there").0;
    let before = &text[..start];
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |line| line.encode_utf16().count());
    json!({ "line": line, "character": column + more })
}

fn words(text: &str, edits: &[lsp::TextEdit]) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let word = |range: &lsp::Range| {
        let line = lines[range.start.line as usize];
        line[range.start.character as usize..range.end.character as usize].to_owned()
    };
    edits.iter().map(|edit| word(&edit.range)).collect()
}

/// Returns the text after the edits, which are in order and do not overlap.
fn applied(text: &str, edits: &[lsp::TextEdit]) -> String {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
    let at = |position: &lsp::Position| starts[position.line as usize] + position.character as usize;
    let mut changed = text.to_owned();
    for edit in edits.iter().rev() {
        changed.replace_range(at(&edit.range.start)..at(&edit.range.end), &edit.new_text);
    }
    changed
}

fn initialize(encodings: &[&str]) -> Value {
    json!({ "processId": null, "rootUri": null, "capabilities": { "general": { "positionEncodings": encodings } } })
}

#[test]
fn a_session() {
    let (mut client, answer) = Client::start(initialize(&["utf-16"]));
    let answer: lsp::InitializeResult = serde_json::from_value(answer).expect("what the server can do");
    assert_eq!(answer.capabilities.position_encoding, Some(lsp::PositionEncodingKind::UTF16));
    client.open(JOBS);
    assert_eq!(client.diagnostics(), []);

    // Hover.
    let position = |word: &str, nth: usize| json!({ "position": at(JOBS, word, nth, 0) });
    let hover = |client: &mut Client, word: &str, nth: usize| {
        let found = client.request::<lsp::HoverRequest>(position(word, nth)).expect("an answer");
        match found.map(|hover| hover.contents) {
            Some(lsp::Contents::MarkupContent(content)) => content.value,
            other => panic!("{word}: {other:?}"),
        }
    };
    let time = hover(&mut client, "time", 2);
    assert!(time.contains("4 bytes, `delta 0`, at byte 1"), "{time}");
    assert!(time.contains("| width | `4` | the top level, line 2 |"), "{time}");
    let submit = hover(&mut client, "submit", 0);
    assert!(submit.contains("| 5 | `job` | 2 bytes | `none` |") && submit.contains("tag 4"), "{submit}");
    assert!(submit.contains("put into the queue"), "{submit}");
    let job = hover(&mut client, "job.width", 0);
    assert!(job.contains("in `submit`, `done`: 2 bytes") && job.contains("A job, by its number."), "{job}");
    assert!(hover(&mut client, "delta", 0).contains("previous value"));
    assert!(hover(&mut client, "interpretation", 0).contains("The interpretation of the stored bytes"));
    assert!(hover(&mut client, "2;\n    }\n    done", 0).contains("section `names`, number 2"));
    assert!(client.request::<lsp::HoverRequest>(position("{", 0)).expect("an answer").is_none());

    // Definitions and references.
    let found = client.ask(
        "textDocument/definition",
        json!({ "textDocument": { "uri": URI }, "position": at(JOBS, "submit.job", 0, 8) }),
    );
    let place = at(JOBS, "job, name", 0, 0);
    assert_eq!(found.expect("an answer")[0]["range"]["start"], place);
    let more = json!({ "position": at(JOBS, "job", 5, 1), "context": { "includeDeclaration": true } });
    let references = client.request::<lsp::ReferencesRequest>(more).expect("an answer").expect("some");
    assert_eq!(references.len(), 5, "{references:?}");

    // Rename a field that a section sets, and names that cannot be renamed.
    let renamed = |client: &mut Client, word: &str, nth: usize, name: &str| {
        let more = json!({ "position": at(JOBS, word, nth, 0), "newName": name });
        let edit = client.request::<lsp::RenameRequest>(more)?.expect("an edit");
        Ok::<_, String>(edit.changes.expect("changes").into_values().next().expect("one document"))
    };
    let edits = renamed(&mut client, "job, n*cost", 0, "task").expect("it is renamed");
    assert_eq!(words(JOBS, &edits), ["job", "job", "", "job", "job", "job"]);
    assert!(applied(JOBS, &edits).contains("    task.width = 2; task.interpretation = none; task.was = \"job\";\n"));
    let edits = renamed(&mut client, "submit", 0, "put").expect("it is renamed");
    assert_eq!(words(JOBS, &edits), ["submit", "", "submit"]);
    assert!(applied(JOBS, &edits).contains("        tag.value = 4;\n        tag.was = \"submit\";\n"));
    let edits = renamed(&mut client, "2;\n    }\n    done", 0, "9").expect("its number is changed");
    assert_eq!(words(JOBS, &edits), ["2"; 2]);
    assert!(renamed(&mut client, "tag", 0, "x").expect_err("a word of the language").contains("is predefined"));
    assert!(
        renamed(&mut client, "done", 0, "submit")
            .expect_err("there is one")
            .contains("two records are called `submit`")
    );
    assert!(renamed(&mut client, "done", 0, "delta").expect_err("reserved").contains("not a valid name"));
    let found = client.request::<lsp::PrepareRenameRequest>(position("vfield", 0)).expect("an answer");
    assert!(found.is_none(), "a predefined record keeps its name");

    // The sections, records and comments that have several lines.
    let folds = client.request::<lsp::FoldingRangeRequest>(json!({})).expect("an answer").expect("some");
    let folds: Vec<_> = folds.iter().map(|fold| (fold.start_line, fold.end_line)).collect();
    assert_eq!(folds, [(4, 16), (8, 10), (12, 15), (19, 20)]);

    // The other requests that change nothing.
    let found = client.request::<lsp::DocumentSymbolRequest>(json!({})).expect("an answer").expect("some");
    let lsp::DocumentSymbolResponse::DocumentSymbolList(symbols) = found else { panic!("{found:?}") };
    let names: Vec<&str> = symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(names, ["queue", "names"]);
    let tokens = client.request::<lsp::SemanticTokensRequest>(json!({})).expect("an answer").expect("some");
    let types =
        answer.capabilities.semantic_tokens_provider.map(|provider| serde_json::to_value(provider).expect("JSON"));
    let types = types.expect("colours")["legend"]["tokenTypes"].clone();
    let (mut place, mut coloured) = ((0, 0), Vec::new());
    for token in &tokens.data {
        let from = if token.delta_line == 0 { place.1 } else { 0 };
        place = (place.0 + token.delta_line as usize, from + token.delta_start as usize);
        let word = &JOBS.lines().nth(place.0).expect("a line")[place.1..place.1 + token.length as usize];
        coloured.push((word, types[token.token_type as usize].as_str().expect("a type")));
    }
    for wanted in [
        ("// A queue of jobs.", "comment"),
        ("time", "variable"),
        ("width", "property"),
        ("4", "number"),
        ("delta", "keyword"),
        ("section", "keyword"),
        ("queue", "namespace"),
        ("submit", "struct"),
        ("cost", "variable"),
        ("vfield", "struct"),
    ] {
        assert!(coloured.contains(&wanted), "{wanted:?}: {coloured:?}");
    }
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let hints = client.request::<lsp::InlayHintRequest>(json!({ "range": range })).expect("an answer").expect("some");
    let labels: Vec<String> = hints.iter().map(|hint| format!("{:?}", hint.label)).collect();
    assert!(labels.len() >= 7 && labels[0].contains(":4"), "{labels:?}");
    // Two properties on one line with excess whitespace between them.
    let range = json!({ "start": { "line": 1, "character": 15 }, "end": { "line": 2, "character": 0 } });
    client.change(json!([{ "range": range, "text": "  " }]));
    let more = json!({ "options": { "tabSize": 4, "insertSpaces": true } });
    let edits = client.request::<lsp::DocumentFormattingRequest>(more).expect("an answer").expect("edits");
    // Unchanged lines are not part of the edit.
    let lines: Vec<_> = edits.iter().map(|edit| (edit.range.start.line, edit.range.end.line)).collect();
    let text = "time.width = 4; time.interpretation = delta 0;\n";
    assert_eq!((lines, edits[0].new_text.as_str()), (vec![(1, 2)], text));
    client.end();
}

#[test]
fn while_it_is_typed() {
    let (mut client, _) = Client::start(initialize(&[]));
    client.open(JOBS);
    assert_eq!(client.diagnostics(), []);

    // A misspelled field has a diagnostic and an edit that corrects it.
    let place = at(JOBS, "cost.width", 0, 0);
    let end = at(JOBS, "cost.width", 0, 4);
    client.change(json!([{ "range": { "start": place, "end": end }, "text": "csot" }]));
    let text = JOBS.replacen("cost.width", "csot.width", 1);
    let found = client.diagnostics();
    let message = |d: &lsp::Diagnostic| match &d.message {
        lsp::Message::String(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let unknown = found.iter().find(|d| message(d).contains("has no field `csot`")).expect("E0301");
    assert!(message(unknown).contains("write `cost.width = "), "{}", message(unknown));
    let range = serde_json::to_value(unknown.range).expect("JSON");
    let more = json!({ "range": range, "context": { "diagnostics": [] } });
    let actions = client.request::<lsp::CodeActionRequest>(more).expect("an answer").expect("some");
    let edits: Vec<_> = actions
        .iter()
        .filter_map(|action| match action {
            lsp::CodeActionResponse::CodeAction(action) => action.edit.as_ref()?.changes.clone(),
            lsp::CodeActionResponse::Command(_) => None,
        })
        .flat_map(|changes| changes.into_values().flatten().collect::<Vec<_>>())
        .collect();
    assert_eq!((words(&text, &edits), edits[0].new_text.as_str()), (vec!["csot".to_owned()], "cost"));

    // If a statement is incomplete, the other declarations remain known, and the server offers completions.
    for (typed, wanted) in [
        ("        cost.\n", vec!["width", "unit"]),
        ("        cost.interpretation = \n", vec!["delta", "baseOffset"]),
        ("        cost.interpretation = baseOffset \n", vec!["submit"]),
        ("        cost.interpretation = baseOffset submit.\n", vec!["name", "job"]),
        ("        cost.interpretation = sectionOffset \n", vec!["2"]),
        ("        cost.format = \n", vec!["hex", "duration_ns"]),
        ("        cost.unit = \"\n", vec!["ns"]),
        ("        co\n", vec!["cost", "n"]),
        ("        cost.interpretation = predicted 1 \n", vec!["fcm", "heap"]),
        ("        cost.width = n.\n", vec!["value", "width"]),
    ] {
        let line = at(JOBS, "n.width", 0, 0)["line"].clone();
        let text = JOBS.replacen("        n.width", &format!("{typed}        n.width"), 1);
        client.change(json!([{ "text": text }]));
        let position = json!({ "line": line, "character": typed.trim_end_matches('\n').chars().count() });
        let found = client.request::<lsp::CompletionRequest>(json!({ "position": position })).expect("an answer");
        let Some(lsp::CompletionResponse::CompletionList(list)) = found else { panic!("{typed}: {found:?}") };
        let labels: Vec<&str> = list.items.iter().map(|item| item.label.as_str()).collect();
        assert!(wanted.iter().all(|label| labels.contains(label)), "{typed}: {labels:?}");
        let more = json!({ "position": at(&text, "submit", 0, 0) });
        assert!(client.request::<lsp::HoverRequest>(more).expect("an answer").is_some(), "{typed}");
    }
    client.end();
}

#[test]
fn columns_of_both_kinds() {
    let text = "section s 1 { /* \u{1f600}\u{e9} */ r: (tag, size) { tag.value = 4; size.width = 1;size.interpretation=none; } }\n";
    for (encodings, column) in [(&["utf-8", "utf-16"][..], 27), (&[][..], 24)] {
        let (mut client, answer) = Client::start(initialize(encodings));
        let wanted = if encodings.is_empty() { "utf-16" } else { "utf-8" };
        assert_eq!(answer["capabilities"]["positionEncoding"], wanted);
        client.open(text);
        let more = json!({ "position": { "line": 0, "character": column } });
        let hover = client.request::<lsp::HoverRequest>(more).expect("an answer").expect("the record");
        let range = hover.range.expect("a range");
        assert_eq!(range.end.character - range.start.character, 1, "{hover_range:?}", hover_range = range);
        // Applying the formatter's edit with the same columns yields the formatted text.
        let more = json!({ "options": { "tabSize": 4, "insertSpaces": true } });
        let edits = client.request::<lsp::DocumentFormattingRequest>(more.clone()).expect("an answer").expect("edits");
        let edits = serde_json::to_value(edits).expect("JSON");
        let edits = edits.as_array().expect("edits");
        let change: Vec<Value> = edits.iter().map(|e| json!({ "range": e["range"], "text": e["newText"] })).collect();
        assert!(!change.is_empty());
        client.change(change.into());
        let edits = client.request::<lsp::DocumentFormattingRequest>(more).expect("an answer");
        assert_eq!(edits, Some(Vec::new()), "what is formatted stays as it is");
        client.end();
    }
}

#[test]
fn widths_of_a_trace() {
    let folder = super::folder();
    let trace = folder.path("a.mtf");
    let mut options = initialize(&[]);
    options["initializationOptions"] = json!({ "trace": trace });
    let (mut client, _) = Client::start(options);
    client.open(super::DTD);
    let more = json!({ "position": at(super::DTD, "size", 0, 0) });
    let begun = std::time::Instant::now();
    loop {
        let hover = client.request::<lsp::HoverRequest>(more.clone()).expect("an answer").expect("the field");
        let text = format!("{:?}", hover.contents);
        if text.contains(": 2 of 2 bytes, 1 of 4 bytes") {
            break;
        }
        assert!(text.contains("still reading") && begun.elapsed() < metatf_test::PATIENCE, "{text}");
        std::thread::yield_now();
    }
    client.end();
}

#[test]
fn what_it_cannot_answer() {
    let (mut client, _) = Client::start(initialize(&[]));
    assert!(client.ask("textDocument/hover", json!({})).expect_err("no document").contains("not open"));
    assert!(client.ask("workspace/none", Value::Null).expect_err("no such method").contains("workspace/none"));
    client.open(JOBS);
    let params = json!({ "textDocument": { "uri": URI }, "position": 7 });
    assert!(client.ask("textDocument/hover", params).expect_err("no position").contains("position"));
    client.tell("textDocument/didChange", json!({ "textDocument": { "uri": URI }, "contentChanges": 7 }));
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": "file:///other" } }));
    client.tell("$/other", json!([]));
    client.end();
}

/// Reproducible pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % below.max(1)
    }
}

/// Checks that every position in an answer is within the document.
fn places_are_in(text: &str, answer: &Value) {
    match answer {
        Value::Array(list) => list.iter().for_each(|value| places_are_in(text, value)),
        Value::Object(object) => {
            if let (Some(line), Some(column)) = (object.get("line"), object.get("character")) {
                let (line, column) = (line.as_u64().expect("a line"), column.as_u64().expect("a column"));
                let lines: Vec<&str> = text.split('\n').collect();
                let found = lines.get(usize::try_from(line).expect("small")).expect("the line is in the text");
                assert!(column <= found.encode_utf16().count() as u64, "{line}:{column} is in the text");
            }
            object.values().for_each(|value| places_are_in(text, value));
        }
        _ => {}
    }
}

/// Lint suggestions are hints, with an edit if possible. They disappear when their cause is fixed and while there are
/// errors.
#[test]
fn hints_of_lint() {
    let text = "// A log.\n\nsection log 1 {\n    job.width = 4; job.interpretation = none;\n    // It began.\n    begin: (tag, job) { tag.value = 4; job.width = 1; }\n}\n";
    let (mut client, _) = Client::start(initialize(&[]));
    client.open(text);
    let found = client.published();
    let [hint] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(serde_json::to_value(&hint.code).expect("JSON"), "overridden-property");
    assert_eq!(serde_json::to_value(hint.severity).expect("JSON"), 4);
    let range = serde_json::to_value(hint.range).expect("JSON");
    let context = json!({ "range": range, "context": { "diagnostics": [] } });
    let actions =
        serde_json::to_value(client.request::<lsp::CodeActionRequest>(context).expect("an answer")).expect("JSON");
    let edit = &actions[0]["edit"]["changes"][URI][0];
    assert_eq!(actions[0]["title"], "remove the property");
    client.change(json!([{ "range": edit["range"], "text": edit["newText"] }]));
    assert_eq!(client.published(), []);
    client.change(json!([{ "text": text.replace("tag.value = 4;", "") }]));
    let found = client.published();
    assert!(!found.is_empty() && found.iter().all(|found| found.source.as_deref() == Some("metatfc")), "{found:?}");
    client.end();
}

#[test]
fn random_edits_are_answered() {
    const TYPED: [&str; 12] =
        ["", "}", "{", ";", "(", "\u{1f600}", "\n", "\"", "/*", "delta 0", "r: (tag, x) {", "job.width = "];
    let shipped = std::fs::read_to_string(metatf_test::root().join("dtds/mps.dtd")).expect("it is there");
    let (mut client, _) = Client::start(initialize(&[]));
    let mut numbers = Numbers(33);
    for start in [JOBS, super::DTD, &shipped] {
        let mut text = start.to_owned();
        client.open(&text);
        client.version = 0;
        for _ in 0..25 {
            // Offsets of all characters, to be converted to positions as the client counts them.
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let first = numbers.next(places.len());
            let last = (first + numbers.next(6)).min(places.len() - 1);
            let typed = TYPED[numbers.next(TYPED.len())];
            let position = |offset: usize| {
                let before = &text[..offset];
                let column = before.rsplit('\n').next().map_or(0, |line| line.encode_utf16().count());
                json!({ "line": before.matches('\n').count(), "character": column })
            };
            let place = position(places[first]);
            let range = json!({ "start": place, "end": position(places[last]) });
            text.replace_range(places[first]..places[last], typed);
            client.change(json!([{ "range": range, "text": typed }]));
            let document = json!({ "uri": URI });
            for method in [
                "hover",
                "definition",
                "references",
                "documentHighlight",
                "prepareRename",
                "rename",
                "completion",
                "formatting",
                "codeAction",
                "documentSymbol",
                "semanticTokens/full",
                "inlayHint",
            ] {
                let params = json!({
                    "textDocument": document, "position": place, "newName": "other",
                    "context": { "includeDeclaration": true, "diagnostics": [] }, "options": {},
                });
                match client.ask(&format!("textDocument/{method}"), params) {
                    Ok(answer) => places_are_in(&text, &answer),
                    Err(_) => assert_eq!(method, "rename", "only a rename is refused"),
                }
            }
            let diagnostics = client.published();
            places_are_in(&text, &serde_json::to_value(diagnostics).expect("JSON"));
        }
        // The server has the same text as the client.
        client.change(json!([{ "text": text.clone() }]));
        let again = client.diagnostics().len();
        let parsed = metatf_parser::parse("", text.as_bytes());
        assert_eq!(again, parsed.diagnostics.len());
    }
    client.end();
}

/// After a rename of any field or tagged record, readers with the new DTD find everything in traces with the old DTD.
#[test]
fn renamed_items_are_found_in_old_traces() {
    use metatf_parser::index::SymbolKind;
    let mut renamed = 0;
    for file in ["heap", "HATF10-split", "pcap", "scoped-log"] {
        let path = metatf_test::root().join("dtds").join(file).with_extension("dtd");
        let text = std::fs::read(&path).expect(file);
        let index = metatf_parser::index(&text);
        let old = metatf_parser::parse("old.dtd", &text).dtd.expect("a DTD");
        let format = metatf::format::Format::from_dtd(&old);
        let tagged: Vec<_> =
            index.records.iter().filter(|record| record.tag.is_some()).map(|record| &record.span).collect();
        for symbol in index.symbols.iter().filter(|symbol| !symbol.predefined) {
            let Some(place) = symbol.definitions.first() else { continue };
            let is_kept = match symbol.kind {
                // A text is a nested record, which cannot have earlier names.
                SymbolKind::Field => index.records.iter().flat_map(|record| &record.fields).any(|field| {
                    field.site == *place && field.leaf.path.last().is_some_and(|last| *last == symbol.name)
                }),
                SymbolKind::Record => tagged.contains(&place),
                SymbolKind::Section | SymbolKind::SectionNumber => false,
            };
            let edits = metatf_parser::rename(&text, &index, place.start, "a_new_name");
            let Ok(edits) = edits else { continue };
            if !is_kept {
                continue;
            }
            let changed = edits.iter().rev().fold(text.clone(), |text, edit| edit.apply(&text).expect("in the text"));
            let parsed = metatf_parser::parse("new.dtd", &changed);
            let new = parsed.dtd.unwrap_or_else(|| panic!("{file}: {}: {:?}", symbol.name, parsed.diagnostics));
            let found = metatf::typed::unmatched(&metatf::format::Format::from_dtd(&new), &format);
            let found = found.unwrap_or_else(|error| panic!("{file}: {}: {error}", symbol.name));
            assert!(
                found.is_empty(),
                "{file}: {} {:?}: {found}\n{}",
                symbol.name,
                symbol.kind,
                String::from_utf8_lossy(&changed)
            );
            // Renamed again, both old names are known.
            let again = metatf_parser::index(&changed);
            let place =
                again.symbols.iter().find(|s| s.name == "a_new_name").expect("it is renamed").definitions[0].start;
            let edits = metatf_parser::rename(&changed, &again, place, "a_newer_name").expect("it is renamed");
            let twice = edits.iter().rev().fold(changed, |text, edit| edit.apply(&text).expect("in the text"));
            assert!(
                String::from_utf8_lossy(&twice).contains(&format!("\"a_new_name, {}", symbol.name)),
                "{}",
                symbol.name
            );
            renamed += 1;
        }
    }
    assert!(renamed > 50, "{renamed} names");
}
