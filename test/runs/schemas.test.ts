// The schemas in specs/schemas: authoritative, shipped, and asked at both ends.
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { systemFiles } from '../../src/environment/files.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import { sha256Of } from '../../src/runs/journal/hash.ts'
import { AUTHOR, all, LOG, linesOf, mend, Place, RUN, SNAPSHOT } from './support.ts'

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../specs/schemas/${name}`, import.meta.url), 'utf8'))

/** The text of a value with its keys in order, as the log has it. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, own: unknown) =>
    own && typeof own === 'object' && !Array.isArray(own)
      ? Object.fromEntries(Object.entries(own).sort(([a], [b]) => (a < b ? -1 : 1)))
      : own,
  )

describe('the schemas', () => {
  it('the schemas are JSON Schema 2020-12, versioned and shipped', () => {
    for (const name of ['event', 'snapshot']) {
      const schema = read(`${name}.schema.json`)
      expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema')
      expect(schema.$id).toBe(`urn:pawl:schema:${name}:1`)
      // Also without the one keyword that the standard does not have.
      const { discriminator: _discriminator, ...standard } = schema
      expect(new Ajv2020({ strict: false }).validateSchema(standard)).toBe(true)
    }
    const { files } = JSON.parse(readFileSync('package.json', 'utf8')) as { files: string[] }
    expect(files).toContain('specs')
  })

  it('a written run passes any validator', async () => {
    const place = new Place()
    await place.example()
    const ajv = new Ajv2020({ strict: false })
    const [event, snapshot] = ['event', 'snapshot'].map((name) =>
      ajv.compile(read(`${name}.schema.json`)),
    )
    for (const line of ((await place.get(LOG)) as Buffer).toString().trimEnd().split('\n')) {
      expect(event?.(JSON.parse(line)), line).toBe(true)
      expect(canonical(JSON.parse(line))).toBe(line)
    }
    expect(snapshot?.(JSON.parse(((await place.get(SNAPSHOT)) as Buffer).toString()))).toBe(true)
  })

  it('a line is canonical, whatever the names of its authors are', async () => {
    const place = new Place()
    await place.example()
    const journal = await place.open()
    const names = ['"quoted" \\ back', 'tab\tand\nfeed', 'ünï 名 😀', '</script>\u2028', '\u0000']
    const author = (actor: string) => ({ actor, trace_id: `${actor}-t`, span_id: `${actor}-s` })
    for (const name of names) {
      const writer = await journal.open(RUN, AUTHOR)
      const data = { section: name, from_state: null, to_state: 'read' }
      await writer.append([{ type: 'SECTION_STATE_CHANGED', data }], author(name))
      await writer.close()
    }
    const lines = ((await place.get(LOG)) as Buffer).toString().trimEnd().split('\n')
    const added = lines.slice(-names.length)
    expect(added.map((line) => canonical(JSON.parse(line)))).toEqual(added)
    expect(added.map((line) => JSON.parse(line).actor)).toEqual(names)
    expect((await (await journal.read(RUN)).replay()).run.last_seq).toBe(lines.length)
    await journal.close()
  })

  it('an event that the schema refuses is neither written nor read', async () => {
    const place = new Place()
    await place.example()
    const journal = await place.open()
    const writer = await journal.open(RUN, AUTHOR)
    const before = await place.get(LOG)
    const bad = { type: 'COMMIT_LINKED', data: { sha: 'main' } } as const
    await expect(writer.append([bad], AUTHOR)).rejects.toMatchObject({ code: 'E_EVENT_INVALID' })
    await writer.close()
    expect(await place.get(LOG)).toEqual(before)

    // The same event with a right chain, as another program might write it.
    const last = linesOf(before as Buffer).at(-1)?.text as string
    const { data: _data, ...event } = JSON.parse(last)
    const prev = sha256Of(Buffer.from(last, 'latin1'))
    const line = canonical({ ...event, ...bad, seq: event.seq + 1, prev })
    await place.put(LOG, Buffer.concat([before as Buffer, Buffer.from(`${line}\n`)]))
    await expect(journal.open(RUN, AUTHOR)).rejects.toMatchObject({
      code: 'E_RUN_LOG_DAMAGED',
      damage: { line: event.seq + 1, why: expect.stringContaining('sha') },
    })
  })

  it('a snapshot that the schema refuses is written again', async () => {
    const place = new Place()
    await place.example()
    const before = (await place.get(SNAPSHOT)) as Buffer
    const { sha256: _sum, ...snapshot } = JSON.parse(before.toString())
    // Its own hash fits, so that nothing but the schema can find the fault.
    const other = { ...snapshot, fix_attempts: -1 }
    const sha256 = sha256Of(canonical(other))
    await place.put(SNAPSHOT, `${canonical({ ...other, sha256 })}\n`)
    const journal = await place.open()
    expect(await journal.peek(RUN)).toBeUndefined()
    await mend(journal)
    expect((await place.get(SNAPSHOT))?.equals(before)).toBe(true)
  })

  it('every event has an id of its own, a UUID of version 7', async () => {
    const place = new Place()
    Object.assign(place.environment, { ids: systemEnvironment().ids })
    await place.example()
    const events = await all((await (await place.open()).read(RUN)).events())
    const ids = events.map(({ event_id }) => event_id)
    expect(new Set(ids).size).toBe(events.length)
    expect(ids).toEqual(ids.toSorted())
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  })

  it('peek reads only the snapshot', async () => {
    const place = new Place()
    await place.example()
    const journal = await place.open()
    const { run } = await (await journal.read(RUN)).replay()
    await place.remove(LOG)
    expect(await journal.peek(RUN)).toEqual(run)
  })
})

describe('the files of the machine', () => {
  it('that do not exist are undefined, and removing them does nothing', async () => {
    const nowhere = '/tmp/pawl-nowhere/at-all'
    expect(await systemFiles.open(nowhere, 'read')).toBeUndefined()
    expect(await systemFiles.info(nowhere)).toBeUndefined()
    expect(await systemFiles.list(nowhere)).toEqual([])
    await systemFiles.remove(nowhere)
  })
})
