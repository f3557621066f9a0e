/** What a handler threw, as lines for a person. `--json` of each command has all of it. */
import type { ThrownError } from '../core/thrown.ts'
import { shortened } from './visible.ts'

const FRAMES_MAX = 10
const MESSAGE_MAX = 2000
/** Calls of the handler by Pawl and by Node, on this machine or on the one that ran the job. */
const OWN_FRAME = /[/\\]node_modules[/\\]pawl[/\\]dist[/\\]|\(node:internal\/| node:internal\//

/**
 * The message, the stack up to the handler, and the same for each cause. Texts are not escaped:
 * print each line with `visible`.
 */
export function thrownLines(thrown: ThrownError, label = ''): string[] {
  const { name, message, code, stack = '', fields = {}, cause, errors = [] } = thrown
  const known = Object.entries({ ...(code !== undefined && { code }), ...fields })
  const shown = known.map(([field, value]) => `${field} ${value}`).join(', ')
  return [
    `${label}${name}: ${shortened(message, MESSAGE_MAX)}${shown === '' ? '' : `  (${shown})`}`,
    ...framesOf(stack).map((frame) => `    ${frame}`),
    ...(cause === undefined ? [] : thrownLines(cause, 'caused by ')),
    ...errors.flatMap((error) => thrownLines(error, 'one of them: ')),
  ]
}

/** Without the calls that lead to the handler, unless there is nothing else. */
function framesOf(stack: string): readonly string[] {
  const frames = stack === '' ? [] : stack.split('\n')
  const last = frames.findLastIndex((frame) => !OWN_FRAME.test(frame))
  return frames.slice(0, Math.min(FRAMES_MAX, last < 0 ? frames.length : last + 1))
}
