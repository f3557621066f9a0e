/**
 * What operators do to jobs, each verb on ids or on a filter. A verb on a filter first lists what
 * it would do; then somebody confirms it, and only jobs that were listed are changed. One that has
 * changed in between is reported.
 */
import type { Operator, OperatorOptions } from '../../engine/operators/operators.ts'
import { LISTED_MAX, type OperatorReport } from '../../engine/operators/report.ts'
import type { Selection } from '../../engine/operators/selection.ts'
import { confirm } from '../confirm.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from '../exit-codes.ts'
import { FILTER_OPTIONS, filterOf } from '../filters.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, type OptionSpec, textOf, wholeOf } from '../spec.ts'
import { readDate, readDuration } from '../times.ts'
import { sayUnseen } from '../unseen.ts'
import { visible } from '../visible.ts'

type Act = (
  operator: Operator,
  selection: Selection,
  options: OperatorOptions,
  /** The time of the store. */
  now: number,
) => Promise<OperatorReport>

type Bulk = Exclude<Selection, string | { readonly ids: unknown }>

/** A verb: how its options become what is done. */
interface Verb {
  readonly name: string
  readonly summary: string
  readonly details?: string
  readonly options?: readonly OptionSpec[]
  readonly examples: CommandSpec['examples']
  readonly act: (call: Call) => Act
}

/** Who acts and why; every verb of an operator takes them. */
export const OPERATOR_OPTIONS: readonly OptionSpec[] = [
  { flags: '--reason <text>', says: 'why; it stands in the ledger (required)' },
  { flags: '--operator <name>', says: 'who acts: PAWL_OPERATOR, or your name on this system' },
]

/** The name and the reason of a call. */
export function identityOf(call: Call): { name: string; reason: string } {
  const { value: name, from } = call.settings.operator
  const reason = textOf(call, 'reason')
  if (reason === undefined || reason.trim() === '') {
    throw new UsageInvalid('An operator must say why', 'Add --reason "INC-7: the bank was down".')
  }
  if (name === undefined) throw new UsageInvalid('Who acts is not known', 'Add --operator.')
  call.output.explain(`operator: ${visible(name)} (from ${visible(from)})`)
  return { name, reason }
}

function selectionOf(call: Call, now: number): Exclude<Selection, string> {
  const filter = filterOf(call, now)
  const isFiltered = Object.keys(filter).length > 0
  const limit = wholeOf(call, 'limit', 1)
  const ways = [call.args.length > 0, isFiltered, hasFlag(call, 'all')].filter(Boolean).length
  if (ways !== 1) {
    const why = ways === 0 ? 'No job is named' : 'Jobs are chosen in more than one way'
    throw new UsageInvalid(why, 'Give ids, or conditions such as --state, or --all.')
  }
  if (call.args.length > 0) {
    if (limit === undefined) return { ids: call.args }
    throw new UsageInvalid('--limit is for conditions, not for ids')
  }
  const part = limit === undefined ? {} : { limit }
  return isFiltered ? { filter, ...part } : { all: true, ...part }
}

async function actOn(call: Call, verb: Verb): Promise<ExitCode> {
  const identity = identityOf(call)
  // Mistakes in the options are found before the store is opened.
  selectionOf(call, call.environment.clock.now())
  const act = verb.act(call)
  const isDry = hasFlag(call, 'dryRun')
  const jobs = call.options.jobs === undefined ? [] : await loadJobFiles(call.settings.jobs.value)
  return withPawl(
    call,
    async (pawl) => {
      const operator = pawl.operator(identity)
      const now = pawl.store.now()
      const asked = selectionOf(call, now)
      const bulk = 'ids' in asked ? undefined : bounded(asked)
      const asIs = { signal: call.interrupted }
      let chosen: Selection = bulk ?? asked
      let hasMore = false
      if (isDry || bulk !== undefined) {
        const foreseen = await act(operator, chosen, { ...asIs, dryRun: true }, now)
        if (foreseen.matched === 0 && 'filter' in asked) {
          await sayUnseen(call, pawl.store, asked.filter)
        }
        if (isDry || foreseen.matched === 0) {
          return report(call, verb.name, { ...foreseen, dryRun: isDry })
        }
        call.output.say(`${verb.name} would come to: ${countsOf(foreseen)}`)
        await confirm(call, verb.name, foreseen.matched)
        if (bulk !== undefined) chosen = onlyListed(bulk, foreseen)
        hasMore = foreseen.more
      }
      const result = await act(operator, chosen, asIs, now)
      return report(call, verb.name, { ...result, more: result.more || hasMore })
    },
    { jobs },
  )
}

