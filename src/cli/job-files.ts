/**
 * Users' own files of jobs, in TypeScript or JavaScript. Whatever they export that is a definition
 * of a job is taken, also inside of lists and objects. What they import as `pawl` is this very
 * package: errors are told apart by their classes, so there must not be two of each.
 */

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf } from '../core/errors.ts'
import type { JobDefinition } from '../engine/define-job.ts'
import { JobFileInvalid } from './errors.ts'
import { visible } from './visible.ts'

/** The entries of this package that job files may import, and where they stand beside this file. */
const OWN_ENTRIES = {
  pawl: '../index.js',
  'pawl/audit': '../entries/audit.js',
  'pawl/doctor': '../entries/doctor.js',
  'pawl/errors': '../entries/errors.js',
  'pawl/operators': '../entries/operators.js',
  'pawl/postgres': '../entries/postgres.js',
  'pawl/rules': '../entries/rules.js',
  'pawl/runs': '../entries/runs.js',
  'pawl/sqlite': '../entries/sqlite.js',
  'pawl/telemetry': '../entries/telemetry.js',
} as const

const DEPTH_MAX = 3

/** The definitions of several files; throws `JobFileInvalid`. */
export async function loadJobFiles(paths: readonly string[]): Promise<JobDefinition[]> {
  const found: JobDefinition[] = []
  for (const path of paths) found.push(...(await loadOne(path, found)))
  return found
}

async function loadOne(path: string, others: readonly JobDefinition[]): Promise<JobDefinition[]> {
  const exported = await evaluate(path, JobFileInvalid)
  const jobs = findIn(exported, isDefinition).filter((job) => !others.includes(job))
  if (jobs.length === 0) throw new JobFileInvalid(path, 'exports no job')
  const names = new Map<string, JobDefinition>(others.map((job) => [job.name, job]))
  for (const job of jobs) {
    if (names.has(job.name)) {
      throw new JobFileInvalid(path, `exports a second job named "${visible(job.name)}"`)
    }
    names.set(job.name, job)
  }
  return jobs
}

/** What a module of a user exports; throws the error that its kind of file has. */
export async function evaluate(
  path: string,
  Invalid: new (path: string, why: string, cause: unknown) => Error,
): Promise<unknown> {
  // It takes longer to load than most commands take to run, so only those who need it do.
  const { createJiti } = await import('jiti')
  const virtualModules: Record<string, unknown> = {}
  for (const [name, place] of Object.entries(OWN_ENTRIES)) {
    virtualModules[name] = await import(new URL(place, import.meta.url).href)
  }
  const file = resolve(path)
  try {
    return await createJiti(pathToFileURL(file).href, { virtualModules }).import(file)
  } catch (error) {
    throw new Invalid(path, `cannot be loaded: ${visible(messageOf(error))}`, error)
  }
}

/** Two exports of the same definition are one; the depth bounds what may refer to itself. */
export function findIn<T extends object>(
  value: unknown,
  isWanted: (value: object) => value is T,
  depth = DEPTH_MAX,
): T[] {
  if (typeof value !== 'object' || value === null) return []
  if (isWanted(value)) return [value]
  if (depth === 0) return []
  const inner = Object.values(value).flatMap((one) => findIn(one, isWanted, depth - 1))
  return [...new Set(inner)]
}

function isDefinition(value: object): value is JobDefinition {
  const { name, queue, lifecycle, implement } = value as Partial<JobDefinition>
  return (
    typeof name === 'string' &&
    typeof queue === 'string' &&
    typeof lifecycle === 'object' &&
    typeof implement === 'function'
  )
}
