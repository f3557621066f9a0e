/** A job's whole story, for people: what it is, where it stands, and how it got there. */
import { type Fact, hopsOf } from '../core/job/facts.ts'
import { isCommitted, type Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Explanation } from '../engine/operators/explain.ts'
import { moment, relative, span, stamp } from '../environment/times.ts'
import type { EffectInfo } from '../stores/store.ts'
import type { Output, Style } from './output.ts'
import { shortened, visible } from './visible.ts'

/** Everything that is known of a job. */
export interface Story {
  readonly job: Job
  readonly facts: readonly Fact[]
  /** Nothing where this process does not know it. */
  readonly lifecycle: Lifecycle | undefined
  readonly input: string | undefined
  readonly result: string | undefined
  readonly progress: string | undefined
  /** The first of what it does to the world outside. */
  readonly effects: readonly EffectInfo[]
  /** Why it is where it is; nothing for a job as it once was. */
  readonly explanation: Explanation | undefined
  readonly now: number
}

const PAYLOAD_MAX = 2000

/** Prints the story. */
export function printStory(output: Output, story: Story): void {
  const { job } = story
  output.line(`${output.style('bold', `job ${job.id}`)}  ${visible(job.type)}`)
  for (const [name, text] of linesOf(output, story)) {
    if (text !== undefined) output.line(`  ${output.style('dim', name.padEnd(10))} ${text}`)
  }
  if (story.effects.length > 0) {
    output.line()
    output.line(output.style('bold', 'effects'))
    for (const effect of story.effects) output.line(`  ${effectLine(effect, story.now)}`)
  }
  output.line()
  output.line(output.style('bold', 'ledger'))
  let before: number | undefined
  for (const fact of story.facts) {
    output.line(`  ${factLine(fact, before)}`)
    before = fact.at
  }
}

function linesOf(output: Output, story: Story): [string, string | undefined][] {
  const { job, now, input, result, progress } = story
  const error = job.error === null ? undefined : visible(job.error.message)
  return [
    ['state', stateLine(output, story)],
    ['why', job.reason === null ? undefined : visible(job.blockedReason ?? job.reason)],
    ['queue', queueLine(job)],
    ['tags', job.tags.length === 0 ? undefined : visible(job.tags.join(', '))],
    ['key', job.key === null ? undefined : visible(job.key)],
    ['copy of', job.retryOf ?? undefined],
    ['created', moment(job.createdAt, now)],
    ['due', job.runAt === null || job.outcome !== null ? undefined : moment(job.runAt, now)],
    ['started', job.startedAt === null ? undefined : moment(job.startedAt, now)],
    ['ended', job.endedAt === null ? undefined : moment(job.endedAt, now)],
    ['deadline', job.deadlineAt === null ? undefined : moment(job.deadlineAt, now)],
    ['timeout', job.timeoutMs === null ? undefined : `${span(job.timeoutMs)} for an attempt`],
    ['attempts', budgetLine(story)],
    ['lease', leaseLine(story)],
    ['progress', progress && payload(progress)],
    [
      'error',
      job.error === null ? undefined : `${job.error.type} ${visible(job.error.kind)}: ${error}`,
    ],
    ['input', input && payload(input)],
    ['result', result && payload(result)],
    ['now', story.explanation && visible(story.explanation.says)],
    ['next', story.explanation?.command && visible(story.explanation.command)],
  ]
}

function stateLine(output: Output, { job, lifecycle, now }: Story): string {
  const lane = lifecycle && laneOf(lifecycle, job, now)
  const state = output.style(styleOf(job, lane), visible(job.state))
  const known = lifecycle === undefined ? ', which is not known here' : ''
  const inLane = lane === undefined ? '' : `  lane ${lane}`
  return `${state}${inLane}  lifecycle ${visible(job.lifecycle)} v${job.lifecycleVersion}${known}`
}

function styleOf({ outcome }: Job, lane: string | undefined): Style {
  if (outcome === 'succeeded') return 'green'
  return outcome !== null || lane === 'parked' ? 'red' : 'yellow'
}

function queueLine({ queue, priority }: Job): string {
  return `${visible(queue)}  priority ${priority}`
}

