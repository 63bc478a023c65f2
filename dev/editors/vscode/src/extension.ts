/** Starts the language server, and sets the language of Meta-TF DTDs that were recognized as XML. */
import * as vscode from "vscode";
import { LanguageClient, TransportKind } from "vscode-languageclient/node";
import { isMetaTF } from "./recognize";

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.workspace.onDidOpenTextDocument(claim),
    vscode.commands.registerCommand("metatf.restartServer", restart),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("metatf.server") || event.affectsConfiguration("metatf.trace")) await restart();
    }),
  );
  await Promise.all(vscode.workspace.textDocuments.map(claim));
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

/** Sets the language of a `.dtd` file that is not XML. */
async function claim(document: vscode.TextDocument): Promise<void> {
  const taken = document.languageId === "xml" || document.languageId === "dtd" || document.languageId === "plaintext";
  if (taken && document.fileName.endsWith(".dtd") && isMetaTF(document.getText())) {
    await vscode.languages.setTextDocumentLanguage(document, "metatf");
  }
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("metatf");
  const command = settings.get<string>("server", "metatfc");
  const trace = settings.get<string>("trace", "");
  const initializationOptions = trace === "" ? {} : { trace };
  client = new LanguageClient(
    "metatf",
    "Meta-TF",
    { command, args: ["lsp"], transport: TransportKind.stdio },
    { documentSelector: [{ language: "metatf" }], initializationOptions },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const reason = error instanceof Error ? error.message : String(error);
    void vscode.window.showWarningMessage(
      `Meta-TF: could not start \`${command} lsp\` (${reason}). Install metatfc, or set its path in the setting metatf.server.`,
    );
  }
}

async function restart(): Promise<void> {
  await client?.stop();
  await start();
}
