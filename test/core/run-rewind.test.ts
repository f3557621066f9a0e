// Going back: on resume to the last stable state, or because an input changed to an earlier one.
import { checkRun } from 'pawl/rules'
import { documentationRun } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { ACTIVE, answerOf, errorOf, factsOf, runIn, walkTo } from './run-support.ts'

const resume = { kind: 'rewind', reason: 'resume' } as const
const stale = (to: string) => ({ kind: 'rewind', reason: 'stale', to }) as const

describe('a rewind on resume', () => {
  it('is refused where the run can continue in place', () => {
    const transitional: readonly string[] = ['DRAFTING', 'LINKING', 'VALIDATING', 'FIXING']
    for (const state of ACTIVE.filter((other) => !transitional.includes(other))) {
      const error = errorOf(runIn(state).applyCommand(resume))
      expect(error.code).toBe('E_REWIND_REFUSED')
      expect(error.details).toEqual({ runId: 'run-1', why: `${state} is not transitional` })
    }
  })

  it('makes an earlier validation void', () => {
    const script = runIn('VALIDATING')
    expect(script.run.validation).toMatchObject({ ok: true, ts: '2026-01-01T00:00:00.000Z' })
    script.applyCommand(resume)
    expect(script.run.validation).toBeNull()
    script.walk('LINKING', 'VALIDATING')
    expect(answerOf(script.walk('READY_FOR_PR'))).toBe('E_GUARD_REFUSED')
  })

  it('keeps a validation that came before the state to which it leads', () => {
    const script = runIn('READY_FOR_PR')
    script.walk('PR_OPENED')
    const { validation } = script.run
    expect(factsOf(script.applyCommand(stale('READY_FOR_PR')))).toMatchObject([
      { data: { to_state: 'READY_FOR_PR', keeps_validation: true } },
    ])
    expect(script.run.validation).toEqual(validation)
    expect(validation).toMatchObject({ ok: true, trail_length: 2 })
    script.applyCommand(stale('DRAFT_READY'))
    expect(script.run.validation).toBeNull()
  })

  it('can happen any number of times, and each is an event', () => {
    const script = runIn('PLAN_READY')
    for (let i = 0; i < 5; i++) {
      script.walk('DRAFTING')
      factsOf(script.applyCommand(resume))
    }
    expect(script.events.filter(({ type }) => type === 'RESUME_REWIND')).toHaveLength(5)
    expect(script.run.stable_trail).toEqual(['PLAN_READY'])
  })

  it('keeps artifacts, items, sections, issues and commits', () => {
    const script = runIn('DRAFTING')
    script.applyCommand({ kind: 'change-section', section: 's', to: 'drafted' })
    script.applyCommand({ kind: 'link-commit', sha: 'a'.repeat(40) })
    const { run_state: _state, last_seq: _seq, ...kept } = script.run
    script.applyCommand(resume)
    expect(script.run).toMatchObject(kept)
  })
})

describe('a rewind because something is stale', () => {
  it('goes from any active state to a stable state that was visited', () => {
    const visited = {
      ...{ CREATED: [], CLONED_INPUTS: [], INGESTED: [], FACTS_READY: [] },
      ...{ PLAN_READY: ['PLAN_READY'], DRAFTING: ['PLAN_READY'] },
      ...{ DRAFT_READY: ['PLAN_READY', 'DRAFT_READY'], LINKING: ['PLAN_READY', 'DRAFT_READY'] },
      ...{ VALIDATING: ['PLAN_READY', 'DRAFT_READY'], FIXING: ['PLAN_READY', 'DRAFT_READY'] },
      READY_FOR_PR: ['PLAN_READY', 'DRAFT_READY', 'READY_FOR_PR'],
      PR_OPENED: ['PLAN_READY', 'DRAFT_READY', 'READY_FOR_PR'],
    }
    for (const [from, reached] of Object.entries(visited)) {
      for (const to of ['PLAN_READY', 'DRAFT_READY', 'READY_FOR_PR']) {
        const decision = runIn(from as keyof typeof visited).applyCommand(stale(to))
        const open = (reached as string[]).includes(to)
        const expected = open ? (to === from ? 'same' : 'facts') : 'E_REWIND_REFUSED'
        expect([from, to, answerOf(decision)]).toEqual([from, to, expected])
      }
    }
  })

  it('never goes to a state that is not stable, visited or not', () => {
    for (const to of ['CLONED_INPUTS', 'FACTS_READY', 'DRAFTING', 'LINKING', 'DONE', 'toString']) {
      const error = errorOf(runIn('PR_OPENED').applyCommand(stale(to)))
      expect(error.details).toEqual({ runId: 'run-1', why: `${to} was not visited` })
    }
  })

  it('may go back to the beginning, because what is stale may lie before all stable states', () => {
    for (const from of ['FACTS_READY', 'DRAFTING', 'PR_OPENED'] as const) {
      const script = runIn(from)
      const data = { from_state: from, to_state: 'CREATED', reason: 'stale', initial: true }
      expect(factsOf(script.applyCommand(stale('CREATED')))).toEqual([
        { type: 'RESUME_REWIND', data },
      ])
      expect(script.run).toMatchObject({ run_state: 'CREATED', stable_trail: [] })
      expect(checkRun(documentationRun, script.events)).toEqual([])
      expect(answerOf(script.applyCommand(stale('CREATED')))).toBe('same')
    }
  })

  it('says so in its event', () => {
    const data = { from_state: 'PR_OPENED', to_state: 'PLAN_READY', reason: 'stale' }
    const facts = factsOf(runIn('PR_OPENED').applyCommand(stale('PLAN_READY')))
    expect(facts).toEqual([{ type: 'RESUME_REWIND', data }])
  })

  it('cuts the trail behind its target: what lay after it counts as not visited', () => {
    const script = runIn('PR_OPENED')
    expect(script.run.stable_trail).toEqual(['PLAN_READY', 'DRAFT_READY', 'READY_FOR_PR'])
    script.applyCommand(stale('PLAN_READY'))
    expect(script.run.stable_trail).toEqual(['PLAN_READY'])
    for (const to of ['DRAFT_READY', 'READY_FOR_PR']) {
      expect(answerOf(script.applyCommand(stale(to)))).toBe('E_REWIND_REFUSED')
    }
    script.walk('DRAFTING')
    expect(factsOf(script.applyCommand(resume))).toMatchObject([
      { data: { to_state: 'PLAN_READY' } },
    ])
    walkTo(script, 'READY_FOR_PR', true)
    expect(script.run.stable_trail).toEqual(['PLAN_READY', 'DRAFT_READY', 'READY_FOR_PR'])
  })

  it('does not carry an old validation past its guard', () => {
    const script = runIn('READY_FOR_PR')
    script.applyCommand(stale('DRAFT_READY'))
    script.walk('LINKING', 'VALIDATING')
    expect(answerOf(script.walk('READY_FOR_PR'))).toBe('E_GUARD_REFUSED')
  })
})
