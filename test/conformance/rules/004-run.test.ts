// R4 (runs): the run machine, its guards, rewinding on resume, events, snapshot and staleness.
import fc from 'fast-check'
import { analyse, encode, foldRun, InvalidTransition, move, type RunEnvelope } from 'pawl/rules'
import { documentationRun, type RunEvent } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { anyMoves, play } from '../../core/run-arbitraries.ts'
import {
  ACTIVE,
  answerOf,
  ENDED,
  errorOf,
  factsOf,
  HAPPY_PATH,
  hash,
  longLife,
  newRun,
  runIn,
  STATES,
  type State,
  start,
  TRANSITIONAL,
  targetsOf,
  throughText,
  walkTo,
} from '../../core/run-support.ts'

const typesOf = (events: readonly RunEvent[]) => events.map(({ type }) => type)
const resume = { kind: 'rewind', reason: 'resume' } as const

describe('the machine of R4', () => {
  it('the machine has exactly the fifteen documented states', () => {
    const { machine } = documentationRun
    expect([...machine.states.keys()]).toEqual([
      ...['CREATED', 'CLONED_INPUTS', 'INGESTED', 'FACTS_READY', 'PLAN_READY', 'DRAFTING'],
      ...['DRAFT_READY', 'LINKING', 'VALIDATING', 'FIXING', 'READY_FOR_PR', 'PR_OPENED'],
      ...['DONE', 'FAILED', 'CANCELLED'],
    ])
    expect(machine.initial).toBe('CREATED')
    const { terminal, stable, transitional, endless } = analyse(machine)
    expect(terminal).toEqual(['DONE', 'FAILED', 'CANCELLED'])
    expect(stable).toEqual(['PLAN_READY', 'DRAFT_READY', 'READY_FOR_PR'])
    expect(transitional).toEqual(['DRAFTING', 'LINKING', 'VALIDATING', 'FIXING'])
    expect(endless).toEqual([])
  })

  it('every ordered pair of states is an edge or refused, as the table says', () => {
    const { machine } = documentationRun
    for (const from of STATES) {
      for (const to of STATES) {
        const legal = targetsOf(from).includes(to)
        const found = move(machine, from, { to }).kind
        expect([from, to, found]).toEqual([from, to, legal ? 'edge' : 'invalid'])
        // In VALIDATING the guards ask for the validation that the edge is for.
        const script = from === 'VALIDATING' ? newRun() : runIn(from)
        if (from === 'VALIDATING') walkTo(script, from, to !== 'FIXING')
        const answer = answerOf(script.walk(to))
        expect([from, to, answer]).toEqual([from, to, legal ? 'facts' : 'E_TRANSITION_INVALID'])
        expect(script.run.run_state).toBe(legal ? to : from)
      }
    }
    expect(machine.edges.filter((edge) => edge.because !== undefined)).toEqual([])
  })

  it('a run goes from CREATED to DONE along the documented path', () => {
    const script = runIn('DONE')
    const moves = script.events.filter(({ type }) => type === 'RUN_STATE_CHANGED')
    expect(moves.map(({ data }) => data)).toMatchObject(
      HAPPY_PATH.map((to_state, i) => ({ from_state: HAPPY_PATH[i - 1] ?? 'CREATED', to_state })),
    )
    expect(moves).toHaveLength(11)
    expect(typesOf(script.events)).toHaveLength(13)
  })
})

