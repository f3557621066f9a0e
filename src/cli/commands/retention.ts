/** `pawl retention status|run`: what is old enough to be removed, and removing it now. */
import { span } from '../../core/format.ts'
import type { RetentionOptions } from '../../engine/retention/options.ts'
import type { ClassReport } from '../../engine/retention/pass.ts'
import type { RetentionReport, RunRetentionOptions } from '../../engine/retention/run.ts'
import { toFolder } from '../../engine/retention/to-folder.ts'
import { confirm } from '../confirm.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, type OptionSpec, textOf, textsOf } from '../spec.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'

const TIMES = ['succeeded', 'failed', 'cancelled', 'keys'] as const

/** The times of the options; absent if there are none, and those of the job files apply. */
function askedOf(call: Call): Pick<RunRetentionOptions, 'retention' | 'types'> {
  const times = TIMES.flatMap((name) => {
    const text = textOf(call, name)
    return text === undefined ? [] : [[name, text]]
  })
  const types = textsOf(call, 'type')
  const archive = textOf(call, 'archive')
  if (times.length === 0) {
    const retention = call.settings.retention.value
    if (types.length === 0 && archive === undefined) return retention ? { retention } : {}
    throw new UsageInvalid('No time is given', 'Add --succeeded, --failed or --cancelled.')
  }
  const retention: RetentionOptions = {
    ...Object.fromEntries(times),
    ...(archive !== undefined && { archive: toFolder(archive) }),
  }
  return { retention, ...(types.length > 0 && { types }) }
}

async function jobsOf(call: Call) {
  return call.options.jobs === undefined ? [] : loadJobFiles(call.settings.jobs.value)
}

async function status(call: Call): Promise<undefined> {
  const { output } = call
  const asked = askedOf(call)
  await withPawl(
    call,
    async (pawl) => {
      const found = await pawl.retentionStatus(asked)
      if (output.json) return output.record(found)
      const { active, old, keys, due } = found
      output.line(active ? 'A worker looks after retention.' : 'No worker looks after retention.')
      output.line(`${atMost(old)} jobs ended more than 30 days ago`)
      output.line(`${atMost(keys)} keys of removed jobs are kept`)
      for (const one of due.classes)
        output.line(`${due.complete ? '' : 'at least '}${describe(one)}`)
    },
    { jobs: await jobsOf(call) },
  )
  return undefined
}

const COUNT_MAX = 10_000

function atMost(count: number): string {
  return count >= COUNT_MAX ? `${COUNT_MAX} or more` : String(count)
}

function describe({ outcome, keepMs, types, removed }: ClassReport): string {
  const of = types === undefined ? '' : ` of ${visible(types.join(', '))}`
  return `${removed} ${outcome} jobs${of} are older than ${span(keepMs)}`
}

async function run(call: Call): Promise<ExitCode> {
  const identity = identityOf(call)
  const asked = askedOf(call)
  const jobs = await jobsOf(call)
  if (asked.retention === undefined && jobs.length === 0) {
    const hint = 'Add --succeeded 7d, or --jobs with job types that have the option retention.'
    throw new UsageInvalid('No time is given, so nothing would be removed', hint)
  }
  const isDry = hasFlag(call, 'dryRun')
  return withPawl(
    call,
    async (pawl) => {
      const operator = pawl.operator(identity)
      const onProgress = (removed: number) => call.output.progress(`${removed} jobs to remove`)
      const options = { ...asked, signal: call.interrupted, onProgress }
      const preview = await operator.runRetention({ ...options, dryRun: true })
      if (isDry || preview.removed === 0) return report(call, { ...preview, dryRun: isDry })
      call.output.say(`run would remove ${preview.removed} jobs`)
      await confirm(call, 'remove', preview.removed)
      return report(
        call,
        await operator.runRetention({
          ...options,
          onProgress: (removed) => call.output.progress(`${removed} jobs removed`),
        }),
      )
    },
    { jobs },
  )
}

function report({ output, interrupted }: Call, result: RetentionReport): ExitCode {
  if (output.json) output.record(result)
  else {
    const dry = result.dryRun ? ' (dry run, nothing was removed)' : ''
    output.line(`${result.removed} jobs removed, ${result.keys} keys kept${dry}`)
    for (const one of result.classes) output.line(`  ${describe(one)}`)
  }
  return interrupted.aborted ? EXIT.interrupted : EXIT.ok
}

const CLASS_OPTIONS: readonly OptionSpec[] = [
  { flags: '--succeeded <duration>', says: 'how long succeeded jobs are kept, such as 7d' },
  { flags: '--failed <duration>', says: 'how long failed jobs are kept' },
  { flags: '--cancelled <duration>', says: 'how long cancelled jobs are kept' },
  { flags: '--keys <duration>', says: 'how long keys of removed jobs stay taken' },
  { flags: '--type <type>', says: 'only jobs of this type', repeats: true },
  { flags: '--jobs <file>', says: 'a job file: the times of its job types apply', repeats: true },
]

export const commands: readonly CommandSpec[] = [
  {
    name: 'retention status',
    summary: 'Count ended jobs that are old enough to be removed, and kept keys',
    details:
      'Without times it counts jobs that ended more than 30 days ago, and says if a worker looks ' +
      'after retention.',
    options: CLASS_OPTIONS,
    examples: [
      ['pawl retention status', 'is anything old, and does a worker remove it?'],
      ['pawl retention status --succeeded 7d --failed 90d', 'what these times would remove'],
    ],
    run: status,
  },
  {
    name: 'retention run',
    summary: 'Remove ended jobs that are older than their times, now',
    details:
      'Jobs that have not ended, parked ones too, are never removed. Each removal leaves a ' +
      'record with operator, reason and a hash of what was removed. Workers do the same by ' +
      'themselves if createPawl or defineJob has the option retention.',
    options: [
      ...CLASS_OPTIONS,
      { flags: '--archive <folder>', says: 'write removed jobs to NDJSON files in this folder' },
      ...OPERATOR_OPTIONS,
      { flags: '--dry-run', says: 'print what would be removed, and remove nothing' },
      { flags: '--yes', says: 'do not ask for confirmation' },
    ],
    examples: [
      ['pawl retention run --succeeded 7d --dry-run --reason "INC-7"', 'what would be removed'],
      [
        'pawl retention run --failed 90d --archive ./archive --yes --reason "INC-7"',
        'with an archive',
      ],
    ],
    run,
  },
]
