/** The context that a handler receives. Each call goes to the part of the attempt that does it. */
import { Snooze } from '../../core/failure.ts'
import type { Job } from '../../core/job/job.ts'
import type { Logger } from '../../core/ports.ts'
import type { JobContext, JobDefinition } from '../define-job.ts'
import type { Effects, Tx } from '../effects/effects.ts'
import type { ScheduleContext } from '../schedules/schedule-context.ts'
import type { AttemptTrace } from '../tracing/attempt-trace.ts'
import { jobLogger } from '../watching/log.ts'
import type { Children } from './children.ts'
import type { LazyAbort } from './lazy-abort.ts'
import type { Steps } from './steps.ts'
import { throttledError } from './throttled.ts'
import type { Waits } from './waits.ts'

interface ContextParts {
  readonly input: unknown
  readonly schedule: ScheduleContext | undefined
  readonly job: Job
  readonly definition: JobDefinition
  readonly abort: LazyAbort
  readonly logger: Logger
  readonly trace: AttemptTrace | undefined
  /** Hands a promise to the handler, which may forget to await it. */
  readonly give: <T>(what: string, work: () => Promise<T>) => Promise<T>
  readonly steps: () => Steps
  readonly waits: () => Waits
  readonly enqueue: Children['enqueue']
  readonly commit: <Output>(work: (tx: Tx) => Output | Promise<Output>) => Promise<Output>
  readonly progress: (value: unknown) => void
  readonly count: (name: string, by: number) => void
}

export function handlerContext(parts: ContextParts): JobContext<unknown, Effects, string> {
  const { input, schedule, job, definition, abort, logger, trace, give } = parts
  const { id, type, queue, attempt, tags } = job
  return {
    input,
    step: (name, work) => give(`step "${name}"`, () => parts.steps().run(name, work)),
    commit: (work) => give('commit', () => parts.commit(work)),
    snooze: (delay) => {
      throw new Snooze(delay)
    },
    throttled: (throttle, options) => throttledError(definition, job, throttle, options),
    enqueue: (definition, input, options) =>
      give('enqueue', () => parts.enqueue(definition, input, options)) as never,
    sleep: (name, time) => give(`sleep "${name}"`, () => parts.waits().sleep(name, time)),
    waitForSignal: (signal, options) =>
      give(`signal "${signal.name}"`, () => parts.waits().signal(signal, options)),
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
