/**
 * The life of a run under strace: once to learn which calls it makes on which of its files, then
 * with death at one of them. Calls that only read are left out: what a death at one of them leaves
 * is what a death at the next write leaves.
 *
 * strace counts the calls of each thread apart, hence one thread of the pool, and one path at a
 * time. Where both threads make the same call on the same path, the first to come so far dies.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { openFolderJournal, openRuns, type Run, type RunEvent } from 'pawl/runs'
import { type Ended, runChild } from '../../test/processes/children.ts'
import { essenceOf } from '../../test/runs/processes/essence.ts'
import { RUN, type Said, type Witness } from './run-story.ts'

/**
 * A held run reaches its files through /proc/self/fd, where strace cannot select a call by path: so
 * no `openat`. Calls on descriptors are selected by the path that the descriptor has.
 */
const CALLS = [
  ...['mkdir', 'write', 'pwrite64', 'fsync', 'fdatasync', 'ftruncate'],
  ...['rename', 'unlink'],
]
const WORKLOAD = new URL('./run-workload.js', import.meta.url)

/** The n-th call of a kind on a path, which is given from the place on. */
export interface RunPoint {
  readonly call: string
  readonly path: string
  readonly n: number
}

/** What a whole life comes to. */
export interface WholeRun {
  readonly points: readonly RunPoint[]
  readonly run: Run
}

/** Lives once without a fault. */
export async function liveWhole(folder: string): Promise<WholeRun> {
  fresh(folder)
  const { code, stderr } = await traced(folder, ['-y', '-e', `trace=${CALLS.join()}`])
  if (code !== 0) throw new Error(`the run failed without a fault: ${stderr}`)
  const { run } = await readRun(folder)
  return { points: pointsIn(readFileSync(join(folder, 'trace'), 'latin1'), folder), run }
}

/** So many points, evenly spread. */
export function someOf(points: readonly RunPoint[], max: number): RunPoint[] {
  const count = Math.min(max, points.length)
  return Array.from(
    { length: count },
    (_, i) => points[Math.floor(((i + 0.5) * points.length) / count)] as RunPoint,
  )
}

/** Dies at a point, is taken up again, and is judged; gives what is wrong. */
export async function strikeRun(
  folder: string,
  { call, path, n }: RunPoint,
  expected: Run,
): Promise<string[]> {
  fresh(folder)
  const inject = `inject=${call}:signal=SIGKILL:when=${n}`
  const filter = ['-P', join(folder, path), '-e', `trace=${call}`, '-e', inject]
  const { signal } = await traced(folder, filter)
  if (signal !== 'SIGKILL') return ['it was never reached']
  const before = await eventsOf(folder)
  const { code, said, stderr } = await runChild<Said>(WORKLOAD, { folder, act: 2 })
  if (code !== 0) return [`it cannot be resumed: ${stderr}`]
  const { run, events, findings } = await readRun(folder)
  const found = findings.map((finding) => `it is not whole: ${finding}`)
  if (said[0]?.kind !== 'done') found.push(`it came to ${said[0]?.kind}`)
  if (!isDeepStrictEqual(essenceOf(run), essenceOf(expected))) found.push('it came to another end')
  if (!isDeepStrictEqual(events.slice(0, before.length), before))
    found.push('events were lost or changed')
  const finished = new Set(before.flatMap(({ type, data }) => finishedIn(type, data)))
  const again = witnessesIn(folder).filter(({ act, key }) => act === 2 && finished.has(key))
  return [...found, ...again.map(({ key }) => `${key} was done again, though it had finished`)]
}

/** Every point of a trace, in the order in which they were reached. */
function pointsIn(trace: string, folder: string): RunPoint[] {
  const counts = new Map<string, number>()
  const points = new Map<string, RunPoint>()
  for (const [, thread, call, rest] of trace.matchAll(/^(\d+) +(\w+)\((.*)$/gm)) {
    const named = [...(rest as string).matchAll(/["<]([^">]+)[">]/g)].map(([, path]) => path ?? '')
    const inside = named.find((path) => path.startsWith(`${folder}/runs`))
    if (inside === undefined) continue
    const path = inside.slice(folder.length + 1)
    const own = `${thread} ${call} ${path}`
    const n = (counts.get(own) ?? 0) + 1
    counts.set(own, n)
    const point = { call: call as string, path, n }
    points.set(`${call} ${path} ${n}`, point)
  }
  return [...points.values()]
}

function finishedIn(type: string, data: object): string[] {
  return type === 'WORK_ITEM_FINISHED' && 'key' in data ? [String(data.key)] : []
}

function traced(folder: string, more: readonly string[]): Promise<Ended<Said>> {
  const strace = ['strace', '-f', '-qq', '-s', '4096', '-o', join(folder, 'trace'), ...more]
  const line = ['env', 'UV_THREADPOOL_SIZE=1', ...strace]
  return runChild<Said>(WORKLOAD, { folder, act: 1 }, line)
}

async function readRun(folder: string) {
  await using runs = await openRuns({ folder: join(folder, 'runs') })
  const findings = (await runs.verify(RUN)).map(({ message }) => message)
  return { run: (await runs.show(RUN)).run, events: await eventsOf(folder), findings }
}

/** What the log holds; nothing where there is no run yet. */
async function eventsOf(folder: string): Promise<RunEvent[]> {
  await using journal = await openFolderJournal({ path: join(folder, 'runs') })
  if (!(await journal.list()).includes(RUN)) return []
  const events: RunEvent[] = []
  for await (const event of (await journal.read(RUN)).events()) events.push(event)
  return events
}

function witnessesIn(folder: string): Witness[] {
  const path = join(folder, 'did.ndjson')
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Witness)
}

function fresh(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
}
