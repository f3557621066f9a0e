/**
 * Plays seeds until one breaks a promise that is looked for, and tells which, as one line of JSON.
 * It runs in a copy of the package in which a bug was planted; see `canaries.ts`.
 */
import { simulate } from './world.ts'

const [promise, max] = process.argv.slice(2)
const others = new Set<string>()
let caught = false
let seeds = 0
while (!caught && seeds < Number(max)) {
  const { violations } = await simulate(++seeds)
  for (const violation of violations) others.add(violation.promise)
  caught = others.delete(promise ?? '')
}
console.log(JSON.stringify({ caught, seeds, others: [...others].sort() }))
