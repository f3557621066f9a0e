/** What a server can refuse. One class and one stable code each. */
import { PawlError } from '../core/errors.ts'

/** A server was to be reachable from elsewhere without a token. */
export class TokenMissing extends PawlError {
  readonly code = 'E_TOKEN_MISSING'
  constructor(host: string) {
    super(
      `The server would be reachable at ${host} by anybody`,
      'Give it a token, or let it listen on 127.0.0.1.',
      { host },
    )
  }
}

/** A request is refused; the status says in which way. */
export class RequestRefused extends PawlError {
  readonly code = 'E_REQUEST_REFUSED'
  readonly status: number
  constructor(status: number, why: string) {
    super(why, 'See the documentation of the telemetry API.', { status })
    this.status = status
  }
}
