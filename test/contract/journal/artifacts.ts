/** Contents by name and hash. */
import assert from 'node:assert/strict'
import { ArtifactMissing, RunNameInvalid } from '../../../src/runs/journal/errors.ts'
import { sha256Of } from '../../../src/runs/journal/hash.ts'
import { type JournalCases, textOf } from './bench.ts'

/** Names that would leave the folder, collide, or mean something to a system. */
const HOSTILE_NAMES = [
  ...[
    '.',
    '..',
    '../../../src/etc/passwd',
    '..\\x',
    '/etc/passwd',
    'a/b',
    'a\\b',
    'a//b',
    './a',
    'a/../b',
  ],
  ...['C:\\x', '\\\\server\\x', 'file:///x', 'a#b', 'a?b', 'a%2fb', '%2e%2e%2f', '%', '~', '~a'],
  ...['A', 'a', 'Ä', 'ä', 'a\u0308', 'ａ', 'con', 'CON', 'con.md', 'nul', 'com1.txt', 'lpt9'],
  ...['.hidden', 'a.', 'a ', ' a', '-rf', '$HOME', '`x`', "a'b", 'a"b', 'a|b', 'a*b', 'a<b>c'],
  ...['snapshot.json', 'events.ndjson', '.lock', 'x.tmp', '__proto__', 'constructor', '墨', '🙂'],
  ...['\u202egnp.exe', '\u200b', 'x'.repeat(255), '墨'.repeat(255), `${'x'.repeat(254)}y`],
]

/** Tests of artifacts. */
export const artifactCases: JournalCases = {
  async 'every name has its own content'(bench) {
    const writer = await bench.create()
    const stored = new Map<string, string>()
    for (const name of HOSTILE_NAMES) {
      // The same content for all, so that only the name tells them apart.
      const { path, sha256 } = await writer.writeArtifact(name, Buffer.from('the same'))
      assert.match(path, /^artifacts\/[a-z0-9%_-][a-z0-9._%~-]*\.[0-9a-f]{64}$/)
      assert.ok(path.length <= 'artifacts/'.length + 214, path)
      assert.equal(stored.get(path), undefined, `${name} shares a path`)
      stored.set(path, name)
      assert.equal(await textOf(writer, name, sha256), 'the same')
    }
    assert.equal(stored.size, HOSTILE_NAMES.length)
    await writer.close()
  },

  async 'a new version leaves the one before it readable'(bench) {
    const writer = await bench.create()
    const one = await writer.writeArtifact('plan', Buffer.from('one'))
    const two = await writer.writeArtifact('plan', Buffer.from('two'))
    assert.notEqual(one.path, two.path)
    await writer.close()
    const reader = await bench.journal.read('run-1')
    assert.equal(await textOf(reader, 'plan', one.sha256), 'one')
    assert.equal(await textOf(reader, 'plan', two.sha256), 'two')
  },

  async 'the same content again is the same artifact'(bench) {
    const writer = await bench.create()
    const one = await writer.writeArtifact('plan', Buffer.from('one'))
    assert.deepEqual(await writer.writeArtifact('plan', Buffer.from('one')), one)
    await writer.close()
  },

  async 'any bytes are stored, also none and many'(bench) {
    const writer = await bench.create()
    const every = Uint8Array.from({ length: 256 }, (_, i) => i)
    const many = Buffer.alloc(3_000_000, 'pawl')
    for (const content of [new Uint8Array(), every, many]) {
      const { sha256 } = await writer.writeArtifact('bytes', content)
      assert.equal(sha256, sha256Of(content))
      const read = await writer.readArtifact('bytes', sha256)
      assert.ok(Buffer.from(read).equals(content))
    }
    await writer.close()
  },

  async 'an artifact that was not written is missing'(bench) {
    const writer = await bench.create()
    const { sha256 } = await writer.writeArtifact('plan', Buffer.from('one'))
    await assert.rejects(writer.readArtifact('other', sha256), ArtifactMissing)
    await assert.rejects(writer.readArtifact('plan', sha256Of('two')), ArtifactMissing)
    await writer.close()
    const other = await bench.create('run-2')
    await assert.rejects(other.readArtifact('plan', sha256), ArtifactMissing)
    await other.close()
  },

  async 'an invalid name or hash is refused'(bench) {
    const writer = await bench.create()
    for (const name of ['', ' ', 'a\0b', 'a\nb', '\ud800', 'x'.repeat(256), 7 as never]) {
      await assert.rejects(writer.writeArtifact(name, Buffer.from('x')), RunNameInvalid)
    }
    for (const hash of ['', '..', '/etc/passwd', 'A'.repeat(64), 'a'.repeat(63)]) {
      await assert.rejects(writer.readArtifact('plan', hash), RunNameInvalid)
    }
    await writer.close()
  },
}
