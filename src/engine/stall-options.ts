/** The options by which handlers without activity are noticed, in milliseconds. */
import { type Duration, toMs } from '../core/durations.ts'
import { DefinitionInvalid } from '../core/errors.ts'

export function stallTimeoutOf(duration: Duration | undefined): number | undefined {
  const ms = duration === undefined ? undefined : toMs(duration, 'stallTimeout', DefinitionInvalid)
  if (ms === 0) throw new DefinitionInvalid('stallTimeout', 'must be longer than 0 ms')
  return ms
}

/** In milliseconds; 0 for never. */
export function stallWarningOf(
  duration: Duration | false,
  Invalid?: typeof DefinitionInvalid,
): number {
  return duration === false ? 0 : toMs(duration, 'stallWarning', Invalid)
}
