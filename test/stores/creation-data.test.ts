// The first fact of a job stores only what differs from most jobs. What is read must be the fact
// as it was decided, and facts of earlier releases, which store everything, must be read as before.
import { standard } from 'pawl/rules'
import { expect, it } from 'vitest'
import type { CreateCommand } from '../../src/core/job/commands.ts'
import { decide } from '../../src/core/job/decide.ts'
import type { Fact } from '../../src/core/job/facts.ts'
import { FACT_COLUMNS } from '../../src/stores/columns.ts'
import { type FactRow, factData, toFact } from '../../src/stores/rows.ts'

const ID = '00000000-0000-7000-8000-000000000001'
const NOW = 1_800_000_000_000

function create(more: Partial<CreateCommand> = {}): Fact {
  const command = { kind: 'create', jobId: ID, type: 'mail', queue: 'q', ...more } as const
  const decision = decide(standard, null, command, { now: NOW, random: 0, actor: 'client' })
  if (decision.kind !== 'fact') throw new Error(`The creation was ${decision.kind}`)
  return decision.fact
}

function rowOf(fact: Fact, data = factData(fact)): FactRow {
  const columns = FACT_COLUMNS.map(({ name, value }) => [name, value(fact)])
  return { version: 1, ...Object.fromEntries(columns), seq: fact.seq, attempt: null, data }
}

it('a job without anything special stores its type, its queue and its lifecycle', () => {
  const { name: lifecycle, version: lifecycleVersion } = standard
  const created = { type: 'mail', queue: 'q', lifecycle, lifecycleVersion }
  expect(factData(create())).toBe(JSON.stringify({ created }))
})

it.each<[string, Partial<CreateCommand>]>([
  ['nothing special', {}],
  ['a later due time', { runAt: NOW + 1 }],
  ['no due time', { hold: true }],
  ['a priority', { priority: 7, aheadMs: 3 }],
  ['tags, a key and times', { tags: ['a'], key: 'k', timeoutMs: 5, deadlineAt: NOW + 9 }],
  ['a policy and a copied job', { policy: { ...standard.policy, notify: true }, retryOf: ID }],
])('a creation with %s is read as it was decided', (_, more) => {
  const fact = create(more)
  expect(toFact(ID, rowOf(fact))).toEqual(fact)
})

it('a creation of an earlier release, with all its fields, is the same fact', () => {
  const fact = create()
  const { created, priority, runAt } = fact
  const long = JSON.stringify({ created, priority, runAt })
  expect(long.length).toBeGreaterThan(200)
  expect(toFact(ID, rowOf(fact, long))).toEqual(fact)
})
