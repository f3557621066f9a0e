// Artifacts, work items, sections, issues and commits: what a command on them comes to.

import { foldRun } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { errorOf, factsOf, fieldOf, hash, runIn, start, throughText, write } from './run-support.ts'

const SAME = { kind: 'same' }

describe('an artifact', () => {
  it('is written with what is known of it, and null for what is not', () => {
    const script = runIn('DRAFTING')
    const plain = { name: 'a', path: 'a.md', sha256: hash(1), worker: 'w' }
    const data = { name: 'a', path: 'a.md', sha256: hash(1), writer_worker: 'w' }
    expect(factsOf(script.applyCommand({ kind: 'write-artifact', ...plain }))).toEqual([
      { type: 'ARTIFACT_WRITTEN', data: { ...data, schema_id: null, work_item: null } },
    ])
    const more = { schemaId: 's', workItem: 'i' }
    expect(factsOf(script.applyCommand({ kind: 'write-artifact', ...plain, ...more }))).toEqual([
      { type: 'ARTIFACT_WRITTEN', data: { ...data, schema_id: 's', work_item: 'i' } },
    ])
  })

  it('cannot be invalidated or revalidated before it was written', () => {
    const script = runIn('DRAFTING')
    for (const kind of ['invalidate-artifact', 'revalidate-artifact'] as const) {
      const error = errorOf(script.applyCommand({ kind, name: 'x' }))
      expect(error.code).toBe('E_COMMAND_INVALID')
      expect(error.message).toContain('is not known in this run: x')
    }
  })

  it('is not revalidated while it is fresh, nor invalidated while nothing depends on it', () => {
    const script = runIn('DRAFTING')
    write(script, 'a', 1)
    for (const kind of ['invalidate-artifact', 'revalidate-artifact'] as const) {
      expect(script.applyCommand({ kind, name: 'a' })).toEqual(SAME)
    }
  })
})

describe('a work item', () => {
  it('starts as new, and again after it was interrupted or has failed', () => {
    const script = runIn('DRAFTING')
    const data = { key: 'k', inputs: { a: 'h' }, code: null, worker: 'writer' }
    const because: string[] = []
    for (let i = 0; i < 3; i++) {
      const facts = factsOf(start(script, 'k', { a: 'h' }))
      expect(facts).toMatchObject([{ type: 'WORK_ITEM_STARTED', data }])
      if (facts[0]?.type === 'WORK_ITEM_STARTED') because.push(facts[0].data.because)
      expect(script.run.work_items.k).toMatchObject({ status: 'started', attempts: i + 1 })
      if (i === 1) script.applyCommand({ kind: 'fail-item', key: 'k', error: 'no' })
    }
    expect(because).toEqual(['new', 'interrupted', 'failed'])
  })

  it('forgets the end and the error of its last try when it starts again', () => {
    const script = runIn('DRAFTING')
    start(script, 'k')
    script.applyCommand({ kind: 'fail-item', key: 'k', error: 'no' })
    const failed = { status: 'failed', error: 'no', finished_at: '2026-01-01T00:00:00.000Z' }
    expect(script.run.work_items.k).toMatchObject(failed)
    start(script, 'k')
    const started = { status: 'started', error: null, finished_at: null }
    expect(script.run.work_items.k).toMatchObject(started)
  })

  it('finishes with what it declared and what it read while it ran', () => {
    const script = runIn('DRAFTING')
    start(script, 'k', { a: '1', b: '1' })
    const finish = { kind: 'finish-item', key: 'k', inputs: { b: '2', c: '3' } } as const
    const data = { key: 'k', inputs: { a: '1', b: '2', c: '3' } }
    expect(factsOf(script.applyCommand(finish))).toEqual([{ type: 'WORK_ITEM_FINISHED', data }])
    expect(script.run.work_items.k).toMatchObject({ status: 'finished', inputs: data.inputs })
  })

  it('finishes or fails once: the same end again is a no-op, the other end is refused', () => {
    const finish = { kind: 'finish-item', key: 'k' } as const
    const fail = { kind: 'fail-item', key: 'k', error: 'no' } as const
    const cases = [[finish, fail, 'finished'] as const, [fail, finish, 'failed'] as const]
    for (const [end, other, status] of cases) {
      const script = runIn('DRAFTING')
      start(script, 'k')
      factsOf(script.applyCommand(end))
      expect(script.applyCommand(end)).toEqual(SAME)
      const error = errorOf(script.applyCommand(other))
      expect(error.message).toBe(`"key" names an item that has already ${status}`)
      expect(script.run.work_items.k?.status).toBe(status)
    }
  })

  it('does not end before it has started', () => {
    const script = runIn('DRAFTING')
    expect(fieldOf(script.applyCommand({ kind: 'finish-item', key: 'k' }))).toBe('key')
    expect(fieldOf(script.applyCommand({ kind: 'fail-item', key: 'k', error: 'no' }))).toBe('key')
  })
})

