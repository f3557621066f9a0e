/** `pawl job import`: new jobs with the inputs of a bundle. */
import { NAME_MAX } from '../../core/checks.ts'
import type { Job } from '../../core/job/job.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import { decodeValue } from '../../core/values.ts'
import { defineJob, type JobDefinition } from '../../engine/define-job.ts'
import { NameUnknown } from '../../engine/errors.ts'
import type { EnqueueOptions } from '../../engine/options.ts'
import { REDACTED } from '../../http/json-text.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { jobIn, readBundle } from '../replay/bundle.ts'
import type { RecordedJob } from '../replay/recorded.ts'
import { type Call, type CommandSpec, hasFlag } from '../spec.ts'
import { visible } from '../visible.ts'

async function importJobs(call: Call): Promise<undefined> {
  const { output, settings, args } = call
  const [file = '', ...ids] = args
  const bundle = await readBundle(file)
  const wanted = ids.length === 0 ? [...bundle.values()] : ids.map((id) => jobIn(bundle, id))
  const jobs = await loadJobFiles(settings.jobs.value)
  const planned = wanted.map((recorded) => ({
    recorded,
    definition: definitionFor(recorded.job, jobs),
    input: decodeValue(recorded.input),
  }))
  const dryRun = hasFlag(call, 'dryRun')
  const run = hasFlag(call, 'run')
  if (dryRun) for (const { recorded } of planned) print(call, recorded, 'would be imported')
  else {
    await withPawl(
      call,
      async (pawl) => {
        for (const { recorded, definition, input } of planned) {
          const known = await pawl.jobs.get(recorded.job.id)
          const options = optionsFor(recorded.job, run)
          if (known === undefined) await pawl.enqueue(definition, input, options)
          print(call, recorded, known === undefined ? 'imported' : 'exists')
        }
      },
      { create: true, jobs },
    )
  }
  const redacted = planned.filter(({ recorded }) => recorded.input.includes(`"${REDACTED}"`))
  if (redacted.length > 0) {
    output.say(
      `Values that the export has replaced are "${REDACTED}" in ${redacted.length} inputs.`,
    )
  }
  if (!run && !dryRun) output.say('They are held back. To run them: pawl job submit ID')
  return undefined
}

/** The code of the job files, if they have the type: its schema then checks the input. */
function definitionFor(
  { type, queue, lifecycle }: Job,
  jobs: readonly JobDefinition[],
): JobDefinition<unknown> {
  const known = jobs.find(({ name }) => name === type)
  if (known !== undefined) return known as JobDefinition<unknown>
  const found = LIFECYCLES.find(({ name }) => name === lifecycle)
  if (found === undefined) {
    const names = LIFECYCLES.map(({ name }) => name)
    throw new NameUnknown('lifecycle', visible(lifecycle), names)
  }
  return defineJob({ name: type, queue, lifecycle: found }) as JobDefinition<unknown>
}

/**
 * The id stays, so that a repeated import changes nothing and both stores speak of one job. Key,
 * deadline and due time belong to the other store.
 */
function optionsFor({ id, priority, aheadMs, tags, timeoutMs }: Job, run: boolean): EnqueueOptions {
  return {
    jobId: id,
    hold: !run,
    priority: aheadMs > 0 ? { ahead: aheadMs } : priority,
    ...(tags.length > 0 && { tags }),
    ...(timeoutMs !== null && { timeout: timeoutMs }),
  }
}

function print({ output }: Call, { job }: RecordedJob, what: string): void {
  const { id, type, queue } = job
  if (output.json) output.record({ id, type, queue, result: what })
  else output.line(`${id}  ${visible(type).slice(0, NAME_MAX)}  ${what}`)
}

const ID = '0198a1b2-0000-7000-8000-000000000001'

export const commands: readonly CommandSpec[] = [
  {
    name: 'job import',
    summary: 'Enqueue the jobs of a bundle in this store, held back, to run them from the start',
    details:
      'Each job is a new one with the id, type, queue, priority, tags, time-out and input of the ' +
      'recorded one. Its facts, steps, key, deadline and due time are not taken over. A job ' +
      'whose id exists in this store is not changed. With job files, the type and its schema are ' +
      'used. ' +
      'The store is created if it does not exist.',
    args: [
      { flags: '<file>', says: 'a bundle of pawl job export' },
      { flags: '[ids...]', says: 'only these jobs of it' },
    ],
    options: [
      { flags: '--jobs <file>', says: 'a job file', repeats: true },
      { flags: '--run', says: 'make the jobs ready at once' },
      { flags: '--dry-run', says: 'print what would be imported' },
    ],
    examples: [
      ['pawl job import job.ndjson', 'all jobs, held back'],
      [`pawl job import job.ndjson ${ID} --run`, 'one job, ready for a worker'],
    ],
    run: importJobs,
  },
]
