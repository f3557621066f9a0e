/** What runs contain: artifacts, work items and issues, and whole runs as bundles. */
import { RunNotFound } from '../../core/errors.ts'
import { entryOf, type Run } from '../../core/run/run.ts'
import { exportRun, importRun } from '../../runs/journal/bundle.ts'
import { RequestRefused } from '../errors.ts'
import { Reply } from '../exchange.ts'
import { OPERATE, PAGING, pageOf, READ, type Route, type RouteCall } from '../route.ts'
import { count, flag, list, map, nullable, oneOf, page, record, text, whole } from '../schema.ts'

const SHOWN_DEFAULT = 16_384
const SHOWN_MAX = 1024 * 1024
const CHUNK = 64 * 1024

function idOf({ id = '' }: RouteCall['params']): string {
  return id
}

/** A page of a part of a run, by key. */
async function pageOfPart<T extends object>(
  call: RouteCall,
  partOf: (run: Run) => Readonly<Record<string, T>>,
): Promise<unknown> {
  const { run } = await (await call.runs()).show(idOf(call.params))
  const { limit, after } = pageOf(call)
  const part = partOf(run)
  const isWanted = wantedBy(call.query)
  const keys = Object.keys(part)
    .filter((key) => (after === undefined || key > after) && isWanted(part[key] as T))
    .sort()
  const shown = keys.slice(0, limit)
  return {
    items: shown.map((name) => ({ name, ...(part[name] as T) })),
    nextCursor: keys.length > limit ? (shown.at(-1) ?? null) : null,
  }
}

function wantedBy({ status, stale }: RouteCall['query']): (entry: object) => boolean {
  return (entry) => {
    const own = entry as { readonly status?: string; readonly stale_because?: string | null }
    if (status !== undefined && own.status !== status) return false
    return stale === undefined || (own.stale_because !== null) === stale
  }
}

/** The content of an artifact of the run as it is now, or of an earlier version. */
async function contentOf({ runs, params, query }: RouteCall) {
  const opened = await runs()
  const { run } = await opened.show(idOf(params))
  const { artifact: wanted = '' } = params
  const found = entryOf(run.artifacts_index, wanted)
  if (found === undefined) throw new RequestRefused(404, 'The run has no artifact of this name')
  const { sha256 = found.sha256 } = query
  const reader = await opened.journal.read(idOf(params))
  return { sha256: sha256 as string, content: await reader.readArtifact(wanted, sha256) }
}

