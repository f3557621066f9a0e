import { describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../environment/system.ts'
import { StoreUnavailable } from '../errors.ts'
import { kindOf, Patience, untilDone } from './busy.ts'

const coded = (code: string, message = 'x') => Object.assign(new Error(message), { code })
const patience = () => new Patience(systemEnvironment(), 200)

describe('the kind of an error', () => {
  it.each([
    ['25006', 'away'],
    ['53300', 'away'],
    ['57P03', 'away'],
    ['57P01', 'lost'],
    ['57P02', 'lost'],
    ['57P04', 'lost'],
    ['57P05', 'lost'],
    ['08000', 'lost'],
    ['08006', 'lost'],
    ['08P01', 'lost'],
    ['40003', 'lost'],
    ['ECONNREFUSED', 'lost'],
    ['ECONNRESET', 'lost'],
    ['40001', 'conflict'],
    ['40P01', 'conflict'],
    ['55P03', 'conflict'],
    ['57014', 'conflict'],
    ['28P01', 'failed'],
    ['3D000', 'failed'],
    ['23505', 'failed'],
  ])('%s is %s', (code, kind) => {
    expect(kindOf(coded(code))).toBe(kind)
    expect(kindOf(new Error('wrapped', { cause: coded(code) }))).toBe(kind)
  })

  it.each([
    ['cannot execute INSERT in a read-only transaction', 'away'],
    ['the database system is starting up', 'away'],
    ['the database system is shutting down', 'away'],
    ['the database system is in recovery mode', 'away'],
    ['Connection terminated unexpectedly', 'lost'],
    ['Query read timeout', 'lost'],
    ['column "x" does not exist', 'failed'],
  ])('"%s" without a code is %s', (message, kind) => {
    expect(kindOf(new Error(message))).toBe(kind)
  })
})

describe('after a try whose answer was lost', () => {
  /** Fails with each of these in turn, then for good with the last. */
  function failing(...errors: Error[]) {
    let tries = 0
    return () => Promise.reject(errors[Math.min(tries++, errors.length - 1)])
  }

  const LOST = coded('57P01')
  const UNKNOWN = { code: 'E_OUTCOME_UNKNOWN', details: { outcome: 'unknown' } }

  it.each(['28P01', '42501', '23505'])('a refusal (%s) does not sound final', async (code) => {
    const done = untilDone(patience(), failing(LOST, coded(code)))
    await expect(done).rejects.toMatchObject(UNKNOWN)
  })

  it('others who are in the way until the time is up do not sound final', async () => {
    const done = untilDone(patience(), failing(LOST, coded('55P03')))
    await expect(done).rejects.toMatchObject(UNKNOWN)
  })

  it('an outage says that the outcome is unknown', async () => {
    const done = untilDone(patience(), failing(LOST, coded('25006')))
    const unavailable = { code: 'E_STORE_UNAVAILABLE', details: { outcome: 'unknown' } }
    await expect(done).rejects.toMatchObject(unavailable)
  })

  it('reading has no outcome, and a refusal is a refusal', async () => {
    const done = untilDone(patience(), failing(LOST, coded('42703')), { isRead: true })
    await expect(done).rejects.toMatchObject({ code: 'E_STORE_FAILED' })
  })

  it('the next try is told', async () => {
    const told: boolean[] = []
    const errors = [new StoreUnavailable(0, 'not sent', 'none'), coded('25006'), LOST]
    const result = await untilDone(patience(), async (redo) => {
      told.push(redo)
      const error = errors.shift()
      if (error !== undefined) throw error
      return 'done'
    })
    expect([result, told]).toEqual(['done', [false, false, false, true]])
  })
})

it('an outage in which nothing was sent says that nothing was written', async () => {
  const away = () => Promise.reject(coded('25006', 'cannot execute INSERT'))
  await expect(untilDone(patience(), away)).rejects.toMatchObject({
    code: 'E_STORE_UNAVAILABLE',
    message: expect.stringContaining('(SQLSTATE 25006)'),
    hint: expect.stringContaining('Nothing was written'),
  })
})

it.each([
  ['no connection', new StoreUnavailable(0, 'no connection within 3 ms', 'none')],
  ['no answer', new Error('Query read timeout')],
])('an outage is named by its cause if the last try had time for %s', async (_, last) => {
  const errors = [coded('25006', 'the server is read-only')]
  const away = () => Promise.reject(errors.shift() ?? last)
  await expect(untilDone(patience(), away)).rejects.toMatchObject({
    code: 'E_STORE_UNAVAILABLE',
    message: expect.stringContaining('the server is read-only'),
  })
})
