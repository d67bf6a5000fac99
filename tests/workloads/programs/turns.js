// step calls middle twice, middle calls leaf three times.
let worked = 0;
function leaf() { worked++; }
function middle() { leaf(); leaf(); leaf(); }
function step() { middle(); middle(); }
for (let i = 0; i < 3000; i++) step(); // until it is compiled
console.log('ready');
setInterval(step, 5);
