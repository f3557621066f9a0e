/** Every command there is, in the order of the help. */
import type { CommandSpec } from '../spec.ts'
import { auditCommands } from './audit.ts'
import { auditSealCommands } from './audit-seal.ts'
import { dbCommands } from './db.ts'
import { demoCommands } from './demo.ts'
import { doctorCommands } from './doctor.ts'
import { effectCommands } from './effect.ts'
import { fm001Commands } from './fm001.ts'
import { jobActCommands } from './job-act.ts'
import { jobEnqueueCommands } from './job-enqueue.ts'
import { jobReadCommands } from './job-read.ts'
import { jobShowCommands } from './job-show.ts'
import { machineCommands } from './machine.ts'
import { queueCommands } from './queue.ts'
import { runActCommands } from './run-act.ts'
import { runCarryCommands } from './run-carry.ts'
import { runReadCommands } from './run-read.ts'
import { telemetryCommands } from './telemetry.ts'
import { workCommands } from './work.ts'

/** What each noun is about. */
export const NOUNS: Readonly<Record<string, string>> = {
  job: 'Enqueue, read and change jobs',
  effect: 'What jobs do to the world outside, and what of it is stuck',
  queue: 'Depth, pauses and workers of queues',
  worker: 'Who works, and on what',
  audit: 'What happened to jobs, by whom and why, and proof that nothing is missing',
  run: 'Start, resume and read runs',
  telemetry: 'What runs did, for those who watch from outside',
  machine: 'The states and edges of lifecycles, workers and runs',
  db: 'The schema of the store',
}

/** Every command. */
export const COMMANDS: readonly CommandSpec[] = [
  ...demoCommands,
  ...fm001Commands,
  ...workCommands,
  ...jobEnqueueCommands,
  ...jobReadCommands,
  ...jobShowCommands,
  ...jobActCommands,
  ...effectCommands,
  ...queueCommands,
  ...doctorCommands,
  ...auditCommands,
  ...auditSealCommands,
  ...runActCommands,
  ...runReadCommands,
  ...runCarryCommands,
  ...telemetryCommands,
  ...machineCommands,
  ...dbCommands,
]
