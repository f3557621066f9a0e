// `SELECT pawl.enqueue(…)`: jobs of callers that only have SQL. What it writes is what the library
// writes, in the caller's transaction; what it cannot know it refuses.
import { createPawl, defineJob, type Pawl } from 'pawl'
import { document, hardened, leased, standard, task } from 'pawl/rules'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { quoted } from '../../src/stores/postgres/migrate.ts'
import { toFact } from '../../src/stores/rows.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, freshStoreDatabase, sharedPostgres } from '../support/postgres/databases.ts'
import { snippetsIn } from '../support/snippets.ts'

const echo = defineJob({ name: 'echo', run: ({ input }) => input })
const plain = [standard, hardened, document, leased, task].map((lifecycle) =>
  defineJob({ name: `of ${lifecycle.name}`, lifecycle, run: () => 1 }),
)
const special = defineJob({
  name: 'spécial "type"',
  queue: 'a queue',
  priority: { ahead: '5m' },
  timeout: '30s',
  retry: { max: 7 },
  concurrency: 3,
  throttle: { name: 'calls', limit: 10, period: '1s', units: 2 },
  run: () => 1,
})
const keyed = defineJob({
  name: 'keyed',
  concurrency: { name: 'of user', key: () => 'u', limit: 1 },
  run: () => 1,
})
const grouped = defineJob({ name: 'grouped', group: { key: () => 'g' }, run: () => 1 })
const admitted = defineJob({
  name: 'admitted',
  singleton: { mode: 'skip', key: () => 'only' },
  run: () => 1,
})
const JOBS = [echo, ...plain, special, keyed, grouped, admitted]

interface Place {
  readonly pawl: Pawl
  readonly client: pg.Client
  readonly url: string
  readonly schema: string
}

/** A store whose worker has declared the job types and ended, so that jobs stay as they are. */
async function declared(schema = 'pawl', jobs = JOBS): Promise<Place & AsyncDisposable> {
  const url = schema === 'pawl' ? await freshStoreDatabase() : await freshDatabase(sharedPostgres())
  const store = { postgres: { connectionString: url, schema } }
  const bounds = { payloadDepthMax: 64, payloadBytesMax: 2 ** 20 }
  const pawl = await createPawl({ store, jobs, ...bounds })
  const client = await connected(url)
  const worker = await pawl.work()
  await expect.poll(async () => typesOf(client, schema)).toHaveLength(jobs.length)
  await worker.stop()
  const place = { pawl, client, url, schema }
  return { ...place, [Symbol.asyncDispose]: () => pawl.close() }
}

async function typesOf(client: pg.Client, schema: string): Promise<unknown[]> {
  return (await client.query(`SELECT name FROM ${quoted(schema)}.job_types`)).rows
}

/** Calls the function with named arguments, as texts whose types the server finds out. */
async function enqueue(
  { client, schema }: Pick<Place, 'client' | 'schema'>,
  type: string,
  input: string | null = '{}',
  options: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const names = Object.keys(options).map((name, i) => `, ${name} => $${i + 3}`)
  const call = `SELECT ${quoted(schema)}.enqueue($1, $2${names.join('')}) AS id`
  const { rows } = await client.query<{ id: string }>(call, [
    type,
    input,
    ...Object.values(options),
  ])
  return rows[0]?.id as string
}

async function refusal(
  made: Promise<unknown>,
  what = 'it',
): Promise<{ code: string; message: string }> {
  const error = await made.then(
    () => expect.fail(`${what} was accepted`),
    (thrown: unknown) => thrown as pg.DatabaseError,
  )
  return { code: `${error.code}`, message: error.message }
}

/** The row and the facts of a job, without what every job has for itself. */
async function written({ client }: Place, id: string): Promise<unknown> {
  const { rows: jobs } = await client.query('SELECT * FROM pawl.jobs WHERE id = $1', [id])
  const { rows: facts } = await client.query('SELECT * FROM pawl.ledger WHERE job = $1', [id])
  const [job] = jobs as Record<string, unknown>[]
  const [fact] = facts as Record<string, unknown>[]
  expect([jobs.length, facts.length]).toEqual([1, 1])
  expect(job?.place).toBe(fact?.tx)
  const own = { id: 0, job: 0, place: 0, tx: 0, at: 0, created_at: 0, updated_at: 0 }
  const isNow = job?.run_at === job?.created_at
  const due = isNow ? { run_at: 'now' } : {}
  // SQL writes defaults that the library leaves out of a first fact; both read alike.
  const { jobId: _id, at: _at, ...read } = toFact(id, { ...fact, at: Number(fact?.at) } as never)
  expect(read.runAt).toBe(job?.run_at === null ? null : Number(job?.run_at))
  const said = isNow ? { ...read, runAt: 'now' } : read
  return { job: { ...job, ...own, ...due }, fact: { ...fact, ...own, data: said } }
}

