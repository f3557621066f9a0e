/** `pawl audit list|export`: the facts of jobs. */
import { csvHead, csvLine } from '../../audit/csv.ts'
import { auditOf } from '../../engine/audit.ts'
import { pagesOf } from '../../engine/pages.ts'
import type { AuditEntry } from '../../stores/audit.ts'
import { AUDIT_OPTIONS, auditFilterOf } from '../audit-filters.ts'
import { writeNew } from '../files.ts'
import { withPawl } from '../opening.ts'
import { PAGING_OPTIONS, walkOf } from '../paging.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { factLine } from '../story.ts'
import { visible, visibleJson } from '../visible.ts'

async function list(call: Call): Promise<undefined> {
  const { output, interrupted } = call
  const walk = walkOf(call)
  // Wrong options are reported before the store is opened.
  auditFilterOf(call, call.environment.clock.now())
  const order = hasFlag(call, 'oldest') ? 'oldest' : 'newest'
  let after: string | undefined
  let shown = 0
  await withPawl(call, async ({ store }) => {
    const filter = auditFilterOf(call, store.now())
    for await (const page of pagesOf((page) => store.audit(filter, { ...page, order }), walk)) {
      after = page.after
      shown += page.items.length
      for (const { pos, fact } of page.items) {
        if (output.json) output.record({ pos, ...fact })
        else output.line(`${visible(fact.jobId)} ${factLine(fact)}`)
      }
      for (const { pos, jobId, seq, unreadable } of page.unreadable ?? []) {
        if (output.json) output.record({ pos, jobId, seq, unreadable })
        else output.line(`${visible(jobId)} fact ${seq} cannot be read: ${visible(unreadable)}`)
      }
      await output.taken()
      if (interrupted.aborted || output.gone.aborted) break
    }
  })
  if (shown === 0) output.say('No fact matches.')
  if (after !== undefined) output.say(`There may be more: --after ${after}`)
  return undefined
}

async function exportAll(call: Call): Promise<undefined> {
  const { output } = call
  auditFilterOf(call, call.environment.clock.now())
  const format = textOf(call, 'format') ?? 'ndjson'
  const file = textOf(call, 'out')
  const payloads = hasFlag(call, 'payloads')
  await withPawl(call, async ({ store }) => {
    const filter = auditFilterOf(call, store.now())
    const entries = counted(call, auditOf(store, filter, { payloads }), file !== undefined)
    const texts = textsOf(call, entries, format, payloads)
    if (file === undefined) {
      for await (const text of texts) {
        output.text(text)
        await output.taken()
        if (output.gone.aborted) break
      }
      return
    }
    await writeNew(file, texts)
    output.say(`Written to ${visible(file)}.`)
  })
  return undefined
}

const PROGRESS_EVERY = 1000

/** Shows how many facts were read, unless they are printed on the terminal themselves. */
async function* counted(
  { output }: Call,
  entries: AsyncIterable<AuditEntry>,
  isToFile: boolean,
): AsyncGenerator<AuditEntry> {
  let count = 0
  for await (const entry of entries) {
    yield entry
    count++
    if (count % PROGRESS_EVERY === 0 && (isToFile || !output.isTerminal)) {
      output.progress(`${count} facts exported`)
    }
  }
}

/** The export in small pieces, until it ends or is interrupted. */
async function* textsOf(
  { interrupted }: Call,
  entries: AsyncIterable<AuditEntry>,
  format: string,
  payloads: boolean,
): AsyncGenerator<string> {
  if (format === 'csv') yield csvHead(payloads)
  for await (const entry of entries) {
    if (interrupted.aborted) return
    yield format === 'csv' ? csvLine(entry, visible) : `${visibleJson(JSON.stringify(entry))}\n`
  }
}

const JOB = '0198a1b2-0000-7000-8000-000000000001'

export const commands: readonly CommandSpec[] = [
  {
    name: 'audit list',
    summary: 'List the facts of jobs, newest first: each step, who caused it, and why',
    details:
      'A fact must match all conditions. A step through several states matches each of them. ' +
      'With --json each fact is one line, with its position (pos) in the ledger. For changes of ' +
      'queues see pawl queue history.',
    options: [...AUDIT_OPTIONS, { flags: '--oldest', says: 'oldest first' }, ...PAGING_OPTIONS],
    examples: [
      ['pawl audit list --actor operator --from 7d', 'what operators did in the last week'],
      ['pawl audit list --to-state quarantined --from 1h', 'what was parked in the last hour'],
      ['pawl audit list --worker web-1-4711 --trigger expire', 'expired leases of a worker'],
      [`pawl audit list --job ${JOB} --oldest`, 'the history of one job'],
    ],
    run: list,
  },
  {
    name: 'audit export',
    summary: 'Write facts as NDJSON or CSV, oldest first',
    details:
      'Facts are written as they are read, so an export may have any size. A CSV cell that a ' +
      'spreadsheet would read as a formula starts with an apostrophe. Only NDJSON with payloads ' +
      'can be verified later: pawl audit verify --ledger.',
    options: [
      { flags: '--format <format>', says: 'ndjson if absent', choices: ['ndjson', 'csv'] },
      { flags: '--out <file>', says: 'a new file; stdout if absent' },
      { flags: '--payloads', says: 'also inputs, results and results of steps' },
      ...AUDIT_OPTIONS,
    ],
    examples: [
      ['pawl audit export --payloads --out ledger.ndjson', 'the whole ledger'],
      ['pawl audit export --format csv --actor operator --from 30d', 'for a spreadsheet'],
    ],
    run: exportAll,
  },
]
