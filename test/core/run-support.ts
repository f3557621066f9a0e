// What the tests of runs share: R4's table, typed by hand, and short ways to bring a run
// into any of its states. Nothing here is read from the code under test.
import type { PawlError } from 'pawl'
import { decode, encode, foldRun, type RunDecision } from 'pawl/rules'
import { documentationRun, type Run, type RunEvent, type RunFact } from 'pawl/runs'
import { RunScript } from 'pawl/testing'

/** R4's table of valid transitions. */
const TABLE = {
  CREATED: ['CLONED_INPUTS', 'FAILED', 'CANCELLED'],
  CLONED_INPUTS: ['INGESTED', 'FAILED', 'CANCELLED'],
  INGESTED: ['FACTS_READY', 'FAILED', 'CANCELLED'],
  FACTS_READY: ['PLAN_READY', 'FAILED', 'CANCELLED'],
  PLAN_READY: ['DRAFTING', 'FAILED', 'CANCELLED'],
  DRAFTING: ['DRAFT_READY', 'FAILED', 'CANCELLED'],
  DRAFT_READY: ['LINKING', 'FAILED', 'CANCELLED'],
  LINKING: ['VALIDATING', 'FAILED', 'CANCELLED'],
  VALIDATING: ['READY_FOR_PR', 'FIXING', 'FAILED', 'CANCELLED'],
  FIXING: ['VALIDATING', 'FAILED', 'CANCELLED'],
  READY_FOR_PR: ['PR_OPENED', 'FAILED', 'CANCELLED'],
  PR_OPENED: ['DONE', 'FAILED', 'CANCELLED'],
  DONE: [],
  FAILED: [],
  CANCELLED: [],
} as const satisfies Record<string, readonly string[]>

export type State = keyof typeof TABLE

export const STATES = Object.keys(TABLE) as State[]
export const ENDED = ['DONE', 'FAILED', 'CANCELLED'] as const
export const ACTIVE = STATES.filter((state) => !(ENDED as readonly string[]).includes(state))
export const TRANSITIONAL = ['DRAFTING', 'LINKING', 'VALIDATING', 'FIXING'] as const

/** The targets of a state, by the table above. */
export function targetsOf(state: string): readonly string[] {
  return TABLE[state as State]
}

/** The states between CREATED and DONE on the way without a fix, CREATED left out. */
export const HAPPY_PATH = [
  'CLONED_INPUTS',
  'INGESTED',
  'FACTS_READY',
  'PLAN_READY',
  'DRAFTING',
  'DRAFT_READY',
  'LINKING',
  'VALIDATING',
  'READY_FOR_PR',
  'PR_OPENED',
  'DONE',
] as const

/** A run that has just been created. */
export function newRun(maxFixAttempts?: number): RunScript {
  const script = new RunScript(documentationRun)
  script.applyCommand({ kind: 'create', ...(maxFixAttempts !== undefined && { maxFixAttempts }) })
  return script
}

/** A run that was walked into this state by R4's own path. */
export function runIn(state: State, maxFixAttempts?: number): RunScript {
  const script = newRun(maxFixAttempts)
  if (state === 'FAILED') script.applyCommand({ kind: 'fail', reason: 'disk full' })
  else if (state === 'CANCELLED') script.applyCommand({ kind: 'cancel', reason: 'not wanted' })
  else if (state === 'FIXING') walkTo(script, 'VALIDATING', false).walk('FIXING')
  else if (state !== 'CREATED') walkTo(script, state, true)
  if (script.run.run_state !== state) throw new Error(`the run is not in ${state}`)
  return script
}

/** Walks on along the happy path; a validation is recorded in VALIDATING. */
export function walkTo(script: RunScript, state: State, ok: boolean): RunScript {
  const from = (HAPPY_PATH as readonly string[]).indexOf(script.run.run_state)
  const to = (HAPPY_PATH as readonly string[]).indexOf(state)
  for (const next of HAPPY_PATH.slice(from + 1, to + 1)) {
    script.walk(next)
    if (next === 'VALIDATING') script.applyCommand({ kind: 'record-validation', ok })
  }
  return script
}

/** The facts of an accepted command. */
export function factsOf(decision: RunDecision): readonly RunFact[] {
  if (decision.kind !== 'facts') throw new Error(`no facts but ${JSON.stringify(decision)}`)
  return decision.facts
}