async function isSound({ pawl }: Place): Promise<void> {
  const { findings } = await pawl.doctor().check({ full: true })
  expect(findings).toEqual([])
}

async function isUntouched({ client }: Place): Promise<void> {
  const { rows } = await client.query(
    'SELECT (SELECT count(*)::int FROM pawl.jobs) AS jobs, count(*)::int AS facts FROM pawl.ledger',
  )
  expect(rows).toEqual([{ jobs: 0, facts: 0 }])
}

describe('a job that SQL enqueues', () => {
  it('is run like any other, and the doctor finds nothing', async () => {
    const url = await freshStoreDatabase()
    await using pawl = await createPawl({ store: url, jobs: [echo] })
    await pawl.work()
    const client = await connected(url)
    const place = { pawl, client, url, schema: 'pawl' }
    await expect.poll(() => typesOf(client, 'pawl')).toHaveLength(1)
    const input = '{"text": "é 😀 \\"", "list": [1, 2.5, null, true], "n": 1e21}'
    const id = await enqueue(place, 'echo', input)
    expect(await pawl.job(id).result()).toMatchObject({ output: JSON.parse(input) as unknown })
    await isSound(place)
  })

  it('is written exactly as by the library, for each lifecycle', async () => {
    await using place = await declared()
    const runAt = new Date('2040-01-01T00:00:00Z')
    for (const definition of [...plain, special]) {
      const own = await place.pawl.enqueue(definition, {} as never)
      const id = await enqueue(place, definition.name)
      expect(await written(place, id), definition.name).toEqual(await written(place, own.id))
      const later = await place.pawl.enqueue(definition, {} as never, { runAt })
      const delayed = await enqueue(place, definition.name, '{}', { run_at: runAt })
      expect(await written(place, delayed)).toEqual(await written(place, later.id))
    }
    await isSound(place)
  })

  it('has the options that the library has', async () => {
    await using place = await declared()
    const [deadline, past] = [new Date('2040-01-01T00:00:00.123Z'), new Date(1000)]
    const cases = [
      [{ priority: -5 }, { priority: -5 }],
      [{ priority: { ahead: '2m' } }, { ahead: '2 minutes' }],
      [{ tags: ['a "b"', 'é😀'] }, { tags: ['a "b"', 'é😀'] }],
      [{ tags: [] }, { tags: [] }],
      [{ timeout: '90s' }, { timeout: '90 seconds' }],
      [{ deadline }, { deadline }],
      [{ hold: true }, { hold: true }],
      [{ runAt: past }, { run_at: past }],
    ] as const
    for (const [options, named] of cases) {
      for (const definition of [plain[2] as typeof echo, special]) {
        if ('hold' in options && definition === special) continue
        const own = await place.pawl.enqueue(definition, {} as never, options)
        const id = await enqueue(place, definition.name, '{}', named)
        expect(await written(place, id), JSON.stringify(named)).toEqual(
          await written(place, own.id),
        )
      }
    }
    const jobId = '0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee'
    expect(await enqueue(place, 'echo', '{}', { job_id: jobId })).toBe(jobId)
    expect(await refusal(enqueue(place, 'echo', '{}', { job_id: jobId }))).toEqual({
      code: 'PW008',
      message: `E_JOB_EXISTS: Job ${jobId} already exists`,
    })
    await isSound(place)
  })

  it('can have its input as jsonb, as triggers have it', async () => {
    await using place = await declared()
    const { client, pawl } = place
    await client.query(`
      CREATE TABLE orders (id int PRIMARY KEY);
      CREATE FUNCTION ordered() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pawl.enqueue('echo', to_jsonb(NEW), key => 'order-' || NEW.id);
        RETURN NEW;
      END$$;
      CREATE TRIGGER ordered AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION ordered();
      INSERT INTO orders SELECT generate_series(1, 3)`)
    const keys: (string | null)[] = []
    for await (const { key } of pawl.jobs.list({ type: 'echo' })) keys.push(key)
    expect(keys.sort()).toEqual(['order-1', 'order-2', 'order-3'])
    await isSound(place)
  })

  it('works in a schema with any name', async () => {
    const schema = `o'dd "$$ schéma`
    await using place = await declared(schema, [echo])
    const { pawl } = place
    await pawl.work()
    const id = await enqueue(place, 'echo', '7')
    expect(await pawl.job(id).result()).toMatchObject({ output: 7 })
    await isSound(place)
  })
})

