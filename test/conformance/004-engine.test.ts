// R4 (runs) on the real engine and real files: transitions, order of writing, replay, resume.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pawl'
import {
  defineRun,
  type documentationRun,
  openRuns,
  type RefusedRunEvent as RefusedEvent,
  type RunContext,
  type RunDefinition,
  type RunEvent,
  type Runs,
} from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { eventsOf, freshFolder, freshRuns, storyOf } from '../runs/bench.ts'

type State = (typeof documentationRun)['failed']
type Does = Partial<Record<State, (run: RunContext) => Promise<unknown>>>

const WAY: Readonly<Record<string, State>> = {
  CREATED: 'CLONED_INPUTS',
  CLONED_INPUTS: 'INGESTED',
  INGESTED: 'FACTS_READY',
  FACTS_READY: 'PLAN_READY',
  PLAN_READY: 'DRAFTING',
  DRAFTING: 'DRAFT_READY',
  DRAFT_READY: 'LINKING',
  LINKING: 'VALIDATING',
  VALIDATING: 'READY_FOR_PR',
  FIXING: 'VALIDATING',
  READY_FOR_PR: 'PR_OPENED',
  PR_OPENED: 'DONE',
}

/** R4's run; a state may do something, and may give another next state. */
function docs(does: Does = {}): RunDefinition {
  const nodes = Object.entries(WAY).map(([state, next]) => [
    state,
    async (run: RunContext) => {
      if (state === 'VALIDATING' && does.VALIDATING === undefined) await run.validation(true)
      return (await does[state as State]?.(run)) ?? next
    },
  ])
  return defineRun({ name: 'docs', nodes: Object.fromEntries(nodes) })
}

/** A run that stands still in a state, because its node threw there. */
async function stoppedIn(state: State, options: { folder?: string; does?: Does } = {}) {
  let isStopped = true
  const stop = async (run: RunContext) => {
    if (isStopped) throw new Error('stop here')
    if (state === 'VALIDATING') await run.validation(true)
  }
  const definition = docs({ ...options.does, [state]: stop })
  const { folder = freshFolder() } = options
  const runs = await freshRuns({ folder, runs: [definition] })
  const { kind } = await (await runs.start(definition, { runId: 'r1' })).result()
  expect(kind).toBe('stopped')
  isStopped = false
  return { runs, folder, definition, path: (name: string) => join(folder, 'r1', name) }
}

async function resumed(runs: Runs, options = {}) {
  return (await runs.resume('r1', options)).result()
}

describe('transitions', () => {
  it('an invalid transition is logged, told to telemetry, thrown, and not recorded', async () => {
    const lines: string[] = []
    const at = (level: string) => (_fields: object, text: string) => lines.push(`${level}: ${text}`)
    const logger = Object.fromEntries(
      ['debug', 'info', 'warn', 'error'].map((level) => [level, at(level)]),
    ) as unknown as Logger
    const refused: RefusedEvent[] = []
    const observer = { recorded() {}, refused: (event: RefusedEvent) => void refused.push(event) }
    const runs = await freshRuns({ logger, observer })
    const definition = docs({ INGESTED: async () => 'DONE' })
    const handle = await runs.start(definition, { runId: 'r1' })
    await expect(handle.result()).rejects.toMatchObject({
      code: 'E_TRANSITION_INVALID',
      from: 'INGESTED',
      to: 'DONE',
    })
    expect(lines).toContain('error: Invalid transition: INGESTED → DONE')
    expect(refused).toMatchObject([
      {
        type: 'INVALID_STATE_TRANSITION',
        run_id: 'r1',
        data: { from_state: 'INGESTED', to_state: 'DONE' },
      },
    ])
    expect(await storyOf(runs)).toEqual([
      'RUN_CREATED',
      'ARTIFACT_WRITTEN run:definition',
      'RUN_STATE_CHANGED CLONED_INPUTS',
      'RUN_STATE_CHANGED INGESTED',
    ])
  })

  it('a valid transition is in the log, then in the snapshot, then told to telemetry', async () => {
    const folder = freshFolder()
    const seen: [string, boolean, string][] = []
    const observer = {
      refused() {},
      recorded(events: readonly RunEvent[]) {
        for (const { type, event_id, data } of events) {
          if (type !== 'RUN_STATE_CHANGED') continue
          const log = readFileSync(join(folder, 'r1', 'events.ndjson'), 'utf8')
          const snapshot = JSON.parse(readFileSync(join(folder, 'r1', 'snapshot.json'), 'utf8'))
          seen.push([data.to_state, log.includes(event_id), snapshot.run_state])
        }
      },
    }
    const definition = docs()
    const runs = await freshRuns({ folder, observer })
    await (await runs.start(definition, { runId: 'r1' })).result()
    expect(seen.map(([to]) => to)).toEqual(Object.values(WAY).filter((_, i) => i !== 9))
    for (const [to, isInLog, state] of seen) expect([isInLog, state]).toEqual([true, to])
  })

  it('the next node is that of the state in the snapshot', async () => {
    const called: string[] = []
    const does = Object.fromEntries(
      Object.keys(WAY).map((state) => [
        state,
        async (run: RunContext) => {
          called.push(`${state} ${run.snapshot.run_state}`)
          if (state === 'VALIDATING') await run.validation(called.includes('FIXING FIXING'))
          if (state === 'VALIDATING' && !called.includes('FIXING FIXING')) return 'FIXING'
          return undefined
        },
      ]),
    ) as Does
    const runs = await freshRuns()
    await (await runs.start(docs(does), { runId: 'r1' })).result()
    const expected = [
      ...['CREATED', 'CLONED_INPUTS', 'INGESTED', 'FACTS_READY', 'PLAN_READY', 'DRAFTING'],
      ...['DRAFT_READY', 'LINKING', 'VALIDATING', 'FIXING', 'VALIDATING', 'READY_FOR_PR'],
      'PR_OPENED',
    ]
    expect(called).toEqual(expected.map((state) => `${state} ${state}`))
  })

  it('max_fix_attempts holds over rewinds: crashing is no way to have more of them', async () => {
    const folder = freshFolder()
    let crashes = 2
    const does: Does = {
      VALIDATING: async (run) => {
        await run.validation(false)
        return 'FIXING'
      },
      FIXING: async () => {
        if (crashes-- > 0) throw new Error('the process dies')
      },
    }
    const definition = docs(does)
    const runs = await freshRuns({ folder, runs: [definition] })
    await (await runs.start(definition, { runId: 'r1' })).result()
    for (let kind = 'stopped'; kind === 'stopped'; ) ({ kind } = await resumed(runs))
    const { run } = await runs.show('r1')
    expect(run).toMatchObject({ run_state: 'FAILED', fix_attempts: 3 })
    expect(run.ended_because).toBe('max_fix_attempts exceeded')
    const fixes = (await storyOf(runs)).filter((line) => line === 'RUN_STATE_CHANGED FIXING')
    expect(fixes).toHaveLength(3)
  })
})

