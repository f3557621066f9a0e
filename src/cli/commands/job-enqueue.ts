/** `pawl job enqueue`. */
import { readFileSync } from 'node:fs'
import type { Priority } from '../../core/job/priority.ts'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { encodeValue } from '../../core/values.ts'
import { defineJob, type JobDefinition } from '../../engine/define-job.ts'
import { NameUnknown } from '../../engine/errors.ts'
import type { JobHandle } from '../../engine/job-handle.ts'
import type { EnqueueOptions } from '../../engine/options.ts'
import type { OnConflict } from '../../stores/contract/store.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { loadJobFiles } from '../job-files.ts'
import { readAll, readJson } from '../json-input.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, textOf, textsOf, wholeOf } from '../spec.ts'
import { readDate, readDuration } from '../times.ts'
import { visible, visibleJson } from '../visible.ts'

const PRIORITY_MAX = 32_767

async function enqueue(call: Call): Promise<ExitCode | undefined> {
  const { output, settings } = call
  const [type = '', given] = call.args
  const input = readJson(await textOfInput(call, given), 'input')
  const jobs = await loadJobFiles(settings.jobs.value)
  const definition = definitionOf(call, type, jobs)
  const options = optionsOf(call)
  const waitText = textOf(call, 'wait')
  const timeout = waitText === undefined ? undefined : readDuration(waitText, 'wait')
  return withPawl(
    call,
    async (pawl) => {
      const handle = await pawl.enqueue(definition as JobDefinition<unknown>, input, options)
      const { id, created, removed } = handle
      if (output.json) {
        const state = removed === undefined ? (await handle.get()).state : undefined
        output.record({ id, created, ...(removed ? { removed } : { state }) })
      } else output.line(id)
      if (removed !== undefined) {
        const { outcome } = removed
        output.say(`The job with this key has ended (${outcome}) and was removed; see its id.`)
      } else if (!created) output.say('No job was created: the id of the existing job is printed.')
      return timeout === undefined || removed ? undefined : waitFor(call, handle, timeout)
    },
    { create: true, jobs },
  )
}

/** Prints how the job ended. Throws `ResultTimeout` if it has not ended in time. */
async function waitFor(
  { output, interrupted }: Call,
  handle: JobHandle<unknown>,
  timeout: number,
): Promise<ExitCode> {
  const outcome = await handle.result({ timeout, signal: interrupted })
  const { kind } = outcome
  const error = 'error' in outcome ? outcome.error?.message : undefined
  if (kind === 'succeeded') {
    const result = encodeValue(outcome.output)
    if (output.json) output.record({ id: handle.id, kind }, { result })
    else output.line(`${kind} ${visibleJson(result)}`)
  } else if (output.json) output.record({ id: handle.id, kind, error })
  else output.line(`${kind} ${visible(error ?? '')}`.trimEnd())
  return kind === 'succeeded' ? EXIT.ok : EXIT.failure
}

/** Uses the job type of the job files, or the options if there are no job files. */
function definitionOf(call: Call, type: string, jobs: readonly JobDefinition[]): JobDefinition {
  const [queue, lifecycle] = [textOf(call, 'queue'), textOf(call, 'lifecycle')]
  const known = jobs.find(({ name }) => name === type)
  if (known !== undefined) {
    if (queue === undefined && lifecycle === undefined) return known
    throw new UsageInvalid(
      '--queue and --lifecycle come from the job type and cannot be set',
      'Remove them.',
    )
  }
  if (jobs.length > 0) {
    throw new NameUnknown(
      'job',
      visible(type),
      jobs.map(({ name }) => visible(name)),
    )
  }
  const found = LIFECYCLES.find(({ name }) => name === (lifecycle ?? 'standard')) as Lifecycle
  return defineJob({ name: type, lifecycle: found, ...(queue !== undefined && { queue }) })
}