describe('the key of a job that SQL enqueues', () => {
  it('belongs to one job, by whichever way it is enqueued', async () => {
    await using place = await declared()
    const { pawl } = place
    const id = await enqueue(place, 'echo', '1', { key: 'k' })
    expect(await enqueue(place, 'echo', '2', { key: 'k' })).toBe(id)
    expect((await pawl.enqueue(echo, 3, { key: 'k' })).id).toBe(id)
    const own = await pawl.enqueue(echo, 3, { key: 'other' })
    expect(await enqueue(place, 'echo', '2', { key: 'other' })).toBe(own.id)
    const taken = await refusal(enqueue(place, 'echo', '2', { key: 'k', on_conflict: 'reject' }))
    expect(taken).toEqual({
      code: 'PW006',
      message: `E_KEY_TAKEN: Job ${id} of type "echo" already has the key "k"`,
    })
    const replace = await refusal(enqueue(place, 'echo', '2', { key: 'k', on_conflict: 'replace' }))
    expect(replace.message).toContain('E_COMMAND_INVALID: "on_conflict"')
    await isSound(place)
  })

  it('is waited for while another transaction has it', async () => {
    await using place = await declared()
    const other = await connected(place.url)
    await place.client.query('BEGIN')
    const first = await enqueue(place, 'echo', '1', { key: 'k' })
    const second = enqueue({ ...place, client: other }, 'echo', '2', { key: 'k' })
    await expect
      .poll(async () => (await place.client.query('SELECT 1 FROM pg_locks WHERE NOT granted')).rows)
      .toHaveLength(1)
    await place.client.query('COMMIT')
    expect(await second).toBe(first)
  })

  it('stays taken after retention has removed the job', async () => {
    await using place = await declared()
    const gone = '0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee'
    await place.client.query(
      `INSERT INTO pawl.tombstones VALUES ('echo', 'k', $1, 'succeeded', 1, 9007199254740991)`,
      [gone],
    )
    expect(await enqueue(place, 'echo', '1', { key: 'k' })).toBe(gone)
    expect((await place.client.query('SELECT 1 FROM pawl.jobs')).rows).toEqual([])
  })
})

describe('a transaction that enqueues by SQL', () => {
  it('leaves nothing and wakes nobody if it is rolled back, as a whole or in part', async () => {
    await using place = await declared()
    const { client } = place
    await client.query('BEGIN')
    await enqueue(place, 'echo')
    await client.query('ROLLBACK')
    await isUntouched(place)
    await client.query('BEGIN; SAVEPOINT s')
    await enqueue(place, 'echo')
    await client.query('ROLLBACK TO s')
    const kept = await enqueue(place, 'echo')
    await client.query('COMMIT')
    expect((await client.query('SELECT id FROM pawl.jobs')).rows).toEqual([{ id: kept }])
    await isSound(place)
  })

  it('notifies at its commit, once, if a process listens', async () => {
    await using place = await declared()
    const { client, pawl } = place
    await pawl.work()
    const lock = `SELECT 1 FROM pg_locks WHERE objsubid = 2 AND mode = 'ShareLock'`
    await expect.poll(async () => (await client.query(lock)).rows).not.toEqual([])
    const { rows } = await client.query<{ c: string }>(
      `SELECT 'pawl_' || encode(substr(sha256('"pawl"'), 1, 8), 'hex') AS c`,
    )
    const listener = await connected(place.url)
    const notified: number[] = []
    listener.on('notification', ({ processId }) => void notified.push(processId))
    await listener.query(`LISTEN ${rows[0]?.c}`)
    const { rows: backends } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await client.query('BEGIN; SAVEPOINT s')
    await enqueue(place, 'keyed').catch(() => client.query('ROLLBACK TO s'))
    await enqueue(place, 'echo')
    await client.query('ROLLBACK TO s')
    for (let i = 0; i < 3; i++) await enqueue(place, 'echo')
    await client.query('COMMIT')
    // The server sends notifications of a transaction in order, before the answer to a later query.
    await listener.query('SELECT 1')
    await expect.poll(() => notified.includes(backends[0]?.pid ?? 0)).toBe(true)
    expect(notified.filter((pid) => pid === backends[0]?.pid)).toHaveLength(1)
  })
})

