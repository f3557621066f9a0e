/**
 * Calls functions of the user during work. Exceptions and rejected promises are caught and logged.
 */
import type { Clock, Logger, LogLevel } from '../../core/ports.ts'

/** A hook that always fails is logged at most once in this time. */
const LOG_EVERY_MS = 60_000

/** Wraps a hook so that it never throws; without a hook, returns a function that does nothing. */
export function harmless<T>(
  name: string,
  hook: ((value: T) => unknown) | undefined,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): (value: T) => void {
  if (hook === undefined) return () => {}
  let quietUntil = Number.NEGATIVE_INFINITY
  const note = (error: unknown) => {
    if (clock.now() < quietUntil) return
    quietUntil = clock.now() + LOG_EVERY_MS
    const fields = { event: 'hook.failed', hook: name, error: textOf(error) }
    logger.error(fields, `${name} threw an exception, which is ignored`)
  }
  return (value) => {
    try {
      const returned = hook(value)
      if (returned instanceof Promise) returned.catch(note)
    } catch (error) {
      note(error)
    }
  }
}

/** A logger that never throws. Lines that cannot be written are dropped. */
export function harmlessLogger(logger: Logger): Logger {
  const at =
    (level: LogLevel): Logger['info'] =>
    (fields, msg) => {
      try {
        logger[level](fields, msg)
      } catch {
        // The logger itself failed, so there is nowhere to report it.
      }
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** `String` itself can throw. */
function textOf(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'an error that cannot be converted to text'
  }
}
