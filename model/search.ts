/**
 * Has spin search the model in lease.pml: in full with every rule in place, and with one rule
 * missing until it finds what goes wrong. A search counts only if it came to its end: one that ran
 * out of depth or memory has shown nothing, and throws.
 */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const MODEL = 'lease.pml'
const STORY = 'STORY '
const LIMITS = { timeout: 600_000, maxBuffer: 64 * 2 ** 20 }

/** One search of the model, and what is expected of it. */
interface Search {
  readonly name: string
  /** The promises that are checked, or the one that is found broken. */
  readonly property: string
  readonly macros: readonly string[]
  /** What pan is compiled with, and how it is started. */
  readonly compile: readonly string[]
  readonly start: readonly string[]
  /** Where it must fail: a part of the assertion that fails. */
  readonly breaks?: string
}

/** What came of a search. */
export interface Outcome {
  readonly name: string
  readonly states: number
  readonly errors: number
  readonly expected: number
  readonly property: string
  /** The assertion that failed, as spin words it. */
  readonly found: string | null
  /** How it came to that. */
  readonly story: readonly string[]
  readonly ok: boolean
}

const WHOLE = ['-O2', '-DSAFETY', '-DMEMLIM=4000']
/** Breadth first: what is found first is as short as it can be. */
const SHORTEST = ['-O0', '-DSAFETY', '-DBFS']

const broken = (macro: string, property: string, breaks: string, ...macros: string[]): Search => ({
  name: macro,
  property,
  macros: [macro, ...macros],
  compile: SHORTEST,
  start: [],
  breaks,
})

const formula = (name: string, property: string, breaks?: string): Search => ({
  name,
  property,
  macros: ['LTL', 'JOBS=1'],
  compile: ['-O0', '-DNFAIR=3'],
  start: ['-a', '-f', '-N', name],
  ...(breaks !== undefined && { breaks }),
})

/** From the model as it is to what it would be without one of its rules. */
export const SEARCHES: readonly Search[] = [
  {
    name: 'fenced',
    property: 'P3, P4, P5, P6, P7, P10, P15',
    macros: [],
    compile: WHOLE,
    start: ['-w24'],
  },
  formula('p5', 'P5'),
  formula('p6', 'P6'),
  formula('p7', 'P7'),
  formula('p10', 'P10'),
  formula('p15', 'P15'),
  formula('no_orphan', 'P7 is about something', 'holding'),
  formula('no_delivery', 'P10 is about something', 'status'),
  // Nothing but a pause is needed for FM_001.
  broken('UNFENCED', 'P3', 'effects[mine]<=1', 'WORKERS=2', 'JOBS=1', 'FAULTS=0', 'NO_CANCEL'),
  broken('ATTEMPT_NOT_IN_FENCE', 'P4', 'grant[me]==mine', 'FAULTS=0'),
  broken('RECOVER_WITHOUT_RECHECK', 'P7', '.attempt==attempt', 'FAULTS=0', 'NO_CANCEL'),
  broken('EFFECT_NOT_TAKEN_BACK', 'P10', 'job[j].status'),
]

/** What is missing here to search at all; nothing where all is there. */
export async function findMissing(): Promise<string | undefined> {
  for (const [tool, argument] of [
    ['spin', '-V'],
    ['gcc', '--version'],
  ] as const) {
    try {
      await execute(tool, [argument])
    } catch {
      return tool
    }
  }
  return undefined
}

/** Searches in a folder of its own, which is removed afterwards. */
export async function search(wanted: Search, folder: string): Promise<Outcome> {
  const home = await mkdtemp(join(tmpdir(), 'pawl-model-'))
  const run = async (command: string, args: readonly string[]) =>
    (await execute(command, args, { ...LIMITS, cwd: home })).stdout
  try {
    await copyFile(join(folder, MODEL), join(home, MODEL))
    const macros = wanted.macros.map((macro) => `-D${macro}`)
    await run('spin', [...macros, '-a', MODEL])
    await run('gcc', ['-w', ...wanted.compile, '-o', 'pan', 'pan.c'])
    const report = await run(join(home, 'pan'), ['-m100000', ...wanted.start])
    const errors = numberIn(report, /errors: (\d+)/)
    const told = errors === 0 ? '' : await run('spin', [...macros, '-t', '-T', MODEL])
    return judge(wanted, report, errors, told)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

function judge(wanted: Search, report: string, errors: number, told: string): Outcome {
  const { name, property, breaks } = wanted
  const cut = /max search depth too small|out of memory|reached -DMEMLIM/.exec(report)
  if (cut !== null) throw new Error(`The search "${name}" did not come to its end: ${cut[0]}`)
  if (errors === 0 && report.includes('Search not completed')) {
    throw new Error(`The search "${name}" did not come to its end`)
  }
  const found = /^pan:\d+: (.*) \(at depth/m.exec(report)?.[1] ?? null
  const expected = breaks === undefined ? 0 : 1
  const asExpected = breaks === undefined ? found === null : found?.includes(breaks) === true
  const lines = told.split('\n').map((line) => line.trim())
  return {
    name,
    states: numberIn(report, /(\d+) states, stored/),
    errors,
    expected,
    property,
    found,
    story: lines.filter((line) => line.startsWith(STORY)).map((line) => line.slice(STORY.length)),
    ok: errors === expected && asExpected,
  }
}

function numberIn(report: string, pattern: RegExp): number {
  const found = pattern.exec(report)?.[1]
  if (found === undefined) throw new Error(`pan reported something unknown:\n${report}`)
  return Number(found)
}
