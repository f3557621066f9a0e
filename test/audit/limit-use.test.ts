// Limits audited after the fact: the ledger shows how many jobs ran, whoever wrote it.
import { standard } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { auditLimit } from '../../src/audit/limit-use.ts'
import type { Held } from '../../src/stores/contract/store.ts'
import { type Examined, STORES } from '../stores/examined-stores.ts'

const ANN = { actor: 'operator', operator: 'ann', note: 'because' } as const

async function enqueue({ store, environment }: Examined, tenants: readonly string[]) {
  for (const tenant of tenants) {
    const limitKeys = [{ gate: 'shared/api' }, { gate: `job/mail/tenant/${tenant}`, max: 2 }]
    const command = { jobId: environment.ids.next(), type: 'mail', queue: 'a', limitKeys }
    await store.enqueue([{ lifecycle: standard, command, input: '1' }])
    environment.advance(10)
  }
}

function claim({ store }: Examined, limit = 10): Promise<Held[]> {
  return store.claim({ worker: 'w', limit, leaseMs: 60_000, start: true })
}

async function settle({ store, environment }: Examined, held: readonly Held[]): Promise<void> {
  environment.advance(1000)
  for (const one of held) {
    const fence = { attempt: one.job.attempt, claim: one.job.execution?.claim as string }
    await store.settle([{ held: one, command: { kind: 'commit', fence }, payload: '1' }])
  }
}

async function opened(open: () => Promise<Examined>): Promise<Examined> {
  const examined = await open()
  await examined.store.limits.declare([
    { name: 'shared/api', max: 3 },
    { name: 'job/mail/tenant', max: null },
    { name: 'queue/a', max: 5 },
  ])
  examined.environment.advance(2000)
  return examined
}

describe.each(STORES)('an audit of limits on $name', ({ open }) => {
  it('shows that no more jobs ran than were allowed, and how many did', async () => {
    const examined = await opened(open)
    const { store, environment } = examined
    await enqueue(examined, ['x', 'y', 'x', 'x', 'y', 'z', 'x'])
    const first = await claim(examined)
    expect(first).toHaveLength(3)
    await settle(examined, first.slice(0, 1))
    await store.limits.set('shared/api', 1, ANN)
    environment.advance(5000)
    const since = store.now()
    // Two run, and one may: that is no violation.
    expect(await claim(examined)).toHaveLength(0)
    await settle(examined, first.slice(1))
    await settle(examined, await claim(examined))
    // A lease that expires frees its slot.
    expect(await claim(examined)).toHaveLength(1)
    environment.advance(70_000)
    await store.recover(10)
    await store.promote(10)
    environment.advance(60_000)
    await store.promote(10)
    expect(await claim(examined)).toHaveLength(1)
    const report = await auditLimit(store, 'api')
    expect(report).toMatchObject({ limit: 'shared/api', complete: true, violations: [], claims: 6 })
    expect(report.peak).toMatchObject({ used: 3, gate: 'shared/api' })
    expect(Math.max(...report.curve.map(({ peak }) => peak))).toBe(3)
    const later = await auditLimit(store, 'shared/api', { since })
    expect(later).toMatchObject({ claims: 3, peak: { used: 1 }, violations: [] })
    const tenant = await auditLimit(store, 'mail/tenant', { key: 'x' })
    expect(tenant).toMatchObject({ key: 'x', violations: [] })
    expect(tenant.peak?.used).toBeLessThanOrEqual(2)
    const queue = await auditLimit(store, 'queue/a')
    expect(queue).toMatchObject({ claims: 6, peak: { used: 3 }, violations: [] })
  })

  it('finds claims that made too many run', async () => {
    const examined = await opened(open)
    const { store, environment } = examined
    await enqueue(examined, ['x', 'y', 'z', 'u', 'v'])
    expect(await claim(examined)).toHaveLength(3)
    environment.advance(5000)
    // Somebody lifts the limit behind the back of the store.
    await examined.sql(`UPDATE @limits SET max = 100`)
    await examined.sql(`UPDATE @gates SET open_at = 1 WHERE waiting = 1`)
    await store.limits.open(10)
    const more = await claim(examined)
    expect(more).toHaveLength(2)
    environment.advance(5000)
    const report = await auditLimit(store, 'api')
    expect(report).toMatchObject({ violationCount: 2, peak: { used: 5 } })
    expect(report.violations.map(({ used, max, gate }) => [used, max, gate])).toEqual([
      [4, 3, 'shared/api'],
      [5, 3, 'shared/api'],
    ])
    const ids = report.violations.map(({ jobId }) => jobId).sort()
    expect(ids).toEqual(more.map(({ job }) => job.id).sort())
  })

  it('counts no job that ends at its deadline while it is blocked', async () => {
    const examined = await opened(open)
    const { store, environment } = examined
    await enqueue(examined, ['x', 'y', 'z'])
    expect(await claim(examined)).toHaveLength(3)
    const own = { type: 'mail', queue: 'b', limitKeys: [{ gate: 'shared/api' }] }
    const deadlineAt = store.now() + 500
    const command = { jobId: environment.ids.next(), ...own, deadlineAt }
    await store.enqueue([{ lifecycle: standard, command, input: '1' }])
    expect(await claim(examined)).toHaveLength(0)
    environment.advance(5000)
    expect(await store.shed(10)).toHaveLength(1)
    const report = await auditLimit(store, 'api')
    expect(report).toMatchObject({ claims: 3, peak: { used: 3 }, violationCount: 0 })
  })

  it('takes names of limits only', async () => {
    const { store } = await open()
    for (const name of ['rate/mail/calls', 'shared/api/key', '', 'a/b/c']) {
      await expect(auditLimit(store, name)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    }
    expect(await auditLimit(store, 'none')).toMatchObject({ claims: 0, violationCount: 0 })
  })
})
