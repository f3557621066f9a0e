/** `pawl effect list|retry`: effects of jobs. */
import type { EffectSelection, EffectsReport } from '../../engine/effects/retry-effects.ts'
import { pagesOf } from '../../engine/pages.ts'
import { relative, stamp } from '../../environment/times.ts'
import type { EffectFilter, EffectInfo, EffectState } from '../../stores/contract/store.ts'
import { NOTICE } from '../../stores/notices.ts'
import { confirm } from '../confirm.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from '../exit-codes.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, hasFlag, type OptionSpec, textOf, wholeOf } from '../spec.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'

const FILTER_OPTIONS: readonly OptionSpec[] = [
  {
    flags: '--state <state>',
    says: 'effects in this state',
    choices: ['pending', 'delivered', 'parked'],
  },
  { flags: '--job <id>', says: 'effects of this job' },
  { flags: '--type <type>', says: 'effects of jobs of this type' },
  { flags: '--notices', says: 'only notices of jobs that ended or were parked' },
]

function filterOf(call: Call): EffectFilter {
  const [state, jobId, given] = ['state', 'job', 'type'].map((name) => textOf(call, name))
  const isNotices = hasFlag(call, 'notices')
  if (isNotices && given !== undefined) {
    throw new UsageInvalid('--notices and --type cannot be used together', 'Remove one of them.')
  }
  const type = isNotices ? NOTICE : given
  return {
    ...(state !== undefined && { state: state as EffectState }),
    ...(jobId !== undefined && { jobId }),
    ...(type !== undefined && { type }),
  }
}

async function list(call: Call): Promise<undefined> {
  const { output } = call
  const filter = filterOf(call)
  const walk = walkOf(call)
  let after: string | undefined
  await withPawl(call, async ({ store }) => {
    const shown: EffectInfo[] = []
    for await (const page of pagesOf((page) => store.listEffects(filter, page), walk)) {
      after = page.after
      shown.push(...page.items)
      if (call.interrupted.aborted) break
    }
    for (const { payload, ...effect } of output.json ? shown : []) {
      output.record(effect, { payload })
    }
    if (!output.json) print(call, shown, store.now())
  })
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

function print({ output }: Call, effects: readonly EffectInfo[], now: number): void {
  if (effects.length === 0) output.say('No effect matches.')
  const columns = [
    { head: 'effect', max: 100 },
    { head: 'type' },
    { head: 'state' },
    { head: 'tries', right: true },
    { head: 'when' },
    { head: 'error' },
  ]
  const rows = effects.map((effect) => [
    ...[effect.key, effect.jobType, effect.state, String(effect.tries)],
    ...[output.isTerminal ? relative(effect.runAt, now) : stamp(effect.runAt), effect.error ?? ''],
  ])
  output.table(columns, rows)
}

/** The most effects that one call lists and changes. */
const LISTED_MAX = 10_000

function selectionOf(call: Call): EffectSelection {
  const filter = filterOf(call)
  const limit = wholeOf(call, 'limit', 1, LISTED_MAX)
  if (call.args.length > 0) {
    if (Object.keys(filter).length === 0 && limit === undefined) return { keys: call.args }
    throw new UsageInvalid(
      'Keys and conditions cannot be used together',
      'Use keys, or conditions.',
    )
  }
  if (Object.keys(filter).length === 0) {
    throw new UsageInvalid(
      'No effect is selected',
      'Add keys, or conditions such as --state parked.',
    )
  }
  return { filter, limit: limit ?? LISTED_MAX }
}

async function retry(call: Call): Promise<ExitCode> {
  const identity = identityOf(call)
  const selection = selectionOf(call)
  const isDry = hasFlag(call, 'dryRun')
  const signal = call.interrupted
  return withPawl(call, async (pawl) => {
    const operator = pawl.operator(identity)
    let chosen = selection
    if (isDry || (typeof selection === 'object' && 'filter' in selection)) {
      const preview = await operator.retryEffects(selection, { dryRun: true, signal })
      const { matched } = preview
      if (isDry || matched === 0) return report(call, { ...preview, dryRun: isDry })
      call.output.say(`retry would change: ${countsOf(preview)}`)
      await confirm(call, 'retry', matched)
      if (preview.keys !== undefined) chosen = { keys: preview.keys }
    }
    return report(call, await operator.retryEffects(chosen, { signal }))
  })
}

function countsOf({ matched, done, same, refused }: EffectsReport): string {
  const counts = `${matched} matched, ${done} done, ${same} same`
  return refused > 0 ? `${counts}, ${refused} refused` : counts
}

function report({ output, interrupted }: Call, result: EffectsReport): ExitCode {
  const { keys: _, ...counts } = result
  if (output.json) output.record({ verb: 'retry', ...counts })
  else {
    const dry = result.dryRun ? ' (dry run, nothing was written)' : ''
    output.line(`retry: ${countsOf(result)}${dry}`)
    if (result.more) output.say('More effects match: run the command again.')
    for (const { key, code, message, hint } of result.refusals) {
      output.line(`  ${visible(key)} refused: ${visible(message)} (${code}). ${visible(hint)}`)
    }
    if (result.same > 0 && !result.dryRun) {
      output.say('Same: already due, being delivered, or (with conditions) delivered.')
    }
  }
  if (interrupted.aborted) return EXIT.interrupted
  if (result.refused === 0) return EXIT.ok
  const codes = new Set(result.refusals.map(exitCodeOf))
  return codes.size === 1 ? ([...codes][0] as ExitCode) : EXIT.conflict
}

const KEY = '0198a1b2-0000-7000-8000-000000000001/mail/1'

export const commands: readonly CommandSpec[] = [
  {
    name: 'effect list',
    summary: 'List effects, newest first: delivered, pending and parked ones',
    options: [...FILTER_OPTIONS, ...PAGING_OPTIONS],
    examples: [
      ['pawl effect list --state parked', 'effects that could not be delivered'],
      ['pawl effect list --notices --state pending', 'notices that are not delivered yet'],
      [
        'pawl effect list --job 0198a1b2-0000-7000-8000-000000000001 --json',
        'the effects of one job',
      ],
    ],
    run: list,
  },
  {
    name: 'effect retry',
    summary: 'Deliver parked effects again, or those that wait for their next try',
    details: 'Only the delivery is repeated: the jobs are already committed.',
    args: [{ flags: '[keys...]', says: 'keys of effects; or use conditions' }],
    options: [
      ...OPERATOR_OPTIONS,
      ...FILTER_OPTIONS,
      { flags: '--limit <count>', says: 'change at most this many' },
      { flags: '--dry-run', says: 'print what would change, and change nothing' },
      { flags: '--yes', says: 'do not ask for confirmation' },
    ],
    examples: [
      [`pawl effect retry ${KEY} --reason "the relay is back"`, 'one effect'],
      ['pawl effect retry --state parked --type order --reason "INC-7"', 'asks for confirmation'],
    ],
    run: retry,
  },
]
