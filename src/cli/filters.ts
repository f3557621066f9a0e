/** The options by which jobs are chosen, the same for lists and for verbs. */
import { LANES, type Lane } from '../core/job/lanes.ts'
import type { JobFilter } from '../stores/store.ts'
import { type Call, type OptionSpec, textOf } from './spec.ts'
import { readPast } from './times.ts'

/** Conditions; those that are given are combined. */
export const FILTER_OPTIONS: readonly OptionSpec[] = [
  { flags: '--state <state>', says: 'jobs in this state' },
  { flags: '--lane <lane>', says: 'jobs in this lane', choices: Object.keys(LANES) },
  { flags: '--queue <queue>', says: 'jobs of this queue' },
  { flags: '--type <type>', says: 'jobs of this type' },
  { flags: '--tag <tag>', says: 'jobs with this tag' },
  { flags: '--key <key>', says: 'jobs with this key' },
  { flags: '--error <text>', says: 'jobs whose last error contains this text' },
  { flags: '--created-after <time>', says: 'created since a date, or so long ago (1h)' },
  { flags: '--created-before <time>', says: 'created before a date, or longer ago (1h)' },
]

/**
 * The filter that the options of a call make; empty where there are none. `now` is the time of the
 * store, which may differ from that of this machine.
 */
export function filterOf(call: Call, now: number): JobFilter {
  const time = (name: string, option: string) => {
    const text = textOf(call, name)
    return text === undefined ? undefined : readPast(text, option, now)
  }
  const createdFrom = time('createdAfter', 'created-after')
  const createdBefore = time('createdBefore', 'created-before')
  const texts = ['state', 'lane', 'queue', 'type', 'tag', 'key', 'error'].flatMap((name) => {
    const text = textOf(call, name)
    return text === undefined ? [] : [[name, text] as const]
  })
  return {
    ...(Object.fromEntries(texts) as JobFilter & { lane?: Lane }),
    ...(createdFrom !== undefined && { createdFrom }),
    ...(createdBefore !== undefined && { createdBefore }),
  }
}
