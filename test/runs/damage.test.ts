// A log that was changed, cut or lost before its end: a located error, nothing touched, and a
// failure that can be recorded beside it.
import { createHash } from 'node:crypto'
import { foldRun } from 'pawl/rules'
import { type Damage, RunLogDamaged } from 'pawl/runs'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  AUTHOR,
  all,
  failureFacts,
  LOG,
  LONG,
  linesOf,
  mend,
  Place,
  RUN,
  SNAPSHOT,
} from './support.ts'

let place: Place
let log: Buffer
let snapshot: Buffer

beforeEach(async () => {
  place = new Place()
  await place.example()
  log = (await place.get(LOG)) as Buffer
  snapshot = (await place.get(SNAPSHOT)) as Buffer
})

/** That the run is refused by everybody, that nothing was touched, and where the damage is. */
async function damaged(): Promise<Damage> {
  const before = await place.everything()
  const journal = await place.open()
  const refusal = async (action: () => Promise<unknown>): Promise<Damage> => {
    try {
      await action()
    } catch (error) {
      if (error instanceof RunLogDamaged) return error.damage
      throw error
    }
    throw new Error('the damage was not noticed')
  }
  const found = await refusal(() => journal.open(RUN, AUTHOR))
  const reader = await journal.read(RUN)
  expect(await refusal(() => reader.replay())).toEqual(found)
  expect(await journal.verify(RUN)).toMatchObject([{ kind: 'log', severity: 'error' }])
  expect(await place.everything()).toEqual(before)
  return found
}

/** The log with one bit of one byte flipped. */
function flipped(offset: number, bit = 0): Buffer {
  const bytes = Buffer.from(log)
  bytes[offset] = (bytes[offset] as number) ^ (1 << bit)
  return bytes
}

describe('a byte that was changed', LONG, () => {
  it('in any line is detected, and the error names the line', async () => {
    for (const [i, { text, offset }] of linesOf(log).entries()) {
      await place.put(LOG, flipped(offset + text.indexOf('"actor":"') + 9))
      expect(await damaged()).toMatchObject({ line: i + 1, offset })
    }
  })

  it('anywhere in a line is detected, and the error names the line', async () => {
    const { text, offset } = linesOf(log)[4] as { text: string; offset: number }
    for (let place_ = 0; place_ < text.length; place_++) {
      await place.put(LOG, flipped(offset + place_))
      expect((await damaged()).line, `byte ${place_}`).toBe(5)
    }
  })

  it('anywhere in the last line is detected by the hash in the snapshot', async () => {
    const lines = linesOf(log)
    const { offset } = lines.at(-1) as { offset: number }
    for (let place_ = offset; place_ < log.length; place_++) {
      await place.put(LOG, flipped(place_, 1))
      expect((await damaged()).line).toBe(lines.length)
    }
  })

  it('at the end of a line is detected', async () => {
    for (const { offset } of linesOf(log).slice(1)) {
      await place.put(LOG, flipped(offset - 1))
      expect((await damaged()).offset).toBeLessThan(offset)
    }
  })
})

describe('a log whose lines are not those that were written', LONG, () => {
  const withLines = (change: (lines: string[]) => string[]) =>
    place.put(
      LOG,
      Buffer.from(change(linesOf(log).map(({ text }) => `${text}\n`)).join(''), 'latin1'),
    )

  it('is damaged if an event is repeated', async () => {
    await withLines((lines) => lines.toSpliced(4, 0, lines[3] as string))
    expect((await damaged()).line).toBe(5)
  })

  it('is damaged if a line is missing or empty, or if two are exchanged', async () => {
    await withLines((lines) => lines.toSpliced(4, 1))
    expect((await damaged()).line).toBe(5)
    await withLines((lines) => lines.toSpliced(4, 0, '\n'))
    expect((await damaged()).line).toBe(5)
    await withLines((lines) => lines.with(4, lines[5] as string).with(5, lines[4] as string))
    expect((await damaged()).line).toBe(5)
  })

  it('is damaged if its first line is missing', async () => {
    await withLines((lines) => lines.slice(1))
    expect((await damaged()).line).toBe(1)
  })

  it('is damaged if its last lines are missing', async () => {
    await withLines((lines) => lines.slice(0, -1))
    expect((await damaged()).why).toContain('was written')
  })

  it('is damaged if it belongs to another run', async () => {
    await place.put(LOG, log.toString().replaceAll('run-1', 'run-2'))
    expect((await damaged()).line).toBe(1)
  })

  it('is damaged if it is missing or empty', async () => {
    await place.put(LOG, '')
    expect(await damaged()).toMatchObject({ line: 0 })
    await place.remove(LOG)
    expect(await damaged()).toMatchObject({ line: 0 })
    await place.put(SNAPSHOT, 'not even a snapshot')
    expect(await damaged()).toMatchObject({ line: 0 })
  })

  it('is damaged if it contains a block of zeros', async () => {
    const bytes = Buffer.from(log)
    bytes.fill(0, 500, 900)
    await place.put(LOG, bytes)
    await damaged()
  })
})

