/** `pawl schedule pause|resume|run-now|backfill|remove`. */
import type { BackfillReport } from '../../engine/schedules/schedules.ts'
import { stamp } from '../../environment/times.ts'
import { eachOf } from '../each.ts'
import { UsageInvalid } from '../errors.ts'
import type { ExitCode } from '../exit-codes.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { readPast } from '../times.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'

const pausing =
  (verb: 'pause' | 'resume') =>
  async (call: Call): Promise<ExitCode> => {
    const identity = identityOf(call)
    const { output } = call
    return withPawl(call, async (pawl) => {
      const operator = pawl.operator(identity)
      const paused = verb === 'pause'
      return eachOf(call, 'schedule', call.args, async (name) => {
        const act = () => (paused ? operator.pauseSchedule(name) : operator.resumeSchedule(name))
        const changed = (await act()) !== undefined
        const was = paused ? 'was already paused' : 'was not paused'
        if (output.json) output.record({ schedule: name, paused, changed })
        else output.line(`${visible(name)} ${changed ? `${verb}d` : was}`)
      })
    })
  }

async function runNow(call: Call): Promise<ExitCode> {
  const identity = identityOf(call)
  const { output } = call
  return withPawl(call, async (pawl) => {
    const operator = pawl.operator(identity)
    return eachOf(call, 'schedule', call.args, async (name) => {
      const { job = '' } = await operator.runScheduleNow(name)
      if (output.json) output.record({ schedule: name, job })
      else output.line(`${visible(name)} made job ${visible(job)}`)
    })
  })
}

async function remove(call: Call): Promise<ExitCode> {
  const identity = identityOf(call)
  const { output } = call
  return withPawl(call, async (pawl) => {
    const operator = pawl.operator(identity)
    return eachOf(call, 'schedule', call.args, async (name) => {
      await operator.removeSchedule(name)
      if (output.json) output.record({ schedule: name, removed: true })
      else output.line(`${visible(name)} removed`)
    })
  })
}

async function backfill(call: Call): Promise<undefined> {
  const identity = identityOf(call)
  const { output } = call
  const [name = ''] = call.args
  const dryRun = hasFlag(call, 'dryRun')
  const overlap = (textOf(call, 'overlap') ?? 'bufferAll') as 'bufferAll' | 'allowAll'
  // Wrong options are reported before the store is opened.
  timesOf(call, call.environment.clock.now())
  await withPawl(call, async (pawl) => {
    const { from, to } = timesOf(call, pawl.store.now())
    const options = { from, to, overlap, dryRun }
    const report = await pawl.operator(identity).backfillSchedule(name, options)
    if (output.json) output.record({ schedule: name, dryRun, ...report })
    else printBackfill(call, report, dryRun)
  })
  return undefined
}

function timesOf(call: Call, now: number): { readonly from: Date; readonly to: Date } {
  const [from, to] = [textOf(call, 'from'), textOf(call, 'to')]
  if (from === undefined) {
    throw new UsageInvalid('--from is required', 'Add --from 2026-11-16T00:00:00Z, or --from 6h.')
  }
  const until = to === undefined ? now : readPast(to, 'to', now)
  return { from: new Date(readPast(from, 'from', now)), to: new Date(until) }
}

function printBackfill({ output }: Call, report: BackfillReport, dryRun: boolean): void {
  const { ticks, existing, jobs } = report
  for (const tick of ticks) output.line(stamp(tick.getTime()))
  const would = dryRun ? 'would get a job' : 'get a job'
  output.say(`${ticks.length} ticks ${would}; ${existing.length} have one already.`)
  const waiting = ticks.length - jobs.length
  if (!dryRun && waiting > 0) output.say(`${waiting} of them wait for the end of the job before.`)
}

const NAMES = [{ flags: '<schedules...>', says: 'names of schedules' }]

export const commands: readonly CommandSpec[] = [
  {
    name: 'schedule pause',
    summary: 'Pause schedules: no jobs are made of their ticks, which are then missed',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl schedule pause nightly-report --reason "INC-7"', 'one schedule']],
    run: pausing('pause'),
  },
  {
    name: 'schedule resume',
    summary: 'Resume paused schedules, from now on',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl schedule resume nightly-report --reason "INC-7 is over"', 'one schedule']],
    run: pausing('resume'),
  },
  {
    name: 'schedule run-now',
    summary: 'Make a job of schedules now, also if another one is open',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl schedule run-now nightly-report --reason "the first one was wrong"', 'one']],
    run: runNow,
  },
  {
    name: 'schedule backfill',
    summary: 'Make up for ticks that have passed without a job',
    details: 'At most 1000 ticks. A tick that has a job keeps it, and gets no second one.',
    args: [{ flags: '<schedule>', says: 'the name of the schedule' }],
    options: [
      { flags: '--from <time>', says: 'ticks from this time on, or from so long ago (required)' },
      { flags: '--to <time>', says: 'ticks up to this time; now if absent' },
      {
        flags: '--overlap <policy>',
        says: 'bufferAll: one after the other (default); allowAll: all at once',
        choices: ['bufferAll', 'allowAll'],
      },
      { flags: '--dry-run', says: 'print what would be made, and make nothing' },
      ...OPERATOR_OPTIONS,
    ],
    examples: [
      [
        'pawl schedule backfill nightly-report --from 2d --dry-run --reason "INC-7"',
        'what it does',
      ],
      ['pawl schedule backfill nightly-report --from 2d --reason "INC-7"', 'the last two days'],
    ],
    run: backfill,
  },
  {
    name: 'schedule remove',
    summary: 'Remove schedules; their jobs and their history stay',
    details: 'A program that has the schedule in createPawl({ schedules }) stores it again.',
    args: NAMES,
    options: OPERATOR_OPTIONS,
    examples: [['pawl schedule remove old-report --reason "not needed"', 'one schedule']],
    run: remove,
  },
]
