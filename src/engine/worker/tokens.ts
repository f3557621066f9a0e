import type { AnySignal } from '../define-signal.ts'
import { type SignalToken, SignalTokens, type TokenOptions } from '../signal-tokens.ts'
import type { AttemptParts } from './attempt-parts.ts'

/** Numbers the tokens of each signal, so that a repeated attempt makes them for the same uses. */
export function tokensOf(
  jobId: string,
  { tokens = new SignalTokens(undefined), now }: Pick<AttemptParts, 'tokens' | 'now'>,
): (signal: AnySignal, options?: TokenOptions) => SignalToken {
  const uses = new Map<string, number>()
  return ({ name }, options = {}) => {
    const use = (uses.get(name) ?? 0) + 1
    uses.set(name, use)
    return tokens.issue({ jobId, signal: name, use }, options, now())
  }
}
