/**
 * Explains which limit or throttle keeps a job from running.
 *
 * A job is blocked if its row says so. A ready job may also be kept back: by the limit of its
 * queue, whose jobs stay ready while they wait, or by a limit that the next claim finds reached.
 */
import { span } from '../../core/format.ts'
import type { Job } from '../../core/job/job.ts'
import { gateName, isRate, isStrict, readKeys } from '../../core/limits/keys.ts'
import { shortName } from '../../core/limits/short-names.ts'
import { moment } from '../../environment/times.ts'
import type { GateHolder, GateInfo, LimitInfo } from '../../stores/contract/limits.ts'
import type { Store } from '../../stores/contract/store.ts'
import type { Explanation } from './explain.ts'
import { aheadInGroup, type BehindOthers, explainGroup } from './explain-groups.ts'
import { counted, quoted } from './words.ts'

/** A limit or throttle that keeps a job back. */
export interface Obstacle {
  readonly gate: GateInfo
  /** The limit of the gate, or the number that an operator set for its key. */
  readonly setting?: LimitInfo
  /** The jobs that count in the gate, those that started first first; at most 3. */
  readonly holders: readonly GateHolder[]
  /** How many jobs that the same gate blocks come before it; absent if it is not blocked yet. */
  readonly ahead?: number
  /** What comes before it in its strict group. */
  readonly behind?: BehindOthers
}

/** How many holders are named. */
const HOLDERS_MAX = 3

/** Reads what keeps a job back; `undefined` if no limit does. */
export async function obstacleOf(store: Store, job: Job): Promise<Obstacle | undefined> {
  if (job.outcome !== null || job.execution !== null) return undefined
  const { limits } = store
  const blockage = await limits.blockage(job.id)
  const behind = await aheadInGroup(store, job)
  const gate = blockage?.gate ?? (await findFull(store, job, behind !== undefined))
  if (gate === undefined) return undefined
  const setting = await settingOf(store, gate)
  const holders = isRate(gate.gate) ? [] : await limits.holders(gate.gate, HOLDERS_MAX)
  return {
    gate,
    holders,
    ...(setting !== undefined && { setting }),
    ...(blockage !== undefined && { ahead: blockage.ahead }),
    ...(behind !== undefined && { behind }),
  }
}

/** The first gate of a ready job that has no room. */
async function findFull(store: Store, job: Job, isBehind: boolean): Promise<GateInfo | undefined> {
  const gates = [gateName('queue', job.queue), ...readKeys(job.limitKey).map(({ gate }) => gate)]
  for (const name of gates) {
    const gate = await store.limits.gate(name)
    if (!hasRoom(gate, store.now()) || (isBehind && isStrict(name))) return gate
  }
  return undefined
}

/** The number of a key counts before that of its limit. */
async function settingOf({ limits }: Store, { gate, limit }: GateInfo) {
  const own = await limits.get(gate)
  return own?.override != null || gate === limit ? own : await limits.get(limit)
}

/** Whether a job may start now. */
export function hasRoom({ gate, used, max, opensAt }: GateInfo, now: number): boolean {
  if (isRate(gate)) return opensAt === undefined || opensAt <= now
  return max === null || used < max
}

/** Explains a job that a limit or a throttle keeps back. */
export function explainObstacle(obstacle: Obstacle, now: number): Explanation {
  const { gate, behind, ahead } = obstacle
  const group = explainGroup(gate, behind, ahead, now)
  if (group !== undefined) return { kind: 'blocked', says: group, blockedBy: obstacle }
  if (hasRoom(gate, now)) {
    const says = `It was blocked by ${nameOf(gate)}, which has room now; a worker makes it ready.`
    return { kind: 'ready', says, blockedBy: obstacle }
  }
  return isRate(gate.gate) ? throttled(obstacle, now) : blocked(obstacle, now)
}

function blocked(obstacle: Obstacle, now: number): Explanation {
  const { gate, setting } = obstacle
  const max = gate.max as number
  const by = setting?.override == null ? '' : `, set by ${setting.overrideBy}`
  const why = setting?.overrideNote == null ? '' : ` (${setting.overrideNote})`
  const use = max === 0 ? `is paused${by}${why}` : `has ${gate.used} of ${max} in use${by}${why}`
  const who = `${holdersOf(obstacle, now)}${turnOf(obstacle)}`
  const says = `It is blocked: ${nameOf(gate)} ${use}${who}.`
  return { kind: 'blocked', says, command: commandOf(obstacle), blockedBy: obstacle }
}

function throttled(obstacle: Obstacle, now: number): Explanation {
  const { gate, setting } = obstacle
  const opens = moment(gate.opensAt as number, now)
  const { max = null, periodMs = null } = setting ?? {}
  const rule =
    max === null || periodMs === null
      ? ''
      : `, which allows ${counted(max, 'unit')} in ${span(periodMs)}`
  const says = `It is not started before ${opens} by ${nameOf(gate)}${rule}${turnOf(obstacle)}.`
  const command = `pawl limit show ${argumentsOf(gate)}`
  return { kind: 'throttled', says, command, blockedBy: obstacle }
}

/** Who counts in the gate. */
function holdersOf({ gate, holders }: Obstacle, now: number): string {
  const [first] = holders
  if (first === undefined) return ''
  const { id, worker, startedAt } = first
  const others = Math.max(0, gate.used - 1)
  const more = others === 0 ? '' : ` and ${counted(others, 'other job')}`
  const verb = others === 0 ? 'holds' : 'hold'
  return `: job ${id} on ${worker} since ${span(now - startedAt)}${more} ${verb} it`
}

function turnOf({ ahead }: Obstacle): string {
  if (ahead === undefined) return ''
  return `; ${counted(ahead, 'job is', 'jobs are')} ahead`
}

function nameOf({ gate, limit, key }: GateInfo): string {
  const what = isRate(gate) ? 'the throttle' : 'the limit'
  return `${what} ${shortName(limit)}${key === undefined ? '' : ` for ${key}`}`
}

function argumentsOf({ limit, key }: GateInfo): string {
  return `${quoted(shortName(limit))}${key === undefined ? '' : ` --key=${quoted(key)}`}`
}

/** An operator's 0 is taken back; any other number is raised. */
function commandOf({ gate, setting }: Obstacle): string {
  const what = argumentsOf(gate)
  if (gate.max !== 0 || setting?.override !== 0) {
    const more = `--concurrency ${(gate.max as number) + 1}`
    return `pawl limit set ${what} ${more} --reason …`
  }
  const isWhole = setting.name !== gate.gate && gate.key !== undefined
  return `pawl limit reset ${isWhole ? quoted(shortName(gate.limit)) : what} --reason …`
}
