// An outage has one code for each message, that of the error itself.
import { expect, it } from 'vitest'
import { StoreBusy, StoreUnavailable } from './errors.ts'
import { outageOf } from './outage.ts'

it('an outage inside of an outage is told without the codes of Pawl', () => {
  const busy = new StoreBusy(5)
  const once = new StoreUnavailable(10, busy)
  const twice = new StoreUnavailable(20, once)
  for (const { message } of [busy, once, twice]) expect(message).not.toMatch(/E_[A-Z]/)
  expect(outageOf(busy).code).toBe('E_STORE_BUSY')
  expect(twice.details).toMatchObject({ cause: 'E_STORE_BUSY' })
})

it('codes of the system and of the server are kept', () => {
  const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED' })
  expect(outageOf(refused).reason).toBe('no (ECONNREFUSED)')
  const stopping = Object.assign(new Error('the server stops'), { code: '57P01' })
  expect(outageOf(stopping).reason).toBe('the server stops (SQLSTATE 57P01)')
})
