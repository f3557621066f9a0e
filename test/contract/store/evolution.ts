/**
 * Several versions of a lifecycle in one store: who touches which jobs, how live jobs are migrated,
 * and what is refused. Every case opens a further store, as another release of the program would.
 */
import assert from 'node:assert/strict'
import {
  JobEnded,
  LeaseLive,
  LifecycleUnknown,
  MachineChanged,
  MigrationInvalid,
  StaleFence,
} from '../../../src/core/errors.ts'
import { LIFECYCLES } from '../../../src/core/lifecycles/index.ts'
import { defineLifecycle, type Lifecycle } from '../../../src/core/lifecycles/lifecycle.ts'
import type { Store } from '../../../src/stores/contract/store.ts'
import type { Migration } from '../../../src/stores/migration.ts'
import { Bench, type Cases, done, failureOf, OPERATOR, one, refused, settlement } from './bench.ts'
import { checkStore } from './check.ts'
import { parcel1, parcel2, parcel3 } from './parcels.ts'

/** A release of the program: its store, and words for what it does. */
async function release(bench: Bench, ...lifecycles: readonly Lifecycle[]): Promise<Bench> {
  assert.ok(bench.reopen, 'these cases need a store that can be opened twice')
  const store = await bench.reopen([...LIFECYCLES, ...lifecycles])
  const advance = (ms: number) => bench.advance(ms)
  const { ownTable, reopen } = bench
  return new Bench(bench.environment, { store, advance, ownTable, reopen })
}

/** Runs a case with several releases, which are closed and judged at its end. */
function withReleases(
  versions: readonly (readonly Lifecycle[])[],
  run: (...releases: Bench[]) => Promise<void>,
): (bench: Bench) => Promise<void> {
  return async (bench) => {
    const releases: Bench[] = []
    try {
      for (const own of versions) releases.push(await release(bench, ...own))
      await run(...releases)
      for (const { store } of releases) await checkStore(store)
    } finally {
      for (const { store } of releases) await store.close()
    }
  }
}

type TwoReleases = (old: Bench, next: Bench) => Promise<void>

/** An old release that knows version 1 only, and a new one that knows version 2 only. */
function rolling(run: TwoReleases): (bench: Bench) => Promise<void> {
  return withReleases([[parcel1], [parcel2]], run as (...releases: Bench[]) => Promise<void>)
}

async function migrations(store: Store, id: string): Promise<string[]> {
  const facts = await store.facts(id)
  return facts.flatMap(({ migrated, from, to }) =>
    migrated === undefined ? [] : `${migrated.from}:${from} ${migrated.to}:${to}`,
  )
}

async function migrateAll(store: Store, to: number, dryRun = false): Promise<Migration[]> {
  const found: Migration[] = []
  let after: string | undefined
  do {
    const request = { lifecycle: 'parcel', to, dryRun, ...(after !== undefined && { after }) }
    const page = await store.migrate(request, OPERATOR)
    found.push(...page.items)
    after = page.next
  } while (after !== undefined)
  return found
}

