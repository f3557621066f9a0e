// The log lines of the hardening requirements (R0), from the engine on both databases.
import { defineJob } from 'pawl'
import { hardened } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { STORES } from '../stores/examined-stores.ts'
import { EngineOnStore } from './engine-on-store.ts'
import { ANN } from './stored-job.ts'

const LEASE_MS = 30_000
const work = defineJob({ name: 'work', lifecycle: hardened, run: () => 'done' })

describe.each(STORES)('a job of lifecycle hardened on $name', ({ open }) => {
  it('that stalls is logged once when it is found and recovered, with its age', async () => {
    const engine = await EngineOnStore.open(open, [work])
    const { id } = await engine.pawl.enqueue(work, null)
    await engine.store.claim({ worker: 'gone', limit: 1, leaseMs: LEASE_MS, start: true })
    await engine.work({ id: 'finder' })
    await engine.until(async () => (await engine.store.get(id))?.crashes === 1)
    const lines = engine.lines.filter(({ fields }) => fields.event === 'job.recovered')
    expect(lines).toEqual([
      {
        level: 'warn',
        text: 'The lease of a job has expired: it was recovered',
        fields: expect.objectContaining({
          ...{ job_id: id, attempt: 1, worker_id: 'gone', found_by: 'finder', state: 'pending' },
        }),
      },
    ])
    expect(lines[0]?.fields.age_ms).toBeGreaterThanOrEqual(LEASE_MS)
    // The recovery itself: both edges in one fact, and the delay of 60 seconds.
    const fact = (await engine.store.facts(id)).at(-1)
    expect(fact).toMatchObject({ from: 'running', via: ['failed'], to: 'pending' })
    expect(fact?.runAt).toBe((fact?.at ?? 0) + 60_000)
  })

  it('that is asked for no edge is logged at error level, with both states', async () => {
    const engine = await EngineOnStore.open(open, [work])
    const { id } = await engine.pawl.enqueue(work, null)
    await engine.store.claim({ worker: 'w1', limit: 1, leaseMs: LEASE_MS, start: true })
    const [answer] = await engine.pawl.store.applyCommand([id], { kind: 'redrive' }, ANN)
    expect(answer?.kind).toBe('rejected')
    expect(engine.lines.filter(({ level }) => level === 'error')).toEqual([
      {
        level: 'error',
        text: 'Invalid transition: running → pending',
        fields: expect.objectContaining({ job_id: id, from: 'running', to: 'pending' }),
      },
    ])
  })

  it('that is asked for the state that it has is logged at debug level', async () => {
    const engine = await EngineOnStore.open(open, [work])
    const { id } = await engine.pawl.enqueue(work, null)
    await engine.pawl.store.applyCommand([id], { kind: 'park' }, ANN)
    const before = engine.lines.length
    const [answer] = await engine.pawl.store.applyCommand([id], { kind: 'park' }, ANN)
    expect(answer?.kind).toBe('same')
    expect(engine.lines.slice(before)).toMatchObject([
      { level: 'debug', text: 'Same state: quarantined' },
    ])
  })
})
