// `pawl mcp` in a process of its own, which speaks the protocol over its streams.
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { Place } from './pawl.ts'

interface Message {
  readonly id: number | null
  readonly result?: {
    readonly protocolVersion?: string
    readonly tools?: readonly { name: string; inputSchema: object }[]
    readonly content?: readonly { type: string; text: string }[]
    readonly isError?: boolean
  }
  readonly error?: { readonly code: number; readonly message: string }
}

const JOBS = `
import { defineJob } from 'pawl'
const run = () => { throw new Error('no relay') }
export const mail = defineJob({ name: 'mail', retry: { max: 0 }, run })
`

/** A store with a parked job, and the server. */
async function startServer(...args: string[]) {
  const place = new Place()
  writeFileSync(join(place.folder, 'jobs.ts'), JOBS)
  const input = JSON.stringify({ to: 'ada', token: 's3cret', long: 'x'.repeat(10_000) })
  const id = (await place.ok('job', 'enqueue', 'mail', input, '--jobs', 'jobs.ts')).trim()
  await place.ok('work', '--once', '--jobs', 'jobs.ts')
  const child = place.start(['mcp', ...args])
  const lines: Message[] = []
  const arrived = new Set<() => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(JSON.parse(line) as Message)
    for (const wake of arrived) wake()
  })
  const answer = async (): Promise<Message> => {
    while (lines.length === 0) {
      await new Promise<void>((resolve) => {
        arrived.add(resolve)
        child.once('exit', () => resolve())
      })
      if (lines.length === 0 && child.exitCode !== null) throw new Error('the server ended')
    }
    return lines.shift() as Message
  }
  const write = (text: string) => child.stdin.write(`${text}\n`)
  let number = 0
  const ask = (method: string, params: object = {}) => {
    write(JSON.stringify({ jsonrpc: '2.0', id: ++number, method, params }))
    return answer()
  }
  const call = async (name: string, given: object = {}) => {
    const { result } = await ask('tools/call', { name, arguments: given })
    const text = result?.content?.[0]?.text ?? ''
    return { value: JSON.parse(text) as Record<string, unknown>, isError: result?.isError }
  }
  return { place, id, child, write, answer, ask, call }
}

describe('pawl mcp', () => {
  it('says what it can, reads jobs without their secrets, and ends with its input', async () => {
    const { id, child, write, ask, call } = await startServer()
    const hello = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'test' } }
    expect((await ask('initialize', hello)).result?.protocolVersion).toBe('2024-11-05')
    const newer = { ...hello, protocolVersion: '2099-01-01' }
    expect((await ask('initialize', newer)).result?.protocolVersion).toBe('2025-06-18')
    write('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    expect((await ask('ping')).result).toEqual({})
    const { tools = [] } = (await ask('tools/list')).result ?? {}
    expect(tools.map(({ name }) => name)).toEqual([
      ...['list_jobs', 'show_job', 'explain_job', 'show_flow', 'stats', 'doctor_plan'],
    ])
    const { value: list } = await call('list_jobs', { lane: 'parked' })
    expect(list).toMatchObject({ jobs: [{ id, type: 'mail', error: expect.any(String) }] })
    const { value: shown } = await call('show_job', { id })
    expect(JSON.stringify(shown)).not.toContain('s3cret')
    expect(shown).toMatchObject({ job: { id }, input: { truncated: true } })
    expect((await call('explain_job', { id })).value).toHaveProperty('says')
    expect((await call('stats')).value).toMatchObject({ lanes: { parked: 1 } })
    expect((await call('doctor_plan')).value).toMatchObject({ ok: true, errors: 0 })
    child.stdin.end()
    expect(await once(child, 'exit')).toEqual([0, null])
  }, 30_000)

  it('answers what is wrong with a typed error, and goes on', async () => {
    const { id, write, answer, ask, call } = await startServer()
    const bad: [string, number][] = [
      ['junk', -32_700],
      ['[]', -32_600],
      ['{"id":1}', -32_600],
      [`"${'x'.repeat(2 * 1024 * 1024)}"`, -32_600],
    ]
    for (const [line, code] of bad) {
      write(line)
      expect((await answer()).error?.code).toBe(code)
    }
    expect((await ask('resources/list')).error?.code).toBe(-32_601)
    expect((await ask('tools/call', { name: 'act_on_job' })).error?.code).toBe(-32_602)
    const wrong: [string, object, string][] = [
      ['show_job', { id: '00000000-0000-7000-8000-000000000001' }, 'E_JOB_NOT_FOUND'],
      ['show_job', { id: '../x' }, 'E_COMMAND_INVALID'],
      ['show_job', {}, 'E_COMMAND_INVALID'],
      ['list_jobs', { quue: 'mail' }, 'E_COMMAND_INVALID'],
      ['stats', { all: true }, 'E_COMMAND_INVALID'],
    ]
    for (const [name, given, code] of wrong) {
      const { value, isError } = await call(name, given)
      expect([name, isError, value.error]).toEqual([name, true, expect.objectContaining({ code })])
    }
    expect((await call('explain_job', { id })).isError).toBeUndefined()
  }, 30_000)

  it('changes jobs only if it is allowed, under a name and with a reason', async () => {
    const unnamed = await new Place().run(['mcp', '--allow', 'operate'], { ownProcess: true })
    expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining('--operator')])
    const { place, id, call } = await startServer('--allow', 'operate', '--operator', 'robot')
    const without = await call('act_on_job', { id, verb: 'redrive' })
    expect(without.value).toMatchObject({ error: { code: 'E_COMMAND_INVALID' } })
    const unknown = await call('act_on_job', { id, verb: 'force', reason: 'x' })
    expect(unknown.isError).toBe(true)
    const done = await call('act_on_job', { id, verb: 'redrive', reason: 'INC-7' })
    expect(done.isError).toBeUndefined()
    const [told] = await place.json<{ facts: object[] }>('job', 'show', id)
    expect(told?.facts).toContainEqual(
      expect.objectContaining({ operator: 'robot', note: 'INC-7' }),
    )
  }, 30_000)
})
