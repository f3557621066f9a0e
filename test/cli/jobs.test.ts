// Commands about jobs, end to end on a SQLite file.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fact } from '../../src/core/job/facts.ts'
import type { Job } from '../../src/core/job/job.ts'
import { withTrace } from '../../src/core/trace.ts'
import { createPawl } from '../../src/engine/create-pawl.ts'
import { defineJob } from '../../src/engine/define-job.ts'
import type { OperatorReport } from '../../src/engine/operators/report.ts'
import type { Held, Store } from '../../src/stores/contract/store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { ended, linesOf, Place, said } from './pawl.ts'

const NOBODY = '00000000-0000-7000-8000-00000000dead'
type Reported = OperatorReport & { readonly verb: string }

/** A place whose store the test also has open. */
async function withStore<T>(use: (place: Place, store: Store) => Promise<T>): Promise<T> {
  const place = new Place()
  await using store = await openSqliteStore({ path: place.path })
  return await use(place, store)
}

/** Enqueues jobs of one type in a queue of the same name, and gives their ids, oldest first. */
async function enqueue(store: Store, type: string, count = 1, options = {}): Promise<string[]> {
  const pawl = await createPawl({ store })
  const job = defineJob({ name: type, queue: type })
  const inputs = Array.from({ length: count }, (_, n) => ({ input: { n }, ...options }))
  return (await pawl.enqueueMany(job, inputs)).map(({ id }) => id)
}

/** Claims one job of a queue and lets it fail for good. */
async function fail(store: Store, queue: string, message: string): Promise<Held> {
  const claim = { worker: 'w1', queues: [queue], limit: 1, leaseMs: 30_000, start: true }
  const [held] = (await store.claim(claim)) as [Held]
  const fence = { attempt: held.job.attempt, claim: held.job.execution?.claim ?? '' }
  const failure = { class: 'terminal', kind: 'terminal', message } as const
  await store.settle([{ held, command: { kind: 'fail', fence, failure } }])
  return held
}

