/**
 * The part of promise P19 that the facts of one job show: while a job waits for others, no worker
 * takes it. The doctor compares the links with the jobs on both of their sides.
 */
import type { Fact } from './facts.ts'
import { LINKS } from './links.ts'

/** What is wrong with a fact. */
interface Fault {
  readonly seq: number
  readonly what: string
}

/** Returns what is wrong. `links` are the bits before the first of these facts. */
export function findLinkFaults(facts: readonly Fact[], links = 0): Fault[] {
  let current = links
  return facts.flatMap(({ seq, trigger, execution, links: own }) => {
    const waits = (current & LINKS.waits) !== 0
    current = own ?? current
    const isTaken = execution?.statuses[0] === 'LEASED' && execution.worker !== 'engine'
    return [
      ...(waits && isTaken ? [{ seq, what: 'was started while it waits for other jobs' }] : []),
      ...(!waits && trigger === 'arrive'
        ? [{ seq, what: 'was released although it waits for no other job' }]
        : []),
    ]
  })
}