describe('a snapshot', LONG, () => {
  const rebuilt = async () => {
    const journal = await place.open()
    await mend(journal)
    expect((await place.get(SNAPSHOT))?.equals(snapshot)).toBe(true)
    expect((await place.get(LOG))?.equals(log)).toBe(true)
    await journal.close()
  }

  it('that is missing, empty, cut or invalid is written again, byte for byte', async () => {
    await place.remove(SNAPSHOT)
    await rebuilt()
    const other = snapshot.toString().replace('"run_state":"DRAFTING"', '"run_state":"DONE"')
    expect(other).not.toBe(snapshot.toString())
    const contents = ['', '{}', 'null', '[]', 'x', '\0\0\0\0', snapshot.subarray(0, 100), other]
    for (const content of contents) {
      await place.put(SNAPSHOT, content)
      expect(await (await place.open()).verify(RUN)).toMatchObject([{ kind: 'snapshot' }])
      await rebuilt()
    }
  })

  it('with any changed byte is written again', async () => {
    for (let offset = 0; offset < snapshot.length; offset++) {
      const bytes = Buffer.from(snapshot)
      bytes[offset] = (bytes[offset] as number) ^ 1
      await place.put(SNAPSHOT, bytes)
      await rebuilt()
    }
  })

  it('that is older than its log is brought up to date', async () => {
    const older = new Place()
    await older.example()
    const journal = await place.open()
    const writer = await journal.open(RUN, AUTHOR)
    const fact = { type: 'COMMIT_LINKED', data: { sha: 'b'.repeat(40) } } as const
    await writer.append([fact], AUTHOR)
    await writer.close()
    const newer = await place.get(SNAPSHOT)
    await place.put(SNAPSHOT, snapshot)
    expect(await journal.verify(RUN)).toMatchObject([{ kind: 'snapshot', severity: 'notice' }])
    await mend(journal)
    expect(await place.get(SNAPSHOT)).toEqual(newer)
  })

  it('protects its log in any valid form, and not once it is damaged', async () => {
    const spaced = `${JSON.stringify(JSON.parse(snapshot.toString()), null, 2)}\n`
    const lines = linesOf(log)
    const last = lines.at(-1) as { offset: number }
    await place.put(LOG, log.subarray(0, last.offset))
    for (const form of [snapshot, spaced]) {
      await place.put(SNAPSHOT, form)
      expect((await damaged()).line).toBe(lines.length)
    }
    await place.put(SNAPSHOT, spaced.replace('"DRAFTING"', '"DONE"'))
    await mend(await place.open())
  })

  it('is exactly what its events fold to, in canonical form', async () => {
    const journal = await place.open()
    const events = await all((await journal.read(RUN)).events())
    const { last_event_hash, sha256, ...run } = JSON.parse(snapshot.toString())
    expect(run).toEqual(JSON.parse(JSON.stringify(foldRun(events))))
    const last = linesOf(log).at(-1)?.text as string
    expect(last_event_hash).toBe(createHash('sha256').update(last, 'latin1').digest('hex'))
    expect(sha256).toMatch(/^[0-9a-f]{64}$/)
  })
})

