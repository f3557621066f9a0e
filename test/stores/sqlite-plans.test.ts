// How SQLite runs each statement that is hot. A scripted life of a store, on a real file, is
// listened to: every statement that it prepares is recorded, and its plan is asked for. A lost
// index, a changed predicate or a planner that chooses otherwise fails here, not at a user.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Lifecycle } from 'pawl'
import { hardened, standard } from 'pawl/rules'
import { ManualClock } from 'pawl/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import type { ClaimRequest, Held, Store } from '../../src/stores/contract/store.ts'
import { Connection, plannedOnce } from '../../src/stores/sqlite/connect.ts'
import { type Database, loadDriver } from '../../src/stores/sqlite/driver.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { playFlows } from './flow-life.ts'

const LEASE_MS = 1000
const OPERATOR = { actor: 'operator', operator: 'ann', note: 'because' } as const

/** A statement that the store prepared, and for which of its verbs. */
interface Recorded {
  readonly verb: string
  readonly sql: string
}

let folder: string
let raw: Database
const recorded: Recorded[] = []
let verb = 'open'

/** Listens to every statement that a connection is asked for, until the returned end is called. */
function listen(): () => void {
  const { prototype } = Connection
  const { sql } = prototype
  prototype.sql = function (this: Connection, text: string) {
    recorded.push({ verb, sql: plannedOnce(text) })
    return sql.call(this, text)
  }
  return () => {
    prototype.sql = sql
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-plans-'))
  const path = join(folder, 'jobs.db')
  const clock = new ManualClock()
  const stopListening = listen()
  try {
    const store = await openSqliteStore({ path, environment: { ...systemEnvironment(), clock } })
    await play(store, clock)
    await store.close()
  } finally {
    stopListening()
  }
  raw = new (loadDriver().DatabaseSync)(path)
})

afterAll(() => {
  raw.close()
  rmSync(folder, { recursive: true, force: true })
})

let ids = 0

const newJob = (more: object = {}, lifecycle: Lifecycle = standard) => ({
  lifecycle,
  input: '{}',
  command: {
    jobId: `00000000-0000-7000-8000-${String(++ids).padStart(12, '0')}`,
    type: 'mail',
    queue: 'q',
    ...more,
  },
})

const request: ClaimRequest = {
  worker: 'w1',
  queues: ['q'],
  types: ['mail'],
  limit: 3,
  leaseMs: LEASE_MS,
  start: true,
}

const fenceOf = ({ job }: Held) => ({ attempt: job.attempt, claim: job.execution?.claim ?? '' })

/** Runs a verb under its name, so that what it prepares is found by it. */
async function under<T>(name: string, work: () => Promise<T>): Promise<T> {
  verb = name
  return work()
}

