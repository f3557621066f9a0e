// Every lifecycle × situation × command, against tables that were typed by hand from the rules.
import type { Lifecycle } from 'pawl'
import { checkFacts, checkP9, DEFAULT_POLICY, type Decision, hopsOf, LIFECYCLES } from 'pawl/rules'
import { JobScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { COMMAND_TABLES, type CommandTable } from './command-tables.ts'
import {
  ATTEMPT_COMMANDS,
  bring,
  foreignFence,
  lastFence,
  ROWS,
  SITUATIONS,
  type Situation,
  spendingOf,
} from './situations.ts'

const WORDS: Readonly<Record<string, string>> = {
  E_TRANSITION_INVALID: 'no',
  E_UNSUPPORTED: 'unsup',
  E_STALE_FENCE: 'stale',
  E_COMMITTED: 'comm',
  E_JOB_ENDED: 'ended',
  E_LEASE_LIVE: 'live',
  E_NOT_DUE: 'early',
  E_JOB_PARKED: 'park',
  E_JOB_STARTED: 'ran',
}

/** The version that this package has of a lifecycle. */
function lifecycleOf(name: string): Lifecycle {
  const found = LIFECYCLES.find((own) => own.name === name)
  if (found === undefined) throw new Error(`there is no lifecycle ${name}`)
  return found
}

/** What a decision is called in the tables. */
function wordOf(decision: Decision, letters: CommandTable['letters']): string {
  if (decision.kind === 'same') return 'same'
  if (decision.kind === 'rejected') return WORDS[decision.error.code] ?? decision.error.code
  const hops = hopsOf(decision.fact)
  return hops.length === 0 ? 'note' : hops.map(({ to }) => `→${letters[to]}`).join('')
}

/** The rows of a table: the label of the command, and what it comes to per situation. */
function rowsOf({ rows }: CommandTable): { label: string; cells: Record<string, string> }[] {
  const lines = rows.split('\n').filter((line) => line.trim() !== '')
  const [head = [], ...body] = lines.map((line) => line.split('|').map((part) => part.trim()))
  const columns = head[1]?.split(/\s+/) ?? []
  return body.map(([label = '', cells = '']) => {
    const words = cells.split(/\s+/)
    if (words.length !== columns.length) throw new Error(`"${label}" has ${words.length} cells`)
    return { label, cells: Object.fromEntries(columns.map((name, i) => [name, words[i] ?? ''])) }
  })
}

const situationsOf = (lifecycle: Lifecycle): [string, Situation][] =>
  Object.entries(SITUATIONS[lifecycle.name] ?? {})

/** Gives one command in one situation, and checks what must hold whatever comes of it. */
function play(table: CommandTable, label: string, situation: Situation): string {
  const lifecycle = lifecycleOf(table.lifecycle)
  const row = ROWS[label]
  if (row === undefined) throw new Error(`there is no row ${label}`)
  const script = bring(lifecycle, situation, spendingOf(row.spent, table.budgets))
  row.before?.(script)
  const [before, facts] = [script.job, script.facts.length]
  const decision = row.run(script, table.aside)
  expect(script.facts.length - facts).toBe(decision.kind === 'fact' ? 1 : 0)
  if (decision.kind !== 'fact') expect(script.job).toEqual(before)
  expect(checkFacts(lifecycle, script.facts)).toEqual([])
  expect(checkP9(script.job, script.facts)).toEqual([])
  return wordOf(decision, table.letters)
}

describe.each(COMMAND_TABLES)('a job of lifecycle $lifecycle', (table) => {
  const lifecycle = lifecycleOf(table.lifecycle)
  const situations = situationsOf(lifecycle)
  const rows = rowsOf(table)

  it('is brought into every situation of its table, and every state occurs there', () => {
    for (const [, situation] of situations) {
      const { job } = bring(lifecycle, situation)
      expect(job.state).toBe(situation.state)
      expect(job.execution?.status).toBe(situation.status)
      expect(job.blockedReason).toBe(situation.blocked ? 'parked' : null)
    }
    const states = new Set(situations.map(([, { state }]) => state))
    expect([...states].toSorted()).toEqual([...lifecycle.machine.states.keys()].toSorted())
    expect(Object.keys(table.letters).toSorted()).toEqual([...states].toSorted())
  })

  it('has a row for every command, and a column for every situation', () => {
    expect(rows.map(({ label }) => label)).toEqual(Object.keys(ROWS))
    const columns = situations.map(([name]) => name)
    for (const { cells } of rows) expect(Object.keys(cells)).toEqual(columns)
  })

  it.each(rows)('answers $label in every situation as its table says', ({ label, cells }) => {
    const answers = situations.map(([name, situation]) => [name, play(table, label, situation)])
    expect(Object.fromEntries(answers)).toEqual(cells)
  })
})

describe.each(LIFECYCLES)('whatever its situation, a job of lifecycle $name', (lifecycle) => {
  it('cannot be created a second time', () => {
    for (const [name, situation] of situationsOf(lifecycle)) {
      const script = bring(lifecycle, situation)
      const decision = script.create({ jobId: script.job.id })
      expect([name, wordOf(decision, {})]).toEqual([name, 'E_JOB_EXISTS'])
    }
  })

  it('answers a foreign claim and an old attempt with stale, before anything else', () => {
    for (const [name, situation] of situationsOf(lifecycle)) {
      const script = bring(lifecycle, situation)
      const { attempt, claim } = lastFence(script)
      const wrong = [foreignFence(script), { attempt: attempt + 1, claim }, { attempt: 0, claim }]
      for (const fence of wrong.filter((own) => own.attempt !== attempt || own.claim !== claim)) {
        const asked = Object.values(ATTEMPT_COMMANDS).map((ask) => ask(fence, script))
        for (const command of [...asked, { kind: 'cancel', fence } as const]) {
          const answer = wordOf(script.applyCommand(command), {})
          expect([name, command.kind, answer]).toEqual([name, command.kind, 'stale'])
        }
        expect(wordOf(script.applyCommand({ kind: 'expire', fence }), {})).toBe('stale')
      }
      expect(wordOf(script.applyCommand({ kind: 'done', attempt: attempt + 1 }), {})).toMatch(
        /stale/,
      )
    }
  })

  it('cannot be moved by its holder once the lease has run out, unless it committed before', () => {
    for (const [name, situation] of situationsOf(lifecycle)) {
      if (situation.status === undefined) continue
      const done = situation.status === 'COMMITTED' || situation.status === 'DONE'
      for (const [label, ask] of Object.entries(ATTEMPT_COMMANDS)) {
        const script = bring(lifecycle, situation)
        script.clock.advance(30_000)
        const answer = wordOf(script.applyCommand(ask(lastFence(script), script)), {})
        const expected = done ? (label.startsWith('commit') ? 'same' : 'comm') : 'stale'
        expect([name, label, answer]).toEqual([name, label, expected])
      }
    }
  })
})

describe('a job that does not exist', () => {
  const paths: Record<string, [now: string, later: string, held: string]> = {
    standard: ['created→queued', 'created→scheduled', 'created'],
    hardened: ['pending', 'pending', 'E_UNSUPPORTED'],
    leased: ['PENDING', 'PENDING', 'E_UNSUPPORTED'],
    document: ['CREATED→QUEUED', 'CREATED', 'CREATED'],
    task: ['pending', 'pending', 'E_UNSUPPORTED'],
  }
  const pathOfCreate = (decision: Decision) => {
    if (decision.kind === 'rejected') return decision.error.code
    if (decision.kind === 'same') return 'same'
    return [...(decision.fact.via ?? []), decision.fact.to].join('→')
  }

  it.each(LIFECYCLES)('is created by $name as far towards ready as its time allows', (own) => {
    const now = new JobScript(own).create()
    const script = new JobScript(own)
    const later = script.create({ runAt: script.clock.now() + 1 })
    const held = new JobScript(own).create({ hold: true })
    expect([now, later, held].map(pathOfCreate)).toEqual(paths[own.name])
  })

  it.each(LIFECYCLES)('answers every command of $name but create with not found', (own) => {
    const fence = { attempt: 1, claim: '99999999-9999-7999-8999-999999999999' }
    const script = new JobScript(own)
    const attempts = Object.values(ATTEMPT_COMMANDS).map((ask) => ask(fence, script))
    const plain = [
      { kind: 'submit' },
      { kind: 'schedule', runAt: 1 },
      { kind: 'due' },
      { kind: 'reschedule', runAt: 1 },
      { kind: 'prioritise', priority: 1 },
      { kind: 'exhaust' },
      { kind: 'signal', name: 'approval', key: 'k1' },
      { kind: 'done', attempt: 1 },
      { kind: 'expire', fence },
      { kind: 'cancel' },
    ] as const
    const byOperator = ['park', 'redrive', 'discard', 'repair'] as const
    const answers = [
      ...[...attempts, ...plain].map((command) => script.applyCommand(command)),
      ...byOperator.map((kind) => script.operate({ kind })),
      script.operate({ kind: 'force', to: own.ready }),
      script.claim(),
    ]
    expect(new Set(answers.map((answer) => wordOf(answer, {})))).toEqual(
      new Set(['E_JOB_NOT_FOUND']),
    )
    expect(script.facts).toEqual([])
  })
})

describe('a job whose recovery waits for an operator', () => {
  const crashed: Record<string, string> = {
    standard: 'running→retrying',
    hardened: 'running→failed failed→pending',
    leased: 'RUNNING→PENDING',
    document: 'RUNNING→RETRYING',
    task: 'running→pending',
  }

  it.each(LIFECYCLES)('of $name is flagged once, waits, and crashes only when approved', (own) => {
    const script = new JobScript(own)
    script.create({ policy: { ...own.policy, recovery: 'operator' } })
    script.claim()
    script.clock.advance(30_000)
    const { fence } = script
    const expire = { kind: 'expire', fence } as const
    expect(wordOf(script.applyCommand(expire), {})).toBe('note')
    expect(script.job).toMatchObject({ stalled: true, state: own.held, reason: 'stalled' })
    expect(wordOf(script.applyCommand(expire), {})).toBe('same')
    // The word of a client is not an approval.
    expect(wordOf(script.applyCommand({ ...expire, approved: true }), {})).toBe('E_COMMAND_INVALID')
    const decision = script.operate({ ...expire, approved: true })
    const hops = decision.kind === 'fact' ? hopsOf(decision.fact) : []
    expect(hops.map(({ from, to }) => `${from}→${to}`).join(' ')).toBe(crashed[own.name])
    expect(script.job.stalled).toBe(false)
    expect(DEFAULT_POLICY.recovery).toBe('automatic')
  })

  it.each(LIFECYCLES)('of $name that never began is given back without asking', (own) => {
    const script = new JobScript(own)
    script.create({ policy: { ...own.policy, recovery: 'operator' } })
    script.claim({ start: false })
    script.clock.advance(30_000)
    script.applyCommand({ kind: 'expire', fence: script.fence })
    expect(script.job).toMatchObject({ state: own.ready, releases: 1, crashes: 0, stalled: false })
  })
})

describe.each(LIFECYCLES)('a claim in lifecycle $name', (lifecycle) => {
  it('that is repeated after a lost reply is the same, and a second claim is stale', () => {
    const script = new JobScript(lifecycle)
    script.create()
    script.claim()
    const { attempt, claim } = script.fence
    const again = { kind: 'claim', worker: 'worker-1', leaseUntil: 1, start: true } as const
    expect(wordOf(script.applyCommand({ ...again, claim }), {})).toBe('same')
    expect(wordOf(script.claim(), {})).toBe('stale')
    expect(script.job.attempt).toBe(attempt)
  })

  it('asks for a lease that ends in the future', () => {
    const script = new JobScript(lifecycle)
    script.create()
    expect(wordOf(script.claim({ leaseMs: 0 }), {})).toBe('E_COMMAND_INVALID')
    expect(wordOf(script.claim({ leaseMs: 1 }), { [lifecycle.held]: 'held' })).toBe('→held')
  })
})

const PARKS_BY_REASON = LIFECYCLES.filter(({ name }) => /leased|document|task/.test(name))

describe.each(PARKS_BY_REASON)('a job that is parked without a state, in $name,', (lifecycle) => {
  const park = () => {
    const script = new JobScript(lifecycle)
    script.create()
    script.claim()
    script.clock.advance(10)
    script.operate({ kind: 'park' })
    return script
  }

  it('was given back, has lost its holder, and keeps the reason', () => {
    const { job, facts } = park()
    expect(job).toMatchObject({ state: lifecycle.ready, blockedReason: 'parked', execution: null })
    expect(facts.at(-1)).toMatchObject({
      trigger: 'park',
      actor: 'operator',
      operator: 'ann',
      execution: { attempt: 1, statuses: ['ABORTED'], abort: 'forced' },
    })
    expect(facts.at(-1)?.execution).not.toHaveProperty('final')
  })

  it('runs again at once when it is redriven', () => {
    const script = park()
    script.clock.advance(10)
    expect(wordOf(script.operate({ kind: 'redrive' }), {})).toBe('note')
    expect(script.job).toMatchObject({ blockedReason: null, runAt: script.clock.now() })
    expect(script.claim().kind).toBe('fact')
    expect(script.job.attempt).toBe(2)
  })

  it('ends when it is cancelled or forced aside, and keeps no reason to be parked for', () => {
    const cancelled = park()
    cancelled.applyCommand({ kind: 'cancel' })
    expect(cancelled.job).toMatchObject({ outcome: 'failed', blockedReason: null })
    const forced = park()
    forced.operate({ kind: 'force', to: cancelled.job.state })
    expect(forced.job).toMatchObject({ outcome: 'failed', blockedReason: null })
  })
})

describe('the same wish again', () => {
  it('for a due time or a priority that the job has already writes nothing', () => {
    const script = new JobScript(lifecycleOf('standard'))
    const runAt = script.clock.now() + 500
    script.create({ runAt, priority: 3 })
    expect(wordOf(script.applyCommand({ kind: 'schedule', runAt }), {})).toBe('same')
    expect(wordOf(script.applyCommand({ kind: 'reschedule', runAt }), {})).toBe('same')
    expect(wordOf(script.applyCommand({ kind: 'prioritise', priority: 3 }), {})).toBe('same')
    expect(script.facts).toHaveLength(1)
  })

  it('for a due time that has come is the same for a ready job, whatever the time was', () => {
    const script = new JobScript(lifecycleOf('task'))
    script.create()
    script.clock.advance(1)
    expect(wordOf(script.applyCommand({ kind: 'reschedule', runAt: 0 }), {})).toBe('same')
  })
})

describe('a job that is forced back to its first state', () => {
  it.each([
    ['standard', 'created'],
    ['document', 'CREATED'],
  ])('of %s is held back until it is submitted again', (name, initial) => {
    const script = new JobScript(lifecycleOf(name))
    script.create()
    script.claim()
    script.operate({ kind: 'force', to: initial })
    expect(script.job).toMatchObject({ state: initial, runAt: null, execution: null })
    script.clock.advance(1_000_000)
    expect(script.applyCommand({ kind: 'due' }).kind).toBe('rejected')
    script.applyCommand({ kind: 'submit' })
    expect(script.job).toMatchObject({ state: script.lifecycle.ready, attempt: 1 })
    expect(checkFacts(script.lifecycle, script.facts)).toEqual([])
  })
})