describe('pawl job enqueue', () => {
  it('reads tags as values, and job show prints them as they are stored', async () => {
    const place = new Place()
    const input = '{"at":{"@pawl:date":"2026-01-31T01:00:00+01:00"},"n":{"@pawl:bigint":"7"}}'
    const id = (await place.ok('job', 'enqueue', 'remind', input)).trim()
    const stored = '{"at":{"@pawl:date":"2026-01-31T00:00:00.000Z"},"n":{"@pawl:bigint":"7"}}'
    expect(await place.ok('job', 'show', id)).toContain(stored)
    const [story] = await place.json<{ input: unknown }>('job', 'show', id)
    expect(story?.input).toEqual(JSON.parse(stored))
    const wrong = '{"at":{"@pawl:date":"2026-02-31T00:00:00Z"}}'
    const refused = await place.run(['job', 'enqueue', 'remind', wrong])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('$.at is not') })
  })

  it('prints the id of a job that is durable, with what its options say', async () => {
    const place = new Place()
    const args = ['--key', 'k', '--priority', '-3', '--tag', 'a', '--tag', 'b', '--queue', 'mail']
    const id = (await place.ok('job', 'enqueue', 'send', '{"to":"ada"}', ...args)).trim()
    const [story] = await place.json<{ job: Job; input: unknown }>('job', 'show', id)
    expect(story?.job).toMatchObject({
      ...{ id, type: 'send', queue: 'mail', key: 'k', priority: -3, tags: ['a', 'b'] },
      ...{ state: 'queued', lifecycle: 'standard' },
    })
    expect(story?.input).toEqual({ to: 'ada' })
  })

  it('orders a job by a time, and refuses a number beside it', async () => {
    const place = new Place()
    const id = (await place.ok('job', 'enqueue', 'send', '1', '--ahead', '2m')).trim()
    expect(await place.ok('job', 'show', id)).toContain('priority 0, 2m ahead')
    await place.ok('job', 'prioritise', id, '--ahead', '1h', '--reason', 'r', '--operator', 'ann')
    expect(await place.ok('job', 'show', id)).toContain('priority 0, 1h ahead')
    const both = ['--priority', '1', '--ahead', '2m']
    const refused = await place.run(['job', 'enqueue', 'send', '1', ...both])
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--priority and --ahead cannot be used together'),
    })
    const long = await place.run(['job', 'enqueue', 'send', '1', '--ahead', '25h'])
    expect(long).toMatchObject({ code: 2, stderr: expect.stringContaining('more than a day') })
  })

  it('answers a taken key as it is told to', async () => {
    const place = new Place()
    const id = (await place.ok('job', 'enqueue', 'send', '1', '--key', 'k')).trim()
    const [again] = await place.json('job', 'enqueue', 'send', '2', '--key', 'k')
    expect(again).toEqual({ id, created: false, state: 'queued' })
    const reject = ['job', 'enqueue', 'send', '--key', 'k', '--on-conflict', 'reject']
    const { code, stderr } = await place.run(reject)
    expect([code, stderr]).toEqual([5, expect.stringContaining('E_KEY_TAKEN')])
    expect((await place.run(['job', 'enqueue', 'x', '--id', id])).code).toBe(5)
  })

  it('holds, delays, and reads a large input from stdin', async () => {
    const place = new Place()
    const [held] = await place.json<{ state: string }>('job', 'enqueue', 'a', '--hold')
    const [later] = await place.json<{ state: string }>('job', 'enqueue', 'a', '--delay', '1h')
    expect([held?.state, later?.state]).toEqual(['created', 'scheduled'])
    const input = JSON.stringify({ text: 'x'.repeat(2_000_000) })
    const line = ['job', 'enqueue', 'big', '--input-file', '-']
    const { code, stdout } = await place.run(line, { input })
    expect(code).toBe(0)
    const shown = await place.ok('job', 'show', stdout.trim())
    expect(shown.length).toBeLessThan(5000)
    expect(shown).toContain(`(${input.length} characters; --json prints all)`)
    const [story] = await place.json<{ input: unknown }>('job', 'show', stdout.trim())
    expect(story?.input).toEqual(JSON.parse(input))
  })
})

describe('pawl job list', () => {
  it('shows newest first, by filter and page, as lines with tabs or as NDJSON', async () => {
    await withStore(async (place, store) => {
      const mails = await enqueue(store, 'mail', 3)
      const [report] = await enqueue(store, 'report', 1, { tags: ['vip'] })
      await fail(store, 'mail', 'no route to host')
      const rows = (await place.ok('job', 'list')).trimEnd().split('\n')
      expect(rows.map((row) => row.split('\t')[0])).toEqual([report, ...mails.toReversed()])
      expect(rows.at(-1)?.split('\t').slice(1, 5)).toEqual(['mail', 'failed', 'mail', '1'])
      const ids = async (...filter: string[]) =>
        (await place.json<Job>('job', 'list', ...filter)).map(({ id }) => id)
      expect(await ids('--state', 'failed')).toEqual([mails[0]])
      expect(await ids('--error', 'no route')).toEqual([mails[0]])
      expect(await ids('--tag', 'vip', '--lane', 'ready')).toEqual([report])
      expect(await ids('--queue', 'mail', '--type', 'mail', '--created-after', '1h')).toHaveLength(
        3,
      )
      expect(await ids('--created-before', '2020-01-01')).toEqual([])
      const first = await place.run(['job', 'list', '--limit', '3', '--json'])
      const next = /--after (\S+)/.exec(first.stderr)?.[1] ?? ''
      expect(linesOf<Job>(first.stdout).map(({ id }) => id)).toHaveLength(3)
      expect(await ids('--after', next)).toEqual([mails[0]])
      const bad = await place.run(['job', 'list', '--after', 'x'])
      expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('not a cursor')])
    })
  })

  it('says on stderr that nothing matches, and prints nothing', async () => {
    await withStore(async (place) => {
      const { code, stdout, stderr } = await place.run(['job', 'list', '--state', 'failed'])
      expect([code, stdout, stderr]).toEqual([0, '', 'No job matches.\n'])
    })
  })
})

