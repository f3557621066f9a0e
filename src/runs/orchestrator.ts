/**
 * The work on one run: its nodes, one after the other, until it has ended or stands still.
 *
 *   a node returns a state    the run moves there, if the machine has that edge and its guard
 *                             holds; else nothing is recorded, and the error is thrown
 *   it throws `Terminal`, or calls `run.fail`
 *                             the run has failed
 *   it throws anything else   the run stays where it is, with an issue that says why, and can be
 *                             resumed; the issue ends when the node has been done
 *   somebody cancels          the run is cancelled at once; whatever a node still does is refused
 *   the process stops         the run stays where it is
 */
import { classify, Terminal, toBoundedText } from '../core/failure.ts'
import type { Timer } from '../core/ports.ts'
import type { RunCommand } from '../core/run/commands.ts'
import { entryOf } from '../core/run/run.ts'
import type { Environment } from '../environment/system.ts'
import type { Node, RunDefinition } from './define-run.ts'
import { RunCancelled, RunFailure, RunInterrupted } from './errors.ts'
import { JournalClosed, JournalFailed, RunLost } from './journal/errors.ts'
import type { Author } from './journal/journal.ts'
import { NodeContext, type NodeParts } from './node-context.ts'
import { endOf, type RunOutcome } from './outcome.ts'

/** What an orchestrator works with; the signal of the parts is its own. */
export interface OrchestratorParts {
  readonly definition: RunDefinition
  readonly environment: Environment
  /** Everything that a node's context needs, for this signal. */
  readonly node: (signal: AbortSignal) => NodeParts
  readonly newAuthor: () => Author
}

/** How often it looks whether somebody asked for the run to be cancelled. */
const LOOK_EVERY_MS = 500
/** A run that goes in circles comes to a stop, and can be resumed. */
const NODES_MAX = 100_000
const REASON_MAX = 1900

/** Works on one run, until it ends or stands still. */
export class Orchestrator {
  readonly #parts: OrchestratorParts
  readonly #node: NodeParts
  readonly #abort = new AbortController()
  #timer: Timer | undefined
  #isOver = false

  constructor(parts: OrchestratorParts) {
    this.#parts = parts
    this.#node = parts.node(this.#abort.signal)
    const { signal } = this.#node.log.writer
    const onLost = () => this.#abort.abort(signal.reason)
    if (signal.aborted) onLost()
    else signal.addEventListener('abort', onLost, { once: true })
  }

  /** Cancels the run, here and now. */
  cancel(reason: string): void {
    this.#abort.abort(new RunCancelled(this.#run.run_id, reason))
  }

  /** Stops the work; the run can be resumed. */
  interrupt(): void {
    this.#abort.abort(new RunInterrupted(this.#run.run_id))
  }

  /** Works, and closes the writer of the run. */
  async work(): Promise<RunOutcome> {
    this.#look()
    try {
      return await this.#walk()
    } finally {
      this.#isOver = true
      this.#timer?.cancel()
      await this.#node.log.writer.close()
    }
  }

