// What the run requirements (R4) ask of the files of a run: the documented way, guards, failures,
// cancellation and resume, each read back from events.ndjson and snapshot.json on disk.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pawl'
import { defineRun, type documentationRun, type RunContext } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { freshFolder, freshRuns } from '../runs/bench.ts'

type State = (typeof documentationRun)['failed']
type Does = Partial<Record<State, (run: RunContext) => Promise<unknown>>>

const PATH: readonly State[] = [
  ...(['CREATED', 'CLONED_INPUTS', 'INGESTED', 'FACTS_READY', 'PLAN_READY', 'DRAFTING'] as const),
  ...(['DRAFT_READY', 'LINKING', 'VALIDATING', 'READY_FOR_PR', 'PR_OPENED', 'DONE'] as const),
]
const ACTIVE: readonly State[] = [...PATH.filter((state) => state !== 'DONE'), 'FIXING']

interface StoredEvent {
  readonly event_id: string
  readonly run_id: string
  readonly ts: string
  readonly type: string
  readonly trace_id: string
  readonly span_id: string
  readonly data: Record<string, unknown>
}

/** A run of the documented machine in a folder of its own, and its files. */
async function place(does: Does = {}) {
  const lines: { level: string; text: string; fields: Record<string, unknown> }[] = []
  const at = (level: string) => (fields: object, text: string) =>
    void lines.push({ level, text, fields: fields as Record<string, unknown> })
  const logger = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((level) => [level, at(level)]),
  ) as unknown as Logger
  const nodes = ACTIVE.map((state) => [
    state,
    async (run: RunContext) => {
      if (state === 'VALIDATING' && does.VALIDATING === undefined) await run.validation(true)
      const next = state === 'FIXING' ? 'VALIDATING' : PATH[PATH.indexOf(state) + 1]
      return (await does[state]?.(run)) ?? next
    },
  ])
  const definition = defineRun({ name: 'docs', nodes: Object.fromEntries(nodes) })
  const folder = freshFolder()
  const runs = await freshRuns({ folder, runs: [definition], logger })
  const text = (name: string) => readFileSync(join(folder, 'r1', name), 'utf8')
  return {
    runs,
    lines,
    start: async () => (await runs.start(definition, { runId: 'r1' })).result(),
    resume: async () => (await runs.resume('r1')).result(),
    text,
    events: () =>
      text('events.ndjson')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as StoredEvent),
    snapshot: () => JSON.parse(text('snapshot.json')) as Record<string, unknown>,
  }
}

/** The states that the log of a run visits, in order. */
const statesOf = (events: readonly StoredEvent[]) =>
  events
    .filter(({ type }) => type === 'RUN_STATE_CHANGED' || type === 'RESUME_REWIND')
    .map(({ data }) => data.to_state)

const stop = async () => {
  throw new Error('stop here')
}

