// A server of Node's own http whose requests stall its loop as they are asked to: server.js PORT LOG. It logs each stall by its own clock:
// START END TID WHAT, wall-clock ns.
'use strict';
const fs = require('fs');
const http = require('http');
const {execFileSync} = require('child_process');
const {performance} = require('perf_hooks');
const [port, log] = process.argv.slice(2);

function compute() {
  const end = performance.now() + 300;
  let sum = 0;
  while (performance.now() < end) for (let i = 0; i < 10000; i++) sum = (sum * 31 + i) % 65537;
  return sum;
}

function disk(path) {
  const file = fs.openSync(path, 'a');
  fs.writeSync(file, 'an order\n');
  fs.fsyncSync(file);
  fs.closeSync(file);
}

const stalls = {
  sleep: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300),
  child: () => execFileSync('sleep', ['0.3']),
  compute,
  disk,
};

http.createServer((request, answer) => {
  const [what, argument] = request.url.slice(1).split('=');
  if (stalls[what]) {
    const ns = (ms) => BigInt(Math.round((performance.timeOrigin + ms) * 1000)) * 1000n;
    const start = performance.now();
    stalls[what](argument);
    fs.appendFileSync(log, `${ns(start)} ${ns(performance.now())} ${process.pid} ${what}\n`);
  }
  answer.end('ok\n');
}).listen(Number(port), '127.0.0.1');
