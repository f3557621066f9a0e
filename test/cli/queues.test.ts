// Queues from the command line: pauses and bounds, and who changed them, when and why.
import { describe, expect, it } from 'vitest'
import type { QueueInfo } from '../../src/stores/contract/store.ts'
import type { QueueRecord } from '../../src/stores/queue-records.ts'
import { Place } from './pawl.ts'

const WHY = ['--reason', 'INC-7: the relay is down']

describe('pawl queue limit', () => {
  it('bounds a queue, shows the bounds, and lifts one without the other', async () => {
    const place = new Place()
    await place.ok('job', 'enqueue', 'send', '1', '--queue', 'mail')
    const both = ['queue', 'limit', 'mail', '--max-depth', '1', '--max-wait', '5m', ...WHY]
    expect(await place.ok(...both)).toBe('mail max depth none → 1, max wait none → 5m\n')
    expect(await place.ok(...both)).toBe('mail already has these limits\n')
    expect(await place.ok('queue', 'list')).toMatch(/at most 1 ready; ready for at most 5m/)
    const full = await place.run(['job', 'enqueue', 'send', '2', '--queue', 'mail'])
    expect(full.stderr).toContain('E_QUEUE_FULL')
    const [lifted] = await place.json('queue', 'limit', 'mail', '--max-depth', 'none', ...WHY)
    expect(lifted).toEqual({ queue: 'mail', maxDepth: null, maxWaitMs: 300_000, changed: true })
    await place.ok('job', 'enqueue', 'send', '2', '--queue', 'mail')
    const [queue] = await place.json<QueueInfo>('queue', 'list')
    expect(queue).toMatchObject({ name: 'mail', maxWaitMs: 300_000 })
    expect(queue).not.toHaveProperty('maxDepth')
  })

  it.each([
    [['mail', '--max-depth', '5'], /A reason is required/],
    [['mail', ...WHY], /No limit is given/],
    [['mail', '--max-depth', '-1', ...WHY], /--max-depth must be a whole number/],
    [['mail', '--max-depth', 'many', ...WHY], /--max-depth must be a whole number/],
    [['mail', '--max-wait', 'soon', ...WHY], /--max-wait must be a duration/],
    [['', '--max-depth', '5', ...WHY], /"queue" must not be empty/],
  ])('%j is wrong usage, and changes nothing', async (args, why) => {
    const place = new Place()
    await place.ok('db', 'migrate')
    const { code, stderr } = await place.run(['queue', 'limit', ...args])
    expect(stderr).toMatch(why)
    expect(code).toBe(2)
    expect(await place.json('queue', 'list')).toEqual([])
  })
})

describe('pawl queue history', () => {
  it('says who paused, bounded and resumed a queue, when and why', async () => {
    const place = new Place()
    await place.ok('db', 'migrate')
    expect(await place.ok('queue', 'pause', 'mail', ...WHY)).toBe('mail paused\n')
    expect(await place.ok('queue', 'pause', 'mail', ...WHY)).toBe('mail was already paused\n')
    const by = ['--operator', 'ben', '--reason', 'keep it small']
    await place.ok('queue', 'limit', 'mail', 'other', '--max-depth', '9', ...by)
    expect(await place.ok('queue', 'show', 'mail')).toMatch(
      /^mail: no jobs\n {2}paused by ada at \S+ \(INC-7: the relay is down\)\n {2}at most 9 ready/,
    )
    await place.ok('queue', 'resume', 'mail', '--reason', 'the relay is back')
    const records = await place.json<QueueRecord>('queue', 'history', 'mail')
    expect(records.map(({ action, operator, note }) => [action, operator, note])).toEqual([
      ['resume', 'ada', 'the relay is back'],
      ['limit', 'ben', 'keep it small'],
      ['pause', 'ada', 'INC-7: the relay is down'],
    ])
    const lines = (await place.ok('queue', 'history', '--limit', '3')).trimEnd().split('\n')
    expect(lines).toEqual([
      expect.stringMatching(/ mail resumed, paused since \S+, by operator ada: the relay is back$/),
      expect.stringMatching(/ other max depth none → 9, by operator ben: keep it small$/),
      expect.stringMatching(/ mail max depth none → 9, by operator ben: keep it small$/),
    ])
    const unknown = await place.run(['queue', 'show', 'nobody'])
    expect(unknown).toMatchObject({ code: 4, stderr: expect.stringContaining('E_NAME_UNKNOWN') })
  })
})
