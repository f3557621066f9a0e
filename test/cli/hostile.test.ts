// Whatever is in a job, and whatever is typed, nothing but text reaches the terminal.
import { describe, expect, it } from 'vitest'
import type { Job } from '../../src/core/job/job.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { EVIL, EVIL_NAME, HIDDEN } from './hostile-text.ts'
import { type Ended, linesOf, Place } from './pawl.ts'

/** A store with one job, every part of which is hostile. */
async function evilJob(store: Store): Promise<string> {
  const pawl = await createPawl({ store })
  const job = defineJob({ name: EVIL_NAME, queue: EVIL_NAME })
  const options = { key: EVIL_NAME, tags: [EVIL_NAME, '--json'] }
  const { id } = await pawl.enqueue(job, { [EVIL]: EVIL }, options)
  const claim = { worker: EVIL_NAME, limit: 1, leaseMs: 30_000, start: true }
  const [held] = (await store.claim(claim)) as [Held]
  const fence = { attempt: 1, claim: held.job.execution?.claim ?? '' }
  const progress = JSON.stringify(EVIL)
  await store.heartbeat([{ ref: held.ref, fence, progress }], 30_000)
  const failure = { class: 'terminal', kind: 'terminal', message: EVIL } as const
  await store.settle([{ held, command: { kind: 'fail', fence, failure } }])
  await store.reportWorker({ id: EVIL_NAME, state: EVIL, info: JSON.stringify({ types: [EVIL] }) })
  await store.pauseQueue(EVIL_NAME, { actor: 'operator', operator: EVIL_NAME, note: EVIL })
  return id
}

/** Runs a command for people and for programs at the same time. */
function bothWays(place: Place, line: readonly string[]): Promise<Ended[]> {
  return Promise.all([place.run(line), place.run([...line, '--json'])])
}

describe('hostile data', () => {
  it('is escaped wherever it is shown, and whole in JSON', async () => {
    const place = new Place()
    await using store = await openSqliteStore({ path: place.path })
    const id = await evilJob(store)
    const quarantine = ['job', 'force', id, '--to', 'queued', '--reason', EVIL, '--operator', 'x']
    const lines = [
      ['job', 'list'],
      ['job', 'show', id],
      ['job', 'tail', '--from-start', '--no-follow'],
      ['job', 'tail', id],
      ['queue', 'list'],
      ['worker', 'list'],
      ['stats'],
      ['top', '--once'],
      quarantine,
      ['job', 'copy', id, '--reason', EVIL],
    ]
    for (const line of lines) {
      for (const { stdout, stderr } of await bothWays(place, line)) {
        expect(stdout + stderr, line.join(' ')).not.toMatch(HIDDEN)
        expect(stdout, line.join(' ')).not.toBe('')
      }
    }
    const text = await place.ok('job', 'show', id)
    expect(text).toContain('a\\x1b]0;owned\\x07\\x1b[31m\\x9b31m\\x85\\u{202e}b\\u{2066}\\u{200b}')
    expect(text.match(/\n/g)?.length).toBeLessThan(30)
    const [story] = await place.json<{ job: Job; input: unknown }>('job', 'show', id)
    expect(story?.job.error?.message).toBe(EVIL)
    expect(story?.input).toEqual({ [EVIL]: EVIL })
  }, 40_000)

  it('on the command line is escaped in the error that it causes', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const lines = [
      ['job', 'show', EVIL],
      ['job', 'cancel', EVIL, 'a\nb', '--reason', 'x'],
      ['job', 'tail', EVIL],
      ['job', 'enqueue', EVIL],
      ['job', 'enqueue', 'a', `{${EVIL}`],
      ['job', 'list', '--after', EVIL],
      ['job', 'list', `--${EVIL}`],
      ['job', EVIL],
      [EVIL],
      ['machine', 'show', EVIL],
      ['queue', 'pause', EVIL, '--reason', 'x'],
      ['job', 'list', '--store', `sqlite:${EVIL}`],
      ['job', 'list', '--store', EVIL],
      ['job', 'list', '--config', EVIL],
      ['work', '--jobs', EVIL],
      ['job', 'list', '--lane', EVIL],
    ]
    for (const line of lines) {
      for (const { code, stdout, stderr } of await bothWays(place, line)) {
        expect(code, JSON.stringify(line)).toBeGreaterThan(0)
        expect(stdout + stderr, JSON.stringify(line)).not.toMatch(HIDDEN)
      }
    }
  }, 40_000)

  it('that looks like an option can be given after -- or with =', async () => {
    const place = new Place()
    const { stdout } = await place.run([
      'job',
      'enqueue',
      '--queue=--json',
      '--key=--help',
      '--',
      '--store',
      '{"a":1}',
    ])
    const id = stdout.trim()
    const [job] = linesOf<Job>(await place.ok('job', 'list', '--queue=--json', '--json'))
    expect(job).toMatchObject({ id, type: '--store', queue: '--json', key: '--help' })
    const { code } = await place.run(['job', 'show', '--', '--json'])
    expect(code).toBe(4)
    const cancel = ['job', 'cancel', '--reason=--yes', '--operator=--json', '--', id]
    expect(await place.ok(...cancel)).toBe('cancel: 1 matched, 1 done\n')
    const fact = (await place.json<{ facts: object[] }>('job', 'show', id))[0]?.facts.at(-1)
    expect(fact).toMatchObject({ operator: '--json', note: '--yes' })
  })
})
