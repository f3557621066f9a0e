// Measuring on a machine that others use as well: what is compared runs in turns, in one process,
// and the ratio is the median of the ratios of neighbours, so that noise hits both sides alike.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One comparison. */
export interface Result {
  readonly name: string
  readonly pawl: number
  readonly reference: number
  readonly ratio: number
}

/** Runs both sides in turns; one turn of each comes first and is not counted. */
export async function compare(
  name: string,
  rounds: number,
  pawl: () => Promise<number>,
  reference: () => Promise<number>,
): Promise<Result> {
  const pairs: { pawl: number; reference: number }[] = []
  for (let round = 0; round <= rounds; round++) {
    // The second one finds a warmer machine, so each is second every other time.
    const [first, second] = round % 2 === 0 ? [pawl, reference] : [reference, pawl]
    const figures = [await first(), await second()] as const
    const [own, other] = round % 2 === 0 ? figures : ([figures[1], figures[0]] as const)
    if (round > 0) pairs.push({ pawl: own, reference: other })
  }
  return resultOf(name, pairs)
}

/** The result of what was measured in pairs; also says it on the way. */
export function resultOf(
  name: string,
  pairs: readonly { readonly pawl: number; readonly reference: number }[],
): Result {
  const result = {
    name,
    pawl: round(median(pairs.map((pair) => pair.pawl))),
    reference: round(median(pairs.map((pair) => pair.reference))),
    ratio: round(median(pairs.map((pair) => pair.pawl / pair.reference))),
  }
  process.stderr.write(`${name}: ${result.pawl} / ${result.reference} = ${result.ratio}\n`)
  return result
}

/** The middle one of several numbers. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] as number
}

function round(number: number): number {
  return Number(number.toPrecision(4))
}

/** How long work takes, in milliseconds. */
export async function timed(work: () => Promise<void> | void): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Gives a fresh folder, and removes it afterwards. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'))
  try {
    return await work(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
