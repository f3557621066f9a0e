/** The tokens of the API. Only `admin` may list, create and revoke them. */
import { NameUnknown } from '../../engine/errors.ts'
import { ACCESS_ROLES, type TokenInfo } from '../../stores/contract/tokens.ts'
import { operatorName, WHO } from '../operating.ts'
import { ADMIN, type Route, type RouteCall } from '../route.ts'
import { count, flag, list, name, oneOf, record, text, time } from '../schema.ts'
import { createToken, tokenStateOf } from '../tokens.ts'

const LISTED_MAX = 1000
const LIFE_MAX_MS = 100 * 366 * 24 * 60 * 60 * 1000

async function listTokens({ pawl }: RouteCall): Promise<unknown> {
  const now = pawl.store.now()
  const tokens = await pawl.store.tokens.list(LISTED_MAX)
  return { items: tokens.map((token) => shown(token, now)) }
}

function shown(token: TokenInfo, now: number) {
  return { ...token, state: tokenStateOf(token, now) }
}

async function create(call: RouteCall): Promise<unknown> {
  const { pawl, body } = call
  const now = pawl.store.now()
  const created = await createToken(pawl, {
    name: body.name,
    roles: body.roles,
    createdBy: operatorName(call),
    ...(body.lifeMs !== undefined && { expiresAt: now + body.lifeMs }),
  })
  return shown(created, now)
}

async function revoke(call: RouteCall): Promise<unknown> {
  const { id = '' } = call.params
  const answer = await call.pawl.store.tokens.revoke(id, operatorName(call))
  if (answer === undefined) throw new NameUnknown('token', id, [])
  return { id, changed: answer === 'revoked' }
}

const ROLE = oneOf(ACCESS_ROLES)
const TOKEN = {
  id: text(),
  name: text('its owner; the ledger records it as the operator'),
  roles: list(ROLE),
  createdAt: time(),
  createdBy: text(),
  state: oneOf(['valid', 'expired', 'revoked']),
}
const ENDS = { expiresAt: time(), revokedAt: time(), revokedBy: text() }

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/v1/tokens',
    operation: 'listTokens',
    summary: `Lists the last ${LISTED_MAX} tokens without their secrets, the newest first.`,
    roles: ADMIN,
    answer: record({ items: list(record(TOKEN, ENDS)) }),
    run: listTokens,
  },
  {
    method: 'POST',
    path: '/api/v1/tokens',
    operation: 'createToken',
    summary: 'Creates a token. The answer is the only one that contains it.',
    roles: ADMIN,
    body: record(
      {
        name: name('the owner of the token: a person or a program'),
        roles: list(ROLE, { minItems: 1, maxItems: ACCESS_ROLES.length, uniqueItems: true }),
      },
      {
        lifeMs: count('how long it is valid; without end if absent', 1000, LIFE_MAX_MS),
        ...WHO,
      },
    ),
    status: 201,
    answer: record({ ...TOKEN, token: text('the secret; the store has its hash') }, ENDS),
    run: create,
  },
  {
    method: 'POST',
    path: '/api/v1/tokens/{id}/revoke',
    operation: 'revokeToken',
    summary: 'Revokes a token. Servers refuse it within five seconds.',
    roles: ADMIN,
    body: record({}, WHO),
    errors: [404],
    answer: record({ id: text(), changed: flag('false if it was revoked before') }),
    run: revoke,
  },
]
