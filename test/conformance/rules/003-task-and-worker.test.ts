// R3 (worker loop): its tasks and its worker. Expected tables are typed from R3.
import { Terminal } from 'pawl'
import { analyse, DefinitionInvalid, move, policyFor, task, workerMachine } from 'pawl/rules'
import { expect, it } from 'vitest'
import { ERROR_WAIT_MS } from '../../../src/core/worker.ts'
import {
  ASK_NAMES,
  answerOf,
  ask,
  factOf,
  fail,
  LEASE_MS,
  readPairs,
  refusalOf,
  running,
  submitted,
  wayOf,
} from '../played-job.ts'
import { verbsOf } from '../task-job.ts'

const DOCUMENTED = [
  'Startup',
  'Connecting',
  'Recovery',
  'Polling',
  'Backoff',
  'Idle',
  'Claiming',
  'Processing',
  'ReportingSuccess',
  'ReportingFailure',
  'ErrorWait',
]
const ADDED = ['Draining', 'Stopped']

function workerMove(from: string, request: { to: string } | { on: string }) {
  return move<string, string>(workerMachine, from, request)
}

/** The states through which triggers lead; it ends with the first trigger that is refused. */
function walk(start: string, ...triggers: readonly string[]): string[] {
  const trace = [start]
  for (const on of triggers) {
    const answer = workerMove(trace[trace.length - 1] ?? '', { on })
    trace.push(answer.kind === 'edge' ? answer.edge.to : `${on} is refused`)
  }
  return trace
}

// The worker machine.

it('the worker machine has exactly the eleven documented states, and Draining and Stopped', () => {
  const states = [...DOCUMENTED, ...ADDED]
  expect([...workerMachine.states.keys()].sort()).toEqual(states.sort())
  expect(workerMachine.initial).toBe('Startup')
  expect(analyse(workerMachine).terminal).toEqual(['Stopped'])
})

it('every ordered pair of documented worker states is an edge or refused, as documented', () => {
  // The columns are the states in the order of the rows; + is the one edge that was added.
  const pairs = readPairs(`
                      0  1  2  3  4  5  6  7  8  9  10
    Startup           no ok no no no no no no no no ok
    Connecting        no no ok no no no no no no no ok
    Recovery          no no no ok no no no no no no ok
    Polling           no no +  no ok no ok no no no ok
    Backoff           no no no no no ok no no no no ok
    Idle              no ok no no no no no no no no ok
    Claiming          no no no ok no no no ok no no ok
    Processing        no no no no no no no no ok ok ok
    ReportingSuccess  no no no ok no no no no no no ok
    ReportingFailure  no no no ok no no no no no no ok
    ErrorWait         no ok no no no no no no no no no
  `)
  expect(pairs).toHaveLength(121)
  for (const { from, to: column, word } of pairs) {
    const to = DOCUMENTED[Number(column)] ?? ''
    const answer = workerMove(from, { to })
    const added = answer.kind === 'edge' && answer.edge.because !== undefined
    const found = answer.kind === 'edge' ? (added ? '+' : 'ok') : 'no'
    expect([from, to, found]).toEqual([from, to, word])
    if (answer.kind !== 'edge') expect(answer.kind).toBe('invalid')
  }
})

it('added worker edges are listed apart, each with its reason', () => {
  const added = workerMachine.edges.filter(({ because }) => because !== undefined)
  expect(added.map(({ from, to }) => `${from} → ${to}`).sort()).toEqual(
    [
      'Polling → Recovery',
      ...DOCUMENTED.map((from) => `${from} → Draining`),
      'Draining → Stopped',
    ].sort(),
  )
  for (const { because } of added) expect(because?.trim()).not.toBe('')
  // The 15 named edges and one to ErrorWait from each of the 9 states that have no other.
  expect(workerMachine.edges.length - added.length).toBe(24)
})