describe('pawl job show', () => {
  it('tells state, budgets, error, payloads, each step with time, actor and reason', async () => {
    await withStore(async (place, store) => {
      const [id = ''] = await enqueue(store, 'mail', 1, { key: 'k', tags: ['vip'] })
      await fail(store, 'mail', 'no route to host')
      await place.ok('job', 'redrive', id, '--reason', 'INC-7: the route is back')
      await place.ok('job', 'quarantine', id, '--reason', 'again', '--operator', 'bob')
      const text = await place.ok('job', 'show', id)
      const parts = [
        /^job \S+ {2}mail\n/,
        /state +quarantined {2}lane parked {2}lifecycle standard v2/,
        /attempts +1 {2}\(0 of 3 retries, 0 of 3 restarts after crashes, 0 of 100 releases\)/,
        /error +TERMINAL terminal: no route to host/,
        /input +\{"n":0\}/,
        /next +pawl job redrive/,
        /#1 +\d{4}-\d\d-\d\dT\S+Z create +created → queued · client/,
        /#2 +\+\S+ +claim +queued → running · attempt 1 LEASED, IN_PROGRESS · worker w1/,
        /#3 .*fail +running → failed · attempt 1 ABORTED \(error\).*no route to host/,
        /#4 .*redrive +failed → queued · operator ada · "INC-7: the route is back"/,
        /#5 .*park +queued → quarantined · operator bob · parked: "again"/,
      ]
      for (const part of parts) expect(text).toMatch(part)
      const [story] = await place.json<{ facts: Fact[]; executions: unknown[]; lane: string }>(
        ...['job', 'show', id],
      )
      expect(story?.facts).toEqual((await store.facts(id)).map(withTrace))
      expect(story).toMatchObject({ lane: 'parked', executions: [{ attempt: 1 }] })
    })
  })

  it('tells who holds a running job, and until when', async () => {
    await withStore(async (place, store) => {
      const [id = ''] = await enqueue(store, 'mail')
      const claim = { worker: 'w1', limit: 1, leaseMs: 60_000, start: true }
      const [held] = (await store.claim(claim)) as [Held]
      const fence = { attempt: 1, claim: held.job.execution?.claim ?? '' }
      await store.heartbeat([{ ref: held.ref, fence, progress: '{"done":3}' }], 60_000)
      const text = await place.ok('job', 'show', id)
      expect(text).toMatch(/lease +w1, IN_PROGRESS, until \S+ \(in \d+s\)/)
      expect(text).toMatch(/progress +\{"done":3\}/)
    })
  })
})

describe('pawl job tail', () => {
  it('follows one job until it ends', async () => {
    await withStore(async (place, store) => {
      const [id = ''] = await enqueue(store, 'mail')
      const child = place.start(['job', 'tail', id, '--json'])
      const over = ended(child)
      await said(child.stdout, /"create"/)
      await fail(store, 'mail', 'boom')
      const { code, stdout } = await over
      expect(code).toBe(0)
      expect(linesOf<Fact>(stdout)).toEqual((await store.facts(id)).map(withTrace))
    })
  })

  it('follows all jobs from now on, or from a place, until it is interrupted', async () => {
    await withStore(async (place, store) => {
      const [old = ''] = await enqueue(store, 'mail')
      const child = place.start(['job', 'tail', '--json', '--verbose'])
      const over = ended(child)
      await said(child.stderr, /store: /)
      // It looks for its beginning a moment after it says which store it reads.
      let seen = false
      child.stdout.once('data', () => {
        seen = true
      })
      const added: string[] = []
      while (!seen) {
        added.push(...(await enqueue(store, 'mail')))
        await new Promise((resolve) => setImmediate(resolve))
      }
      child.kill('SIGINT')
      const { code, stdout } = await over
      expect(code).toBe(130)
      const lines = linesOf<Fact & { pos: string }>(stdout)
      expect(lines.map(({ jobId }) => jobId)).not.toContain(old)
      expect(added).toEqual(expect.arrayContaining(lines.map(({ jobId }) => jobId)))
      const [first] = lines
      const from = ['job', 'tail', '--after', first?.pos ?? '', '--no-follow']
      const rest = await place.json<Fact>(...from)
      expect(rest).toHaveLength(added.length - added.indexOf(first?.jobId ?? '') - 1)
      const all = await place.json<Fact>('job', 'tail', '--from-start', '--no-follow')
      expect(all).toHaveLength(added.length + 1)
      expect(await place.ok('job', 'tail', '--no-follow')).toBe('')
    })
  })
})

