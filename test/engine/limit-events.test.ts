// Changes of limits and closed throttles as events, log lines and measurements.
import { expect, it } from 'vitest'
import { defineJob, defineLimit, type PawlEvent, typed } from '../../src/index.ts'
import { createTestPawl } from '../../src/testing/test-pawl.ts'

const api = defineLimit({ name: 'api', concurrency: 2, keyed: true })
const call = defineJob({
  name: 'call',
  input: typed<string>(),
  concurrency: { limit: api, key: (tenant) => tenant },
  throttle: { name: 'rps', limit: 10, period: '1s' },
  run: ({ attempt, throttled }) => {
    if (attempt === 1) throw throttled('rps', { retryAfter: '5s' })
    return null
  },
})

it('a limit that is declared, set or reset is an event, a line and a count', async () => {
  const events: PawlEvent[] = []
  const lines: [object, string][] = []
  const counted: [string, object][] = []
  const info = (fields: object, text: string) => void lines.push([fields, text])
  const logger = { debug() {}, info, warn() {}, error() {} }
  const count = (name: string, labels: object) => void counted.push([name, labels])
  const metrics = { count, observe() {}, gauge() {} }
  const onEvent = (event: PawlEvent) => void events.push(event)
  await using kit = await createTestPawl({ jobs: [call], onEvent, logger, metrics })
  const ann = kit.pawl.operator({ name: 'ann', reason: 'INC-7' })
  await ann.setLimit(api, { concurrency: 1, key: 'acme' })
  await ann.setLimit(api, { concurrency: 1, key: 'acme' })
  await ann.resetLimit(api, { key: 'acme' })
  const changes = events.flatMap((event) => (event.type === 'limit' ? event.record : []))
  expect(changes.map(({ name, action }) => [name, action])).toEqual([
    ['shared/api', 'declare'],
    ['rate/call/rps', 'declare'],
    ['shared/api/acme', 'set'],
    ['shared/api/acme', 'reset'],
  ])
  const said = lines.filter(([fields]) => 'event' in fields && fields.event === 'limit.changed')
  expect(said.map(([, text]) => text).slice(2)).toEqual([
    'The limit was set',
    'The limit was reset',
  ])
  expect(said[2]?.[0]).toMatchObject({ limit: 'shared/api/acme', operator: 'ann', reason: 'INC-7' })
  const of = (wanted: string) => counted.filter(([name]) => name === wanted).map(([, l]) => l)
  expect(of('pawl_limit_changes_total')).toContainEqual({ limit: 'shared/api', action: 'reset' })
  await kit.pawl.enqueue(call, 'acme')
  await kit.fastForward()
  expect(of('pawl_attempts_throttled_total')).toEqual([{ queue: 'default', kind: 'call' }])
})
