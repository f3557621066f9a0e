// The worker half of the contract of stores, played over HTTP on both databases: the fences,
// answers and facts are those of the library. `npm test` plays every fourth case on PostgreSQL: the
// databases differ below the protocol, which the contract of stores covers.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { postgresContract } from '../contract/postgres-bench.ts'
import { type OpenStore, storeContract } from '../contract/store/index.ts'
import { freshFolder } from '../processes/folder.ts'
import { isProof, thorough } from '../support/extent.ts'
import { sharedPostgres } from '../support/postgres/databases.ts'
import { writeStoreFile } from '../support/sqlite-file.ts'
import { overHttp } from './worker-store.ts'

const THEMES = [
  ...['claim', 'facts of a claim', 'settle', 'facts of fast paths', 'heartbeat', 'fences', 'steps'],
  ...['deadlines', 'snoozed jobs', 'paths of the lifecycles', 'recover', 'commit', 'traces'],
  ...['ways out of a limit', 'cancel'],
]

/** Cases that cannot be played over HTTP, and why. */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  'the worker has done its work before it commits, so no function can be held back': [
    'a commit whose reply was lost gives its result again, and the function does not run',
    'an implicit commit and a commit with a function are one commit',
    'a commit without a result stores none, with a function and without',
    'two commits of one holder at once run one function',
    'a job that was not started cannot commit, and its function does not run',
    'a commit whose function outlasts the deadline is rolled back',
    'the function of a commit does not run past the deadline',
    ...[
      'its lease expired',
      'its job was taken back',
      'another worker claimed its job',
      'its own worker claimed the job again',
      'its job was cancelled',
      'its job was parked',
      'its job was forced elsewhere',
      'another worker committed its job',
      'another worker committed its job and effects are open',
    ].map((loss) => `commit is refused after ${loss}`),
    'commit under the fence of another claim of the same attempt is refused',
  ],
  'the transaction of a commit is not open to the worker': [
    'what the function writes into a table of its own is committed with the job',
    'a function that throws leaves nothing behind, and the job can be committed again',
    'a function that returns no text is refused, and everything is rolled back',
    'jobs that are enqueued with the tx of a commit stand or fall with it',
  ],
  'a text that is not JSON cannot be sent as a value': [
    'progress that cannot be stored is refused, and no lease is renewed',
  ],
  'a header that names no valid span is ignored, as W3C Trace Context says': [
    'ids of spans that are no names are refused, and change nothing',
  ],
  'the server describes a failure as an error that was thrown': [
    'a failed attempt waits out its delay and is then taken again',
  ],
  'a suspension is always a snooze, which every lifecycle has': [
    'a report that a lifecycle does not have is refused',
  ],
  'a thousand requests would take too long': [
    'jobs that fail together come back spread over some seconds',
  ],
}

/** Ways of losing a lease; `npm run prove` plays all of them. */
const LOSSES = ['its lease expired', 'another worker claimed its job']
const isPlayed = (name: string) => {
  const [, loss] = / is refused after (.*)$/.exec(name) ?? []
  return isProof || loss === undefined || LOSSES.includes(loss)
}

const reasons = new Map(
  Object.entries(LEFT_OUT).flatMap(([why, names]) => names.map((name) => [name, why] as const)),
)
const met = new Set<string>()

function workerHalf(open: OpenStore, every = 1): void {
  let cases = 0
  storeContract({
    describe: (theme, body) => {
      if (!THEMES.includes(theme)) return
      describe(theme, () => {
        cases = 0
        body()
      })
    },
    it: (name, body) => {
      if (reasons.has(name)) met.add(name)
      else if (isPlayed(name) && cases++ % every === 0) it(name, body)
    },
    open: async (environment) => {
      const opened = await open(environment)
      return { ...opened, store: await overHttp(opened.store) }
    },
  })
}

describe('workers over HTTP, on SQLite', () => {
  workerHalf(async (environment) => {
    const path = join(freshFolder(), 'jobs.db')
    await writeStoreFile(path)
    return {
      store: await openSqliteStore({ path, environment }),
      advance: environment.advance,
      ownTable: { add: () => {}, all: () => [] },
    }
  })
})

describe('workers over HTTP, on PostgreSQL', () => {
  const place = { leave: async () => {} }
  const enter = async () => ({ ...place, url: sharedPostgres(), storeUrl: sharedPostgres() })
  postgresContract(enter, {
    keepsConnections: true,
    instead: (open) => workerHalf(open, thorough(4, 1)),
  })
})

describe('the cases that are left out', () => {
  it('are cases of the contract', () => {
    expect([...reasons.keys()].filter((name) => !met.has(name))).toEqual([])
  })
})
