/** `pawl token create|list|revoke`: tokens of the HTTP API. */

import { NameUnknown } from '../../engine/errors.ts'
import { relative, stamp } from '../../environment/times.ts'
import { createToken, tokenStateOf } from '../../http/tokens.ts'
import { ACCESS_ROLES, type AccessRole, type TokenInfo } from '../../stores/contract/tokens.ts'
import { eachOf } from '../each.ts'
import { UsageInvalid } from '../errors.ts'
import type { ExitCode } from '../exit-codes.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, textOf, textsOf } from '../spec.ts'
import { readDuration } from '../times.ts'
import { visible } from '../visible.ts'

const LISTED_MAX = 1000

function operatorIn({ settings }: Call): string {
  const { value } = settings.operator
  if (value !== undefined) return value
  throw new UsageInvalid('The operator is not known', 'Add --operator NAME, or set PAWL_OPERATOR.')
}

async function create(call: Call): Promise<undefined> {
  const { output } = call
  const [name = ''] = call.args
  const roles = textsOf(call, 'role') as readonly AccessRole[]
  if (roles.length === 0) {
    throw new UsageInvalid(
      'A role is required',
      `Add --role with one of ${ACCESS_ROLES.join(', ')}.`,
    )
  }
  const expires = textOf(call, 'expires')
  const lifeMs = expires === undefined ? undefined : readDuration(expires, 'expires')
  const createdBy = operatorIn(call)
  await withPawl(call, async (pawl) => {
    const created = await createToken(pawl, {
      name,
      roles: [...new Set(roles)],
      createdBy,
      ...(lifeMs !== undefined && { expiresAt: pawl.store.now() + lifeMs }),
    })
    if (output.json) output.record({ ...created })
    else output.line(created.token)
    output.say('The token is shown only now: the store has its hash.')
  })
  return undefined
}

async function list(call: Call): Promise<undefined> {
  const { output } = call
  await withPawl(call, async ({ store }) => {
    const now = store.now()
    const all = await store.tokens.list(LISTED_MAX)
    const shown = hasFlag(call, 'all')
      ? all
      : all.filter((token) => stateOf(token, now) === 'valid')
    if (output.json) {
      for (const token of shown) output.record({ ...token, state: stateOf(token, now) })
      return
    }
    if (shown.length === 0) output.say('There are no tokens.')
    const heads = ['id', 'name', 'roles', 'state', 'created', 'by', 'expires']
    output.table(
      heads.map((head) => ({ head })),
      shown.map((token) => [
        ...[token.id, token.name, token.roles.join(', '), stateOf(token, now)],
        output.isTerminal ? relative(token.createdAt, now) : stamp(token.createdAt),
        token.createdBy,
        token.expiresAt === undefined ? '' : stamp(token.expiresAt),
      ]),
    )
  })
  return undefined
}

function stateOf(token: TokenInfo, now: number): string {
  const state = tokenStateOf(token, now)
  return state === 'revoked' ? `revoked by ${token.revokedBy}` : state
}

async function revoke(call: Call): Promise<ExitCode> {
  const by = operatorIn(call)
  return withPawl(call, ({ store }) =>
    eachOf(call, 'id', call.args, async (id) => {
      const answer = await store.tokens.revoke(id, by)
      if (answer === undefined) throw new NameUnknown('token', visible(id), [])
      if (call.output.json) call.output.record({ id, changed: answer === 'revoked' })
      else call.output.line(`${visible(id)} ${answer === 'same' ? 'was already revoked' : answer}`)
    }),
  )
}

const OPERATOR = {
  flags: '--operator <name>',
  says: 'your name: PAWL_OPERATOR, or the user of this system',
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'token create',
    summary: 'Create a token for the HTTP API, and print it once',
    details:
      'The name is recorded as the operator of all that the token is used for. Roles: read (all ' +
      'but changes), operate (read, enqueue, and change jobs, effects, queues and runs), work ' +
      '(enqueue, claim and report jobs), admin (everything).',
    args: [{ flags: '<name>', says: 'the owner of the token: a person or a program' }],
    options: [
      {
        flags: '--role <role>',
        says: 'what it allows (required)',
        choices: ACCESS_ROLES,
        repeats: true,
      },
      { flags: '--expires <duration>', says: 'how long it is valid (30d); without end if absent' },
      OPERATOR,
    ],
    examples: [
      ['pawl token create ada --role operate --expires 30d', 'for a person'],
      ['pawl token create billing --role work', 'for a program that enqueues and works'],
    ],
    run: create,
  },
  {
    name: 'token list',
    summary: 'List the tokens of the HTTP API, without their secrets',
    options: [{ flags: '--all', says: 'also those that are expired or revoked' }],
    examples: [['pawl token list', 'valid tokens']],
    run: list,
  },
  {
    name: 'token revoke',
    summary: 'Revoke tokens of the HTTP API; servers refuse them within five seconds',
    args: [{ flags: '<ids...>', says: 'ids of tokens: the part after pawl_' }],
    options: [OPERATOR],
    examples: [['pawl token revoke 0a1b2c3d4e5f', 'one token']],
    run: revoke,
  },
]