/** The slot is held until the last byte is sent, so that few contents are in memory. */
async function download(call: RouteCall): Promise<Reply> {
  const release = call.downloads.take()
  try {
    const { sha256, content } = await contentOf(call)
    const headers = {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="${sha256}"`,
      'content-length': String(content.length),
      etag: `"${sha256}"`,
    }
    call.signal.addEventListener('abort', release, { once: true })
    if (call.isHead || call.signal.aborted) release()
    return new Reply(chunksOf(content, release), headers)
  } catch (error) {
    release()
    throw error
  }
}

/** Not a generator: one that was never begun would not release its slot when it is ended. */
function chunksOf(content: Uint8Array, release: () => void): AsyncIterable<Uint8Array> {
  let from = 0
  const end = async () => {
    release()
    return { done: true, value: undefined } as const
  }
  const next = async () => {
    const value = content.subarray(from, from + CHUNK)
    from += CHUNK
    return value.length === 0 ? end() : { done: false, value }
  }
  return { [Symbol.asyncIterator]: () => ({ next, return: end }) }
}

function view(call: RouteCall): Promise<unknown> {
  return call.downloads.hold(async () => {
    const { limit = SHOWN_DEFAULT } = call.query
    const { sha256, content } = await contentOf(call)
    const bytes = content.length
    const whole = textIn(content)
    if (whole === undefined) return { sha256, bytes, truncated: true, text: null }
    const safe = isJson(whole) ? call.payloads.whole(whole) : whole
    const truncated = safe.length > limit
    return { sha256, bytes, truncated, text: truncated ? cut(safe, limit) : safe }
  })
}

function textIn(content: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    return undefined
  }
}

function isJson(whole: string): boolean {
  try {
    JSON.parse(whole)
    return true
  } catch {
    return false
  }
}

/** The first characters, without half of a surrogate pair. */
function cut(whole: string, limit: number): string {
  return whole.slice(0, limit).replace(/[\ud800-\udbff]$/, '')
}

/** The first line is read before the answer begins, so that a missing run is a problem. */
async function exportOne({ runs, params }: RouteCall): Promise<Reply> {
  const { journal } = await runs()
  const lines = exportRun(journal, idOf(params))
  const first = await lines.next()
  if (first.done) throw new RunNotFound()
  const texts = async function* () {
    yield `${first.value}\n`
    for await (const line of lines) yield `${line}\n`
  }
  return new Reply(texts(), {
    'content-type': 'application/x-ndjson',
    'content-disposition': 'attachment; filename="run.bundle"',
  })
}

async function importOne({ runs, body }: RouteCall): Promise<unknown> {
  const lines = (body.bundle as string).split('\n')
  if (lines.at(-1) === '') lines.pop()
  const each = async function* () {
    yield* lines
  }
  const { runId } = await importRun((await runs()).journal, each())
  return { runId }
}

const ROOT = '/api/v1/runs'
const SHA256 = text('an earlier version', { pattern: '^[0-9a-f]{64}$' })
const STAMP = text('UTC, ISO 8601')

const ARTIFACT = record({
  name: text(),
  path: text('its path in the folder of the run'),
  sha256: text(),
  schema_id: nullable(text()),
  writer_worker: text(),
  ts: STAMP,
  work_item: nullable(text('the work item that wrote it')),
  stale_because: nullable(text('the changed artifact that made this one stale')),
})

const ITEM = record({
  name: text(),
  status: oneOf(['started', 'finished', 'failed']),
  attempts: whole(),
  inputs: map(text()),
  declared: list(text()),
  code: nullable(text()),
  worker: text(),
  started_at: STAMP,
  finished_at: nullable(STAMP),
  error: nullable(text()),
})

const ISSUE = record({
  name: text(),
  status: oneOf(['open', 'resolved']),
  severity: oneOf(['blocker', 'error', 'warning']),
  message: text(),
  opened_at: STAMP,
  resolved_at: nullable(STAMP),
})

export const routes: readonly Route[] = [
  {
    method: 'GET',
    path: `${ROOT}/{id}/artifacts`,
    operation: 'listArtifacts',
    summary: 'Lists the artifacts of a run by name.',
    roles: READ,
    query: { stale: flag('only those that are stale, or only those that are not'), ...PAGING },
    errors: [404],
    answer: page(ARTIFACT),
    run: (call) => pageOfPart(call, (run) => run.artifacts_index),
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/artifacts/{artifact}`,
    operation: 'downloadArtifact',
    summary: 'Downloads an artifact of a run.',
    roles: READ,
    query: { sha256: SHA256 },
    errors: [404],
    answer: { media: 'application/octet-stream', says: 'the bytes of the artifact' },
    run: download,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/artifacts/{artifact}/content`,
    operation: 'showArtifact',
    summary: 'Shows the beginning of an artifact as text; secrets in JSON are replaced.',
    roles: READ,
    query: {
      sha256: SHA256,
      limit: count(`how many characters; ${SHOWN_DEFAULT} if absent`, 1, SHOWN_MAX),
    },
    errors: [404],
    answer: record({
      sha256: text(),
      bytes: whole('the size of the content'),
      truncated: flag('whether `text` is only its beginning'),
      text: nullable(text('null if the content is not text in UTF-8')),
    }),
    run: view,
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/items`,
    operation: 'listWorkItems',
    summary: 'Lists the work items of a run by name.',
    roles: READ,
    query: { status: oneOf(['started', 'finished', 'failed']), ...PAGING },
    errors: [404],
    answer: page(ITEM),
    run: (call) => pageOfPart(call, (run) => run.work_items),
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/issues`,
    operation: 'listIssues',
    summary: 'Lists the issues of a run by name.',
    roles: READ,
    query: { status: oneOf(['open', 'resolved']), ...PAGING },
    errors: [404],
    answer: page(ISSUE),
    run: (call) => pageOfPart(call, (run) => run.issues),
  },
  {
    method: 'GET',
    path: `${ROOT}/{id}/export`,
    operation: 'exportRun',
    summary: 'Downloads a run as one file: its events and every version of its artifacts.',
    roles: READ,
    errors: [404],
    answer: { media: 'application/x-ndjson', says: 'a bundle, for pawl run import' },
    run: exportOne,
  },
  {
    method: 'POST',
    path: `${ROOT}/import`,
    operation: 'importRun',
    summary: 'Stores a run from a bundle. The bundle must fit into the body of a request.',
    roles: OPERATE,
    body: record({ bundle: text('the text of a bundle') }),
    errors: [409],
    answer: record({ runId: text() }),
    run: importOne,
  },
]
