// The files of the machine, as the logs of runs need them.
import { constants, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { systemFiles } from '../../src/environment/files.ts'
import { freshFolder } from '../runs/bench.ts'

/** The flags with which this process has a file open, as Linux tells them. */
function flagsOf(path: string): number[] {
  return readdirSync('/proc/self/fd')
    .filter((fd) => linkOf(`/proc/self/fd/${fd}`) === path)
    .map((fd) => readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))
    .map((info) => Number.parseInt(/^flags:\s*([0-7]+)$/m.exec(info)?.[1] ?? '', 8))
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    // The number by which the folder itself was read is gone.
    return undefined
  }
}

describe('a file that is appended to', () => {
  it.runIf(process.platform === 'linux')(
    'is open so that each write is durable, since no sync follows it',
    async () => {
      const path = join(freshFolder(), 'log')
      const file = await systemFiles.open(path, 'append')
      const [flags = 0, ...others] = flagsOf(path)
      expect([flags & constants.O_DSYNC, others]).toEqual([constants.O_DSYNC, []])
      await file.close()
      expect(flagsOf(path)).toEqual([])
    },
  )

  it('is given back only when the pool has done with it what it was asked for', async () => {
    const path = join(freshFolder(), 'log')
    const file = await systemFiles.open(path, 'append')
    const large = new Uint8Array(8 * 1024 * 1024).fill(1)
    const writing = file.append(large)
    const syncing = file.sync()
    await file.close()
    await Promise.all([writing, syncing])
    expect((await systemFiles.info(path))?.size).toBe(large.length)
    await expect(file.append(large)).rejects.toThrow()
    await file.close()
  })
})