describe('the failure of a damaged run', LONG, () => {
  const breakLine = async (line: number) => {
    const { text, offset } = linesOf(log)[line - 1] as { text: string; offset: number }
    await place.put(LOG, flipped(offset + text.indexOf('"actor":"') + 9))
  }

  it('is recorded beside it, names its bytes, and is what readers then see', async () => {
    await breakLine(6)
    const before = await place.everything()
    const journal = await place.open()
    const decide = (run: Parameters<typeof failureFacts>[0]) => failureFacts(run)
    const { run, damage } = await journal.failDamaged(RUN, decide, AUTHOR)
    expect(run).toMatchObject({ run_state: 'FAILED', ended_because: 'SnapshotInvalid' })
    expect(run.issues.SnapshotInvalid).toMatchObject({ severity: 'blocker', status: 'open' })
    expect(run.last_seq).toBe(5 + 3)
    expect(damage?.line).toBe(6)
    expect((await (await journal.read(RUN)).replay()).run).toEqual(run)

    const everything = await place.everything()
    const { 'events.failed-1.ndjson': record, 'snapshot.failed.json': shown, ...rest } = everything
    expect(rest).toEqual(before)
    const failed = JSON.parse(Buffer.from(shown ?? '', 'base64').toString())
    expect(failed).toMatchObject({ run_state: 'FAILED', last_seq: run.last_seq })
    const header = JSON.parse(
      Buffer.from(record ?? '', 'base64')
        .toString()
        .split('\n')[0] ?? '',
    )
    const damagedLog = (await place.get(LOG)) as Buffer
    expect(header.sha256).toBe(createHash('sha256').update(damagedLog).digest('hex'))
    await expect(journal.open(RUN, AUTHOR)).rejects.toBeInstanceOf(RunLogDamaged)
    expect(await journal.verify(RUN)).toMatchObject([{ details: { recorded: true } }])
  })

  it('is recorded once for the same bytes, and again for others', async () => {
    const journal = await place.open()
    const decide = (run: Parameters<typeof failureFacts>[0]) => failureFacts(run)
    await breakLine(6)
    const first = await journal.failDamaged(RUN, decide, AUTHOR)
    const never = () => expect.fail('nothing is to be decided')
    expect(await journal.failDamaged(RUN, never, AUTHOR)).toEqual(first)
    await breakLine(3)
    const second = await journal.failDamaged(RUN, decide, AUTHOR)
    expect(second.run.last_seq).toBe(2 + 3)
    const records = (await place.names()).filter((name) => name.startsWith('events.failed'))
    expect(records).toEqual(['events.failed-1.ndjson', 'events.failed-2.ndjson'])
  })

  it('is ignored after the log was restored', async () => {
    const journal = await place.open()
    await breakLine(6)
    await journal.failDamaged(RUN, (run) => failureFacts(run), AUTHOR)
    await place.put(LOG, log)
    expect((await (await journal.read(RUN)).replay()).run.run_state).toBe('DRAFTING')
    await mend(journal)
  })

  it('can be recorded if the log is missing', async () => {
    const journal = await place.open()
    await place.remove(LOG)
    await journal.failDamaged(RUN, (run) => failureFacts(run), AUTHOR)
    const { run, damage } = await (await journal.read(RUN)).replay()
    expect(run).toMatchObject({ run_state: 'FAILED', run_id: RUN })
    expect(damage).toMatchObject({ line: 0 })
    expect(await place.get(SNAPSHOT)).toEqual(snapshot)
  })
})

describe('an artifact', LONG, () => {
  it('that was changed or removed is detected when it is read, and by verify', async () => {
    const journal = await place.open()
    const reader = await journal.read(RUN)
    const { run } = await reader.replay()
    const { path, sha256 } = run.artifacts_index['plan.md'] as { path: string; sha256: string }
    await place.put(path, 'something else')
    await expect(reader.readArtifact('plan.md', sha256)).rejects.toMatchObject({
      code: 'E_ARTIFACT_CHANGED',
    })
    expect(await journal.verify(RUN)).toMatchObject([{ kind: 'artifact', severity: 'error' }])
    await place.remove(path)
    await expect(reader.readArtifact('plan.md', sha256)).rejects.toMatchObject({
      code: 'E_ARTIFACT_MISSING',
    })
    expect(await journal.verify(RUN)).toMatchObject([{ kind: 'artifact', severity: 'error' }])
  })
})
