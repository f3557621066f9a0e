/** `pawl run start|resume|cancel|link`. */
import type { RunEvent } from '../../core/run/events.ts'
import { NameUnknown } from '../../engine/errors.ts'
import type { RunHandle } from '../../runs/runs.ts'
import { eachOf } from '../each.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import {
  PLACE_OPTIONS,
  RESUME_OPTIONS,
  RUNS_OPTION,
  resumeOptionsOf,
  runIdOf,
  TELEMETRY_OPTION,
  telemetryOf,
  withDefinedRuns,
  withMachines,
} from '../run-files.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { visible } from '../visible.ts'
import { damageText, sayEvent } from './run-read.ts'

async function start(call: Call): Promise<ExitCode> {
  const [name = '', given = 'null'] = call.args
  const input = readInput(given)
  const runId = textOf(call, 'id')
  return withDefinedRuns(
    call,
    async (runs, definitions) => {
      const definition = definitions.find((one) => one.name === name)
      if (definition === undefined) {
        const known = definitions.map((one) => visible(one.name))
        throw new NameUnknown('run', visible(name), known)
      }
      const { interrupted: signal } = call
      if (hasFlag(call, 'orResume')) {
        if (runId === undefined)
          throw new UsageInvalid('--or-resume needs the id of the run: --id docs-7')
        return follow(call, await runs.startOrResume(definition, { runId, input, signal }))
      }
      const options = { input, signal, ...(runId !== undefined && { runId }) }
      return follow(call, await runs.start(definition, options))
    },
    { create: true, observer: observerOf(call), ...telemetryOf(call) },
  )
}

async function resume(call: Call): Promise<ExitCode> {
  const [argument = ''] = call.args
  return withDefinedRuns(
    call,
    async (runs) => {
      const handle = await runs.resume(runIdOf(argument), {
        ...resumeOptionsOf(call),
        signal: call.interrupted,
      })
      return follow(call, handle)
    },
    { observer: observerOf(call), ...telemetryOf(call) },
  )
}

/** Waits until a run ends or stops, and prints the outcome. */
async function follow(call: Call, handle: RunHandle): Promise<ExitCode> {
  const { output } = call
  output.explain(`run: ${handle.id}`)
  const outcome = await handle.result()
  const { kind, run } = outcome
  const reason = 'reason' in outcome ? outcome.reason : undefined
  const damage = 'damage' in outcome ? outcome.damage : undefined
  const error = kind === 'stopped' ? String(outcome.error) : undefined
  const fields = {
    run_id: handle.id,
    outcome: kind,
    run_state: run.run_state,
    reason,
    damage,
    error,
  }
  if (output.json) output.record(fields)
  else {
    output.line(`${handle.id} ${visible(run.run_state)}`)
    if (reason !== undefined) output.say(visible(reason))
    if (damage !== undefined) output.say(`The log is ${damageText(damage)}`)
    if (error !== undefined) {
      output.say(`${visible(error)}\nThe run has stopped in ${visible(run.run_state)}.`)
      const where = hasFlag(call, 'inStore') ? ' --in-store' : ''
      output.say(`Resume it: pawl run resume ${handle.id}${where}`)
    }
  }
  if (call.interrupted.aborted && kind === 'stopped') return EXIT.interrupted
  return kind === 'done' ? EXIT.ok : EXIT.failure
}

/** Prints events when they are durable. */
function observerOf({ output }: Call) {
  return {
    refused() {},
    recorded(events: readonly RunEvent[]) {
      for (const event of events) {
        if (output.json) output.record(event)
        else sayEvent(output, event)
      }
    },
  }
}

async function cancel(call: Call): Promise<ExitCode> {
  const reason = textOf(call, 'reason')
  if (reason === undefined)
    throw new UsageInvalid('A reason is required: --reason "not needed any more"')
  return withMachines(call, (runs) =>
    eachOf(call, 'run_id', call.args.map(runIdOf), async (runId) => {
      const answer = await runs.cancel(runId, reason)
      if (call.output.json) call.output.record({ run_id: runId, answer })
      else call.output.line(`${visible(runId)} ${answer}`)
      if (answer === 'requested')
        call.output.say('The process that runs it will cancel it within a second.')
    }),
  )
}

async function link(call: Call): Promise<undefined> {
  const [argument = '', sha = ''] = call.args
  const runId = runIdOf(argument)
  await withMachines(call, (runs) => runs.linkCommit(runId, sha))
  if (call.output.json) call.output.record({ run_id: runId, sha })
  else call.output.line(`${runId} ${sha}`)
  return undefined
}

function readInput(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const why = visible((error as Error).message)
    throw new UsageInvalid(`The input is not JSON: ${why}`, `Quote it: '{"folder":"docs"}'.`)
  }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'run start',
    summary: 'Start a run, and work on it until it ends or stops',
    details:
      'The exit code is 0 if the run is done, and 1 if it failed, was cancelled or stopped. With ' +
      '--store or --in-store, work items can run as jobs of that store. With --json each event ' +
      'is one line, and the last line is the outcome.',
    args: [
      { flags: '<name>', says: 'the name of the definition' },
      { flags: '[input]', says: 'its input as JSON; null if absent' },
    ],
    options: [
      RUNS_OPTION,
      ...PLACE_OPTIONS,
      TELEMETRY_OPTION,
      { flags: '--id <id>', says: 'the id of the run; generated if absent' },
      { flags: '--or-resume', says: 'resume the run if it already exists' },
    ],
    examples: [
      [
        `pawl run start docs '{"folder":"docs"}' --runs ./runs.ts --id docs-7 --or-resume`,
        'start or resume: the same command each time',
      ],
      [`pawl run start docs '{"folder":"docs"}' --runs ./runs.ts`, 'a new run'],
    ],
    run: start,
  },
  {
    name: 'run resume',
    summary: 'Continue a run; finished work items are not repeated',
    details:
      'A run that is done is not changed. A failed or cancelled run is rejected: fork it. To see ' +
      'what a resume would do, and why: pawl run explain.',
    args: [{ flags: '<run>', says: 'the id of the run' }],
    options: [RUNS_OPTION, ...PLACE_OPTIONS, TELEMETRY_OPTION, ...RESUME_OPTIONS],
    examples: [
      ['pawl run resume docs-7 --runs ./runs.ts', 'from its current state'],
      ['pawl run resume docs-7 --runs ./runs.ts --force "draft intro"', 'and run one item again'],
    ],
    run: resume,
  },
  {
    name: 'run cancel',
    summary: 'Cancel runs, also those that another process works on',
    details:
      'Each run is tried, and errors are printed. The exit code is 0 if all were cancelled, and ' +
      'otherwise that of the errors.',
    args: [{ flags: '<runs...>', says: 'ids of runs' }],
    options: [
      RUNS_OPTION,
      ...PLACE_OPTIONS,
      { flags: '--reason <text>', says: 'the reason; recorded in the log (required)' },
    ],
    examples: [['pawl run cancel docs-7 --reason "not needed any more"', 'one run']],
    run: cancel,
  },
  {
    name: 'run link',
    summary: 'Record that a commit of a repository belongs to a run',
    args: [
      { flags: '<run>', says: 'the id of the run' },
      { flags: '<commit>', says: 'the full hash of the commit' },
    ],
    options: [RUNS_OPTION, ...PLACE_OPTIONS],
    examples: [['pawl run link docs-7 $(git rev-parse HEAD)', 'the commit that it made']],
    run: link,
  },
]