describe('guards', () => {
  it('READY_FOR_PR needs a last validation that is ok', () => {
    const script = runIn('LINKING')
    script.walk('VALIDATING')
    expect(answerOf(script.walk('READY_FOR_PR'))).toBe('E_GUARD_REFUSED')
    for (const ok of [true, false]) script.applyCommand({ kind: 'record-validation', ok })
    expect(answerOf(script.walk('READY_FOR_PR'))).toBe('E_GUARD_REFUSED')
    expect(script.run.run_state).toBe('VALIDATING')
    script.applyCommand({ kind: 'record-validation', ok: true })
    expect(answerOf(script.walk('READY_FOR_PR'))).toBe('facts')
  })

  it('FIXING needs a failed validation and fix attempts left', () => {
    const script = runIn('LINKING')
    script.walk('VALIDATING')
    expect(answerOf(script.walk('FIXING'))).toBe('E_GUARD_REFUSED')
    script.applyCommand({ kind: 'record-validation', ok: true })
    expect(answerOf(script.walk('FIXING'))).toBe('E_GUARD_REFUSED')
    script.applyCommand({ kind: 'record-validation', ok: false })
    expect(script.run.fix_attempts).toBe(0)
    expect(answerOf(script.walk('FIXING'))).toBe('facts')
    // It counts when its work has run, not when the state is entered.
    expect(script.run.fix_attempts).toBe(0)
    expect(answerOf(script.walk('VALIDATING'))).toBe('facts')
    expect(script.run).toMatchObject({ run_state: 'VALIDATING', fix_attempts: 1 })
    // The validation before the fix says nothing about the result of the fix.
    expect(answerOf(script.walk('FIXING'))).toBe('E_GUARD_REFUSED')
  })

  it('a run fails when its fix attempts are used up', () => {
    for (const [asked, allowed] of [[undefined, 3] as const, [0, 0] as const, [1, 1] as const]) {
      const script = newRun(asked)
      walkTo(script, 'VALIDATING', false)
      for (let i = 0; i < allowed; i++) {
        expect(answerOf(script.walk('FIXING', 'VALIDATING'))).toBe('facts')
        script.applyCommand({ kind: 'record-validation', ok: false })
      }
      expect(script.run).toMatchObject({ fix_attempts: allowed, max_fix_attempts: allowed })
      expect(factsOf(script.walk('FIXING'))).toEqual([
        { type: 'RUN_STATE_CHANGED', data: { from_state: 'VALIDATING', to_state: 'FAILED' } },
        { type: 'RUN_FAILED', data: { reason: 'max_fix_attempts exceeded' } },
      ])
      expect(script.run).toMatchObject({ run_state: 'FAILED', fix_attempts: allowed })
    }
  })
})

describe('ends', () => {
  it('every state that has not ended can fail', () => {
    expect(ACTIVE).toHaveLength(12)
    for (const from of ACTIVE) {
      const script = runIn(from)
      expect(factsOf(script.applyCommand({ kind: 'fail', reason: 'disk full' }))).toEqual([
        { type: 'RUN_STATE_CHANGED', data: { from_state: from, to_state: 'FAILED' } },
        { type: 'RUN_FAILED', data: { reason: 'disk full' } },
      ])
      expect(script.run).toMatchObject({ run_state: 'FAILED', ended_because: 'disk full' })
    }
  })

  it('every state that has not ended can be cancelled', () => {
    for (const from of ACTIVE) {
      const script = runIn(from)
      expect(factsOf(script.applyCommand({ kind: 'cancel', reason: 'not wanted' }))).toEqual([
        { type: 'RUN_STATE_CHANGED', data: { from_state: from, to_state: 'CANCELLED' } },
        { type: 'RUN_CANCELLED', data: { reason: 'not wanted' } },
      ])
      expect(script.run).toMatchObject({ run_state: 'CANCELLED', ended_because: 'not wanted' })
    }
  })

  it('a run that has ended accepts no transition', () => {
    for (const from of ENDED) {
      const script = runIn(from)
      const before = script.run
      for (const to of STATES) expect(answerOf(script.walk(to))).toBe('E_TRANSITION_INVALID')
      const stale = { kind: 'rewind', reason: 'stale', to: 'PLAN_READY' } as const
      for (const rewind of [resume, stale])
        expect(answerOf(script.applyCommand(rewind))).toBe('E_RUN_ENDED')
      expect(script.run).toBe(before)
    }
  })
})

describe('what a transition leaves behind', () => {
  it('a refused transition is an error that names both states and changes nothing', () => {
    const script = runIn('PLAN_READY')
    const before = { run: script.run, events: script.events.length }
    const error = errorOf(script.walk('DONE'))
    expect(error).toBeInstanceOf(InvalidTransition)
    expect(error.code).toBe('E_TRANSITION_INVALID')
    expect(error.message).toBe('Invalid transition: PLAN_READY → DONE')
    const allowed = ['DRAFTING', 'FAILED', 'CANCELLED']
    expect(error).toMatchObject({ from: 'PLAN_READY', to: 'DONE', allowed })
    expect({ run: script.run, events: script.events.length }).toEqual(before)
  })

  it('a refused transition is told to telemetry and not to the log', () => {
    for (const from of ['PLAN_READY', 'DONE'] as const) {
      const script = runIn(from)
      const before = script.events.length
      expect(script.walk('INGESTED')).toMatchObject({
        kind: 'rejected',
        telemetry: {
          type: 'INVALID_STATE_TRANSITION',
          data: { from_state: from, to_state: 'INGESTED' },
        },
      })
      expect(script.events).toHaveLength(before)
    }
  })

  it('a valid transition is one RUN_STATE_CHANGED event with from_state, to_state and time', () => {
    const script = newRun()
    script.clock.advance(61_000)
    script.walk('CLONED_INPUTS')
    expect(script.events.slice(1)).toEqual([
      {
        event_id: '00000000-0000-7000-8000-000000000002',
        run_id: 'run-1',
        seq: 2,
        ts: '2026-01-01T00:01:01.000Z',
        type: 'RUN_STATE_CHANGED',
        trace_id: 'trace-1',
        span_id: 'span-1',
        actor: 'test',
        data: { from_state: 'CREATED', to_state: 'CLONED_INPUTS' },
      },
    ])
  })
})

