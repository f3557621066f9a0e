/** One failure of a run of checks. */
interface Failure {
  readonly where: string
  readonly name?: string
  readonly lines: readonly string[]
}

export function failedTests(path: string, details?: string): Failure[]
export function failedStep(name: string, output: string): Failure
export function failureLines(
  failures: readonly Failure[],
  bounds?: { readonly failuresMax?: number; readonly linesMax?: number },
): string[]
