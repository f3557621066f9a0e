// Errors as the person reads them who gets them: what is wrong, with the rejected value, and what
// to do next.
import { drizzle } from 'drizzle-orm/node-postgres'
import { createPawl, defineJob, defineLimit, defineSchedule, type Pawl, PawlError } from 'pawl'
import { task } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'

const mail = defineJob({ name: 'mail', run: () => 1 })
const run = () => 1

async function open(): Promise<Pawl> {
  const pawl = await createPawl({ store: 'sqlite::memory:', jobs: [mail] })
  onTestFinished(() => pawl.close())
  return pawl
}

/** The error that a call throws. */
async function errorOf(call: () => unknown): Promise<PawlError> {
  try {
    await call()
  } catch (error) {
    expect(error).toBeInstanceOf(PawlError)
    return error as PawlError
  }
  throw new Error('the call did not fail')
}

describe('the option store', () => {
  it.each([
    [undefined, 'not undefined'],
    [null, 'not null'],
    [5, 'not a number'],
    [{}, 'not an object'],
    [Promise.resolve(), 'not a promise: await the store first'],
  ])('says which forms it has if it is %o', async (store, why) => {
    const { code, message } = await errorOf(() => createPawl({ store: store as never }))
    expect(code).toBe('E_COMMAND_INVALID')
    expect(message).toMatch(
      /^"store" must be 'sqlite:.\/jobs.db', .*'postgres:\/\/…', .* or an open store/,
    )
    expect(message).toContain(why)
  })

  it('shows an unknown name without its password', async () => {
    const { message } = await errorOf(() => createPawl({ store: 'mysql://ann:secret@host/db' }))
    expect(message).toContain('mysql://')
    expect(message).not.toContain('secret')
  })
})

describe('a server that is not there', () => {
  it('is reported within seconds, with address, reason and the error of the driver', async () => {
    const store = 'postgres://ann:secret@127.0.0.1:1/db'
    const { code, message, hint, details, cause } = await errorOf(() => createPawl({ store }))
    expect(code).toBe('E_STORE_UNAVAILABLE')
    expect(message).toMatch(/could not be reached for .*s: connect ECONNREFUSED 127\.0\.0\.1:1$/)
    expect(hint).toContain('check that the server runs')
    expect(cause).toMatchObject({ code: 'ECONNREFUSED' })
    // The default of other calls is ten seconds.
    expect(details.waitedMs).toBeLessThan(6000)
  })

  it('is tried for as long as `connectTimeout` says', async () => {
    const store = 'postgres://127.0.0.1:1/db'
    const { details } = await errorOf(() => createPawl({ store, connectTimeout: 0 }))
    expect(details.waitedMs).toBeLessThan(1000)
    const wrong = await errorOf(() => createPawl({ store, connectTimeout: 'soon' as never }))
    expect(wrong.message).toContain('connectTimeout')
  })
})

describe('an option of a job', () => {
  it.each([
    [{ runAt: 'tomorrow' }, '"runAt" must be a valid Date, not "tomorrow"'],
    [{ runAt: new Date('x') }, '"runAt" must be a valid Date, not an invalid Date'],
    [{ priority: 1.5 }, '"priority" must be a whole number from -32767 to 32767, not 1.5'],
    [{ key: 'k'.repeat(300) }, '"key" must not be longer than 255 characters; it has 300'],
    [{ tags: 'a' }, '"tags" must be an array, not a string'],
    [
      { onConflict: 'ignore' },
      '"onConflict" must be one of existing, replace, reject, not "ignore"',
    ],
  ])('%o is rejected with its value and the limit', async (options, message) => {
    const pawl = await open()
    const error = await errorOf(() => pawl.enqueue(mail, null, options as never))
    expect(error.message).toBe(message)
    expect(error.hint).toMatch(/^Change "\w+" and repeat the call\. Nothing was written\.$/)
  })

  it('that is misspelt is rejected with the option that was probably meant', async () => {
    const pawl = await open()
    const { hint } = await errorOf(() => pawl.enqueue(mail, null, { prio: 5 } as never))
    expect(hint).toBe('Did you mean "priority"?')
  })
})

describe('a job type', () => {
  it.each([undefined, null, 'mail', {}])('cannot be %o', async (job) => {
    const pawl = await open()
    const { code, message } = await errorOf(() => pawl.enqueue(job as never, null))
    expect(code).toBe('E_COMMAND_INVALID')
    expect(message).toMatch(/^"job" must be a job type, which defineJob returns, not /)
    const other = await errorOf(() =>
      createPawl({ store: 'sqlite::memory:', jobs: [job as never] }),
    )
    expect(other.message).toBe(message)
  })

  it.each([
    [{ name: 'mail', timeout: 'soon' }, /^Invalid definition of job type "mail": timeout: must /],
    [{ name: 'mail', retry: { max: -1 } }, /job type "mail": retry\.max: .* to 10000, not -1$/],
    [{ name: 'mail', retries: 3 }, /job type "mail": retries: is not known; known fields: name,/],
    [{ name: 'mail', effects: { send: 5 } }, /job type "mail": effects\.send: must be an object,/],
    [{ name: 'mail', lifecycle: 'task' }, /must be a lifecycle, not the name "task": import it /],
    [{ name: 'mail', lifecycle: task, retry: { max: 1 } }, /job type "mail": retry: lifecycle "ta/],
    [{}, /^Invalid definition of a job type without a name: name: must not be empty$/],
  ])('that is defined as %o is named by the error', async (options, message) => {
    const error = await errorOf(() => defineJob({ ...options, run } as never))
    expect(error.code).toBe('E_DEFINITION_INVALID')
    expect(error.message).toMatch(message)
  })
})

it.each([
  [
    { name: 'api', concurrency: -1 },
    /^Invalid definition of limit "api": concurrency: must be .*-1$/,
  ],
  [{ name: 'api', concurency: 1 }, /^Invalid definition of limit "api": concurency: is not known/],
  [{ concurrency: 1 }, /^Invalid definition of a limit without a name: name: must /],
])('a limit that is defined as %o is named by the error', async (options, message) => {
  const error = await errorOf(() => defineLimit(options as never))
  expect([error.code, error.message]).toEqual([
    'E_DEFINITION_INVALID',
    expect.stringMatching(message),
  ])
})

it('a cron expression that is wrong is reported without the name of its parser', async () => {
  const { message } = await errorOf(() =>
    defineSchedule({ name: 's', job: mail, cron: '99 0 * * *' }),
  )
  expect(message).toMatch(/^Invalid definition of schedule "s": cron: is not a cron expression: /)
  expect(message).toMatch(/ expression: Invalid value for minute: 99$/)
})

describe('a transaction of a query builder', () => {
  it('is recognised, and the hint says how to use the builder', async () => {
    const pawl = await open()
    const tx = drizzle.mock()
    const { code, message, hint } = await errorOf(() =>
      pawl.enqueue(mail, null, { tx: tx as never }),
    )
    expect(code).toBe('E_TX_INVALID')
    expect(message).toContain('it is a transaction of Drizzle, not a handle of the SQLite driver')
    expect(hint).toContain('pawl.transaction(async (tx) => …)')
  })
})
