/** `pawl limit list|show|history`. */
import { span } from '../../core/format.ts'
import { isRate, limitOf, parseGate } from '../../core/limits/keys.ts'
import { shortName } from '../../core/limits/short-names.ts'
import { NameUnknown } from '../../engine/errors.ts'
import { limitName } from '../../engine/limits/limits.ts'
import { pagesOf } from '../../engine/pages.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { moment } from '../../environment/times.ts'
import type { GateInfo, LimitInfo } from '../../stores/contract/limits.ts'
import type { Store } from '../../stores/contract/store.ts'
import {
  blockedText,
  COLUMNS,
  cellsOf,
  type LimitLine,
  maxText,
  overrideText,
  recordText,
} from '../limit-text.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, hasFlag, type OptionSpec, textOf } from '../spec.ts'
import { visible } from '../visible.ts'

/** The options of commands that name one limit. */
export const KEY_OPTION: OptionSpec = { flags: '--key <key>', says: 'one key of the limit' }

export const NAME_ARGUMENT = {
  flags: '<limit>',
  says: 'openai, sync/tenant, type/sync, queue/mail or rate/sync/calls',
}

const NAMES_SHOWN = 10
const HOLDERS_SHOWN = 20
const RECORDS_SHOWN = 10

async function list(call: Call): Promise<undefined> {
  const { output } = call
  const { limit } = walkOf(call)
  await withPawl(call, async (pawl) => {
    const { store } = pawl
    const now = store.now()
    const lines = await linesOf(call, pawl, limit + 1)
    const shown = lines.slice(0, limit)
    if (output.json) {
      for (const { gate, setting, holder } of shown) output.record({ ...gate, setting, holder })
    } else {
      const rows = shown.map((line) => cellsOf(line, now))
      output.table(COLUMNS, rows)
    }
    if (lines.length === 0) output.say(noneText(call))
    if (lines.length > limit) output.say('There are more: --limit, or pawl limit show <limit>')
  })
  return undefined
}

function noneText(call: Call): string {
  if (hasFlag(call, 'blocked')) return 'No job is blocked by a limit.'
  return hasFlag(call, 'throttles') ? 'No throttle is declared.' : 'No limit is declared.'
}

/** Gates by limit; a limit or a set key that nothing uses has a line, too. */
async function linesOf(call: Call, { store, limits }: Pawl, max: number): Promise<LimitLine[]> {
  const onlyBlocked = hasFlag(call, 'blocked')
  const wantsThrottles = hasFlag(call, 'throttles')
  const settings = (await limits.list()).filter(({ name }) => isRate(name) === wantsThrottles)
  const byName = new Map(settings.map((setting) => [setting.name, setting]))
  const names = [...new Set(settings.map(({ name }) => limitOf(name)))]
  const lines: LimitLine[] = []
  for (const name of names) {
    const left = max - lines.length
    if (left <= 0) break
    const filter = { limit: name, ...(onlyBlocked && { waiting: true as const }) }
    const { items } = await store.limits.gates(filter, { limit: Math.min(left, 1000) })
    const gates = onlyBlocked
      ? items.filter(({ blocked }) => blocked > 0)
      : [...items, ...(await idleGates(store, name, settings, items))]
    for (const gate of gates.slice(0, left)) lines.push(await lineOf(store, gate, byName))
  }
  return lines
}

/** The limit itself if it has no gates, and keys that an operator has set. */
async function idleGates(
  { limits }: Store,
  limit: string,
  settings: readonly LimitInfo[],
  used: readonly GateInfo[],
): Promise<GateInfo[]> {
  const known = new Set(used.map(({ gate }) => gate))
  const isShown = ({ name, override }: LimitInfo) =>
    name === limit ? known.size === 0 : limitOf(name) === limit && override !== null
  const names = settings.filter(isShown).map(({ name }) => name)
  return Promise.all(names.filter((name) => !known.has(name)).map((name) => limits.gate(name)))
}

async function lineOf(
  { limits }: Store,
  gate: GateInfo,
  settings: ReadonlyMap<string, LimitInfo>,
): Promise<LimitLine> {
  const { limit, key } = gate
  const own = settings.get(gate.gate)
  const setting = own?.override != null ? own : (settings.get(limit) ?? own)
  const [holder] = gate.used === 1 ? await limits.holders(gate.gate, 1) : []
  return {
    limit,
    gate,
    ...(key !== undefined && { key }),
    ...(setting !== undefined && { setting }),
    ...(holder !== undefined && { holder }),
  }
}

