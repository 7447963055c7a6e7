// The official SDK for JavaScript, unmodified, through a sandbox's whole life. What it expects is
// what E2B's contract says; where two SDK versions differ, both answers are E2B's.
import assert from 'node:assert/strict'
import http from 'node:http'

const { Sandbox, CommandExitError, NotFoundError, AuthenticationError, FilesystemEventType } =
  await import(process.env.E2B_SDK)

const key = 'k' + process.pid
const awkward = { owner: 'a b&c=d', [key]: 'ü/%', plain: 'yes' }

async function until(what, check, deadlineMs = 60_000) {
  const end = Date.now() + deadlineMs
  for (;;) {
    if (await check()) return
    assert.ok(Date.now() < end, `not within ${deadlineMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function step(name, run) {
  const began = Date.now()
  await run()
  console.log(`ok ${name} (${Date.now() - began} ms)`)
}

async function listed(query) {
  const ids = []
  const pages = Sandbox.list({ query, limit: 1 })
  while (pages.hasNext) ids.push(...(await pages.nextItems()).map((item) => item.sandboxId))
  return ids
}

// By host label, as in https://<port>-<id>.<domain>: the name need not resolve, the Host header says it.
function getByHost(port, path) {
  const { hostname, port: router } = new URL(process.env.E2B_SANDBOX_URL)
  const headers = { Host: `${port}-${sandbox.sandboxId}.sandboxes.test` }
  return new Promise((resolve, reject) => {
    http.get({ hostname, port: router, path, headers, agent: false }, (answer) => {
      let text = ''
      answer.on('data', (chunk) => { text += chunk })
      answer.on('end', () => resolve({ status: answer.statusCode, text }))
    }).on('error', reject)
  })
}

let sandbox
const extras = []
try {
  await step('create and look at it', async () => {
    sandbox = await Sandbox.create('base', {
      timeoutMs: 120_000,
      metadata: awkward,
      envs: { GREETING: 'hello there' },
    })
    assert.match(sandbox.sandboxId, /^[a-z0-9]+$/)
    const info = await sandbox.getInfo()
    assert.equal(info.sandboxId, sandbox.sandboxId)
    assert.equal(info.state, 'running')
    assert.deepEqual(info.metadata, awkward)
    assert.match(info.envdVersion, /^\d+\.\d+\.\d+$/)
    assert.ok(info.cpuCount > 0 && info.memoryMB > 0)
    const lease = (info.endAt - info.startedAt) / 1000
    assert.ok(lease > 115 && lease < 130, `a lease of 120 s, not ${lease} s`)
    assert.equal(await sandbox.isRunning(), true)
  })

  await step('run commands', async () => {
    const out = await sandbox.commands.run('echo out; echo err >&2; printf "$GREETING"')
    assert.equal(out.exitCode, 0)
    assert.equal(out.stdout, 'out\nhello there')
    assert.equal(out.stderr, 'err\n')
    assert.equal((await sandbox.commands.run('whoami; pwd')).stdout, 'user\n/home/user\n')
    assert.equal((await sandbox.commands.run('id -u', { user: 'root' })).stdout, '0\n')
    const placed = await sandbox.commands.run('pwd; echo $EXTRA', { cwd: '/tmp', envs: { EXTRA: 'x y' } })
    assert.equal(placed.stdout, '/tmp\nx y\n')
    await assert.rejects(sandbox.commands.run('exit 7'), (error) => {
      return error instanceof CommandExitError && error.exitCode === 7
    })
    await assert.rejects(sandbox.commands.run('no-such-program'), (error) => error.exitCode === 127)
    await assert.rejects(sandbox.commands.run('true', { cwd: '/no/such/folder' }))
    const bytes = await sandbox.commands.run('head -c 300000 /dev/zero | tr "\\0" x')
    assert.equal(bytes.stdout.length, 300_000)
  })

  await step('stream, feed and kill a background command', async () => {
    const seen = []
    const cat = await sandbox.commands.run('cat', {
      background: true,
      stdin: true,
      onStdout: (text) => seen.push(text),
    })
    await sandbox.commands.sendStdin(cat.pid, 'ping\n')
    await until('the echo', () => seen.join('') === 'ping\n')
    assert.ok((await sandbox.commands.list()).some((running) => running.pid === cat.pid))
    assert.equal(await sandbox.commands.kill(cat.pid), true)
    await assert.rejects(cat.wait())
    await until('its end', async () =>
      !(await sandbox.commands.list()).some((running) => running.pid === cat.pid))
    assert.equal(await sandbox.commands.kill(cat.pid), false)
    await assert.rejects(sandbox.commands.run('sleep 30', { timeoutMs: 500 }))
  })

  await step('type into a terminal', async () => {
    let screen = ''
    const terminal = await sandbox.pty.create({
      cols: 80,
      rows: 24,
      onData: (bytes) => { screen += new TextDecoder().decode(bytes) },
    })
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('tty; stty size; echo $((6*7))\n'))
    await until('the answer', () => /\/dev\/pts\/\d+/.test(screen) && /24 80/.test(screen) && /\n42/.test(screen))
    await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 })
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size\n'))
    await until('the new size', () => /30 100/.test(screen))
    assert.equal(await sandbox.pty.kill(terminal.pid), true)
  })

  await step('write, read and list files', async () => {
    const files = sandbox.files
    await files.write('notes/deep/a.txt', 'first')
    assert.equal(await files.read('/home/user/notes/deep/a.txt'), 'first')
    await files.write('notes/deep/a.txt', 'second and longer')
    assert.equal(await files.read('notes/deep/a.txt'), 'second and longer')
    const blob = new Uint8Array(200_000).map((_, index) => (index * 7) % 256)
    await files.write('/tmp/blob.bin', blob.buffer)
    assert.deepEqual(await files.read('/tmp/blob.bin', { format: 'bytes' }), blob)
    await files.write([
      { path: 'many/one.txt', data: '1' },
      { path: 'many/two.txt', data: '22' },
    ])
    const names = (await files.list('many')).map((entry) => `${entry.type} ${entry.name}`).sort()
    assert.deepEqual(names, ['file one.txt', 'file two.txt'])
    const info = await files.getInfo('many/two.txt')
    assert.equal(info.size, 2)
    assert.equal(info.owner, 'user')
    assert.equal(info.path, '/home/user/many/two.txt')
    assert.equal(await files.makeDir('many/sub'), true)
    assert.equal(await files.makeDir('many/sub'), false)
    assert.equal((await files.rename('many/one.txt', 'many/sub/moved.txt')).name, 'moved.txt')
    assert.equal(await files.exists('many/one.txt'), false)
    assert.equal(await files.exists('many/sub/moved.txt'), true)
    await files.remove('many')
    assert.equal(await files.exists('many'), false)
    await assert.rejects(files.read('no/such/file'), NotFoundError)
    await assert.rejects(files.list('/no/such/folder'), NotFoundError)
  })

  await step('watch a folder', async () => {
    await sandbox.files.makeDir('watched')
    const events = []
    const watch = await sandbox.files.watchDir('watched', (event) => { events.push(event) })
    await sandbox.files.write('watched/new.txt', 'x')
    await until('the write', () =>
      events.some((event) => event.name === 'new.txt' && event.type === FilesystemEventType.WRITE))
    await watch.stop()
  })

  await step('fetch by signed URL', async () => {
    await sandbox.files.write('shared.txt', 'for all who hold the link')
    const base = process.env.E2B_SANDBOX_URL
    const url = await sandbox.downloadUrl('shared.txt', { useSignatureExpiration: 60 })
    const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '49983' }
    const local = new URL(new URL(url).pathname + new URL(url).search, base)
    const good = await fetch(local, { headers })
    assert.equal(good.status, 200)
    assert.equal(await good.text(), 'for all who hold the link')
    const byHost = await getByHost(49983, local.pathname + local.search)
    assert.deepEqual(byHost, { status: 200, text: 'for all who hold the link' })
    local.searchParams.set('path', '/etc/passwd')
    assert.equal((await fetch(local, { headers })).status, 401)
  })

  await step('reach a port that a process inside serves', async () => {
    await sandbox.files.write('site/index.html', 'served from inside')
    const server = await sandbox.commands.run(
      'python3 -m http.server 8000 --directory site', { background: true, timeoutMs: 0 })
    await until('the page', async () => (await getByHost(8000, '/')).status === 200)
    assert.equal((await getByHost(8000, '/')).text, 'served from inside')
    const headers = { 'e2b-sandbox-id': sandbox.sandboxId, 'e2b-sandbox-port': '8000' }
    assert.equal(await (await fetch(process.env.E2B_SANDBOX_URL, { headers })).text(), 'served from inside')
    const closed = await getByHost(8001, '/')
    assert.equal(closed.status, 502)
    const { sandboxId, port } = JSON.parse(closed.text)
    assert.deepEqual([sandboxId, port], [sandbox.sandboxId, 8001])
    assert.equal(await server.kill(), true)
  })

  await step('list sandboxes by metadata and state', async () => {
    for (let index = 0; index < 2; ++index) {
      extras.push(await Sandbox.create('base', { timeoutMs: 60_000, metadata: { [key]: `extra ${index}` } }))
    }
    assert.deepEqual(await listed({ metadata: awkward, state: ['running'] }), [sandbox.sandboxId])
    assert.deepEqual(await listed({ metadata: { [key]: 'extra 1' } }), [extras[1].sandboxId])
    assert.deepEqual(await listed({ metadata: { [key]: 'extra' } }), [])
    assert.deepEqual(await listed({ metadata: awkward, state: ['paused'] }), [])
    const all = await listed({ state: ['running', 'paused'] })
    for (const each of [sandbox, ...extras]) assert.ok(all.includes(each.sandboxId))
    assert.equal(new Set(all).size, all.length)
    for (const each of extras.splice(0)) assert.equal(await each.kill(), true)
  })

  await step('change the lease', async () => {
    await sandbox.setTimeout(300_000)
    const left = ((await sandbox.getInfo()).endAt - Date.now()) / 1000
    assert.ok(left > 290 && left < 310, `300 s left, not ${left} s`)
  })

  await step('pause and connect, with a process alive across', async () => {
    const counter = await sandbox.commands.run(
      'i=0; while true; do i=$((i+1)); echo $i > /tmp/count; sleep 0.02; done',
      { background: true, timeoutMs: 0 })
    await until('counting', async () => (await sandbox.files.exists('/tmp/count')))
    await counter.disconnect()
    assert.equal(await sandbox.pause(), true)
    assert.equal((await sandbox.getInfo()).state, 'paused')
    assert.equal(await sandbox.pause(), false)
    assert.deepEqual(await listed({ metadata: awkward, state: ['paused'] }), [sandbox.sandboxId])
    assert.equal(await sandbox.isRunning(), false)

    const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 120_000 })
    assert.equal(again.sandboxId, sandbox.sandboxId)
    assert.equal((await again.getInfo()).state, 'running')
    assert.ok((await again.commands.list()).some((running) => running.pid === counter.pid))
    const count = async () => Number(await again.files.read('/tmp/count'))
    let first = 0
    await until('a count', async () => (first = await count()) > 0)
    await until('counting on', async () => (await count()) > first)
    assert.equal(await again.files.read('shared.txt'), 'for all who hold the link')
    assert.equal(await again.commands.kill(counter.pid), true)
    sandbox = again
  })

  await step('refuse a wrong key', async () => {
    await assert.rejects(
      Sandbox.create('base', { apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError)
    await assert.rejects(
      Sandbox.getInfo(sandbox.sandboxId, { apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError)
    assert.equal((await sandbox.getInfo()).state, 'running')
  })

  await step('kill, once', async () => {
    assert.equal(await sandbox.kill(), true)
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
    assert.equal(await sandbox.isRunning(), false)
    await assert.rejects(Sandbox.getInfo(sandbox.sandboxId), NotFoundError)
    await assert.rejects(Sandbox.connect(sandbox.sandboxId), NotFoundError)
    assert.deepEqual(await listed({ metadata: awkward }), [])
  })
} finally {
  for (const each of [sandbox, ...extras]) if (each) await each.kill().catch(() => {})
}
console.log('all steps hold')
process.exit(0)
