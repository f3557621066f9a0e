// Links in the place of a run's folders and files: nothing outside is read, written, made or cut.
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Journal, openFolderJournal, PathRefused } from 'pawl/runs'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { systemEnvironment } from '../../src/environment/system.ts'
import { TelemetryState } from '../../src/runs/telemetry/state.ts'
import { AUTHOR, applyCommand, factsOf } from './support.ts'

let folder: string
let journal: Journal
const inside = (...names: string[]) => join(folder, 'runs', ...names)
const outside = (...names: string[]) => join(folder, 'outside', ...names)

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-links-'))
  mkdirSync(outside())
  writeFileSync(outside('secret'), 'secret\n')
  journal = await openFolderJournal({ path: inside() })
  const writer = await journal.create('run-1', factsOf(null, { kind: 'create' }), AUTHOR)
  await applyCommand(writer, { kind: 'move', to: 'CLONED_INPUTS' })
  await writer.writeArtifact('plan', Buffer.from('plan'))
  await writer.close()
})

afterEach(async () => {
  await journal.close()
  expect(readdirSync(outside()).filter((name) => !PLANTED.includes(name))).toEqual([])
  expect(readFileSync(outside('secret'), 'utf8')).toBe('secret\n')
  rmSync(folder, { recursive: true, force: true })
})

/** What tests put there themselves. */
const PLANTED = ['secret', 'run-1', 'artifacts']

/** Puts a link in the place of something. */
function link(target: string, ...names: string[]): void {
  rmSync(inside(...names), { recursive: true, force: true })
  symlinkSync(target, inside(...names))
}

