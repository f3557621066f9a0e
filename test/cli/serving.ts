// `pawl serve` as a process, on a free port.
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import type { Place } from './pawl.ts'

/** Starts it, and waits until it has said where it listens. */
export async function serving(place: Place, ...args: string[]) {
  const child = place.start(['serve', '--port', '0', ...args])
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  const [line] = (await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error(errors))),
  ])) as [Buffer]
  return { child, url: line.toString().trim() }
}
