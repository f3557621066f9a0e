// A process that opens one contender and takes one measurement. Its argument is an order as JSON;
// its last line on stdout is the outcome as JSON.
import type { Open, Opening } from './contender.ts'
import { openBullMq } from './contenders/bullmq.ts'
import { openDbos } from './contenders/dbos.ts'
import { openGraphileWorker } from './contenders/graphile-worker.ts'
import { openOpenWorkflow } from './contenders/openworkflow.ts'
import { openPawl } from './contenders/pawl.ts'
import { openPgBoss } from './contenders/pg-boss.ts'
import { openPlainjob } from './contenders/plainjob.ts'
import { MEASURES, type MeasureName, type Task } from './measures.ts'

/** Who is measured, how, and where. */
export interface Order extends Opening, Task {
  readonly library: Library
  readonly measure: MeasureName
}

const LIBRARIES = {
  bullmq: openBullMq,
  dbos: openDbos,
  'graphile-worker': openGraphileWorker,
  openworkflow: openOpenWorkflow,
  pawl: openPawl,
  'pg-boss': openPgBoss,
  plainjob: openPlainjob,
} as const satisfies Record<string, Open>

export type Library = keyof typeof LIBRARIES

const order = JSON.parse(process.argv[2] as string) as Order
const session = await LIBRARIES[order.library](order)
const outcome = await MEASURES[order.measure](session, order)
await session.close()
// Libraries that leave a timer or a connection behind must not hold the next turn up.
process.stdout.write(`\n${JSON.stringify(outcome)}\n`, () => process.exit(0))
