// Every ordered pair of states and every trigger from every state, of every machine that ships,
// against tables that were typed by hand from the requirements R0 to R4.
import {
  allowedFrom,
  analyse,
  type InvalidTransition,
  JOB_TRIGGERS,
  LIFECYCLES,
  move,
} from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { type MachineTable, TABLES } from './tables.ts'

const words = (text = '') => text.split(/\s+/).filter((word) => word !== '')
const statesOf = (table: MachineTable) => Object.keys(table.documented)
const edgesIn = (targets: Readonly<Record<string, string>>) =>
  Object.entries(targets).flatMap(([from, to]) => words(to).map((each) => `${from}→${each}`))
const targetsOf = (table: MachineTable, from: string) => [
  ...words(table.documented[from]),
  ...words(table.added[from]),
]
const nameOf = ({ from, to }: { from: string; to: string }) => `${from}→${to}`

/** Every edge that a trigger takes, and every state from which it takes none. */
function triggersOf(table: MachineTable): Record<string, string> {
  const ends: Record<string, string> = {}
  for (const [trigger, edges] of Object.entries(table.triggers)) {
    for (const from of statesOf(table)) ends[`${from} on ${trigger}`] = 'refused'
    for (const edge of words(edges)) {
      const [from, to] = edge.split('→')
      ends[`${from} on ${trigger}`] = `${to}`
    }
  }
  return ends
}

function refusal(table: MachineTable, from: string, request: { to: string } | { on: string }) {
  const answer = move(table.machine, from, request)
  if (answer.kind !== 'invalid') throw new Error(`${from} was not refused`)
  return answer.error satisfies InvalidTransition
}

describe.each(TABLES)('the machine $name', (table) => {
  const { machine } = table

  it('has exactly the states of its table, and begins in the right one', () => {
    expect([...machine.states.keys()].toSorted()).toEqual(statesOf(table).toSorted())
    expect(machine.initial).toBe(table.initial)
    expect(machine.name).toBe(table.name)
    expect(machine.version).toBe(table.version ?? 1)
  })

  it('allows, repeats or refuses every ordered pair of states as its table says', () => {
    const expected: Record<string, string> = {}
    const actual: Record<string, string> = {}
    for (const from of statesOf(table)) {
      for (const to of statesOf(table)) {
        const same = table.sameState === 'noop' ? 'same' : 'invalid'
        const other = from === to ? same : 'invalid'
        expected[`${from}→${to}`] = targetsOf(table, from).includes(to) ? 'edge' : other
        actual[`${from}→${to}`] = move(machine, from, { to }).kind
      }
    }
    expect(actual).toEqual(expected)
    const count = (kind: string) => Object.values(actual).filter((own) => own === kind).length
    expect([count('edge'), count('same'), count('invalid')]).toEqual(table.counts)
  })

  it('gives back the very edge that a move would take', () => {
    for (const edge of [...edgesIn(table.documented), ...edgesIn(table.added)]) {
      const [from = '', to = ''] = edge.split('→')
      expect(move(machine, from, { to })).toMatchObject({ kind: 'edge', edge: { from, to } })
    }
  })

  it('has exactly the documented edges, and lists added ones apart with a reason each', () => {
    const documented = machine.edges.filter(({ because }) => because === undefined)
    const added = machine.edges.filter(({ because }) => because !== undefined)
    expect(documented.map(nameOf).toSorted()).toEqual(edgesIn(table.documented).toSorted())
    expect(added.map(nameOf).toSorted()).toEqual(edgesIn(table.added).toSorted())
    // A reason is a sentence or a clause, not a single word.
    for (const { because } of added) expect(because).toMatch(/\S+ \S+ \S+/)
  })

  it('leaves exactly the declared edges to operators', () => {
    const operator = machine.edges.filter((edge) => edge.operator === true)
    expect(operator.map(nameOf).toSorted()).toEqual(words(table.operator).toSorted())
  })

  it('has the terminal, stable and transitional states of its table', () => {
    const { terminal, stable, transitional } = analyse(machine)
    expect(terminal.toSorted()).toEqual(words(table.terminal).toSorted())
    expect(stable.toSorted()).toEqual(words(table.stable).toSorted())
    expect(transitional.toSorted()).toEqual(words(table.transitional).toSorted())
    const out = machine.edges.filter(({ from }) => terminal.includes(from))
    expect(out.every(({ operator }) => operator === true)).toBe(true)
  })

  it('takes each trigger from each state where its table says, and refuses it elsewhere', () => {
    const known = new Set(machine.edges.flatMap(({ on }) => on))
    expect([...known].toSorted()).toEqual(Object.keys(table.triggers).toSorted())
    const actual: Record<string, string> = {}
    for (const on of Object.keys(table.triggers)) {
      for (const from of statesOf(table)) {
        const answer = move(machine, from, { on })
        actual[`${from} on ${on}`] = answer.kind === 'edge' ? answer.edge.to : 'refused'
      }
    }
    expect(actual).toEqual(triggersOf(table))
  })
})

