/** What every test of the contract of journals works with. */
import assert from 'node:assert/strict'
import type { RunCommand } from '../../../src/core/run/commands.ts'
import { decideRun } from '../../../src/core/run/decide.ts'
import type { RunEvent, RunFact } from '../../../src/core/run/events.ts'
import { documentationRun } from '../../../src/core/run/machine.ts'
import type { Run } from '../../../src/core/run/run.ts'
import type { Author, Journal, RunReader, RunWriter } from '../../../src/runs/journal/journal.ts'
import type { TestEnvironment } from '../../../src/testing/test-environment.ts'

/** A fresh, empty journal. */
export interface OpenedJournal {
  readonly journal: Journal
  /** Opens the same place once more, as another process would. */
  readonly again: () => Promise<Journal>
  /** Moves the time by which the journal judges. */
  readonly advance: (ms: number) => void | Promise<void>
}

/** Opens a fresh, empty journal in a given environment. */
export type OpenJournal = (environment: TestEnvironment) => Promise<OpenedJournal>

/** Tests by name. */
export type JournalCases = Readonly<Record<string, (bench: JournalBench) => Promise<void>>>

/** Somebody who appends. */
export const AUTHOR: Author = { trace_id: 'trace-1', span_id: 'span-1', actor: 'engine' }

/** The states on the way to the first one in which a run may be picked up. */
export const TO_PLAN = ['CLONED_INPUTS', 'INGESTED', 'FACTS_READY', 'PLAN_READY'] as const

/** A journal, and short words for what tests do again and again. */
export class JournalBench {
  readonly environment: TestEnvironment
  readonly journal: Journal
  readonly again: () => Promise<Journal>
  readonly advance: OpenedJournal['advance']

  constructor(environment: TestEnvironment, { journal, again, advance }: OpenedJournal) {
    this.environment = environment
    this.journal = journal
    this.again = again
    this.advance = advance
  }

  /** Begins a run of R4's machine. */
  create(runId = 'run-1', journal = this.journal): Promise<RunWriter> {
    return journal.create(runId, factsOf(null, { kind: 'create' }), AUTHOR)
  }

  /** The whole log of a run. */
  async events(runId: string, journal = this.journal): Promise<RunEvent[]> {
    return all((await journal.read(runId)).events())
  }

  /** A run with a little of everything, given free; the events as they were acknowledged. */
  async example(runId = 'run-1'): Promise<RunEvent[]> {
    const writer = await this.create(runId)
    const events = await all((await this.journal.read(runId)).events())
    for (const command of await exampleCommands(writer)) {
      events.push(...(await applyCommand(writer, command)))
      this.environment.clock.advance(7)
    }
    await writer.close()
    return events
  }
}

/** Commands that touch everything a run holds. */
async function exampleCommands(writer: RunWriter): Promise<RunCommand[]> {
  const plan = await writer.writeArtifact('plan.md', Buffer.from('# The plan\n'))
  const better = await writer.writeArtifact('plan.md', Buffer.from('# A better plan\n'))
  const worker = 'writer-1'
  return [
    ...TO_PLAN.map((to): RunCommand => ({ kind: 'move', to })),
    { kind: 'start-item', key: 'plan', inputs: { brief: 'b1' }, worker },
    { kind: 'write-artifact', name: 'plan.md', ...plan, worker, workItem: 'plan' },
    { kind: 'finish-item', key: 'plan' },
    { kind: 'start-item', key: 'draft', inputs: { 'plan.md': plan.sha256 }, worker },
    { kind: 'fail-item', key: 'draft', error: 'no ink \u2028 "quoted" \\ 墨' },
    { kind: 'write-artifact', name: 'plan.md', ...better, worker },
    { kind: 'change-section', section: '__proto__', to: 'drafted' },
    { kind: 'open-issue', issue: 'link-1', severity: 'warning', message: 'A dead link' },
    { kind: 'resolve-issue', issue: 'link-1' },
    { kind: 'link-commit', sha: 'a'.repeat(40) },
    { kind: 'move', to: 'DRAFTING' },
  ]
}

/** Decides a command on a writer's run and appends what comes of it. */
export function applyCommand(writer: RunWriter, command: RunCommand): Promise<RunEvent[]> {
  return writer.append(factsOf(writer.run, command), AUTHOR)
}

/** The facts of a command that must be accepted. */
export function factsOf(run: Run | null, command: RunCommand): readonly RunFact[] {
  const decision = decideRun(documentationRun, run, command)
  assert.equal(decision.kind, 'facts', `${command.kind} is accepted`)
  return decision.kind === 'facts' ? decision.facts : []
}

/** Everything that comes. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

/** The text of a content. */
export async function textOf(
  reader: Pick<RunReader, 'readArtifact'>,
  name: string,
  sha256: string,
): Promise<string> {
  return Buffer.from(await reader.readArtifact(name, sha256)).toString()
}
