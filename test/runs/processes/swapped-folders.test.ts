// Another process puts links in the place of a run's folders while the run is written to. Whatever
// the moment, nothing lands in the folder to which the links lead.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openFolderJournal, PathRefused, RunNotFound, type RunWriter } from 'pawl/runs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freshFolder } from '../bench.ts'
import { AUTHOR, applyCommand, factsOf } from '../support.ts'

const SWAPPER = fileURLToPath(new URL('swapper.mjs', import.meta.url))
const WANTED = 30
const TRIES_MAX = 20_000

/** A journal with one run, and a folder elsewhere that looks like one. */
async function place() {
  const folder = freshFolder()
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(join(elsewhere, 'artifacts'), { recursive: true })
  writeFileSync(join(elsewhere, '.lock'), '')
  const root = join(folder, 'runs')
  const journal = await openFolderJournal({ path: root })
  onTestFinished(() => journal.close())
  const writer = await journal.create('run-1', factsOf(null, { kind: 'create' }), AUTHOR)
  await writer.writeArtifact('plan', Buffer.from('plan'))
  const landed = () => [readdirSync(elsewhere), readdirSync(join(elsewhere, 'artifacts'))]
  expect(landed()).toEqual([['.lock', 'artifacts'], []])
  return { root, elsewhere, journal, writer, landed }
}

/** Swaps until the test is over; resolves when it has begun. */
async function swap(folder: string, elsewhere: string): Promise<() => Promise<void>> {
  const child = fork(SWAPPER, [JSON.stringify({ folder, elsewhere })], { execArgv: [] })
  const exit = once(child, 'exit')
  const stop = async () => {
    if (child.connected) child.disconnect()
    await exit
  }
  onTestFinished(stop)
  await once(child, 'message')
  return stop
}

/** Repeats an act until it was often done and often refused; says how often each. */
async function repeat(act: (i: number) => Promise<unknown>): Promise<[number, number]> {
  let [done, refused] = [0, 0]
  for (let i = 0; i < TRIES_MAX && (done < WANTED || refused < WANTED); i++) {
    try {
      await act(i)
      done++
    } catch (error) {
      if (!(error instanceof PathRefused || error instanceof RunNotFound)) throw error
      refused++
    }
  }
  return [done, refused]
}

const section = (writer: RunWriter, i: number) =>
  applyCommand(writer, { kind: 'change-section', section: 'intro', to: `draft ${i}` })

describe('a folder that is swapped for a link and back, all the time', { timeout: 120_000 }, () => {
  it('receives all writes of its holder, and the target of the link none', async () => {
    const { root, elsewhere, journal, writer, landed } = await place()
    const stop = await swap(join(root, 'run-1'), elsewhere)
    const contents: { name: string; sha256: string }[] = []
    const [done, refused] = await repeat(async (i) => {
      const name = `page ${i}`
      const { sha256 } = await writer.writeArtifact(name, Buffer.from(name))
      await section(writer, i)
      contents.push({ name, sha256 })
    })
    await stop()
    expect(Math.min(done, refused)).toBeGreaterThanOrEqual(WANTED)
    expect(landed()).toEqual([['.lock', 'artifacts'], []])
    await writer.close()
    for (const { name, sha256 } of contents) {
      const reader = await journal.read('run-1')
      expect(Buffer.from(await reader.readArtifact(name, sha256)).toString()).toBe(name)
    }
    expect(await journal.verify('run-1')).toEqual([])
  })

  it('is opened, cancelled and closed without a write to the target of the link', async () => {
    const { root, elsewhere, journal, writer, landed } = await place()
    await writer.close()
    const stop = await swap(join(root, 'run-1'), elsewhere)
    const [done, refused] = await repeat(async (i) => {
      await journal.requestCancel('run-1', { reason: `reason ${i}`, actor: 'ann' })
      const own = await journal.open('run-1', AUTHOR)
      try {
        await section(own, i)
      } finally {
        await own.close()
      }
    })
    await stop()
    expect(Math.min(done, refused)).toBeGreaterThanOrEqual(WANTED)
    expect(landed()).toEqual([['.lock', 'artifacts'], []])
    await (await journal.open('run-1', AUTHOR)).close()
    expect(await journal.verify('run-1')).toEqual([])
  })

  it('may also be the folder of artifacts in it', async () => {
    const { root, elsewhere, writer, landed } = await place()
    const stop = await swap(join(root, 'run-1', 'artifacts'), elsewhere)
    const [done, refused] = await repeat((i) => writer.writeArtifact(`${i}`, Buffer.from(`${i}`)))
    await stop()
    expect(Math.min(done, refused)).toBeGreaterThanOrEqual(WANTED)
    expect(landed()).toEqual([['.lock', 'artifacts'], []])
    await writer.close()
  })
})
