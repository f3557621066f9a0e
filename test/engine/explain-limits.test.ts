// Why a limit or a throttle keeps a job from running: the sentence, the command and the numbers.
import { describe, expect, it } from 'vitest'
import { explainObstacle } from '../../src/engine/operators/explain-limits.ts'
import type { Pawl, Store } from '../../src/index.ts'
import { defineJob, defineLimit, typed } from '../../src/index.ts'
import { createTestPawl } from '../../src/testing/test-pawl.ts'

const openai = defineLimit({ name: 'openai', concurrency: 2 })

const sync = defineJob({
  name: 'sync',
  input: typed<string>(),
  concurrency: [openai, { name: 'tenant', key: (tenant) => tenant, limit: 1 }],
  run: () => null,
})

const call = defineJob({
  name: 'call',
  throttle: { name: 'rps', limit: 2, period: '10s', burst: 1, key: () => 'ann' },
  run: () => null,
})

const mail = defineJob({ name: 'mail', queue: 'mail', run: () => null })

const ANN = { name: 'ann', reason: 'INC-7' }

async function kitOf() {
  const queues = { mail: { concurrency: 1 } }
  const kit = await createTestPawl({ jobs: [sync, call, mail], queues })
  const info = JSON.stringify({ concurrency: 10, running: 0, version: '1' })
  await kit.store.reportWorker({ id: 'web-1', state: 'Idle', info })
  return kit
}

function claim(store: Store, limit = 10) {
  return store.claim({ worker: 'web-1', limit, leaseMs: 600_000, start: true })
}

async function enqueueTenants(pawl: Pawl, ...tenants: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const tenant of tenants) ids.push((await pawl.enqueue(sync, tenant)).id)
  return ids
}

describe('explain', () => {
  it('names the limit that blocks a job, who holds it, who is ahead and what helps', async () => {
    await using kit = await kitOf()
    const { pawl, store } = kit
    const [holder, second, third] = await enqueueTenants(pawl, 'acme', 'acme', 'acme')
    await claim(store)
    await kit.advance('3m')
    const limit = 'the limit sync/tenant for acme'
    const held = `job ${holder} on web-1 since 3m holds it`
    expect(await pawl.explain(second as string)).toMatchObject({
      kind: 'blocked',
      says: `It is blocked: ${limit} has 1 of 1 in use: ${held}; 0 jobs are ahead.`,
      command: 'pawl limit set sync/tenant --key=acme --concurrency 2 --reason …',
      blockedBy: {
        ahead: 0,
        gate: { gate: 'job/sync/tenant/acme', used: 1, max: 1, blocked: 2 },
        holders: [{ id: holder, worker: 'web-1' }],
      },
    })
    expect((await pawl.explain(third as string)).says).toMatch(/holds it; 1 job is ahead\.$/)
  })

  it('says who has set the number, and that others hold it as well', async () => {
    await using kit = await kitOf()
    const { pawl, store } = kit
    const [first, , third] = await enqueueTenants(pawl, 'a', 'b', 'c')
    await claim(store)
    await kit.advance('1s')
    await pawl.operator(ANN).setLimit(openai, { concurrency: 1 })
    expect(await pawl.explain(third as string)).toMatchObject({
      says:
        'It is blocked: the limit openai has 2 of 1 in use, set by ann (INC-7): ' +
        `job ${first} on web-1 since 1s and 1 other job hold it; 0 jobs are ahead.`,
      command: 'pawl limit set openai --concurrency 2 --reason …',
    })
  })

  it('points to the reset of a key or a limit that an operator has paused', async () => {
    await using kit = await kitOf()
    const { pawl, store } = kit
    await pawl.operator(ANN).setLimit('sync/tenant', { key: "o'hara & co", concurrency: 0 })
    const [id] = await enqueueTenants(pawl, "o'hara & co")
    await claim(store)
    const paused = 'is paused, set by ann (INC-7); 0 jobs are ahead.'
    expect(await pawl.explain(id as string)).toMatchObject({
      says: `It is blocked: the limit sync/tenant for o'hara & co ${paused}`,
      command: `pawl limit reset sync/tenant --key='o'\\''hara & co' --reason …`,
    })
    await pawl.operator(ANN).resetLimit('sync/tenant', { key: "o'hara & co" })
    await pawl.operator(ANN).setLimit('sync/tenant', { concurrency: 0 })
    await claim(store)
    const { command } = await pawl.explain(id as string)
    expect(command).toBe('pawl limit reset sync/tenant --reason …')
  })

  it('says when a throttle opens, and what it allows', async () => {
    await using kit = await kitOf()
    const { pawl, store } = kit
    for (let n = 0; n < 2; n++) await pawl.enqueue(call, null)
    const { id } = await pawl.enqueue(call, null)
    await claim(store)
    const explanation = await pawl.explain(id)
    expect(explanation).toMatchObject({
      kind: 'throttled',
      command: 'pawl limit show rate/call/rps --key=ann',
      blockedBy: { ahead: 1, gate: { opensAt: store.now() + 5000 } },
    })
    expect(explanation.says).toMatch(
      /^It is not started before \S+ \(in 5s\) by the throttle rate\/call\/rps for ann, which all/,
    )
    expect(explanation.says).toMatch(/allows 2 units in 10s; 1 job is ahead\.$/)
  })

  it('names the limit of a queue, whose jobs stay ready', async () => {
    await using kit = await kitOf()
    const { pawl, store } = kit
    const { id: first } = await pawl.enqueue(mail, null)
    const { id } = await pawl.enqueue(mail, null)
    expect((await pawl.explain(id)).kind).toBe('ready')
    await claim(store)
    await kit.advance('1s')
    const { kind, says, blockedBy } = await pawl.explain(id)
    expect(kind).toBe('blocked')
    expect(blockedBy).not.toHaveProperty('ahead')
    const held = `job ${first} on web-1 since 1s holds it`
    expect(says).toBe(`It is blocked: the limit queue/mail has 1 of 1 in use: ${held}.`)
    await pawl.operator(ANN).pauseQueue('mail')
    expect((await pawl.explain(id)).kind).toBe('paused')
  })

  it('says of a ready job what the next claim will find', async () => {
    await using kit = await kitOf()
    const { pawl, store } = kit
    await enqueueTenants(pawl, 'acme')
    await claim(store)
    const [id] = await enqueueTenants(pawl, 'acme')
    expect(await pawl.explain(id as string)).toMatchObject({
      kind: 'blocked',
      says: expect.stringMatching(/^It is blocked: the limit sync\/tenant for acme has 1 of 1/),
    })
  })

  it('says that a blocked job is made ready if there is room again', async () => {
    await using kit = await kitOf()
    const { pawl, store } = kit
    const [, id] = await enqueueTenants(pawl, 'acme', 'acme')
    await claim(store)
    const { blockedBy } = await pawl.explain(id as string)
    const gate = { ...(blockedBy as NonNullable<typeof blockedBy>).gate, used: 0 }
    expect(explainObstacle({ gate, holders: [], ahead: 0 }, store.now())).toMatchObject({
      kind: 'ready',
      says: expect.stringMatching(
        /^It was blocked by the limit sync\/tenant for acme, which has r/,
      ),
    })
  })
})
