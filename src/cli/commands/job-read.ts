/** `pawl job list|tail`: jobs by filter, and new facts. */
import { JobNotFound } from '../../core/errors.ts'
import type { Fact } from '../../core/job/facts.ts'
import type { Job } from '../../core/job/job.ts'
import { shortName } from '../../core/limits/short-names.ts'
import { followLedger, untilWoken } from '../../engine/following.ts'
import { pagesOf } from '../../engine/pages.ts'
import { relative, stamp } from '../../environment/times.ts'
import type { DamagedJob, Store, UnreadableFact } from '../../stores/contract/store.ts'
import type { ExitCode } from '../exit-codes.ts'
import { FILTER_OPTIONS, filterOf } from '../filters.ts'
import { sayUnseen } from '../name-warnings.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { factLine } from '../story.ts'
import { visible } from '../visible.ts'

async function list(call: Call): Promise<undefined> {
  const { output } = call
  const walk = walkOf(call)
  // Wrong options are reported before the store is opened.
  filterOf(call, call.environment.clock.now())
  let after: string | undefined
  await withPawl(call, async ({ store }) => {
    const filter = filterOf(call, store.now())
    let found = 0
    const shown: Job[] = []
    for await (const page of pagesOf((page) => store.list(filter, page), walk)) {
      after = page.after
      found += page.items.length
      if (output.json) for (const job of page.items) output.record(job)
      else shown.push(...page.items)
      printDamaged(call, page.damaged)
      await output.taken()
      if (isOver(call)) break
    }
    if (!output.json) {
      const blockers = filter.lane === 'blocked' ? await blockersOf(store, shown) : undefined
      printJobs(call, shown, store.now(), blockers)
    }
    if (found === 0) await sayUnseen(call, store, filter)
  })
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

/** A damaged row is printed and does not fail the list. */
function printDamaged({ output }: Call, damaged: readonly DamagedJob[] = []): void {
  for (const { id, lane, why } of damaged) {
    if (output.json) output.record({ id, lane, damaged: why })
    else output.say(`Job ${visible(id)} is damaged: ${visible(why)}. Run "pawl doctor --full".`)
  }
}

/** For how many jobs the limit is read that blocks them. */
const BLOCKERS_MAX = 200

/** The limit that blocks each job, by the id of the job. */
async function blockersOf(
  { limits }: Store,
  jobs: readonly Job[],
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>()
  for (const { id } of jobs.slice(0, BLOCKERS_MAX)) {
    const { gate } = (await limits.blockage(id)) ?? {}
    if (gate !== undefined) found.set(id, `${shortName(gate.limit)} ${gate.key ?? ''}`.trimEnd())
  }
  return found
}

function printJobs(
  { output }: Call,
  jobs: readonly Job[],
  now: number,
  blockers: ReadonlyMap<string, string> | undefined,
): void {
  if (jobs.length === 0) output.say('No job matches.')
  const columns = [
    { head: 'id' },
    { head: 'type' },
    { head: 'state' },
    { head: 'queue' },
    { head: 'attempts', right: true },
    { head: 'created' },
    { head: blockers === undefined ? 'error' : 'blocked by' },
  ]
  output.table(
    columns,
    jobs.map((job) => [
      ...[job.id, job.type, job.state, job.queue, String(job.attempt)],
      ...[
        output.isTerminal ? relative(job.createdAt, now) : stamp(job.createdAt),
        blockers === undefined ? (job.error?.message ?? '') : (blockers.get(job.id) ?? '-'),
      ],
    ]),
  )
}

async function tail(call: Call): Promise<ExitCode | undefined> {
  const [id] = call.args
  return withPawl(call, async ({ store }) => {
    if (id !== undefined) {
      const job = await store.get(id)
      if (job === undefined) throw new JobNotFound(visible(id))
    }
    return id === undefined ? followAll(call, store) : followOne(call, store, id)
  })
}

/** Prints every new fact of the store. */
async function followAll(call: Call, store: Store): Promise<ExitCode | undefined> {
  const { output } = call
  const given = textOf(call, 'after')
  const after = hasFlag(call, 'fromStart') ? undefined : (given ?? (await store.tailEnd()))
  const { timers } = call.environment
  const options = { after, timers, signal: endOf(call), wait: hasFlag(call, 'follow') }
  for await (const entries of followLedger(store, options)) {
    for (const entry of entries) {
      if ('unreadable' in entry) printUnreadable(call, entry)
      else print(call, entry.fact, { pos: entry.pos })
    }
    await output.taken()
  }
  return undefined
}

/** Prints every fact of one job, until it has ended. */
async function followOne(call: Call, store: Store, id: string): Promise<ExitCode | undefined> {
  let seen = 0
  const end = endOf(call)
  while (!isOver(call)) {
    const facts = await store.facts(id)
    for (const fact of facts.slice(seen)) print(call, fact, {})
    seen = facts.length
    await call.output.taken()
    const job = await store.get(id)
    const isAll = job === undefined || job.seq <= seen
    if (isAll && (job === undefined || job.outcome !== null)) return undefined
    if (isAll && !hasFlag(call, 'follow')) return undefined
    if (isAll) await untilWoken(store, call.environment.timers, end)
  }
  return undefined
}

function printUnreadable({ output }: Call, { pos, jobId, seq, unreadable }: UnreadableFact): void {
  if (output.json) output.record({ pos, jobId, seq, unreadable })
  else output.line(`${visible(jobId)} fact ${seq} cannot be read: ${visible(unreadable)}`)
}

function print({ output }: Call, fact: Fact, more: object): void {
  if (output.json) output.record({ ...more, ...fact })
  else output.line(`${visible(fact.jobId)} ${factLine(fact)}`)
}

/**
 * Aborted when the command is interrupted, or the reader of its output is gone. Not
 * `AbortSignal.any`: in Node 20 its signal may be collected as garbage before it is aborted.
 */
function endOf({ interrupted, output }: Call): AbortSignal {
  const ending = new AbortController()
  for (const signal of [interrupted, output.gone]) {
    signal.addEventListener('abort', () => ending.abort(), { once: true })
    if (signal.aborted) ending.abort()
  }
  return ending.signal
}

function isOver({ interrupted, output }: Call): boolean {
  return interrupted.aborted || output.gone.aborted
}

const ID = '0198a1b2-0000-7000-8000-000000000001'

export const commands: readonly CommandSpec[] = [
  {
    name: 'job list',
    summary: 'List jobs, newest first',
    details: 'A job must match all conditions. With --json each job is one line.',
    options: [...FILTER_OPTIONS, ...PAGING_OPTIONS],
    examples: [
      ['pawl job list --outcome failed --queue mail', 'failed jobs of one queue'],
      ['pawl job list --error "no route" --created-after 1h', 'recent jobs with this error'],
      [
        'pawl job list --lane parked --json | jq -r .id',
        'ids of the jobs that wait for an operator',
      ],
    ],
    run: list,
  },
  {
    name: 'job tail',
    summary: 'Follow the facts of one job until it ends, or of all jobs',
    details:
      'Without an id, only new facts are printed. With --json each line has the position (pos) ' +
      'for --after.',
    args: [{ flags: '[id]', says: 'follow only this job' }],
    options: [
      { flags: '--from-start', says: 'start with the oldest fact' },
      { flags: '--after <position>', says: 'start after this position' },
      { flags: '--no-follow', says: 'stop at the end instead of waiting for new facts' },
    ],
    examples: [
      [`pawl job tail ${ID}`, 'follow one job to its end'],
      ['pawl job tail --from-start --no-follow --json', 'the whole ledger as NDJSON'],
    ],
    run: tail,
  },
]