describe('resuming', () => {
  it('resume rewinds from DRAFTING to PLAN_READY', () => {
    const script = runIn('DRAFTING')
    const data = { from_state: 'DRAFTING', to_state: 'PLAN_READY', reason: 'resume' }
    expect(factsOf(script.applyCommand(resume))).toEqual([{ type: 'RESUME_REWIND', data }])
    expect(script.run.run_state).toBe('PLAN_READY')
    expect(answerOf(script.walk('DRAFTING', 'DRAFT_READY'))).toBe('facts')
  })

  it('resume rewinds from LINKING, VALIDATING and FIXING to DRAFT_READY', () => {
    for (const from of ['LINKING', 'VALIDATING', 'FIXING'] as const) {
      const script = runIn(from)
      const data = { from_state: from, to_state: 'DRAFT_READY', reason: 'resume' }
      expect(factsOf(script.applyCommand(resume))).toEqual([{ type: 'RESUME_REWIND', data }])
      expect(answerOf(script.walk('LINKING', 'VALIDATING'))).toBe('facts')
    }
  })

  it('a rewind goes only to a stable state that the run has visited', () => {
    const stable = ['PLAN_READY', 'DRAFT_READY', 'READY_FOR_PR']
    fc.assert(
      fc.property(anyMoves, (steps) => {
        const visited = new Set<string>()
        for (const { type, data } of play(steps).events) {
          if (type === 'RUN_STATE_CHANGED') visited.add(data.to_state)
          if (type !== 'RESUME_REWIND') continue
          // What is stale may lie before all of them; a resume alone never goes there.
          if (data.initial === true) {
            expect(data).toMatchObject({ to_state: 'CREATED', reason: 'stale' })
            continue
          }
          expect(stable.filter((state) => visited.has(state))).toContain(data.to_state)
        }
      }),
    )
    for (const from of ['VALIDATING', 'FIXING'] as const) {
      const skip = { kind: 'rewind', reason: 'stale', to: 'READY_FOR_PR' } as const
      expect(answerOf(runIn(from).applyCommand(skip))).toBe('E_REWIND_REFUSED')
    }
  })
})

describe('rewinding and continuing', () => {
  it('a rewind is an event of its own kind and no edge', () => {
    for (const from of TRANSITIONAL) {
      const to = from === 'DRAFTING' ? 'PLAN_READY' : 'DRAFT_READY'
      const script = runIn(from)
      expect(answerOf(script.walk(to))).toBe('E_TRANSITION_INVALID')
      expect(factsOf(script.applyCommand(resume)).map(({ type }) => type)).toEqual([
        'RESUME_REWIND',
      ])
    }
    const others = ACTIVE.filter((state) => !(TRANSITIONAL as readonly string[]).includes(state))
    for (const from of others)
      expect(answerOf(runIn(from).applyCommand(resume))).toBe('E_REWIND_REFUSED')
    const stale = { kind: 'rewind', reason: 'stale', to: 'PLAN_READY' } as const
    expect(factsOf(runIn('PR_OPENED').applyCommand(stale))).toHaveLength(1)
  })

  it('the count of fix attempts survives a rewind', () => {
    const script = runIn('FIXING')
    script.walk('VALIDATING')
    script.applyCommand({ kind: 'record-validation', ok: false })
    script.walk('FIXING')
    script.applyCommand({ kind: 'count-fix' })
    script.applyCommand(resume)
    expect(script.run).toMatchObject({ run_state: 'DRAFT_READY', fix_attempts: 2 })
    walkTo(script, 'VALIDATING', false).walk('FIXING')
    script.applyCommand({ kind: 'count-fix' })
    expect(script.run).toMatchObject({ run_state: 'FIXING', fix_attempts: 3 })
    script.applyCommand(resume)
    walkTo(script, 'VALIDATING', false).walk('FIXING')
    expect(script.run).toMatchObject({ run_state: 'FAILED', fix_attempts: 3 })
  })

  it('resume continues in place from every other active state', () => {
    const next: Partial<Record<State, State>> = {
      ...{ CREATED: 'CLONED_INPUTS', CLONED_INPUTS: 'INGESTED', INGESTED: 'FACTS_READY' },
      ...{ FACTS_READY: 'PLAN_READY', PLAN_READY: 'DRAFTING', DRAFT_READY: 'LINKING' },
      ...{ READY_FOR_PR: 'PR_OPENED', PR_OPENED: 'DONE' },
    }
    for (const [from, to] of Object.entries(next) as [State, State][]) {
      const script = runIn(from)
      const before = script.run
      expect(errorOf(script.applyCommand(resume)).hint).toContain('Continue in place')
      expect(script.run).toBe(before)
      expect(answerOf(script.walk(to))).toBe('facts')
    }
    for (const ended of ENDED) {
      const script = runIn(ended)
      const before = script.events.length
      expect(errorOf(script.applyCommand(resume)).hint).toContain('pawl run fork')
      expect(script.events).toHaveLength(before)
    }
  })
})

