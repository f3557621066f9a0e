/**
 * The contenders and their settings. `defaults` is what the first example of the documentation
 * gives. `best` follows earlier trials on two cores, with other harnesses; this one did not search
 * for it, and pg-boss's `burstWhenBatchFull` was never compared with its absence.
 */
import type { Library } from './child.ts'
import type { Settings } from './contender.ts'

type Database = 'postgres' | 'sqlite' | 'redis'

/** A library in one setting. */
export interface Contender {
  readonly name: string
  readonly library: Library
  readonly database: Database
  readonly options: Settings
  /** The settings in words, for the page of results. */
  readonly settings: string
  /** The most jobs of a turn: for libraries without a call for many, which fill slowly. */
  readonly jobsMost: number
  /** What an acknowledged write survives. */
  readonly durability: string
}

const ON_POSTGRES = 'synchronous_commit = on'
const NORMAL = 'WAL, synchronous = NORMAL: a power loss may take the last commits'
const FULL = 'WAL, synchronous = FULL: survives a power loss'

function pawl(
  database: 'postgres' | 'sqlite',
  concurrency: number | undefined,
  durability: 'full' | 'relaxed' = 'full',
): Contender {
  const slots = concurrency === undefined ? 'defaults (10 slots)' : `concurrency ${concurrency}`
  const relaxed = durability === 'relaxed'
  return {
    name: 'Pawl',
    library: 'pawl',
    database,
    options: { ...(concurrency !== undefined && { concurrency }), durability },
    settings: relaxed ? `${slots}, durability 'relaxed'` : slots,
    jobsMost: Number.POSITIVE_INFINITY,
    durability: database === 'postgres' ? ON_POSTGRES : relaxed ? NORMAL : FULL,
  }
}

function peer(
  name: string,
  [library, database]: readonly [Library, Database],
  options: Settings,
  settings: string,
): Contender {
  const durability = {
    postgres: ON_POSTGRES,
    redis: 'appendfsync everysec: a crash may take the last second',
    sqlite: library === 'plainjob' ? NORMAL : FULL,
  }[database]
  const fillsSlowly = library === 'dbos' || library === 'openworkflow'
  const jobsMost = fillsSlowly ? 4000 : Number.POSITIVE_INFINITY
  return { name, library, database, options, settings, durability, jobsMost }
}

const notifying = {
  boss: { useListenNotify: true },
  queue: { notify: true },
}

export const PAWL_POSTGRES = {
  defaults: pawl('postgres', undefined),
  slots100: pawl('postgres', 100),
  slots500: pawl('postgres', 500),
  slots1000: pawl('postgres', 1000),
} as const

export const PAWL_SQLITE = {
  defaults: pawl('sqlite', undefined),
  defaultsNormal: pawl('sqlite', undefined, 'relaxed'),
  slots500: pawl('sqlite', 500),
  slots500Normal: pawl('sqlite', 500, 'relaxed'),
} as const

export const PG_BOSS = {
  defaults: peer('pg-boss', ['pg-boss', 'postgres'], {}, 'defaults (one job every 2 s)'),
  best: peer(
    'pg-boss',
    ['pg-boss', 'postgres'],
    {
      ...notifying,
      work: {
        batchSize: 500,
        localConcurrency: 3,
        pollingIntervalSeconds: 0.5,
        burstWhenBatchFull: true,
      },
    },
    'batchSize 500, localConcurrency 3, burstWhenBatchFull, LISTEN/NOTIFY',
  ),
} as const

export const GRAPHILE = {
  defaults: peer(
    'graphile-worker',
    ['graphile-worker', 'postgres'],
    {},
    'defaults (1 job at once)',
  ),
  best: peer(
    'graphile-worker',
    ['graphile-worker', 'postgres'],
    {
      concurrentJobs: 100,
      maxPoolSize: 101,
      localQueue: { size: 1000 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
    'concurrentJobs 100, localQueue 1000, completeJobBatchDelay 0; keeps no history',
  ),
} as const

export const BULLMQ_POSTGRES = {
  defaults: peer('BullMQ (PostgreSQL)', ['bullmq', 'postgres'], {}, 'defaults (1 job at once)'),
  best: peer('BullMQ (PostgreSQL)', ['bullmq', 'postgres'], { concurrency: 50 }, 'concurrency 50'),
} as const

export const BULLMQ_REDIS = {
  defaults: peer('BullMQ (Redis)', ['bullmq', 'redis'], {}, 'defaults (1 job at once)'),
  best: peer('BullMQ (Redis)', ['bullmq', 'redis'], { concurrency: 100 }, 'concurrency 100'),
} as const

export const PLAINJOB = {
  defaults: peer('plainjob', ['plainjob', 'sqlite'], {}, 'defaults (polls every second)'),
  best: peer('plainjob', ['plainjob', 'sqlite'], { pollIntervall: 1 }, 'polls every millisecond'),
} as const

export const DBOS = {
  defaults: peer('DBOS', ['dbos', 'postgres'], {}, 'defaults (polls every second)'),
  best: peer(
    'DBOS',
    ['dbos', 'postgres'],
    {
      config: { systemDatabasePoolSize: 20 },
      queue: { workerConcurrency: 1000, minPollingIntervalMs: 10 },
    },
    'pool of 20, workerConcurrency 1000, polls every 10 ms',
  ),
} as const

export const OPENWORKFLOW = {
  defaults: peer('OpenWorkflow', ['openworkflow', 'postgres'], {}, 'defaults (1 run at once)'),
  best: peer('OpenWorkflow', ['openworkflow', 'postgres'], { concurrency: 50 }, 'concurrency 50'),
} as const

export const OPENWORKFLOW_SQLITE = {
  defaults: peer('OpenWorkflow', ['openworkflow', 'sqlite'], {}, 'defaults (1 run at once)'),
  best: peer('OpenWorkflow', ['openworkflow', 'sqlite'], { concurrency: 50 }, 'concurrency 50'),
} as const
