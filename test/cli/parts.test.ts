// The parts of the program that a terminal is needed for, with a terminal that the test owns.
import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { confirm } from '../../src/cli/confirm.ts'
import { exitCodeOf } from '../../src/cli/exit-codes.ts'
import { Output, type Sink } from '../../src/cli/output.ts'
import type { Call } from '../../src/cli/spec.ts'
import { readDate, readDuration, readPast } from '../../src/cli/times.ts'
import { shortened, visible, visibleJson } from '../../src/cli/visible.ts'
import { span } from '../../src/core/format.ts'
import { withoutSecrets } from '../../src/core/redact.ts'

/** A stream that keeps what is written. */
class Kept extends EventEmitter implements Sink {
  text = ''
  writableNeedDrain = false
  readonly isTTY: boolean

  constructor(isTTY: boolean) {
    super()
    this.isTTY = isTTY
  }

  write(text: string): boolean {
    this.text += text
    return true
  }
}

function outputTo({ isTTY = true, color = true, json = false } = {}) {
  const [stdout, stderr] = [new Kept(isTTY), new Kept(isTTY)]
  const output = new Output({ stdout, stderr, json, color, verbose: false })
  return { output, stdout, stderr }
}

const COLUMNS = [{ head: 'name' }, { head: 'count', right: true }]

describe('output', () => {
  it('is a table with a head on a terminal, and lines with tabs elsewhere', () => {
    const rows = [
      ['a\u001b[31m', '7'],
      ['longer', '10'],
    ]
    const terminal = outputTo({ color: false })
    terminal.output.table(COLUMNS, rows)
    expect(terminal.stdout.text).toBe('name       count\na\\x1b[31m      7\nlonger        10\n')
    const file = outputTo({ isTTY: false })
    file.output.table(COLUMNS, rows)
    expect(file.stdout.text).toBe('a\\x1b[31m\t7\nlonger\t10\n')
  })

  it('has colours only on a terminal that wants them', () => {
    expect(outputTo().output.style('red', 'x')).toBe('\u001b[31mx\u001b[0m')
    expect(outputTo({ color: false }).output.style('red', 'x')).toBe('x')
    expect(outputTo({ isTTY: false }).output.style('red', 'x')).toBe('x')
  })

  it('cuts what is too long for a cell on a terminal, and nowhere else', () => {
    const [terminal, file] = [outputTo({ color: false }), outputTo({ isTTY: false })]
    for (const { output } of [terminal, file]) output.table(COLUMNS, [['x'.repeat(100), '1']])
    expect(terminal.stdout.text).toContain(`${'x'.repeat(47)}… `)
    expect(file.stdout.text).toContain('x'.repeat(100))
  })

  it('keeps payloads as they were written: numbers, order, and what is no JSON', () => {
    const { output, stdout } = outputTo({ json: true })
    output.record(
      { a: 1 },
      { input: '{\n "b": 12345678901234567890,\t"a":"\u009b"}', none: undefined },
    )
    output.record({}, { input: 'cipher "text"' })
    expect(stdout.text).toBe(
      '{"a":1,"input":{  "b": 12345678901234567890, "a":"\\u009b"}}\n' +
        '{"input":"cipher \\"text\\""}\n',
    )
  })

  it('stops when its reader has gone, and fails for any other reason', async () => {
    const { output, stdout } = outputTo()
    stdout.writableNeedDrain = true
    const taken = output.taken()
    stdout.emit('error', Object.assign(new Error('gone'), { code: 'EPIPE' }))
    await taken
    expect(output.gone.aborted).toBe(true)
    output.line('unheard')
    expect(stdout.text).toBe('')
    const full = Object.assign(new Error('disk full'), { code: 'ENOSPC' })
    expect(() => outputTo().stdout.emit('error', full)).toThrow('disk full')
  })
})

describe('confirmation', () => {
  function callWith({ isTTY = true, yes = false, json = false } = {}) {
    const stdin = Object.assign(new PassThrough(), { isTTY })
    const interrupt = new AbortController()
    const call = {
      ...{ args: [], options: { yes }, output: outputTo({ json }).output, stdin },
      ...{ interrupted: interrupt.signal, environment: testEnvironment() },
    } as unknown as Call
    return { call, stdin, interrupt }
  }

  it('is what a person types: the number of jobs, and nothing else', async () => {
    const right = callWith()
    right.stdin.end('12\n')
    await confirm(right.call, 'cancel', 12)
    for (const typed of ['y\n', '\n', '1\n', 'yes\n', '']) {
      const wrong = callWith()
      wrong.stdin.end(typed)
      await expect(confirm(wrong.call, 'cancel', 12)).rejects.toMatchObject({
        code: 'E_NOT_CONFIRMED',
      })
    }
  })

  it('is not asked for with --yes, and not possible without a person', async () => {
    await confirm(callWith({ yes: true, isTTY: false }).call, 'cancel', 12)
    for (const way of [{ isTTY: false }, { json: true }]) {
      const { call, stdin } = callWith(way)
      stdin.end('12\n')
      await expect(confirm(call, 'cancel', 12)).rejects.toThrow('was not confirmed')
    }
  })

  it('ends with an interruption', async () => {
    const { call, interrupt } = callWith()
    const asked = confirm(call, 'cancel', 12)
    interrupt.abort()
    await expect(asked).rejects.toThrow('was not confirmed')
  })
})

