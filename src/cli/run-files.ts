/** Opening the runs that a command works on, with the definitions of users' own files. */
import { existsSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Pawl } from '../engine/pawl.ts'
import type { RunDefinition } from '../runs/define-run.ts'
import { sha256Of } from '../runs/journal/hash.ts'
import { openStoreJournal } from '../runs/journal/store/journal.ts'
import { openRuns, type Runs } from '../runs/runs.ts'
import type { RunsOptions } from '../runs/runs-options.ts'
import type { ResumeOptions } from '../runs/survey.ts'
import { httpSink } from '../runs/telemetry/http-sink.ts'
import { RunFileInvalid, StoreMissing, UsageInvalid } from './errors.ts'
import { evaluate, findIn } from './job-files.ts'
import { loggerOf, withPawl } from './opening.ts'
import { type Call, hasFlag, type OptionSpec, textOf, textsOf } from './spec.ts'
import { visible } from './visible.ts'

/** The folder in which runs are kept. */
export const FOLDER_OPTION: OptionSpec = {
  flags: '--dir <folder>',
  says: 'the folder of runs: PAWL_RUNS, or .pawl/runs',
}

/** Where runs are kept. */
export const PLACE_OPTIONS: readonly OptionSpec[] = [
  FOLDER_OPTION,
  { flags: '--in-store', says: 'the runs of the store, not of a folder: PAWL_RUNS_IN=store' },
]

/** What runs are made of. */
export const RUNS_OPTION: OptionSpec = {
  flags: '--runs <file>',
  says: 'a file of runs, in TypeScript or JavaScript',
  repeats: true,
}

/** How a run is resumed, or would be. */
export const RESUME_OPTIONS: readonly OptionSpec[] = [
  { flags: '--force <item>', says: 'do this work item again', repeats: true },
  { flags: '--strict', says: 'do again also what would come out of unchanged inputs' },
  {
    flags: '--paranoid',
    says: 'read every input file and artifact, whatever its size and times say',
  },
]

/** Where events of runs are sent. */
export const TELEMETRY_OPTION: OptionSpec = {
  flags: '--telemetry <url>',
  says: 'send events to this server: PAWL_TELEMETRY; its token is PAWL_TELEMETRY_TOKEN',
}

/** The sink of a call; nothing where it names none. */
export function telemetryOf(call: Call): Pick<RunsOptions, 'telemetry'> {
  const { PAWL_TELEMETRY, PAWL_TELEMETRY_TOKEN: token } = process.env
  const url = textOf(call, 'telemetry') ?? (PAWL_TELEMETRY || undefined)
  if (url === undefined) return {}
  if (!URL.canParse(url)) throw new UsageInvalid('--telemetry must be a URL: http://127.0.0.1:7171')
  return { telemetry: httpSink({ url, ...(token ? { token } : {}) }) }
}

/** What a call says about resuming. */
export function resumeOptionsOf(call: Call): ResumeOptions {
  return {
    force: textsOf(call, 'force'),
    strict: hasFlag(call, 'strict'),
    paranoid: hasFlag(call, 'paranoid'),
  }
}

type Opening = Omit<RunsOptions, 'folder' | 'journal'> & { readonly create?: boolean }

/** Opens the folder of runs, or the store that holds them, does the work, and closes it. */
export function withRuns<T>(
  call: Call,
  work: (runs: Runs) => Promise<T>,
  { create = false, ...options }: Opening = {},
): Promise<T> {
  const inFolder = call.settings.runsIn.value === 'folder'
  if (hasFlag(call, 'inStore') && textOf(call, 'dir') !== undefined) {
    throw new UsageInvalid('Runs are in a folder or in a store: --dir or --in-store, not both')
  }
  return inFolder
    ? withFolder(call, work, { create, ...options })
    : withStore(call, work, { create, ...options })
}

async function withFolder<T>(
  call: Call,
  work: (runs: Runs) => Promise<T>,
  { create, ...options }: Opening,
): Promise<T> {
  const { settings, output } = call
  const { value: folder, from } = settings.runFolder
  output.explain(`runs: ${visible(folder)} (from ${visible(from)})`)
  if (create) mkdirSync(folder, { recursive: true })
  else if (!existsSync(folder)) throw new StoreMissing(visible(folder))
  await using runs = await openRuns({ folder, logger: loggerOf(call, false), ...options })
  return await work(runs)
}

async function withStore<T>(
  call: Call,
  work: (runs: Runs) => Promise<T>,
  { create = false, ...options }: Opening,
): Promise<T> {
  const { settings, output } = call
  output.explain(`runs: in the store (from ${visible(settings.runsIn.from)})`)
  const open = async (pawl: Pawl) => {
    const journal = openStoreJournal({ store: pawl.store })
    const logger = loggerOf(call, false)
    const place = options.telemetry === undefined ? {} : telemetryPlaceOf(call)
    await using runs = await openRuns({ journal, pawl, logger, ...place, ...options })
    return await work(runs)
  }
  return withPawl(call, open, { create })
}

/** Each store has a place of its own in which telemetry keeps how far it has come. */
function telemetryPlaceOf({ settings }: Call): Pick<RunsOptions, 'telemetryFolder'> {
  const { runFolder, store } = settings
  const telemetryFolder = join(runFolder.value, `.telemetry-${sha256Of(store.value).slice(0, 16)}`)
  mkdirSync(runFolder.value, { recursive: true })
  return { telemetryFolder }
}

/** The same for what needs the machines of runs, and none of their work. */
export async function withMachines<T>(call: Call, work: (runs: Runs) => Promise<T>): Promise<T> {
  return withRuns(call, work, { runs: await loadRunFiles(call.settings.runs.value) })
}

/** The same with the definitions of files, and with a queue where a store was named. */
export async function withDefinedRuns<T>(
  call: Call,
  work: (runs: Runs, definitions: readonly RunDefinition[]) => Promise<T>,
  options: Opening = {},
): Promise<T> {
  const runs = await loadRunFiles(call.settings.runs.value)
  const open = (more: Pick<RunsOptions, 'pawl'>) =>
    withRuns(call, (opened) => work(opened, runs), { ...options, runs, ...more })
  const hasQueue = call.settings.runsIn.value === 'store'
  if (hasQueue || textOf(call, 'store') === undefined) return open({})
  return withPawl(call, (pawl) => open({ pawl }), { create: true })
}

/** The definitions of several files; throws `RunFileInvalid`. */
async function loadRunFiles(paths: readonly string[]): Promise<RunDefinition[]> {
  const found = new Map<string, RunDefinition>()
  for (const path of paths) {
    const definitions = findIn(await evaluate(path, RunFileInvalid), isRun)
    if (definitions.length === 0) throw new RunFileInvalid(path, 'exports no run')
    for (const definition of definitions) {
      const { name } = definition
      if ((found.get(name) ?? definition) !== definition) {
        throw new RunFileInvalid(path, `exports a second run named "${visible(name)}"`)
      }
      found.set(name, definition)
    }
  }
  return [...found.values()]
}

function isRun(value: object): value is RunDefinition {
  const { name, machine, nodes } = value as Partial<RunDefinition>
  return typeof name === 'string' && typeof machine === 'object' && nodes instanceof Map
}

/** The id of a run, also where its folder was named. */
export function runIdOf(argument: string): string {
  return basename(argument)
}