describe('a section', () => {
  it('comes from nothing, then from its last state, and stays where it is by a no-op', () => {
    const script = runIn('DRAFTING')
    const change = (to: string) => script.applyCommand({ kind: 'change-section', section: 's', to })
    const fact = (from_state: string | null, to_state: string) => [
      { type: 'SECTION_STATE_CHANGED', data: { section: 's', from_state, to_state } },
    ]
    expect(factsOf(change('drafted'))).toEqual(fact(null, 'drafted'))
    expect(change('drafted')).toEqual(SAME)
    expect(factsOf(change('linked'))).toEqual(fact('drafted', 'linked'))
    expect(script.run.section_states).toEqual({ s: 'linked' })
  })
})

describe('an issue', () => {
  it('is opened, resolved and opened again, each with its time', () => {
    const script = runIn('DRAFTING')
    const open = { kind: 'open-issue', issue: 'i', severity: 'error', message: 'm' } as const
    const resolve = { kind: 'resolve-issue', issue: 'i' } as const
    const data = { issue: 'i', severity: 'error', message: 'm' }
    expect(factsOf(script.applyCommand(open))).toEqual([{ type: 'ISSUE_OPENED', data }])
    expect(script.applyCommand(open)).toEqual(SAME)
    script.clock.advance(1000)
    const resolved = [{ type: 'ISSUE_RESOLVED', data: { issue: 'i' } }]
    expect(factsOf(script.applyCommand(resolve))).toEqual(resolved)
    expect(script.applyCommand(resolve)).toEqual(SAME)
    const first = { severity: 'error', message: 'm', opened_at: '2026-01-01T00:00:00.000Z' }
    const ended = { status: 'resolved', resolved_at: '2026-01-01T00:00:01.000Z' }
    expect(script.run.issues.i).toEqual({ ...first, ...ended })
    script.clock.advance(1000)
    factsOf(script.applyCommand({ ...open, severity: 'blocker', message: 'again' }))
    expect(foldRun(throughText(script.events))?.issues.i).toEqual({
      ...{ status: 'open', severity: 'blocker', message: 'again', resolved_at: null },
      opened_at: '2026-01-01T00:00:02.000Z',
    })
  })

  it('that was never opened is not resolved', () => {
    expect(fieldOf(runIn('DRAFTING').applyCommand({ kind: 'resolve-issue', issue: 'i' }))).toBe(
      'issue',
    )
  })
})

describe('the rest of what a run holds', () => {
  it('keeps each commit once, in the order of linking', () => {
    const script = runIn('PR_OPENED')
    const [b, a] = ['b'.repeat(40), 'a'.repeat(64)]
    for (const sha of [b, a]) factsOf(script.applyCommand({ kind: 'link-commit', sha }))
    expect(script.applyCommand({ kind: 'link-commit', sha: b })).toEqual(SAME)
    expect(script.run.commits).toEqual([b, a])
  })

  it('notes a discarded tail in the log and changes nothing by it', () => {
    const script = runIn('DRAFTING')
    const before = script.run
    const data = { bytes: 3, sha256: hash(5) }
    const fact = { type: 'LOG_TAIL_DISCARDED', data }
    expect(factsOf(script.applyCommand({ kind: 'discard-tail', ...data }))).toEqual([fact])
    expect(script.run).toEqual({ ...before, last_seq: before.last_seq + 1 })
  })
})
