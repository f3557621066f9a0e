/**
 * Connection strings with several hosts, as libpq reads them and `pg` does not:
 *
 *   postgres://user:password@a:5432,b:5433,[::1]/database?target_session_attrs=read-write
 *
 * A connection is made to one host at a time, beginning with the one that served last. If a host
 * cannot be reached, or is read-only although 'read-write' is requested, the next connection goes
 * to the next host. `target_session_attrs` is:
 *
 *   read-write, primary   only a server that takes writes; the default if there are several hosts
 *   any                   any server that answers; the default if there is one host
 *
 * The other values of libpq request a server that refuses writes, which no store can use.
 */

import { withoutSecrets } from '../../core/redact.ts'
import { StoreUnusable } from '../errors.ts'

/** Which servers are accepted. */
type Attributes = 'any' | 'read-write'

const ATTRIBUTES: Readonly<Record<string, Attributes>> = {
  any: 'any',
  'read-write': 'read-write',
  primary: 'read-write',
}

const HOSTS_MAX = 32

/** The scheme, user and password; the hosts; the path and the parameters. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)([/?#].*)?$/s
const HOST = /^(\[[0-9a-fA-F:.%]+\]|[^:[\]\s]*)(?::(\d{1,5}))?$/
const ATTRIBUTE = /([?&])target_session_attrs=([^&#]*)(&?)/

/** The hosts of one connection string, and whose turn it is. */
export class Hosts {
  /** A connection string for each host, without what `pg` does not know. */
  readonly urls: readonly string[]
  /** Whether a server must take writes. */
  readonly mustWrite: boolean
  #turn = 0

  constructor(urls: readonly string[], mustWrite: boolean) {
    this.urls = urls
    this.mustWrite = mustWrite
  }

  /** The number of the host that the next connection goes to. */
  get turn(): number {
    return this.#turn
  }

  /** The connection string of a host. */
  urlOf(host: number): string {
    return this.urls[host] as string
  }

  /**
   * A host did not serve. If several connections report it at once, only the first has an effect.
   */
  passOver(host: number): void {
    if (this.#turn === host) this.#turn = (host + 1) % this.urls.length
  }
}

/** Parses a connection string; throws `StoreUnusable` if it is not valid. */
export function hostsOf(connectionString: string): Hosts {
  const parts = PARTS.exec(connectionString)
  // Sockets and other forms that `pg` knows.
  if (parts === null) return new Hosts([connectionString], false)
  const [, before = '', list = '', after = ''] = parts
  const names = list.split(',')
  const refuse = (why: string, hint: string) =>
    new StoreUnusable(withoutSecrets(connectionString), why, hint)
  if (names.length > HOSTS_MAX) {
    throw refuse(`it names more than ${HOSTS_MAX} hosts`, 'Name fewer.')
  }
  const wanted = ATTRIBUTE.exec(after)
  const attributes = wanted === null ? undefined : decodeURIComponent(wanted[2] ?? '')
  if (attributes !== undefined && !Object.hasOwn(ATTRIBUTES, attributes)) {
    const known = Object.keys(ATTRIBUTES).join(', ')
    throw refuse(
      `target_session_attrs=${attributes} does not name a server that takes writes`,
      `Use one of ${known}.`,
    )
  }
  const rest = after.replace(ATTRIBUTE, (_, mark: string, _value, more: string) =>
    more === '' ? '' : mark,
  )
  if (names.length > 1) {
    for (const name of names) {
      const port = Number(HOST.exec(name)?.[2] ?? 5432)
      if (name !== '' && HOST.test(name) && port >= 1 && port <= 65_535) continue
      throw refuse(`"${name}" is not a host`, 'Write host or host:port, with commas in between.')
    }
  }
  const mustWrite =
    attributes === undefined ? names.length > 1 : ATTRIBUTES[attributes] === 'read-write'
  return new Hosts(
    names.map((name) => `${before}${name}${rest}`),
    mustWrite,
  )
}
