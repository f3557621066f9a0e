/**
 * Loads job files of users, in TypeScript or JavaScript. Every exported job type is used, also
 * inside arrays and objects. Their `import 'pawl'` resolves to this copy of the package: errors are
 * recognised by their classes, so there must be only one copy.
 */

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf } from '../core/errors.ts'
import type { JobDefinition } from '../engine/define-job.ts'
import type { ScheduleDefinition } from '../engine/schedules/define-schedule.ts'
import { JobFileInvalid } from './errors.ts'
import { visible } from './visible.ts'

/** The entries that job files may import, with their paths relative to this file. */
const OWN_ENTRIES = {
  pawl: '../index.js',
  'pawl/audit': '../entries/audit.js',
  'pawl/config': '../entries/config.js',
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

/** What files export. */
export interface JobFiles {
  readonly jobs: JobDefinition[]
  readonly schedules: ScheduleDefinition[]
}

/** Loads the job types of several files; throws `JobFileInvalid`. */
export async function loadJobFiles(paths: readonly string[]): Promise<JobDefinition[]> {
  return (await loadFiles(paths)).jobs
}

/** Loads the job types and schedules of several files; throws `JobFileInvalid`. */
export async function loadFiles(paths: readonly string[]): Promise<JobFiles> {
  const found: JobFiles = { jobs: [], schedules: [] }
  for (const path of paths) {
    const exported = await evaluate(path, JobFileInvalid)
    found.jobs.push(...jobsIn(path, exported, found.jobs))
    const schedules = findIn(exported, isSchedule)
    found.schedules.push(...schedules.filter((one) => !found.schedules.includes(one)))
  }
  return found
}

function isSchedule(value: object): value is ScheduleDefinition {
  const { name, job, rules } = value as Partial<ScheduleDefinition>
  return typeof name === 'string' && typeof rules === 'object' && typeof job === 'object'
}

function jobsIn(
  path: string,
  exported: unknown,
  others: readonly JobDefinition[],
): JobDefinition[] {
  const jobs = findIn(exported, isDefinition).filter((job) => !others.includes(job))
  if (jobs.length === 0) throw new JobFileInvalid(path, 'exports no job type')
  const names = new Map<string, JobDefinition>(others.map((job) => [job.name, job]))
  for (const job of jobs) {
    if (names.has(job.name)) {
      throw new JobFileInvalid(path, `exports a second job type named "${visible(job.name)}"`)
    }
    names.set(job.name, job)
  }
  return jobs
}

/** Loads a module of a user and returns its exports; throws `Invalid`. */
export async function evaluate(
  path: string,
  Invalid: new (path: string, why: string, cause: unknown) => Error,
  entries = Object.keys(OWN_ENTRIES) as readonly (keyof typeof OWN_ENTRIES)[],
): Promise<unknown> {
  // Loading jiti takes longer than most commands, so it is loaded only here.
  const { createJiti } = await import('jiti')
  const virtualModules: Record<string, unknown> = {}
  for (const name of entries) {
    virtualModules[name] = await import(new URL(OWN_ENTRIES[name], import.meta.url).href)
  }
  const file = resolve(path)
  try {
    return await createJiti(pathToFileURL(file).href, { virtualModules }).import(file)
  } catch (error) {
    throw new Invalid(path, `cannot be loaded: ${visible(messageOf(error))}`, error)
  }
}

/** Returns each found object once. The depth bounds exports that refer to themselves. */
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
