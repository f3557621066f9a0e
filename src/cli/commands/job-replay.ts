/** `pawl job replay|export`: a job of another machine, run again on this one. */
import { JobNotFound } from '../../core/errors.ts'
import { encodeValue } from '../../core/values.ts'
import { auditOf } from '../../engine/audit.ts'
import type { JobDefinition } from '../../engine/define-job.ts'
import { NameUnknown } from '../../engine/errors.ts'
import { SECRET_KEYS } from '../../http/payloads.ts'
import type { Store } from '../../stores/contract/store.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { writeNew } from '../files.ts'
import { loadJobFiles } from '../job-files.ts'
import { loggerOf, withPawl } from '../opening.ts'
import { bundleLines, jobIn, readBundle } from '../replay/bundle.ts'
import { play, type Replayed } from '../replay/play.ts'
import { othersOf, type RecordedFact, type RecordedJob, recordedJobOf } from '../replay/recorded.ts'
import { type Call, type CommandSpec, hasFlag, textOf, textsOf } from '../spec.ts'
import { thrownLines } from '../thrown-text.ts'
import { shortened, visible, visibleJson } from '../visible.ts'

const VALUE_MAX = 400
const JOBS_MAX = 1000

async function replay(call: Call): Promise<ExitCode> {
  const { settings, output } = call
  const jobs = await loadJobFiles(settings.jobs.value)
  const recorded = await recordedOf(call)
  const definition = definitionFor(recorded, jobs)
  output.say('Nothing is written: effects, new jobs and commits are printed, not done.')
  const replayed = await play(definition, recorded, {
    liveSteps: textsOf(call, 'liveStep'),
    logger: loggerOf(call, true),
    signal: call.interrupted,
  })
  if (output.json) output.record(recordOf(recorded, replayed))
  else print(call, recorded, replayed)
  if (call.interrupted.aborted) return EXIT.interrupted
  return replayed.outcome.kind === 'failed' ? EXIT.failure : EXIT.ok
}

/** From a bundle, without a store, or from the ledger. */
async function recordedOf(call: Call): Promise<RecordedJob> {
  const [id] = call.args
  const file = textOf(call, 'bundle')
  if (file !== undefined) return jobIn(await readBundle(file), id)
  if (id === undefined) {
    throw new UsageInvalid('No job is given', 'Add its id, or --bundle with a bundle of one job.')
  }
  return withPawl(call, async ({ store }) => {
    const entries: RecordedFact[] = []
    for await (const entry of entriesOf(store, [id])) entries.push(entry)
    const recorded = recordedJobOf(entries, (why) => new UsageInvalid(`The job ${visible(why)}`))
    const { flow, links } = recorded.job
    // Most jobs have neither dependencies nor children.
    return flow === null && links === 0
      ? recorded
      : { ...recorded, others: await othersOf(store, id) }
  })
}

async function* entriesOf(store: Store, ids: readonly string[]): AsyncGenerator<RecordedFact> {
  for (const jobId of new Set(ids)) {
    if ((await store.get(jobId)) === undefined) throw new JobNotFound(visible(jobId))
    for await (const { fact, payload = null } of auditOf(store, { jobId }, { payloads: true })) {
      yield { fact, payload }
    }
  }
}

function definitionFor({ job }: RecordedJob, jobs: readonly JobDefinition[]): JobDefinition {
  if (jobs.length === 0) {
    throw new UsageInvalid('There is no code to replay', 'Add the job file: --jobs ./jobs.ts.')
  }
  const found = jobs.find(({ name }) => name === job.type)
  if (found !== undefined) return found
  const names = jobs.map(({ name }) => visible(name))
  throw new NameUnknown('job', visible(job.type), names)
}

function recordOf({ job }: RecordedJob, { outcome, statement, known }: Replayed): object {
  const { kind, effects, enqueued, steps } = outcome
  const result = kind === 'succeeded' ? { output: outcome.output, isCommit: outcome.isCommit } : {}
  const failure = kind === 'failed' ? { failure: outcome.failure } : {}
  const recorded = { state: job.state, outcome: job.outcome, error: job.error?.message }
  const own = { id: job.id, type: job.type, attempt: job.attempt, recorded, kind }
  return { ...own, ...result, ...failure, knownSteps: known, steps, effects, enqueued, statement }
}

