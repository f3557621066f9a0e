// The end of a log after a write that was cut short: never glued to the next event, never lost
// without a trace, never taken for an event.
import { createHash } from 'node:crypto'
import { foldRun } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import {
  AUTHOR,
  all,
  applyCommand,
  LOG,
  LONG,
  linesOf,
  mend,
  Place,
  RUN,
  SNAPSHOT,
} from './support.ts'

/** A run whose last event the snapshot does not know yet, as after a crash. */
async function tornable(): Promise<{ place: Place; log: Buffer; last: number; snapshot: Buffer }> {
  const place = new Place()
  await place.example()
  const snapshot = (await place.get(SNAPSHOT)) as Buffer
  const journal = await place.open()
  const writer = await journal.open(RUN, AUTHOR)
  await applyCommand(writer, {
    kind: 'open-issue',
    issue: 'i',
    severity: 'error',
    message: 'naïve — 墨',
  })
  await writer.close()
  await journal.close()
  const log = (await place.get(LOG)) as Buffer
  const last = linesOf(log).at(-1)?.offset as number
  return { place, log, last, snapshot }
}

describe('a log that ends in the middle of a line', LONG, () => {
  it('cut at any byte of its last event is repaired, repeatedly', async () => {
    const { place, log, last, snapshot } = await tornable()
    for (let length = last; length < log.length; length++) {
      for (const name of await place.names())
        if (name.startsWith('events.torn')) await place.remove(name)
      const torn = log.subarray(last, length)
      await place.put(LOG, log.subarray(0, length))
      await place.put(SNAPSHOT, snapshot)
      const journal = await place.open()
      const { tornBytes, run } = await (await journal.read(RUN)).replay()
      expect(tornBytes).toBe(torn.length)

      const writer = await journal.open(RUN, AUTHOR)
      await applyCommand(writer, { kind: 'change-section', section: 'a', to: `${length}` })
      await applyCommand(writer, { kind: 'change-section', section: 'b', to: `${length}` })
      await writer.close()

      const events = await all((await journal.read(RUN)).events())
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
      const added = events.slice(run.last_seq).map(({ type }) => type)
      const changes = ['SECTION_STATE_CHANGED', 'SECTION_STATE_CHANGED']
      expect(added).toEqual(torn.length > 0 ? ['LOG_TAIL_DISCARDED', ...changes] : changes)
      expect(await journal.verify(RUN)).toEqual([])
      expect(await journal.peek(RUN)).toEqual(foldRun(events))
      if (torn.length > 0) {
        expect((await place.get('events.torn-1'))?.equals(torn)).toBe(true)
        const sha256 = createHash('sha256').update(torn).digest('hex')
        expect(events[run.last_seq]?.data).toEqual({ bytes: torn.length, sha256 })
      }
      await journal.close()
    }
  })

  it('is not changed by readers, who report the number of ignored bytes', async () => {
    const { place, log, last, snapshot } = await tornable()
    await place.put(LOG, log.subarray(0, last + 10))
    await place.put(SNAPSHOT, snapshot)
    const before = await place.everything()
    const journal = await place.open()
    const reader = await journal.read(RUN)
    expect((await reader.replay()).tornBytes).toBe(10)
    expect((await all(reader.events())).length).toBe(linesOf(log).length - 1)
    expect(await journal.verify(RUN)).toMatchObject([{ kind: 'tail', severity: 'notice' }])
    expect(await place.everything()).toEqual(before)
  })

  it('torn twice in the same way is recorded twice', async () => {
    const { place, log, last, snapshot } = await tornable()
    await place.put(LOG, log.subarray(0, last + 10))
    await place.put(SNAPSHOT, snapshot)
    const journal = await place.open()
    await mend(journal)
    await place.put(
      LOG,
      Buffer.concat([(await place.get(LOG)) as Buffer, log.subarray(last, last + 10)]),
    )
    await mend(journal)
    expect((await place.names()).filter((name) => name.startsWith('events.torn'))).toEqual([
      'events.torn-1',
      'events.torn-2',
    ])
    const events = await all((await journal.read(RUN)).events())
    expect(events.filter(({ type }) => type === 'LOG_TAIL_DISCARDED').length).toBe(2)
  })

  it('is damaged if the snapshot has more events than it', async () => {
    const { place, log, last } = await tornable()
    await place.put(LOG, log.subarray(0, log.length - 1))
    const before = await place.everything()
    const journal = await place.open()
    const line = linesOf(log).length
    const damage = { code: 'E_RUN_LOG_DAMAGED', damage: { line, offset: last } }
    await expect(journal.open(RUN, AUTHOR)).rejects.toMatchObject(damage)
    await expect((await journal.read(RUN)).replay()).rejects.toMatchObject(damage)
    expect(await place.everything()).toEqual(before)
  })

  it('in its first line is not a run yet, and can be created', async () => {
    const { place, log } = await tornable()
    await place.put(LOG, log.subarray(0, 40))
    await place.remove(SNAPSHOT)
    const journal = await place.open()
    expect(await journal.list()).toEqual([])
    await expect(journal.open(RUN, AUTHOR)).rejects.toMatchObject({ code: 'E_RUN_NOT_FOUND' })
    const created = {
      type: 'RUN_CREATED',
      data: { state: 'CREATED', machine: 'run', machine_version: 1, max_fix_attempts: 3 },
    } as const
    await (await journal.create(RUN, [created], AUTHOR)).close()
    const events = await all((await journal.read(RUN)).events())
    expect(events.map(({ type }) => type)).toEqual(['RUN_CREATED', 'LOG_TAIL_DISCARDED'])
    expect(await place.get('events.torn-1')).toEqual(log.subarray(0, 40))
  })
})