describe('a link', () => {
  it('in the place of a run’s folder is refused, even if it leads to a run', async () => {
    renameSync(inside('run-1'), outside('run-1'))
    const before = readdirSync(outside('run-1'))
    symlinkSync(outside('run-1'), inside('run-1'))
    await expect(journal.open('run-1', AUTHOR)).rejects.toBeInstanceOf(PathRefused)
    await expect(journal.read('run-1')).rejects.toBeInstanceOf(PathRefused)
    await expect(journal.verify('run-1')).rejects.toBeInstanceOf(PathRefused)
    await expect(journal.peek('run-1')).rejects.toBeInstanceOf(PathRefused)
    const facts = factsOf(null, { kind: 'create' })
    await expect(journal.create('run-1', facts, AUTHOR)).rejects.toBeInstanceOf(PathRefused)
    const wish = { reason: 'r', actor: 'a' }
    await expect(journal.requestCancel('run-1', wish)).rejects.toBeInstanceOf(PathRefused)
    // It is listed, so that its reader learns why it is not read.
    expect(await journal.list()).toEqual(['run-1'])
    expect(readdirSync(outside('run-1'))).toEqual(before)
  })

  for (const name of ['events.ndjson', 'snapshot.json', '.lock']) {
    it(`in the place of ${name} is refused`, async () => {
      link(outside('secret'), 'run-1', name)
      await expect(journal.open('run-1', AUTHOR)).rejects.toBeInstanceOf(PathRefused)
      if (name === '.lock') return
      const reading = journal.read('run-1').then((reader) => reader.replay())
      await expect(reading).rejects.toBeInstanceOf(PathRefused)
    })

    it(`to nowhere in the place of ${name} makes nothing`, async () => {
      link(outside('nothing'), 'run-1', name)
      await expect(journal.open('run-1', AUTHOR)).rejects.toBeInstanceOf(PathRefused)
      expect(existsSync(outside('nothing'))).toBe(false)
    })
  }

  it('in the place of a file that is renamed into place is replaced, not followed', async () => {
    link(outside('secret'), 'run-1', 'cancel.json')
    await journal.requestCancel('run-1', { reason: 'enough', actor: 'ann' })
    link(outside('secret'), 'run-1', '.holder.json')
    const writer = await journal.open('run-1', AUTHOR)
    expect(await writer.cancelRequest()).toMatchObject({ reason: 'enough' })
    await writer.close()
  })

  it('in the place of the folder of artifacts is refused', async () => {
    renameSync(inside('run-1', 'artifacts'), outside('artifacts'))
    const before = readdirSync(outside('artifacts'))
    symlinkSync(outside('artifacts'), inside('run-1', 'artifacts'))
    await expect(journal.open('run-1', AUTHOR)).rejects.toBeInstanceOf(PathRefused)
    const reader = await journal.read('run-1')
    const sha256 = (before[0] as string).slice('plan.'.length)
    await expect(reader.readArtifact('plan', sha256)).rejects.toBeInstanceOf(PathRefused)
    expect(readdirSync(outside('artifacts'))).toEqual(before)
  })

  it('put there while the run is held is refused', async () => {
    const writer = await journal.open('run-1', AUTHOR)
    renameSync(inside('run-1', 'artifacts'), outside('artifacts'))
    symlinkSync(outside('artifacts'), inside('run-1', 'artifacts'))
    const before = readdirSync(outside('artifacts'))
    const writing = writer.writeArtifact('new', Buffer.from('new'))
    await expect(writing).rejects.toBeInstanceOf(PathRefused)
    expect(readdirSync(outside('artifacts'))).toEqual(before)
    await writer.close()
  })

  it('in the place of the folder of a run that is held is refused at the first write', async () => {
    const writer = await journal.open('run-1', AUTHOR)
    renameSync(inside('run-1'), inside('moved'))
    mkdirSync(outside('run-1'))
    symlinkSync(outside('run-1'), inside('run-1'))
    const code = 'E_PATH_REFUSED'
    const moved = { code, message: expect.stringContaining('was moved, removed or replaced') }
    const events = readFileSync(inside('moved', 'events.ndjson'))
    await expect(applyCommand(writer, { kind: 'move', to: 'INGESTED' })).rejects.toMatchObject(
      moved,
    )
    await expect(writer.writeArtifact('new', Buffer.from('new'))).rejects.toMatchObject(moved)
    expect(writer.run.run_state).toBe('CLONED_INPUTS')
    await writer.close()
    expect(readdirSync(outside('run-1'))).toEqual([])
    expect(readFileSync(inside('moved', 'events.ndjson'))).toEqual(events)
    rmSync(inside('run-1'))
    renameSync(inside('moved'), inside('run-1'))
    await (await journal.open('run-1', AUTHOR)).close()
    expect(await journal.verify('run-1')).toEqual([])
  })

  it('in the place of a folder does no harm after the folder is back', async () => {
    const writer = await journal.open('run-1', AUTHOR)
    renameSync(inside('run-1'), inside('moved'))
    symlinkSync(outside(), inside('run-1'))
    await expect(applyCommand(writer, { kind: 'move', to: 'INGESTED' })).rejects.toThrow(
      PathRefused,
    )
    rmSync(inside('run-1'))
    renameSync(inside('moved'), inside('run-1'))
    await applyCommand(writer, { kind: 'move', to: 'INGESTED' })
    await writer.close()
    expect(await journal.peek('run-1')).toMatchObject({ run_state: 'INGESTED' })
  })

  it('in the place of the folder of all runs is refused, and no run begins elsewhere', async () => {
    renameSync(inside(), join(folder, 'moved'))
    symlinkSync(outside(), inside())
    const facts = factsOf(null, { kind: 'create' })
    await expect(journal.create('run-2', facts, AUTHOR)).rejects.toBeInstanceOf(PathRefused)
    rmSync(inside())
    renameSync(join(folder, 'moved'), inside())
  })

  it('in the place of the folder of telemetry is refused', async () => {
    symlinkSync(outside(), inside('.telemetry'))
    const state = new TelemetryState(inside('.telemetry'), 'sink', systemEnvironment())
    await expect(state.advance('run-1', 1)).rejects.toBeInstanceOf(PathRefused)
  })

  it('or a socket in the place of a file is named in the error', async () => {
    rmSync(inside('run-1', 'snapshot.json'))
    const server = createServer().listen(inside('run-1', 'snapshot.json'))
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const why = 'is a device, a pipe or a socket, not a file'
    await expect(journal.open('run-1', AUTHOR)).rejects.toThrow(why)
  })

  it('in the place of an artifact is refused when read, and replaced when written', async () => {
    const [name] = readdirSync(inside('run-1', 'artifacts')) as [string]
    link(outside('secret'), 'run-1', 'artifacts', name)
    const writer = await journal.open('run-1', AUTHOR)
    const sha256 = name.slice('plan.'.length)
    await expect(writer.readArtifact('plan', sha256)).rejects.toBeInstanceOf(PathRefused)
    await writer.writeArtifact('plan', Buffer.from('plan'))
    expect(Buffer.from(await writer.readArtifact('plan', sha256)).toString()).toBe('plan')
    await writer.close()
  })

  it('in the place of the journal itself is refused', async () => {
    symlinkSync(outside(), join(folder, 'linked'))
    const opening = openFolderJournal({ path: join(folder, 'linked') })
    await expect(opening).rejects.toBeInstanceOf(PathRefused)
  })
})