/** Jobs of a version that the touching release does not have. */
export const touchCases: Cases = {
  'a claim migrates the job under its new lease, and the attempt ends by the new version': rolling(
    async (old, next) => {
      const { id } = await old.enqueue({ lifecycle: parcel1 })
      const held = one(await next.claim())
      assert.deepEqual([held.job.lifecycleVersion, held.job.state], [2, 'carried'])
      assert.deepEqual(
        held.migrated?.map(({ actor }) => actor),
        ['engine'],
      )
      assert.deepEqual(await migrations(next.store, id), ['1:underway 2:carried'])
      const { job } = done(await next.settle(held, { kind: 'commit' }, '"here"'))
      assert.deepEqual([job.state, job.outcome], ['delivered', 'succeeded'])
    },
  ),

  'claims of both versions come in the order of priority and time': rolling(async (old, next) => {
    const first = await old.enqueue({ lifecycle: parcel1, priority: 1 })
    const third = await next.enqueue({ lifecycle: parcel2, priority: 3 })
    const second = await old.enqueue({ lifecycle: parcel1, priority: 2 })
    const held = await next.claim({ limit: 3 })
    assert.deepEqual(
      held.map(({ job }) => job.id),
      [first.id, second.id, third.id],
    )
    assert.deepEqual(
      held.map(({ job }) => job.lifecycleVersion),
      [2, 2, 2],
    )
  }),

  'a claim that comes with a report migrates as well': rolling(async (old, next) => {
    await next.enqueue({ lifecycle: parcel2 })
    const held = one(await next.claim())
    const { id } = await old.enqueue({ lifecycle: parcel1 })
    const request = { worker: 'worker-1', limit: 1, leaseMs: 30_000, start: true }
    const { claimed } = await next.store.settle([settlement(held, { kind: 'commit' })], request)
    assert.deepEqual([one(claimed).job.id, one(claimed).job.lifecycleVersion], [id, 2])
    done(await next.settle(one(claimed), { kind: 'commit' }))
  }),

  'a release that knows only the old version leaves jobs of the new one alone': rolling(
    async (old, next) => {
      const { id } = await next.enqueue({ lifecycle: parcel2 })
      assert.deepEqual(await old.claim(), [])
      await old.assertUntouched(id, async () => {
        refused(await old.applyCommand(id, { kind: 'cancel' }), LifecycleUnknown)
        refused(one(await old.store.cancel([id], OPERATOR)), LifecycleUnknown)
      })
    },
  ),

  'a running job ends under the version that its holder has': rolling(async (old, next) => {
    const { id } = await old.enqueue({ lifecycle: parcel1 })
    const held = one(await old.claim())
    await next.assertUntouched(id, async () => {
      refused(await next.applyCommand(id, { kind: 'prioritise', priority: 5 }), LeaseLive)
      refused(await next.applyCommand(id, { kind: 'park' }, OPERATOR), LeaseLive)
      assert.equal(one(await migrateAll(next.store, 2)).error instanceof LeaseLive, true)
    })
    assert.equal(one(await next.store.cancel([id], OPERATOR)).kind, 'asked')
    const { job } = done(await old.settle(held, { kind: 'commit' }))
    assert.deepEqual([job.lifecycleVersion, job.state], [1, 'delivered'])
  }),

  'an expired lease is recovered by the new version, and its holder is stale': rolling(
    async (old, next) => {
      const { id } = await old.enqueue({ lifecycle: parcel1 })
      const held = one(await old.claim())
      const { job } = done(one(await next.expire()))
      assert.deepEqual([job.lifecycleVersion, job.state, job.crashes], [2, 'again', 1])
      assert.deepEqual(await migrations(next.store, id), ['1:underway 2:carried'])
      refused(await old.settle(held, { kind: 'commit' }), StaleFence)
    },
  ),

  'a job that comes due is migrated, and can then be claimed': rolling(async (old, next) => {
    await old.enqueue({ lifecycle: parcel1 })
    const held = one(await old.claim())
    await old.settle(held, { kind: 'fail', failure: failureOf('transient') })
    await next.advance(1000)
    assert.equal(await next.store.promote(10), 1)
    const { job } = one(await next.claim())
    assert.deepEqual([job.id, job.lifecycleVersion, job.failures], [held.job.id, 2, 1])
  }),

  'a job that only another release can promote is not the next one that is due': rolling(
    async (old, next) => {
      const now = old.store.now()
      await next.enqueue({ lifecycle: parcel2, runAt: now + 1000 })
      assert.equal(await old.store.nextDue(), undefined)
      await old.enqueue({ lifecycle: parcel1, runAt: now + 3000 })
      await old.advance(2000)
      assert.equal(await old.store.promote(10), 0)
      assert.equal(await old.store.nextDue(), now + 3000)
      assert.equal(await next.store.nextDue(), now + 1000)
    },
  ),

  'an operator command migrates the job, and a refused one leaves it as it was': rolling(
    async (old, next) => {
      const { id } = await old.enqueue({ lifecycle: parcel1 })
      await next.assertUntouched(id, async () => {
        const answer = await next.applyCommand(id, { kind: 'redrive' }, OPERATOR)
        assert.notEqual(answer.kind, 'done')
      })
      const parked = done(await next.applyCommand(id, { kind: 'park' }, OPERATOR))
      assert.deepEqual([parked.job.lifecycleVersion, parked.job.state], [2, 'stuck'])
      assert.deepEqual(await migrations(next.store, id), ['1:packed 2:ready'])
    },
  ),

  'a failed job is migrated on its way out of its last state, a succeeded one never': rolling(
    async (old, next) => {
      const failing = await old.hold({ lifecycle: parcel1 })
      await old.settle(failing, { kind: 'fail', failure: failureOf('terminal') })
      const succeeding = await old.hold({ lifecycle: parcel1 })
      await old.settle(succeeding, { kind: 'commit' })
      const { job } = done(await next.applyCommand(failing.job.id, { kind: 'redrive' }, OPERATOR))
      assert.deepEqual([job.lifecycleVersion, job.state, job.outcome], [2, 'ready', null])
      await next.assertUntouched(succeeding.job.id, async () => {
        refused(await next.applyCommand(succeeding.job.id, { kind: 'redrive' }, OPERATOR), JobEnded)
      })
    },
  ),

  'a taken key that is replaced migrates its job': rolling(async (old, next) => {
    const { id } = await old.enqueue({ lifecycle: parcel1, key: 'a' })
    const fields = { lifecycle: parcel2, key: 'a', input: '"new"', onConflict: 'replace' } as const
    const answer = await next.offer(fields)
    assert.equal(answer.kind, 'replaced')
    assert.deepEqual(await migrations(next.store, id), ['1:packed 2:ready'])
    assert.equal(one(await next.claim()).input, '"new"')
  }),

  'a committed job whose effects are delivered by a new release is finished by it': rolling(
    async (old, next) => {
      const held = await old.hold({ lifecycle: parcel1 })
      await old.store.commit(held, (tx) => {
        tx.effect('send', '{}')
        return 'null'
      })
      const effects = await next.store.claimEffects({ limit: 1, leaseMs: 1000 })
      await next.store.settleEffects([{ kind: 'delivered', effect: one(effects) }])
      const job = await next.job(held.job.id)
      assert.deepEqual(
        [job.lifecycleVersion, job.state, job.outcome],
        [2, 'delivered', 'succeeded'],
      )
    },
  ),

  'a committed job whose effects are delivered by an old release is finished by it': rolling(
    async (old, next) => {
      const held = await next.hold({ lifecycle: parcel2 })
      await next.store.commit(held, (tx) => {
        tx.effect('send', '{}')
        return 'null'
      })
      const effects = await old.store.claimEffects({ limit: 1, leaseMs: 1000 })
      await old.store.settleEffects([{ kind: 'delivered', effect: one(effects) }])
      const job = await next.job(held.job.id)
      assert.deepEqual([job.lifecycleVersion, job.outcome], [2, 'succeeded'])
    },
  ),

  'a release that knows both versions works on each as it is': withReleases(
    [[parcel1], [parcel1, parcel2]],
    async (old, both) => {
      await (old as Bench).enqueue({ lifecycle: parcel1 })
      await (both as Bench).enqueue({ lifecycle: parcel2 })
      const held = await (both as Bench).claim({ limit: 2 })
      assert.deepEqual(held.map(({ job }) => job.lifecycleVersion).sort(), [1, 2])
      for (const one of held) done(await (both as Bench).settle(one, { kind: 'commit' }))
    },
  ),

  'a version that is registered later is noticed by the next recovery': withReleases(
    [[parcel2], [parcel1]],
    async (next, late) => {
      await (late as Bench).enqueue({ lifecycle: parcel1 })
      await (next as Bench).store.recover(1)
      assert.equal(one(await (next as Bench).claim()).job.lifecycleVersion, 2)
    },
  ),
}

