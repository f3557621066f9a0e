/**
 * `npm run model [-- --json]`: has spin search the model of leases and commits, and tells what came
 * of it. Exits with 1 where a search found what it should not, or did not find what it should, and
 * with 3 where spin or gcc is missing.
 */
import { parseArgs } from 'node:util'
import { findMissing, type Outcome, SEARCHES, search } from './search.ts'

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const missing = await findMissing()
if (missing === undefined) await searchAll()
else {
  console.error(`The model was not searched: ${missing} is not installed.`)
  console.error('On Debian: apt-get install spin gcc libc6-dev')
  process.exitCode = 3
}

async function searchAll(): Promise<void> {
  const models: Outcome[] = []
  for (const wanted of SEARCHES) {
    const outcome = await search(wanted, 'model')
    models.push(outcome)
    if (!values.json) show(outcome)
  }
  if (values.json) console.log(JSON.stringify({ models }))
  process.exitCode = models.every(({ ok }) => ok) ? 0 : 1
}

function show({ name, property, states, errors, found, story, ok }: Outcome): void {
  const result = errors === 0 ? 'holds' : `found: ${found}`
  const count = `${states.toLocaleString('en')} states`
  console.log(`${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(24)} ${property}, ${count}, ${result}`)
  for (const line of story) console.log(`          ${line}`)
}
