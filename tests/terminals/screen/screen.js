// A terminal as people have one, by xterm.js: `screen.js ROWS COLUMNS`. Each line of stdin is a JSON object, {"bytes": base64} or
// {"rows", "columns"}; each is answered by a line that tells what the screen shows then.
'use strict';
const readline = require('node:readline');
const { Terminal } = require('@xterm/headless');

const [rows, cols] = process.argv.slice(2).map(Number);
const terminal = new Terminal({ rows, cols, scrollback: 0, allowProposedApi: true });
let answers = ''; // What it says by itself to programs that ask it something.
terminal.onData((text) => (answers += text));

function tell() {
  const { active } = terminal.buffer;
  const lines = Array.from({ length: terminal.rows }, (_, row) => active.getLine(active.baseY + row).translateToString().trimEnd());
  const told = { lines, row: active.cursorY, column: active.cursorX, alternate: active.type === 'alternate', answers };
  answers = '';
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { bytes = '', rows, columns } = JSON.parse(line);
  if (rows) terminal.resize(columns, rows);
  terminal.write(Buffer.from(bytes, 'base64'), tell);
});