/** Migration on request. */
export const migrationCases: Cases = {
  'every live job is migrated, and a dry run says exactly which': rolling(async (old, next) => {
    const ids: string[] = []
    for (let i = 0; i < 3; i++) ids.push((await old.enqueue({ lifecycle: parcel1 })).id)
    const ended = await old.hold({ lifecycle: parcel1 })
    await old.settle(ended, { kind: 'commit' })
    await old.enqueue({})
    const dry = await migrateAll(next.store, 2, true)
    assert.deepEqual(dry.map(({ jobId }) => jobId).sort(), ids.toSorted())
    for (const id of ids) assert.deepEqual(await migrations(next.store, id), [])
    const wet = await migrateAll(next.store, 2)
    assert.deepEqual(
      wet.map(({ jobId, from, to }) => [jobId, from, to]),
      dry.map(({ jobId, from, to }) => [jobId, from, to]),
    )
    for (const id of ids) {
      const fact = await next.lastFact(id)
      assert.deepEqual([fact.trigger, fact.operator, fact.note], ['migrate', 'ann', OPERATOR.note])
    }
    assert.deepEqual(await migrateAll(next.store, 2), [])
  }),

  'several hops are a fact each, though no release has the code in between': withReleases(
    [[parcel1], [parcel2], [parcel3]],
    async (first, second, third) => {
      const [old, last] = [first as Bench, third as Bench]
      assert.ok(second)
      const ready = await old.enqueue({ lifecycle: parcel1 })
      const stuck = await old.enqueue({ lifecycle: parcel1 })
      await old.applyCommand(stuck.id, { kind: 'park' }, OPERATOR)
      await migrateAll(last.store, 3)
      assert.deepEqual(await migrations(last.store, ready.id), [
        '1:packed 2:ready',
        '2:ready 3:ready',
      ])
      const job = await last.job(stuck.id)
      assert.deepEqual([job.state, job.blockedReason], ['ready', 'parked'])
      assert.deepEqual(
        (await last.claim({ limit: 5 })).map((held) => held.job.id),
        [ready.id],
      )
      done(await last.applyCommand(stuck.id, { kind: 'redrive' }, OPERATOR))
      assert.equal(one(await last.claim()).job.id, stuck.id)
    },
  ),

  'the history of a migrated job can be travelled': rolling(async (old, next) => {
    const { id } = await old.enqueue({ lifecycle: parcel1 })
    await migrateAll(next.store, 2)
    const before = await next.store.asOf(id, 1)
    const after = await next.store.asOf(id, 2)
    assert.deepEqual([before?.lifecycleVersion, before?.state], [1, 'packed'])
    assert.deepEqual([after?.lifecycleVersion, after?.state], [2, 'ready'])
  }),

  'a version that the store does not have is refused': rolling(async (_old, next) => {
    await assert.rejects(migrateAll(next.store, 7), LifecycleUnknown)
  }),

  'jobs without a way to the version are refused, and stay': withReleases(
    [[parcel1], [parcel3]],
    async (old, last) => {
      const { id } = await (old as Bench).enqueue({ lifecycle: parcel1 })
      await (last as Bench).assertUntouched(id, async () => {
        const { error } = one(await migrateAll((last as Bench).store, 3))
        assert.ok(error instanceof MigrationInvalid)
        assert.deepEqual(await (last as Bench).claim(), [])
      })
    },
  ),
}

