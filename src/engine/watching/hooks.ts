/**
 * Functions of the user's own that are called while work goes on. Whatever they throw, now or in a
 * promise, is logged and hurts nobody.
 */
import type { Clock, Logger, LogLevel } from '../../core/ports.ts'

/** A hook that fails with every event is logged this often at most. */
const LOG_EVERY_MS = 60_000

/** The hook, made harmless; nothing is called where there is none. */
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
    logger.error(fields, `${name} threw; the work goes on`)
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

/** A logger that never throws: a line that cannot be written is lost. */
export function harmlessLogger(logger: Logger): Logger {
  const at =
    (level: LogLevel): Logger['info'] =>
    (fields, msg) => {
      try {
        logger[level](fields, msg)
      } catch {
        // There is nowhere left to tell it.
      }
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** The text of anything that was thrown, also of what cannot be described. */
function textOf(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'an error that cannot be described'
  }
}
