/** What is measured, of whom, and which ratio is the goal. */
import type { MeasureName } from './measures.ts'
import {
  BULLMQ_POSTGRES,
  BULLMQ_REDIS,
  type Contender,
  DBOS,
  GRAPHILE,
  OPENWORKFLOW,
  OPENWORKFLOW_SQLITE,
  PAWL_POSTGRES,
  PAWL_SQLITE,
  PG_BOSS,
  PLAINJOB,
} from './settings.ts'

/** A contender, and the ratio that Pawl should reach against it; null if none was set. */
export interface Rival {
  readonly contender: Contender
  readonly goal: number | null
}

/** One comparison. */
export interface Metric {
  readonly name: string
  readonly unit: string
  readonly measure: MeasureName | 'twoProcesses' | 'bytesPerJob'
  readonly pawl: Contender
  readonly rivals: readonly Rival[]
  /** Jobs of a turn, or samples, or seconds. */
  readonly jobs: number
  /** Ends a turn that a slow contender would not finish. */
  readonly limitMs?: number
  readonly steps?: boolean
  readonly lowerIsBetter?: boolean
  /** Jobs that wait before the turn. */
  readonly fill?: boolean
}

const rate = 'jobs/s'
const slow = 5000

/** The goal of rivals that have the same durability; those on Redis are shown beside them. */
function against(goal: number, ...contenders: readonly Contender[]): Rival[] {
  const isAlike = ({ database }: Contender) => database !== 'redis'
  return contenders.map((contender) => ({ contender, goal: isAlike(contender) ? goal : null }))
}

const drains: readonly Metric[] = [
  {
    name: 'postgres: drain, best settings',
    measure: 'drain',
    pawl: PAWL_POSTGRES.slots500,
    rivals: [
      { contender: PG_BOSS.best, goal: 1.3 },
      { contender: GRAPHILE.best, goal: 1 },
      ...against(1, BULLMQ_POSTGRES.best, BULLMQ_REDIS.best, DBOS.best, OPENWORKFLOW.best),
      { contender: { ...PAWL_POSTGRES.slots1000, name: 'Pawl, 1,000 slots' }, goal: null },
    ],
  },
  {
    name: 'postgres: drain, 100 slots',
    measure: 'drain',
    pawl: PAWL_POSTGRES.slots100,
    rivals: [{ contender: { ...PAWL_POSTGRES.slots500, name: 'Pawl, 500 slots' }, goal: 0.8 }],
  },
  {
    name: 'postgres: drain, defaults',
    measure: 'drain',
    pawl: PAWL_POSTGRES.defaults,
    rivals: against(
      8,
      GRAPHILE.defaults,
      BULLMQ_POSTGRES.defaults,
      BULLMQ_REDIS.defaults,
      PG_BOSS.defaults,
      DBOS.defaults,
      OPENWORKFLOW.defaults,
    ),
  },
  {
    name: 'sqlite: drain, defaults, NORMAL',
    measure: 'drain',
    pawl: PAWL_SQLITE.defaultsNormal,
    rivals: against(3, PLAINJOB.defaults),
  },
  {
    name: 'sqlite: drain, 500 slots, NORMAL',
    measure: 'drain',
    pawl: PAWL_SQLITE.slots500Normal,
    rivals: against(6, PLAINJOB.best),
  },
  {
    name: 'sqlite: drain, 500 slots, FULL',
    measure: 'drain',
    pawl: PAWL_SQLITE.slots500,
    rivals: against(6, PLAINJOB.best, OPENWORKFLOW_SQLITE.best),
  },
].map((metric) => ({
  ...metric,
  measure: 'drain',
  unit: rate,
  jobs: 25_000,
  limitMs: slow,
  fill: true,
}))

const adding: readonly Metric[] = [
  {
    name: 'postgres: enqueue one by one',
    measure: 'addOne' as const,
    pawl: PAWL_POSTGRES.defaults,
    rivals: against(
      1.1,
      OPENWORKFLOW.best,
      PG_BOSS.best,
      GRAPHILE.best,
      BULLMQ_POSTGRES.best,
      BULLMQ_REDIS.best,
      DBOS.best,
    ),
    jobs: 100_000,
  },
  {
    name: 'postgres: enqueue, 50 callers at once',
    measure: 'addByFifty' as const,
    pawl: PAWL_POSTGRES.defaults,
    rivals: against(1, OPENWORKFLOW.best, PG_BOSS.best, GRAPHILE.best, BULLMQ_POSTGRES.best),
    jobs: 100_000,
  },
  {
    name: 'postgres: enqueue many',
    measure: 'addMany' as const,
    pawl: PAWL_POSTGRES.defaults,
    rivals: against(1.5, GRAPHILE.best, PG_BOSS.best, BULLMQ_POSTGRES.best, BULLMQ_REDIS.best),
    jobs: 30_000,
  },
  {
    name: 'sqlite: enqueue one by one, NORMAL',
    measure: 'addOne' as const,
    pawl: PAWL_SQLITE.defaultsNormal,
    rivals: against(0.8, PLAINJOB.best),
    jobs: 100_000,
  },
  {
    name: 'sqlite: enqueue one by one, FULL',
    measure: 'addOne' as const,
    pawl: PAWL_SQLITE.defaults,
    rivals: against(1, OPENWORKFLOW_SQLITE.best),
    jobs: 100_000,
  },
  {
    name: 'sqlite: enqueue, 50 callers at once, NORMAL',
    measure: 'addByFifty' as const,
    pawl: PAWL_SQLITE.defaultsNormal,
    rivals: against(1, PLAINJOB.best),
    jobs: 100_000,
  },
  {
    name: 'sqlite: enqueue many, NORMAL',
    measure: 'addMany' as const,
    pawl: PAWL_SQLITE.defaultsNormal,
    rivals: against(0.8, PLAINJOB.best),
    jobs: 30_000,
  },
].map((metric) => ({ ...metric, unit: rate, limitMs: 1500 }))

