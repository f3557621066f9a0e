// The text of a snapshot: canonical whatever the run holds, kept only while it is right, and known
// by its own hash before anything else of it is read.
import fc from 'fast-check'
import type { Run, RunFact } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { encode } from '../../src/core/canonical-json.ts'
import { toEvents } from '../../src/core/run/events.ts'
import { RunFold } from '../../src/core/run/evolve.ts'
import { sha256Of } from '../../src/runs/journal/hash.ts'
import { claimOf, decodeSnapshot, encodeSnapshot } from '../../src/runs/journal/snapshot.ts'
import { factsOf } from '../contract/journal/bench.ts'

const HASH = sha256Of('a line')
const ENVELOPE = { ts: '2026-01-01T00:00:00.000Z', trace_id: 't', span_id: 's', actor: 'test' }
const SHA = 'a'.repeat(64)

class Log {
  readonly fold = new RunFold().toUndoable()

  add(...facts: RunFact[]): this {
    const lastSeq = this.fold.run?.last_seq ?? 0
    for (const event of toEvents('run-1', lastSeq, facts, ENVELOPE, () => '')) this.fold.add(event)
    return this
  }

  get text(): string {
    return encodeSnapshot(this.fold.run as Run, HASH)
  }
}

const begun = () => new Log().add(...factsOf(null, { kind: 'create' }))

const started = (key: string, inputs: Record<string, string>, code: string | null): RunFact => ({
  type: 'WORK_ITEM_STARTED',
  data: { key, inputs, code, worker: 'w', because: 'new' },
})

const written = (name: string, work_item: string | null): RunFact => ({
  type: 'ARTIFACT_WRITTEN',
  data: { name, path: 'p', sha256: SHA, schema_id: null, writer_worker: 'w', work_item },
})

/** What the general writer makes of the same object. */
function canonical(text: string): string {
  return `${encode(JSON.parse(text), { depthMax: 8, bytesMax: 1e9 })}\n`
}

/** Names that need quoting, sort oddly, or mean something to JavaScript or to the snapshot. */
const names = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
  fc.constantFrom('__proto__', 'constructor', '"', '\\', 'ä', '\u{1f600}', 'sha256', '10', '9'),
  fc.constantFrom('last_event_hash', 'last_seq', 'stable_trail', 'machine', 'run_id'),
)

describe('the text of a snapshot', () => {
  it('is canonical and whole, whatever the names are', () => {
    const contents = fc.array(fc.tuple(names, names, fc.option(names)), { maxLength: 8 })
    fc.assert(
      fc.property(contents, (entries) => {
        const log = begun()
        for (const [key, name, code] of entries) {
          log.add(started(key, { [name]: SHA, b: SHA, a: SHA }, code), written(name, key))
          const section = { section: name, from_state: null, to_state: SHA }
          log.add({ type: 'SECTION_STATE_CHANGED', data: section })
          if (code !== null) log.add({ type: 'WORK_ITEM_FAILED', data: { key, error: name } })
        }
        expect(log.text).toBe(canonical(log.text))
        expect(claimOf('run-1', log.text)).toEqual({ seq: log.fold.run?.last_seq, hash: HASH })
      }),
    )
  })

  it('equals a fresh encoding after every change, also after an undo', () => {
    const log = begun().add(started('a', {}, null), written('x', 'a'))
    const before = log.text
    const { last_seq } = log.fold.run as Run
    const steps: RunFact[] = [
      written('y', 'a'),
      { type: 'WORK_ITEM_FINISHED', data: { key: 'a', inputs: { x: SHA } } },
      { type: 'ARTIFACT_STALE', data: { name: 'y', because: 'x' } },
    ]
    for (const [n, step] of steps.entries()) {
      const same = begun().add(started('a', {}, null), written('x', 'a'), ...steps.slice(0, n + 1))
      expect(log.add(step).text).toBe(same.text)
    }
    log.fold.undoAfter(last_seq)
    expect(log.text).toBe(before)
  })
})

describe('the end of the log in a snapshot', () => {
  const text = begun().add(started('a', { x: SHA }, 'v1'), written('x', 'a')).text

  it('is ignored if a byte was changed or is missing', () => {
    for (let at = 0; at < text.length; at++) {
      const other = text[at] === '7' ? '8' : '7'
      const changed = `${text.slice(0, at)}${other}${text.slice(at + 1)}`
      expect(claimOf('run-1', changed), `byte ${at}`).toBeUndefined()
      expect(claimOf('run-1', text.slice(0, at)), `the first ${at}`).toBeUndefined()
    }
  })

  it('is ignored for another run', () => {
    expect(claimOf('run-2', text)).toBeUndefined()
    expect(claimOf('run-1', text)).toEqual({ seq: 3, hash: HASH })
  })

  it('is found in a text that is not canonical only by parsing it', () => {
    const spaced = `${JSON.stringify(JSON.parse(text), null, 2)}\n`
    expect(claimOf('run-1', spaced)).toBeUndefined()
    expect(decodeSnapshot('run-1', spaced)).toMatchObject({ kind: 'valid' })
  })
})