it('each documented worker transition has its own trigger', () => {
  const rows = [
    ['Startup', 'run', 'Connecting'],
    ['Connecting', 'connected', 'Recovery'],
    ['Connecting', 'connection-failed', 'ErrorWait'],
    ['Recovery', 'recovered', 'Polling'],
    ['Recovery', 'recovery-skipped', 'Polling'],
    ['Polling', 'task-found', 'Claiming'],
    ['Polling', 'no-task-found', 'Backoff'],
    ['Backoff', 'interval-set', 'Idle'],
    ['Idle', 'sleep-done', 'Connecting'],
    ['Claiming', 'lease-acquired', 'Processing'],
    ['Claiming', 'claim-lost', 'Polling'],
    ['Processing', 'execution-ok', 'ReportingSuccess'],
    ['Processing', 'execution-error', 'ReportingFailure'],
    ['ReportingSuccess', 'reported', 'Polling'],
    ['ReportingFailure', 'reported', 'Polling'],
    ['ErrorWait', 'retry-sleep-done', 'Connecting'],
  ]
  for (const [from = '', trigger = '', to] of rows) {
    expect(walk(from, trigger)).toEqual([from, to])
    // Nowhere else does the trigger mean anything.
    const sources = rows.filter(([, other]) => other === trigger).map(([source]) => source)
    for (const other of [...DOCUMENTED, ...ADDED].filter((state) => !sources.includes(state))) {
      expect(workerMove(other, { on: trigger }).kind).toBe('invalid')
    }
  }
})

// The worker loop.

it('a worker boots from Startup through Connecting and Recovery to Polling', () => {
  const boot = ['Startup', 'Connecting', 'Recovery', 'Polling']
  expect(walk('Startup', 'run', 'connected', 'recovered')).toEqual(boot)
  expect(walk('Startup', 'run', 'connected', 'recovery-skipped')).toEqual(boot)
})

it('a failed connection waits in ErrorWait and connects again', () => {
  const trace = walk('Connecting', 'connection-failed', 'retry-sleep-done', 'connected')
  expect(trace).toEqual(['Connecting', 'ErrorWait', 'Connecting', 'Recovery'])
})

it('a round without work goes Polling, Backoff, Idle, Connecting', () => {
  const trace = walk('Polling', 'no-task-found', 'interval-set', 'sleep-done')
  expect(trace).toEqual(['Polling', 'Backoff', 'Idle', 'Connecting'])
  expect(walk('Connecting', 'connected', 'recovered')).toEqual([
    'Connecting',
    'Recovery',
    'Polling',
  ])
})

it('a round with work goes Polling, Claiming, Processing, ReportingSuccess, Polling', () => {
  const trace = walk('Polling', 'task-found', 'lease-acquired', 'execution-ok', 'reported')
  expect(trace).toEqual(['Polling', 'Claiming', 'Processing', 'ReportingSuccess', 'Polling'])
})

it(
  'a round with a failing task goes Polling, Claiming, Processing, ReportingFailure, Polling',
  failingRound,
)

function failingRound(): void {
  const trace = walk('Polling', 'task-found', 'lease-acquired', 'execution-error', 'reported')
  expect(trace).toEqual(['Polling', 'Claiming', 'Processing', 'ReportingFailure', 'Polling'])
}

it('a lost claim returns to Polling', () => {
  expect(walk('Polling', 'task-found', 'claim-lost')).toEqual(['Polling', 'Claiming', 'Polling'])
})

it.each(DOCUMENTED)(
  'an unhandled error leads from every documented state to ErrorWait, and from there to Connecting',
  (state) => {
    const again = walk('ErrorWait', 'retry-sleep-done', 'connected')
    expect(again).toEqual(['ErrorWait', 'Connecting', 'Recovery'])
    expect(ERROR_WAIT_MS).toBe(5000)
    // A worker that waits already has nothing better to do with another error.
    const target = state === 'ErrorWait' ? 'exception is refused' : 'ErrorWait'
    expect(walk(state, 'exception')).toEqual([state, target])
  },
)

it('no documented worker state ends the loop', () => {
  const { terminal, reachable } = analyse(workerMachine)
  for (const state of workerMachine.states.keys()) {
    if (ADDED.includes(state)) continue
    expect(terminal).not.toContain(state)
    // Polling itself is left and entered again.
    const onward = state === 'Polling' ? ['Connecting'] : ['Polling']
    expect(reachable.get(state)).toEqual(expect.arrayContaining(onward))
  }
  const intoStopped = workerMachine.edges.filter(({ to }) => to === 'Stopped')
  expect(intoStopped.map(({ from }) => from)).toEqual(['Draining'])
  expect(reachable.get('Draining')).toEqual(['Stopped'])
})

it('a worker that always finds work still recovers leases', () => {
  const round = ['task-found', 'lease-acquired', 'execution-ok', 'reported']
  const trace = walk('Polling', ...round, 'recovery-due', 'recovered', ...round)
  expect(trace.slice(4, 8)).toEqual(['Polling', 'Recovery', 'Polling', 'Claiming'])
  expect(trace.at(-1)).toBe('Polling')
})

// The task machine.