function print({ output }: Call, { job }: RecordedJob, replayed: Replayed): void {
  const { outcome, statement, known } = replayed
  const shown = (value: unknown) => shortened(visibleJson(encodeValue(value)), VALUE_MAX)
  const error = job.error === null ? '' : `  ${visible(shortened(job.error.message, VALUE_MAX))}`
  output.line(`recorded  ${visible(job.state)} after attempt ${job.attempt}${error}`)
  if (known.length > 0) output.line(`steps     recorded: ${visible(known.join(', '))}`)
  for (const { name, result } of outcome.steps) {
    output.line(`step      ${visible(name)} ran: ${shown(result)}`)
  }
  for (const { type, input } of outcome.enqueued) {
    output.line(`enqueue   ${visible(type)} ${shown(input)}  (not done)`)
  }
  for (const { name, payload } of outcome.effects) {
    output.line(`effect    ${visible(name)} ${shown(payload)}  (not delivered)`)
  }
  if (statement !== undefined) {
    const { sql, values } = statement
    output.line(`query     ${visible(shortened(sql, VALUE_MAX))} ${shown(values)}  (not run)`)
  }
  if (outcome.kind === 'succeeded') {
    const how = outcome.isCommit ? '  (not committed)' : ''
    output.line(`replayed  ${output.style('green', 'succeeded')} ${shown(outcome.output)}${how}`)
  } else if (outcome.kind === 'failed') {
    const { message, thrown } = outcome.failure
    output.line(`replayed  ${output.style('red', 'failed')} ${visible(message)}`)
    if (thrown !== undefined) for (const line of thrownLines(thrown)) output.line(visible(line))
  } else output.line(`replayed  ${outcome.kind}`)
}

async function exportJobs(call: Call): Promise<undefined> {
  const { output, args } = call
  if (args.length > JOBS_MAX) throw new UsageInvalid(`At most ${JOBS_MAX} jobs can be exported`)
  const own = textsOf(call, 'redact')
  const redacted = own.length > 0 ? own : hasFlag(call, 'whole') ? [] : SECRET_KEYS
  await withPawl(call, async ({ store }) => {
    const lines = bundleLines(entriesOf(store, args), redacted)
    const file = textOf(call, 'out')
    if (file !== undefined) return writeNew(file, lines)
    for await (const line of lines) {
      output.text(line)
      await output.taken()
      if (output.gone.aborted) return
    }
  })
  return undefined
}

const ID = '0198a1b2-0000-7000-8000-000000000001'

export const commands: readonly CommandSpec[] = [
  {
    name: 'job replay',
    summary: 'Run the last attempt at a job again on this machine, without any effect',
    details:
      'Calls the handler of your job file with the recorded input; steps return their recorded ' +
      'results, and so do the jobs that it comes after or has invoked, if they have ended and ' +
      'the job is read from a store. Nothing is written to a store. Effects, new jobs and the ' +
      'commit are printed, not done; a commit that runs SQL stops there. What your handler does ' +
      'by itself outside of steps and commits, such as calls over the network, is done. ' +
      'Time-outs do not apply. The exit code is 0 unless the handler fails.',
    args: [{ flags: '[id]', says: 'the id of the job' }],
    options: [
      { flags: '--jobs <file>', says: 'a job file', repeats: true },
      { flags: '--bundle <file>', says: 'take the job from a bundle, without a store' },
      { flags: '--live-step <name>', says: 'run this step, do not use its result', repeats: true },
    ],
    examples: [
      [`pawl job replay ${ID} --jobs ./jobs.ts`, 'from the store'],
      ['pawl job replay --bundle job.ndjson --jobs ./jobs.ts', 'from a file of pawl job export'],
      [`pawl job replay ${ID} --live-step render`, 'run one step again'],
    ],
    run: replay,
  },
  {
    name: 'job export',
    summary: 'Write the facts and payloads of jobs to a bundle, for replay elsewhere',
    details:
      'Values of members with the names of usual secrets are replaced, unless --whole is given. ' +
      'Messages of errors are written as they are.',
    args: [{ flags: '<id...>', says: 'ids of jobs' }],
    options: [
      { flags: '--out <file>', says: 'a new file; stdout if absent' },
      {
        flags: '--redact <member>',
        says: 'a member of payloads whose value is replaced, instead of the usual ones',
        repeats: true,
      },
      { flags: '--whole', says: 'replace nothing' },
    ],
    examples: [
      [`pawl job export ${ID} --out job.ndjson`, 'one job'],
      [`pawl job export ${ID} --redact iban --redact email`, 'to stdout'],
    ],
    run: exportJobs,
  },
]
