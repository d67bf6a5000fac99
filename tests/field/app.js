// A Node program that stalls: app.js ROW [FIFO]. Its loop has a timer of 10 ms; from when the file `go` is there, each so often a turn of it
// stalls. It logs in `truth` (see lib.sh).
'use strict';
const fs = require('fs');
const {performance} = require('perf_hooks');
const [row, fifo] = process.argv.slice(2);

function hogTheLoop() {
  const end = performance.now() + 300;
  let sum = 0;
  while (performance.now() < end) for (let i = 0; i < 10000; i++) sum = (sum * 31 + i) % 65537;
  return sum;
}

function readTheFifo() {
  fs.writeSync(asked, 'x');
  fs.readSync(input, Buffer.alloc(1));
}

function waitForAnother() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
}

// As long as it took, but for what the machine may have taken of it.
function logged(stall) {
  const start = performance.now();
  stall();
  const end = performance.now(), ns = (ms) => BigInt(Math.round((performance.timeOrigin + ms) * 1000)) * 1000n;
  if (end - start > 150) fs.appendFileSync('truth', `${ns(start)} ${ns(end)} ${Math.round((end - start - 20) * 1e6)} ${process.pid} ${row}\n`);
}

const input = fifo && fs.openSync(fifo, 'r+'), asked = fifo && fs.openSync(`${fifo}.asked`, 'r+');
const stall = {'node-read': readTheFifo, 'node-wait': waitForAnother}[row] || hogTheLoop;
let turns = 0;
setInterval(() => {
  if (++turns % 30 === 0 && fs.existsSync('go')) logged(stall);
}, 10);
fs.writeFileSync('prepared', '');