/** No more jobs than a report can list. */
function bounded(selection: Bulk): Bulk {
  return { ...selection, limit: Math.min(selection.limit ?? LISTED_MAX, LISTED_MAX) }
}

/** The jobs that were listed and confirmed, and none that matches only since then. */
function onlyListed({ limit: _, ...selection }: Bulk, { ids = [] }: OperatorReport): Selection {
  return { ...selection, among: ids }
}

/** What became of jobs, in numbers; those that are zero say nothing. */
function countsOf({ matched, done, same, asked, refused }: OperatorReport): string {
  const counts = Object.entries({ matched, done, same, asked, refused })
  const told = counts.filter(([name, count]) => name === 'matched' || count > 0)
  return told.map(([name, count]) => `${count} ${name}`).join(', ')
}

function report({ output, interrupted }: Call, verb: string, result: OperatorReport): ExitCode {
  const { ids: _, ...told } = result
  if (output.json) output.record({ verb, ...told })
  else printReport(output, verb, result)
  if (interrupted.aborted) return EXIT.interrupted
  const codes = new Set(result.refusals.map(exitCodeOf))
  if (result.refused === 0) return EXIT.ok
  return codes.size === 1 ? ([...codes][0] as ExitCode) : EXIT.conflict
}

function printReport(output: Call['output'], verb: string, result: OperatorReport): void {
  const { dryRun, refused } = result
  const dry = dryRun ? ' (dry run, nothing was written)' : ''
  output.line(`${verb}: ${countsOf(result)}${dry}`)
  for (const { of, id } of result.copies) output.line(`  ${visible(of)} copied as ${id}`)
  for (const { id, code, message, hint } of result.refusals) {
    output.line(`  ${visible(id)} refused: ${visible(message)} (${code}). ${visible(hint)}`)
  }
  const untold = refused - result.refusals.length
  if (untold > 0) output.line(`  and ${untold} more were refused`)
  if (result.more) output.say('There are more jobs that match.')
}

/** The moment that the options name, at a time of the store. */
function whenOf(call: Call): (now: number) => Date {
  const [at, after] = [textOf(call, 'at'), textOf(call, 'in')]
  const isNow = hasFlag(call, 'now')
  if ([at !== undefined, after !== undefined, isNow].filter(Boolean).length !== 1) {
    throw new UsageInvalid('The time is not clear', 'Give one of --at, --in and --now.')
  }
  if (isNow) return () => new Date(0)
  if (at !== undefined) {
    const date = new Date(readDate(at, 'at'))
    return () => date
  }
  const afterMs = readDuration(after as string, 'in')
  return (now) => new Date(now + afterMs)
}

function required<T>(value: T | undefined, option: string): T {
  if (value !== undefined) return value
  throw new UsageInvalid(`--${option} is missing`)
}

const PRIORITY_MAX = 32_767
const ID = '0198a1b2-0000-7000-8000-000000000001'