  get #run() {
    return this.#node.log.run
  }

  async #walk(): Promise<RunOutcome> {
    const { machine } = this.#parts.definition
    for (let nodes = 0; nodes < NODES_MAX; nodes++) {
      const end = endOf(machine, this.#run)
      if (end !== undefined) return end
      const stopped = await this.#step()
      if (stopped !== undefined) return stopped
    }
    return this.#stopped(new Error(`The run went through ${NODES_MAX} nodes without an end`))
  }

  /** Does the node of the present state, and moves on; gives an outcome where it cannot. */
  async #step(): Promise<RunOutcome | undefined> {
    const state = this.#run.run_state
    const context = new NodeContext(this.#node)
    const ended = await this.#untilAborted(this.#callNode(state, context))
    context.end()
    switch (ended.kind) {
      case 'next':
        await this.#tell(...this.#resolved(state), { kind: 'move', to: ended.to })
        return undefined
      case 'thrown':
        return this.#thrown(state, ended.error)
      case 'aborted':
        return this.#aborted(ended.reason)
    }
  }

  /** A node is over when everything that it began is. */
  async #callNode(state: string, context: NodeContext): Promise<Ended> {
    // The definition has a node for every state that is not terminal.
    const node = this.#parts.definition.nodes.get(state) as Node<never, string>
    try {
      const to = await node(context)
      const failed = await this.#node.items.settled()
      return failed === undefined ? { kind: 'next', to } : { kind: 'thrown', ...failed }
    } catch (error) {
      await this.#node.items.settled()
      return { kind: 'thrown', error }
    }
  }

  /** A node that ignores its signal is not waited for: nothing of it counts any more. */
  #untilAborted(node: Promise<Ended>): Promise<Ended> {
    const { signal } = this.#abort
    return new Promise((resolve, reject) => {
      const onAbort = () => resolve({ kind: 'aborted', reason: signal.reason })
      if (signal.aborted) onAbort()
      signal.addEventListener('abort', onAbort, { once: true })
      node.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    })
  }

  async #thrown(state: string, error: unknown): Promise<RunOutcome | undefined> {
    if (BROKEN.some((Broken) => error instanceof Broken)) throw error
    const { message } = classify(error)
    if (error instanceof RunFailure || error instanceof Terminal) {
      const reason = error instanceof RunFailure ? error.reason : message
      await this.#tell({ kind: 'fail', reason: boundedReason(reason) })
      return undefined
    }
    const issue = issueOf(state)
    const issueCommand = { kind: 'open-issue', issue, severity: 'error' } as const
    // A fix that threw has run; one whose process died has not.
    await this.#tell({ kind: 'count-fix' }, { ...issueCommand, message: textOr(message) })
    return this.#stopped(error)
  }

  async #aborted(reason: unknown): Promise<RunOutcome | undefined> {
    if (reason instanceof RunInterrupted) return this.#stopped(reason)
    if (!(reason instanceof RunCancelled)) throw reason
    await this.#tell({ kind: 'cancel', reason: boundedReason(String(reason.details.reason)) })
    return undefined
  }

  #stopped(error: unknown): RunOutcome {
    return { kind: 'stopped', run: this.#run, error }
  }

  #resolved(state: string): RunCommand[] {
    const issue = issueOf(state)
    const isOpen = entryOf(this.#run.issues, issue)?.status === 'open'
    return isOpen ? [{ kind: 'resolve-issue', issue }] : []
  }

  async #tell(...commands: readonly RunCommand[]): Promise<void> {
    await this.#node.log.tell(this.#parts.newAuthor(), ...commands)
  }

  /** Looks now and then whether somebody elsewhere asked for the run to be cancelled. */
  #look(): void {
    const { environment } = this.#parts
    const look = async () => {
      try {
        const request = await this.#node.log.writer.cancelRequest()
        if (request !== undefined) this.cancel(request.reason)
      } catch {
        // It is looked for again; a journal that cannot be read shows itself in the work.
      }
      if (!this.#isOver && !this.#abort.signal.aborted) {
        this.#timer = environment.timers.after(LOOK_EVERY_MS, () => void look())
      }
    }
    void look()
  }
}

type Ended =
  | { readonly kind: 'next'; readonly to: string }
  | { readonly kind: 'thrown'; readonly error: unknown }
  | { readonly kind: 'aborted'; readonly reason: unknown }

/** Nothing can be recorded after these. */
const BROKEN = [JournalClosed, JournalFailed, RunLost]

function issueOf(state: string): string {
  return `NodeFailed:${state}`
}

function boundedReason(reason: string): string {
  return textOr(toBoundedText(reason, REASON_MAX))
}

function textOr(text: string): string {
  return text.trim() === '' ? 'no reason was given' : text.slice(0, 4000)
}
