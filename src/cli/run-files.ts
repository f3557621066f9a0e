/** Opens the runs of a command, with the definitions of run files. */
import { existsSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Logger } from '../core/ports.ts'
import type { Pawl } from '../engine/pawl.ts'
import type { RunDefinition } from '../runs/define-run.ts'
import { sha256Of } from '../runs/journal/hash.ts'
import { openStoreJournal } from '../runs/journal/store/journal.ts'
import { openRuns, type Runs } from '../runs/runs.ts'
import type { AnyRun, ResumeOptions, RunsOptions } from '../runs/runs-options.ts'
import { httpSink } from '../runs/telemetry/http-sink.ts'
import { RunFileInvalid, StoreMissing, UsageInvalid } from './errors.ts'
import { evaluate, findIn } from './job-files.ts'
import { loggerOf, withPawl } from './opening.ts'
import type { Settings } from './settings.ts'
import { type Call, hasFlag, type OptionSpec, textOf, textsOf } from './spec.ts'
import { visible } from './visible.ts'

export const FOLDER_OPTION: OptionSpec = {
  flags: '--dir <folder>',
  says: 'the folder of runs: PAWL_RUNS, or .pawl/runs',
}

export const PLACE_OPTIONS: readonly OptionSpec[] = [
  FOLDER_OPTION,
  { flags: '--in-store', says: 'use the runs in the store, not in a folder: PAWL_RUNS_IN=store' },
]

export const RUNS_OPTION: OptionSpec = {
  flags: '--runs <file>',
  says: 'a run file, in TypeScript or JavaScript',
  repeats: true,
}

export const RESUME_OPTIONS: readonly OptionSpec[] = [
  { flags: '--force <item>', says: 'run this work item again', repeats: true },
  { flags: '--strict', says: 'also run items again whose inputs turn out to be unchanged' },
  {
    flags: '--paranoid',
    says: 'read every input file and artifact, even if size and times are unchanged',
  },
]

export const TELEMETRY_OPTION: OptionSpec = {
  flags: '--telemetry <url>',
  says: 'send events to this server: PAWL_TELEMETRY; its token is PAWL_TELEMETRY_TOKEN',
}

export function telemetryOf(call: Call): Pick<RunsOptions, 'telemetry'> {
  const { PAWL_TELEMETRY, PAWL_TELEMETRY_TOKEN: token } = process.env
  const url = textOf(call, 'telemetry') ?? (PAWL_TELEMETRY || undefined)
  if (url === undefined) return {}
  if (!URL.canParse(url)) throw new UsageInvalid('--telemetry must be a URL: http://127.0.0.1:7171')
  return { telemetry: httpSink({ url, ...(token ? { token } : {}) }) }
}

export function resumeOptionsOf(call: Call): ResumeOptions {
  return {
    force: textsOf(call, 'force'),
    strict: hasFlag(call, 'strict'),
    paranoid: hasFlag(call, 'paranoid'),
  }
}

type Opening = Omit<RunsOptions, 'folder' | 'journal'> & { readonly create?: boolean }

/** Opens the folder or the store of runs, calls `work`, and closes it. */
export function withRuns<T>(
  call: Call,
  work: (runs: Runs) => Promise<T>,
  { create = false, ...options }: Opening = {},
): Promise<T> {
  const inFolder = call.settings.runsIn.value === 'folder'
  if (hasFlag(call, 'inStore') && textOf(call, 'dir') !== undefined) {
    throw new UsageInvalid('--dir and --in-store cannot be used together')
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
    const more = options.telemetry === undefined ? {} : telemetryFolderOf(call)
    await using runs = await openRuns({ journal, pawl, logger, ...more, ...options })
    return await work(runs)
  }
  return withPawl(call, open, { create })
}

/** Each store has its own folder for the progress of telemetry. */
function telemetryFolderOf({ settings }: Call): Pick<RunsOptions, 'telemetryFolder'> {
  const { runFolder, store } = settings
  const telemetryFolder = join(runFolder.value, `.telemetry-${sha256Of(store.value).slice(0, 16)}`)
  mkdirSync(runFolder.value, { recursive: true })
  return { telemetryFolder }
}

/** Opens runs with the machines of run files, for commands that run no nodes. */
export async function withMachines<T>(call: Call, work: (runs: Runs) => Promise<T>): Promise<T> {
  return withRuns(call, work, { runs: await loadRunFiles(call.settings.runs.value) })
}

/** Opens runs with definitions of run files, and with Pawl if --store is given. */
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

/** Opens the runs that a server shows; undefined if runs are in a folder that does not exist. */
export async function servedRuns(
  { runsIn, runFolder }: Pick<Settings, 'runFolder' | 'runsIn'>,
  pawl: Pawl,
  runs: readonly AnyRun[],
  logger?: Logger,
): Promise<Runs | undefined> {
  const common = { pawl, runs, ...(logger && { logger }) }
  if (runsIn.value === 'store') {
    return openRuns({ journal: openStoreJournal({ store: pawl.store }), ...common })
  }
  const { value: folder } = runFolder
  if (runs.length > 0) mkdirSync(folder, { recursive: true })
  return existsSync(folder) ? openRuns({ folder, ...common }) : undefined
}

/** Loads several run files; throws `RunFileInvalid`. */
export async function loadRunFiles(paths: readonly string[]): Promise<RunDefinition[]> {
  const found = new Map<string, RunDefinition>()
  for (const path of paths) {
    const definitions = findIn(await evaluate(path, RunFileInvalid), isRun)
    if (definitions.length === 0) throw new RunFileInvalid(path, 'exports no definition of a run')
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

/** Returns the id of a run; the argument may be the path of its folder. */
export function runIdOf(argument: string): string {
  return basename(argument)
}