function budgetLine({ job, lifecycle }: Story): string {
  const policy = job.policy ?? lifecycle?.policy
  const of = (count: number, max: number | undefined) =>
    max === undefined ? `${count}` : `${count} of ${max}`
  // The counts are of further starts: the failure or crash that ends a job spends none of them.
  const spent = [
    `${of(job.failures, policy?.retry.max)} retries`,
    `${of(job.crashes, policy?.crashesMax)} restarts after crashes`,
    `${of(job.releases, policy?.releasesMax)} releases`,
  ]
  return `${job.attempt}  (${spent.join(', ')})`
}

function leaseLine({ job, now }: Story): string | undefined {
  const { execution } = job
  if (execution === null || isCommitted(job)) return undefined
  const silent = job.stalled ? ', and the job waits for approval' : ''
  const until = moment(execution.leaseUntil, now)
  const runs = execution.leaseUntil > now ? 'until' : 'expired'
  return `${visible(execution.worker)}, ${execution.status}, ${runs} ${until}${silent}`
}

function payload(text: string): string {
  const cut = text.length > PAYLOAD_MAX ? `  (${text.length} characters; --json gives all)` : ''
  return `${visible(shortened(text, PAYLOAD_MAX))}${cut}`
}

function effectLine({ key, state, tries, runAt, error }: EffectInfo, now: number): string {
  const why = error === undefined ? '' : `: ${visible(shortened(error, 200))}`
  const retry = state === 'parked' ? `  (pawl effect retry ${visible(key)} --reason …)` : ''
  return `${visible(key)} ${state} ${relative(runAt, now)}, tries ${tries}${why}${retry}`
}

/** One fact as one line. */
export function factLine(fact: Fact, before?: number): string {
  const time = before === undefined ? stamp(fact.at) : `+${span(fact.at - before)}`
  const parts = [
    `#${fact.seq}`.padEnd(5),
    time.padEnd(before === undefined ? 0 : 9),
    fact.trigger.padEnd(10),
    statesOf(fact),
    attemptOf(fact),
    timingText(fact),
    whoOf(fact),
    whyOf(fact),
  ]
  return parts
    .filter((part) => part !== '')
    .join(' ')
    .trimEnd()
}

function statesOf(fact: Fact): string {
  const { migrated, from, to } = fact
  if (migrated !== undefined) {
    return visible(`v${migrated.from} ${from} → v${migrated.to} ${to}`)
  }
  const states = hopsOf(fact).map(({ to }) => to)
  const all = fact.from === null ? [...(fact.via ?? []), fact.to] : [fact.from, ...states]
  return visible(all.join(' → '))
}

function attemptOf({ execution, spends }: Fact): string {
  if (execution === undefined) return ''
  const { attempt, statuses, abort } = execution
  const why = abort === undefined ? '' : ` (${abort})`
  const cost = spends === undefined ? '' : `, spends one ${spends}`
  return `· attempt ${attempt} ${statuses.join(', ')}${why}${cost}`
}

function timingText({ timing }: Fact): string {
  if (timing === undefined) return ''
  return `· waited ${span(timing.queueMs)}, took ${span(timing.durationMs)}`
}

function whoOf({ actor, operator, execution }: Fact): string {
  if (operator !== undefined) return `· ${actor} ${visible(operator)}`
  const worker = execution?.worker
  return `· ${actor}${worker === undefined || worker === actor ? '' : ` ${visible(worker)}`}`
}

function whyOf(fact: Fact): string {
  const parts = [
    fact.reason === undefined ? '' : visible(fact.reason),
    fact.error ? visible(shortened(fact.error.message, 200)) : '',
    fact.step === undefined ? '' : `step ${visible(fact.step.name)} ${fact.step.n}`,
    fact.effects ? `${fact.effects} effects` : '',
    fact.priority === undefined || fact.trigger === 'create' ? '' : `priority ${fact.priority}`,
    fact.note === undefined ? '' : `"${visible(fact.note)}"`,
  ]
  const said = parts.filter((part) => part !== '').join(': ')
  return said === '' ? '' : `· ${said}`
}
