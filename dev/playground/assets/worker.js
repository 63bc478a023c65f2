// Runs the module in a worker, so that the page remains responsive and long requests can be stopped.
let made = null;

// A request or an answer consists of the length of a JSON text, the text, and bytes.
const encode = (request, bytes) => {
  const text = new TextEncoder().encode(JSON.stringify(request)), all = new Uint8Array(4 + text.length + bytes.length);
  new DataView(all.buffer).setUint32(0, text.length, true);
  all.set(text, 4);
  all.set(bytes, 4 + text.length);
  return all;
};

const decode = all => {
  const length = new DataView(all.buffer, all.byteOffset).getUint32(0, true);
  return { answer: JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + length))), bytes: all.slice(4 + length) };
};

const ask = (module, request, bytes) => {
  const { reserve, answer, output, memory } = module, all = encode(request, bytes);
  // The memory may have grown and may have a new buffer.
  const place = reserve(all.length);
  new Uint8Array(memory.buffer, place, all.length).set(all);
  const length = answer();
  return decode(new Uint8Array(memory.buffer, output(), length));
};

// Returns the reason that the module stopped.
const reason = (module, error) => {
  try {
    const length = module.stopped();
    const text = new TextDecoder().decode(new Uint8Array(module.memory.buffer, module.output(), length));
    return text || `the module stopped: ${error.message} (it may have run out of memory)`;
  } catch {
    return `the module stopped: ${error.message}`;
  }
};

onmessage = async ({ data: { id, packed, request, bytes } }) => {
  if (packed) {
    made = WebAssembly.instantiate(unpack(packed), {}).then(({ instance }) => instance.exports);
    made.then(() => postMessage({ ready: true }), error => postMessage({ stopped: error.message }));
    return;
  }
  const module = await made;
  try {
    const answered = ask(module, request, bytes ?? new Uint8Array());
    postMessage({ id, ...answered }, [answered.bytes.buffer]);
  } catch (error) {
    postMessage({ id, stopped: reason(module, error) });
  }
};
