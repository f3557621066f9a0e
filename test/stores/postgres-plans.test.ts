// How PostgreSQL runs each statement that is hot. A scripted life of a store is listened to: every
// statement that it sends is recorded, and its generic plan is asked for, as the store has it
// planned, in schemas of different ages. A lost index, a changed predicate or a planner that
// chooses otherwise fails here, not at a user.
import { ManualClock } from 'pawl/testing'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { playLife } from './postgres-life.ts'

const url = sharedPostgres()
const played = `plans_${process.pid}`
const raw = new pg.Client({ connectionString: url })

/** The statements with values that the store sent, by their texts without the schema. */
const sent = new Map<string, readonly unknown[]>()
/** How the store begins a transaction, with all of its settings. */
let begin = ''

/** Schemas of different ages, and what makes them so. */
const AGES = {
  'new and never analysed': `${played}_new`,
  'full of ended jobs and analysed': `${played}_full`,
  'analysed while it was empty': `${played}_empty`,
} as const

type Age = keyof typeof AGES

/** Where nothing was ever analysed wrongly, what is not hot must be fast as well. */
const LIVED: readonly Age[] = ['new and never analysed', 'full of ended jobs and analysed']

beforeAll(async () => {
  await raw.connect()
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const spy = listenTo(pool)
  const clock = new ManualClock()
  const environment = { ...systemEnvironment(), clock }
  const open = (schema: string) =>
    openPostgresStore({ pool, schema, environment, clock: 'environment' })
  try {
    await using store = await open(played)
    await playLife(store, clock, spy.loseNextAnswer)
    for (const schema of Object.values(AGES)) await (await open(schema)).close()
  } finally {
    await pool.end()
  }
  const { 'full of ended jobs and analysed': full, 'analysed while it was empty': empty } = AGES
  await raw.query(fill(full))
  await raw.query(`ANALYZE ${tables(full)}`)
  await raw.query(`VACUUM (ANALYZE) ${tables(empty)}`)
})

afterAll(async () => {
  const schemas = [played, ...Object.values(AGES)]
  await raw.query(schemas.map((schema) => `DROP SCHEMA IF EXISTS ${schema} CASCADE`).join(';'))
  await raw.end()
})

/** Records what is sent over a pool, and can make an answer that has come get lost. */
function listenTo(pool: pg.Pool): { loseNextAnswer: () => void } {
  let losing = false
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (asked: pg.QueryConfig) => Promise<pg.QueryResult>
    const listening = async (asked: pg.QueryConfig) => {
      const { text, values } = asked
      // Not a notification, which goes out by itself at any moment.
      const isVerb = values !== undefined && text.includes(`"${played}".`)
      if (values === undefined) begin ||= /^BEGIN.*/.exec(text)?.[0] ?? ''
      else if (isVerb) sent.set(text.replaceAll(`"${played}".`, '@.'), values)
      const answer = await query(asked)
      if (!losing || !isVerb) return answer
      losing = false
      throw new Error('Connection terminated unexpectedly')
    }
    Object.assign(client, { query: listening })
  })
  return {
    loseNextAnswer() {
      losing = true
    },
  }
}

const tables = (schema: string) =>
  ['jobs', 'ledger', 'outbox', 'queues', 'ended_counts', 'machines']
    .map((table) => `${schema}.${table}`)
    .join(', ')

/** A node of a plan, as PostgreSQL tells it. */
interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly PlanNode[]
}

/** The generic plan of a statement under the settings of the store; `lost` is done before it. */
async function planOf(age: Age, text: string, lost = ''): Promise<PlanNode[]> {
  const values = (sent.get(text) ?? []).map((value) =>
    value === null ? 'NULL' : pg.escapeLiteral(String(value)),
  )
  const given = values.length === 0 ? '' : `(${values.join(', ')})`
  const prepare = `PREPARE asked AS ${text.replaceAll('@.', `"${AGES[age]}".`)}`
  await raw.query(`${begin}; ${lost}; ${prepare}`)
  try {
    const { rows } = await raw.query(`EXPLAIN (FORMAT JSON) EXECUTE asked ${given}`)
    return nodesOf(rows[0]['QUERY PLAN'][0].Plan)
  } finally {
    await raw.query('ROLLBACK; DEALLOCATE asked')
  }
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)]
}

