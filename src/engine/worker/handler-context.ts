/** The context that a handler receives. Each call goes to the part of the attempt that does it. */
import { Snooze } from '../../core/failure.ts'
import type { Job } from '../../core/job/job.ts'
import type { Logger } from '../../core/ports.ts'
import { approval } from '../approvals.ts'
import type { JobDefinition } from '../define-job.ts'
import { type AnySignal, checkDeclared } from '../define-signal.ts'
import type { Effects, Tx } from '../effects/effects.ts'
import type { JobContext } from '../job-context.ts'
import type { AnyJob } from '../job-types.ts'
import { checkInvokeManyOptions, checkInvokeOptions, type InvokeManyOptions } from '../options.ts'
import type { ChildOutcome } from '../outcome.ts'
import type { ScheduleContext } from '../schedules/schedule-context.ts'
import type { SignalToken, TokenOptions } from '../signal-tokens.ts'
import type { AttemptTrace } from '../tracing/attempt-trace.ts'
import { jobLogger } from '../watching/log.ts'
import type { Children } from './children.ts'
import type { HandlerTools } from './handler-tools.ts'
import type { LazyAbort } from './lazy-abort.ts'
import { throttledError } from './throttled.ts'

interface ContextParts {
  readonly input: unknown
  readonly schedule: ScheduleContext | undefined
  /** The outputs of the jobs that it comes after; undefined if it comes after nothing. */
  readonly after: object | undefined
  readonly job: Job
  readonly definition: JobDefinition
  readonly abort: LazyAbort
  readonly logger: Logger
  readonly trace: AttemptTrace | undefined
  /** Hands a promise to the handler, which may forget to await it. */
  readonly give: <T>(what: string, work: () => Promise<T>) => Promise<T>
  readonly tools: () => HandlerTools
  readonly token: (signal: AnySignal, options?: TokenOptions) => SignalToken
  readonly invoke: (
    asked: { name: string; definition: AnyJob; inputs: readonly unknown[] },
    options: InvokeManyOptions,
  ) => Promise<readonly ChildOutcome[]>
  readonly enqueue: Children['enqueue']
  readonly commit: <Output>(work: (tx: Tx) => Output | Promise<Output>) => Promise<Output>
  readonly progress: (value: unknown) => void
  readonly count: (name: string, by: number) => void
}

export function handlerContext(
  parts: ContextParts,
): JobContext<unknown, Effects, string, true, undefined, AnySignal> {
  const { input, schedule, job, definition, abort, logger, trace, give } = parts
  const { id, type, queue, attempt, tags } = job
  return {
    input,
    ...(parts.after !== undefined && { after: parts.after }),
    step: (name, work) => give(`step "${name}"`, () => parts.tools().steps.run(name, work)),
    commit: (work) => give('commit', () => parts.commit(work)),
    snooze: (delay) => {
      throw new Snooze(delay)
    },
    throttled: (throttle, options) => throttledError(definition, job, throttle, options),
    enqueue: (definition, input, options) =>
      give('enqueue', () => parts.enqueue(definition, input, options)) as never,
    sleep: (name, time) => give(`sleep "${name}"`, () => parts.tools().waits.sleep(name, time)),
    waitForSignal: (signal, options) =>
      give(`signal "${signal.name}"`, async () => {
        checkDeclared(definition, signal)
        return parts.tools().waits.signal(signal, options)
      }),
    waitForApproval: (options) =>
      give('approval', async () => {
        checkDeclared(definition, approval)
        return parts.tools().waits.approval(options)
      }),
    token: (signal, options) => {
      checkDeclared(definition, signal)
      return parts.token(signal, options)
    },
    invoke: (name, definition, input, options = {}) =>
      give(`invoke "${name}"`, async () => {
        checkInvokeOptions(options)
        const [outcome] = await parts.invoke({ name, definition, inputs: [input] }, options)
        return outcome as never
      }),
    invokeMany: (name, definition, inputs, options = {}) =>
      give(`invokeMany "${name}"`, async () => {
        checkInvokeManyOptions(options)
        return (await parts.invoke({ name, definition, inputs }, options)) as never
      }),
    jobId: id,
    type,
    queue,
    attempt,
    tags,
    schedule,
    get signal() {
      return abort.signal
    },
    progress: parts.progress,
    count: (name, by = 1) => parts.count(name, by),
    get log() {
      return jobLogger(logger, job, trace?.fields)
    },
  }
}
