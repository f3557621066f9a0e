// One job, from a terminal: why it is where it is, and as it once was.
import type { Job } from 'pawl'
import type { Explanation } from 'pawl/operators'
import { document, type Execution, type Fact, failureOf, leased, standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { Place } from './pawl.ts'

const ID = '0198a1b2-0000-7000-8000-000000000001'
const NOBODY = '00000000-0000-7000-8000-00000000dead'

/** A job that was put into a queue with an odd name. */
async function played(play: (store: Store) => Promise<unknown> = async () => {}): Promise<Place> {
  const place = new Place()
  await using store = await openSqliteStore({ path: place.path })
  const command = { jobId: ID, type: 'mail', queue: "it's", key: 'k' }
  const offer = (input: string) =>
    store.enqueue([{ lifecycle: standard, command, input, onConflict: 'replace' }])
  await offer('{"to":"ada"}')
  await offer('{"to":"ben"}')
  await play(store)
  return place
}

async function commit(store: Store): Promise<void> {
  const claim = { worker: 'w1', limit: 1, leaseMs: 60_000, start: true }
  const [held] = (await store.claim(claim)) as [Held]
  await store.commit(held, () => '"sent"')
}

describe('pawl job show --view', () => {
  it("gives a job in its document's own words", async () => {
    const place = new Place()
    await using store = await openSqliteStore({ path: place.path })
    const ids = [ID, ID.replace(/1$/, '2')]
    for (const [i, lifecycle] of [document, leased].entries()) {
      const command = { jobId: ids[i] as string, type: 'mail', queue: 'q' }
      await store.enqueue([{ lifecycle, command, input: '{"to":"ada"}' }])
    }
    const [metadata] = await place.json('job', 'show', ids[0] as string, '--view')
    expect(metadata).toEqual({
      ...{ jobId: ids[0], state: 'QUEUED', createdAt: expect.any(Number) },
      ...{ startedAt: null, completedAt: null, retryCount: 0, maxRetries: 3 },
      ...{ lastError: null, errorType: null },
    })
    const [job] = await place.json('job', 'show', ids[1] as string, '--view')
    expect(job).toMatchObject({ job_id: ids[1], payload: { to: 'ada' }, state: 'PENDING' })
    expect(await place.ok('job', 'show', ids[1] as string, '--view')).toContain(
      'payload: {"to":"ada"}\n',
    )
    const past = await place.run(['job', 'show', ids[1] as string, '--view', '--at', '1'])
    expect(past.code).toBe(2)
  })
})

describe('pawl job explain', () => {
  it('says why in one sentence, and the command that would change it', async () => {
    const place = await played()
    const text = await place.ok('job', 'explain', ID)
    expect(text).toBe('It is ready, but no worker is alive.\n  pawl work --jobs ./jobs.ts\n')
    await place.ok('queue', 'pause', "it's", '--reason', 'x')
    const [told] = await place.json<Explanation & { id: string }>('job', 'explain', ID)
    expect(told).toMatchObject({ id: ID, kind: 'paused' })
    const paused = await place.ok('job', 'explain', ID)
    expect(paused).toContain("pawl queue resume --reason … 'it'\\''s'")
    const nobody = await place.run(['job', 'explain', NOBODY])
    expect([nobody.code, nobody.stderr]).toEqual([4, expect.stringContaining('E_JOB_NOT_FOUND')])
  })

  it('is part of the story', async () => {
    const place = await played()
    const story = await place.ok('job', 'show', ID)
    expect(story).toMatch(/now +It is ready, but no worker is alive\.\n {2}next +pawl work/)
    const [shown] = await place.json<{ explanation: Explanation }>('job', 'show', ID)
    expect(shown?.explanation.kind).toBe('no-worker')
  })
})

describe('pawl job show --at', () => {
  it('shows the job as it was, with the payloads of that time', async () => {
    const place = await played(commit)
    type Shown = { job: Job; input: unknown; result?: unknown; lane: string; facts: Fact[] }
    const at = async (seq: number) =>
      (await place.json<Shown>('job', 'show', ID, '--at', String(seq)))[0]
    expect(await at(1)).toMatchObject({ job: { state: 'queued', seq: 1 }, input: { to: 'ada' } })
    expect(await at(3)).toMatchObject({ job: { state: 'running' }, lane: 'held' })
    expect(await at(3)).not.toHaveProperty('result')
    expect(await at(4)).toMatchObject({ input: { to: 'ben' }, result: 'sent', lane: 'ended' })
    const text = await place.ok('job', 'show', ID, '--at', '2')
    expect(text).toMatch(/state +queued/)
    expect(text).toMatch(/#2 .*replace/)
    expect(text).not.toContain('#3')
    const bad = await place.run(['job', 'show', ID, '--at', '9'])
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('from 1 to 4')])
  })
})