describe('the two layers', () => {
  it('the log and the snapshot lie in runs/<run_id>/, one event for each line', async () => {
    const { path, runs } = await stoppedIn('DRAFTING')
    const lines = readFileSync(path('events.ndjson'), 'utf8').trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(await eventsOf(runs))
    expect(JSON.parse(readFileSync(path('snapshot.json'), 'utf8'))).toMatchObject({
      run_id: 'r1',
      run_state: 'DRAFTING',
    })
  })

  it('every event has a unique id, and the trace of its run', async () => {
    const definition = docs({ DRAFTING: (run) => run.work('k', {}, () => {}) })
    const runs = await freshRuns()
    for (const runId of ['a', 'b']) await (await runs.start(definition, { runId })).result()
    const events = [...(await eventsOf(runs, 'a')), ...(await eventsOf(runs, 'b'))]
    expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(events.length)
    for (const { trace_id, span_id } of events) {
      expect([trace_id, span_id]).toEqual([
        expect.stringMatching(/^[0-9a-f]{32}$/),
        expect.stringMatching(/^[0-9a-f]{16}$/),
      ])
    }
    expect(new Set(events.map(({ trace_id }) => trace_id)).size).toBe(2)
    const item = events.filter(({ type }) => type.startsWith('WORK_ITEM'))
    expect(item[0]?.span_id).toBe(item[1]?.span_id)
  })

  it('replaying the log on disk gives the snapshot on disk, byte for byte', async () => {
    const { path, runs, definition, folder } = await stoppedIn('LINKING')
    await resumed(runs)
    await runs.close()
    const written = readFileSync(path('snapshot.json'))
    rmSync(path('snapshot.json'))
    const again = await freshRuns({ folder, runs: [definition] })
    await resumed(again)
    expect(readFileSync(path('snapshot.json')).equals(written)).toBe(true)
  })
})

