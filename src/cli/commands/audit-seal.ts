/** `pawl audit seal|verify`: detects deleted or changed facts. */
import { sealUp } from '../../audit/seal-up.ts'
import {
  type SealCopy,
  type SealFinding,
  verifyArchives,
  verifyExport,
  verifySeals,
} from '../../audit/verify-seals.ts'
import { stamp } from '../../environment/times.ts'
import type { AuditEntry } from '../../stores/audit.ts'
import { LedgerSum, type Seal, type SealTables } from '../../stores/seals.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { linesIn, valuesIn, writeNew } from '../files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, textOf, textsOf } from '../spec.ts'
import { visible } from '../visible.ts'

const PAGE = 100

async function seal(call: Call): Promise<undefined> {
  const { output } = call
  const file = textOf(call, 'out')
  await withPawl(call, async ({ store }) => {
    let made = 0
    for await (const seal of sealUp(store)) {
      made++
      if (output.json) output.record(seal)
      else output.line(sealLine(seal))
      await output.taken()
      if (call.interrupted.aborted || output.gone.aborted) break
    }
    if (made === 0) output.say('There are no new facts to seal.')
    if (file === undefined || call.interrupted.aborted) return
    await writeNew(file, copiesOf(store.seals))
    output.say(`All seals are written to ${visible(file)}. Keep it where others cannot change it.`)
  })
  return undefined
}

function sealLine({ number, first, last, facts, firstAt, lastAt, chain }: Seal): string {
  const when = `${stamp(firstAt)} to ${stamp(lastAt)}`
  return `seal ${number}  ${facts} facts, positions ${first} to ${last}, ${when}  ${chain}`
}

/** Every seal, with the sum of the facts that retention has deleted since. */
async function* copiesOf(tables: SealTables): AsyncGenerator<string> {
  let last = 0
  for (;;) {
    const seals = await tables.list(last, PAGE)
    for (const seal of seals) {
      const removed = new LedgerSum()
      for (const removal of await tables.removalsOf(seal.number)) removed.merge(removal)
      const { facts, sum } = removed
      yield `${JSON.stringify({ ...seal, removed: { facts, sum } })}\n`
    }
    last = seals[seals.length - 1]?.number ?? last
    if (seals.length < PAGE) return
  }
}

async function verify(call: Call): Promise<ExitCode> {
  const [seals, ledger] = [textOf(call, 'seals'), textOf(call, 'ledger')]
  const archives = textsOf(call, 'archive')
  const copies = seals === undefined ? [] : await readCopies(seals)
  if (ledger !== undefined) {
    if (seals === undefined)
      throw new UsageInvalid('--ledger needs the seals to verify it with: --seals seals.ndjson')
    if (archives.length > 0)
      throw new UsageInvalid('--archive can be used only with the store, not with --ledger')
    return report(call, verifyExport(entriesIn(ledger), copies), `${copies.length} seals`)
  }
  return withPawl(call, async ({ store }) => {
    const [last] = await lastOf(store.seals)
    if (last === undefined && seals === undefined) {
      call.output.say('There are no seals. Make them: pawl audit seal.')
      return EXIT.ok
    }
    const findings = async function* () {
      yield* verifySeals(store.seals, copies)
      if (archives.length > 0) yield* verifyArchives(store.seals, linesOfAll(archives))
    }
    const count = Math.max(last?.number ?? 0, copies.length)
    return report(call, findings(), `${count} seals`)
  })
}

async function lastOf(tables: SealTables): Promise<Seal[]> {
  let last: Seal | undefined
  for (;;) {
    const seals = await tables.list(last?.number ?? 0, PAGE)
    last = seals[seals.length - 1] ?? last
    if (seals.length < PAGE) return last === undefined ? [] : [last]
  }
}

async function* linesOfAll(files: readonly string[]): AsyncGenerator<string> {
  for (const file of files) yield* linesIn(file)
}

async function report(
  { output, interrupted }: Call,
  findings: AsyncIterable<SealFinding>,
  what: string,
): Promise<ExitCode> {
  let found = 0
  for await (const finding of findings) {
    found++
    if (output.json) output.record(finding)
    else output.line(`${finding.kind}: ${visible(finding.message)}`)
    await output.taken()
    if (interrupted.aborted || output.gone.aborted) return EXIT.interrupted
  }
  output.say(`${what} verified, ${found} findings.`)
  return found > 0 ? EXIT.findings : EXIT.ok
}

async function readCopies(file: string): Promise<SealCopy[]> {
  const copies: SealCopy[] = []
  for await (const value of valuesIn(file)) {
    if (!isCopy(value)) {
      throw new UsageInvalid(
        `${visible(file)} has a line that is not a seal`,
        'Use a file that was written by: pawl audit seal --out FILE.',
      )
    }
    copies.push(value)
  }
  return copies
}

function isCopy(value: unknown): value is SealCopy {
  const { removed, ...seal } = (value ?? {}) as Record<string, unknown>
  const numbers = ['number', 'at', 'first', 'last', 'facts', 'firstAt', 'lastAt']
  const isSealed =
    numbers.every((field) => Number.isSafeInteger(seal[field])) &&
    typeof seal.sum === 'string' &&
    typeof seal.chain === 'string'
  if (!isSealed || removed === undefined) return isSealed
  const { facts, sum } = (removed ?? {}) as Record<string, unknown>
  return Number.isSafeInteger(facts) && typeof sum === 'string'
}

async function* entriesIn(file: string): AsyncGenerator<AuditEntry> {
  for await (const value of valuesIn(file)) {
    const { pos, fact, payload } = (value ?? {}) as Partial<AuditEntry>
    const isWhole = typeof pos === 'string' && typeof fact === 'object' && fact !== null
    if (!isWhole || payload === undefined) {
      throw new UsageInvalid(
        `${visible(file)} is not a ledger with payloads`,
        'Use a file that was written by: pawl audit export --payloads --out FILE.',
      )
    }
    yield { pos, fact, payload }
  }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'audit seal',
    summary: 'Seal the ledger, so that facts that are deleted or changed later are detected',
    details:
      'A seal is a checksum of up to 10,000 facts, chained to all seals before it. A program ' +
      'that can write to the store can also write seals, so keep a copy elsewhere.',
    options: [{ flags: '--out <file>', says: 'a new file with all seals, as NDJSON' }],
    examples: [
      ['pawl audit seal', 'the facts since the last seal'],
      ['pawl audit seal --out /mnt/worm/seals-2026-11-16.ndjson', 'and a copy of all seals'],
    ],
    run: seal,
  },
  {
    name: 'audit verify',
    summary: 'Verify that no sealed fact is missing, added or changed',
    details:
      'Uses the seals of the store, or a copy of them, which also detects changed seals. Facts ' +
      'that retention has deleted are allowed, and can be compared with its archives. An ' +
      'exported ledger is verified without the store. The exit code is 3 if there are findings.',
    options: [
      { flags: '--seals <file>', says: 'a copy of the seals' },
      { flags: '--archive <file>', says: 'an archive of retention', repeats: true },
      { flags: '--ledger <file>', says: 'an export with payloads, instead of the store' },
    ],
    examples: [
      ['pawl audit verify', 'with the seals of the store'],
      ['pawl audit verify --seals seals.ndjson --archive pruned.ndjson', 'with copies'],
      [
        'pawl audit verify --ledger ledger.ndjson --seals seals.ndjson',
        'an export, without the store',
      ],
    ],
    run: verify,
  },
]
