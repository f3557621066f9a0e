// One run, several processes: one works, the others learn who does, and can ask it to stop.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Runs } from 'pawl/runs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { runChild } from '../../processes/children.ts'
import { freshFolder, freshRuns } from '../bench.ts'

const CHILD = new URL('pipeline.mjs', import.meta.url)

/** A process that holds a run until it is told otherwise. */
async function holder(folder: string): Promise<{ child: ChildProcess; said: () => string }> {
  const args = JSON.stringify({ folders: [folder], act: 'hold' })
  const child = spawn(process.execPath, [fileURLToPath(CHILD), args])
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout?.setEncoding('utf8').on('data', (more: string) => {
    text += more
  })
  while (!text.includes('held')) await once(child.stdout as NodeJS.ReadableStream, 'data')
  return { child, said: () => text }
}

function runsOf(folder: string): Promise<Runs> {
  return freshRuns({ folder: join(folder, 'runs') })
}

describe('a run that a process works on', () => {
  it('is refused to other processes, with the name of its holder', async () => {
    const folder = freshFolder()
    const { child } = await holder(folder)
    const { said } = await runChild<{ code: string; message: string }>(CHILD, {
      folders: [folder],
      act: 'resume',
    })
    expect(said).toMatchObject([{ code: 'E_RUN_HELD' }])
    expect(said[0]?.message).toContain(`${hostname()}, process ${child.pid}`)
    const { holder: shown } = await (await runsOf(folder)).show('story')
    expect(shown).toMatchObject({ host: hostname(), pid: child.pid })
  })

  it('is free again at once when that process dies', async () => {
    const folder = freshFolder()
    const { child } = await holder(folder)
    child.kill('SIGKILL')
    await once(child, 'close')
    const runs = await runsOf(folder)
    expect(await runs.cancel('story', 'its process is gone')).toBe('cancelled')
    expect((await runs.show('story')).run).toMatchObject({
      run_state: 'CANCELLED',
      ended_because: 'its process is gone',
    })
  })

  it('is cancelled by its holder when another process asks for it', async () => {
    const folder = freshFolder()
    const { child, said } = await holder(folder)
    const runs = await runsOf(folder)
    expect(await runs.cancel('story', 'not needed any more')).toBe('requested')
    await once(child, 'close')
    expect(said()).toContain('"kind":"cancelled"')
    const { run } = await runs.show('story')
    expect(run).toMatchObject({ run_state: 'CANCELLED', ended_because: 'not needed any more' })
    await expect(runs.resume('story')).rejects.toMatchObject({
      code: 'E_RUN_ENDED',
      hint: expect.stringMatching(/[Ff]ork/),
    })
  })
})
