/** Commands that take several names: each is tried, and each outcome is printed. */
import { PawlError } from '../core/errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts'
import type { Call } from './spec.ts'
import { visible } from './visible.ts'

/**
 * Does something with each of these names. One that is refused stops no other: the refusal is
 * printed in its place, or thrown if it is the only name. Returns the exit code of the refusals,
 * `conflict` if they have several, and stops before the next name after a signal. `field` is what
 * the names are called in JSON.
 */
export async function eachOf(
  { output, interrupted }: Pick<Call, 'output' | 'interrupted'>,
  field: string,
  names: readonly string[],
  act: (name: string) => Promise<void>,
): Promise<ExitCode> {
  const codes = new Set<ExitCode>()
  for (const name of new Set(names)) {
    if (interrupted.aborted) return EXIT.interrupted
    try {
      await act(name)
    } catch (error) {
      if (!(error instanceof PawlError) || names.length === 1) throw error
      const { code, message, hint } = error
      codes.add(exitCodeOf(error))
      if (output.json) output.record({ [field]: name, error: { code, message, hint } })
      else {
        const why = `${visible(message)} (${code}). ${visible(hint)}`
        output.line(`${visible(name)} refused: ${why}`)
      }
    }
  }
  if (codes.size === 0) return EXIT.ok
  return codes.size === 1 ? ([...codes][0] as ExitCode) : EXIT.conflict
}