describe.each(TABLES)('a refusal by the machine $name', (table) => {
  it('names both states and every target that would have been allowed', () => {
    for (const from of statesOf(table)) {
      const allowed = targetsOf(table, from)
      for (const to of statesOf(table).filter((state) => !allowed.includes(state))) {
        if (from === to && table.sameState === 'noop') continue
        const error = refusal(table, from, { to })
        expect(error.message).toBe(`Invalid transition: ${from} → ${to}`)
        expect(error).toMatchObject({ code: 'E_TRANSITION_INVALID', from, to })
        expect(error.allowed.toSorted()).toEqual(allowed.toSorted())
        const targets = `leads only to ${error.allowed.join(', ')}`
        const ways = allowed.length === 0 ? 'has no outgoing edge' : targets
        expect(error.hint).toBe(`In machine "${table.name}", ${from} ${ways}.`)
        expect(error.details).toMatchObject({ machine: table.name, from, to })
      }
    }
  })

  it('names a trigger that does not apply', () => {
    for (const [step, end] of Object.entries(triggersOf(table))) {
      if (end !== 'refused') continue
      const [from = '', on = ''] = step.split(' on ')
      const error = refusal(table, from, { on })
      expect(error.message).toBe(`Invalid transition: ${from} → (${on})`)
      expect(error.hint).toBe(`In machine "${table.name}", ${on} does not apply in ${from}.`)
      expect(error.details).toMatchObject({ trigger: on })
      expect(error.allowed.toSorted()).toEqual(targetsOf(table, from).toSorted())
    }
  })

  it('meets unknown states and triggers, whatever their names', () => {
    const [known = ''] = statesOf(table)
    const foreign = ['nowhere', '', known.toLowerCase() === known ? 'CREATED' : 'created']
    for (const unknown of [...foreign, '__proto__', 'constructor', 'toString', `${known} `]) {
      expect(refusal(table, known, { to: unknown }).to).toBe(unknown)
      expect(refusal(table, unknown, { to: known }).allowed).toEqual([])
      // A state that does not exist is not "the same state" either.
      expect(refusal(table, unknown, { to: unknown }).from).toBe(unknown)
      expect(refusal(table, known, { on: unknown }).to).toBe(`(${unknown})`)
      expect(refusal(table, unknown, { on: unknown }).allowed).toEqual([])
      expect(allowedFrom(table.machine, unknown)).toEqual([])
    }
  })
})

describe('the lifecycles that ship', () => {
  it('are the five of the design, by their names', () => {
    const names = LIFECYCLES.map(({ name, version }) => `${name} ${version}`)
    expect(names).toEqual(['standard 2', 'hardened 1', 'leased 1', 'document 1', 'task 1'])
  })

  it('use no trigger outside the vocabulary of jobs, and leave none of it unused', () => {
    const used = TABLES.slice(0, 5).flatMap(({ triggers }) => Object.keys(triggers))
    expect([...new Set(used)].toSorted()).toEqual([...JOB_TRIGGERS].toSorted())
  })
})

describe('a trigger in the words of its requirements', () => {
  const at = (name: string, from: string, on: string) => {
    const table = TABLES.find((own) => own.name === name) as MachineTable
    const answer = move(table.machine, from, { on })
    return answer.kind === 'edge' ? answer.edge.to : 'refused'
  }

  it('leads where R0 says: start, succeed, fail, retry, quarantine, manual retry', () => {
    expect(at('hardened', 'pending', 'claim')).toBe('running')
    expect(at('hardened', 'running', 'succeed')).toBe('succeeded')
    expect(at('hardened', 'running', 'fail')).toBe('failed')
    expect(at('hardened', 'failed', 'due')).toBe('pending')
    expect(at('hardened', 'failed', 'give-up')).toBe('quarantined')
    expect(at('hardened', 'quarantined', 'redrive')).toBe('pending')
  })

  it('leads where R2 says, and never from RUNNING back to QUEUED', () => {
    expect(at('document', 'CREATED', 'submit')).toBe('QUEUED')
    expect(at('document', 'QUEUED', 'claim')).toBe('RUNNING')
    expect(at('document', 'RUNNING', 'succeed')).toBe('SUCCEEDED')
    expect(at('document', 'RUNNING', 'fail')).toBe('FAILED')
    expect(at('document', 'RUNNING', 'retry')).toBe('RETRYING')
    expect(at('document', 'RETRYING', 'due')).toBe('QUEUED')
    expect(at('document', 'QUEUED', 'exhaust')).toBe('FAILED')
    expect(at('document', 'QUEUED', 'cancel')).toBe('FAILED')
    expect(at('document', 'RUNNING', 'release')).toBe('RETRYING')
    expect(at('document', 'CREATED', 'claim')).toBe('refused')
  })

  it('leads where R3 says: the rows of its table, and its lost claim', () => {
    expect(at('worker', 'Startup', 'run')).toBe('Connecting')
    expect(at('worker', 'Connecting', 'connected')).toBe('Recovery')
    expect(at('worker', 'Connecting', 'connection-failed')).toBe('ErrorWait')
    expect(at('worker', 'Recovery', 'recovered')).toBe('Polling')
    expect(at('worker', 'Polling', 'task-found')).toBe('Claiming')
    expect(at('worker', 'Polling', 'no-task-found')).toBe('Backoff')
    expect(at('worker', 'Backoff', 'interval-set')).toBe('Idle')
    expect(at('worker', 'Idle', 'sleep-done')).toBe('Connecting')
    expect(at('worker', 'Claiming', 'lease-acquired')).toBe('Processing')
    expect(at('worker', 'Claiming', 'claim-lost')).toBe('Polling')
    expect(at('worker', 'Processing', 'execution-ok')).toBe('ReportingSuccess')
    expect(at('worker', 'Processing', 'execution-error')).toBe('ReportingFailure')
    expect(at('worker', 'ReportingSuccess', 'reported')).toBe('Polling')
    expect(at('worker', 'ReportingFailure', 'reported')).toBe('Polling')
    expect(at('worker', 'Processing', 'exception')).toBe('ErrorWait')
    expect(at('worker', 'ErrorWait', 'retry-sleep-done')).toBe('Connecting')
  })
})
