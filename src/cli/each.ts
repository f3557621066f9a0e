/** Commands with several names: each is tried, and each result is printed. */
import { PawlError } from '../core/errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from './exit-codes.ts'
import type { Call } from './spec.ts'
import { visible } from './visible.ts'

/**
 * Calls `act` for each name. An error does not stop the others: it is printed, or thrown if there
 * is only one name. Returns the exit code of the errors, `conflict` if they differ. Stops before
 * the next name after a signal. `field` is the name of the JSON field.
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
