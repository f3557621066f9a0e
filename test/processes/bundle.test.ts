// Programs that are bundled into one file, in processes of their own: they keep the thread that
// renews their leases if its file can be found, and say so if it cannot. A bundle that was started
// as its own thread would run the whole program again.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { describe, expect, it } from 'vitest'
import { PLACES } from '../engine/processes/places.ts'
import { runChild } from './children.ts'
import { freshFolder } from './folder.ts'

const timeout = 60_000
const APP = resolve('test/processes/bundled-app.mjs')
const THREAD = resolve('dist/entries/heartbeat-thread.js')
/** Longer than the lease of the program. */
const BLOCK_MS = 4500

type Format = 'esm' | 'cjs'

/**
 * Writes one file. Each entry is built by itself: a build of two entries may put what they share
 * into the file of the program, and the thread would then run the program.
 */
async function bundleOne(input: string, file: string, format: Format): Promise<string> {
  const external = ['@photostructure/sqlite', 'pg-native', 'pg-cloudflare']
  const built = await rolldown({ input, platform: 'node', external, logLevel: 'silent' })
  await built.write({ file, format, codeSplitting: false })
  return file
}

/** A folder with the program as one file; what cannot be bundled is linked beside it. */
async function bundle(format: Format, linked: Readonly<Record<string, string>> = {}) {
  const folder = freshFolder()
  const packages = { '@photostructure': 'node_modules/@photostructure', ...linked }
  mkdirSync(join(folder, 'node_modules'))
  for (const [name, path] of Object.entries(packages)) {
    symlinkSync(resolve(path), join(folder, 'node_modules', name))
  }
  return bundleOne(APP, join(folder, format === 'cjs' ? 'app.cjs' : 'app.mjs'), format)
}

const run = (app: string, store: string, blockMs: number, lease = '3s') =>
  runChild<object>(pathToFileURL(app), { store, blockMs, lease }, [], dirname(app))

describe.each(PLACES)('on $name', ({ place }) => {
  it('a bundle without the file of the thread says so and works', { timeout }, async () => {
    const app = await bundle('esm')
    const { store } = await place()
    expect(await run(app, store, 0)).toMatchObject({
      said: [
        { kind: 'started' },
        { event: 'worker.heartbeat_by_timer', why: 'bundle' },
        { kind: 'succeeded', output: 1, renewal: 'timer' },
        { kind: 'doctor', findings: 0 },
      ],
      stderr: '',
    })
  })

  it('a bundle beside a bundle of the thread keeps its leases', { timeout }, async () => {
    const app = await bundle('esm')
    await bundleOne(THREAD, join(dirname(app), 'heartbeat-thread.js'), 'cjs')
    const { store } = await place()
    expect(await run(app, store, BLOCK_MS)).toMatchObject({
      said: [
        { kind: 'started' },
        { kind: 'succeeded', output: 1, renewal: 'thread' },
        { kind: 'doctor', findings: 0 },
      ],
      stderr: '',
    })
  })

  it('a thread that takes longer to start than a lease lasts keeps leases', {
    timeout,
  }, async () => {
    const app = await bundle('esm')
    const thread = await bundleOne(THREAD, join(dirname(app), 'heartbeat-thread.js'), 'cjs')
    const slow = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500)'
    writeFileSync(thread, `${slow}\n${readFileSync(thread, 'utf8')}`)
    const { store } = await place()
    expect(await run(app, store, 2500, '2s')).toMatchObject({
      said: [
        { kind: 'started' },
        { kind: 'succeeded', output: 1, renewal: 'thread' },
        { kind: 'doctor', findings: 0 },
      ],
      stderr: '',
    })
  })

  it('a CommonJS bundle beside the package keeps its leases', { timeout }, async () => {
    const app = await bundle('cjs', { pawl: '.' })
    const { store } = await place()
    expect(await run(app, store, BLOCK_MS)).toMatchObject({
      said: [
        { kind: 'started' },
        { kind: 'succeeded', output: 1, renewal: 'thread' },
        { kind: 'doctor', findings: 0 },
      ],
      stderr: '',
    })
  })
})
