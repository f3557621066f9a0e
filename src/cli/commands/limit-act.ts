/** `pawl limit set|reset`. */
import { CONCURRENCY_MAX } from '../../core/limits/keys.ts'
import { shortName } from '../../core/limits/short-names.ts'
import { foreseeLimit } from '../../engine/limits/foresee.ts'
import { limitName } from '../../engine/limits/limits.ts'
import type { Pawl } from '../../engine/pawl.ts'
import type { LimitRecord } from '../../stores/contract/limits.ts'
import { UsageInvalid } from '../errors.ts'
import { changeText } from '../limit-text.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, textOf, wholeOf } from '../spec.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'
import { assertDeclared, KEY_OPTION, NAME_ARGUMENT } from './limit.ts'

/** The wanted number; `undefined` removes the operator's number. */
type Wanted = number | undefined

async function set(call: Call): Promise<undefined> {
  const wanted = wholeOf(call, 'concurrency', 0, CONCURRENCY_MAX)
  if (wanted === undefined) {
    throw new UsageInvalid('No number is given', 'Add --concurrency 20; 0 pauses the limit.')
  }
  return act(call, wanted)
}

async function reset(call: Call): Promise<undefined> {
  return act(call, undefined)
}

async function act(call: Call, wanted: Wanted): Promise<undefined> {
  const identity = identityOf(call)
  const [name = ''] = call.args
  await withPawl(call, async (pawl) => {
    // Any queue can get a limit.
    if (!name.startsWith('queue/')) await assertDeclared(pawl, name)
    if (hasFlag(call, 'dryRun')) return foresee(call, pawl, name, wanted)
    const record = await changeLimit(pawl, identity, name, wanted, textOf(call, 'key'))
    await report(call, pawl, name, record)
  })
  return undefined
}

/** Sets or removes the number of an operator. */
export function changeLimit(
  pawl: Pawl,
  identity: { readonly name: string; readonly reason: string },
  name: string,
  wanted: Wanted,
  key?: string,
): Promise<LimitRecord | undefined> {
  const operator = pawl.operator(identity)
  const one = key === undefined ? {} : { key }
  return wanted === undefined
    ? operator.resetLimit(name, one)
    : operator.setLimit(name, { concurrency: wanted, ...one })
}

async function report(
  call: Call,
  pawl: Pawl,
  name: string,
  record: LimitRecord | undefined,
): Promise<void> {
  const { output } = call
  const key = textOf(call, 'key')
  const state = await pawl.limits.get(name, key === undefined ? {} : { key })
  const { gate, max, used, blocked } = state
  if (output.json) {
    output.record({ limit: gate, max, used, blocked, changed: record !== undefined })
    return
  }
  const what = `${shortName(limitName(name))}${key === undefined ? '' : ` ${key}`}`
  const changed = record === undefined ? 'already has this number' : changeText(record)
  output.line(`${visible(what)} ${changed}; ${used} of ${max ?? 'any number'} in use`)
}

/** Says what would change, and how many blocked jobs could start. */
async function foresee(call: Call, pawl: Pawl, name: string, wanted: Wanted): Promise<void> {
  const { output } = call
  const key = textOf(call, 'key')
  const foreseen = { ...(await foreseeLimit(pawl, name, wanted, key)), dryRun: true }
  const { before, after, used, blocked, starts } = foreseen
  if (output.json) {
    output.record({ ...foreseen, changed: before !== after })
    return
  }
  const what = `${shortName(limitName(name))}${key === undefined ? '' : ` ${key}`}`
  const effect =
    before === after
      ? 'nothing would change'
      : `override ${before ?? 'none'} → ${after ?? 'none'}${startsText(starts)}`
  const running = `${used} run, ${blocked} are blocked`
  output.line(visible(`${what}: ${effect}; ${running} (dry run, nothing was written)`))
}

function startsText(starts: number | null): string {
  return starts === null ? '' : `, ${starts} blocked jobs could start`
}

const DRY_RUN = { flags: '--dry-run', says: 'print what would change, and change nothing' }

export const commands: readonly CommandSpec[] = [
  {
    name: 'limit set',
    summary: 'Set how many jobs may run under a limit; 0 pauses it',
    details:
      'The number counts until it is reset, whatever the code says. A lower number stops no job: ' +
      'none is claimed until fewer run. A higher number makes blocked jobs ready at once. ' +
      'Throttles are changed only in code.',
    args: [NAME_ARGUMENT],
    options: [
      { flags: '--concurrency <count>', says: 'how many jobs may run' },
      KEY_OPTION,
      DRY_RUN,
      ...OPERATOR_OPTIONS,
    ],
    examples: [
      ['pawl limit set openai --concurrency 20 --reason "INC-7"', 'a shared limit'],
      ['pawl limit set sync/tenant --key acme --concurrency 0 --reason "INC-7"', 'pause one key'],
      ['pawl limit set queue/mail --concurrency 50 --reason "INC-7" --dry-run', 'preview'],
    ],
    run: set,
  },
  {
    name: 'limit reset',
    summary: 'Remove the number that an operator has set: the number in the code counts again',
    args: [NAME_ARGUMENT],
    options: [KEY_OPTION, DRY_RUN, ...OPERATOR_OPTIONS],
    examples: [['pawl limit reset openai --reason "INC-7 is over"', 'a shared limit']],
    run: reset,
  },
]