const latencies: readonly Metric[] = [
  {
    name: 'postgres: from enqueue to start, p50',
    pawl: PAWL_POSTGRES.defaults,
    rivals: against(0.8, GRAPHILE.best, PG_BOSS.best, BULLMQ_POSTGRES.best, DBOS.best),
  },
  {
    name: 'sqlite: from enqueue to start, p50, NORMAL',
    pawl: PAWL_SQLITE.defaultsNormal,
    rivals: against(1.5, PLAINJOB.best),
  },
].map((metric) => ({
  ...metric,
  measure: 'latency',
  unit: 'ms',
  jobs: 60,
  lowerIsBetter: true,
}))

const stepping: readonly Metric[] = [
  {
    name: 'postgres: jobs with 5 durable steps',
    pawl: PAWL_POSTGRES.slots100,
    rivals: against(12, OPENWORKFLOW.best, DBOS.best),
    jobs: 8000,
  },
  {
    name: 'sqlite: jobs with 5 durable steps',
    pawl: PAWL_SQLITE.slots500,
    rivals: against(20, OPENWORKFLOW_SQLITE.best),
    jobs: 8000,
  },
].map((metric) => ({
  ...metric,
  measure: 'drain',
  unit: rate,
  limitMs: slow,
  fill: true,
  steps: true,
}))

const loads: readonly Metric[] = [
  {
    name: 'postgres: drain, two processes',
    measure: 'twoProcesses',
    unit: rate,
    pawl: PAWL_POSTGRES.slots500,
    rivals: against(1, PG_BOSS.best, GRAPHILE.best),
    jobs: 30_000,
    limitMs: 30_000,
    fill: true,
  },
  {
    name: 'sqlite: drain, two processes, NORMAL',
    measure: 'twoProcesses',
    unit: rate,
    pawl: PAWL_SQLITE.slots500Normal,
    rivals: against(1, PLAINJOB.best),
    jobs: 20_000,
    limitMs: 30_000,
    fill: true,
  },
  {
    name: 'postgres: 10 callers enqueue while a worker drains',
    measure: 'mixed',
    unit: rate,
    pawl: PAWL_POSTGRES.slots100,
    rivals: against(1, PG_BOSS.best, GRAPHILE.best, BULLMQ_POSTGRES.best),
    jobs: 5000,
  },
  {
    name: 'sqlite: 10 callers enqueue while a worker drains, NORMAL',
    measure: 'mixed',
    unit: rate,
    pawl: PAWL_SQLITE.defaultsNormal,
    rivals: against(1, PLAINJOB.best),
    jobs: 10_000,
  },
]

const costs: readonly Metric[] = [
  {
    name: 'postgres: disk per finished job',
    measure: 'bytesPerJob' as const,
    unit: 'bytes',
    pawl: PAWL_POSTGRES.slots500,
    rivals: against(1, PG_BOSS.best, BULLMQ_POSTGRES.best),
    jobs: 10_000,
    limitMs: 60_000,
    fill: true,
  },
  {
    name: 'sqlite: disk per finished job',
    measure: 'bytesPerJob' as const,
    unit: 'bytes',
    pawl: PAWL_SQLITE.slots500Normal,
    rivals: against(1, PLAINJOB.best),
    jobs: 10_000,
    limitMs: 60_000,
    fill: true,
  },
  {
    name: 'postgres: memory of a worker, 100,000 jobs waiting',
    measure: 'memory' as const,
    unit: 'MiB',
    pawl: PAWL_POSTGRES.slots100,
    rivals: against(1, PG_BOSS.best, GRAPHILE.best),
    jobs: 100_000,
    fill: true,
  },
  {
    name: 'postgres: from start of the process to the first job',
    measure: 'startUp' as const,
    unit: 'ms',
    pawl: PAWL_POSTGRES.defaults,
    rivals: against(1, PG_BOSS.best, GRAPHILE.best, DBOS.best),
    jobs: 1,
    fill: true,
  },
  {
    name: 'sqlite: from start of the process to the first job',
    measure: 'startUp' as const,
    unit: 'ms',
    pawl: PAWL_SQLITE.defaults,
    rivals: against(1, PLAINJOB.best),
    jobs: 1,
    fill: true,
  },
  {
    name: 'postgres: CPU of an idle worker and its server',
    measure: 'idleCpu' as const,
    unit: 'ms/s',
    pawl: PAWL_POSTGRES.defaults,
    rivals: against(1, PG_BOSS.best, GRAPHILE.best, BULLMQ_POSTGRES.best, DBOS.best),
    jobs: 5,
  },
  {
    name: 'sqlite: CPU of an idle worker',
    measure: 'idleCpu' as const,
    unit: 'ms/s',
    pawl: PAWL_SQLITE.defaultsNormal,
    rivals: against(1, PLAINJOB.best),
    jobs: 5,
  },
].map((metric) => ({ ...metric, lowerIsBetter: true }))

/** All comparisons, in the order of the page. */
export const METRICS: readonly Metric[] = [
  ...drains,
  ...adding,
  ...latencies,
  ...stepping,
  ...loads,
  ...costs,
]
