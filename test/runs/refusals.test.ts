// What `explain` says of a run that cannot be resumed is what `resume` then answers; and what comes
// before the damage of a log can be forked.
import {
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { defineRun } from '../../src/runs/define-run.ts'
import { exportRun, importRun } from '../../src/runs/journal/bundle.ts'
import { forkRun } from '../../src/runs/journal/fork.ts'
import { encodeSnapshot } from '../../src/runs/journal/snapshot.ts'
import { openRuns } from '../../src/runs/runs.ts'
import { freshFolder } from '../processes/folder.ts'

const to = (state: string) => async () => state as never
const nodes = {
  CREATED: async (run: { artifact(name: string, text: string): Promise<unknown> }) => {
    await run.artifact('notes', 'text')
    return 'CLONED_INPUTS' as const
  },
  CLONED_INPUTS: async () => {
    throw new Error('it stops here')
  },
}
const STATES = ['INGESTED', 'FACTS_READY', 'PLAN_READY', 'DRAFTING', 'DRAFT_READY', 'LINKING']
const LATER = ['VALIDATING', 'FIXING', 'READY_FOR_PR', 'PR_OPENED']
const rest = Object.fromEntries([...STATES, ...LATER].map((state) => [state, to('FAILED')]))
const docs = defineRun({ name: 'docs', nodes: { ...nodes, ...rest } as never })

/** A folder with a run that stands still in its second state. */
async function place() {
  const folder = join(freshFolder(), 'runs')
  await using runs = await openRuns({ folder, runs: [docs] })
  await (await runs.start(docs, { runId: 'r1' })).result()
  return { folder, own: join(folder, 'r1'), log: join(folder, 'r1', 'events.ndjson') }
}

const linesOf = (log: string) => readFileSync(log, 'utf8').trimEnd().split('\n')

/** Where the content of `run:definition` lies. */
function definitionOf(own: string, log: string): string {
  const event = linesOf(log).map((line) => JSON.parse(line) as { data: Record<string, string> })
  const path = event.find(({ data }) => data.name === 'run:definition')?.data.path ?? ''
  return join(own, path)
}

type Spoil = (at: { own: string; log: string }) => void

const CASES: Readonly<Record<string, { readonly code: string; readonly spoil: Spoil }>> = {
  'the content of run:definition is missing': {
    code: 'E_ARTIFACT_MISSING',
    spoil: ({ own, log }) => rmSync(definitionOf(own, log)),
  },
  'the content of run:definition was changed': {
    code: 'E_ARTIFACT_CHANGED',
    spoil: ({ own, log }) => writeFileSync(definitionOf(own, log), '{}'),
  },
  'the log has one event only': {
    code: 'E_RUN_INCOMPLETE',
    spoil: ({ own, log }) => {
      truncateSync(log, Buffer.byteLength(`${linesOf(log)[0]}\n`))
      rmSync(join(own, 'snapshot.json'))
    },
  },
}

describe.each(Object.entries(CASES))('if %s', (_, { code, spoil }) => {
  it('explain says what resume answers, and changes nothing', async () => {
    const { folder, own, log } = await place()
    spoil({ own, log })
    const before = readFileSync(log, 'utf8')
    await using runs = await openRuns({ folder, runs: [docs] })
    const { refusal, hasEnded } = await runs.explain('r1')
    expect(refusal).toMatchObject({ code })
    expect(hasEnded).toBe(false)
    expect(readFileSync(log, 'utf8')).toBe(before)
    const error = await runs.resume('r1').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject(refusal ?? {})
  })
})

it('explain says that a cancelled run is refused, and that an unknown definition is', async () => {
  const { folder } = await place()
  await using elsewhere = await openRuns({ folder })
  const unknown = { code: 'E_RUN_DEFINITION_UNKNOWN' }
  expect(await elsewhere.explain('r1')).toMatchObject({ refusal: unknown, hasEnded: false })
  await expect(elsewhere.resume('r1')).rejects.toMatchObject(unknown)
  await elsewhere.cancel('r1', 'not needed')
  const ended = { code: 'E_RUN_ENDED' }
  expect(await elsewhere.explain('r1')).toMatchObject({ refusal: ended, hasEnded: true })
  await expect(elsewhere.resume('r1')).rejects.toMatchObject(ended)
})

it('explain says that a run is held', async () => {
  const { folder } = await place()
  await using holding = await openRuns({ folder, runs: [docs] })
  const author = { trace_id: 't', span_id: 's', actor: 'test' }
  await using _writer = await holding.journal.open('r1', author)
  const held = { code: 'E_RUN_HELD' }
  expect(await holding.explain('r1')).toMatchObject({ refusal: held })
  await expect(holding.resume('r1')).rejects.toMatchObject(held)
})

it('a damaged log can be forked before its damage, as its error says', async () => {
  const { folder, log } = await place()
  const lines = linesOf(log)
  // A changed line is found by the hash that the next line holds.
  lines[2] = (lines[2] ?? '').replace('"actor":"', '"actor":"x')
  writeFileSync(log, `${lines.join('\n')}\n`)
  await using runs = await openRuns({ folder, runs: [docs] })
  const environment = systemEnvironment()
  const fork = (seq: number, runId: string) =>
    forkRun(runs.journal, { from: 'r1', seq, runId }, environment)
  const error = await fork(4, 'f1').catch((thrown: { hint: string }) => thrown)
  expect(error).toMatchObject({ code: 'E_RUN_LOG_DAMAGED' })
  const at = Number(/pawl run fork r1 --at (\d+)/.exec((error as { hint: string }).hint)?.[1])
  expect(at).toBe(2)
  await expect(fork(at + 1, 'f1')).rejects.toMatchObject({ code: 'E_RUN_LOG_DAMAGED' })
  await fork(at, 'f1')
  expect((await runs.show('f1')).run.last_seq).toBe(at)
  expect(await runs.verify('f1')).toEqual([])
  // Also once the damage was recorded.
  await (await runs.resume('r1')).result()
  await fork(at, 'f2')
  await expect(fork(at + 1, 'f3')).rejects.toMatchObject({ code: 'E_RUN_LOG_DAMAGED' })
})

it('the error of a damaged first line does not suggest a fork', async () => {
  const { folder, log } = await place()
  writeFileSync(log, readFileSync(log, 'utf8').replace('RUN_CREATED', 'RUN_CREATEX'))
  await using runs = await openRuns({ folder, runs: [docs] })
  const error = await runs.show('r1').catch((thrown: { hint: string }) => thrown)
  expect(error).toMatchObject({ code: 'E_RUN_LOG_DAMAGED' })
  expect((error as { hint: string }).hint).not.toContain('fork')
})

it('a linked folder of a run is listed with the reason why it is not read', async () => {
  const { folder, own } = await place()
  renameSync(own, join(folder, '..', 'elsewhere'))
  symlinkSync(join(folder, '..', 'elsewhere'), own)
  mkdirSync(join(folder, 'empty'))
  await using runs = await openRuns({ folder, runs: [docs] })
  for (const check of [false, true]) {
    const listed = await runs.list({ check })
    expect(listed).toMatchObject([{ runId: 'r1', problem: expect.stringContaining('is a link') }])
  }
})

it('a checked list shows the log, and that the snapshot differs', async () => {
  const { folder, own } = await place()
  await using runs = await openRuns({ folder, runs: [docs] })
  const { run, lastHash } = await runs.show('r1')
  const forged = encodeSnapshot({ ...run, run_state: 'DRAFTING' }, lastHash)
  writeFileSync(join(own, 'snapshot.json'), forged)
  expect(await runs.list()).toMatchObject([{ run: { run_state: 'DRAFTING' } }])
  expect(await runs.list({ check: true })).toMatchObject([
    { run: { run_state: 'CLONED_INPUTS' }, snapshotDiffers: true },
  ])
  const message = 'The snapshot differs from the log. The log is right'
  expect(await runs.verify('r1')).toMatchObject([{ severity: 'notice', message }])
})

it('a bundle without its artifacts is refused as a bundle, with what is missing', async () => {
  const { folder } = await place()
  await using runs = await openRuns({ folder, runs: [docs] })
  const lines: string[] = []
  for await (const line of exportRun(runs.journal, 'r1')) lines.push(line)
  await using other = await openRuns({ folder: join(freshFolder(), 'runs') })
  const [head = '', ...others] = lines
  const { artifacts } = JSON.parse(head) as { artifacts: number }
  const events = others.slice(0, others.length - artifacts)
  const invalid = { code: 'E_BUNDLE_INVALID' }
  const cut = importRun(other.journal, [head, ...events])
  await expect(cut).rejects.toMatchObject({ ...invalid, message: /has 0 of 2 artifacts/ })
  const none = head.replace(`"artifacts":${artifacts}`, '"artifacts":0')
  const stripped = importRun(other.journal, [none, ...events])
  await expect(stripped).rejects.toMatchObject({ ...invalid, message: /"(notes|run:definition)"/ })
})
