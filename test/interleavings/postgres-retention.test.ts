// Retention that removes the job of a key while another process enqueues a job with that key: the
// second is held or lets the first go on at every statement.
import { standard } from 'pawl/rules'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Enqueued, Store } from '../../src/stores/contract/store.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { PostgresStage } from './postgres-stage.ts'

const KEEP_MS = 1_000_000
let stage: PostgresStage
beforeAll(async () => {
  stage = await PostgresStage.open(sharedPostgres())
})
afterAll(() => stage.close())

async function enqueue(store: Store): Promise<Enqueued> {
  const command = { jobId: stage.newId(), type: 'example', queue: 'main', key: 'order 1' }
  const [answer] = await store.enqueue([{ lifecycle: standard, input: '{}', command }])
  return answer as Enqueued
}

function sweep(store: Store) {
  const endedBefore = store.now() + 1
  const keysMs = KEEP_MS
  return store.retention.sweep({ outcome: 'cancelled', endedBefore, limit: 10, keysMs })
}

/** A job with the key that has ended. Returns its id. */
async function ended(): Promise<string> {
  await stage.clear()
  const [{ store }] = stage.sides
  const answer = await enqueue(store)
  const { id } = (answer as Extract<Enqueued, { kind: 'created' }>).job
  await store.cancel([id], { actor: 'client' })
  return id
}

function idOf(answer: Enqueued): string {
  if (answer.kind === 'removed') return answer.removed.id
  if (answer.kind === 'existing') return answer.job.id
  throw new Error(`answered ${answer.kind}`)
}

/** How many statements the removal has. */
async function statementsOf(verb: (store: Store) => Promise<unknown>): Promise<number> {
  await ended()
  const [{ gate, store }] = stage.sides
  void gate.stopAt(Number.POSITIVE_INFINITY)
  await verb(store)
  return gate.sent
}

describe('the key of a job that is being removed', () => {
  it('stays taken, at whatever statement the removal is met', async () => {
    const statements = await statementsOf(sweep)
    expect(statements).toBeGreaterThan(6)
    for (let n = 1; n <= statements; n++) {
      const id = await ended()
      const [remover, client] = stage.sides
      const held = remover.gate.stopAt(n)
      const removal = sweep(remover.store)
      await held
      const enqueuing = enqueue(client.store)
      await stage.untilEndedOrBlocked(enqueuing)
      remover.gate.open()
      expect(await removal).toMatchObject({ removed: 1, keys: 1 })
      expect(idOf(await enqueuing)).toBe(id)
      expect(idOf(await enqueue(client.store))).toBe(id)
      expect(await stage.reader.retention.rivals(10)).toEqual([])
    }
    // The insert that had waited was refused by the trigger once, and tried again.
    expect(stage.refusals).toContain('40001')
  })

  it('stays taken, at whatever statement the enqueue is met', async () => {
    const statements = await statementsOf(enqueue)
    for (let n = 1; n <= statements; n++) {
      const id = await ended()
      const [client, remover] = stage.sides
      const held = client.gate.stopAt(n)
      const enqueuing = enqueue(client.store)
      await held
      const removal = sweep(remover.store)
      await stage.untilEndedOrBlocked(removal)
      client.gate.open()
      await removal
      expect(idOf(await enqueuing)).toBe(id)
      expect(await stage.reader.retention.rivals(10)).toEqual([])
    }
  })
})
