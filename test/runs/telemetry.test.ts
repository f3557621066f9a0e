// Telemetry: told last, sent again while its sink is down, asked for by run, trace and commit.
import { join } from 'node:path'
import {
  httpSink,
  type RunContext,
  type RunDefinition,
  type TelemetryEvent,
  type TelemetrySink,
} from 'pawl/runs'
import { serveTelemetry } from 'pawl/telemetry'
import { testEnvironment } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { TelemetryState } from '../../src/runs/telemetry/state.ts'
import { eventsOf, freshFolder, freshRuns, outcomeOf, releaseOf } from './bench.ts'

/** A sink that can be down. */
class Sink implements TelemetrySink {
  readonly name = 'test sink'
  readonly got: TelemetryEvent[] = []
  isDown = false
  tries = 0

  async send(events: readonly TelemetryEvent[]): Promise<void> {
    this.tries++
    if (this.isDown) throw new Error('the sink is down')
    this.got.push(...events)
  }

  get types(): string[] {
    return this.got.map(({ type }) => type)
  }
}

const wrong = (): RunDefinition => ({
  ...releaseOf({}),
  nodes: new Map([['build', async () => 'shipped' as never]]),
})

async function server(token?: string) {
  const path = join(freshFolder(), 'telemetry.db')
  const options = token === undefined ? { path } : { path, token }
  const served = await serveTelemetry(options)
  onTestFinished(() => served.close())
  const ask = async (query: string, init: RequestInit = {}) => {
    const response = await fetch(`${served.url}/api/v1/telemetry/events${query}`, init)
    return { status: response.status, body: (await response.json()) as Answer }
  }
  return { ...served, ask }
}

interface Answer {
  readonly items: TelemetryEvent[]
  readonly nextCursor?: number
  readonly code?: string
}

describe('telemetry', () => {
  it('is sent every event of a run, once and in order, after it is durable', async () => {
    const sink = new Sink()
    const runs = await freshRuns({ telemetry: sink })
    await outcomeOf(runs, releaseOf({ build: (run) => run.work('k', {}, () => 1) }))
    const events = await eventsOf(runs)
    await runs.close()
    expect(sink.got).toMatchObject(events)
  })

  it('gets missed events from the next process', async () => {
    const folder = freshFolder()
    const down = new Sink()
    down.isDown = true
    const first = await freshRuns({ folder, telemetry: down })
    await outcomeOf(first, releaseOf({}))
    await first.close()
    expect(down.got).toEqual([])
    const up = new Sink()
    const second = await freshRuns({ folder, telemetry: up })
    const events = await eventsOf(second)
    await second.close()
    expect(up.got).toMatchObject(events)
    const again = new Sink()
    await (await freshRuns({ folder, telemetry: again })).close()
    expect(again.got).toEqual([])
  })

  it('is retried with back-off while its sink is down, and gets all events', async () => {
    const environment = testEnvironment()
    const sink = new Sink()
    sink.isDown = true
    const runs = await freshRuns({ telemetry: sink, environment })
    await outcomeOf(runs, releaseOf({}))
    const passing = { interval: 5, timeout: 15_000 }
    const tries = async (least: number) => {
      const look = () => environment.advance(100) ?? sink.tries
      await expect.poll(look, passing).toBeGreaterThanOrEqual(least)
    }
    await tries(4)
    const after = environment.clock.now()
    await tries(6)
    // Two seconds or more after the fourth failure, and four after the fifth.
    expect(environment.clock.now() - after).toBeGreaterThan(5000)
    sink.isDown = false
    const got = () => environment.advance(1000) ?? sink.got.length
    await expect.poll(got, passing).toBeGreaterThan(0)
    expect(sink.got).toMatchObject(await eventsOf(runs))
  })

  it('is sent refused transitions, which are in no log, also by the next process', async () => {
    const folder = freshFolder()
    const down = new Sink()
    down.isDown = true
    const first = await freshRuns({ folder, telemetry: down })
    await expect(outcomeOf(first, wrong())).rejects.toMatchObject({ code: 'E_TRANSITION_INVALID' })
    await first.close()
    const up = new Sink()
    await (await freshRuns({ folder, telemetry: up })).close()
    expect(up.got.at(-1)).toMatchObject({
      type: 'INVALID_STATE_TRANSITION',
      run_id: 'r1',
      data: { from_state: 'build', to_state: 'shipped' },
    })
  })

  it('keeps a bounded number of refused transitions, and reports how many it dropped', async () => {
    const folder = freshFolder()
    const state = new TelemetryState(join(folder, '.telemetry'), 'test sink', systemEnvironment())
    for (let n = 1; n <= 20; n++) {
      const data = { from_state: `${n}`, to_state: 'x'.repeat(20_000) }
      await state.add({ ...REST, type: 'INVALID_STATE_TRANSITION', run_id: 'r', ts: 't', data })
    }
    const up = new Sink()
    await (await freshRuns({ folder, telemetry: up })).close()
    const [dropped, ...refused] = up.got
    expect(dropped).toMatchObject({ type: 'TELEMETRY_DROPPED', data: { dropped: 7 } })
    expect(refused.map(({ data }) => (data as { from_state: string }).from_state)).toEqual(
      Array.from({ length: 13 }, (_, i) => `${i + 8}`),
    )
    const again = new Sink()
    await (await freshRuns({ folder, telemetry: again })).close()
    expect(again.got).toEqual([])
  })

  it('never harms the run, whatever the sink does', async () => {
    const sink: TelemetrySink = {
      name: 'bad',
      send: () => {
        throw new Error('at once')
      },
    }
    const runs = await freshRuns({ telemetry: sink })
    expect(await outcomeOf(runs, releaseOf({}))).toMatchObject({ kind: 'done' })
  })
})