const VERBS: readonly Verb[] = [
  {
    name: 'submit',
    summary: 'Let jobs run that were enqueued with --hold',
    examples: [[`pawl job submit ${ID} --reason "checked"`, 'one job']],
    act: () => (operator, selection, options) => operator.submit(selection, options),
  },
  {
    name: 'retry',
    summary: 'Run jobs again: now, redriven, or as a copy, as their lifecycle allows',
    details:
      'What waits runs now; what is parked or has failed is redriven with fresh budgets; what is ' +
      'final in its lifecycle is enqueued again as one copy.',
    examples: [
      [`pawl job retry ${ID} --reason "INC-7"`, 'one job'],
      ['pawl job retry --state failed --error "no route" --reason "INC-7" --dry-run', 'what if'],
      ['pawl job retry --lane parked --queue mail --reason "INC-7" --yes', 'many, in a script'],
    ],
    act: () => (operator, selection, options) => operator.retry(selection, options),
  },
  {
    name: 'copy',
    summary: 'Enqueue copies of jobs that have ended, a new one each time',
    examples: [[`pawl job copy ${ID} --reason "again"`, 'the same input as a new job']],
    act: () => (operator, selection, options) => operator.copy(selection, options),
  },
  {
    name: 'cancel',
    summary: 'End jobs; where one runs, its handler is asked to stop',
    examples: [
      [`pawl job cancel ${ID} --reason "not wanted"`, 'one job'],
      ['pawl job cancel --type report --lane waiting --reason "INC-7"', 'asks before it acts'],
    ],
    act: () => (operator, selection, options) => operator.cancel(selection, options),
  },
  {
    name: 'quarantine',
    summary: 'Park jobs: out of the flow until they are redriven or cancelled',
    examples: [['pawl job quarantine --type import --reason "bad release"', 'all of one type']],
    act: () => (operator, selection, options) => operator.quarantine(selection, options),
  },
  {
    name: 'redrive',
    summary: 'Let parked and failed jobs run again, with fresh budgets',
    examples: [['pawl job redrive --lane parked --reason "fixed in 1.2"', 'whatever is parked']],
    act: () => (operator, selection, options) => operator.redrive(selection, options),
  },
  {
    name: 'discard',
    summary: 'Give parked jobs up for good',
    examples: [['pawl job discard --lane parked --tag old --reason "obsolete"', 'some of them']],
    act: () => (operator, selection, options) => operator.discard(selection, options),
  },
  {
    name: 'force',
    summary: 'Put jobs into a state that no edge leads to',
    details: 'Never into a held or succeeded state, and never out of a final one.',
    options: [{ flags: '--to <state>', says: 'the state (required)' }],
    examples: [[`pawl job force ${ID} --to failed --reason "INC-7"`, 'one job']],
    act: (call) => {
      const to = required(textOf(call, 'to'), 'to')
      return (operator, selection, options) => operator.force(selection, to, options)
    },
  },
  {
    name: 'reschedule',
    summary: 'Move the time at which jobs are due',
    options: [
      { flags: '--at <date>', says: 'to a date' },
      { flags: '--in <duration>', says: 'to so much time from now' },
      { flags: '--now', says: 'to now' },
    ],
    examples: [[`pawl job reschedule ${ID} --in 2h --reason "after the release"`, 'one job']],
    act: (call) => {
      const runAt = whenOf(call)
      return (operator, selection, options, now) =>
        operator.reschedule(selection, runAt(now), options)
    },
  },
  {
    name: 'prioritise',
    summary: 'Change the priority of jobs; smaller numbers come first',
    options: [{ flags: '--to <number>', says: 'the priority (required)' }],
    examples: [['pawl job prioritise --tag vip --to -10 --reason "promised"', 'all with a tag']],
    act: (call) => {
      const to = required(wholeOf(call, 'to', -PRIORITY_MAX, PRIORITY_MAX), 'to')
      return (operator, selection, options) => operator.prioritise(selection, to, options)
    },
  },
  {
    name: 'approve',
    summary: 'Let stalled jobs be recovered: their worker went silent, and they wait for a word',
    examples: [[`pawl job approve ${ID} --reason "the host is gone"`, 'one job']],
    act: () => (operator, selection, options) => operator.approve(selection, options),
  },
]

/** The verbs of operators. */
export const commands: readonly CommandSpec[] = VERBS.map((verb) => ({
  name: `job ${verb.name}`,
  summary: verb.summary,
  ...(verb.details !== undefined && { details: verb.details }),
  args: [{ flags: '[ids...]', says: 'the ids of jobs; or choose them by conditions' }],
  options: [
    ...(verb.options ?? []),
    ...OPERATOR_OPTIONS,
    ...FILTER_OPTIONS,
    { flags: '--all', says: 'every job' },
    { flags: '--limit <count>', says: 'at most so many of those that match' },
    { flags: '--dry-run', says: 'say what would happen, and write nothing' },
    { flags: '--yes', says: 'do not ask' },
    { flags: '--jobs <file>', says: 'a file of jobs with own lifecycles', repeats: true as const },
  ],
  examples: verb.examples,
  run: (call) => actOn(call, verb),
}))
