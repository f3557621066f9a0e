// A dump of a store that was loaded into another server, which counts its transactions from
// elsewhere; played by moving the numbers, as only a superuser can.

import { standard } from 'pawl/rules'
import { expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { readable } from '../../src/stores/damage.ts'
import { openPostgresStore } from '../../src/stores/postgres/open.ts'
import { connected } from '../support/postgres/clients.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres/databases.ts'

const { ids } = systemEnvironment()

function item() {
  const command = { jobId: ids.next(), type: 'example', queue: 'main' }
  return { lifecycle: standard, command, input: '{}' }
}

it('the ledger of a store from another server is followed to its end and beyond', async () => {
  const connectionString = await freshDatabase(sharedPostgres())
  const [old, young] = [item(), item()]
  const first = await openPostgresStore({ connectionString })
  await first.enqueue([old])
  await first.close()
  const client = await connected(connectionString)
  await client.query('SET session_replication_role = replica')
  await client.query('UPDATE pawl.ledger SET tx = tx + 1000000000')
  await client.query('UPDATE pawl.jobs SET place = place + 1000000000')

  await using store = await openPostgresStore({ connectionString })
  const [before] = readable(await store.tail(undefined, 10))
  expect(before?.fact.jobId).toBe(old.command.jobId)
  await store.enqueue([young])
  const operator = { actor: 'operator', operator: 'ann', note: 'sooner' } as const
  await store.applyCommand([old.command.jobId], { kind: 'prioritise', priority: -1 }, operator)
  const after = readable(await store.tail(before?.pos, 10))
  const told = after.map(({ fact }) => `${fact.jobId}/${fact.seq}`)
  expect(told).toEqual([`${young.command.jobId}/1`, `${old.command.jobId}/2`])
})
