/**
 * Sends notices to a receiver over HTTP. The request:
 *
 *   POST, content-type application/json; the body is the notice
 *   pawl-key         the same for every delivery of this notice, so that receivers detect repeats
 *   pawl-timestamp   when this delivery was signed, in seconds
 *   pawl-signature   v1=HMAC-SHA256(secret, timestamp + "." + body), in hexadecimal
 *
 * A status from 200 to 299 means that the notice is delivered. Redirects are not followed, because
 * they lead to an address that was not configured. Private and local addresses are refused unless
 * `allowPrivate` is set: a person who may choose the URL must not reach services that only this
 * machine can reach. The address that was checked is the one that is connected to, so a second DNS
 * answer cannot bypass the check.
 */
import { createHmac } from 'node:crypto'
import { lookup } from 'node:dns'
import { type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net'
import { flag, record } from '../../core/checks.ts'
import type { Duration } from '../../core/durations.ts'
import { DefinitionInvalid } from '../../core/errors.ts'
import { RetryAfter, Terminal } from '../../core/failure.ts'
import { checkFields, type FieldChecks, unchecked } from '../../core/fields.ts'
import type { Clock } from '../../core/ports.ts'
import { DELAY_MAX_MS } from '../../core/retry.ts'
import { encodeValue } from '../../core/values.ts'
import type { Delivery } from './effects.ts'

/** The receiver of notices, and the secret for signatures. */
export interface WebhookOptions {
  /** http: or https:, without a user name or password. */
  readonly url: string
  /** At least 16 characters, known to the receiver only. */
  readonly secret: string
  /** How long one delivery may take; 10 seconds if absent. */
  readonly timeout?: Duration
  /** Additional headers; they cannot replace those of the notice. */
  readonly headers?: Readonly<Record<string, string>>
  /** Allows private and local addresses, such as localhost. */
  readonly allowPrivate?: boolean
}

const OPTIONS: FieldChecks<WebhookOptions> = {
  // Checked below, with messages of their own.
  url: unchecked,
  secret: unchecked,
  timeout: unchecked,
  headers: record,
  allowPrivate: flag,
}

const TIMEOUT = '10s'
const SECRET_MIN = 16
const BOUNDS = { depthMax: 8, bytesMax: 256 * 1024 }

/** Networks that are not public. */
const PRIVATE = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  PRIVATE.addSubnet(network, bits, 'ipv4')
}
for (const [network, bits] of [
  ['::', 127],
  ['64:ff9b::', 96],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  PRIVATE.addSubnet(network, bits, 'ipv6')
}

/** Whether an address is private, local or reserved. */
export function isPrivateAddress(address: string): boolean {
  const mapped = /^::ffff:(.+)$/i.exec(address)?.[1]
  if (mapped !== undefined && isIP(mapped) !== 4) return true
  const plain = mapped ?? address
  return PRIVATE.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
}

/** Checks the options and returns the function that delivers a notice. */
export function openWebhook(
  options: WebhookOptions,
  clock: Clock,
): { readonly deliver: (delivery: Delivery) => Promise<void>; readonly timeout: Duration } {
  checkFields(options, OPTIONS, {
    what: 'notify',
    prefix: 'notify.',
    refuse: (field, why) => new DefinitionInvalid(field, why),
  })
  const url = urlOf(options.url)
  const { secret, headers = {}, allowPrivate = false, timeout = TIMEOUT } = options
  if (typeof secret !== 'string' || secret.length < SECRET_MIN) {
    throw new DefinitionInvalid('notify.secret', `must have ${SECRET_MIN} characters or more`)
  }
  const deliver = async ({ payload, key, signal }: Delivery) => {
    const body = encodeValue(payload, BOUNDS)
    const timestamp = Math.floor(clock.now() / 1000)
    const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')
    const own = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'pawl',
      'pawl-key': key,
      'pawl-timestamp': timestamp,
      'pawl-signature': `v1=${signature}`,
    }
    const response = await send(url, { ...lowered(headers), ...own }, body, signal, allowPrivate)
    judge(response)
  }
  return { deliver, timeout }
}

function urlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new DefinitionInvalid('notify.url', 'must be a URL that begins with http: or https:')
  }
  if (url.username !== '' || url.password !== '') {
    throw new DefinitionInvalid('notify.url', 'must not contain a user name or password')
  }
  return url
}

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, to]) => [name.toLowerCase(), to]))
}

function send(
  url: URL,
  headers: Record<string, string | number>,
  body: string,
  signal: AbortSignal,
  allowPrivate: boolean,
): Promise<IncomingMessage> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // `lookup` is not called for a literal address, so it is checked here.
  if (!allowPrivate && isIP(host) !== 0 && isPrivateAddress(host)) throw privateAddress(host)
  const request = url.protocol === 'https:' ? overHttps : overHttp
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, signal, agent: false } as const
    const sent = request(url, allowPrivate ? options : { ...options, lookup: lookUpPublic })
    sent.on('error', reject)
    sent.on('response', (response) => {
      // The body of the response is ignored.
      response.resume()
      response.on('error', reject)
      response.on('end', () => resolve(response))
    })
    sent.end(body)
  })
}

/** Looks up a name; fails if one of its addresses is private. */
const lookUpPublic: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '', 0)
    const inside = addresses.find(({ address }) => isPrivateAddress(address))
    if (inside !== undefined) return callback(privateAddress(inside.address), '', 0)
    const [first] = addresses
    if (options.all) return callback(null, addresses)
    callback(null, first?.address ?? '', first?.family ?? 0)
  })
}

function privateAddress(address: string): Terminal {
  return new Terminal(`${address} is a private address; set notify.allowPrivate to allow it`)
}

function judge({ statusCode = 0, headers }: IncomingMessage): void {
  if (statusCode >= 200 && statusCode < 300) return
  const why = `The receiver answered ${statusCode}`
  const seconds = Number(headers['retry-after'])
  if ((statusCode === 429 || statusCode === 503) && seconds > 0) {
    throw new RetryAfter(Math.min(seconds * 1000, DELAY_MAX_MS), why)
  }
  throw new Error(why)
}
