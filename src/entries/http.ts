/**
 * `pawl/http`: the HTTP API as a handler for any framework, and a server of its own. See
 * `docs/guides/http.md`.
 */
export type { Pawl } from '../engine/pawl.ts'
export type { AccessRequest, Authorize, Identity } from '../http/access.ts'
export { createHttpApi, type HttpApi, type HttpApiOptions } from '../http/api.ts'
export * from '../http/errors.ts'
export { type HttpServer, type HttpServerOptions, serveHttp, toNodeHandler } from '../http/node.ts'
export { type CreatedToken, createToken, type TokenRequest } from '../http/tokens.ts'
export { ACCESS_ROLES, type AccessRole, type TokenInfo } from '../stores/contract/tokens.ts'
