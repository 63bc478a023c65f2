// Sends requests to the module. A worker, which can be stopped, answers them one after the other, in order.
"use strict";
const $ = id => document.getElementById(id);

/// Decodes base64 text to bytes.
const fromBase64 = text => Uint8Array.from(atob(text.trim()), letter => letter.charCodeAt(0));

/// Sends bytes through a stream that compresses or decompresses. Fails if the result exceeds `most` bytes.
async function through(bytes, stream, most) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(), parts = [];
  for (let length = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    length += value.length;
    if (length > most) throw new Error(`more than ${most} bytes`);
    parts.push(value);
  }
}

const module = {
  worker: null,
  waiting: new Map(),
  next: 1,
  /// Called with true when a request takes long, and with false when no request is pending.
  busy: () => {},

  async start() {
    const url = URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    await new Promise((ready, failed) => {
      this.worker.onmessage = ({ data }) => (data.ready ? ready() : failed(new Error(data.stopped)));
      this.worker.onerror = event => failed(new Error(event.message || "the browser does not allow workers on this page"));
      this.worker.postMessage({ packed: fromBase64($("module").textContent) });
    });
    this.worker.onmessage = ({ data }) => this.take(data);
  },

  /// Returns the answer and its bytes. Fails with a message for the user.
  ask(request, bytes) {
    const id = this.next++;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed, late: setTimeout(() => this.busy(true), 400) });
      this.worker.postMessage({ id, request, bytes });
    });
  },

  take({ id, answer, bytes, stopped }) {
    const waits = this.waiting.get(id);
    if (!waits) return;
    this.waiting.delete(id);
    clearTimeout(waits.late);
    if (!this.waiting.size) this.busy(false);
    if (stopped) {
      // The memory of a module that failed cannot be trusted.
      waits.failed(new Error(stopped));
      this.stop("the module was restarted");
    } else if (answer.error !== undefined) waits.failed(new Error(answer.error));
    else waits.done({ answer, bytes });
  },

  /// Aborts all requests and starts the module again.
  async stop(why) {
    this.worker.terminate();
    for (const waits of this.waiting.values()) {
      clearTimeout(waits.late);
      waits.failed(Object.assign(new Error(why), { stopped: true }));
    }
    this.waiting.clear();
    this.busy(false);
    this.restarted?.();
    await this.start();
  },
};
