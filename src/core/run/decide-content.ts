/**
 * Decides the commands about the content of a run: artifacts, work items, sections, issues,
 * commits.
 */
import { CommandInvalid, type PawlError } from '../errors.ts'
import type { RunCommand } from './commands.ts'
import type { RunDecision } from './decide.ts'
import type { RunFact } from './events.ts'
import { readNamesOf } from './known-names.ts'
import { entryOf, type Run } from './run.ts'
import { downstreamOf, freshnessOf } from './staleness.ts'

type StateCommandKind =
  | 'create'
  | 'move'
  | 'rewind'
  | 'record-validation'
  | 'count-fix'
  | 'reset-fixes'
  | 'fail'
  | 'cancel'

/** The commands that do not change the state of the run. */
export type ContentCommand = Exclude<RunCommand, { kind: StateCommandKind }>

/** Decides a command that does not change the state of the run. */
export function decideContent(run: Run, command: ContentCommand): RunDecision {
  switch (command.kind) {
    case 'write-artifact':
      return decideWrite(run, command)
    case 'invalidate-artifact':
      return decideInvalidate(run, command.name)
    case 'revalidate-artifact':
      return decideRevalidate(run, command.name)
    case 'start-item':
      return decideStart(run, command)
    case 'finish-item':
    case 'fail-item':
      return decideEndOfItem(run, command)
    case 'change-section':
      return decideSection(run, command.section, command.to)
    case 'open-issue':
      return decideOpen(run, command)
    case 'resolve-issue':
      return decideResolve(run, command.issue)
    case 'discard-tail':
      return accept({
        type: 'LOG_TAIL_DISCARDED',
        data: { bytes: command.bytes, sha256: command.sha256 },
      })
    case 'link-commit':
      return run.commits.includes(command.sha)
        ? SAME
        : accept({ type: 'COMMIT_LINKED', data: { sha: command.sha } })
  }
}

type Of<K extends ContentCommand['kind']> = Extract<ContentCommand, { kind: K }>

const SAME: RunDecision = { kind: 'same' }

/** A new hash makes everything downstream stale. An unchanged hash makes nothing stale. */
function decideWrite(run: Run, command: Of<'write-artifact'>): RunDecision {
  const before = entryOf(run.artifacts_index, command.name)
  const written: RunFact = {
    type: 'ARTIFACT_WRITTEN',
    data: {
      name: command.name,
      path: command.path,
      sha256: command.sha256,
      schema_id: command.schemaId ?? null,
      writer_worker: command.worker,
      work_item: command.workItem ?? null,
    },
  }
  const changed =
    before === undefined ? wasReadOtherwise(run, command) : before.sha256 !== command.sha256
  return accept(written, ...(changed ? staleFacts(run, command.name) : []))
}

/** Returns true if an item read another hash under this name before it became an artifact. */
function wasReadOtherwise(run: Run, { name, sha256 }: Of<'write-artifact'>): boolean {
  if (!readNamesOf(run).has(name)) return false
  return Object.values(run.work_items).some(({ inputs }) => {
    const read = entryOf(inputs, name)
    return read !== undefined && read !== sha256
  })
}

function decideInvalidate(run: Run, name: string): RunDecision {
  if (entryOf(run.artifacts_index, name) === undefined) return refuse(unknown('name', name))
  const facts = staleFacts(run, name)
  return facts.length === 0 ? SAME : accept(...facts)
}

function staleFacts(run: Run, because: string): RunFact[] {
  return downstreamOf(run, because)
    .filter((name) => entryOf(run.artifacts_index, name)?.stale_because === null)
    .map((name) => ({ type: 'ARTIFACT_STALE', data: { name, because } }))
}

function decideRevalidate(run: Run, name: string): RunDecision {
  const artifact = entryOf(run.artifacts_index, name)
  if (artifact === undefined) return refuse(unknown('name', name))
  if (artifact.stale_because === null) return SAME
  return accept({ type: 'ARTIFACT_REVALIDATED', data: { name } })
}

/** Promise P14: a finished item that is fresh is not run again. */
function decideStart(run: Run, command: Of<'start-item'>): RunDecision {
  const { key, inputs, worker, code = null, forced = false } = command
  const freshness = freshnessOf(run, { key, inputs, code, forced })
  if (freshness.kind === 'fresh') return SAME
  const data = { key, inputs, code, worker, because: freshness.because }
  return accept({ type: 'WORK_ITEM_STARTED', data })
}

function decideEndOfItem(run: Run, command: Of<'finish-item' | 'fail-item'>): RunDecision {
  const item = entryOf(run.work_items, command.key)
  if (item === undefined) return refuse(unknown('key', command.key))
  const ending = command.kind === 'finish-item' ? 'finished' : 'failed'
  if (item.status === ending) return SAME
  if (item.status !== 'started') {
    return refuse(new CommandInvalid('key', `names an item that has already ${item.status}`))
  }
  if (command.kind === 'fail-item') {
    return accept({
      type: 'WORK_ITEM_FAILED',
      data: { key: command.key, error: command.error },
    })
  }
  const inputs = { ...item.inputs, ...command.inputs }
  return accept({ type: 'WORK_ITEM_FINISHED', data: { key: command.key, inputs } })
}

function decideSection(run: Run, section: string, to: string): RunDecision {
  const from = entryOf(run.section_states, section) ?? null
  if (from === to) return SAME
  const data = { section, from_state: from, to_state: to }
  return accept({ type: 'SECTION_STATE_CHANGED', data })
}

function decideOpen(run: Run, command: Of<'open-issue'>): RunDecision {
  const { issue, severity, message } = command
  const before = entryOf(run.issues, issue)
  const same = before?.severity === severity && before.message === message
  if (before?.status === 'open' && same) return SAME
  return accept({ type: 'ISSUE_OPENED', data: { issue, severity, message } })
}

function decideResolve(run: Run, issue: string): RunDecision {
  const found = entryOf(run.issues, issue)
  if (found === undefined) return refuse(unknown('issue', issue))
  return found.status === 'resolved' ? SAME : accept({ type: 'ISSUE_RESOLVED', data: { issue } })
}

function unknown(field: string, value: string): PawlError {
  return new CommandInvalid(field, `is not known in this run: ${value}`)
}

function accept(...facts: readonly RunFact[]): RunDecision {
  return { kind: 'facts', facts }
}

function refuse(error: PawlError): RunDecision {
  return { kind: 'rejected', error }
}
