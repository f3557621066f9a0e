// Tokens of signals: who has one may send one signal to one job, and nothing else.
import { approval, createPawl, defineJob, typed } from 'pawl'
import { createHttpApi } from 'pawl/http'
import { createTestPawl } from 'pawl/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SignalTokens } from '../../src/engine/signal-tokens.ts'
import { freshStoreDatabase } from '../support/postgres/databases.ts'

const STORES = [
  { name: 'SQLite', place: async () => 'sqlite::memory:' },
  { name: 'PostgreSQL', place: () => freshStoreDatabase() },
]

const OLD = 'an old secret of at least 32 characters'
const NEW = 'a new secret of at least 32 characters!'
const URL = 'https://jobs.example.com/pawl/'
const ID = '00000000-0000-7000-8000-00000000dead'
const DAY = 86_400_000

const tokens: string[] = []
const urls: (string | undefined)[] = []
const refund = defineJob({
  name: 'refund',
  input: typed<null>(),
  signals: [approval],
  run: async ({ token, waitForApproval }) => {
    const made = token(approval, { expires: '2d', to: 'ann@example.com' })
    tokens.push(made.token)
    urls.push(made.url)
    return waitForApproval({ timeout: '7d' })
  },
})

async function open(place: () => Promise<string>) {
  const signalTokens = { secret: [NEW, OLD], url: URL }
  const test = await createTestPawl({ store: await place(), jobs: [refund], signalTokens })
  const api = createHttpApi({ pawl: test.pawl })
  onTestFinished(async () => {
    await api.close()
    await test.close()
  })
  const call = async (method: 'GET' | 'POST', token: string, body?: unknown) => {
    const answer = await api.fetch(
      new Request(`http://localhost/api/v1/signals/${token}`, {
        method,
        ...(body !== undefined && {
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      }),
    )
    const type = answer.headers.get('content-type')
    const json = (await answer.json()) as Record<string, unknown>
    return { status: answer.status, type, json }
  }
  const handle = await test.pawl.enqueue(refund, null, { key: 'r-1' })
  await test.drain()
  return { test, call, handle, token: tokens.at(-1) ?? '' }
}

const YES = { payload: { approved: true, note: 'fine' } }

describe.each(STORES)('a token on $name', ({ place }) => {
  it('answers once, without any other credential, in the name of its person', async () => {
    const { test, call, handle, token } = await open(place)
    expect(urls.at(-1)).toBe(`https://jobs.example.com/pawl/api/v1/signals/${token}`)
    const before = (await handle.get()).seq
    for (let look = 0; look < 3; look++) {
      expect(await call('GET', token)).toMatchObject({
        status: 200,
        json: {
          state: 'open',
          signal: 'approval',
          to: 'ann@example.com',
          job: { type: 'refund', key: 'r-1' },
          schema: { required: ['approved'] },
        },
      })
    }
    // A preview by a mail client has changed nothing.
    expect((await handle.get()).seq).toBe(before)
    const first = await call('POST', token, YES)
    expect(first).toMatchObject({ status: 200, json: { kind: 'sent', signal: 'approval' } })
    expect(await call('POST', token, YES)).toEqual(first)
    expect(await call('POST', token, { payload: { approved: false } })).toMatchObject({
      status: 409,
      type: 'application/problem+json',
      json: { code: 'E_TOKEN_USED' },
    })
    await test.drain()
    const output = { kind: 'approved', by: 'ann@example.com', note: 'fine' }
    expect(await handle.result()).toMatchObject({ output })
    // The job has ended: the repetition is still answered as before.
    expect(await call('POST', token, YES)).toEqual(first)
    expect((await call('GET', token)).json.state).toBe('used')
    const facts = await test.pawl.store.facts(handle.id)
    const sent = facts.filter(({ trigger }) => trigger === 'signal')
    expect(sent).toMatchObject([{ operator: 'ann@example.com', note: 'answered by token' }])
  })

  it('two requests at the same moment store one signal', async () => {
    const { test, call, handle, token } = await open(place)
    const all = await Promise.all(Array.from({ length: 8 }, () => call('POST', token, YES)))
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await test.pawl.store.waits.history(handle.id)).signals).toHaveLength(1)
  })

  it('a repeated attempt makes a token for the same use', async () => {
    const { test, call, handle, token } = await open(place)
    await call('POST', token, YES)
    await test.advance('1s')
    await test.drain()
    const again = tokens.at(-1) ?? ''
    expect(again).not.toBe(token)
    expect((await call('POST', again, YES)).status).toBe(200)
    expect((await test.pawl.store.waits.history(handle.id)).signals).toHaveLength(1)
  })

  it('expires, and is refused if the job has ended or the payload is wrong', async () => {
    const { test, call, handle, token } = await open(place)
    expect(await call('POST', token, { payload: { approved: 'yes' } })).toMatchObject({
      status: 422,
      json: { code: 'E_SIGNAL_INVALID' },
    })
    await handle.cancel()
    expect(await call('POST', token, YES)).toMatchObject({
      status: 409,
      json: { code: 'E_JOB_ENDED' },
    })
    expect((await call('GET', token)).json.state).toBe('ended')
    await test.advance('2d')
    for (const method of ['GET', 'POST'] as const) {
      const answer = await call(method, token, method === 'POST' ? YES : undefined)
      expect(answer).toMatchObject({ status: 410, json: { code: 'E_TOKEN_EXPIRED' } })
    }
  })

  it('is refused if any part of it was changed', async () => {
    const { test, call, handle, token } = await open(place)
    const [body = '', signature = ''] = token.slice('pawls_'.length).split('.')
    const fields = JSON.parse(Buffer.from(body, 'base64url').toString())
    const forged = (change: (given: unknown[]) => unknown) =>
      Buffer.from(JSON.stringify(change([...fields]))).toString('base64url')
    const longer = forged((given) => given.with(4, Number(given[4]) + DAY))
    const other = forged((given) => given.with(1, ID))
    const foreign = new SignalTokens({ secret: 'a secret that this process does not know' })
    const own = { jobId: handle.id, signal: 'approval', use: 1 }
    const signed = foreign.issue(own, {}, test.pawl.store.now())
    const hostile = [
      `pawls_${longer}.${signature}`,
      `pawls_${other}.${signature}`,
      `pawls_${body}.${signature.slice(0, -1)}${signature.endsWith('A') ? 'B' : 'A'}`,
      `pawls_${body}.`,
      `pawls_.${signature}`,
      `pawls_${body}`,
      `${token}x`,
      token.toUpperCase(),
      signed.token,
      'pawls_bnVsbA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
      '..%2f..%2fjobs',
    ]
    for (const one of hostile) {
      const answer = await call('POST', one, YES)
      expect(answer, one).toMatchObject({
        status: 403,
        type: 'application/problem+json',
        json: { code: 'E_TOKEN_INVALID' },
      })
      expect(JSON.stringify(answer.json)).not.toContain(signature)
    }
    for (const one of ['%00', `pawls_${'A'.repeat(10_000)}.${signature}`]) {
      expect((await call('POST', one, YES)).status).toBe(400)
    }
    expect((await test.pawl.store.waits.history(handle.id)).signals).toEqual([])
    const long = { to: '長'.repeat(255) }
    const far = { ...own, signal: '長'.repeat(255) }
    expect(() => new SignalTokens({ secret: OLD }).issue(far, long, 0)).toThrow('shorter')
  })

  it('of an earlier secret counts until the secret is removed', async () => {
    const { test, call, handle } = await open(place)
    const own = { jobId: handle.id, signal: 'approval', use: 9 }
    const old = new SignalTokens({ secret: OLD }).issue(own, {}, test.pawl.store.now())
    expect((await call('GET', old.token)).status).toBe(200)
    const later = new SignalTokens({ secret: NEW })
    expect(() => later.read(old.token, test.pawl.store.now())).toThrow('not valid')
  })
})

it('without a secret tokens are off, and a secret never shows in an error', async () => {
  const off = new SignalTokens(undefined)
  expect(() => off.read('pawls_x', 0)).toThrow('Tokens of signals are off')
  for (const secret of ['too short', [], ['too short']]) {
    const opened = createPawl({ store: 'sqlite::memory:', signalTokens: { secret } })
    const error = await opened.then(
      () => undefined,
      (failed: Error) => failed,
    )
    expect(error).toMatchObject({ code: 'E_COMMAND_INVALID' })
    expect(`${error?.message} ${error?.stack}`).not.toContain('too short')
  }
  const wrong = { secret: NEW, url: 'javascript:alert(1)' }
  await expect(createPawl({ store: 'sqlite::memory:', signalTokens: wrong })).rejects.toMatchObject(
    { code: 'E_COMMAND_INVALID' },
  )
})
