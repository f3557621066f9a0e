/**
 * All commands, in the order of the help. Only the file of the called command is loaded: loading
 * all of them takes longer than most commands.
 */
import type { CommandSpec } from '../spec.ts'

export const NOUNS: Readonly<Record<string, string>> = {
  job: 'Enqueue, read and change jobs',
  signal: 'Send signals to jobs, and list them',
  flow: 'List, show, cancel and redrive flows',
  batch: 'How far batches are',
  effect: 'List and retry effects of jobs',
  queue: 'List, pause and limit queues',
  limit: 'List, set and reset limits and throttles',
  worker: 'List workers',
  schedule: 'List, pause, run and backfill schedules',
  retention: 'Remove ended jobs that are old',
  audit: 'Read the ledger, and verify that nothing is missing',
  run: 'Start, resume and read runs',
  telemetry: 'Serve events of runs',
  machine: 'The states and edges of lifecycles, workers and runs',
  token: 'Create, list and revoke tokens of the HTTP API',
  db: 'The schema of the store',
}

/** The first words of commands, and their files. */
const FILES: readonly (readonly [
  words: readonly string[],
  read: () => Promise<{ readonly commands: readonly CommandSpec[] }>,
])[] = [
  [['init'], () => import('./init.ts')],
  [['dev'], () => import('./dev.ts')],
  [['mcp'], () => import('./mcp.ts')],
  [['completions'], () => import('./completions.ts')],
  [['demo'], () => import('./demo.ts')],
  [['fm001'], () => import('./fm001.ts')],
  [['work'], () => import('./work.ts')],
  [['serve'], () => import('./serve.ts')],
  [['stats', 'top'], () => import('./stats.ts')],
  [['job'], () => import('./job-enqueue.ts')],
  [['job'], () => import('./job-read.ts')],
  [['job'], () => import('./job-show.ts')],
  [['job'], () => import('./job-act.ts')],
  [['job'], () => import('./job-replay.ts')],
  [['job'], () => import('./job-import.ts')],
  [['signal'], () => import('./signal.ts')],
  [['flow', 'batch'], () => import('./flow.ts')],
  [['flow'], () => import('./flow-act.ts')],
  [['effect'], () => import('./effect.ts')],
  [['queue', 'worker'], () => import('./queue.ts')],
  [['queue'], () => import('./queue-act.ts')],
  [['schedule'], () => import('./schedule.ts')],
  [['schedule'], () => import('./schedule-act.ts')],
  [['retention'], () => import('./retention.ts')],
  [['limit'], () => import('./limit.ts')],
  [['limit'], () => import('./limit-act.ts')],
  [['limit'], () => import('./limit-audit.ts')],
  [['doctor'], () => import('./doctor.ts')],
  [['audit'], () => import('./audit.ts')],
  [['audit'], () => import('./audit-seal.ts')],
  [['run'], () => import('./run-act.ts')],
  [['run'], () => import('./run-read.ts')],
  [['run'], () => import('./run-carry.ts')],
  [['telemetry'], () => import('./telemetry.ts')],
  [['machine'], () => import('./machine.ts')],
  [['token'], () => import('./token.ts')],
  [['db'], () => import('./db.ts')],
]

/** Loads the commands that start with a word, or all if none does. */
export async function readCommands(word?: string): Promise<readonly CommandSpec[]> {
  const asked = FILES.filter(([words]) => words.includes(word ?? ''))
  const files = asked.length > 0 ? asked : FILES
  const groups = await Promise.all(files.map(([, read]) => read()))
  return groups.flatMap(({ commands }) => commands)
}
