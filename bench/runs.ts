// Runs: replaying a long log, with every check, against JSON.parse over the same lines; appending
// events one by one, against a bare write and sync of the same lines. Rates are events per second.
// See docs/internals/performance.md for what the ratios should be.
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { decideRun } from 'pawl/rules'
import {
  documentationRun,
  type Journal,
  openFolderJournal,
  type RunEvent,
  type RunFact,
} from 'pawl/runs'
import { compare, inFolder, type Result, timed } from './measure.ts'
import { benchResume } from './run-resume.ts'

const RUN = 'run-1'
const AUTHOR = {
  trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
  span_id: '00f067aa0ba902b7',
  actor: 'engine',
}
const SHA256 = 'a'.repeat(64)
const WORK = { code: null, worker: 'worker-1' } as const
const CONTENT = {
  path: `artifacts/section.md.${SHA256}`,
  sha256: SHA256,
  schema_id: null,
  writer_worker: 'worker-1',
} as const
const STATES = { from_state: null, to_state: 'drafted' } as const
const BATCH = 1000
const ROUNDS = 5
const APPENDS = 2000
/** So many appends it takes until the code of a process is as fast as it gets. */
const WARMING_APPENDS = 10_000

/** Measures everything, or what has `only` in its name. */
export async function benchRuns(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const { quick, only = '' } = options
  const results: Result[] = []
  const events = quick ? 100_000 : 1_000_000
  const replay = `replay of ${events} events`
  if (replay.includes(only))
    results.push(await inFolder((folder) => benchReplay(folder, replay, events)))
  const append = 'append, one event at a time'
  if (append.includes(only)) results.push(await inFolder((folder) => benchAppend(folder, append)))
  const items = quick ? 1000 : 10_000
  for (const kib of [16, 64]) {
    const resume = `resume with nothing to do, ${items} items of ${kib} KiB`
    if (resume.includes(only)) results.push(...(await benchResume(resume, items, kib)))
  }
  return results
}

async function benchAppend(folder: string, name: string): Promise<Result> {
  await using journal = await openFolderJournal({ path: join(folder, 'runs') })
  await fill(journal, 1)
  const writer = await journal.open(RUN, AUTHOR)
  const facts = factsFrom(1, APPENDS)
  for (let i = 0; i < WARMING_APPENDS; i++) {
    await writer.append([facts[i % APPENDS] as RunFact], AUTHOR)
  }
  const log = openSync(join(folder, 'bare.ndjson'), 'a')
  const rate = (ms: number) => (APPENDS / ms) * 1000
  try {
    return await compare(
      name,
      ROUNDS,
      async () =>
        rate(
          await timed(async () => {
            for (const fact of facts) await writer.append([fact], AUTHOR)
          }),
        ),
      async () => {
        const text = readFileSync(join(folder, 'runs', RUN, 'events.ndjson'), 'utf8')
        const lines = text.trimEnd().split('\n').slice(-APPENDS)
        return rate(
          await timed(() => {
            for (const line of lines) {
              writeSync(log, `${line}\n`)
              fsyncSync(log)
            }
          }),
        )
      },
    )
  } finally {
    closeSync(log)
    await writer.close()
  }
}

async function benchReplay(folder: string, name: string, events: number): Promise<Result> {
  await using journal = await openFolderJournal({ path: join(folder, 'runs') })
  await fill(journal, events)
  const path = join(folder, 'runs', RUN, 'events.ndjson')
  const rate = (ms: number) => (events / ms) * 1000
  return await compare(
    name,
    ROUNDS,
    async () => {
      const reader = await journal.read(RUN)
      return rate(
        await timed(async () => {
          const { run } = await reader.replay()
          if (run.last_seq !== events) throw new Error(`${run.last_seq} events were replayed`)
        }),
      )
    },
    async () =>
      rate(
        await timed(() => {
          // Text by text, since no string can hold them all.
          const bytes = readFileSync(path)
          for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
            end = bytes.indexOf(0x0a, start)
            JSON.parse(bytes.toString('utf8', start, end)) as RunEvent
          }
        }),
      ),
  )
}

/** A log as runs have them: work items that start, write an artifact and finish. */
async function fill(journal: Journal, events: number): Promise<void> {
  const created = decideRun(documentationRun, null, { kind: 'create' })
  if (created.kind !== 'facts') throw new Error('the run was refused')
  const writer = await journal.create(RUN, created.facts, AUTHOR)
  while (writer.run.last_seq < events) {
    const left = events - writer.run.last_seq
    await writer.append(factsFrom(writer.run.last_seq, Math.min(left, BATCH)), AUTHOR)
  }
  await writer.close()
}

function factsFrom(first: number, count: number): RunFact[] {
  return Array.from({ length: count }, (_, i): RunFact => {
    // A thousand names, so that the run itself stays small.
    const key = `section-${Math.floor((first + i) / 3) % 1000}`
    const inputs = { 'plan.md': SHA256 }
    switch ((first + i) % 3) {
      case 1:
        return { type: 'WORK_ITEM_STARTED', data: { ...WORK, key, inputs, because: 'forced' } }
      case 2:
        return { type: 'ARTIFACT_WRITTEN', data: { ...CONTENT, name: `${key}.md`, work_item: key } }
      default:
        return { type: 'SECTION_STATE_CHANGED', data: { section: key, ...STATES } }
    }
  })
}
