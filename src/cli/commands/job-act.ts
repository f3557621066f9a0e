/**
 * Operator commands on jobs, selected by ids or by conditions. With conditions, the command first
 * lists what it would change and asks for confirmation. Then it changes only the listed jobs, and
 * reports those that no longer match.
 */
import type { OperatorOptions } from '../../engine/operators/operators.ts'
import { LISTED_MAX, type OperatorReport } from '../../engine/operators/report.ts'
import type { Selection } from '../../engine/operators/selection.ts'
import {
  OPERATOR_VERBS,
  type OperatorVerb,
  type VerbArguments,
} from '../../engine/operators/verbs.ts'
import { confirm } from '../confirm.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from '../exit-codes.ts'
import { FILTER_OPTIONS, filterOf } from '../filters.ts'
import { loadJobFiles } from '../job-files.ts'
import { sayUnseen } from '../name-warnings.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, type OptionSpec, textOf, wholeOf } from '../spec.ts'
import { readDate, readDuration } from '../times.ts'
import { visible } from '../visible.ts'
import { priorityOf } from './job-enqueue.ts'

type Bulk = Exclude<Selection, string | { readonly ids: unknown }>

/** What the command line adds to a command of operators. */
interface Line {
  readonly options?: readonly OptionSpec[]
  readonly examples: CommandSpec['examples']
  /** Reads the further argument. The result depends on the time of the store. */
  readonly argument?: (call: Call) => (now: number) => VerbArguments
}

/** The options of all operator commands. */
export const OPERATOR_OPTIONS: readonly OptionSpec[] = [
  { flags: '--reason <text>', says: 'the reason; recorded in the ledger (required)' },
  { flags: '--operator <name>', says: 'your name: PAWL_OPERATOR, or the user of this system' },
]

export function identityOf(call: Call): { name: string; reason: string } {
  const { value: name, from } = call.settings.operator
  const reason = textOf(call, 'reason')
  if (reason === undefined || reason.trim() === '') {
    throw new UsageInvalid('A reason is required', 'Add --reason "INC-7: the bank was down".')
  }
  if (name === undefined)
    throw new UsageInvalid(
      'The operator is not known',
      'Add --operator NAME, or set PAWL_OPERATOR.',
    )
  call.output.explain(`operator: ${visible(name)} (from ${visible(from)})`)
  return { name, reason }
}

function selectionOf(call: Call, now: number): Exclude<Selection, string> {
  const filter = filterOf(call, now)
  const isFiltered = Object.keys(filter).length > 0
  const limit = wholeOf(call, 'limit', 1)
  const ways = [call.args.length > 0, isFiltered, hasFlag(call, 'all')].filter(Boolean).length
  if (ways !== 1) {
    const why =
      ways === 0 ? 'No job is selected' : 'Ids, conditions and --all cannot be used together'
    throw new UsageInvalid(why, 'Use ids, or conditions such as --outcome failed, or --all.')
  }
  if (call.args.length > 0) {
    if (limit === undefined) return { ids: call.args }
    throw new UsageInvalid('--limit works only with conditions or --all', 'Remove --limit.')
  }
  const part = limit === undefined ? {} : { limit }
  return isFiltered ? { filter, ...part } : { all: true, ...part }
}

async function actOn(call: Call, verb: OperatorVerb): Promise<ExitCode> {
  const identity = identityOf(call)
  // Wrong options are reported before the store is opened.
  selectionOf(call, call.environment.clock.now())
  const argumentsAt = LINES[verb.name]?.argument?.(call)
  const isDry = hasFlag(call, 'dryRun')
  const jobs = call.options.jobs === undefined ? [] : await loadJobFiles(call.settings.jobs.value)
  return withPawl(
    call,
    async (pawl) => {
      const operator = pawl.operator(identity)
      const now = pawl.store.now()
      const args = argumentsAt?.(now) ?? {}
      const act = (chosen: Selection, options: OperatorOptions) =>
        verb.act(operator, chosen, options, args)
      const selection = selectionOf(call, now)
      const bulk = 'ids' in selection ? undefined : bounded(selection)
      const onProgress = (count: number) => call.output.progress(`${verb.name}: ${count} jobs`)
      const asIs = { signal: call.interrupted, onProgress }
      let chosen: Selection = bulk ?? selection
      let hasMore = false
      if (isDry || bulk !== undefined) {
        const preview = await act(chosen, { ...asIs, dryRun: true })
        if (preview.matched === 0 && 'filter' in selection) {
          await sayUnseen(call, pawl.store, selection.filter)
        }
        if (isDry || preview.matched === 0) {
          return report(call, verb.name, { ...preview, dryRun: isDry })
        }
        call.output.say(`${verb.name} would change: ${countsOf(preview)}`)
        await confirm(call, verb.name, preview.matched)
        if (bulk !== undefined) chosen = onlyListed(bulk, preview)
        hasMore = preview.more
      }
      const result = await act(chosen, asIs)
      return report(call, verb.name, { ...result, more: result.more || hasMore })
    },
    { jobs },
  )
}

/** No more jobs than a report can list. */
function bounded(selection: Bulk): Bulk {
  return { ...selection, limit: Math.min(selection.limit ?? LISTED_MAX, LISTED_MAX) }
}

/** Selects the confirmed jobs, and none that matches only since then. */
function onlyListed({ limit: _, ...selection }: Bulk, { ids = [] }: OperatorReport): Selection {
  return { ...selection, among: ids }
}

