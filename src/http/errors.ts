/** The errors of the HTTP servers. Each has its own class and a stable code. */
import { PawlError } from '../core/errors.ts'

/** A server that other machines can reach needs a token of at least 16 characters. */
export class TokenMissing extends PawlError {
  readonly code = 'E_TOKEN_MISSING'
  constructor(
    host: string,
    hint = 'Set a token (`token`, or PAWL_TELEMETRY_TOKEN), or listen on 127.0.0.1.',
  ) {
    super(
      `Other machines could use the server at ${host} without a token of 16 characters or more`,
      hint,
      { host },
    )
  }
}

/** A request was rejected; `status` is the HTTP status. */
export class RequestRefused extends PawlError {
  readonly code = 'E_REQUEST_REFUSED'
  readonly status: number
  constructor(
    status: number,
    why: string,
    hint = 'Change the request as the message says, and send it again.',
  ) {
    super(why, hint, { status })
    this.status = status
  }
}

/** The request needs a token, and has none that is valid. */
export class LoginRequired extends PawlError {
  readonly code = 'E_LOGIN_REQUIRED'
  constructor(why: string) {
    super(
      why,
      'Send "Authorization: Bearer TOKEN". Create a token on the server: pawl token create.',
    )
  }
}

/** Too many wrong tokens came from this address. */
export class LoginsLimited extends PawlError {
  readonly code = 'E_LOGINS_LIMITED'
  readonly retryAfterMs: number
  constructor(retryAfterMs: number) {
    super(
      'Too many wrong tokens were sent from this address',
      'Wait a minute, then send the request with a valid token.',
      { retryAfterMs },
    )
    this.retryAfterMs = retryAfterMs
  }
}

/** The caller is known, but its roles do not allow the request. */
export class RoleMissing extends PawlError {
  readonly code = 'E_ROLE_MISSING'
  constructor(name: string, roles: readonly string[], needed: readonly string[]) {
    super(
      `${name} has the roles ${roles.join(', ')}, and the request needs ${needed.join(' or ')}`,
      'Use a token with such a role: pawl token create --role ROLE.',
      { roles, needed },
    )
  }
}

/** A browser sent the request from another site, or to a host name that is not expected. */
export class OriginRefused extends PawlError {
  readonly code = 'E_ORIGIN_REFUSED'
  constructor(header: 'Host' | 'Origin' | 'Sec-Fetch-Site') {
    super(
      `The header ${header} of the request is not accepted`,
      'Use the address of the server. Behind a proxy, list its host name in the option `hosts`.',
      { header },
    )
  }
}

/** The server has as many requests, streams or claims open as it allows. */
export class ServerBusy extends PawlError {
  readonly code = 'E_SERVER_BUSY'
  constructor(what: string, max: number) {
    super(`The server has ${max} open ${what} already`, 'Send the request again later.', {
      what,
      max,
    })
  }
}
