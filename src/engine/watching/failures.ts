/** Failures for the hooks of the user: `onError` and `redactError`. */
import type { Clock, Logger } from '../../core/ports.ts'
import type { Redact } from '../../core/thrown.ts'
import type { PawlEvent } from './events.ts'
import { harmless } from './hooks.ts'

/** What an error was thrown for. */
export interface FailureInfo {
  /** `leftover`: a promise of Pawl rejected, and the handler did not await it. */
  readonly kind: 'job' | 'effect' | 'leftover'
  readonly jobId: string
  readonly jobType: string
  readonly worker: string
  /** The attempt at the job, or the try of the effect. */
  readonly attempt: number
  /** When it is tried again; null if the failure is final, or if it does not count. */
  readonly retryAt: number | null
  /** The same for failures of the same kind at the same place. */
  readonly fingerprint?: string
  /** The name of the effect, or what was not awaited. */
  readonly subject?: string
}

/** Returns a function that calls `onError` for events with an error of the user's code. */
export function errorObserver(
  onError: ((error: unknown, failure: FailureInfo) => unknown) | undefined,
  ports: { readonly clock: Clock; readonly logger: Logger },
): (event: PawlEvent) => void {
  if (onError === undefined) return () => {}
  const call = harmless(
    'onError',
    ({ error, info }: { error: unknown; info: FailureInfo }) => onError(error, info),
    ports,
  )
  return (event) => {
    const info = infoOf(event)
    if (info !== undefined) call({ error: errorIn(event), info })
  }
}

function errorIn(event: PawlEvent): unknown {
  return event.type === 'leftover' ? event.error : (event as { original?: unknown }).original
}

function infoOf(event: PawlEvent): FailureInfo | undefined {
  switch (event.type) {
    case 'failed': {
      if (!('original' in event)) return undefined
      const { worker, job, attempt, retryAt, error } = event
      const fingerprint = error.fingerprint
      return {
        kind: 'job',
        ...{ jobId: job.id, jobType: job.type, worker, attempt, retryAt },
        ...(fingerprint !== undefined && { fingerprint }),
      }
    }
    case 'effect': {
      if (!('original' in event)) return undefined
      const { worker, jobId, jobType, name, tries, retryAt, fingerprint } = event
      return {
        kind: 'effect',
        ...{ jobId, jobType, worker, attempt: tries, retryAt, subject: name },
        ...(fingerprint !== undefined && { fingerprint }),
      }
    }
    case 'leftover': {
      if (event.problem === 'running') return undefined
      const { worker, job, what } = event
      const { id: jobId, type: jobType, attempt } = job
      return { kind: 'leftover', jobId, jobType, worker, attempt, retryAt: null, subject: what }
    }
    default:
      return undefined
  }
}

/** What a text becomes that `redactError` could not change. */
const WITHHELD = '(withheld: redactError failed)'

/** Wraps `redactError` so that it never throws. A text that it cannot change is not stored. */
export function safeRedact(
  redact: Redact | undefined,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Redact | undefined {
  if (redact === undefined) return undefined
  const complain = harmless(
    'redactError',
    (error: unknown) => {
      throw error
    },
    { clock, logger },
  )
  return (text) => {
    try {
      const changed: unknown = redact(text)
      if (typeof changed === 'string') return changed
      complain(new TypeError('redactError must return a string'))
    } catch (error) {
      complain(error)
    }
    return WITHHELD
  }
}
