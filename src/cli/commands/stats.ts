/** `pawl stats` and `pawl top`: the numbers of a store, once and live. */
import { withoutSecrets } from '../../core/redact.ts'
import { UsageInvalid } from '../errors.ts'
import type { ExitCode } from '../exit-codes.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { readDuration } from '../times.ts'
import { readStats } from '../top/stats.ts'
import { linesOf } from '../top/stats-text.ts'
import { printLines, watchBlocks, watchScreen } from '../top/watch.ts'

const INTERVAL_MIN_MS = 100
const INTERVAL_MAX_MS = 3_600_000

/** Reads once; an outage is then an error. */
async function printOnce(call: Call, withRetention: boolean): Promise<undefined> {
  const { output, settings } = call
  const { value } = settings.retention
  await withPawl(
    call,
    async (pawl) => {
      const stats = await readStats(pawl, call)
      const retention = withRetention
        ? { retention: await pawl.retentionStatus(value === undefined ? {} : { retention: value }) }
        : {}
      if (output.json) return output.record({ ...stats, ...retention })
      printLines(
        output,
        linesOf(stats, { store: withoutSecrets(settings.store.value), ...retention }),
      )
    },
    { onFindings: 'warn' },
  )
  return undefined
}

async function top(call: Call): Promise<ExitCode | undefined> {
  const intervalMs = readDuration(textOf(call, 'interval') ?? '1s', 'interval')
  if (intervalMs < INTERVAL_MIN_MS || intervalMs > INTERVAL_MAX_MS) {
    throw new UsageInvalid('--interval must be from 100ms to 1h')
  }
  if (hasFlag(call, 'once')) return printOnce(call, false)
  const isScreen = call.output.isTerminal && !call.output.json && process.env.TERM !== 'dumb'
  return isScreen ? watchScreen(call, intervalMs) : watchBlocks(call, intervalMs)
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'stats',
    summary: 'Print the numbers of the store: jobs, rates, times, queues, workers and limits',
    details:
      'Rates and times are about the last five minutes, or about the last 2000 facts if there ' +
      'were more. Lines that begin with ! need a person. At most 100 queues, workers and limits ' +
      'are printed. The size is that of a SQLite file with its log.',
    examples: [
      ['pawl stats', 'the numbers now'],
      ['pawl stats --json | jq .attention', 'what needs a person, for a script'],
    ],
    run: (call) => printOnce(call, true),
  },
  {
    name: 'top',
    summary: 'Show the numbers of the store live; q quits',
    details:
      'The numbers are those of pawl stats, without retention, and how many jobs of each queue ' +
      'ended per second since the last reading. If the store cannot be reached, the command says ' +
      'so and tries again. Without a terminal it prints a block for each reading; with --json a ' +
      'line.',
    options: [
      { flags: '--interval <duration>', says: 'time between two readings, 100ms to 1h (1s)' },
      { flags: '--once', says: 'print one reading and end; an outage is then an error' },
    ],
    examples: [
      ['pawl top', 'every second, until q or Ctrl-C'],
      ['pawl top --interval 10s --json >> numbers.ndjson', 'a line every ten seconds'],
    ],
    run: top,
  },
]