describe('the files of a run', () => {
  it('record the documented way from CREATED to DONE, each state in log and snapshot', async () => {
    const { start, events, snapshot } = await place()
    expect(await start()).toMatchObject({ kind: 'done' })
    const changes = events().filter(({ type }) => type === 'RUN_STATE_CHANGED')
    expect(changes.map(({ data }) => data.to_state)).toEqual(PATH.slice(1))
    for (const [i, { data, ts }] of changes.entries()) {
      expect(data).toMatchObject({ from_state: PATH[i], to_state: PATH[i + 1] })
      expect(Number.isNaN(Date.parse(ts))).toBe(false)
    }
    expect(snapshot()).toMatchObject({ run_id: 'r1', run_state: 'DONE' })
  })

  it('have the documented fields: sections, artifacts, work items and issues by key', async () => {
    const { start, snapshot, events } = await place({
      DRAFTING: async (run) => {
        await run.section('intro').set('drafted')
        await run.artifact('z.txt').write('last')
        await run.artifact('a.txt').write('first')
        await run.work('b', {}, async () => 2)
        await run.work('a', {}, async () => 1)
        await run.issue.open('I-2', { message: 'later', severity: 'warning' })
        await run.issue.open('I-1', { message: 'sooner', severity: 'warning' })
        await run.issue.resolve('I-1')
      },
    })
    await start()
    const { section_states, artifacts_index, work_items, issues } = snapshot() as Record<
      string,
      Record<string, unknown>
    >
    expect(section_states).toEqual({ intro: 'drafted' })
    const names = Object.keys(artifacts_index as object)
    expect(names).toEqual(names.toSorted())
    expect(artifacts_index?.['a.txt']).toMatchObject({
      path: expect.any(String),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      writer_worker: expect.any(String),
      ts: expect.any(String),
    })
    expect(artifacts_index?.['a.txt']).toHaveProperty('schema_id')
    expect(Object.keys(work_items as object)).toEqual(['a', 'b'])
    expect(JSON.stringify(issues)).toMatch(/I-1.*resolved.*I-2.*open/)
    for (const event of events()) {
      expect(event).toMatchObject({ run_id: 'r1', type: expect.any(String) })
      expect(event.trace_id).toMatch(/^[0-9a-f]{32}$/)
      expect(event.span_id).toMatch(/^[0-9a-f]{16}$/)
    }
    expect(new Set(events().map(({ event_id }) => event_id)).size).toBe(events().length)
  })

  it.each(ACTIVE.filter((state) => state !== 'FIXING'))(
    'record a failure and a cancellation in %s with a complete trail and a final state',
    async (state) => {
      const failing = await place({ [state]: async (run: RunContext) => run.fail('no way on') })
      expect(await failing.start()).toMatchObject({ kind: 'failed' })
      expect(failing.snapshot()).toMatchObject({ run_state: 'FAILED' })
      const way = PATH.slice(1, PATH.indexOf(state) + 1)
      expect(statesOf(failing.events())).toEqual([...way, 'FAILED'])
      const types = (events: StoredEvent[]) => events.map(({ type }) => type)
      expect(types(failing.events())).toContain('RUN_FAILED')

      const cancelled = await place({ [state]: stop })
      expect(await cancelled.start()).toMatchObject({ kind: 'stopped' })
      await cancelled.runs.cancel('r1', 'not needed')
      expect(cancelled.snapshot()).toMatchObject({ run_state: 'CANCELLED' })
      expect(types(cancelled.events())).toContain('RUN_CANCELLED')
      expect(statesOf(cancelled.events())).toEqual([...way, 'CANCELLED'])
      const before = cancelled.text('events.ndjson')
      await expect(cancelled.resume()).rejects.toMatchObject({ code: 'E_RUN_ENDED' })
      expect(cancelled.text('events.ndjson')).toBe(before)
    },
  )

  it('allow FIXING after a failed validation, then FAILED without attempts', async () => {
    let fixes = 0
    const { start, events, snapshot } = await place({
      VALIDATING: async (run) => {
        await run.validation(false)
        return fixes < 3 ? 'FIXING' : 'FAILED'
      },
      FIXING: async () => {
        fixes++
      },
    })
    expect(await start()).toMatchObject({ kind: 'failed' })
    expect(statesOf(events()).filter((state) => state === 'FIXING')).toHaveLength(3)
    expect(snapshot()).toMatchObject({ run_state: 'FAILED', fix_attempts: 3 })
    const early = await place({
      VALIDATING: async (run) => {
        await run.validation(false)
        return 'READY_FOR_PR'
      },
    })
    await expect(early.start()).rejects.toMatchObject({ code: 'E_GUARD_REFUSED' })
    expect(early.snapshot()).toMatchObject({ run_state: 'VALIDATING' })
  })

  it.each([
    ['DRAFTING', 'PLAN_READY'],
    ['LINKING', 'DRAFT_READY'],
    ['VALIDATING', 'DRAFT_READY'],
  ] as const)('record a resume from %s as a rewind to %s, with its warning', async (from, to) => {
    let isStopped = true
    const { start, resume, events, lines, snapshot } = await place({
      [from]: async (run: RunContext) => {
        if (isStopped) throw new Error('stop here')
        if (from === 'VALIDATING') await run.validation(true)
      },
    })
    expect(await start()).toMatchObject({ kind: 'stopped' })
    isStopped = false
    expect(await resume()).toMatchObject({ kind: 'done' })
    const rewinds = events().filter(({ type }) => type === 'RESUME_REWIND')
    expect(rewinds.map(({ data }) => data)).toEqual([
      { from_state: from, to_state: to, reason: 'resume' },
    ])
    expect(
      lines.filter(({ level, text }) => level === 'warn' && text.startsWith('Rewound')),
    ).toEqual([
      {
        level: 'warn',
        text: `Rewound: ${from} → ${to}`,
        fields: expect.objectContaining({ run_id: 'r1', from_state: from, to_state: to }),
      },
    ])
    // It went on from the stable state, and passed the transitional one again.
    const visited = statesOf(events())
    const after = visited.slice(visited.lastIndexOf(to))
    expect(after).toContain(from)
    expect(snapshot()).toMatchObject({ run_state: 'DONE' })
  })
})
