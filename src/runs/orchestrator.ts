/**
 * Works on one run: calls the node of each state until the run ends or stops.
 *
 *   the node returns a state    the run moves to it; if the machine has no such edge, or its guard
 *                               fails, nothing is recorded and the error is thrown
 *   the node throws `Terminal` or calls `run.fail`
 *                               the run fails
 *   the node throws any other error
 *                               the run keeps its state, gets an issue with the error, and can be
 *                               resumed; the issue is resolved when the node succeeds
 *   the run is cancelled        the run ends at once; later calls of the node are rejected
 *   the process stops           the run keeps its state
 */
import { classify, Terminal, toBoundedText } from '../core/failure.ts'
import type { Timer } from '../core/ports.ts'
import type { RunCommand } from '../core/run/commands.ts'
import type { RunMachine } from '../core/run/machine.ts'
import { entryOf, type Run } from '../core/run/run.ts'
import type { Environment } from '../environment/system.ts'
import type { Node, RunDefinition } from './define-run.ts'
import { RunCancelled, RunFailure, RunInterrupted } from './errors.ts'
import { JournalClosed, JournalFailed, RunLost } from './journal/errors.ts'
import type { Damage } from './journal/journal.ts'
import { NodeContext, type NodeParts } from './node-context.ts'
import type { NewAuthor } from './run-authors.ts'

/** The result of the work on a run. A stopped run can be resumed. */
export type RunOutcome =
  | { readonly kind: 'done'; readonly run: Run }
  | {
      readonly kind: 'failed'
      readonly run: Run
      readonly reason: string
      /** The damage of its log, if that is why it failed. */
      readonly damage?: Damage
    }
  | { readonly kind: 'cancelled'; readonly run: Run; readonly reason: string }
  /** A node threw an error that is not terminal, or the process stops. */
  | { readonly kind: 'stopped'; readonly run: Run; readonly error: unknown }

/** Returns the outcome of a run, or `undefined` if it has not ended. */
export function endOf(
  { machine, failed, cancelled }: RunMachine,
  run: Run,
): RunOutcome | undefined {
  if (machine.states.get(run.run_state)?.terminal !== true) return undefined
  const reason = run.ended_because ?? 'no reason was given'
  if (run.run_state === failed) return { kind: 'failed', run, reason }
  return run.run_state === cancelled ? { kind: 'cancelled', run, reason } : { kind: 'done', run }
}

export interface OrchestratorParts {
  readonly definition: RunDefinition
  readonly environment: Environment
  /** Makes the parts of a node's context. The signal is the orchestrator's. */
  readonly node: (signal: AbortSignal) => NodeParts
  readonly newAuthor: NewAuthor
}

/** The interval between checks for a request to cancel. */
const LOOK_EVERY_MS = 500
/** A run that loops without end stops here, and can be resumed. */
const NODES_MAX = 100_000
const REASON_MAX = 1900

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

  cancel(reason: string): void {
    this.#abort.abort(new RunCancelled(this.#run.run_id, reason))
  }

  /** Stops the work. The run can be resumed. */
  interrupt(): void {
    this.#abort.abort(new RunInterrupted(this.#run.run_id))
  }

  /** Works on the run, then closes its writer. */
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

  /** Calls the node of the current state and moves on. Returns an outcome if the run stops. */
  async #step(): Promise<RunOutcome | undefined> {
    const state = this.#run.run_state
    const context = new NodeContext(this.#node)
    const ended = await this.#untilAborted(this.#callTraced(state, context))
    context.end()
    switch (ended.kind) {
      case 'next':
        await this.#applyCommand(...this.#resolved(state), { kind: 'move', to: ended.to })
        return undefined
      case 'thrown':
        return this.#thrown(state, ended.error)
      case 'aborted':
        return this.#aborted(ended.reason)
    }
  }

  #callTraced(state: string, context: NodeContext): Promise<Ended> {
    const { spans } = this.#parts.newAuthor
    const call = () => this.#callNode(state, context)
    if (spans === undefined) return call()
    const runId = this.#run.run_id
    return spans.node({ runId, state }, call, (ended) =>
      ended.kind === 'thrown' ? ended : undefined,
    )
  }

  /** Waits also for work items that the node started and did not await. */
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

  /** Does not wait for a node that ignores its signal: its later calls are rejected. */
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
      await this.#applyCommand({ kind: 'fail', reason: boundedReason(reason) })
      return undefined
    }
    const issue = issueOf(state)
    const issueCommand = { kind: 'open-issue', issue, severity: 'error' } as const
    // A fix that threw counts as an attempt. A fix whose process died does not.
    await this.#applyCommand({ kind: 'count-fix' }, { ...issueCommand, message: textOr(message) })
    return this.#stopped(error)
  }

  async #aborted(reason: unknown): Promise<RunOutcome | undefined> {
    if (reason instanceof RunInterrupted) return this.#stopped(reason)
    if (!(reason instanceof RunCancelled)) throw reason
    await this.#applyCommand({
      kind: 'cancel',
      reason: boundedReason(String(reason.details.reason)),
    })
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

  async #applyCommand(...commands: readonly RunCommand[]): Promise<void> {
    await this.#node.log.applyCommand(this.#parts.newAuthor(), ...commands)
  }

  /** Checks regularly whether another process asked to cancel the run. */
  #look(): void {
    const { environment } = this.#parts
    const look = async () => {
      try {
        const request = await this.#node.log.writer.cancelRequest()
        if (request !== undefined) this.cancel(request.reason)
      } catch {
        // The next check tries again. If the journal stays unreadable, the work fails as well.
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

/** After these errors nothing can be recorded. */
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
