// Runs: replaying a long log, with every check, against JSON.parse over the same lines. Rates are
// events per second. See docs/internals/performance.md for what the ratio should be.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  decideRun,
  documentationRun,
  type Journal,
  openFolderJournal,
  type RunCommand,
  type RunEvent,
} from 'pawl'
import { compare, inFolder, type Result, timed } from './measure.ts'

const RUN = 'run-1'
const AUTHOR = { trace_id: '4bf92f3577b34da6a3ce929d0e0e4736', span_id: '00f067aa0ba902b7' }
const ROUNDS = 3

/** Measures everything, or what has `only` in its name. */
export async function benchRuns(options: { quick: boolean; only?: string }): Promise<Result[]> {
  const { quick, only = '' } = options
  const results: Result[] = []
  const events = quick ? 100_000 : 1_000_000
  const replay = `replay of ${events} events`
  if (replay.includes(only))
    results.push(await inFolder((folder) => benchReplay(folder, replay, events)))
  return results
}

async function benchReplay(folder: string, name: string, events: number): Promise<Result> {
  await using journal = await openFolderJournal({ path: join(folder, 'runs') })
  await fill(journal, events)
  const path = join(folder, 'runs', RUN, 'events.ndjson')
  const rate = (ms: number) => (events / ms) * 1000
  return compare(
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
  const author = { ...AUTHOR, actor: 'engine' }
  const created = decideRun(documentationRun, null, { kind: 'create' })
  if (created.kind !== 'facts') throw new Error('the run was refused')
  const writer = await journal.create(RUN, created.facts, author)
  const sha256 = 'a'.repeat(64)
  for (let i = 0; writer.run.last_seq < events; i++) {
    // A thousand names, so that the run itself stays small.
    const key = `section-${i % 1000}`
    const worker = 'worker-1'
    const commands: RunCommand[] = [
      { kind: 'start-item', key, inputs: { 'plan.md': sha256 }, worker, forced: true },
      { kind: 'write-artifact', name: `${key}.md`, path: 'p', sha256, worker, workItem: key },
      { kind: 'finish-item', key },
    ]
    for (const command of commands) {
      if (writer.run.last_seq >= events) break
      const decision = decideRun(documentationRun, writer.run, command)
      if (decision.kind !== 'facts') throw new Error(`${command.kind} was refused`)
      const appended = writer.append(decision.facts, author)
      if (i % 100 === 0) await appended
      else appended.catch(() => {})
    }
  }
  await writer.close()
}
