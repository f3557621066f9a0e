// Malformed commands: the first fault is named, and nothing is decided.
import { decideRun, type RunCommand } from 'pawl/rules'
import { documentationRun } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { answerOf, fieldOf, hash, newRun, runIn } from './run-support.ts'

/** Names that are none: empty, blank, too long, of two lines, torn Unicode, with a NUL. */
const BAD_NAMES = ['', '  ', 'x'.repeat(256), 'a\nb', '\ud800', 'a\0b', '\u007f']
const BAD_TEXTS = ['', ' \n ', 'x'.repeat(4001), '\udfff', 'a\0b']
const BAD_HASHES = ['', 'g'.repeat(64), 'A'.repeat(64), hash(1).slice(1), `${hash(1)}\n`]

const artifact = {
  kind: 'write-artifact',
  name: 'n',
  path: 'p',
  sha256: hash(1),
  schemaId: 's',
  worker: 'w',
  workItem: 'i',
} as const
const item = { kind: 'start-item', key: 'k', inputs: { a: 'h' }, code: 'c', worker: 'w' } as const
const issue = { kind: 'open-issue', issue: 'i', severity: 'error', message: 'm' } as const
const section = { kind: 'change-section', section: 's', to: 't' } as const

/** Which field is at fault when this command is given to a run that exists. */
const faultOf = (command: RunCommand) => fieldOf(runIn('DRAFTING').applyCommand(command))

describe('a name in a command', () => {
  it('is one line of at most 255 characters that can be stored and read back', () => {
    for (const bad of BAD_NAMES) {
      for (const field of ['name', 'worker', 'schemaId', 'workItem'] as const) {
        expect(faultOf({ ...artifact, [field]: bad })).toBe(field)
      }
      for (const field of ['key', 'code', 'worker'] as const) {
        expect(faultOf({ ...item, [field]: bad })).toBe(field)
      }
      for (const field of ['section', 'to'] as const) {
        expect(faultOf({ ...section, [field]: bad })).toBe(field)
      }
      expect(faultOf({ kind: 'invalidate-artifact', name: bad })).toBe('name')
      expect(faultOf({ kind: 'revalidate-artifact', name: bad })).toBe('name')
      expect(faultOf({ kind: 'finish-item', key: bad })).toBe('key')
      expect(faultOf({ kind: 'fail-item', key: bad, error: 'e' })).toBe('key')
      expect(faultOf({ ...issue, issue: bad })).toBe('issue')
      expect(faultOf({ kind: 'resolve-issue', issue: bad })).toBe('issue')
    }
  })

  it('may be as long as 255 characters and in any script', () => {
    for (const good of ['x'.repeat(255), 'Übersicht 概要 🚀', '../..', '0']) {
      expect(answerOf(runIn('DRAFTING').applyCommand({ ...artifact, name: good }))).toBe('facts')
    }
  })
})

describe('the inputs of a work item', () => {
  it('are names and hashes that could be stored each on their own', () => {
    for (const bad of BAD_NAMES) {
      for (const inputs of [{ [bad]: 'h' }, { a: 'h', b: bad }]) {
        expect(faultOf({ ...item, inputs })).toBe('inputs')
        expect(faultOf({ kind: 'finish-item', key: 'k', inputs })).toBe('inputs')
      }
    }
  })

  it('are at most ten thousand', () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`i${i}`, 'h']))
    expect(faultOf({ ...item, inputs: many(10_001) })).toBe('inputs')
    expect(answerOf(runIn('DRAFTING').applyCommand({ ...item, inputs: many(10_000) }))).toBe(
      'facts',
    )
  })
})

describe('texts, hashes and numbers in a command', () => {
  it('are bounded texts', () => {
    for (const bad of BAD_TEXTS) {
      expect(faultOf({ kind: 'fail-item', key: 'k', error: bad })).toBe('error')
      expect(faultOf({ ...issue, message: bad })).toBe('message')
      expect(faultOf({ ...artifact, path: bad })).toBe('path')
      expect(faultOf({ kind: 'fail', reason: bad })).toBe('reason')
      expect(faultOf({ kind: 'cancel', reason: bad })).toBe('reason')
    }
    expect(faultOf({ ...artifact, path: 'p'.repeat(1025) })).toBe('path')
    expect(faultOf({ kind: 'fail', reason: 'r'.repeat(2001) })).toBe('reason')
    const longest = { kind: 'fail', reason: 'r'.repeat(2000) } as const
    expect(answerOf(runIn('DRAFTING').applyCommand(longest))).toBe('facts')
  })

  it('are whole hashes in lower case', () => {
    for (const bad of BAD_HASHES) {
      expect(faultOf({ ...artifact, sha256: bad })).toBe('sha256')
      expect(faultOf({ kind: 'discard-tail', bytes: 1, sha256: bad })).toBe('sha256')
      expect(faultOf({ kind: 'link-commit', sha: bad })).toBe('sha')
    }
    for (const bad of ['a'.repeat(7), 'a'.repeat(41)]) {
      expect(faultOf({ kind: 'link-commit', sha: bad })).toBe('sha')
    }
    expect(faultOf({ ...artifact, sha256: 'a'.repeat(40) })).toBe('sha256')
  })

  it('are whole numbers within their bounds', () => {
    for (const bytes of [0, -1, 1.5, Number.NaN, 2 ** 53]) {
      expect(faultOf({ kind: 'discard-tail', bytes, sha256: hash(1) })).toBe('bytes')
    }
    for (const maxFixAttempts of [-1, 1001, 0.5, Number.POSITIVE_INFINITY]) {
      const decision = decideRun(documentationRun, null, { kind: 'create', maxFixAttempts })
      expect(fieldOf(decision)).toBe('maxFixAttempts')
    }
  })
})

describe('a malformed command', () => {
  it('is refused for what it is before anything else about the run is asked', () => {
    const bad = { kind: 'fail', reason: '' } as const
    expect(fieldOf(decideRun(documentationRun, null, bad))).toBe('reason')
    expect(fieldOf(runIn('DONE').applyCommand(bad))).toBe('reason')
    expect(fieldOf(newRun().applyCommand({ kind: 'create', maxFixAttempts: -1 }))).toBe(
      'maxFixAttempts',
    )
  })
})