/** The first column of each index; who does not enter by it reads all of the index. */
const FIRST: Readonly<Record<string, string>> = {
  ...{ jobs_pkey: 'id', jobs_key: 'type', jobs_ready: 'queue' },
  ...{ jobs_waiting: 'run_at', jobs_held: 'lease_until', jobs_ended: 'ended_at' },
  ...{ jobs_deadline: 'deadline_at', jobs_flow: 'flow' },
  ...{ ledger_pkey: 'job', ledger_replaced: 'job', ledger_tx: 'tx', one_commit: 'job' },
  ...{ one_step: 'job', outbox_pkey: 'eid', outbox_pending: 'type', outbox_parked: 'eid' },
  ...{ outbox_job_name_n_key: 'job' },
}
const LARGE = ['jobs', 'ledger', 'outbox']

/** A hot statement: how to know it, the indexes that it must go by, and if the first sorts it. */
interface Hot {
  readonly what: string
  readonly pattern: RegExp
  readonly by: readonly string[]
  readonly sorted?: true
}

const CLAIM = ['jobs_ready', 'jobs_pkey', 'ledger_replaced', 'ledger_pkey']

/** What workers and clients do all the time. */
const HOT: readonly Hot[] = [
  {
    what: 'claim from one queue',
    pattern: /^WITH pick AS \( SELECT id, priority/,
    by: CLAIM,
    sorted: true,
  },
  { what: 'claim from several queues, or any', pattern: /^WITH RECURSIVE ready/, by: CLAIM },
  { what: 'claim: what was taken unheard', pattern: /^WITH took AS \( SELECT/, by: ['jobs_held'] },
  { what: 'settle successes', pattern: /^WITH item .* SELECT id FROM done$/, by: ['jobs_pkey'] },
  {
    what: 'settle successes and claim from one queue',
    pattern: /^WITH item .* took AS .* UNION ALL/,
    by: CLAIM,
    sorted: true,
  },
  { what: 'settle successes and claim', pattern: /^WITH RECURSIVE item/, by: CLAIM },
  {
    what: 'remember steps',
    pattern: /^WITH done AS \( UPDATE .* SELECT id, lease_until FROM done$/,
    by: ['jobs_pkey', 'one_step'],
  },
  {
    what: 'settle anything: the rows',
    pattern: /^SELECT \* FROM @.jobs WHERE id = ANY \(\$1/,
    by: ['jobs_pkey'],
  },
  { what: 'settle anything: known steps', pattern: /^SELECT asked\.id/, by: ['one_step'] },
  {
    what: 'signals and waits',
    pattern: /^SELECT \*, job AS job_id FROM @.ledger/,
    by: ['ledger_pkey'],
  },
  { what: 'write what was decided', pattern: /^WITH moved AS/, by: ['jobs_pkey'] },
  { what: 'enqueue', pattern: /^WITH item .* payload FROM item$/, by: [] },
  { what: 'enqueue with keys', pattern: /^WITH item .* WHERE added.id IS NULL$/, by: [] },
  {
    what: 'enqueue: who has a key',
    pattern: /unnest\(\$1::text\[\],.* FOR UPDATE/,
    by: ['jobs_key'],
  },
  {
    what: 'enqueue: who has an id',
    pattern: /^SELECT job AS id, at/,
    by: ['ledger_pkey'],
  },
  { what: 'heartbeat', pattern: /fenced AS MATERIALIZED/, by: ['jobs_pkey'] },
  {
    what: 'promote: what is due',
    pattern: /WHERE lane = 1 AND run_at <= \$1/,
    by: ['jobs_waiting'],
    sorted: true,
  },
  { what: 'promote: the lane', pattern: /^UPDATE @.jobs SET lane = 2/, by: ['jobs_pkey'] },
  {
    what: 'recover: what has expired',
    pattern: /WHERE lane = 3 AND lease_until <= \$1/,
    by: ['jobs_held'],
    sorted: true,
  },
  {
    what: 'settle and recover: the retries that wait',
    pattern: /WHERE lane = 1 AND run_at > \$1 ORDER BY run_at, id LIMIT 120/,
    by: ['jobs_waiting'],
  },
  {
    what: 'a bounded queue: how deep it is',
    pattern: /^SELECT count\(\*\)::int AS jobs .* LIMIT \$2\)/,
    by: ['jobs_ready'],
  },
  {
    what: 'a bounded queue: who is there already',
    pattern: /AS asked \(id, type, key\)/,
    by: ['jobs_pkey', 'jobs_key'],
  },
  {
    what: 'shed: whose deadline has passed',
    pattern: /WHERE deadline_at <= \$1 AND \(lane IN \(1, 2, 7\)/,
    by: ['jobs_deadline'],
    sorted: true,
  },
  {
    what: 'settle and commit: the last progress',
    pattern: /^UPDATE @.jobs SET progress = item.progress/,
    by: ['jobs_pkey'],
  },
  {
    what: 'shed: what has waited for too long',
    pattern: /^WITH RECURSIVE priorities .* lane = 2 /,
    by: ['jobs_ready'],
  },
  {
    what: 'shed: what a limit has blocked for too long',
    pattern: /^WITH RECURSIVE priorities .* lane = 7 /,
    by: ['jobs_blocked'],
  },
  { what: 'a command: the rows', pattern: /WHERE id = ANY .* FOR UPDATE$/, by: ['jobs_pkey'] },
  { what: 'cancel: the wish', pattern: /^UPDATE @.jobs SET cancel_asked_at/, by: ['jobs_pkey'] },
  {
    what: 'commit: a stored result',
    pattern: /^SELECT payload FROM .* kind = 30/,
    by: ['one_commit'],
  },
  {
    what: 'the outbox: take',
    pattern: /^WITH RECURSIVE pending .* FOR UPDATE SKIP LOCKED/,
    by: ['outbox_pending', 'outbox_pkey'],
  },
  {
    what: 'the outbox: a claim whose answer was lost',
    pattern: /^WITH RECURSIVE pending .* AND claim = \$2/,
    by: ['outbox_pending'],
  },
  {
    what: 'the outbox: report',
    pattern: /^UPDATE @.outbox SET state = report/,
    by: ['outbox_pkey'],
  },
  { what: 'the outbox: what is left', pattern: /^SELECT DISTINCT/, by: ['outbox_job_name_n_key'] },
  {
    what: 'the outbox: again',
    pattern: /^UPDATE @.outbox SET state = 'pending'.* job = ANY \(\$2::uuid\[\]\) AND state/,
    by: ['outbox_job_name_n_key'],
  },
  {
    what: 'the outbox: one again',
    pattern: /^UPDATE @.outbox SET state = 'pending'.* outbox.name = asked.name/,
    by: ['outbox_job_name_n_key'],
  },
  {
    what: 'the outbox: a window of a list',
    pattern: /^SELECT eid, state, type FROM @.outbox WHERE eid < /,
    by: ['outbox_pkey'],
  },
  {
    what: 'the outbox: what is parked',
    pattern: /^SELECT eid, state, type FROM @.outbox WHERE state = 'parked'/,
    by: ['outbox_parked'],
  },
  {
    what: 'the outbox: those of a job',
    pattern: /^SELECT eid, state, type FROM @.outbox WHERE job = /,
    by: ['outbox_job_name_n_key'],
  },
]

/** Those of them that join the rows of a whole batch with what is written into them. */
const BATCHES = HOT.filter(({ what }) => /^(settle|remember|write|heartbeat|claim from)/.test(what))

/** Reading, and retention. */
const WARM: readonly Hot[] = [
  { what: 'a job by its id', pattern: /^SELECT jobs.*jobs\.id = \$1$/, by: ['jobs_pkey'] },
  { what: 'a job by its key', pattern: /^SELECT jobs.*jobs\.key = \$2$/, by: ['jobs_key'] },
  {
    what: 'the facts of a job',
    pattern: /^SELECT \* FROM @.ledger WHERE job = \$1 AND seq <= .* ORDER BY seq$/,
    by: ['ledger_pkey'],
  },
  { what: 'the payloads of a job', pattern: /^SELECT kind, payload/, by: ['ledger_pkey'] },
  { what: 'a window of a list', pattern: /AS scanned/, by: ['jobs_pkey'] },
  { what: 'the tail of the ledger', pattern: /tx < \$4/, by: ['ledger_tx'] },
  {
    what: 'the audit: how much is in a window',
    pattern: /^SELECT count\(\*\) AS seen FROM \( ?SELECT 1 FROM @.ledger/,
    by: ['ledger_tx'],
  },
  {
    what: 'the audit: what is in a window',
    pattern: /^SELECT l\.seq.* WHERE l\.tx >= /,
    by: ['ledger_tx'],
  },
  {
    what: 'the audit: the facts of a job',
    pattern: /^SELECT l\.seq.* WHERE l\.job = /,
    by: ['ledger_pkey'],
  },
  {
    what: 'a seal: where it ends',
    pattern: /^SELECT tx, count\(\*\) AS facts FROM @.ledger/,
    by: ['ledger_tx'],
  },
  {
    what: 'a seal: its facts',
    pattern: /^SELECT \* FROM @.ledger WHERE tx >= \$1 AND tx <= \$4/,
    by: ['ledger_tx'],
  },
  {
    what: 'a seal: how many they are',
    pattern: /^SELECT count\(\*\) AS facts FROM @.ledger WHERE tx/,
    by: ['ledger_tx'],
  },
  {
    what: 'flows: the nodes of a flow',
    pattern: /^SELECT id, node FROM @.jobs WHERE flow = /,
    by: ['jobs_flow'],
    sorted: true,
  },
  {
    what: 'prune: what has ended',
    pattern: /WHERE lane = 5 AND ended_at < \$1 AND \(jobs.links/,
    by: ['jobs_ended'],
    sorted: true,
  },
  {
    what: 'prune: the facts',
    pattern: /^SELECT \*, tx AS position FROM @.ledger WHERE job = ANY/,
    by: ['ledger_pkey'],
  },
  {
    what: 'sweep: the next ended jobs',
    pattern: /\(ended_at, id\) > \(\$2::bigint, \$3::uuid\)/,
    by: ['jobs_ended'],
    sorted: true,
  },
  {
    what: 'free keys: those whose time is over',
    pattern: /^DELETE FROM @.tombstones/,
    by: ['tombstones_until'],
  },
  {
    what: 'admission: rows to look at',
    pattern: /^SELECT 1 FROM @.admissions WHERE look_at/,
    by: ['admissions_look'],
  },
  { what: 'prune: the locks', pattern: /AS pruned \(id, seq\)/, by: ['jobs_pkey'] },
  { what: 'prune: the jobs', pattern: /^DELETE FROM @.jobs/, by: ['jobs_pkey'] },
  { what: 'prune: their facts', pattern: /^DELETE FROM @.ledger/, by: ['ledger_pkey'] },
  { what: 'prune: their effects', pattern: /^DELETE FROM @.outbox/, by: ['outbox_job_name_n_key'] },
]

const flat = (text: string) => text.replace(/\s+/g, ' ').trim()

/** The statements that the store sent and that read like this. */
function textsLike(pattern: RegExp): string[] {
  return [...sent.keys()].filter((text) => pattern.test(flat(text)))
}

/** What is wrong with the plan of a hot statement. */
async function faultsOf(age: Age, hot: Hot, lost?: string): Promise<string[]> {
  const texts = textsLike(hot.pattern)
  if (texts.length === 0) return [`the store never sent: ${hot.what}`]
  const plans = await inTurn(texts, (text) => planOf(age, text, lost))
  return plans.flatMap((nodes) => [
    ...slowIn(nodes),
    ...(hot.sorted ? sortsIn(nodes, hot.by[0]) : []),
    ...hot.by.filter((index) => !nodes.some((node) => node['Index Name'] === index)),
  ])
}

/** Nested loops that compare each row of a batch with each: their inner side has no index. */
function quadraticIn(nodes: readonly PlanNode[]): string[] {
  const isList = (node: PlanNode | undefined) =>
    /^(CTE Scan|Function Scan|Materialize)$/.test(node?.['Node Type'] ?? '')
  return nodes.flatMap(({ 'Node Type': type, Plans: [, inner] = [] }) =>
    type === 'Nested Loop' && isList(inner) ? [`Nested Loop over ${inner?.['Node Type']}`] : [],
  )
}

/** Sorts of what an index should have sorted. */
function sortsIn(nodes: readonly PlanNode[], index: string | undefined): string[] {
  const sorts = nodes.filter((node) => node['Node Type'] === 'Sort')
  const isBelow = (sort: PlanNode) => nodesOf(sort).some((node) => node['Index Name'] === index)
  return sorts.filter(isBelow).map(() => 'Sort')
}

/** Nodes that read a whole table, or enter an index by another column than its first. */
function slowIn(nodes: readonly PlanNode[]): string[] {
  return nodes.flatMap((node) => {
    const { 'Node Type': type, 'Relation Name': table = '', 'Index Name': index = '' } = node
    if (/Seq Scan/.test(type) && LARGE.includes(table)) return [`${type} on ${table}`]
    const condition = node['Index Cond'] ?? ''
    const first = FIRST[index]
    if (first === undefined || new RegExp(`\\b${first}\\b`).test(condition)) return []
    // The first queue with something ready is the first entry of the index.
    if (index === 'jobs_ready' && type === 'Index Only Scan') return []
    return [`${type} using ${index} ${condition}`]
  })
}

/** One after the other, because all share a connection. */
async function inTurn<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = []
  for (const item of items) answers.push(await ask(item))
  return answers
}

it('statements are planned once for all values, and bounded in time', () => {
  expect(begin).toMatch(/plan_cache_mode = force_generic_plan/)
  expect(begin).toMatch(/statement_timeout = \d+.*lock_timeout = \d+/)
})

const isCount = (text: string) => /^SELECT 'idle' AS lane, count/.test(flat(text))

describe.each(Object.keys(AGES) as Age[])('in a schema that is %s', (age) => {
  it.each(HOT)('$what: goes by its index', async (hot) => {
    expect(await faultsOf(age, hot)).toEqual([])
  })
})

describe.each(LIVED)('in a schema that is %s', (age) => {
  it.each(BATCHES)('$what: takes time in proportion to the batch', async ({ pattern }) => {
    const plans = await inTurn(textsLike(pattern), (text) => planOf(age, text))
    expect(plans.flatMap(quadraticIn)).toEqual([])
  })

  it.each(WARM)('$what: goes by its index', async (hot) => {
    expect(await faultsOf(age, hot)).toEqual([])
  })

  it('no statement of any verb reads a whole table of jobs, facts or effects', async () => {
    const texts = textsLike(/@\.(jobs|ledger|outbox)/).filter((text) => !isCount(text))
    const faults = await inTurn(texts, async (text) => slowIn(await planOf(age, text)))
    expect(faults.flat()).toEqual([])
    expect(texts.length).toBeGreaterThanOrEqual(HOT.length + WARM.length)
  })

  it('counts of live lanes read the small index of the lane alone', async () => {
    const counts = [...sent.keys()].filter(isCount)
    const nodes = (await inTurn(counts, (text) => planOf(age, text))).flat()
    // Blocked jobs have two indexes, by gate and by queue.
    const indexes = nodes.flatMap(({ 'Index Name': index }) => index?.replace('_on', '') ?? [])
    const lanes = ['blocked', 'delivering', 'held', 'idle', 'parked', 'ready', 'waiting']
    expect(indexes.sort()).toEqual(lanes.map((lane) => `jobs_${lane}`))
    expect(nodes.filter((node) => /Seq Scan/.test(node['Node Type']))).toEqual([])
  })
})

describe('these tests can fail', () => {
  it('a statement that compares each row of a batch with each is noticed', async () => {
    const [text = ''] = textsLike(/^WITH item .* SELECT id FROM done$/)
    const [linear, nested] = ['CASE WHEN jobs.slots IS NULL THEN true ELSE false END', 'jobs.slots']
    const other = text.replace(linear, `${nested} IS NULL`)
    expect(other).not.toBe(text)
    sent.set(other, sent.get(text) ?? [])
    const plan = await planOf('new and never analysed', other)
    sent.delete(other)
    expect(quadraticIn(plan)).toEqual(['Nested Loop over CTE Scan'])
  })

  const indexes = ['jobs_ready', 'jobs_waiting', 'jobs_held', 'jobs_ended', 'jobs_key']
  const others = ['one_commit', 'one_step', 'ledger_replaced', 'ledger_tx']
  const further = ['outbox_pending', 'outbox_parked', 'jobs_deadline']

  it.each([...indexes, ...others, ...further])(
    'a schema that has lost %s is noticed',
    async (index) => {
      const age = 'full of ended jobs and analysed'
      const drop = `DROP INDEX ${AGES[age]}.${index}`
      const users = [...HOT, ...WARM].filter(({ by }) => by.includes(index))
      const faults = await inTurn(users, (hot) => faultsOf(age, hot, drop))
      expect(faults.length).toBeGreaterThan(0)
      for (const found of faults) expect(found).not.toEqual([])
    },
  )
})

/** Many ended jobs, some ready and future ones, few held: what a schema is like after a while. */
const fill = (s: string) => `
  INSERT INTO ${s}.jobs (id, lane, machine, state, queue, type, priority, run_at, seq, attempt,
    claim, worker, status, lease_until, created_at, updated_at, ended_at, outcome, key)
  SELECT lpad(i::text, 32, '0')::uuid, lane, 1, 'queued', 'q' || (i % 3), 't' || (i % 5), 0, i, 3,
    1, gen_random_uuid(), 'w', 'I', CASE lane WHEN 3 THEN i END, i, i, CASE lane WHEN 5 THEN i END,
    CASE lane WHEN 5 THEN 'succeeded' END, CASE WHEN i % 7 = 0 THEN 'k' || i END
  FROM (SELECT i, CASE WHEN i <= 20000 THEN 5 WHEN i <= 22000 THEN 2 WHEN i <= 24000 THEN 1
    WHEN i <= 24100 THEN 3 WHEN i <= 24200 THEN 4 ELSE 6 END AS lane
    FROM generate_series(1, 24300) AS i) AS made;
  INSERT INTO ${s}.ledger (job, tx, seq, kind, at, path, actor, payload)
  SELECT id, updated_at, fact, fact * 10, 1, 'a>b', 'client', '{}'
  FROM ${s}.jobs, generate_series(1, 3) AS fact;
  INSERT INTO ${s}.ledger (job, tx, seq, kind, at, path, actor, data)
  SELECT id, updated_at, 3 + n, 22, 1, 'a', 'worker', json_build_object('step',
    json_build_object('name', 's', 'n', n)) FROM ${s}.jobs, generate_series(1, 2) AS n
  WHERE updated_at % 2 = 0;
  INSERT INTO ${s}.outbox (job, type, name, n, payload, state, run_at)
  SELECT id, type, 'mail', 1, '{}', CASE lane WHEN 5 THEN 'delivered' ELSE 'pending' END, updated_at
  FROM ${s}.jobs WHERE lane = 6 OR (lane = 5 AND updated_at % 4 = 0);
  INSERT INTO ${s}.ended_counts VALUES ('q0', 'queued', 20000);
`
