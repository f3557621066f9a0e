// The test kit is a public interface: what it exports is described, and nothing else is exported.
import { readFileSync } from 'node:fs'
import * as kit from 'pawl/testing'
import { expect, it } from 'vitest'

const source = readFileSync('src/entries/testing.ts', 'utf8')
const guide = readFileSync('docs/guides/testing.md', 'utf8')

it('everything that the test kit exports is described in its guide', () => {
  const lists = [...source.matchAll(/export (?:type )?\{([^}]+)\}/g)].map(([, list]) => list ?? '')
  const listed = lists.flatMap((list) => list.match(/\b[A-Z_a-z]+\b/g) ?? [])
  const names = new Set([...listed.filter((name) => name !== 'type'), ...Object.keys(kit)])
  expect(names.size).toBeGreaterThan(25)
  expect([...names].filter((name) => !new RegExp(`\\b${name}\\b`).test(guide))).toEqual([])
})

it('the test kit exports these values, and no others', () => {
  expect(Object.keys(kit).sort()).toEqual([
    ...[
      'CRASH_POINTS',
      'DrainFailed',
      'DrainStuck',
      'JobScript',
      'ManualClock',
      'ProcessDied',
      'RunScript',
    ],
    ...['SeededRandom', 'SequentialIds', 'SimulatedFiles', 'TestPawl', 'createTestPawl'],
    ...['givenJob', 'givenRun', 'runJob', 'testEnvironment'],
  ])
})