/** Throws `NameUnknown` with names that exist if no such limit was declared. */
export async function assertDeclared({ limits }: Pawl, name: string): Promise<void> {
  const known = await limits.list()
  const full = limitName(name)
  if (known.some((one) => limitOf(one.name) === full)) return
  const names = new Set(known.map((one) => shortName(limitOf(one.name))))
  throw new NameUnknown('limit', name, [...names].slice(0, NAMES_SHOWN))
}

async function show(call: Call): Promise<undefined> {
  const { output } = call
  const [name = ''] = call.args
  const key = textOf(call, 'key')
  await withPawl(call, async (pawl) => {
    await assertDeclared(pawl, name)
    const { limits, now } = pawl.store
    const gate = limitName(name, key)
    const { setting, ...state } = await pawl.limits.get(name, key === undefined ? {} : { key })
    const holders = await limits.holders(gate, HOLDERS_SHOWN)
    const records = (await limits.records({ name: gate }, { limit: RECORDS_SHOWN })).items
    if (output.json) {
      output.record({ ...state, setting, holders, records })
      return
    }
    printState(call, { limit: state.limit, gate: state, ...(setting && { setting }) })
    const time = now.call(pawl.store)
    for (const { id, type, worker, startedAt } of holders) {
      output.line(`  ${id} ${visible(type)} on ${visible(worker)} for ${span(time - startedAt)}`)
    }
    const hidden = state.used - holders.length
    if (hidden > 0) output.line(`  and ${hidden} more`)
    for (const record of records) output.line(visible(recordText(record)))
  })
  return undefined
}

function printState({ output, environment }: Call, line: LimitLine): void {
  const { gate, setting } = line
  const key = gate.key === undefined ? '' : ` ${gate.key}`
  const use = isRate(gate.gate) ? maxText(line) : `${gate.used} of ${maxText(line)} in use`
  const blocked = `${blockedText(gate)} blocked`
  output.line(visible(`${shortName(gate.limit)}${key}: ${use}, ${blocked}`))
  if (gate.opensAt !== undefined) {
    output.line(`  no job starts before ${moment(gate.opensAt, environment.clock.now())}`)
  }
  for (const text of overrideText(setting)) output.line(visible(`  set by ${text}`))
}

async function history(call: Call): Promise<undefined> {
  const { output, interrupted } = call
  const [name] = call.args
  const key = textOf(call, 'key')
  const filter = name === undefined ? {} : { name: limitName(name, key) }
  let after: string | undefined
  let shown = 0
  await withPawl(call, async ({ store }) => {
    const pages = pagesOf((page) => store.limits.records(filter, page), walkOf(call))
    for await (const page of pages) {
      after = page.after
      shown += page.items.length
      for (const record of page.items) {
        const parts = parseGate(record.name)
        if (output.json) output.record({ ...record, limit: parts?.limit, key: parts?.key })
        else output.line(visible(recordText(record)))
      }
      await output.taken()
      if (interrupted.aborted || output.gone.aborted) break
    }
  })
  if (shown === 0) output.say('No limit was ever declared or set.')
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'limit list',
    summary: 'List limits: jobs that run and are blocked, the number in force, who has set it',
    details:
      'A limit with keys has one line for each key in use. With --throttles the limits are ' +
      'those of starts in a period.',
    options: [
      { flags: '--throttles', says: 'throttles instead of concurrency limits' },
      { flags: '--blocked', says: 'only those that block jobs' },
      { flags: '--limit <count>', says: 'list at most this many (50 if absent)' },
    ],
    examples: [
      ['pawl limit list', 'all limits'],
      ['pawl limit list --blocked', 'what keeps jobs from running'],
      ['pawl limit list --throttles', 'throttles, and when they open'],
    ],
    run: list,
  },
  {
    name: 'limit show',
    summary: 'Show a limit or one key of it: use, holders and the last changes',
    args: [NAME_ARGUMENT],
    options: [KEY_OPTION],
    examples: [
      ['pawl limit show openai', 'who holds it, and who has set it'],
      ['pawl limit show sync/tenant --key acme', 'one key'],
    ],
    run: show,
  },
  {
    name: 'limit history',
    summary: 'List changes of limits, newest first, with operator and reason',
    args: [{ flags: '[limit]', says: 'the name of the limit; all if absent' }],
    options: [KEY_OPTION, ...PAGING_OPTIONS],
    examples: [
      ['pawl limit history openai', 'changes of one limit'],
      ['pawl limit history --json | jq "select(.operator == \\"ann\\")"', 'what ann changed'],
    ],
    run: history,
  },
]
