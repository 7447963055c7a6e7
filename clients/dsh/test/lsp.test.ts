import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { Readable } from 'node:stream';
import { harness } from './chain.js';

// A language server in the sandbox, spoken with over the pipes of its stdin and stdout, as the harness does.

/** Messages of the Language Server Protocol, one after the other. */
async function* messages(from: Readable): AsyncGenerator<{ id?: number; method?: string; result?: unknown }> {
  let held = Buffer.alloc(0);
  for await (const part of from) {
    held = Buffer.concat([held, part as Buffer]);
    for (;;) {
      const head = held.indexOf('\r\n\r\n');
      if (head < 0) break;
      const length = Number(/Content-Length: (\d+)/i.exec(held.subarray(0, head).toString())![1]);
      if (held.length < head + 4 + length) break;
      yield JSON.parse(held.subarray(head + 4, head + 4 + length).toString());
      held = held.subarray(head + 4 + length);
    }
  }
}

/** With what it depends on, as far as it is laid flat. */
async function copyPackage(name: string, from: string, to: string, seen = new Set<string>()): Promise<void> {
  if (seen.has(name)) return;
  seen.add(name);
  const source = await realpath(join(from, name)).catch(() => undefined);
  if (source === undefined) return;
  await cp(source, join(to, name), { recursive: true });
  const { dependencies = {} } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as { dependencies?: object };
  for (const one of Object.keys(dependencies)) await copyPackage(one, from, to, seen);
}

test('a language server answers over the pipes of its process, and ends when it is told to', async () => {
  const host = await mkdtemp(join(tmpdir(), 'lsp-'));
  const packages = join(host, 'node_modules');
  await copyPackage('vscode-json-languageserver', join(dirname(new URL(import.meta.url).pathname), '../../node_modules'), packages);
  const shared = await harness({ hostWorkspace: host, excludes: ['.git'] });
  try {
    const { fs, subprocess, owner, remote } = shared;
    await remote.syncIn();
    const manifest = 'node_modules/vscode-uri/package.json';
    assert.equal(await fs.readText(await fs.resolve(manifest)), await readFile(join(host, manifest), 'utf8'));
    const uri = fs.fileUrl(await fs.resolve('a.json'));
    const text = '{"first": {"second": [1, 2]}}';
    const server = subprocess.spawn({
      argv: ['node', 'node_modules/vscode-json-languageserver/bin/vscode-json-languageserver', '--stdio'],
      cwd: host, // The host's workspace stands for the sandbox's.
      stdio: { stdin: 'pipe', stdout: 'pipe', stderr: { maxBytes: 64_000 } },
      graceMs: 5_000,
    });
    const say = (message: object): void => {
      const body = JSON.stringify({ jsonrpc: '2.0', ...message });
      server.stdin!.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    };
    const heard = messages(server.stdout!);
    const answerTo = async (id: number): Promise<unknown> => {
      for await (const message of { [Symbol.asyncIterator]: () => ({ next: () => heard.next() }) }) if (message.id === id && message.method === undefined) return message.result;
      throw new Error(`the server ended without an answer: ${server.collected.stderr!.readFrom(0).text}`);
    };
    say({ id: 1, method: 'initialize', params: { processId: null, rootUri: `file://${owner.cwd}`, capabilities: { textDocument: { documentSymbol: { hierarchicalDocumentSymbolSupport: true } } } } });
    assert.ok(await answerTo(1));
    say({ method: 'initialized', params: {} });
    say({ method: 'textDocument/didOpen', params: { textDocument: { uri, languageId: 'json', version: 1, text } } });
    say({ id: 2, method: 'textDocument/documentSymbol', params: { textDocument: { uri } } });
    const [symbol] = (await answerTo(2)) as { name: string; children: { name: string }[] }[];
    assert.deepEqual([symbol!.name, symbol!.children[0]!.name], ['first', 'second']);
    say({ id: 3, method: 'shutdown' });
    await answerTo(3);
    say({ method: 'exit' });
    assert.deepEqual(await server.done, { exitCode: 0, signal: null });
    assert.equal(await server.waitForExit(), true);
  } finally {
    await shared.dispose();
    await rm(host, { recursive: true, force: true });
  }
});