function checkArtifactsIndex() {
  const script = runIn('DRAFTING')
  const first = { name: 'plan', path: 'out/plan.json', sha256: hash(1), worker: 'planner' }
  script.applyCommand({
    kind: 'write-artifact',
    ...first,
    schemaId: 'plan.v1',
    workItem: 'plan-it',
  })
  const own = { work_item: 'plan-it', stale_because: null }
  const documented = { path: 'out/plan.json', sha256: hash(1), schema_id: 'plan.v1' }
  const written = { writer_worker: 'planner', ts: '2026-01-01T00:00:00.000Z' }
  expect(script.run.artifacts_index).toEqual({ plan: { ...documented, ...written, ...own } })
  script.clock.advance(1)
  const again = { name: 'plan', path: 'out/2.json', sha256: hash(2), worker: 'other' }
  script.applyCommand({ kind: 'write-artifact', ...again })
  const replaced = { path: 'out/2.json', sha256: hash(2), schema_id: null }
  const rewritten = { writer_worker: 'other', ts: '2026-01-01T00:00:00.001Z' }
  const none = { work_item: null, stale_because: null }
  const expected = { plan: { ...replaced, ...rewritten, ...none } }
  expect(script.run.artifacts_index).toEqual(expected)
  expect(foldRun(throughText(script.events))?.artifacts_index).toEqual(expected)
}

describe('events and snapshot', () => {
  it('every event carries its ids, its type, its time, trace_id and span_id', () => {
    const [failed, cancelled] = [longLife(), runIn('CANCELLED')]
    failed.applyCommand({ kind: 'fail', reason: 'disk full' })
    const events = [...failed.events, ...cancelled.events]
    expect([...new Set(typesOf(events))].sort()).toEqual([
      ...['ARTIFACT_REVALIDATED', 'ARTIFACT_STALE', 'ARTIFACT_WRITTEN', 'COMMIT_LINKED'],
      ...['FIX_ATTEMPTED', 'FIX_ATTEMPTS_RESET'],
      ...['ISSUE_OPENED', 'ISSUE_RESOLVED', 'LOG_TAIL_DISCARDED', 'RESUME_REWIND'],
      ...['RUN_CANCELLED', 'RUN_CREATED', 'RUN_FAILED', 'RUN_STATE_CHANGED'],
      ...['SECTION_STATE_CHANGED', 'VALIDATION_RECORDED', 'WORK_ITEM_FAILED'],
      ...['WORK_ITEM_FINISHED', 'WORK_ITEM_STARTED'],
    ])
    for (const event of events) {
      expect(event).toMatchObject({ run_id: 'run-1', trace_id: 'trace-1', span_id: 'span-1' })
      expect(event.event_id).toMatch(/^[0-9a-f-]{36}$/)
      expect(new Date(event.ts).toISOString()).toBe(event.ts)
    }
    expect(failed.events.map(({ seq }) => seq)).toEqual(failed.events.map((_, i) => i + 1))
    expect(new Set(failed.events.map(({ event_id }) => event_id)).size).toBe(failed.events.length)
    const [ts, trace_id, span_id, actor] = ['2026-01-01T00:00:00.000Z', 't', 's', 'a']
    // @ts-expect-error An envelope without a trace is refused by the compiler.
    const untraced: RunEnvelope = { ts, span_id, actor }
    // @ts-expect-error So is one without a span.
    const spanless: RunEnvelope = { ts, trace_id, actor }
    expect([untraced, spanless]).toHaveLength(2)
  })

  it('the snapshot has the documented fields', () => {
    const script = longLife()
    const documented = ['run_id', 'run_state', 'section_states', 'artifacts_index', 'work_items']
    const added = ['issues', 'last_seq', 'machine', 'fix_attempts', 'max_fix_attempts']
    // What guards, rewinding, traces and ends need; each is given by an event.
    const needed = ['validation', 'stable_trail', 'commits', 'ended_because']
    expect(Object.keys(script.run).sort()).toEqual([...documented, ...added, ...needed].sort())
    expect(script.run).toMatchObject({
      run_id: 'run-1',
      run_state: 'READY_FOR_PR',
      last_seq: script.events.length,
      machine: { name: 'run', version: 1 },
      fix_attempts: 0,
      commits: ['c'.repeat(40)],
    })
  })

  it(
    'an ARTIFACT_WRITTEN event fills the index with path, sha256, schema_id, writer_worker and ts',
    checkArtifactsIndex,
  )
})