/** Every verb with a hot statement, once each, in an order in which each has something to do. */
async function play(store: Store, clock: ManualClock): Promise<void> {
  const items = [newJob({ key: 'k', tags: ['t'] }), ...Array.from({ length: 30 }, () => newJob())]
  await under('enqueue', () => store.enqueue(items))
  await store.enqueue([newJob({ key: 'k' })])
  await store.enqueue([
    newJob({ runAt: clock.now() + 10 }),
    newJob({ runAt: clock.now() + 10 }, hardened),
  ])

  const held = await under('claim', () => store.claim(request))
  const [first, second, third] = held as [Held, Held, Held]
  await under('heartbeat', () =>
    store.heartbeat([{ ref: first.ref, fence: fenceOf(first) }], LEASE_MS),
  )
  const step = { kind: 'step', fence: fenceOf(first), name: 's', n: 1 } as const
  const commit = (held: Held) => ({
    held,
    command: { kind: 'commit', fence: fenceOf(held) } as const,
    payload: '1',
  })
  const { queues: _, ...anyQueue } = request
  const many = { ...request, limit: 20 }
  const { claimed } = await under('settle', () =>
    store.settle(
      [
        { held: first, command: step, payload: '1' },
        { ...commit(first), progress: '1' },
      ],
      many,
    ),
  )
  await store.settle(claimed.map(commit))
  await under('claim any', () => store.claim(anyQueue))
  await under('steps', () => store.steps(first.ref))
  await under('waits', () => store.waits.history(first.job.id))
  await under('flows', () => playFlows(store, newJob().command.jobId, first.job.id))
  await under('traces', async () => {
    await store.traces([first.job.id], 'create')
    await store.traces([first.job.id], 'commit')
  })
  await under('commit', () =>
    store.commit(second, (tx) => {
      tx.effect('mail', '{}')
      return '1'
    }),
  )
  await store.commit(second, () => '2')
  const effects = await under('claimEffects', () =>
    store.claimEffects({ limit: 5, leaseMs: LEASE_MS }),
  )
  await under('retryEffects', () => store.retryEffects([`${second.job.id}/mail/1`], OPERATOR))
  await under('listEffects', async () => {
    for (const filter of [{}, { state: 'parked' }, { jobId: second.job.id }] as const) {
      await store.listEffects(filter)
    }
  })
  await under('settleEffects', () =>
    store.settleEffects(effects.map((effect) => ({ kind: 'delivered', effect }))),
  )
  await under('cancel', () => store.cancel([third.job.id], { actor: 'client' }))
  clock.advance(LEASE_MS + 10)
  await under('promote', () => store.promote(10))
  await under('recover', () => store.recover(10))
  await store.limitQueue('q', { maxDepth: 100, maxWaitMs: 1 })
  await store.enqueue([newJob({ queue: 'q' }), newJob({ queue: 'q' })])
  clock.advance(10)
  await store.limitQueue('q', { maxDepth: 0 })
  await under('shed', () => store.shed(1))
  await store.limitQueue('q', { maxDepth: null, maxWaitMs: null })
  const other = newJob()
  await store.enqueue([other])
  const { jobId } = other.command
  await under('applyCommand', () => store.applyCommand([jobId], { kind: 'park' }, OPERATOR))
  await under('redrive', () => store.applyCommand([jobId], { kind: 'redrive' }, OPERATOR))
  await read(store, first.job.id)
  await under('seal', () => store.seals.make())
  await under('prune', () => store.prune({ endedBefore: clock.now() + 1, limit: 10 }))
  const ended = { outcome: 'succeeded', endedBefore: clock.now() + 1, limit: 10 } as const
  await under('sweep', () => store.retention.sweep({ ...ended, keysMs: 1000 }))
  await under('freeKeys', () => store.retention.freeKeys(10))
  await under('tend', () => store.admissions.tend(10))
  await under('waiting', () => store.admissions.waiting('a'))
  const admission = { singleton: { mode: 'latest', key: 'k' } } as const
  const command = { jobId: '00000000-0000-7000-8000-00000000aaaa', type: 'one', queue: 'q' }
  const item = { lifecycle: standard, input: '1', command, admission }
  await under('admit', () => store.enqueue([item, { ...item, command }]))
}

async function read(store: Store, id: string): Promise<void> {
  await under('get', () => store.get(id))
  await under('getByKey', () => store.getByKey('mail', 'k'))
  await under('facts', () => store.facts(id))
  await under('payloads', () => store.payloads(id))
  await under('list', () => store.list({ state: 'queued', tag: 't', queue: 'q', error: 'e' }))
  await under('counts', () => store.counts())
  await under('tail', () => store.tail(undefined, 10))
  await under('audit', async () => {
    for (const order of ['oldest', 'newest'] as const) {
      await store.audit({ worker: 'w1', operator: 'ann', toState: 'running' }, { order })
      await store.audit({ jobId: id }, { order, payloads: true })
    }
  })
  await under('tailEnd', () => store.tailEnd())
}

/** The steps of the plan of a statement. */
function planOf(sql: string): string[] {
  const rows = raw.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]
  return rows.map(({ detail }) => detail)
}

/** The statements that the store prepared and that read like this. */
function statements(pattern: RegExp): string[] {
  const texts = recorded.map(({ sql }) => sql).filter((sql) => pattern.test(flat(sql)))
  return [...new Set(texts)]
}

const flat = (sql: string) => sql.replace(/\s+/g, ' ').trim()

const READY = /SEARCH pawl_jobs USING (COVERING )?INDEX pawl_jobs_ready \(queue=\?\)/
const BLOCKED = /SEARCH pawl_jobs USING (COVERING )?INDEX pawl_jobs_blocked \(queue=\?\)/
const BY_RID = /SEARCH pawl_jobs USING INTEGER PRIMARY KEY \(rowid=\?\)/
const BY_ID = /SEARCH pawl_jobs USING (COVERING )?INDEX sqlite_autoindex_pawl_jobs_1 \(id=\?\)/
const BY_KEY = /SEARCH pawl_jobs USING INDEX pawl_jobs_key \(type=\? AND key=\?\)/
const FACTS =
  /SEARCH pawl_ledger USING (COVERING )?INDEX sqlite_autoindex_pawl_ledger_1 \(job=\?.*\)/
