/** Prints a job for people: its attributes, its current state and its facts. */

import { span } from '../core/format.ts'
import { type Fact, hopsOf } from '../core/job/facts.ts'
import { isCommitted, type Job } from '../core/job/job.ts'
import { laneOf } from '../core/job/lanes.ts'
import { unreadSignals } from '../core/job/wait-promise.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import { encodeValue, notStoredIn } from '../core/values.ts'
import type { Explanation } from '../engine/operators/explain.ts'
import { moment, relative, stamp } from '../environment/times.ts'
import type { JobLinks } from '../http/links.ts'
import type { EffectInfo } from '../stores/contract/store.ts'
import type { WaitRecord } from '../stores/contract/waits.ts'
import { linkLines } from './link-lines.ts'
import type { Output, Style } from './output.ts'
import { thrownLines } from './thrown-text.ts'
import { shortened, visible } from './visible.ts'

/** What `pawl job show` prints. */
export interface Story {
  readonly job: Job
  readonly facts: readonly Fact[]
  /** Undefined if this process does not know it. */
  readonly lifecycle: Lifecycle | undefined
  readonly input: string | undefined
  readonly result: string | undefined
  readonly progress: string | undefined
  /** The first effects of the job. */
  readonly effects: readonly EffectInfo[]
  /** Why the job is in its state; undefined for a past state. */
  readonly explanation: Explanation | undefined
  /** What the job waits for; undefined if it does not wait, and for a past state. */
  readonly wait: WaitRecord | undefined
  /** What connects the job with others; undefined for a past state. */
  readonly links: JobLinks | undefined
  readonly now: number
}

const PAYLOAD_MAX = 2000
const NAMES_MAX = 200

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
  printFailure(output, story)
  output.line()
  output.line(output.style('bold', 'ledger'))
  let before: number | undefined
  for (const fact of story.facts) {
    output.line(`  ${factLine(fact, before)}`)
    before = fact.at
  }
}

/** The error of the last attempt that failed, with its stack and its causes. */
function printFailure(output: Output, { job, facts }: Story): void {
  const fact = facts.findLast(({ thrown }) => thrown !== undefined)
  if (fact?.thrown === undefined || job.error === null) return
  output.line()
  const attempt = fact.execution?.attempt ?? job.attempt
  const group = fact.error?.fingerprint
  const key = group === undefined ? '' : `  group ${visible(group)}`
  output.line(`${output.style('bold', `failure of attempt ${attempt}`)}${key}`)
  for (const line of thrownLines(fact.thrown)) output.line(`  ${visible(line)}`)
}

function linesOf(output: Output, story: Story): [string, string | undefined][] {
  const { job, now, input, result, progress } = story
  const error = job.error === null ? undefined : visible(job.error.message)
  return [
    ['state', stateLine(output, story)],
    ['why', job.reason === null ? undefined : visible(job.blockedReason ?? job.reason)],
    ['waits for', story.wait && waitText(story.wait, now)],
    ['unread', unreadLine(story)],
    ...linkLines(story.links),
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

/** What a job waits for, and until when. */
export function waitText({ for: what, name, until }: WaitRecord, now: number): string {
  const own = `${what} ${visible(name)}`
  return until === null ? `${own}, without a time-out` : `${own}, until ${moment(until, now)}`
}

/** Signals that no wait has received. If the job has ended, none will. */
function unreadLine({ job, facts }: Story): string | undefined {
  const unread = unreadSignals(facts)
  if (unread.length === 0) return undefined
  const names = [...new Set(unread.map(({ signal }) => signal?.name ?? ''))]
  const shown = visible(shortened(names.join(', '), NAMES_MAX))
  const many = unread.length === 1 ? '1 signal' : `${unread.length} signals`
  return `${many}: ${shown}  (pawl signal list ${visible(job.id)})`
}

function stateLine(output: Output, { job, lifecycle, now }: Story): string {
  const lane = lifecycle && laneOf(lifecycle, job, now)
  const state = output.style(styleOf(job, lane), visible(job.state))
  const known = lifecycle === undefined ? ', which this process does not know' : ''
  const inLane = lane === undefined ? '' : `  lane ${lane}`
  return `${state}${inLane}  lifecycle ${visible(job.lifecycle)} v${job.lifecycleVersion}${known}`
}

function styleOf({ outcome }: Job, lane: string | undefined): Style {
  if (outcome === 'succeeded') return 'green'
  return outcome !== null || lane === 'parked' ? 'red' : 'yellow'
}

function queueLine({ queue, priority, aheadMs }: Job): string {
  return `${visible(queue)}  ${priorityText(priority, aheadMs)}`
}

function priorityText(priority: number, aheadMs = 0): string {
  return `priority ${priority}${aheadMs === 0 ? '' : `, ${span(aheadMs)} ahead`}`
}

function budgetLine({ job, lifecycle }: Story): string {
  const policy = job.policy ?? lifecycle?.policy
  const of = (count: number, max: number | undefined) =>
    max === undefined ? `${count}` : `${count} of ${max}`
  // These are counts of retries: the last failure or crash, which ends the job, is not among them.
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
  const silent = job.stalled ? ', recovery waits for approval' : ''
  const until = moment(execution.leaseUntil, now)
  const runs = execution.leaseUntil > now ? 'until' : 'expired'
  return `${visible(execution.worker)}, ${execution.status}, ${runs} ${until}${silent}`
}

const UNDEFINED = encodeValue(undefined)

/** Values that JSON does not have are shown as they are stored, such as {"@pawl:date":"…"}. */
function payload(text: string): string {
  if (text === UNDEFINED) return 'undefined'
  const missing = notStoredIn(text)
  if (missing !== undefined) return visible(`not stored: ${missing.path} ${missing.why}`)
  const cut = text.length > PAYLOAD_MAX ? `  (${text.length} characters; --json prints all)` : ''
  return `${visible(shortened(text, PAYLOAD_MAX))}${cut}`
}

function effectLine({ key, state, tries, runAt, error }: EffectInfo, now: number): string {
  const why = error === undefined ? '' : `: ${visible(shortened(error, 200))}`
  const retry = state === 'parked' ? `  (pawl effect retry ${visible(key)} --reason …)` : ''
  return `${visible(key)} ${state} ${relative(runAt, now)}, tries ${tries}${why}${retry}`
}

/** Formats a fact as one line. */
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
    fact.dependency === undefined ? '' : `dependency ${visible(fact.dependency)}`,
    signalOf(fact),
    fact.priority === undefined || fact.trigger === 'create'
      ? ''
      : priorityText(fact.priority, fact.aheadMs),
    fact.note === undefined ? '' : `"${visible(fact.note)}"`,
  ]
  const text = parts.filter((part) => part !== '').join(': ')
  return text === '' ? '' : `· ${text}`
}

/** The signal that was sent, the wait that began, or how a wait ended. */
function signalOf({ signal, wait, received }: Fact): string {
  if (signal !== undefined) return `signal ${visible(signal.name)}, key ${visible(signal.key)}`
  if (wait !== undefined) return `waits for ${wait.for} ${visible(wait.name)} ${wait.n}`
  if (received === undefined) return ''
  const own = `${received.for} ${visible(received.name)} ${received.n}`
  if (received.signal !== undefined) return `${own} received fact ${received.signal}`
  return received.for === 'signal' ? `${own} timed out` : `${own} is over`
}