describe('SQL cannot enqueue', () => {
  it('a type that no worker has declared, or whose code is needed', async () => {
    await using place = await declared()
    const cases = [
      ['nobody', 'PW003', 'E_NAME_UNKNOWN: No worker has declared the job type "nobody"'],
      [`'; --`, 'PW003', `E_NAME_UNKNOWN: No worker has declared the job type "'; --"`],
      ['x'.repeat(9000), 'PW003', 'E_NAME_UNKNOWN: No worker has declared the job type'],
      ['keyed', 'PW004', 'E_LIMIT_KEY_MISSING: Limits of "keyed" need keys'],
      ['grouped', 'PW004', 'E_LIMIT_KEY_MISSING: Limits of "grouped" need keys'],
      ['admitted', 'PW005', 'E_UNSUPPORTED: "admitted" has a rateLimit, debounce or singleton'],
    ]
    for (const [type = '', code, message] of cases) {
      const refused = await refusal(enqueue(place, type))
      expect([refused.code, refused.message]).toEqual([code, expect.stringContaining(`${message}`)])
    }
    await isUntouched(place)
  })

  const hostile: [what: string, input: string | null, options: object, says: string][] = [
    ['no JSON', '{', {}, 'E_VALUE_INVALID: The value at input is not JSON'],
    ['an empty text', '', {}, 'E_VALUE_INVALID: The value at input is not JSON'],
    ['NUL', '"\\u0000"', {}, 'E_VALUE_INVALID: The value at input is not JSON'],
    ['a lone surrogate', '"\\ud800"', {}, 'E_VALUE_INVALID: The value at input is not JSON'],
    ['NULL', null, {}, 'E_VALUE_INVALID: The value at input is NULL'],
    ['much depth', '['.repeat(100_000), {}, 'E_VALUE_INVALID: The value at input is not JSON'],
    ['65 levels', nested(65), {}, 'E_VALUE_INVALID: The value at input is nested deeper than 64'],
    ['1 MiB', `"${'x'.repeat(2 ** 20)}"`, {}, 'E_VALUE_INVALID: The value at input is larger than'],
    ['a huge number', '[1e400]', {}, 'E_VALUE_INVALID: The value at input has a number outside'],
    ['an empty key', '1', { key: ' \u3000' }, '"key" must not be empty'],
    ['a long key', '1', { key: '😀'.repeat(128) }, '"key" must not be longer than 255 characters'],
    ['lines in a key', '1', { key: 'a\nb' }, '"key" must not contain control characters'],
    ['a key of schedules', '1', { key: 'schedule/x/1' }, '"key" must not begin with "schedule/"'],
    ['a tag twice', '1', { tags: ['a', 'a'] }, '"tags" must not repeat'],
    ['an empty tag', '1', { tags: ['a', ''] }, '"tags" must not be empty'],
    ['no tag', '1', { tags: ['a', null] }, '"tags" must not be empty'],
    [
      '33 tags',
      '1',
      { tags: Array.from({ length: 33 }, (_, i) => `${i}`) },
      '"tags" must not have',
    ],
    ['a high priority', '1', { priority: 40_000 }, '"priority" must be a whole number'],
    ['two priorities', '1', { priority: 1, ahead: '1s' }, '"ahead" must not come with'],
    ['too much ahead', '1', { ahead: '2 days' }, '"ahead" must be from 0'],
    ['no time', '1', { timeout: '0s' }, '"timeout" must be from 1 ms'],
    ['too much time', '1', { timeout: '2 years' }, '"timeout" must be from 1 ms'],
    ['an endless time', '1', { run_at: 'infinity' }, '"run_at" must be a time after 1970'],
    ['an early deadline', '1', { deadline: '1900-01-01' }, '"deadline" must be a time after 1970'],
    ['a conflict', '1', { on_conflict: 'ignore' }, '"on_conflict" must be existing or reject'],
  ]

  it('what the library would refuse', async () => {
    await using place = await declared()
    for (const [what, input, options, says] of hostile) {
      const made = enqueue(place, 'echo', input, { ...options })
      const { code, message } = await refusal(made, what)
      const isValue = says.startsWith('E_VALUE')
      expect([what, code, message]).toEqual([
        what,
        isValue ? 'PW002' : 'PW001',
        expect.stringContaining(isValue ? says : `E_COMMAND_INVALID: ${says}`),
      ])
    }
    const held = await refusal(enqueue(place, 'of leased', '1', { hold: true }))
    expect(held).toMatchObject({
      code: 'PW005',
      message: 'E_UNSUPPORTED: Lifecycle "leased" has no hold',
    })
    await isUntouched(place)
    const widest = { key: `${'😀'.repeat(127)}x`, tags: ['y'.repeat(255)] }
    await enqueue(place, 'echo', nested(64), widest)
    await enqueue(place, 'echo', `["${'1'.repeat(400)}", -1.7976931348623157e308]`)
    await isSound(place)
  })

  it('into a queue that is full', async () => {
    await using place = await declared()
    const { pawl } = place
    await pawl.operator({ name: 'eve', reason: 'small' }).limitQueue('default', { maxDepth: 2 })
    const first = await enqueue(place, 'echo', '1', { key: 'k' })
    await enqueue(place, 'echo')
    expect(await refusal(enqueue(place, 'echo'))).toEqual({
      code: 'PW007',
      message: 'E_QUEUE_FULL: The queue "default" already has 2 ready jobs, its maxDepth',
    })
    expect(await enqueue(place, 'echo', '1', { key: 'k' })).toBe(first)
    await enqueue(place, 'echo', '1', { run_at: new Date('2040-01-01') })
    await isSound(place)
  })

  it('as a role that was not granted it; one that was needs nothing else', async () => {
    await using place = await declared()
    const role = `sql_only_${process.pid}`
    await place.client.query(`CREATE ROLE ${role}; GRANT USAGE ON SCHEMA pawl TO ${role}`)
    try {
      await place.client.query(`SET ROLE ${role}`)
      expect(await refusal(enqueue(place, 'echo'))).toMatchObject({ code: '42501' })
      await place.client.query(`RESET ROLE;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pawl TO ${role}; SET ROLE ${role}`)
      await enqueue(place, 'echo')
      await expect(place.client.query('SELECT * FROM pawl.jobs')).rejects.toThrow(/permission/)
    } finally {
      await place.client.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`)
    }
    await isSound(place)
  })
})

it('the doctor restores the functions, and not for every role', async () => {
  await using place = await declared()
  const { client, pawl } = place
  await client.query(`
    DO $$DECLARE f regprocedure; BEGIN FOR f IN SELECT oid::regprocedure FROM pg_proc
      WHERE proname = 'enqueue' LOOP EXECUTE 'DROP FUNCTION ' || f; END LOOP; END$$`)
  const { findings } = await pawl.doctor().repair({ operator: 'eve', reason: 'dropped' })
  const schema = 'schema-is-as-declared'
  expect(findings.map(({ check }) => check)).toEqual([schema, schema])
  await enqueue(place, 'echo')
  const { rows } = await client.query(`SELECT 1 FROM pg_proc
    WHERE proname = 'enqueue' AND has_function_privilege('public', oid, 'EXECUTE')`)
  expect(rows).toEqual([])
  await isSound(place)
})

it('the guide shows statements that work', async () => {
  const invoice = defineJob({ name: 'invoice', run: ({ input }) => input })
  await using place = await declared('pawl', [invoice])
  const { client, pawl } = place
  const blocks = snippetsIn('docs/guides/postgres-store.md', 'sql').map(({ code }) => code)
  const shown = blocks.filter((code) => code.includes('pawl.enqueue(') || code.includes('EXECUTE'))
  expect(shown).toHaveLength(3)
  await client.query('BEGIN; CREATE ROLE reporting')
  for (const code of shown) await client.query(code)
  await client.query('DROP OWNED BY reporting; DROP ROLE reporting; COMMIT')
  const keys: (string | null)[] = []
  for await (const { key } of pawl.jobs.list({ type: 'invoice' })) keys.push(key)
  expect(keys.sort()).toEqual([null, 'order-8', 'order-9'].sort())
  await isSound(place)
})

function nested(levels: number): string {
  return `${'['.repeat(levels)}${']'.repeat(levels)}`
}
