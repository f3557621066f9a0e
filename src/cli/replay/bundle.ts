/**
 * The bundle of `pawl job export`: the facts of jobs and their payloads as lines of JSON, so that
 * `pawl job replay` and `pawl job show` can read jobs of a store that they cannot reach.
 *
 *   {"format":"pawl-jobs","version":1,"release":"…","redacted":["password",…]}
 *   {"fact":{…},"payload":"…"}            one line for each fact; the facts of a job in order
 *   {"sha256":"…"}                        of all bytes before this line
 *
 * The checksum finds damage. It proves no author: a bundle is input of a stranger, and its texts
 * are escaped wherever they are printed.
 */
import { createHash } from 'node:crypto'
import { NAME_MAX, name, uuid } from '../../core/checks.ts'
import { VERSION } from '../../environment/version.ts'
import { redactJson } from '../../http/json-text.ts'
import { JobBundleInvalid, UsageInvalid } from '../errors.ts'
import { linesIn } from '../files.ts'
import { visible } from '../visible.ts'
import { type RecordedFact, type RecordedJob, recordedJobOf } from './recorded.ts'

const FORMAT = 'pawl-jobs'
const FORMAT_VERSION = 1
const JOBS_MAX = 10_000
const FACTS_MAX = 1_000_000

/** Yields the lines of a bundle. */
export async function* bundleLines(
  entries: AsyncIterable<RecordedFact>,
  redacted: readonly string[],
): AsyncGenerator<string> {
  const secret = new Set(redacted.map((key) => key.toLowerCase()))
  const hash = createHash('sha256')
  const hashed = (value: object) => {
    const line = `${JSON.stringify(value)}\n`
    hash.update(line)
    return line
  }
  yield hashed({ format: FORMAT, version: FORMAT_VERSION, release: VERSION, redacted })
  for await (const { fact, payload } of entries) {
    const safe = payload === null || secret.size === 0 ? payload : redactJson(payload, secret)
    yield hashed({ fact, payload: safe })
  }
  yield `${JSON.stringify({ sha256: hash.digest('hex') })}\n`
}

/** Reads a bundle and folds its jobs; throws `JobBundleInvalid` and `UsageInvalid`. */
export async function readBundle(file: string): Promise<ReadonlyMap<string, RecordedJob>> {
  const hash = createHash('sha256')
  const facts = new Map<string, RecordedFact[]>()
  let number = 0
  let sum: string | undefined
  for await (const line of linesIn(file)) {
    number++
    const refuse = (why: string) => new JobBundleInvalid(visible(file), number, why)
    if (sum !== undefined) throw refuse('comes after the checksum')
    const value = parse(line, refuse)
    if (number === 1) checkHead(value, refuse)
    else if (typeof value.sha256 === 'string') sum = value.sha256
    else add(facts, value, refuse)
    if (sum === undefined) hash.update(`${line}\n`)
    if (number > FACTS_MAX) throw refuse(`is one of more than ${FACTS_MAX}`)
  }
  const refuse = (why: string) => new JobBundleInvalid(visible(file), number, why)
  if (sum === undefined) throw refuse('is the last one, and there is no checksum')
  if (sum !== hash.digest('hex')) throw refuse('has another checksum than the lines before it')
  return new Map(
    [...facts].map(([id, entries]) => [
      id,
      recordedJobOf(entries, (why) => refuse(`is the end of a job that ${visible(why)}`)),
    ]),
  )
}

type Fields = Readonly<Record<string, unknown>>
type Refuse = (why: string) => Error

function parse(line: string, refuse: Refuse): Fields {
  try {
    const value = JSON.parse(line) as unknown
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  } catch {
    // The error below says it.
  }
  throw refuse('is not a JSON object')
}

function checkHead({ format, version }: Fields, refuse: Refuse): void {
  if (format !== FORMAT) throw refuse(`does not say "format":"${FORMAT}"`)
  if (version !== FORMAT_VERSION) {
    throw refuse(`says a version that this release does not read; it reads ${FORMAT_VERSION}`)
  }
}

/** Checks what this program uses of a fact; the fold ignores everything else. */
function add(facts: Map<string, RecordedFact[]>, { fact, payload }: Fields, refuse: Refuse): void {
  const { jobId, seq, trigger } = (typeof fact === 'object' && fact !== null ? fact : {}) as Fields
  if (uuid(jobId as string) !== undefined) throw refuse('has no fact with the id of a job')
  if (name(trigger as string) !== undefined) throw refuse(`has no trigger of at most ${NAME_MAX}`)
  if (payload !== null && typeof payload !== 'string') throw refuse('has no payload text or null')
  const known = facts.get(jobId as string) ?? []
  if (seq !== known.length + 1) throw refuse(`must have the fact ${known.length + 1} of its job`)
  if (known.length === 0 && facts.size >= JOBS_MAX) throw refuse(`has job ${JOBS_MAX + 1}`)
  known.push({ fact: fact as RecordedFact['fact'], payload })
  facts.set(jobId as string, known)
}

/** Returns one job of a bundle; its id may be left out if there is only one. */
export function jobIn(jobs: ReadonlyMap<string, RecordedJob>, id: string | undefined): RecordedJob {
  const [only] = jobs.values()
  const found = id === undefined ? (jobs.size === 1 ? only : undefined) : jobs.get(id)
  if (found !== undefined) return found
  const ids = [...jobs.keys()].slice(0, 10).join(', ')
  throw new UsageInvalid('The bundle does not have this job', `Its jobs: ${ids}.`)
}
