// Facts as CSV: what stands in a cell comes back as it was, and no spreadsheet runs it.
import type { AuditEntry } from 'pawl/audit'
import type { Fact } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { csvHead, csvLine } from '../../src/audit/csv.ts'

const asIs = (text: string) => text

const fact: Fact = {
  version: 1,
  jobId: '00000000-0000-7000-8000-000000000001',
  seq: 3,
  at: 1_000,
  trigger: 'cancel',
  from: 'running',
  via: ['failed'],
  to: 'quarantined',
  actor: 'operator',
}

const entry = (more: Partial<Fact> = {}, payload?: string): AuditEntry => ({
  pos: '7',
  fact: { ...fact, ...more },
  ...(payload !== undefined && { payload }),
})

/** The cells of a line, read as RFC 4180 says. */
function cellsOf(line: string): string[] {
  expect(line.endsWith('\r\n')).toBe(true)
  const cells = line.slice(0, -2).matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g)
  return [...cells].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '')
}

/** The cells of an entry by the names of their columns. */
function rowOf(entry: AuditEntry): Record<string, string> {
  const heads = cellsOf(csvHead(entry.payload !== undefined))
  const cells = cellsOf(csvLine(entry, asIs))
  expect(cells).toHaveLength(heads.length)
  return Object.fromEntries(heads.map((head, i) => [head, cells[i] ?? '']))
}

describe('a fact as a line of CSV', () => {
  it('has a cell for whatever an auditor asks for', () => {
    expect(rowOf(entry({ operator: 'ann', reason: 'cancelled', note: 'INC-7' }))).toMatchObject({
      ...{ pos: '7', job: fact.jobId, seq: '3', at: '1970-01-01T00:00:01.000Z' },
      ...{ trigger: 'cancel', from: 'running', via: 'failed', to: 'quarantined' },
      ...{ actor: 'operator', operator: 'ann', reason: 'cancelled', note: 'INC-7', worker: '' },
    })
  })

  it('keeps commas, quotes and ends of lines within their cell', () => {
    const note = 'a,"b"\r\nc\n,'
    expect(rowOf(entry({ note })).note).toBe(note)
    expect(rowOf(entry({}, '{"a":"x,y"}')).payload).toBe('{"a":"x,y"}')
  })

  const formulas = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', ' =1', '＝1', '"=1', "'=1"]
  it.each(formulas)('gives no spreadsheet a formula: %j', (note) => {
    expect(rowOf(entry({ note })).note).toBe(`'${note}`)
  })

  it('leaves other texts as they are, and shows them as it is told to', () => {
    for (const note of ['a=b', 'x-1', '1', 'no @ here', '"quoted"', "it's"]) {
      expect(rowOf(entry({ note })).note).toBe(note)
    }
    const line = csvLine(entry({ note: '\u001b]0;x' }), (text) => text.replace('\u001b', '^'))
    expect(line).toContain('^]0;x')
  })

  it('shows a time that no calendar has as a number', () => {
    expect(rowOf(entry({ at: 9e15 })).at).toBe('9000000000000000')
  })
})