/** The error of a refused command. */
export function errorOf(decision: RunDecision): PawlError {
  if (decision.kind !== 'rejected') throw new Error(`no refusal but ${JSON.stringify(decision)}`)
  return decision.error
}

/** The code of a refusal, or how else the command was answered. */
export function answerOf(decision: RunDecision): string {
  return decision.kind === 'rejected' ? decision.error.code : decision.kind
}

/** The field that a refused command names. */
export function fieldOf(decision: RunDecision): unknown {
  return errorOf(decision).details.field
}

/** A SHA-256 that is told apart by its end, in hex. */
export function hash(end: string | number): string {
  if (!/^[0-9a-f]+$/.test(String(end))) throw new Error(`${end} is not hex`)
  return String(end).padStart(64, '0')
}

/** What a log does to events: one canonical line each, read back in. */
export function throughText(events: readonly RunEvent[]): RunEvent[] {
  const lines = events.map((event) => encode(event)).join('\n')
  return lines.split('\n').map((line) => decode(line) as unknown as RunEvent)
}

/** The bytes of the snapshot that these events fold to. */
export function snapshotOf(events: readonly RunEvent[]): string {
  return encode(foldRun(events))
}

/** Writes an artifact, by the work item that made it if there is one. */
export function write(script: RunScript, name: string, sha: string | number, workItem?: string) {
  const artifact = { name, path: `artifacts/${name}`, sha256: hash(sha), worker: 'writer' }
  const by = workItem === undefined ? {} : { workItem }
  return script.applyCommand({ kind: 'write-artifact', ...artifact, ...by })
}

/** Asks for a work item to start. */
export function start(
  script: RunScript,
  key: string,
  inputs: Readonly<Record<string, string>> = {},
  more: { code?: string; forced?: boolean } = {},
) {
  return script.applyCommand({ kind: 'start-item', key, inputs, worker: 'writer', ...more })
}

/** The hashes that these artifacts have now. */
export function hashesOf(run: Run, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => [name, run.artifacts_index[name]?.sha256 ?? 'unknown']),
  )
}

/** Runs an item that reads some artifacts and writes others: names with the ends of hashes. */
export function work(
  script: RunScript,
  key: string,
  reads: readonly string[],
  writes: Readonly<Record<string, string | number>>,
): void {
  factsOf(start(script, key, hashesOf(script.run, reads)))
  for (const [name, sha] of Object.entries(writes)) factsOf(write(script, name, sha, key))
  factsOf(script.applyCommand({ kind: 'finish-item', key }))
}

/** The stale artifacts, by name. */
export function staleIn(run: Run): string[] {
  return Object.entries(run.artifacts_index)
    .filter(([, artifact]) => artifact.stale_because !== null)
    .map(([name]) => name)
    .sort()
}

/** Freezes a value all the way down, so that whoever changes it throws. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const own of Object.values(value)) deepFreeze(own)
    Object.freeze(value)
  }
  return value
}

/** A long life with events of every type but the ends; it stands in READY_FOR_PR. */
export function longLife(): RunScript {
  const script = runIn('PLAN_READY')
  const step = () => script.clock.advance(1000)
  write(script, 'facts', 1)
  work(script, 'draft', ['facts'], { chapter: 2 })
  step()
  start(script, 'link')
  script.applyCommand({ kind: 'fail-item', key: 'link', error: 'no such page' })
  script.applyCommand({ kind: 'change-section', section: 'intro', to: 'drafted' })
  script.applyCommand({ kind: 'open-issue', issue: 'typo', severity: 'warning', message: 'teh' })
  step()
  script.walk('DRAFTING')
  script.applyCommand({ kind: 'rewind', reason: 'resume' })
  script.applyCommand({ kind: 'discard-tail', bytes: 12, sha256: hash('f') })
  step()
  walkTo(script, 'VALIDATING', false).walk('FIXING', 'VALIDATING')
  script.applyCommand({ kind: 'resolve-issue', issue: 'typo' })
  script.applyCommand({ kind: 'record-validation', ok: true })
  script.walk('READY_FOR_PR')
  step()
  write(script, 'facts', 3)
  script.applyCommand({ kind: 'reset-fixes', because: 'facts' })
  script.applyCommand({ kind: 'revalidate-artifact', name: 'chapter' })
  script.applyCommand({ kind: 'link-commit', sha: 'c'.repeat(40) })
  return script
}
