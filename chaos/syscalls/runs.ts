/** Runs in folders whose process dies at each of its system calls, or at some of them. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { mapInLanes } from '../../test/processes/children.ts'
import { liveWhole, type RunPoint, someOf, strikeRun } from './run-points.ts'

/** What came of it. */
export interface RunSummary {
  readonly points: number
  /** How many deaths there were at each kind of call. */
  readonly hits: Readonly<Record<string, number>>
  readonly violations: readonly { readonly point: string; readonly found: readonly string[] }[]
}

/** Strikes at every point, or at so many; the files of violations are kept in the folder. */
export async function strikeRuns(folder: string, max: number, lanes: number): Promise<RunSummary> {
  const whole = await liveWhole(join(folder, 'run-whole'))
  const points = someOf(whole.points, max)
  const hits: Record<string, number> = {}
  const violations: { point: string; found: string[] }[] = []
  const entries = points.map((point, i) => ({ point, own: join(folder, `run-${i}`) }))
  await mapInLanes(entries, lanes, async ({ point, own }) => {
    const found = await strikeRun(own, point, whole.run).catch((error) => [String(error)])
    hits[point.call] = (hits[point.call] ?? 0) + 1
    if (found.length > 0) violations.push({ point: `${own}: ${nameOf(point)}`, found })
    else rmSync(own, { recursive: true, force: true })
  })
  return { points: points.length, hits, violations }
}

function nameOf({ call, path, n }: RunPoint): string {
  return `${call} ${n} on ${path}`
}
