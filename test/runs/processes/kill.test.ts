// A run whose process dies by SIGKILL around every one of its appends, and is then resumed.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openFolderJournal, openRuns, type Run, type RunEvent } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { runChild } from '../../processes/children.ts'
import { half } from '../../support/extent.ts'
import { freshFolder } from '../bench.ts'
import { essenceOf } from './essence.ts'

const CHILD = new URL('pipeline.mjs', import.meta.url)

interface Said {
  readonly folder: string
  readonly kind?: string
  readonly appends?: number
}

interface Kill {
  readonly at: number
  readonly moment: 'before' | 'after'
}

interface Told {
  readonly folders: readonly string[]
  readonly act: 'start' | 'resume'
  readonly kill?: Kill
}

const child = (told: Told) => runChild<Said>(CHILD, told)

/** Whoever is killed leaves what the system holds for him, so that no disk is needed. */
const memoryFolder = () => freshFolder(existsSync('/dev/shm') ? '/dev/shm' : undefined)

async function read(folder: string): Promise<{ run: Run; events: RunEvent[] }> {
  await using runs = await openRuns({ folder: join(folder, 'runs') })
  const events: RunEvent[] = []
  for await (const event of runs.events('story')) events.push(event)
  expect(await runs.verify('story')).toEqual([])
  return { run: (await runs.show('story')).run, events }
}

function finishedIn(events: readonly RunEvent[]): string[] {
  return events.flatMap(({ type, data }) => (type === 'WORK_ITEM_FINISHED' ? [data.key] : []))
}

function didIn(folder: string, act: string): string[] {
  const lines = readFileSync(join(folder, 'did.ndjson'), 'utf8').trimEnd().split('\n')
  const did = lines.map((line) => JSON.parse(line) as { act: string; key: string })
  return did.filter((one) => one.act === act).map(({ key }) => key)
}

/** A run that was killed, and what its log held then. */
interface Killed {
  readonly place: string
  readonly folder: string
  readonly before: readonly RunEvent[]
}

async function kill(at: Kill): Promise<Killed> {
  const folder = memoryFolder()
  const place = `${at.moment} append ${at.at}`
  const { signal, said } = await child({ folders: [folder], act: 'start', kill: at })
  expect([place, signal, said]).toEqual([place, 'SIGKILL', []])
  await using journal = await openFolderJournal({ path: join(folder, 'runs') })
  const before: RunEvent[] = []
  const exists = (await journal.list()).includes('story')
  if (exists) for await (const event of (await journal.read('story')).events()) before.push(event)
  return { place, folder, before }
}

async function check({ place, folder, before }: Killed, expected: Run): Promise<void> {
  const { run, events } = await read(folder)
  expect([place, essenceOf(run)]).toEqual([place, essenceOf(expected)])
  expect([place, events.slice(0, before.length)]).toEqual([place, before])
  const finished = finishedIn(events)
  expect([place, finished]).toEqual([place, [...new Set(finished)]])
  const again = didIn(folder, 'resume').filter((key) => finishedIn(before).includes(key))
  expect([place, again]).toEqual([place, []])
}

describe('a run that is killed and resumed', () => {
  it('comes to the same end wherever it was killed, and does no finished item twice', async () => {
    const whole = memoryFolder()
    const { said } = await child({ folders: [whole], act: 'start' })
    expect(said).toMatchObject([{ kind: 'done' }])
    const { run: expected } = await read(whole)
    expect(expected).toMatchObject({ run_state: 'DONE', fix_attempts: 1 })
    const appends = said[0]?.appends ?? 0
    expect(appends).toBeGreaterThan(35)
    const every = Array.from({ length: appends }, (_, i): Kill[] => [
      { at: i + 1, moment: 'after' },
      ...(i % 4 === 1 ? [{ at: i + 1, moment: 'before' } as const] : []),
    ]).flat()
    const points = half(every, 0)
    const killed: Killed[] = []
    const left = points.values()
    const slot = async () => {
      for (const point of left) killed.push(await kill(point))
    }
    await Promise.all([slot(), slot()])
    // Before its definition is kept, nobody was told that the run exists: it is started again.
    for (const act of ['start', 'resume'] as const) {
      const own = killed.filter(({ before }) => before.length < 2 === (act === 'start'))
      expect(own.length).toBeGreaterThan(0)
      const folders = own.map(({ folder }) => folder)
      const ended = await child({ folders, act })
      expect(ended).toMatchObject({ code: 0, stderr: '' })
      expect(ended.said.map(({ folder, kind }) => [folder, kind])).toEqual(
        folders.map((folder) => [folder, 'done']),
      )
    }
    for (const one of killed) await check(one, expected)
  }, 180_000)
})