describe('the local telemetry API', () => {
  it('returns events by run, by trace and by commit', async () => {
    const { url, ask } = await server()
    const sha = 'd'.repeat(40)
    const runs = await freshRuns({ telemetry: httpSink({ url }) })
    const link = (run: RunContext) => run.linkCommit(sha)
    await outcomeOf(runs, releaseOf({ build: link }), 'r1')
    await outcomeOf(runs, { ...releaseOf({}), name: 'other' }, 'r2')
    const [one, two] = [await eventsOf(runs, 'r1'), await eventsOf(runs, 'r2')]
    await runs.close()
    expect((await ask('?run=r1')).body.items).toMatchObject(one)
    expect((await ask(`?trace=${two[0]?.trace_id}`)).body.items).toMatchObject(two)
    expect((await ask(`?commit=${sha}`)).body.items).toMatchObject(one)
    expect((await ask(`?commit=${sha}&run=r2`)).body.items).toEqual([])
    const page = (await ask('?run=r1&limit=2')).body
    expect(page.items).toMatchObject(one.slice(0, 2))
    const next = (await ask(`?run=r1&limit=1&after=${page.nextCursor}`)).body
    expect(next.items).toMatchObject(one.slice(2, 3))
  })

  it('refuses a parameter that is unknown, empty, repeated or out of bounds', async () => {
    const { ask } = await server()
    const bad = [
      ...['?bogus=1', '?run=r1&type=', '?type=X', '?run=', '?trace=%00', '?run=a&run=b'],
      ...['?limit=0', '?limit=1001', '?limit=-1', '?limit=1e2', '?after=x', '?constructor=1'],
    ]
    for (const query of bad) {
      const { status, body } = await ask(query)
      expect([query, status]).toEqual([query, 400])
      expect(body).toMatchObject({ code: 'E_REQUEST_REFUSED' })
    }
    const { body } = await ask('?bogus=1')
    expect(body).toMatchObject({
      title: expect.stringMatching(/"bogus" is not known; known parameters: run, trace, commit/),
    })
    const headers = { 'content-type': 'application/json' }
    expect((await ask('?run=r1', { method: 'POST', body: '[]', headers })).status).toBe(400)
    for (const options of [{ prt: 1 }, { port: 70_000 }, { path: 5 }, { token: 5 }]) {
      const serving = serveTelemetry({ path: ':memory:', ...(options as object) })
      await expect(serving).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    }
  })

  it('stores an event that arrives twice once', async () => {
    const { url, ask } = await server()
    const event = { ...{ event_id: 'e1', run_id: 'r', type: 'X', ts: 't' }, ...REST }
    const sink = httpSink({ url })
    const { signal } = new AbortController()
    await sink.send([event], signal)
    await sink.send([event], signal)
    expect((await ask('')).body.items).toHaveLength(1)
  })

  it('refuses what is too large, too deep or no event, and says so in a typed way', async () => {
    const { ask } = await server()
    const type = { 'content-type': 'application/json' }
    const post = (body: string, headers = type) => ask('', { method: 'POST', body, headers })
    const cases: [string, number][] = [
      ['{', 400],
      ['{}', 400],
      ['null', 400],
      [`${'['.repeat(20)}${']'.repeat(20)}`, 400],
      [`["${'x'.repeat(1024 * 1024)}"]`, 413],
    ]
    for (const [body, status] of cases) {
      const answer = await post(body).catch((error) => error)
      // Whoever sends too much may find the connection closed before the answer.
      if (status === 413 && answer instanceof TypeError) continue
      expect([body.slice(0, 9), answer]).toMatchObject([
        body.slice(0, 9),
        { status, body: { code: 'E_REQUEST_REFUSED' } },
      ])
    }
    expect(await post('[]', { 'content-type': 'text/plain' })).toMatchObject({ status: 415 })
    expect(await ask('?limit=1e9')).toMatchObject({ status: 400 })
    expect(await ask('', { method: 'DELETE' })).toMatchObject({ status: 405 })
    expect((await ask('')).body.items).toEqual([])
  })

  it('listens on this machine only, unless it has a token', async () => {
    const path = join(freshFolder(), 'telemetry.db')
    const open = { path, host: '0.0.0.0' }
    await expect(serveTelemetry(open)).rejects.toMatchObject({ code: 'E_TOKEN_MISSING' })
    const { ask } = await server('a-token-of-some-length')
    expect(await ask('')).toMatchObject({ status: 401 })
    const headers = { authorization: 'Bearer a-token-of-some-length' }
    expect(await ask('', { headers })).toMatchObject({ status: 200 })
    const bad = { authorization: 'Bearer a-token-of-some-lengtX' }
    expect(await ask('', { headers: bad })).toMatchObject({ status: 401 })
  })
})

const REST = { trace_id: 't', span_id: 's', actor: 'a', data: {} }
