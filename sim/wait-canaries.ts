/** Bugs planted in signals and waits; see `canaries.ts`. */
import { type Canary, canary, change, core } from './planted.ts'

const waits = core('waits')

export const WAITS: readonly Canary[] = [
  canary(
    'a signal is received by every wait for its name',
    'P18',
    change(waits, 'const read = new Set(facts.map(', 'const read = new Set([].map('),
  ),
  canary(
    'a signal does not wake the job that waits for it',
    'P18',
    change(waits, 'if (!command.awaited || !isWaiting)', 'if (true)'),
  ),
  canary(
    'a signal that was sent before the wait is lost',
    'P18',
    change(
      waits,
      'signal?.name === wait.name && !read.has(seq)',
      'signal?.name === wait.name && !read.has(seq) && ' +
        'facts.some((one) => isSameWait(one.wait, wait) && one.seq < seq)',
    ),
  ),
  canary(
    'a signal wakes its job and leaves no fact of itself',
    'P18',
    change(waits, "'signal', { signal, runAt: context.now,", "'signal', { runAt: context.now,"),
  ),
  canary(
    'a time-out counts although the signal was there',
    'P18',
    change(
      waits,
      "if (what === 'signal' && command.next !== undefined) {",
      "if (what === 'signal' && command.next !== undefined && !(until <= context.now)) {",
    ),
  ),
  canary(
    'a signal that is sent again is kept again',
    'P18',
    change(waits, 'signal?.name === name && signal.key === key)', 'false)'),
  ),
  canary(
    'a wait takes the newest signal',
    'P18',
    change(waits, 'facts.find(isNext)', 'facts.findLast(isNext)'),
  ),
  canary(
    'a signal wakes a job that waits for another',
    'P18',
    change(waits, "=== 'signal' && current.wait.name === name", "=== 'signal'"),
  ),
  canary(
    'a wait that is over is decided again in the next attempt',
    'P18',
    change(waits, 'facts.some(({ received }) => isSameWait(received, wait))', 'false'),
  ),
  canary(
    'a sleep begins anew in every attempt',
    'P15',
    change(waits, 'wait: begun ?? wait,', 'wait,'),
  ),
]
