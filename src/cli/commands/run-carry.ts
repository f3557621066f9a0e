/** `pawl run export|import|fork`. */
import { createWriteStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { exportRun, importRun } from '../../runs/journal/bundle.ts'
import { forkRun } from '../../runs/journal/fork.ts'
import { UsageInvalid } from '../errors.ts'
import { PLACE_OPTIONS, runIdOf, withRuns } from '../run-files.ts'
import { type Call, type CommandSpec, textOf, wholeOf } from '../spec.ts'
import { visible } from '../visible.ts'

async function exportOne(call: Call): Promise<undefined> {
  const [argument = ''] = call.args
  const { output } = call
  const file = textOf(call, 'out')
  await withRuns(call, async ({ journal }) => {
    const lines = exportRun(journal, runIdOf(argument))
    if (file === undefined) {
      for await (const line of lines) {
        output.line(line)
        await output.taken()
      }
      return
    }
    const ended = async function* () {
      for await (const line of lines) yield `${line}\n`
    }
    // An existing file is not replaced.
    await pipeline(Readable.from(ended()), createWriteStream(file, { flags: 'wx' }))
    output.say(`Written to ${visible(file)}.`)
  })
  return undefined
}

async function importOne(call: Call): Promise<undefined> {
  const [file = '-'] = call.args
  const { output } = call
  const handle = file === '-' ? undefined : await openBundle(file)
  await withRuns(
    call,
    async ({ journal }) => {
      // `readLines` starts to read at once, so it is called only when the store is open.
      const lines = handle?.readLines() ?? createInterface({ input: call.stdin })
      const imported = await importRun(journal, lines)
      if (output.json) output.record(imported)
      else output.line(imported.runId)
    },
    { create: true },
  )
  return undefined
}

async function openBundle(file: string): Promise<FileHandle> {
  try {
    return await open(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageInvalid(`The bundle ${visible(file)} cannot be read (${code})`)
  }
}

async function fork(call: Call): Promise<undefined> {
  const [argument = ''] = call.args
  const { output, environment } = call
  const seq = wholeOf(call, 'at', 1)
  if (seq === undefined) throw new UsageInvalid('The last shared event is missing: --at 12')
  const runId = textOf(call, 'id') ?? environment.ids.next()
  await withRuns(call, async ({ journal }) => {
    await forkRun(journal, { from: runIdOf(argument), seq, runId }, environment)
    if (output.json) output.record({ run_id: runId })
    else output.line(runId)
  })
  return undefined
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'run export',
    summary: 'Write a run as one file: its events and every version of its artifacts',
    args: [{ flags: '<run>', says: 'the id of the run' }],
    options: [...PLACE_OPTIONS, { flags: '--out <file>', says: 'a new file; stdout if absent' }],
    examples: [['pawl run export docs-7 --out docs-7.bundle', 'one run']],
    run: exportOne,
  },
  {
    name: 'run import',
    summary: 'Import an exported run; all of it is checked first',
    args: [{ flags: '[file]', says: 'the file; stdin if absent' }],
    options: PLACE_OPTIONS,
    examples: [['pawl run import docs-7.bundle --dir ./elsewhere', 'into another folder']],
    run: importOne,
  },
  {
    name: 'run fork',
    summary: 'Start a run with the events of another run up to one of them',
    details: 'Use it to continue a run that has failed or was cancelled.',
    args: [{ flags: '<run>', says: 'the id of the other run' }],
    options: [
      ...PLACE_OPTIONS,
      { flags: '--at <seq>', says: 'the last shared event (required)' },
      { flags: '--id <id>', says: 'the id of the new run; generated if absent' },
    ],
    examples: [['pawl run fork docs-7 --at 12 --id docs-8', 'after its twelfth event']],
    run: fork,
  },
]