describe('sections, issues and work items', () => {
  it('section states are kept and replayed', () => {
    const script = runIn('DRAFTING')
    for (const [section, to] of [['intro', 'drafted'] as const, ['end', 'drafted'] as const]) {
      script.applyCommand({ kind: 'change-section', section, to })
    }
    const change = script.applyCommand({ kind: 'change-section', section: 'intro', to: 'linked' })
    const data = { section: 'intro', from_state: 'drafted', to_state: 'linked' }
    expect(factsOf(change)).toEqual([{ type: 'SECTION_STATE_CHANGED', data }])
    const kept = { end: 'drafted', intro: 'linked' }
    expect(foldRun(throughText(script.events))?.section_states).toEqual(kept)
  })

  it('issues are open or resolved, in a stable order', () => {
    const open = (issue: string) =>
      ({ kind: 'open-issue', issue, severity: 'error', message: 'look' }) as const
    const one = runIn('VALIDATING')
    const other = runIn('VALIDATING')
    for (const issue of ['z', 'a', 'm']) one.applyCommand(open(issue))
    for (const issue of ['z', 'm']) one.applyCommand({ kind: 'resolve-issue', issue })
    for (const issue of ['m', 'z', 'a']) other.applyCommand(open(issue))
    for (const issue of ['m', 'z']) other.applyCommand({ kind: 'resolve-issue', issue })
    const statuses = Object.entries(one.run.issues).map(([key, { status }]) => [key, status])
    expect(Object.fromEntries(statuses)).toEqual({ a: 'open', m: 'resolved', z: 'resolved' })
    expect(encode(one.run.issues)).toBe(encode(other.run.issues))
    expect(encode(foldRun(throughText(one.events))?.issues)).toBe(encode(one.run.issues))
    expect(encode(one.run.issues)).toMatch(/^{"a":.*"m":.*"z":/)
    expect(answerOf(one.applyCommand({ kind: 'resolve-issue', issue: 'q' }))).toBe(
      'E_COMMAND_INVALID',
    )
  })

  it('the history of each work item is kept and replayed', () => {
    const script = runIn('DRAFTING')
    start(script, 'draft')
    script.applyCommand({ kind: 'fail-item', key: 'draft', error: 'model is away' })
    expect(script.run.work_items.draft).toMatchObject({ status: 'failed', error: 'model is away' })
    script.clock.advance(1000)
    start(script, 'draft')
    script.clock.advance(1000)
    script.applyCommand({ kind: 'finish-item', key: 'draft' })
    expect(foldRun(throughText(script.events))?.work_items).toEqual({
      draft: {
        ...{ status: 'finished', attempts: 2, inputs: {}, declared: [] },
        ...{ code: null, worker: 'writer' },
        ...{ started_at: '2026-01-01T00:00:01.000Z', finished_at: '2026-01-01T00:00:02.000Z' },
        error: null,
      },
    })
    const tries = script.events.filter(({ type }) => type.startsWith('WORK_ITEM'))
    const ways = ['STARTED', 'FAILED', 'STARTED', 'FINISHED'].map((end) => `WORK_ITEM_${end}`)
    expect(typesOf(tries)).toEqual(ways)
  })
})