function changed(spec: Partial<Parameters<typeof defineLifecycle>[0]>): Lifecycle {
  const { machine, roles } = parcel1
  const states = [...roles].map(([state, role]) => [state, { role, meaning: 'Other words.' }])
  return defineLifecycle({
    name: 'parcel',
    version: 1,
    initial: machine.initial,
    states: Object.fromEntries(states.reverse()),
    edges: machine.edges.toReversed(),
    policy: parcel1.policy,
    ...spec,
  } as Parameters<typeof defineLifecycle>[0])
}

/** What is refused when a release opens the store. */
export const definitionCases: Cases = {
  'other words and another order are no change': async (bench) => {
    await withReleases([[parcel1], [changed({})]], async () => {})(bench)
  },

  'changed edges, budgets and mappings under an old number are refused': async (bench) => {
    await withReleases([[parcel1], [parcel2]], async () => {})(bench)
    const without = parcel1.machine.edges.filter(({ on }) => !on.includes('run-now'))
    const others = [
      changed({ edges: [...without, { from: 'missed', to: 'packed', on: ['due'] }] }),
      changed({ policy: { crashesMax: 9 } }),
      secondVersion({ packed: 'ready', underway: 'carried', missed: 'ready', lost: 'failed' }),
    ]
    for (const other of others) await assert.rejects(release(bench, other), MachineChanged)
  },

  'a mapping that does not fit the stored version is refused': async (bench) => {
    await withReleases([[parcel1]], async () => {})(bench)
    const mappings: Record<string, string>[] = [
      { packed: 'ready', underway: 'carried' },
      { packed: 'stuck', underway: 'ready', missed: 'again', lost: 'failed' },
      { packed: 'ready', underway: 'carried', missed: 'again', stuck: 'failed' },
      { packed: 'ready', underway: 'carried', missed: 'again', lost: 'delivered' },
      { packed: 'ready', underway: 'carried', missed: 'again', never: 'ready' },
    ]
    for (const mapping of mappings) {
      await assert.rejects(release(bench, secondVersion(mapping)), MigrationInvalid)
    }
  },

  'a mapping may be added to a version that had none': async (bench) => {
    const without = secondVersion()
    await withReleases([[parcel1], [without], [parcel2]], async (old, _without, next) => {
      await (old as Bench).enqueue({ lifecycle: parcel1 })
      assert.equal(one(await (next as Bench).claim()).job.lifecycleVersion, 2)
    })(bench)
  },
}

/** Version 2 with another mapping. */
function secondVersion(mapping?: Readonly<Record<string, string>>): Lifecycle {
  const states = [...parcel2.roles].map(([state, role]) => [state, { role, meaning: 'As it was.' }])
  return defineLifecycle({
    name: 'parcel',
    version: 2,
    initial: 'ready',
    states: Object.fromEntries(states),
    edges: parcel2.machine.edges,
    policy: parcel2.policy,
    ...(mapping !== undefined && { from: { 1: mapping } }),
  })
}