it('the task machine has exactly the four documented states', () => {
  expect([...task.machine.states.keys()].sort()).toEqual(['done', 'error', 'pending', 'running'])
  expect(task.machine.initial).toBe('pending')
  expect([task.ready, task.held]).toEqual(['pending', 'running'])
  expect(analyse(task.machine).terminal.toSorted()).toEqual(['done', 'error'])
})

it('every ordered pair of task states is an edge, the same state or refused, as documented', () => {
  const pairs = readPairs(`
             pending  running  done     error
    pending  same     edge     invalid  invalid
    running  edge     same     edge     edge
    done     invalid  invalid  same     invalid
    error    operator invalid  invalid  same
  `)
  expect(pairs).toHaveLength(16)
  for (const { from, to, word } of pairs) {
    const answer = move<string, string>(task.machine, from, { to })
    const byOperator = answer.kind === 'edge' && answer.edge.operator === true
    expect([from, to, byOperator ? 'operator' : answer.kind]).toEqual([from, to, word])
  }
  expect(task.machine.edges.filter(({ because }) => because !== undefined)).toEqual([])
})

it('a claim makes a pending task running with an owner and a lease', () => {
  const script = submitted(task)
  const fact = factOf(script.claim({ worker: 'worker-7' }))
  expect([wayOf(fact), fact.trigger]).toEqual(['pending → running', 'claim'])
  const leaseUntil = script.clock.now() + LEASE_MS
  expect(fact.execution).toMatchObject({ attempt: 1, worker: 'worker-7', leaseUntil })
  expect(script.job).toMatchObject({ attempt: 1, execution: { worker: 'worker-7', leaseUntil } })
})

it('a running task is not claimed again', () => {
  const script = running(task)
  const { job, fence } = script
  expect(answerOf(script.claim({ worker: 'worker-2' }))).toBe('E_STALE_FENCE')
  const claim = '00000000-0000-7000-8000-00000000ffff'
  for (const other of [
    { ...fence, attempt: 2 },
    { ...fence, attempt: 0 },
    { ...fence, claim },
  ]) {
    for (const command of verbsOf(other)) {
      expect([command.kind, answerOf(script.applyCommand(command))]).toEqual([
        command.kind,
        'E_STALE_FENCE',
      ])
    }
  }
  expect(script.job).toBe(job)
})

it('a done task is never picked up again', () => {
  for (const effects of [0, 1]) {
    for (const name of ASK_NAMES) {
      const script = running(task)
      script.applyCommand({ kind: 'commit', fence: script.fence, effects })
      if (effects > 0) script.applyCommand({ kind: 'done', attempt: 1 })
      const before = script.job
      expect(before.state).toBe('done')
      expect([name, ask(script, name).kind]).not.toContain('fact')
      expect(script.operate({ kind: 'force', to: 'pending' }).kind).toBe('rejected')
      expect(script.operate({ kind: 'repair', to: 'pending' }).kind).toBe('rejected')
      expect(script.job).toBe(before)
    }
  }
})

it('an exception ends the task in error, with its details and without a retry', () => {
  for (const thrown of [new TypeError('no such page'), new Terminal('no such page')]) {
    const script = running(task)
    const fact = factOf(fail(script, thrown))
    expect(wayOf(fact)).toBe('running → error')
    expect(fact.runAt).toBeUndefined()
    expect(fact.outcome).toBe('failed')
    expect(script.job).toMatchObject({ failures: 0, crashes: 0, outcome: 'failed' })
    expect(script.job.error?.message).toBe(`${thrown.name}: no such page`)
  }
  expect(() => policyFor(task, { retry: { max: 1 } })).toThrow(DefinitionInvalid)
  expect(() => policyFor(task, { retry: 'exponential' })).toThrow(DefinitionInvalid)
})

it('only an operator returns a task from error to pending', () => {
  const script = running(task)
  fail(script, new Error('broken'))
  const before = script.job
  for (const name of ASK_NAMES.filter((other) => other !== 'redrive')) {
    expect([name, ask(script, name).kind]).not.toContain('fact')
  }
  expect(script.job).toBe(before)
  expect(refusalOf(script.applyCommand({ kind: 'redrive' })).code).toBe('E_COMMAND_INVALID')
  const fact = factOf(script.operate({ kind: 'redrive' }, 'ann', 'the file is there now'))
  expect(wayOf(fact)).toBe('error → pending')
  expect(fact).toMatchObject({
    actor: 'operator',
    operator: 'ann',
    note: 'the file is there now',
  })
  expect(script.claim().kind).toBe('fact')
})