function optionsOf(call: Call): EnqueueOptions {
  const { environment } = call
  const [delay, at] = [textOf(call, 'delay'), textOf(call, 'at')]
  if (delay !== undefined && at !== undefined) {
    throw new UsageInvalid('--delay and --at cannot be used together', 'Remove one of them.')
  }
  const [key, onConflict] = [textOf(call, 'key'), textOf(call, 'onConflict')]
  const priority = priorityOf(call, 'priority')
  const [timeout, tags] = [textOf(call, 'timeout'), textsOf(call, 'tag')]
  return {
    ...(key !== undefined && { key }),
    ...(onConflict !== undefined && { onConflict: onConflict as OnConflict }),
    ...(priority !== undefined && { priority }),
    ...(delay !== undefined && { delay: readDuration(delay, 'delay') }),
    ...(at !== undefined && { runAt: new Date(readDate(at, 'at')) }),
    ...(timeout !== undefined && { timeout: readDuration(timeout, 'timeout') }),
    ...(tags.length > 0 && { tags }),
    ...(hasFlag(call, 'hold') && { hold: true }),
    jobId: textOf(call, 'id') ?? environment.ids.next(),
  }
}

/** A priority that is given as a number or as a time; undefined if neither is given. */
export function priorityOf(call: Call, number: string): Priority | undefined {
  const priority = wholeOf(call, number, -PRIORITY_MAX, PRIORITY_MAX)
  const ahead = textOf(call, 'ahead')
  if (ahead === undefined) return priority
  if (priority === undefined) return { ahead: readDuration(ahead, 'ahead') }
  throw new UsageInvalid(`--${number} and --ahead cannot be used together`, 'Remove one of them.')
}

async function textOfInput(call: Call, given: string | undefined): Promise<string> {
  const file = textOf(call, 'inputFile')
  if (file === undefined) return given ?? 'null'
  if (given !== undefined)
    throw new UsageInvalid('The input is given as an argument and as a file', 'Remove one of them.')
  if (file === '-') return readAll(call.stdin, 'input')
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageInvalid(`The input file ${visible(file)} cannot be read (${code})`)
  }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'job enqueue',
    summary: 'Enqueue a job; it is durable when its id is printed',
    details:
      'With job files, the job type is used and its schema checks the input. The store is ' +
      'created if it does not exist.',
    args: [
      { flags: '<type>', says: 'the job type' },
      { flags: '[input]', says: 'its input as JSON; null if absent' },
    ],
    options: [
      { flags: '--input-file <file>', says: 'read the input from a file; - is stdin' },
      {
        flags: '--jobs <file>',
        says: 'a job file, in TypeScript or JavaScript',
        repeats: true,
      },
      { flags: '--wait <duration>', says: 'wait for the end of the job, and print its result' },
      { flags: '--queue <queue>', says: 'the queue, if there are no job files' },
      {
        flags: '--lifecycle <name>',
        says: 'the lifecycle, if there are no job files',
        choices: LIFECYCLES.map(({ name }) => name),
      },
      { flags: '--key <key>', says: 'at most one job per type and key' },
      {
        flags: '--on-conflict <what>',
        says: 'what to do if a job has the key',
        choices: ['existing', 'replace', 'reject'],
      },
      { flags: '--priority <number>', says: 'smaller numbers first' },
      { flags: '--ahead <duration>', says: 'order it as if it were due so much earlier (2m)' },
      { flags: '--delay <duration>', says: 'not before so much time has passed (30s, 5m, 2h)' },
      { flags: '--at <date>', says: 'not before this date' },
      { flags: '--tag <tag>', says: 'a tag', repeats: true },
      { flags: '--timeout <duration>', says: 'how long an attempt may take' },
      { flags: '--hold', says: 'create the job without running it; pawl job submit starts it' },
      { flags: '--id <uuid>', says: 'an id of your own' },
    ],
    examples: [
      [`pawl job enqueue send-mail '{"to":"ada"}' --jobs ./jobs.ts`, 'checked by its schema'],
      ['pawl job enqueue report --key 2026-11 --delay 5m', 'once for this key, in five minutes'],
      [`pawl job enqueue report '{"day":{"@pawl:date":"2026-01-31T00:00:00Z"}}'`, 'with a Date'],
      ['cat input.json | pawl job enqueue import --input-file -', 'a large input'],
    ],
    run: enqueue,
  },
]