describe('exit codes', () => {
  it('are given to codes of errors that exist', () => {
    const listed = readFileSync('docs/reference/errors.md', 'utf8')
    const codes = readFileSync('src/engine/error-classes.ts', 'utf8').match(/E_[A-Z_]+/g) ?? []
    expect(codes.length).toBeGreaterThan(20)
    expect(codes.filter((code) => !listed.includes(`\`${code}\``))).toEqual([])
    const given = ['E_USAGE', 'E_JOB_NOT_FOUND', 'E_COMMITTED', 'E_STORE_FAILED']
    expect(given.map((code) => exitCodeOf({ code }))).toEqual([2, 4, 5, 1])
  })

  it('are 1 only for failures that the caller did not cause', () => {
    const all = readFileSync('docs/reference/errors.md', 'utf8').matchAll(/^\| `(E_\w+)`/gm)
    const invalid = [...all]
      .map(([, code = '']) => code)
      .filter((code) => exitCodeOf({ code }) === 1)
      .filter((code) =>
        /_(INVALID|NOT_FOUND|UNKNOWN|EXISTS|ENDED|REFUSED|MISSING|TWICE)$/.test(code),
      )
    // Errors of calls inside handlers, nodes, transactions and HTTP requests; no command passes
    // them on as usage.
    expect(invalid).toEqual([
      ...['E_ARTIFACT_MISSING', 'E_DRIVER_MISSING', 'E_EFFECT_UNKNOWN', 'E_ORIGIN_REFUSED'],
      ...['E_OUTCOME_UNKNOWN', 'E_QUEUE_MISSING', 'E_REPLAY_QUERY_REFUSED', 'E_REQUEST_REFUSED'],
      ...['E_ROLE_MISSING', 'E_TELEMETRY_REFUSED', 'E_TX_ENDED', 'E_TX_INVALID', 'E_WORK_TWICE'],
    ])
  })
})

describe('texts', () => {
  it('show every hidden character and keep all others', () => {
    expect(visible('plain ü 漢字 👩‍👩‍👧 → \\')).toBe('plain ü 漢字 👩‍👩‍👧 → \\')
    expect(visible('\n\r\t\0\u001b\u007f\u009b')).toBe('\\n\\r\\t\\x00\\x1b\\x7f\\x9b')
    expect(visible('\u202e\u2066\ufeff\u{e0041}\ud800')).toBe(
      '\\u{202e}\\u{2066}\\u{feff}\\u{e0041}\\u{d800}',
    )
    const value = { a: '\u009b\u202e\u{e0041}\u2028"\\' }
    const text = visibleJson(JSON.stringify(value))
    expect(text).toMatch(/^[ -~]+$/)
    expect(JSON.parse(text)).toEqual(value)
  })

  it('are cut between characters', () => {
    expect(shortened('abcdef', 6)).toBe('abcdef')
    expect(shortened('abcdefg', 6)).toBe('abcde…')
    expect(shortened('abcd👩fg', 6)).toBe('abcd…')
  })

  it('of stores hide passwords', () => {
    expect(withoutSecrets('postgres://ada:s3:cret@h/db')).toBe('postgres://ada:***@h/db')
    expect(withoutSecrets('postgresql://ada:p%40@h:1/db?x=1')).toBe(
      'postgresql://ada:***@h:1/db?x=1',
    )
    expect(withoutSecrets('sqlite:./a:b@c')).toBe('sqlite:./a:b@c')
  })
})

describe('times', () => {
  it('are shown in their two largest units', () => {
    const shown = [0, 40, 1200, 59_000, 61_000, 3_600_000, 90_061_000].map(span)
    expect(shown).toEqual(['0ms', '40ms', '1.2s', '59s', '1m 1s', '1h', '1d 1h'])
  })

  it('are read as dates in UTC, or as durations before now', () => {
    expect(readDate('2026-11-16', 'at')).toBe(Date.UTC(2026, 10, 16))
    expect(readDate('2026-11-16T09:30', 'at')).toBe(Date.UTC(2026, 10, 16, 9, 30))
    expect(readDate('2026-11-16T09:30:00+01:00', 'at')).toBe(Date.UTC(2026, 10, 16, 8, 30))
    expect(readPast('90s', 'created-after', 100_000)).toBe(10_000)
    expect(readPast('1970-01-02', 'created-after', 0)).toBe(86_400_000)
    for (const text of ['', 'now', '2026-13-01', '16.11.2026', '1969-01-01', '2026-11-16T25:00']) {
      expect(() => readDate(text, 'at')).toThrow('--at must be a date')
    }
    for (const text of ['', '5', '5 m', '-5m', '9999d']) {
      expect(() => readDuration(text, 'in')).toThrow('--in must be a duration')
    }
  })
})
