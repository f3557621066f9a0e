/**
 * Plays seeds until one breaks a promise that is looked for, and tells which, as one line of JSON.
 * It runs in a copy of the package in which a bug was planted; see `canaries.ts`.
 */
import type { Judged } from './checker.ts'
import { simulateFlows } from './flow-world.ts'
import { simulateWaits } from './wait-world.ts'
import { simulate } from './world.ts'

const [promise, max] = process.argv.slice(2)
const others = new Set<string>()
let caught = false
let seeds = 0
while (!caught && seeds < Number(max)) {
  for (const violation of await play(++seeds)) others.add(violation.promise)
  caught = others.delete(promise ?? '')
}
console.log(JSON.stringify({ caught, seeds, others: [...others].sort() }))

/** Plays a seed; only the world that can break the promise, if there is one. */
async function play(seed: number): Promise<readonly Judged[]> {
  if (promise === 'P18') return (await simulateWaits(seed)).judged
  if (promise === 'P19') return (await simulateFlows(seed)).judged
  return (await simulate(seed)).violations
}
