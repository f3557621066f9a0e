/** The options that select jobs, for lists and for operator commands. */
import { LANES, type Lane } from '../core/job/lanes.ts'
import type { JobFilter } from '../stores/contract/store.ts'
import { OUTCOME_WORDS } from '../stores/ends.ts'
import { type Call, type OptionSpec, textOf } from './spec.ts'
import { readPast } from './times.ts'

/** A job must match all given conditions. */
export const FILTER_OPTIONS: readonly OptionSpec[] = [
  { flags: '--state <state>', says: 'jobs in this state' },
  { flags: '--lane <lane>', says: 'jobs in this lane', choices: Object.keys(LANES) },
  {
    flags: '--outcome <word>',
    says: 'jobs with this outcome, in any lifecycle; failed includes exhausted retries',
    choices: [...OUTCOME_WORDS],
  },
  { flags: '--stalled', says: 'jobs whose recovery waits for an approval' },
  { flags: '--queue <queue>', says: 'jobs of this queue' },
  { flags: '--type <type>', says: 'jobs of this type' },
  { flags: '--tag <tag>', says: 'jobs with this tag' },
  { flags: '--key <key>', says: 'jobs with this key' },
  { flags: '--error <text>', says: 'jobs whose last error has this in its message, code or group' },
  { flags: '--waits-for <signal>', says: 'jobs that wait for a signal of this name' },
  { flags: '--flow <id>', says: 'jobs of this flow or batch, or children of this job' },
  { flags: '--created-after <time>', says: 'created since a date, or since a time ago (1h)' },
  {
    flags: '--created-before <time>',
    says: 'created before a date, or longer than a time ago (1h)',
  },
]

const TEXTS = [
  ...['state', 'lane', 'outcome', 'queue', 'type', 'tag', 'key', 'error', 'waitsFor', 'flow'],
]

/** Builds the filter from the options. `now` is the time of the store, not of this machine. */
export function filterOf(call: Call, now: number): JobFilter {
  const time = (name: string, option: string) => {
    const text = textOf(call, name)
    return text === undefined ? undefined : readPast(text, option, now)
  }
  const createdFrom = time('createdAfter', 'created-after')
  const createdBefore = time('createdBefore', 'created-before')
  const texts = TEXTS.flatMap((name) => {
    const text = textOf(call, name)
    return text === undefined ? [] : [[name, text] as const]
  })
  return {
    ...(Object.fromEntries(texts) as JobFilter & { lane?: Lane }),
    ...(call.options.stalled === true && { stalled: true }),
    ...(createdFrom !== undefined && { createdFrom }),
    ...(createdBefore !== undefined && { createdBefore }),
  }
}
