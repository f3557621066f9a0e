/**
 * Who may use the API.
 *
 * 1. The headers of browsers: `Host` must be one of the expected names, and `Origin` must be the
 *    host itself. So no other site can use the API through a person's browser, also not with a
 *    domain of its own that leads to this machine.
 * 2. The caller: a token, or what the `authorize` hook returns. A client on the same machine needs
 *    neither, if the server was started so, and only if the request names this machine as its host
 *    and came through no proxy.
 * 3. The roles of the caller.
 */
import type { AccessRole } from '../stores/contract/tokens.ts'
import { LoginRequired, LoginsLimited, OriginRefused, RoleMissing } from './errors.ts'
import type { Incoming } from './exchange.ts'
import type { FailedLogins } from './limits.ts'
import type { Tokens } from './tokens.ts'

/** Who sent a request. */
export interface Identity {
  /** The ledger records it as the operator. */
  readonly name: string
  readonly roles: readonly AccessRole[]
  /** A client on this machine without a token may say who it is. */
  readonly isLocal?: true
}

/** What the `authorize` hook learns about a request. */
export interface AccessRequest {
  readonly method: string
  /** The path without the query. */
  readonly path: string
  /** Returns a header by its name. */
  readonly header: (name: string) => string | undefined
}

/** Returns who sent the request, or undefined if the caller is not known. */
export type Authorize = (
  request: AccessRequest,
) => Omit<Identity, 'isLocal'> | undefined | Promise<Omit<Identity, 'isLocal'> | undefined>

export interface AccessRules {
  readonly tokens: Tokens
  readonly authorize: Authorize | undefined
  /** The host names that clients may use; any if undefined, except without a token. */
  readonly hosts: readonly string[] | undefined
  /** Whether clients on this machine need no token. */
  readonly loopback: boolean
  readonly failures: FailedLogins
}

/** The names by which clients on this machine reach a server. */
export const LOOPBACK_HOSTS: readonly string[] = ['127.0.0.1', '::1', 'localhost']

const LOCAL_ROLES: readonly AccessRole[] = ['admin']

/** Throws `OriginRefused` if the request is for another host than the expected ones. */
export function checkHost({ header }: Incoming, hosts: readonly string[] | undefined): void {
  const name = nameIn(header('host'))
  if (name === undefined) throw new OriginRefused('Host')
  if (hosts !== undefined && !hosts.includes(name) && !LOOPBACK_HOSTS.includes(name)) {
    throw new OriginRefused('Host')
  }
}

/** Throws `OriginRefused` if a browser may have been misled to send the request. */
export function checkSite(request: Incoming, hosts: readonly string[] | undefined): void {
  checkHost(request, hosts)
  const { header } = request
  const site = header('sec-fetch-site')
  if (site === 'cross-site' || site === 'same-site') throw new OriginRefused('Sec-Fetch-Site')
  const origin = header('origin')
  if (origin === undefined) return
  const from = URL.canParse(origin) ? new URL(origin) : undefined
  const isOwn = from?.host === header('host')?.toLowerCase()
  const isListed = from !== undefined && (hosts ?? []).includes(unbracketed(from.hostname))
  if (!isOwn && !isListed) throw new OriginRefused('Origin')
}

/** Returns the caller. Throws `LoginRequired`, `LoginsLimited` or `RoleMissing`. */
export async function identify(
  request: Incoming,
  path: string,
  needed: readonly AccessRole[],
  rules: AccessRules,
): Promise<Identity> {
  const identity = await callerOf(request, path, rules)
  const { name, roles } = identity
  if (roles.includes('admin') || needed.some((role) => roles.includes(role))) return identity
  throw new RoleMissing(name, roles, needed.length === 0 ? ['admin'] : needed)
}

async function callerOf(request: Incoming, path: string, rules: AccessRules): Promise<Identity> {
  const { header, method } = request
  const bearer = /^bearer +(\S+)$/i.exec(header('authorization') ?? '')?.[1]
  const token = bearer === undefined ? undefined : await tokenOf(request, bearer, rules)
  if (token !== undefined) return token
  const asked = { method, path, header: (one: string) => header(one.toLowerCase()) }
  const own = await Promise.resolve(rules.authorize?.(asked))
  if (own !== undefined) return { name: own.name, roles: own.roles }
  if (bearer !== undefined) throw new LoginRequired('The token is not valid')
  if (rules.loopback && isLocal(request)) {
    return { name: 'loopback', roles: LOCAL_ROLES, isLocal: true }
  }
  throw new LoginRequired('The request has no token')
}

/** Known tokens are looked up first, so that wrong ones do not lock out their owners. */
async function tokenOf(
  { peer = 'unknown' }: Incoming,
  bearer: string,
  { tokens, failures, authorize }: AccessRules,
): Promise<Identity | undefined> {
  const known = tokens.remembered(bearer)
  if (known !== undefined) return known
  const waitMs = failures.waitMs(peer)
  if (waitMs > 0) throw new LoginsLimited(waitMs)
  const found = await tokens.identify(bearer)
  // The hook may know bearer tokens of its own.
  if (found === undefined && authorize === undefined) failures.add(peer)
  return found
}

function isLocal({ peer, header }: Incoming): boolean {
  const isProxied = ['forwarded', 'x-forwarded-for', 'via'].some((one) => header(one) !== undefined)
  const name = nameIn(header('host'))
  return !isProxied && isLoopback(peer) && name !== undefined && LOOPBACK_HOSTS.includes(name)
}

/** Whether an address is one of this machine. */
function isLoopback(address: string | undefined): boolean {
  return (
    address !== undefined && /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/.test(address)
  )
}

/** The host name of a `Host` header, without its port; undefined if it is not one. */
function nameIn(host: string | undefined): string | undefined {
  const [, name] = /^(\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i.exec(host ?? '') ?? []
  return name === undefined ? undefined : unbracketed(name.toLowerCase())
}

function unbracketed(name: string): string {
  return name.replace(/^\[(.*)\]$/, '$1')
}
