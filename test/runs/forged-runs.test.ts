// Runs that somebody made up or changed, with hashes that fit: what resuming, verifying and
// importing them must refuse alike.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exportRun, importRun, type Journal, openFolderJournal } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { EventIds } from '../../src/runs/journal/log-replay.ts'
import { freshFolder, freshRuns, journalsNamed, outcomeOf, releaseOf } from './bench.ts'
import { all } from './support.ts'

type Line = Record<string, unknown> & { data: Record<string, unknown>; type: string }

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const canonical = (value: unknown): string => JSON.stringify(sorted(value))

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, own]) => [name, sorted(own)]))
}

/** Changes events, and chains the lines anew, as somebody would who knows the format. */
function forged(lines: readonly string[], change: (events: Line[]) => void): string[] {
  const events = lines.map((line) => JSON.parse(line) as Line)
  change(events)
  let prev = '0'.repeat(64)
  return events.map((event) => {
    const line = canonical({ ...event, prev })
    prev = sha256(line)
    return line
  })
}

/** A bundle whose events were changed, and whose artifacts may be. */
async function forgedBundle(
  change: (events: Line[]) => void,
  changeArtifacts: (artifacts: string[]) => string[] = (artifacts) => artifacts,
): Promise<string[]> {
  const build = releaseOf({ build: (run) => run.artifact('plan').write('a plan') })
  const runs = await freshRuns({ runs: [build] })
  await outcomeOf(runs, build)
  const [head = '', ...rest] = await all(exportRun(runs.journal, 'r1'))
  const header = JSON.parse(head) as { events: number }
  const lines = forged(rest.slice(0, header.events), change)
  const artifacts = changeArtifacts(rest.slice(header.events))
  const counts = { last_hash: sha256(lines.at(-1) as string), artifacts: artifacts.length }
  return [canonical({ ...header, ...counts }), ...lines, ...artifacts]
}

const written = (events: Line[]) =>
  events.find(({ type, data }) => type === 'ARTIFACT_WRITTEN' && data.name === 'plan') as Line

const sameId = (events: Line[]) => {
  ;(events[3] as Line).event_id = (events[1] as Line).event_id
}

describe.each(journalsNamed('forged'))('a bundle that is imported into %s', (_name, open) => {
  const refused = async (bundle: readonly string[], why: RegExp) => {
    const journal: Journal = await open()
    await expect(importRun(journal, bundle)).rejects.toThrow(why)
    expect(await journal.list()).toEqual([])
  }

  it('is imported if nothing was changed', async () => {
    const journal = await open()
    await importRun(journal, await forgedBundle(() => {}))
    expect(await journal.verify('r1')).toEqual([])
  })

  it('is refused if an event id occurs twice', async () => {
    await refused(await forgedBundle(sameId), /its id .* is not unique/)
  })

  it('is refused if an artifact has a wrong path', async () => {
    const bundle = await forgedBundle((events) => {
      written(events).data.path = '../../evil'
    })
    await refused(bundle, /a wrong path for artifact "plan"/)
  })

  it('is refused with a content that no event names, or with one twice', async () => {
    const content = Buffer.from('extra').toString('base64')
    const extra = canonical({ name: '../../evil', sha256: sha256('extra'), content })
    const why = /has a content that no event names, or has it twice/
    await refused(
      await forgedBundle(
        () => {},
        (all) => [...all, extra],
      ),
      why,
    )
    await refused(
      await forgedBundle(
        () => {},
        (all) => [...all, all[0] as string],
      ),
      why,
    )
  })

  it('is refused without a content that an event names', async () => {
    await refused(
      await forgedBundle(
        () => {},
        (all) => all.slice(1),
      ),
      /is missing/,
    )
  })
})

describe('a log in which an event id occurs twice', () => {
  it('is damaged there for resume, reads and verify', async () => {
    const build = releaseOf({
      testing: () => {
        throw new Error('stop here')
      },
    })
    const folder = freshFolder()
    const runs = await freshRuns({ folder, runs: [build] })
    await outcomeOf(runs, build)
    const path = join(folder, 'r1', 'events.ndjson')
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    writeFileSync(path, `${forged(lines, sameId).join('\n')}\n`)
    // The snapshot knows the hash of the last line; without it, the chain alone would vouch.
    writeFileSync(join(folder, 'r1', 'snapshot.json'), '')
    await using journal = await openFolderJournal({ path: folder })
    expect(await journal.verify('r1')).toMatchObject([
      { kind: 'log', severity: 'error', details: { line: 4 } },
    ])
    await expect(runs.show('r1')).rejects.toThrow(/its id .* is not unique/)
    expect(await (await runs.resume('r1')).result()).toMatchObject({ damage: { line: 4 } })
  })
})

describe('the ids of a log', () => {
  const id = (n: number) => `${n.toString(16).padStart(8, '0')}-0000-7000-8000-000000000000`

  it('are found in any order', () => {
    const ids = new EventIds()
    const order = Array.from({ length: 2000 }, (_, i) => (i * 7919) % 2003)
    for (const n of order) expect(ids.add(id(n))).toBe(true)
    for (const n of order) expect(ids.add(id(n))).toBe(false)
  })
})