describe('the verbs of operators', () => {
  it('each do what they say, under name and reason', async () => {
    await withStore(async (place, store) => {
      const [id = ''] = await enqueue(store, 'mail', 1, { hold: true })
      const acts: [string[], string, string][] = [
        [['submit'], 'submit', 'queued'],
        [['prioritise', '--to', '-5'], 'prioritise', 'queued'],
        [['reschedule', '--in', '2h'], 'reschedule', 'scheduled'],
        [['reschedule', '--now'], 'run-now', 'queued'],
        [['reschedule', '--at', '2100-01-01T00:00Z'], 'reschedule', 'scheduled'],
        [['retry'], 'run-now', 'queued'],
        [['quarantine'], 'park', 'quarantined'],
        [['redrive'], 'redrive', 'queued'],
        [['force', '--to', 'quarantined'], 'force', 'quarantined'],
        [['discard'], 'discard', 'failed'],
        [['retry'], 'redrive', 'queued'],
        [['cancel'], 'cancel', 'cancelled'],
      ]
      for (const [[verb = '', ...options], trigger, state] of acts) {
        const line = ['job', verb, id, ...options, '--reason', 'INC-7']
        const [report] = await place.json<Reported>(...line)
        expect(report).toMatchObject({ verb, matched: 1, done: 1, refused: 0, dryRun: false })
        const fact = (await store.facts(id)).at(-1)
        expect(fact).toMatchObject({ trigger, to: state, operator: 'ada', note: 'INC-7' })
      }
      expect((await store.get(id))?.priority).toBe(-5)
      const copied = await place.ok('job', 'copy', id, '--reason', 'again')
      expect(copied).toMatch(new RegExp(`^copy: 1 matched, 1 done\n {2}${id} copied as \\S+\n$`))
    })
  }, 30_000)

  it('end with 4 where no job is there, 5 where one is refused, and say why', async () => {
    await withStore(async (place, store) => {
      const [id = ''] = await enqueue(store, 'mail')
      const act = (verb: string, ...ids: string[]) =>
        place.run(['job', verb, ...ids, '--reason', 'x'])
      const missing = await act('cancel', NOBODY)
      expect([missing.code, missing.stdout]).toEqual([4, expect.stringContaining('not found')])
      const refused = await act('discard', id)
      expect([refused.code, refused.stdout]).toEqual([5, expect.stringContaining('E_TRANSITION')])
      const mixed = await act('discard', id, NOBODY)
      expect(mixed.code).toBe(5)
      const approve = await act('approve', id)
      expect([approve.code, approve.stdout]).toEqual([5, expect.stringContaining('E_JOB_NOT_ST')])
    })
  })

  it('on a filter count first, and change nothing unless it is confirmed', async () => {
    await withStore(async (place, store) => {
      await enqueue(store, 'mail', 130)
      await enqueue(store, 'report', 2)
      const line = ['job', 'cancel', '--queue', 'mail', '--reason', 'INC-7']
      const unsure = await place.run(line)
      expect([unsure.code, unsure.stdout]).toEqual([2, ''])
      expect(unsure.stderr).toMatch(/^cancel would change: 130 matched, 130 done\n.*E_NOT_CONF/s)
      const dry = await place.run([...line, '--dry-run'])
      expect(dry.code).toBe(0)
      expect(dry.stdout).toBe('cancel: 130 matched, 130 done (dry run, nothing was written)\n')
      expect((await store.counts()).lanes.ready).toBe(132)
      const [some] = await place.json<Reported>(...line, '--limit', '30', '--yes')
      expect(some).toMatchObject({ matched: 30, done: 30, more: true })
      const [rest] = await place.json<Reported>(...line, '--lane', 'ready', '--yes')
      expect(rest).toMatchObject({ matched: 100, done: 100, more: false })
      const none = await place.run([...line, '--lane', 'ready'])
      expect([none.code, none.stdout]).toEqual([0, 'cancel: 0 matched\n'])
      const everything = ['job', 'quarantine', '--all', '--reason', 'x', '--yes', '--json']
      const refused = await place.run(everything)
      expect(refused.code).toBe(5)
      const [all] = linesOf<Reported>(refused.stdout)
      expect(all).toMatchObject({ matched: 132, done: 2, refused: 130 })
    })
  })

  it('know the lifecycles of a job file that is named', async () => {
    const place = new Place()
    const file = join(place.folder, 'jobs.ts')
    writeFileSync(file, OWN_LIFECYCLE)
    const id = (await place.ok('job', 'enqueue', 'own', '--jobs', file)).trim()
    const unknown = await place.run(['job', 'cancel', id, '--reason', 'x'])
    expect([unknown.code, unknown.stdout]).toEqual([5, expect.stringContaining('E_LIFECYCLE_UN')])
    expect(await place.ok('job', 'show', id)).toContain('own v1, which this process does not know')
    expect(await place.ok('job', 'show', id, '--jobs', file)).toContain('lane ready')
    const line = ['job', 'cancel', id, '--reason', 'x', '--jobs', file]
    expect(await place.ok(...line)).toBe('cancel: 1 matched, 1 done\n')
    expect(await place.ok('machine', 'show', 'own', '--jobs', file, '--dot')).toContain('digraph')
  })

  it('on a filter leave alone what is enqueued after they have counted', async () => {
    await withStore(async (place, store) => {
      await enqueue(store, 'mail', 1500)
      const child = place.start(['job', 'cancel', '--all', '--reason', 'x', '--yes', '--json'])
      const over = ended(child)
      await said(child.stderr, /would change: 1500 matched/)
      const late = await enqueue(store, 'mail', 5)
      const [report] = linesOf<Reported>((await over).stdout)
      expect(report).toMatchObject({ matched: 1500, done: 1500, more: false })
      for (const id of late) expect((await store.get(id))?.state).toBe('queued')
    })
  })

  it('stop between two batches when they are interrupted', async () => {
    await withStore(async (place, store) => {
      await enqueue(store, 'mail', 4000)
      const child = place.start(['job', 'cancel', '--all', '--reason', 'x', '--yes', '--json'])
      const over = ended(child)
      await said(child.stderr, /would change/)
      child.kill('SIGINT')
      const { code, stdout } = await over
      const [report] = linesOf<Reported>(stdout)
      expect([code, report?.more]).toEqual([130, true])
      const { lanes } = await store.counts()
      expect(lanes.ended).toBe(report?.done)
      expect(lanes.ended).toBeLessThan(4000)
    })
  })
})

const OWN_LIFECYCLE = `
import { defineJob } from 'pawl'
import { defineLifecycle } from 'pawl/rules'
const own = defineLifecycle({
  name: 'own', version: 1, initial: 'todo',
  states: {
    todo: { role: 'ready', meaning: 'To be done.' },
    doing: { role: 'held', meaning: 'Being done.' },
    good: { role: 'succeeded', meaning: 'Done.' },
    bad: { role: 'failed', meaning: 'Given up.' },
  },
  edges: [
    { from: 'todo', to: 'doing', on: ['claim', 'cancel'] },
    { from: 'doing', to: 'good', on: ['succeed'] },
    { from: 'doing', to: 'todo', on: ['expire', 'release'] },
    { from: 'doing', to: 'bad', on: ['fail', 'give-up', 'reject', 'cancel'] },
  ],
})
export default { jobs: [defineJob({ name: 'own', lifecycle: own, run: () => 1 })] }
`