describe('resume', () => {
  it('from a transitional state goes back to the last stable state visited', async () => {
    const cases = [
      ['DRAFTING', 'PLAN_READY'],
      ['LINKING', 'DRAFT_READY'],
      ['VALIDATING', 'DRAFT_READY'],
    ] as const
    for (const [from, to] of cases) {
      const { runs } = await stoppedIn(from)
      expect(await resumed(runs)).toMatchObject({ kind: 'done' })
      const rewinds = (await eventsOf(runs)).filter(({ type }) => type === 'RESUME_REWIND')
      expect(rewinds.map(({ data }) => data)).toEqual([
        { from_state: from, to_state: to, reason: 'resume' },
      ])
    }
  })

  it('from any other active state continues in place', async () => {
    for (const state of ['CREATED', 'FACTS_READY', 'READY_FOR_PR', 'PR_OPENED'] as const) {
      const { runs } = await stoppedIn(state)
      expect(await resumed(runs)).toMatchObject({ kind: 'done' })
      expect((await storyOf(runs)).join()).not.toContain('RESUME_REWIND')
    }
  })

  it('validates the snapshot, and rebuilds one that is not valid from the events', async () => {
    const damages = ['', '{}', '{"run_id":"r1"}', 'garbage', '[]']
    for (const damage of damages) {
      const { runs, path, folder, definition } = await stoppedIn('PLAN_READY')
      await runs.close()
      const good = readFileSync(path('snapshot.json'), 'utf8')
      writeFileSync(path('snapshot.json'), damage)
      const again = await freshRuns({ folder, runs: [definition] })
      expect(await again.list()).toEqual([{ runId: 'r1', run: undefined }])
      expect(await resumed(again)).toMatchObject({ kind: 'done' })
      expect(good).toContain('"run_state":"PLAN_READY"')
      expect(await again.verify('r1')).toEqual([])
    }
  })

  it('fails the run with the blocker SnapshotInvalid where it cannot be rebuilt', async () => {
    const damage = {
      'a damaged log': (path: (name: string) => string) => {
        const lines = readFileSync(path('events.ndjson'), 'utf8').split('\n')
        lines[2] = lines[2]?.replace('CREATED', 'CREATEX') ?? ''
        writeFileSync(path('events.ndjson'), lines.join('\n'))
      },
      'a missing log': (path: (name: string) => string) => rmSync(path('events.ndjson')),
    }
    for (const [what, harm] of Object.entries(damage)) {
      const { runs, path, folder, definition } = await stoppedIn('PLAN_READY')
      await runs.close()
      harm(path)
      const files = () =>
        readdirSync(join(folder, 'r1')).map((name) => [name, contentOf(path(name))])
      const before = files()
      const again = await freshRuns({ folder, runs: [definition] })
      const outcome = await resumed(again)
      expect([what, outcome]).toMatchObject([
        what,
        { kind: 'failed', reason: 'SnapshotInvalid', run: { run_state: 'FAILED' } },
      ])
      expect(outcome.run.issues.SnapshotInvalid).toMatchObject({
        severity: 'blocker',
        status: 'open',
      })
      // What is damaged stays as it is: the failure is recorded beside it.
      expect(files()).toEqual(expect.arrayContaining(before))
      await expect(resumed(again)).rejects.toMatchObject({ code: 'E_RUN_ENDED' })
      expect((await again.show('r1')).run).toMatchObject({ run_state: 'FAILED' })
    }
  })

  it('of a run that is done changes nothing; of one that failed is refused', async () => {
    const folder = freshFolder()
    const definition = docs()
    const runs = await freshRuns({ folder, runs: [definition] })
    await (await runs.start(definition, { runId: 'r1' })).result()
    const log = readFileSync(join(folder, 'r1', 'events.ndjson'))
    expect(await resumed(runs)).toMatchObject({ kind: 'done' })
    expect(readFileSync(join(folder, 'r1', 'events.ndjson')).equals(log)).toBe(true)

    const failing = { ...docs({ PLAN_READY: async (run) => run.fail('no') }), name: 'failing' }
    await (await runs.start(failing, { runId: 'r2' })).result()
    const { runs: stopped } = await stoppedIn('CREATED')
    expect(await stopped.cancel('r1', 'no more')).toBe('cancelled')
    const refusal = { code: 'E_RUN_ENDED', hint: expect.stringMatching(/[Ff]ork/) }
    await expect(runs.resume('r2')).rejects.toMatchObject(refusal)
    await expect(stopped.resume('r1')).rejects.toMatchObject(refusal)
  })

  it('repeats no finished work, and the trail of a failure is complete', async () => {
    const done: string[] = []
    const item = (key: string) => async (run: RunContext) => {
      await run.work(key, {}, () => void done.push(key))
    }
    const does = { INGESTED: item('facts'), PLAN_READY: item('outline') }
    const { runs } = await stoppedIn('DRAFTING', { does })
    await resumed(runs)
    expect(done).toEqual(['facts', 'outline'])
    const story = await storyOf(runs)
    expect(story).toContain('ISSUE_OPENED NodeFailed:DRAFTING')
    expect(story).toContain('ISSUE_RESOLVED NodeFailed:DRAFTING')
    expect(story.at(-1)).toBe('RUN_STATE_CHANGED DONE')
  })

  it('needs the definition of the run, and says which', async () => {
    const { folder, runs } = await stoppedIn('CREATED')
    await runs.close()
    await using stranger = await openRuns({ folder })
    await expect(stranger.resume('r1')).rejects.toMatchObject({
      code: 'E_RUN_DEFINITION_UNKNOWN',
      details: { name: 'docs' },
    })
  })
})

function contentOf(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  } catch {
    return 'a folder'
  }
}