describe('pawl job diff', () => {
  it('shows the fields that changed, and the facts in between', async () => {
    const place = await played(commit)
    const text = await place.ok('job', 'diff', ID, '--from', '2', '--to', '3')
    expect(text).toMatch(/^attempt: 0 → 1\nexecution: null → \{.*w1.*\}\nseq: 2 → 3\n/)
    expect(text).toMatch(/startedAt: null → \d{4}-\d\d-\d\dT\S+Z\nstate: "queued" → "running"\n/)
    expect(text).toMatch(/\n\n#3 .*claim .*\n$/)
    type Difference = { changes: { path: string[] }[]; facts: Fact[]; from: number; to: number }
    const [whole] = await place.json<Difference>('job', 'diff', ID)
    expect(whole).toMatchObject({ from: 1, to: 4 })
    const paths = whole?.changes.map(({ path }) => path.join('.'))
    expect(paths).toEqual(expect.arrayContaining(['state', 'input.to', 'result', 'outcome']))
    expect(whole?.facts.map(({ trigger }) => trigger)).toEqual(['replace', 'claim', 'commit'])
    const [born] = await place.json<Difference>('job', 'diff', ID, '--from', '0', '--to', '1')
    expect(born?.facts).toHaveLength(1)
    const same = await place.run(['job', 'diff', ID, '--from', '2', '--to', '2'])
    expect(same).toMatchObject({ code: 0, stdout: '', stderr: 'There are no differences.\n' })
    expect((await place.run(['job', 'diff', NOBODY])).code).toBe(4)
    expect((await place.run(['job', 'diff', ID, '--to', '9'])).code).toBe(2)
  })
})

describe('pawl job show', () => {
  it('prints the last failure with its stack, its causes and its group', async () => {
    const place = await played(async (store) => {
      const claim = { worker: 'w1', limit: 1, leaseMs: 60_000, start: true }
      const [held] = (await store.claim(claim)) as [Held]
      const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', port: 443 })
      const failure = failureOf(new TypeError('fetch failed', { cause }), { type: 'mail' })
      const fence = { attempt: 1, claim: held.job.execution?.claim ?? '' }
      // The commands below take seconds in processes; the job must still be waiting then.
      const late = { ...failure, retryAfterMs: 3_600_000 }
      await store.settle([{ held, command: { kind: 'fail', fence, failure: late } }])
    })
    const text = await place.ok('job', 'show', ID)
    expect(text).toMatch(
      /failure of attempt 1 {2}group [0-9a-f]{14}\n {2}TypeError: fetch failed\n/,
    )
    expect(text).toMatch(/\n {6}at .*job-show\.test\.ts/)
    expect(text).toContain('caused by Error: refused  (code ECONNREFUSED, port 443)')
    const [known] = await place.json<{ executions: Execution[] }>('job', 'show', ID)
    expect(known?.executions).toMatchObject([
      { thrown: { name: 'TypeError', cause: { code: 'ECONNREFUSED' } } },
    ])
    expect(await place.ok('job', 'explain', ID)).toContain('← Error: refused (ECONNREFUSED)')
  })
})