/** Formats the counts that are not zero. */
function countsOf({ matched, done, same, asked, refused }: OperatorReport): string {
  const counts = Object.entries({ matched, done, same, asked, refused })
  const shown = counts.filter(([name, count]) => name === 'matched' || count > 0)
  return shown.map(([name, count]) => `${count} ${name}`).join(', ')
}

/** Prints the report of a command, and returns its exit code. */
export function report(
  { output, interrupted }: Call,
  verb: string,
  result: OperatorReport,
): ExitCode {
  const { ids: _, ...counts } = result
  if (output.json) output.record({ verb, ...counts })
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
  const hidden = refused - result.refusals.length
  if (hidden > 0) output.line(`  and ${hidden} more were refused`)
  if (result.more) output.say('More jobs match: run the command again.')
}

/** Returns the due time of the options as a function of the store's time. */
function whenOf(call: Call): (now: number) => number {
  const [at, after] = [textOf(call, 'at'), textOf(call, 'in')]
  const isNow = hasFlag(call, 'now')
  if ([at !== undefined, after !== undefined, isNow].filter(Boolean).length !== 1) {
    throw new UsageInvalid(
      'The new due time is missing or given twice',
      'Use one of --at, --in and --now.',
    )
  }
  if (isNow) return () => 0
  if (at !== undefined) {
    const date = readDate(at, 'at')
    return () => date
  }
  const afterMs = readDuration(after as string, 'in')
  return (now) => now + afterMs
}

function required<T>(value: T | undefined, option: string): T {
  if (value !== undefined) return value
  throw new UsageInvalid(`--${option} is missing`)
}

const ID = '0198a1b2-0000-7000-8000-000000000001'

const LINES: Readonly<Record<string, Line>> = {
  submit: {
    examples: [[`pawl job submit ${ID} --reason "checked"`, 'one job']],
  },
  retry: {
    examples: [
      [`pawl job retry ${ID} --reason "INC-7"`, 'one job'],
      ['pawl job retry --outcome failed --error "no route" --reason "INC-7" --dry-run', 'preview'],
      [
        'pawl job retry --lane parked --queue mail --reason "INC-7" --yes',
        'many jobs, in a script',
      ],
    ],
  },
  copy: {
    examples: [[`pawl job copy ${ID} --reason "again"`, 'the same input as a new job']],
  },
  cancel: {
    examples: [
      [`pawl job cancel ${ID} --reason "not wanted"`, 'one job'],
      ['pawl job cancel --type report --lane waiting --reason "INC-7"', 'asks for confirmation'],
    ],
  },
  quarantine: {
    examples: [['pawl job quarantine --type import --reason "bad release"', 'all of one type']],
  },
  redrive: {
    examples: [['pawl job redrive --lane parked --reason "fixed in 1.2"', 'all parked jobs']],
  },
  discard: {
    examples: [
      ['pawl job discard --lane parked --tag old --reason "obsolete"', 'those with a tag'],
    ],
  },
  force: {
    options: [{ flags: '--to <state>', says: 'the new state (required)' }],
    examples: [[`pawl job force ${ID} --to failed --reason "INC-7"`, 'one job']],
    argument: (call) => {
      const state = required(textOf(call, 'to'), 'to')
      return () => ({ state })
    },
  },
  reschedule: {
    options: [
      { flags: '--at <date>', says: 'a date' },
      { flags: '--in <duration>', says: 'a duration from now' },
      { flags: '--now', says: 'now' },
    ],
    examples: [[`pawl job reschedule ${ID} --in 2h --reason "after the release"`, 'one job']],
    argument: (call) => {
      const runAt = whenOf(call)
      return (now) => ({ runAt: runAt(now) })
    },
  },
  prioritise: {
    options: [
      { flags: '--to <number>', says: 'the new priority' },
      { flags: '--ahead <duration>', says: 'or: order jobs as if they were due so much earlier' },
    ],
    examples: [
      ['pawl job prioritise --tag vip --to -10 --reason "promised"', 'all jobs with a tag'],
      [`pawl job prioritise ${ID} --ahead 10m --reason "a demo"`, 'ten minutes ahead of others'],
    ],
    argument: (call) => {
      const priority = required(priorityOf(call, 'to'), 'to')
      return () => ({ priority })
    },
  },
  approve: {
    examples: [
      [`pawl job approve ${ID} --operator ann --reason "checked"`, 'what the job asks for'],
      [`pawl job approve ${ID} --reason "the host is gone"`, 'the recovery of a stalled job'],
      ['pawl job approve --waits-for approval --type refund --reason "checked"', 'many jobs'],
    ],
  },
  reject: {
    examples: [[`pawl job reject ${ID} --operator ann --reason "too expensive"`, 'one job']],
  },
}

export const commands: readonly CommandSpec[] = OPERATOR_VERBS.map((verb) => ({
  name: `job ${verb.name}`,
  summary: verb.summary,
  ...(verb.details !== undefined && { details: verb.details }),
  args: [{ flags: '[ids...]', says: 'ids of jobs; or use conditions' }],
  options: [
    ...(LINES[verb.name]?.options ?? []),
    ...OPERATOR_OPTIONS,
    ...FILTER_OPTIONS,
    { flags: '--all', says: 'every job' },
    { flags: '--limit <count>', says: 'change at most this many' },
    { flags: '--dry-run', says: 'print what would change, and change nothing' },
    { flags: '--yes', says: 'do not ask for confirmation' },
    { flags: '--jobs <file>', says: 'a job file with its own lifecycles', repeats: true as const },
  ],
  examples: LINES[verb.name]?.examples ?? [],
  run: (call) => actOn(call, verb),
}))
