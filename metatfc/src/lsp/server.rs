//! Dispatches messages from the editor to the open documents and sends the responses.

use super::document::{Document, Refusal};
use super::widths::Widths;
use super::{answers, edits, place};
use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use metatf_parser::Columns;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The open documents and the capabilities of the editor.
pub(super) struct Server {
    columns: Columns,
    documents: BTreeMap<String, Document>,
    /// The field widths of the trace named in the editor's settings.
    widths: Option<Widths>,
}

impl Server {
    /// Creates a server from the parameters of `initialize`.
    pub(super) fn new(params: &Value) -> Self {
        let offered = params.pointer("/capabilities/general/positionEncodings").and_then(Value::as_array);
        let utf8 = offered.is_some_and(|offered| offered.iter().any(|encoding| encoding == "utf-8"));
        let columns = if utf8 { Columns::Utf8 } else { Columns::Utf16 };
        let trace = params.pointer("/initializationOptions/trace").and_then(Value::as_str);
        let widths = trace.map(|trace| Widths::of(Path::new(trace)));
        Self { columns, documents: BTreeMap::new(), widths }
    }

    /// Returns the response to `initialize`.
    pub(super) fn capabilities(&self) -> Value {
        let encoding = if self.columns == Columns::Utf8 { "utf-8" } else { "utf-16" };
        json!({
            "capabilities": {
                "positionEncoding": encoding,
                "textDocumentSync": { "openClose": true, "change": 2 },
                "hoverProvider": true,
                "definitionProvider": true,
                "referencesProvider": true,
                "documentHighlightProvider": true,
                "renameProvider": { "prepareProvider": true },
                "completionProvider": { "triggerCharacters": [".", "=", "(", "\""] },
                "documentFormattingProvider": true,
                "codeActionProvider": { "codeActionKinds": ["quickfix"] },
                "documentSymbolProvider": true,
                "semanticTokensProvider": {
                    "legend": { "tokenTypes": answers::TOKEN_TYPES, "tokenModifiers": [] },
                    "full": true,
                },
                "inlayHintProvider": true,
                "foldingRangeProvider": true,
            },
            "serverInfo": { "name": "metatfc", "version": env!("CARGO_PKG_VERSION") },
        })
    }

    /// Handles a message. Every request receives a response, even an unknown request.
    pub(super) fn handle(&mut self, message: Message, send: &mut dyn FnMut(Message) -> bool) {
        match message {
            Message::Request(request) => {
                let answer = match self.answer(&request) {
                    Ok(result) => Response::new_ok(request.id, result),
                    Err((code, message)) => Response::new_err(request.id, code as i32, message),
                };
                send(answer.into());
            }
            Message::Notification(notification) => self.note(&notification, send),
            // The server sends no requests.
            Message::Response(_) => {}
        }
    }

    /// Returns whether the editor has received the diagnostics of all documents.
    pub(super) fn is_published(&self) -> bool {
        self.documents.values().all(|document| document.published)
    }

    /// Sends the diagnostics of each document that has changed.
    pub(super) fn publish(&mut self, send: &mut dyn FnMut(Message) -> bool) {
        for (uri, document) in &mut self.documents {
            if !std::mem::replace(&mut document.published, true) {
                let diagnostics = answers::diagnostics(document, uri);
                let params = json!({ "uri": uri, "version": document.version, "diagnostics": diagnostics });
                send(Notification::new("textDocument/publishDiagnostics".to_owned(), params).into());
            }
        }
    }

    fn note(&mut self, notification: &Notification, send: &mut dyn FnMut(Message) -> bool) {
        let params = &notification.params;
        let Some(uri) = params.pointer("/textDocument/uri").and_then(Value::as_str) else { return };
        let version = params.pointer("/textDocument/version").cloned().unwrap_or_default();
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                let text = params.pointer("/textDocument/text").and_then(Value::as_str).unwrap_or_default();
                self.documents.insert(uri.to_owned(), Document::new(text.to_owned(), version, self.columns));
            }
            "textDocument/didChange" => {
                let changes = params.get("contentChanges").and_then(Value::as_array);
                if let (Some(document), Some(changes)) = (self.documents.get_mut(uri), changes) {
                    document.change(changes, version);
                }
            }
            "textDocument/didClose" => {
                self.documents.remove(uri);
                // Remove the diagnostics of a closed document.
                let params = json!({ "uri": uri, "diagnostics": [] });
                send(Notification::new("textDocument/publishDiagnostics".to_owned(), params).into());
            }
            _ => {}
        }
    }

    fn answer(&self, request: &Request) -> Result<Value, Refusal> {
        let params = &request.params;
        let document = || {
            let uri = params.pointer("/textDocument/uri").and_then(Value::as_str);
            let open = uri.and_then(|uri| self.documents.get_key_value(uri));
            open.ok_or_else(|| (ErrorCode::InvalidParams, "the document is not open".to_owned()))
        };
        // Returns a document and the offset of a position in the document.
        let at = || {
            let (uri, document) = document()?;
            let offset = params.get("position").and_then(|position| place::offset(&document.lines(), position));
            let offset =
                offset.ok_or_else(|| (ErrorCode::InvalidParams, "the position is missing or invalid".to_owned()))?;
            Ok::<_, Refusal>((uri.as_str(), document, offset))
        };
        Ok(match request.method.as_str() {
            "textDocument/hover" => {
                let (_, document, offset) = at()?;
                answers::hover(document, offset, self.widths.as_ref())
            }
            "textDocument/definition" => {
                let (uri, document, offset) = at()?;
                answers::definition(document, uri, offset)
            }
            "textDocument/references" => {
                let (uri, document, offset) = at()?;
                let all = params.pointer("/context/includeDeclaration").and_then(Value::as_bool).unwrap_or(true);
                answers::references(document, uri, offset, all)
            }
            "textDocument/documentHighlight" => {
                let (_, document, offset) = at()?;
                answers::highlights(document, offset)
            }
            "textDocument/prepareRename" => {
                let (_, document, offset) = at()?;
                edits::prepare_rename(document, offset)
            }
            "textDocument/rename" => {
                let (uri, document, offset) = at()?;
                let name = params.get("newName").and_then(Value::as_str).unwrap_or_default();
                edits::rename(document, uri, offset, name)?
            }
            "textDocument/completion" => {
                let (_, document, offset) = at()?;
                edits::completion(document, offset)
            }
            "textDocument/formatting" => edits::formatting(document()?.1),
            "textDocument/foldingRange" => answers::folds(document()?.1),
            "textDocument/codeAction" => {
                let (uri, document) = document()?;
                let range = params.get("range").and_then(|range| place::bytes(&document.lines(), range));
                edits::actions(document, uri, range)
            }
            "textDocument/documentSymbol" => answers::outline(document()?.1),
            "textDocument/semanticTokens/full" => answers::semantic_tokens(document()?.1),
            "textDocument/inlayHint" => {
                let (_, document) = document()?;
                let range = params.get("range").and_then(|range| place::bytes(&document.lines(), range));
                answers::hints(document, range)
            }
            other => return Err((ErrorCode::MethodNotFound, format!("unknown method {other}"))),
        })
    }
}
