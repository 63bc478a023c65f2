// Starts the VS Code extension with a stand-in for the editor: the client starts the server, sends it the open text,
// and reports the errors. Run by dev/editors/try/run: node vscode.mjs DTD, where DTD is a Meta-TF DTD with an error.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const file = process.argv[2], text = readFileSync(file, "utf8");

/// A part of the editor that the test does not check: callable, constructible, with members of the same kind.
const anything = name => new Proxy(class {}, {
  get: (target, member) => (member in target || typeof member === "symbol" ? target[member] : (target[member] = anything(`${name}.${member}`))),
  apply: () => ({ dispose() {} }),
});
const members = (name, own) => new Proxy(own, {
  get: (target, member) => (member in target || typeof member === "symbol" ? target[member] : (target[member] = /^[a-z]/.test(member) ? () => ({ dispose() {} }) : anything(`${name}.${member}`))),
});

class EventEmitter {
  listeners = [];
  event = (listener, self) => {
    this.listeners.push(listener.bind(self));
    return { dispose() {} };
  };
  fire(value) {
    return Promise.all(this.listeners.map(listener => listener(value)));
  }
  dispose() {}
}
class Disposable {
  static from = () => new Disposable();
  dispose() {}
}
class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}
class Range {
  constructor(...places) {
    [this.start, this.end] = places.length === 4 ? [new Position(places[0], places[1]), new Position(places[2], places[3])] : places;
  }
}
class Uri {
  constructor(path) {
    Object.assign(this, { scheme: "file", path, fsPath: path, authority: "", query: "", fragment: "" });
  }
  static parse = text => new Uri(decodeURIComponent(new URL(text).pathname));
  static file = path => new Uri(path);
  toString = () => pathToFileURL(this.path).toString();
}
class Diagnostic {
  constructor(range, message, severity) {
    Object.assign(this, { range, message, severity });
  }
}

const opened = new EventEmitter(), shown = new EventEmitter(), messages = [];
// The editor opens `.dtd` files as XML.
const document = { uri: new Uri(file), fileName: file, languageId: "xml", version: 1, isClosed: false, isDirty: false, lineCount: text.split("\n").length, getText: () => text };
const none = new EventEmitter();
const vscode = members("vscode", {
  EventEmitter, Disposable, Position, Range, Uri, Diagnostic,
  CancellationTokenSource: class {
    token = { isCancellationRequested: false, onCancellationRequested: none.event };
    cancel() {}
    dispose() {}
  },
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  version: "1.91.0",
  env: members("env", { language: "en", appName: "stand-in", uriScheme: "vscode" }),
  commands: members("commands", {}),
  workspace: members("workspace", {
    textDocuments: [document],
    workspaceFolders: undefined,
    notebookDocuments: [],
    getConfiguration: () => ({ get: (name, otherwise) => otherwise }),
    onDidOpenTextDocument: opened.event,
    ...Object.fromEntries(["onDidCloseTextDocument", "onDidChangeTextDocument", "onDidSaveTextDocument", "onWillSaveTextDocument", "onDidChangeConfiguration", "onDidChangeWorkspaceFolders"].map(name => [name, none.event])),
  }),
  window: members("window", {
    // The client sends visible documents to the server.
    visibleTextEditors: [{ document }],
    tabGroups: { all: [], onDidChangeTabs: none.event },
    createOutputChannel: () => members("channel", { appendLine: () => {}, append: () => {} }),
    showWarningMessage: async text => messages.push(text),
    showErrorMessage: async text => messages.push(text),
  }),
  languages: members("languages", {
    setTextDocumentLanguage: async (_, language) => {
      document.languageId = language;
      await opened.fire(document);
      return document;
    },
    match: (selector, { languageId }) => ([selector].flat().some(({ language }) => language === languageId) ? 10 : 0),
    createDiagnosticCollection: () => members("collection", { set: (uri, found) => shown.fire({ uri, found }), delete() {}, clear() {}, dispose() {} }),
  }),
});

const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
const extension = createRequire(import.meta.url)("../vscode/out/extension.js");

const diagnostics = new Promise((done, failed) => {
  shown.event(({ uri, found }) => found.length && done({ uri, found }));
  setTimeout(() => failed(new Error(`no error was shown; ${messages.join("; ")}`)), 20000).unref();
});
await extension.activate({ subscriptions: [] });
assert.deepEqual(messages, []);
assert.equal(document.languageId, "metatf", "a .dtd file that is not XML must be recognized");
const { uri, found } = await diagnostics;
assert.equal(uri.fsPath, file);
const mistake = found.find(({ message }) => message.includes("no field `sise`"));
assert.ok(mistake, JSON.stringify(found));
assert.deepEqual([mistake.severity, mistake.source, mistake.range.start.line], [0, "metatfc", 2]);
await extension.deactivate();
console.log("VS Code client: starts the server and shows an error (with a stand-in for the editor)");
process.exit(0);
