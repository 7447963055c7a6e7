// The official SDK for JavaScript, in a sandbox of its own: commands.h says what it is told and how it answers.
import readline from 'node:readline'

const { Sandbox } = await import(process.env.E2B_SDK)
const FILE_BYTES = 1024
const sandbox = await Sandbox.create('base', { timeoutMs: 3_600_000 })
const { files, commands } = sandbox
const home = (await commands.run('echo $HOME')).stdout.trim()
const small = `${home}/small`, edited = `${home}/edited`, large = `${home}/large`
await files.write(small, 'x'.repeat(FILE_BYTES))
await files.write(edited, 'old' + '.'.repeat(FILE_BYTES - 3))
const payloads = new Map()

function payload(bytes) {
  if (!payloads.has(bytes)) payloads.set(bytes, new Uint8Array(bytes).fill(120).buffer)
  return payloads.get(bytes)
}

function expect(truth) {
  if (!truth) throw new Error('another answer than was to come')
}

const operations = {
  stat: async () => expect((await files.getInfo(small)).size === FILE_BYTES),
  read: async () => expect((await files.read(small, { format: 'bytes' })).length === FILE_BYTES),
  write: () => files.write(small, 'x'.repeat(FILE_BYTES)),
  edit: async () => {
    const text = await files.read(edited)
    await files.write(edited, text.startsWith('old') ? text.replace('old', 'new') : text.replace('new', 'old'))
  },
  run: async () => expect((await commands.run('true')).exitCode === 0),
  upload: (bytes) => files.write(large, payload(bytes)),
  download: async (bytes) => expect((await files.read(large, { format: 'bytes' })).length === bytes),
}

try {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, times, bytes] = line.split(' ')
    if (word === 'upload') payload(Number(bytes))
    const took = []
    for (let i = 0; i < Number(times); ++i) {
      const began = process.hrtime.bigint()
      await operations[word](Number(bytes))
      took.push(process.hrtime.bigint() - began)
    }
    console.log(took.join(' '))
  }
} finally {
  await sandbox.kill()
}
process.exit(0)
