/** `pawl job enqueue`: accepts a job, by its definition where there is one. */
import { readFileSync } from 'node:fs'
import { LIFECYCLES } from '../../core/lifecycles/index.ts'
import type { Lifecycle } from '../../core/lifecycles/lifecycle.ts'
import { defineJob, type JobDefinition } from '../../engine/define-job.ts'
import type { EnqueueOptions } from '../../engine/options.ts'
import type { OnConflict } from '../../stores/store.ts'
import { NameUnknown, UsageInvalid } from '../errors.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, textOf, textsOf, wholeOf } from '../spec.ts'
import { readDate, readDuration } from '../times.ts'
import { visible } from '../visible.ts'

const PRIORITY_MAX = 32_767
const INPUT_MAX = 64 * 1024 * 1024

async function enqueue(call: Call): Promise<undefined> {
  const { output, settings } = call
  const [type = '', given] = call.args
  const input = readInput(await textOfInput(call, given))
  const jobs = await loadJobFiles(settings.jobs.value)
  const definition = definitionOf(call, type, jobs)
  const options = optionsOf(call)
  await withPawl(
    call,
    async (pawl) => {
      const handle = await pawl.enqueue(definition as JobDefinition<unknown>, input, options)
      const { id, created } = handle
      if (output.json) output.record({ id, created, state: (await handle.get()).state })
      else output.line(id)
      if (!created) output.say('The key belonged to this job already.')
    },
    { create: true, jobs },
  )
  return undefined
}

/** By its definition where files of jobs are named; else by what the options say. */
function definitionOf(call: Call, type: string, jobs: readonly JobDefinition[]): JobDefinition {
  const [queue, lifecycle] = [textOf(call, 'queue'), textOf(call, 'lifecycle')]
  const known = jobs.find(({ name }) => name === type)
  if (known !== undefined) {
    if (queue === undefined && lifecycle === undefined) return known
    throw new UsageInvalid('--queue and --lifecycle are what the definition of the job says')
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
    throw new UsageInvalid('--delay and --at cannot be given together')
  }
  const [key, onConflict] = [textOf(call, 'key'), textOf(call, 'onConflict')]
  const priority = wholeOf(call, 'priority', -PRIORITY_MAX, PRIORITY_MAX)
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

async function textOfInput(call: Call, given: string | undefined): Promise<string> {
  const file = textOf(call, 'inputFile')
  if (file === undefined) return given ?? 'null'
  if (given !== undefined) throw new UsageInvalid('The input is given twice')
  if (file === '-') return readAll(call.stdin)
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageInvalid(`The input file ${visible(file)} cannot be read (${code})`)
  }
}

async function readAll(stdin: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk as Buffer)
    size += bytes.length
    if (size > INPUT_MAX) throw new UsageInvalid(`The input is larger than ${INPUT_MAX} bytes`)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** The value of a JSON text, unless reading it would silently change one of its numbers. */
function readInput(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const why = visible((error as Error).message)
    throw new UsageInvalid(`The input is no JSON: ${why}`, `Quote it: '{"to":"ada"}'.`)
  }
  for (const [number] of text.matchAll(NUMBERS)) {
    if (/^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number))) {
      throw new UsageInvalid(`The number ${number} would be changed`, 'Send it as a text.')
    }
  }
  return value
}

/** Commands that accept jobs. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'job enqueue',
    summary: 'Accept a job; it is durable when its id is printed',
    details:
      'With job files the definition of the type is used and its schema checks the input. ' +
      'The store is made where there is none.',
    args: [
      { flags: '<type>', says: 'the name of the kind of job' },
      { flags: '[input]', says: 'its input as JSON; null if absent' },
    ],
    options: [
      { flags: '--input-file <file>', says: 'read the input from a file; - is stdin' },
      {
        flags: '--jobs <file>',
        says: 'a file of jobs, in TypeScript or JavaScript',
        repeats: true,
      },
      { flags: '--queue <queue>', says: 'its queue, without job files' },
      {
        flags: '--lifecycle <name>',
        says: 'its lifecycle, without job files',
        choices: LIFECYCLES.map(({ name }) => name),
      },
      { flags: '--key <key>', says: 'one job for each type and key' },
      {
        flags: '--on-conflict <what>',
        says: 'what happens where the key is taken',
        choices: ['existing', 'replace', 'reject'],
      },
      { flags: '--priority <number>', says: 'smaller numbers first' },
      { flags: '--delay <duration>', says: 'not before so much time has passed (30s, 5m, 2h)' },
      { flags: '--at <date>', says: 'not before this date' },
      { flags: '--tag <tag>', says: 'a tag', repeats: true },
      { flags: '--timeout <duration>', says: 'how long an attempt may take' },
      { flags: '--hold', says: 'create it only; submit lets it run' },
      { flags: '--id <uuid>', says: 'an id of your own' },
    ],
    examples: [
      [`pawl job enqueue send-mail '{"to":"ada"}' --jobs ./jobs.ts`, 'checked by its schema'],
      ['pawl job enqueue report --key 2026-11 --delay 5m', 'once for this key, in five minutes'],
      ['cat input.json | pawl job enqueue import --input-file -', 'a large input'],
    ],
    run: enqueue,
  },
]