const COMMIT = /SEARCH pawl_ledger USING INDEX pawl_one_commit \(job=\?\)/
const EFFECTS =
  /SEARCH pawl_outbox USING (COVERING )?INDEX sqlite_autoindex_pawl_outbox_1 \(job=\?.*\)/
const RECENT = /SEARCH pawl_jobs USING INTEGER PRIMARY KEY \(rowid<\?\)/

/** The hot statements: how to know each, and the ways into its tables that it must take. */
const HOT: readonly [what: string, pattern: RegExp, ways: readonly RegExp[]][] = [
  ['claim: pick and take', /^UPDATE pawl_jobs SET lane = 3.* RETURNING/, [BY_RID, READY, FACTS]],
  [
    'claim: the queues with something ready, by skipping',
    /^WITH RECURSIVE ready/,
    [
      /SEARCH pawl_jobs USING COVERING INDEX pawl_jobs_ready$/,
      /SEARCH pawl_jobs USING COVERING INDEX pawl_jobs_ready \(queue>\?\)/,
    ],
  ],
  [
    'claim: the facts of what was taken',
    /^INSERT INTO pawl_ledger .* FROM pawl_jobs/,
    [/SEARCH pawl_jobs USING INDEX pawl_jobs_held \(lease_until=\?\)/],
  ],
  ['enqueue: a job by its key', /^SELECT \* FROM pawl_jobs WHERE type = \? AND key/, [BY_KEY]],
  ['settle: the row', /^SELECT \* FROM pawl_jobs WHERE rid = \?/, [BY_RID]],
  ['settle: the update', /^UPDATE pawl_jobs SET lane = \?.* WHERE rid = \? AND seq/, [BY_RID]],
  [
    'settle: a step that is known',
    /^SELECT 1 FROM pawl_ledger WHERE job = \? AND kind = 22/,
    [/SEARCH pawl_ledger USING INDEX pawl_one_step \(job=\? AND <expr>=\? AND <expr>=\?\)/],
  ],
  ['heartbeat', /^UPDATE pawl_jobs SET lease_until = /, [BY_RID]],
  [
    'promote: what is due',
    /WHERE lane = 1 AND run_at <= \?/,
    [/SEARCH pawl_jobs USING INDEX pawl_jobs_waiting \(run_at<\?\)/],
  ],
  ['promote: the lane', /^UPDATE pawl_jobs SET lane = 2/, [BY_RID]],
  [
    'recover: what has expired',
    /WHERE lane = 3 AND lease_until <= \?/,
    [/SEARCH pawl_jobs USING INDEX pawl_jobs_held \(lease_until<\?\)/],
  ],
  [
    'settle and recover: the retries that wait',
    /WHERE lane = 1 AND run_at > \? ORDER BY run_at, rid LIMIT 120/,
    [/SEARCH pawl_jobs USING INDEX pawl_jobs_waiting \(run_at>\?\)/],
  ],
  ['a bounded queue: how deep it is', /^SELECT count.* LIMIT \?2 \+ 0\)$/, [READY, BLOCKED]],
  [
    'shed: whose deadline has passed',
    /WHERE deadline_at <= \?1 AND \(lane IN \(1, 2, 7\)/,
    [/SEARCH pawl_jobs USING INDEX pawl_jobs_deadline \(deadline_at<\?\)/],
  ],
  ['settle: the last progress', /^UPDATE pawl_jobs SET progress = /, [BY_RID]],
  [
    'shed: what has waited for too long',
    /^WITH RECURSIVE priorities .* lane = 2 /,
    [/SEARCH job USING INDEX pawl_jobs_ready \(queue=\? AND priority=\? AND <expr><\?\)/],
  ],
  [
    'shed: what a limit has blocked for too long',
    /^WITH RECURSIVE priorities .* lane = 7 /,
    [/SEARCH job USING INDEX pawl_jobs_blocked \(queue=\? AND priority=\? AND <expr><\?\)/],
  ],
  ['a command: the row', /^SELECT \* FROM pawl_jobs WHERE id = \?/, [BY_ID]],
  ['cancel: the wish', /^UPDATE pawl_jobs SET cancel_asked_at/, [BY_RID]],
  [
    'the outbox: take',
    /^UPDATE pawl_outbox SET claim = /,
    [/SEARCH pawl_outbox USING INTEGER PRIMARY KEY \(rowid=\?\)/, BY_RID],
  ],
  [
    'the outbox: what is due',
    /^SELECT eid, run_at FROM pawl_outbox/,
    [/SEARCH pawl_outbox USING COVERING INDEX pawl_outbox_pending \(type=\? AND run_at<\?\)/],
  ],
  [
    'the outbox: the types with something pending, by skipping',
    /^WITH RECURSIVE pending/,
    [
      /S(CAN|EARCH) pawl_outbox USING COVERING INDEX pawl_outbox_pending$/,
      /SEARCH pawl_outbox USING COVERING INDEX pawl_outbox_pending \(type>\?\)/,
    ],
  ],
  [
    'the outbox: a window of a list',
    /FROM pawl_outbox WHERE eid < \?/,
    [/SEARCH pawl_outbox USING INTEGER PRIMARY KEY \(rowid<\?\)/],
  ],
  [
    'the outbox: what is parked',
    /INDEXED BY pawl_outbox_parked/,
    [/SEARCH pawl_outbox USING INDEX pawl_outbox_parked \(eid<\?\)/],
  ],
  ['the outbox: those of a job', /FROM pawl_outbox WHERE job = \(SELECT/, [EFFECTS, BY_ID]],
  ['the outbox: one again', /^UPDATE pawl_outbox SET .* AND name = /, [EFFECTS]],
  [
    'the outbox: report',
    /^UPDATE pawl_outbox SET state = \?/,
    [/SEARCH pawl_outbox USING INTEGER PRIMARY KEY \(rowid=\?\)/],
  ],
  ['the outbox: what is left', /^SELECT 1 FROM pawl_outbox WHERE job/, [EFFECTS]],
  ['the outbox: again', /^UPDATE pawl_outbox SET state = 'pending'/, [EFFECTS]],
  ['a job by its id', /^SELECT pawl_jobs.*WHERE pawl_jobs.id = \?/, [BY_ID]],
  ['a job by its key', /^SELECT pawl_jobs.*pawl_jobs.key = \?/, [BY_KEY]],
  ['the facts of a job', /^SELECT pawl_ledger.*seq <= \? ORDER BY/, [BY_ID, FACTS]],
  ['the payloads of a job', /^SELECT kind, payload/, [BY_ID, FACTS]],
  ['the steps of a job', /^SELECT data, payload/, [FACTS]],
  ['the waits of a job', /pawl_jobs\.id AS job_id FROM json_each/, [BY_ID, FACTS]],
  ['the spans that created jobs', /pawl_ledger\.seq = 1$/, [BY_ID, FACTS]],
  ['the spans that committed jobs', /pawl_ledger\.kind = 30$/, [BY_ID, COMMIT]],
  ['a window of a list', /^SELECT min\(rid\) AS first/, [RECENT]],
  [
    'the jobs in a window of a list',
    /WHERE rid < \? AND rid >= \?/,
    [/SEARCH pawl_jobs USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/],
  ],
  [
    'the tail of the ledger',
    /WHERE pos > \? ORDER BY pos/,
    [/SEARCH pawl_ledger USING INTEGER PRIMARY KEY \(rowid>\?\)/],
  ],
  [
    'the audit: a window',
    /^SELECT (min|max)\(pos\) AS end/,
    [/SEARCH pawl_ledger USING INTEGER PRIMARY KEY \(rowid[<>]\?\)/],
  ],
  [
    'the audit: what is in a window',
    /^SELECT l\.seq.* WHERE l\.pos/,
    [
      /SEARCH l USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/,
      /SEARCH c USING INDEX sqlite_autoindex_pawl_ledger_1 \(job=\? AND seq<\?\)/,
      BY_RID,
    ],
  ],
  [
    'the audit: the facts of a job',
    /^SELECT l\..* WHERE l\.job/,
    [/SEARCH l USING INDEX sqlite_autoindex_pawl_ledger_1 \(job=\?\)/, BY_ID],
  ],
  [
    'a seal: where it ends',
    /^SELECT max\(pos\) AS last/,
    [/SEARCH pawl_ledger USING INTEGER PRIMARY KEY \(rowid>\?\)/],
  ],
  [
    'a seal: its facts',
    /^SELECT l\.\*.* WHERE l\.pos BETWEEN/,
    [/SEARCH l USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/, BY_RID],
  ],
  [
    'a seal: how many they are',
    /^SELECT count\(\*\) AS facts FROM pawl_ledger/,
    [/SEARCH pawl_ledger USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/],
  ],
  [
    'prune: what has ended',
    /WHERE lane = 5 AND ended_at < \? AND \(links IS NULL .* ORDER BY ended_at, rid LIMIT \? \+ 0$/,
    [/SEARCH pawl_jobs USING INDEX pawl_jobs_ended \(ended_at<\?\)/],
  ],
  ['prune: the facts to archive', /^SELECT \*, pos AS position FROM pawl_ledger/, [FACTS]],
  ['prune: the job', /^DELETE FROM pawl_jobs/, [BY_RID]],
  ['prune: its facts', /^DELETE FROM pawl_ledger/, [FACTS]],
  [
    'prune: its effects',
    /^DELETE FROM pawl_outbox/,
    [/SEARCH pawl_outbox USING COVERING INDEX sqlite_autoindex_pawl_outbox_1 \(job=\?\)/],
  ],
  [
    'flows: the end of an awaited job',
    /^UPDATE pawl_links SET state = CASE WHEN need = 0/,
    [/SEARCH pawl_links USING PRIMARY KEY \(awaited=\?\)/],
  ],
  [
    'flows: whether there are links to examine',
    /^SELECT 1 FROM pawl_links WHERE state IN/,
    [/USING (COVERING )?INDEX pawl_links_news/],
  ],
  [
    'flows: links to examine',
    /^SELECT link.awaited, link.waiter/,
    [
      /USING (COVERING )?INDEX pawl_links_news/,
      /SEARCH own USING INDEX sqlite_autoindex_pawl_jobs/,
    ],
  ],
  [
    'flows: what a waiter waits for',
    /^SELECT asked.value AS waiter/,
    [/SEARCH link USING (COVERING )?INDEX pawl_links_waiter \(waiter=\? AND state=\?/],
  ],
  [
    'flows: the nodes of a flow',
    /^SELECT id, node FROM pawl_jobs WHERE flow = \?/,
    [/USING INDEX pawl_jobs_flow \(flow=\? AND node>\?\)/],
  ],
  [
    'sweep: the next ended jobs',
    /\(ended_at, rid\) > \(\?, \?\)/,
    [/SEARCH pawl_jobs USING INDEX pawl_jobs_ended \(/],
  ],
  [
    'enqueue: the key of a removed job',
    /FROM pawl_tombstones AS gone WHERE type = \? AND key = \?/,
    [/SEARCH gone USING PRIMARY KEY \(type=\? AND key=\?\)/],
  ],
  [
    'free keys: those whose time is over',
    /^DELETE FROM pawl_tombstones/,
    [/SEARCH pawl_tombstones USING (COVERING )?INDEX pawl_tombstones_until \(keep_until<\?\)/],
  ],
  [
    'admission: the row of a key',
    /^SELECT \* FROM pawl_admissions WHERE type/,
    [/SEARCH pawl_admissions USING PRIMARY KEY \(type=\? AND kind=\? AND key=\?\)/],
  ],
  [
    'admission: rows to look at',
    /FROM pawl_admissions WHERE look_at <= \? LIMIT 1/,
    [/SEARCH pawl_admissions USING COVERING INDEX pawl_admissions_look \(look_at<\?\)/],
  ],
  ['commit: a stored result', /^SELECT payload FROM pawl_ledger WHERE job = \? AND kind/, [COMMIT]],
]

/** Steps that read a whole table, or sort what an index should have sorted. */
const SLOW = /^SCAN pawl_(jobs|ledger|outbox)( USING INDEX.*)?$|TEMP B-TREE|AUTOMATIC/

function expectFast(what: string, pattern: RegExp, ways: readonly RegExp[]): void {
  const found = statements(pattern)
  expect(found.length, `the store never prepared: ${what}`).toBeGreaterThan(0)
  for (const sql of found) {
    const plan = planOf(sql)
    const missing = ways.filter((way) => !plan.some((step) => way.test(step)))
    expect({ missing, plan }).toEqual({ missing: [], plan })
    expect(plan.filter((step) => SLOW.test(step))).toEqual([])
  }
}

describe('each hot statement goes by its index, and neither scans nor sorts', () => {
  it.each(HOT)('%s', (what, pattern, ways) => {
    expectFast(what, pattern, ways)
  })

  it('counts of live lanes read the small index of the lane alone', () => {
    const counts = statements(/^SELECT count\(\*\) AS jobs FROM pawl_jobs WHERE lane = \d/)
    const byLane = Object.fromEntries(
      counts.map((sql) => [/lane = (\d)/.exec(sql)?.[1], planOf(sql)]),
    )
    const scan = (index: string) => [`SCAN pawl_jobs USING COVERING INDEX pawl_jobs_${index}`]
    expect(byLane).toEqual({
      0: scan('idle'),
      1: scan('waiting'),
      2: scan('ready'),
      3: scan('held'),
      4: scan('parked'),
      6: scan('delivering'),
      7: scan('blocked_on'),
    })
  })
})

describe('no statement of any verb', () => {
  it('reads a whole table of jobs, facts or effects, or sorts', () => {
    const texts = statements(/^(SELECT|INSERT|UPDATE|DELETE|WITH) .*pawl_(jobs|ledger|outbox)/)
    const slow = texts
      .map((sql) => ({ sql: flat(sql), steps: planOf(sql).filter((step) => SLOW.test(step)) }))
      .filter(({ steps }) => steps.length > 0)
    expect(slow).toEqual([])
    expect(texts.length).toBeGreaterThan(HOT.length)
  })

  it('has a parameter as its whole LIMIT, which SQLite would plan again after every bind', () => {
    const texts = recorded.map(({ sql }) => flat(sql))
    expect(texts.filter((sql) => /LIMIT \?\d* \+ 0/.test(sql))).not.toEqual([])
    expect(texts.filter((sql) => /LIMIT \?\d*(?! \+ 0)(?!\d)/.test(sql))).toEqual([])
  })

  it('is a text that grows with the work: the number of prepared statements is bounded', () => {
    const verbs = new Set(recorded.map((entry) => entry.verb))
    expect(verbs.size).toBeGreaterThan(15)
    expect(new Set(recorded.map(({ sql }) => sql)).size).toBeLessThan(150)
  })
})

describe('after ANALYZE on a file full of ended jobs', () => {
  beforeAll(() => {
    raw.exec(FILL)
    raw.exec('ANALYZE')
  })

  // There the steps are few enough to be sorted, once read by an index that holds nothing else.
  const same = HOT.filter(([what]) => what !== 'the steps of a job')

  it.each(same)('%s: the same plan', (what, pattern, ways) => {
    expectFast(what, pattern, ways)
  })
})

/** Many ended jobs, some future and ready ones, few held: what a file looks like after a while. */
const FILL = `
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
  INSERT INTO pawl_jobs (id, lane, machine, state, queue, type, priority, run_at, seq, attempt,
    claim, worker, status, lease_until, created_at, updated_at, ended_at, outcome, key)
  SELECT 'f' || i, lane, 1, 'queued', 'q' || (i % 3), 't' || (i % 5), 0, i, 3, 1, 'c', 'w', 'I',
    CASE lane WHEN 3 THEN i END, i, i, CASE lane WHEN 5 THEN i END,
    CASE lane WHEN 5 THEN 'succeeded' END, CASE WHEN i % 7 = 0 THEN 'k' || i END
  FROM (SELECT i, CASE WHEN i <= 5000 THEN 5 WHEN i <= 5450 THEN 1 WHEN i <= 5950 THEN 2
    ELSE 3 END AS lane FROM n);
  INSERT INTO pawl_ledger (job, seq, kind, at, path, actor, payload)
  SELECT rid, fact.value, fact.value * 10, 1, 'a>b', 'client', '{}'
  FROM pawl_jobs, json_each('[1, 2, 3]') AS fact WHERE pawl_jobs.id LIKE 'f%';
  INSERT INTO pawl_outbox (job, type, name, n, payload, state, run_at)
  SELECT rid, type, 'mail', 2, '{}', CASE WHEN rid % 50 = 0 THEN 'pending' ELSE 'delivered' END, rid
  FROM pawl_jobs WHERE id LIKE 'f%' AND rid % 2 = 0;
`
