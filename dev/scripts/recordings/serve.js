// A server with a cache that never evicts entries, and its own client.
const http = require('http');
const cache = new Map();
const server = http.createServer((request, response) => {
  const key = request.url;
  if (!cache.has(key)) cache.set(key, Buffer.alloc(2000 + key.length, key).toString('base64'));
  response.end(JSON.stringify({ key, length: cache.get(key).length }));
});
server.listen(0, '127.0.0.1', () => {
  let left = 3000;
  const ask = () => {
    if (left-- === 0) { console.log(cache.size, 'kept'); server.close(); return; }
    http.get({ port: server.address().port, path: '/' + (left % 1000), agent: false }, r => { r.resume(); r.on('end', ask); });
  };
  ask();
});
