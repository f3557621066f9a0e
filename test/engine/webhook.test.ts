// Notices over HTTP: to real receivers on this machine.
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RetryAfter, Terminal } from 'pawl'
import { DefinitionInvalid } from 'pawl/rules'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  isPrivateAddress,
  openWebhook,
  type WebhookOptions,
} from '../../src/engine/effects/webhook.ts'

const SECRET = 'a secret of sixteen characters or more'
const NOTICE = { jobId: 'j', outcome: 'succeeded', text: 'ümläut' }

interface Received {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A receiver that answers so, and what it was sent. */
async function receiver(answer: (response: ServerResponse) => void) {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method, url, headers } = request
    received.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
    answer(response)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, url: `http://localhost:${(server.address() as AddressInfo).port}/hook?a=1` }
}

const answerWith = (status: number, headers: Record<string, string> = {}) => {
  return (response: ServerResponse) => response.writeHead(status, headers).end('said')
}

function deliver(options: Partial<WebhookOptions>, signal = new AbortController().signal) {
  const all = { secret: SECRET, allowPrivate: true, url: '', ...options }
  const { deliver } = openWebhook(all, { now: () => 1_700_000_000_500 })
  return deliver({
    payload: NOTICE,
    key: 'j/pawl.notify/3',
    signal,
    jobId: 'j',
    name: 'n',
    tries: 1,
  })
}

describe('a notice that is sent', () => {
  it('is signed, with a key by which repetitions are known', async () => {
    const { url, received } = await receiver(answerWith(204))
    await deliver({ url, headers: { 'X-Own': 'own', 'Pawl-Key': 'forged' } })
    const [{ headers, body, ...line }] = received as [Received]
    expect(line).toEqual({ method: 'POST', url: '/hook?a=1' })
    expect(JSON.parse(body)).toEqual(NOTICE)
    const signature = createHmac('sha256', SECRET).update(`1700000000.${body}`).digest('hex')
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'pawl-key': 'j/pawl.notify/3',
      'pawl-timestamp': '1700000000',
      'pawl-signature': `v1=${signature}`,
      'x-own': 'own',
    })
  })

  it.each([301, 302, 307, 308])('does not follow a redirect (%i)', async (status) => {
    const elsewhere = await receiver(answerWith(200))
    const { url } = await receiver(answerWith(status, { location: elsewhere.url }))
    await expect(deliver({ url })).rejects.toThrow(`answered ${status}`)
    expect(elsewhere.received).toEqual([])
  })

  it.each([400, 404, 500, 499])('is not delivered by a status of %i', async (status) => {
    const { url } = await receiver(answerWith(status))
    await expect(deliver({ url })).rejects.toThrow(`answered ${status}`)
  })

  it('is tried again when the receiver says', async () => {
    const { url } = await receiver(answerWith(429, { 'retry-after': '7' }))
    const error = await deliver({ url }).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(RetryAfter)
    expect(error).toMatchObject({ delayMs: 7000 })
  })

  it('is given up when it takes too long', async () => {
    const controller = new AbortController()
    const { url } = await receiver(() => controller.abort(new Error('too late')))
    await expect(deliver({ url }, controller.signal)).rejects.toThrow('abort')
  })

  it('does not reach this machine, nor by a name for it, unless that is allowed', async () => {
    const { url, received } = await receiver(answerWith(200))
    const { port } = new URL(url)
    for (const host of ['localhost', '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '2130706433']) {
      const refused = deliver({ url: `http://${host}:${port}/`, allowPrivate: false })
      await expect(refused, host).rejects.toBeInstanceOf(Terminal)
    }
    expect(received).toEqual([])
    await deliver({ url })
    expect(received).toHaveLength(1)
  })

  it.each([
    ['ftp://example.org', SECRET],
    ['not an address', SECRET],
    ['http://ann:password@example.org', SECRET],
    ['https://example.org', 'too short'],
  ])('cannot be sent to %s with %s', async (url, secret) => {
    expect(() => openWebhook({ url, secret }, { now: () => 0 })).toThrow(DefinitionInvalid)
  })
})

it('addresses of this machine, of its network and of nobody are private', () => {
  const inside = [
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1'],
    ...['172.31.255.255', '192.168.1.1', '198.18.0.1', '224.0.0.1', '255.255.255.255', '::', '::1'],
    ...['fc00::1', 'fd12::1', 'fe80::1', 'ff02::1', '::ffff:10.0.0.1', '::ffff:a00:1'],
    ...['64:ff9b::a00:1', '2002:a00:1::'],
  ]
  expect(inside.filter((address) => !isPrivateAddress(address))).toEqual([])
  const outside = ['1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:1.1.1.1']
  expect(outside.filter(isPrivateAddress)).toEqual([])
})
