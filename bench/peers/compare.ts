// `npm run bench -- peers`: Pawl and the libraries that people would take instead, on the same
// machine, servers and Node, with the same work. Everyone in a metric has one turn in each round,
// in an order that moves on, and each turn has a process and a database of its own. A ratio is the
// median of the ratios within rounds, so that a busy moment of the machine hits both sides.
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { installApart } from '../../scripts/install-apart.ts'
import { median } from '../measure.ts'
import { METRICS, type Metric, type Rival } from './metrics.ts'
import { writeReport } from './report.ts'
import { withServers } from './servers.ts'
import type { Contender } from './settings.ts'
import { type Grounds, takeTurn } from './turns.ts'

/** Pawl against one peer. */
export interface PeerResult {
  readonly name: string
  readonly pawl: number
  readonly peer: number
  readonly peerName: string
  readonly ratio: number
  /** Null if no goal was set, for example because the durability differs. */
  readonly goal: number | null
  readonly lowerIsBetter?: true
}

/** A result, with what the page shows of it. */
export interface Compared {
  readonly metric: Metric
  readonly rival: Rival
  readonly result: PeerResult
  /** The smallest and the largest ratio of a round. */
  readonly range: readonly [number, number]
  /** The load average of the machine after the metric: what ran on it, the harness included. */
  readonly load: number
}

/** What one run knows. */
export interface Comparison {
  readonly rounds: number
  readonly compared: readonly Compared[]
  /** What was not measured, and why. */
  readonly skipped: readonly string[]
  readonly versions: Readonly<Record<string, string>>
  readonly home: string
}

/** Measures everything, or what has `only` in its name; a whole run writes bench/RESULTS.md. */
export async function benchPeers(options: {
  quick: boolean
  only?: string
}): Promise<PeerResult[]> {
  const { quick, only = '' } = options
  const home = join(process.cwd(), '.cache/bench-peers')
  await installApart('bench/peers', home)
  const metrics = METRICS.filter(({ name }) => name.includes(only))
  const rounds = quick ? 1 : 3
  return await withServers(async (servers) => {
    const skipped: string[] = []
    const compared: Compared[] = []
    for (const [index, metric] of metrics.entries()) {
      const jobs = quick ? Math.ceil(metric.jobs / 10) : metric.jobs
      const own = { ...metric, jobs: isTime(metric) ? metric.jobs : jobs }
      compared.push(...(await measure({ home, servers }, own, rounds, skipped)))
      // After each metric, so that a run that is interrupted leaves what it has found.
      const left = metrics
        .slice(index + 1)
        .map(({ name }) => `${name}: the run was ended before it`)
      const { versions } = servers
      const all = [...skipped, ...left]
      const comparison = { rounds, compared, skipped: all, versions, home }
      if (!quick && only === '') writeReport(comparison)
    }
    return compared.map(({ result }) => result)
  })
}

const isTime = ({ measure }: Metric) => measure === 'idleCpu' || measure === 'startUp'

async function measure(
  grounds: Grounds,
  metric: Metric,
  rounds: number,
  skipped: string[],
): Promise<Compared[]> {
  const skip = (what: string, why: string) => {
    const text = `${metric.name}, ${what}: ${why}`
    if (!skipped.includes(text)) skipped.push(text)
    process.stderr.write(`NOT MEASURED: ${text}\n`)
  }
  const { hasRedis } = grounds.servers
  const rivals = metric.rivals.filter(({ contender: { database, name } }) => {
    const isThere = database !== 'redis' || hasRedis
    if (!isThere) skip(name, 'redis-server is not in PATH')
    return isThere
  })
  const all = [metric.pawl, ...rivals.map(({ contender }) => contender)]
  const figures = new Map<Contender, (number | undefined)[]>(all.map((one) => [one, []]))
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < all.length; i++) {
      const contender = all[(i + round) % all.length] as Contender
      const figure = await attempt(grounds, metric, contender, skip)
      figures.get(contender)?.push(figure)
    }
  }
  const figuresOf = (contender: Contender) => figures.get(contender) ?? []
  return rivals.flatMap((rival) => {
    const pairs = pairsOf(figuresOf(metric.pawl), figuresOf(rival.contender))
    return pairs.length === 0 ? [] : [comparedOf(metric, rival, pairs)]
  })
}

/** Returns undefined for a turn that failed; what the database held decides that as well. */
async function attempt(
  grounds: Grounds,
  metric: Metric,
  contender: Contender,
  skip: (what: string, why: string) => void,
): Promise<number | undefined> {
  const label = `${metric.name}, ${contender.name} (${contender.settings})`
  try {
    const figure = await takeTurn(grounds, metric, contender)
    process.stderr.write(`${label}: ${rounded(figure)} ${metric.unit}\n`)
    return figure
  } catch (error) {
    const text = (error as { stderr?: string }).stderr || String(error)
    const reason = /^\w*Error.*$/m.exec(text)?.[0] ?? text.slice(-300).trim()
    skip(contender.name, reason)
    return undefined
  }
}

type Pair = readonly [pawl: number, peer: number]

function pairsOf(
  own: readonly (number | undefined)[],
  others: readonly (number | undefined)[],
): Pair[] {
  return own.flatMap((figure, round): Pair[] => {
    const other = others[round]
    return figure === undefined || other === undefined ? [] : [[figure, other]]
  })
}

function comparedOf(metric: Metric, rival: Rival, pairs: readonly Pair[]): Compared {
  const ratios = pairs.map(([own, other]) => own / other)
  const result: PeerResult = {
    name: `${metric.name}, against ${rival.contender.name}`,
    pawl: rounded(median(pairs.map(([own]) => own))),
    peer: rounded(median(pairs.map(([, other]) => other))),
    peerName: rival.contender.name,
    ratio: rounded(median(ratios)),
    goal: rival.goal,
    ...(metric.lowerIsBetter && { lowerIsBetter: true as const }),
  }
  const [load = 0] = loadavg()
  return { metric, rival, result, range: [Math.min(...ratios), Math.max(...ratios)], load }
}

function rounded(number: number): number {
  return Number(number.toPrecision(3))
}
