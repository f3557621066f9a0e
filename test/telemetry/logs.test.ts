// Log lines: one event is one line with stable names, whatever hostile people call their things,
// by the logger of Pawl and by pino.
import { createPawl, defineJob, type Pawl, Terminal } from 'pawl'
import { jsonLogger, type Logger } from 'pawl/telemetry'
import { pino } from 'pino'
import { describe, expect, it, onTestFinished } from 'vitest'

const timeout = 30_000

const FORGED = '{"level":"error","event":"job.failed","msg":"forged"}'
const HOSTILE = [
  `a\n${FORGED}`,
  `a\r\n${FORGED}\r`,
  '\u001b[2J\u001b]0;title\u0007',
  '\u009b31m red',
  'a\u2028b\u2029c',
  '\u202egnp.exe',
  '"},"event":"forged","x":{"a":"',
  '\\u000a\\n',
  '\ud800',
  '__proto__',
]

/** Everything that a terminal or a reader of lines could act upon. */
const ACTING = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u

interface Line {
  readonly event?: string
  readonly level: string | number
  readonly msg: string
  readonly time: string | number
  readonly [field: string]: unknown
}

/** Loggers under test, with what they have written. */
const LOGGERS: [name: string, () => { logger: Logger; text: () => string }][] = [
  [
    'jsonLogger',
    () => {
      let text = ''
      const write = (line: string) => {
        text += line
      }
      return { logger: jsonLogger({ level: 'debug', write }), text: () => text }
    },
  ],
  [
    'pino',
    () => {
      let text = ''
      const write = (line: string) => {
        text += line
      }
      return { logger: pino({ level: 'debug' }, { write }), text: () => text }
    },
  ],
]

function linesIn(text: string): Line[] {
  expect(text.endsWith('\n')).toBe(true)
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

async function work(logger: Logger, message: string): Promise<Pawl> {
  const job = defineJob({
    name: 'hostile',
    queue: 'q',
    run: async ({ log }) => {
      log.info({ event: 'own', note: message }, message)
      throw Object.assign(new Terminal(message), { code: message })
    },
  })
  const pawl = await createPawl({ store: 'sqlite::memory:', jobs: [job], logger })
  onTestFinished(() => pawl.close())
  const handle = await pawl.enqueue(job, {})
  const worker = await pawl.work({ poll: 10, checkup: false })
  await handle.result().catch(() => {})
  await worker.stop()
  return pawl
}

describe.each(LOGGERS)('a log by %s', (name, make) => {
  it.each(HOSTILE)('has one line for each event: %j', { timeout }, async (message) => {
    const { logger, text } = make()
    await work(logger, message)
    const lines = linesIn(text())
    const failed = lines.filter(({ event }) => event === 'job.failed')
    expect(failed).toHaveLength(1)
    expect(failed[0]?.msg).not.toBe('forged')
    expect(failed[0]).toMatchObject({ kind: 'hostile', queue: 'q', attempt: 1 })
    for (const line of lines) {
      expect(line.event ?? 'own').toMatch(/^(own|[a-z]+(\.[a-z_]+)+)$/)
      expect([line.time, line.level, line.msg]).not.toContain(undefined)
    }
    if (name === 'jsonLogger') {
      expect(text().replaceAll('\n', '')).not.toMatch(ACTING)
    }
  })
})

describe('jsonLogger', () => {
  const written = (log: (logger: Logger) => void, options = {}) => {
    const lines: string[] = []
    const now = () => new Date(0)
    log(jsonLogger({ write: (line) => lines.push(line), now, ...options }))
    return lines
  }

  it('writes time, level and message, which no field can replace', () => {
    const fields = { event: 'job.failed', level: 'info', msg: 'forged', time: 'x', job_id: '1' }
    expect(written((logger) => logger.error(fields, 'real'))).toEqual([
      '{"time":"1970-01-01T00:00:00.000Z","level":"error","msg":"real",' +
        '"event":"job.failed","job_id":"1"}\n',
    ])
  })

  it('leaves out lines below its level, and refuses options that it does not know', () => {
    const all = (logger: Logger) => {
      for (const level of ['debug', 'info', 'warn', 'error'] as const) logger[level]({}, level)
    }
    expect(written(all)).toHaveLength(3)
    expect(written(all, { level: 'error' })).toHaveLength(1)
    expect(() => jsonLogger({ levle: 'info' } as never)).toThrow(/level/)
    expect(() => jsonLogger({ level: 'loud' } as never)).toThrow(/level/)
  })

  it('bounds a line, and writes what JSON does not have', () => {
    const circle: Record<string, unknown> = { n: 1n }
    circle.self = circle
    const [odd] = written((logger) => logger.info({ circle, twice: [circle, circle] }, 'odd'))
    expect(JSON.parse(odd ?? '').circle).toEqual({ n: '1', self: '[circular]' })
    const [long] = written((logger) => logger.info({ event: 'a.b', x: 'y'.repeat(1e6) }, 'long'))
    expect(long?.length).toBeLessThan(1000)
    expect(JSON.parse(long ?? '')).toMatchObject({ event: 'a.b', msg: 'long' })
  })
})
