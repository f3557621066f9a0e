/**
 * Every command there is, in the order of the help. They are read when they are asked for: most of
 * what a short command takes is the time to read what others need.
 */
import type { CommandSpec } from '../spec.ts'

/** What each noun is about. */
export const NOUNS: Readonly<Record<string, string>> = {
  job: 'Enqueue, read and change jobs',
  effect: 'What jobs do to the world outside, and what of it is stuck',
  queue: 'Depth, pauses, bounds and workers of queues, and who changed them',
  worker: 'Who works, and on what',
  audit: 'What happened to jobs, by whom and why, and proof that nothing is missing',
  run: 'Start, resume and read runs',
  telemetry: 'What runs did, for those who watch from outside',
  machine: 'The states and edges of lifecycles, workers and runs',
  db: 'The schema of the store',
}

/** The words that commands begin with, and where those commands are. */
const FILES: readonly (readonly [
  words: readonly string[],
  read: () => Promise<{ readonly commands: readonly CommandSpec[] }>,
])[] = [
  [['demo'], () => import('./demo.ts')],
  [['fm001'], () => import('./fm001.ts')],
  [['work'], () => import('./work.ts')],
  [['job'], () => import('./job-enqueue.ts')],
  [['job'], () => import('./job-read.ts')],
  [['job'], () => import('./job-show.ts')],
  [['job'], () => import('./job-act.ts')],
  [['effect'], () => import('./effect.ts')],
  [['queue', 'worker'], () => import('./queue.ts')],
  [['queue'], () => import('./queue-act.ts')],
  [['doctor'], () => import('./doctor.ts')],
  [['audit'], () => import('./audit.ts')],
  [['audit'], () => import('./audit-seal.ts')],
  [['run'], () => import('./run-act.ts')],
  [['run'], () => import('./run-read.ts')],
  [['run'], () => import('./run-carry.ts')],
  [['telemetry'], () => import('./telemetry.ts')],
  [['machine'], () => import('./machine.ts')],
  [['db'], () => import('./db.ts')],
]

/** The commands that begin with a word; all of them where none does. */
export async function readCommands(word?: string): Promise<readonly CommandSpec[]> {
  const asked = FILES.filter(([words]) => words.includes(word ?? ''))
  const files = asked.length > 0 ? asked : FILES
  const groups = await Promise.all(files.map(([, read]) => read()))
  return groups.flatMap(({ commands }) => commands)
}
