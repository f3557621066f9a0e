// The statements of users inside commits and transactions, with the same values on both databases.
import { defineJob, type SqlValue, sql, typed } from 'pawl'
import { runJob } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { bindStatement } from '../../src/stores/user-sql.ts'
import { brokenPromises } from '../processes/inspect.ts'
import { PLACES } from './processes/places.ts'

const timeout = 30_000
const AT = new Date('2026-01-31T09:30:00.123Z')
const HOSTILE = `'; DROP TABLE bookings; -- ? $1 :a @b "x" \`y\` /* ? */ ü 😀`

const TABLES = {
  'a SQLite file':
    'CREATE TABLE things (t TEXT, n REAL, b INTEGER, i INTEGER, at TEXT, bytes BLOB, none TEXT)',
  PostgreSQL: `CREATE TABLE things (t text, n double precision, b boolean, i bigint,
    at timestamptz, bytes bytea, none text)`,
} as const

describe.each(PLACES)('on $name', ({ name, place }) => {
  const isSqlite = name === 'a SQLite file'

  it('every documented value is stored as documented', { timeout }, async () => {
    const { pawl } = await place()
    const big = 2n ** 62n
    const bytes = new Uint8Array([9, 0, 255, 9]).subarray(1, 3)
    const rows = await pawl.transaction(async (tx) => {
      await tx.query(TABLES[name as keyof typeof TABLES])
      await tx.query(sql`INSERT INTO things (t, n, b, i, at, bytes, none)
        VALUES (${HOSTILE}, ${1.5}, ${true}, ${big}, ${AT}, ${bytes}, ${null})`)
      return tx.query(sql`SELECT * FROM things WHERE t = ${HOSTILE} AND b = ${true}
        AND i = ${big} AND at = ${AT} AND bytes = ${bytes} AND none IS NULL`)
    })
    const [row = {}] = rows as Record<string, unknown>[]
    expect(row).toMatchObject({
      t: HOSTILE,
      n: 1.5,
      b: isSqlite ? 1 : true,
      i: isSqlite ? big : String(big),
      at: isSqlite ? AT.toISOString() : AT,
    })
    expect([...(row.bytes as Uint8Array)]).toEqual([0, 255])
    expect(await brokenPromises(pawl.store)).toEqual([])
  })

  it('a list of values selects rows', { timeout }, async () => {
    const { pawl } = await place()
    const found = await pawl.transaction(async (tx) => {
      for (const [job, n] of [
        ['a', 1],
        ['b', 2],
        ["c'?", 3],
      ] as const) {
        await tx.query(sql`INSERT INTO bookings VALUES (${job}, ${n})`)
      }
      const [jobs, numbers] = [
        ["c'?", 'a', '}{"'],
        [1, 2],
      ]
      const chosen = isSqlite
        ? sql`job IN (SELECT value FROM json_each(${jobs}))`
        : sql`job = ANY(${jobs})`
      const counted = isSqlite
        ? sql`attempt IN (SELECT value FROM json_each(${numbers}))`
        : sql`attempt = ANY(${numbers}::int[])`
      return [
        await tx.query(sql`SELECT job FROM bookings WHERE ${chosen} ORDER BY job`),
        await tx.query(sql`SELECT job FROM bookings WHERE ${chosen} AND ${counted}`),
      ]
    })
    expect(found).toMatchObject([[{ job: 'a' }, { job: "c'?" }], [{ job: 'a' }]])
  })

  it('question marks in texts, comments and operators mean nothing', { timeout }, async () => {
    const { pawl } = await place()
    const word = 'key'
    const [rows, found] = await pawl.transaction(async (tx) => [
      await tx.query(sql`SELECT 'a ? $1' AS literal, CAST(${word} AS TEXT) AS word -- ? and $1
        /* ? $1 */`),
      isSqlite
        ? await tx.query(`SELECT '?' AS literal, ? AS word -- ?`, [word])
        : await tx.query(sql`SELECT '?' AS literal,
            CASE WHEN ${'{"key":1}'}::jsonb ? ${word} THEN 'key' END AS word`),
    ])
    expect(rows).toMatchObject([{ literal: 'a ? $1', word }])
    expect(found).toMatchObject([{ literal: '?', word }])
  })

  it('native placeholders work, and mistakes are typed errors', { timeout }, async () => {
    const { pawl } = await place()
    const insert = `INSERT INTO bookings VALUES (${isSqlite ? '?, ?' : '$1, $2'})`
    await pawl.transaction((tx) => tx.query(insert, ['o-1', 1n]))
    const refusals: [unknown, unknown[] | undefined, RegExp][] = [
      [undefined, undefined, /"sql" must be a text/],
      [{ texts: ['SELECT 1'], values: [] }, undefined, /"sql" must be a text/],
      [sql`SELECT ${1}`, [1], /"values" must not be passed/],
      ['SELECT 1', 'x' as never, /"values" must be a list/],
      [insert, ['a', undefined], /"values\[1\]" must be a text.*undefined/],
      [insert, ['a', Number.NaN], /"values\[1\]" must be a finite number/],
      [insert, ['a', { b: 1 }], /"values\[1\]" .*JSON.stringify/],
      [insert, ['a', new Date(Number.NaN)], /valid Date/],
      [insert, ['a', [1, [Symbol('s')]]], /"values\[1\]\[1\]\[0\]"/],
      ['SELECT 1; SELECT 2', [], /one statement/],
      [sql`SELECT 1; DELETE FROM bookings`, undefined, /one statement/],
    ]
    if (isSqlite) {
      refusals.push(
        [insert, ['a'], /"values" must be 2/],
        [insert, undefined, /"values" must be 2/],
        ['SELECT $1', ['a'], /placeholder \$1; use \? or the tag sql/],
        [insert, ['a', 2n ** 64n], /64 bits/],
        [insert, ['a', [2n ** 60n]], /larger than 2\^53/],
        [insert, ['a', [new Uint8Array(1)]], /bytes in a list/],
      )
    }
    for (const [statement, values, message] of refusals) {
      const refused = pawl.transaction((tx) => tx.query(statement as string, values as SqlValue[]))
      await expect(refused).rejects.toMatchObject({
        code: 'E_COMMAND_INVALID',
        message: expect.stringMatching(message),
      })
    }
  })
})

it('a statement is flattened, and values keep their order', () => {
  const part = sql`b = ${2} AND c = ${'x'}`
  const whole = sql`SELECT ${1} WHERE ${part} OR d = ${[true, 1n]}`
  expect(bindStatement(whole, undefined, 'postgres')).toEqual({
    text: 'SELECT $1 WHERE b = $2 AND c = $3 OR d = $4',
    values: [1, 2, 'x', [true, '1']],
  })
  expect(bindStatement(whole, undefined, 'sqlite')).toEqual({
    text: 'SELECT ? WHERE b = ? AND c = ? OR d = ?',
    values: [1, 2, 'x', '[1,1]'],
  })
  expect(() => sql('SELECT 1' as never)).toThrow(/must be used as a tag/)
})

it('runJob receives a statement as a text and its values', async () => {
  const asked: unknown[] = []
  const job = defineJob({
    name: 'writing',
    input: typed<string>(),
    run: ({ input, commit }) => commit(async (tx) => (await tx.query(sql`SELECT ${input}`)).length),
  })
  const query = async (...call: unknown[]) => {
    asked.push(call)
    return []
  }
  expect(await runJob(job, 'a', { query })).toMatchObject({ output: 0 })
  expect(asked).toEqual([['SELECT ?', ['a']]])
})
